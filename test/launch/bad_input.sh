#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A mistake on the command line is one clear line and the right exit code.
. "$(dirname "$0")/lib.sh"
expect 127 "no such program: nosuchprogram" "$mpirun" -n 2 nosuchprogram
same 1 "$(wc -l <"$tmp/out")" "one line for two ranks"
expect 127 "no such program: ./nosuch" "$mpirun" -n 2 ./nosuch
: >"$tmp/plain"
expect 126 "no permission" "$mpirun" -n 2 "$tmp/plain"
expect 126 "is a directory" "$mpirun" -n 2 "$tmp"
expect 2 "at least one rank" "$mpirun" -n 0 true
expect 2 "at least one rank" "$mpirun" -n -3 true
expect 2 "not 'four'" "$mpirun" -n four true
expect 2 "did you mean '--tag-output'" "$mpirun" --tag-outptu true
expect 2 "did you mean '--timeout'" "$mpirun" --timeot 3 true
expect 2 "did you mean 'core'" "$mpirun" --bind-to coer true
expect 2 "no program" "$mpirun"
expect 2 "no program" "$mpirun" -n 2
expect 2 "between ':'" "$mpirun" -n 1 true : -n 2
expect 2 "wants a value" "$mpirun" -n
expect 2 "above 0" "$mpirun" --timeout -1 true
expect 2 "working directory" "$mpirun" --wdir /nosuchdir true
expect 2 "0 to 1 only" "$mpirun" -n 2 --stdin 2 true
expect 2 "this machine" "$mpirun" -host otherhost.example -n 1 true
expect 2 "no such variable" "$mpirun" -x WEFT_TEST_NOT_SET -n 1 true
expect 0 "Weft" "$mpirun" --version
expect 0 "Usage" "$mpirun" --help
lines=$("$mpirun" --help | wc -l)
same yes "$([ "$lines" -le 80 ] && echo yes || echo "$lines lines")" "--help fits two screens"
finish
