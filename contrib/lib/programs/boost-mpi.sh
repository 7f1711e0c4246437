# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# package: boost1.81
# what: Boost.MPI in C++: groups, intercommunicators, topologies, types of C++ structs, matched probes, threads
# needs: dpkg-dev
# leaves out: its Python interface
#
# All programs of libs/mpi/test, at each number of ranks, also at those that its Jamfile does not name; each is compiled against the headers
# of the same source package.

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

run_tests()
{
    local program
    cd built || return 1
    for program in *_test *_null random_* non_blocking_any_source sendrecv_vector; do
        [ -x "$program" ] || continue
        check -s 60 "$program" "$MPIRUN" -n "$1" "./$program"
    done
}
