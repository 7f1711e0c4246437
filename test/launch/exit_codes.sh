#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The exit code is that of the first rank that failed; one line says which, where and how; the others are ended.
. "$(dirname "$0")/lib.sh"
host=$(hostname)
expect 0 "^" "$mpirun" -n 3 true
expect 7 "rank 1 on host $host .*exit code 7" "$mpirun" -n 3 sh -c '[ $WEFT_BOOT_RANK = 1 ] && exit 7; sleep 30'
same 1 "$(wc -l <"$tmp/out")" "one line"
expect 139 "rank 0 .*SIGSEGV" "$mpirun" -n 2 sh -c '[ $WEFT_BOOT_RANK = 0 ] && kill -SEGV $$; sleep 30'
expect 137 "rank 2 .*SIGKILL" "$mpirun" -n 3 sh -c '[ $WEFT_BOOT_RANK = 2 ] && kill -KILL $$; sleep 30'
expect 124 "not finished within 0.3 s" "$mpirun" --timeout 0.3 -n 2 sleep 30
expect 124 "not finished within 0.3 s" env MPIEXEC_TIMEOUT=0.3 "$mpirun" -n 2 sleep 30
# deaf to SIGTERM: SIGKILL follows
before=$SECONDS
expect 5 "rank 0 .*exit code 5" "$mpirun" -n 2 sh -c '[ $WEFT_BOOT_RANK = 0 ] && { sleep 0.2; exit 5; }; trap "" TERM; while :; do sleep 1; done'
same yes "$([ $((SECONDS - before)) -le 8 ] && echo yes)" "a deaf rank is killed"
if [ -x "$probe" ]; then
    expect 1 "rank 0 .*without MPI_Finalize" "$mpirun" -n 3 "$probe" die
    expect 42 "rank 0 .*MPI_Abort with exit code 42" "$mpirun" -n 3 "$probe" abort
fi
finish
