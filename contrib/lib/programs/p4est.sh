# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# what: forests of octrees: refinement, balance, partition, ghosts and nodes of adaptive meshes
# needs: dpkg-dev autoconf automake libtool
# leaves out: its files by MPI-IO
#
# All programs of its make check, and those of its library sc.

build()
{
    echo "${PWD##*-}" >.tarball-version
    cp .tarball-version sc/.tarball-version
    ./bootstrap
    ./configure --enable-mpi --disable-mpiio --disable-shared CC="$MPICC" CFLAGS="-O2 -w"
    make -j"$JOBS"
    make -j"$JOBS" check TESTS=
    make -C sc -j"$JOBS" check TESTS=
}

run_tests()
{
    local program
    for program in test/p4est_test_* test/p8est_test_* test/p6est_test_* sc/test/sc_test_*; do
        case $program in
            *.*) continue ;; # objects
        esac
        [ -x "$program" ] && [ -f "$program" ] || continue
        check "${program##*/}" "$MPIRUN" -n "$1" "$program"
    done
}
