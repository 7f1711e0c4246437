# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# what: dense linear algebra of block-cyclic matrices in Fortran, on BLACS, which is C and Fortran
# needs: dpkg-dev cmake gfortran libblas-dev liblapack-dev
# leaves out: its timing programs
#
# Its testers of BLACS, PBLAS and of each solver, with the inputs that it ships. A solver's tester skips grids of more ranks than it has.

build()
{
    cmake -S . -B build -DBUILD_SHARED_LIBS=OFF -DCMAKE_C_COMPILER="$MPICC" -DCMAKE_Fortran_COMPILER=mpifort \
        -DCMAKE_C_FLAGS="-w" -DCMAKE_Fortran_FLAGS="-w -fallow-argument-mismatch"
    make -C build -j"$JOBS"
}

run_tests()
{
    local program folder
    for folder in BLACS/TESTING PBLAS/TESTING TESTING; do
        for program in "build/$folder"/x*; do
            [ -x "$program" ] && [ -f "$program" ] || continue
            case $program in
                *tim) continue ;;
            esac
            cd "build/$folder" || return 1
            check -n '[1-9][0-9]* tests completed and failed|FAILED' "${program##*/}" "$MPIRUN" -n "$1" "./${program##*/}"
            cd - >/dev/null || return 1
        done
    done
}
