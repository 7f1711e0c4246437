#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# by-hand.sh [MINUTES]: repeats the stress tests of registrations with new seeds, longer runs, up to four ranks. Run by hand.
# WEFT_TEST_BUILD, MPIRUN, MPICC as test/run sets them.
here=$(cd "$(dirname "$0")" && pwd)
end=$(($(date +%s) + 60 * ${1:-30}))
round=0
while [ "$(date +%s)" -lt $end ]; do
    round=$((round + 1))
    export WEFT_TEST_STRESS_SEED=$((RANDOM * 32768 + RANDOM)) WEFT_TEST_STRESS_SECONDS=20
    export WEFT_TEST_STRESS_RANKS=$((2 + round % 3))
    echo "-- round $round: $WEFT_TEST_STRESS_RANKS ranks, seed $WEFT_TEST_STRESS_SEED"
    for test in oracle allocators watches; do
        WEFT_TEST_STRESS_QUIET=1 "$here/$test" || { [ $? = 77 ] && exit 77; exit 1; }
    done
done
echo "ok: $round rounds"
