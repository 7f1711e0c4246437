# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# package: boost1.81
# what: Boost.MPI in C++: groups, intercommunicators, topologies, types of C++ structs, matched probes, threads
# needs: dpkg-dev
# leaves out: its Python interface
#
# All programs of libs/mpi/test, at each number of ranks that they allow, compiled against the headers of the same source package.
# They report a failed call by an assertion that does not name it: `stops` tells which function a test calls first of those that may miss.

build()
{
    mkdir -p built
    cat >built/Makefile <<'END'
sources = $(wildcard ../libs/mpi/src/*.cpp) $(filter-out %xml_wgrammar.cpp,$(wildcard ../libs/serialization/src/*.cpp))
objects = $(notdir $(sources:.cpp=.o))
tests = $(filter-out debugger,$(notdir $(basename $(wildcard ../libs/mpi/test/*.cpp)))) random_gather random_scatter
includes = -I.. $(addprefix -I,$(wildcard ../libs/*/include ../libs/numeric/*/include))
vpath %.cpp ../libs/mpi/src ../libs/serialization/src ../libs/mpi/test ../libs/mpi/example
all: $(tests)
$(tests): %: %.o debugger.o libboost_mpi.a
	$(MPICXX) -o $@ $^ -lpthread
libboost_mpi.a: $(objects)
	$(AR) rc $@ $^
%.o: %.cpp
	$(MPICXX) -O1 -w -DBOOST_ALL_NO_LIB $(includes) -c -o $@ $<
END
    make -C built -j"$JOBS"
}

# stops TEST COMMAND...: runs the command; if it fails and Weft lacks the test's function, says so.
stops()
{
    local name=$1 function='' rc=0
    shift
    case $name in
        all_gather_test) function=MPI_Allgatherv ;;
        all_to_all_test) function=MPI_Alltoallv ;;
        gather_test) function=MPI_Gatherv ;;
        scan_test) function=MPI_Scan ;;
        scatter_test) function=MPI_Scatterv ;;
    esac
    "$@" || rc=$?
    [ $rc = 0 ] || [ -z "$function" ] || ! weft-info --missing | grep -w "$function" >/dev/null ||
        printf '\n%s: not built yet in Weft\n' "$function"
    return $rc
}

run_tests()
{
    local program
    cd built || return 1
    export -f stops
    for program in *_test *_null random_* non_blocking_any_source sendrecv_vector; do
        [[ -x $program && $program != *.* ]] || continue
        case $1,$program in
            1,block_nonblock_test | 1,broadcast*_test | 1,ring_test | 1,skeleton_content_test | 1,nonblocking_test) continue ;;
            2,*) ;;
            *,pointer_test | *,wait_all_vector_test | *,sendrecv_vector) continue ;; # two ranks only
        esac
        check -s 60 "$program" bash -c 'stops "$@"' stops "$program" "$MPIRUN" -n "$1" "./$program"
    done
}
