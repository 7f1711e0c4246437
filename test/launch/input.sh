#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Standard input goes to one rank; the others read an end of file.
. "$(dirname "$0")/lib.sh"
same "[0] abc" "$(echo abc | "$mpirun" -l -n 3 cat)" "rank 0 reads"
same "[1] abc" "$(echo abc | "$mpirun" -l --stdin 1 -n 3 cat)" "--stdin 1"
same "" "$(echo abc | "$mpirun" -l --stdin none -n 3 cat)" "--stdin none"
same "$(seq 200000 | cksum)" "$(seq 200000 | "$mpirun" -n 2 cat | cksum)" "a megabyte by a pipe"
seq 1000 >"$tmp/in"
same "$(cksum <"$tmp/in")" "$("$mpirun" -n 2 cat <"$tmp/in" | cksum)" "a file"
if command -v script >/dev/null; then # a terminal
    (sleep 0.5; echo typed; sleep 0.3; printf '\004') | script -qec "$mpirun -n 2 cat" /dev/null >"$tmp/out" 2>&1 &
    wait $!
    same yes "$([ "$(grep -c typed "$tmp/out")" = 2 ] && echo yes || cat "$tmp/out")" "a terminal: echo and rank 0's answer"
fi
finish
