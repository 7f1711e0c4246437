# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# what: Fourier transforms of distributed arrays
# needs: dpkg-dev perl
# leaves out: Fortran wrappers, single and long double precision (Weft does not enter: the same code)
#
# Its own test: tests/check.pl starts mpi/mpi-bench on random problems and verifies each transform. Sizes that the ranks do not divide
# evenly move by MPI_Alltoallv.

build()
{
    local optimize=-O2
    [ -z "$QUICK" ] || optimize=-O0
    ./configure --enable-mpi --disable-fortran --disable-doc --disable-shared MPICC="$MPICC" CFLAGS="$optimize"
    make -j"$JOBS"
}

run_tests()
{
    local bench="$MPIRUN -n $1 $PWD/mpi/mpi-bench" count=30
    [ -z "$QUICK" ] || count=3
    # shellcheck disable=SC2086
    check "even blocks" $bench --verify ocf64x64 --verify icb32x32x32 --verify orf32x16x16 --verify 'ik16e10x16o00' --verify ocf4096
    # shellcheck disable=SC2086
    check "even blocks, patient planner" $bench -opatient --verify ocf64x64 --verify icb16x16x16 --verify ocf1024
    # shellcheck disable=SC2086
    check "vectors of transforms" $bench --verify 'ocf32x32v3' --verify 'icf16x16x16v2'
    # shellcheck disable=SC2086
    check "transposed output and input" $bench --verify ']ocf64x32' --verify '[ocf64x32'
    # shellcheck disable=SC2086
    check "uneven blocks" $bench --verify ocf13x17 --verify icb5x7x3 --verify ocf1000
    check -s 900 -n '^FAILED' "random problems" perl -w tests/check.pl --verbose --random --maxsize=10000 -c=$count --mpi "$bench"
    [ -n "$QUICK" ] || check -s 900 -n '^FAILED' "random problems, patient planner" \
        perl -w tests/check.pl --verbose --random --patient --maxsize=1000 -c=$count --mpi "$bench"
}
