# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# what: PT-Scotch, partitioning and ordering of distributed graphs by several threads of each rank
# needs: dpkg-dev flex bison zlib1g-dev
# leaves out: dgord, dgpart and dgtst of a graph that is cut for 4 ranks, at other numbers of ranks
#
# The parallel targets of its src/check/Makefile, one by one.

build()
{
    cd src
    sed -e "s/^CCD.*/CCD = mpicc/" -e 's/^\(CFLAGS.*\)-O3/\1-O2 -w/' Make.inc/Makefile.inc.x86-64_pc_linux2 >Makefile.inc
    make ptscotch # several make commands at once mix up its objects
    cd ..
    parallel_make test_strat_par test_scotch_dgraph_{band,check,coarsen,grow,induce,redist}
}

parallel_make()
{
    make -C src/check -f - "$@" CC=mpicc SCOTCHLIBS="-lptscotch -lscotch -lptscotcherr" <<'END'
include Makefile
CFLAGS += -DSCOTCH_PTSCOTCH
END
}

run_tests()
{
    local job="$MPIRUN -n $1" target
    export TMPDIR=$PWD LD_LIBRARY_PATH=$PWD/lib
    export -f parallel_make
    for target in check_strat_par check_scotch_dgraph_{check,band,coarsen,grow,induce,redist} check_prog_dgscat-dggath; do
        [ "$1 $target" != "1 check_prog_dgscat-dggath" ] || continue # it names rank 1 as the root
        check "${target#check_}" bash -c 'parallel_make "$@"' make "$target" EXECP3="$job" EXECP4="$job"
    done
    cd src/check || return 1
    for target in dgord dgpart; do
        case $target in
            dgord) set -- "" -vt ;;
            dgpart) set -- 9 -vmt ;;
        esac
        # shellcheck disable=SC2086
        check "$target" $job ../../bin/$target $1 data/bump.grf /dev/null -Cu "$2"
        # shellcheck disable=SC2086
        check "$target, numbered from 100,000" $job ../../bin/$target $1 data/bump_b100000.grf /dev/null -Cd "$2"
    done
    [ "$RANKS" = 4 ] || return 0
    check "dgord of 4 files" "$MPIRUN" -n 4 ../../bin/dgord data/small_%r.grf small.ord -vt
    check "dgpart of 4 files" "$MPIRUN" -n 4 ../../bin/dgpart 50 data/small_%r.grf /dev/null -vmt
    check "dgtst of 4 files" "$MPIRUN" -n 4 ../../bin/dgtst data/small_%r.grf
}
