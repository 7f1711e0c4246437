# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# what: messages of all sizes between two ranks, with verification
# needs: dpkg-dev
# leaves out: its one-sided variant (windows); more than 2 ranks
#
# Ranks between the first and the last call fewer barriers than these, or receive from a rank that is not set.

build() { make mpi MPICC="$MPICC"; }

run_tests()
{
    [ "$1" = 2 ] || { result skipped "a program of two ranks"; return 0; }
    local most=1000000
    [ -z "$QUICK" ] || most=10000
    check "blocking" "$MPIRUN" -n "$1" ./NPmpi -i -u $most -o np.out
    check "receives posted early" "$MPIRUN" -n "$1" ./NPmpi -a -i -u $most -o np.out
    check "both directions" "$MPIRUN" -n "$1" ./NPmpi -2 -a -i -u $most -o np.out
    check "synchronous sends" "$MPIRUN" -n "$1" ./NPmpi -S -i -u $most -o np.out
    check "any source" "$MPIRUN" -n "$1" ./NPmpi -z -i -u $most -o np.out
}
