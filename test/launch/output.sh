#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Output: whole lines, none lost, also with a slow reader; tags; files; leftovers.
. "$(dirname "$0")/lib.sh"
cat >"$tmp/talk" <<'EOF'
import os, sys
rank = os.environ["WEFT_BOOT_RANK"]
line = rank * 150
for i in range(4000):
    data = ("%s %05d %s\n" % (rank, i, line)).encode()
    at = i % 97   # cut each line in two writes
    os.write(1, data[:at]); os.write(1, data[at:])
EOF
check()
{
    python3 -c '
import sys
want = [0, 0, 0]
for text in sys.stdin:
    word = text.split()
    assert len(word) == 3 and word[2] == word[0] * 150, "mixed: " + text[:80]
    assert int(word[1]) == want[int(word[0])], "lost or out of order: " + text[:80]
    want[int(word[0])] += 1
assert want == [4000] * 3, want
print("whole")'
}
same whole "$("$mpirun" -n 3 python3 "$tmp/talk" | check)" "12000 lines of 3 ranks in order and whole"
same whole "$("$mpirun" -n 3 python3 "$tmp/talk" | (sleep 2; check))" "the same with a reader that sleeps first"
same "[0] a [0] b [1] a [1] b " "$("$mpirun" -l -n 2 sh -c 'echo a; echo b' | sort | tr '\n' ' ')" "tags"
same "[0] x|[1] x|" "$("$mpirun" --tag-output -n 2 printf x | sort | tr '\n' '|')" "a last line without its end"
same "[0] e|[1] e|" "$("$mpirun" -l -n 2 sh -c 'echo e >&2' 2>&1 >/dev/null | sort | tr '\n' '|')" "standard error stays standard error"
"$mpirun" --output-filename "$tmp/file" -n 2 sh -c 'echo out$WEFT_BOOT_RANK; echo err$WEFT_BOOT_RANK >&2'
same "out0 err0 out1 err1" "$(echo $(cat "$tmp/file.0.out" "$tmp/file.0.err" "$tmp/file.1.out" "$tmp/file.1.err"))" "files"
same 1000000 "$("$mpirun" -n 2 sh -c '[ $WEFT_BOOT_RANK = 1 ] || head -c 1000000 /dev/zero' | wc -c)" "a megabyte without an end of line"
same 1 "$(timeout 20 "$mpirun" -n 2 yes 2>/dev/null | head -n 1 | wc -l)" "the reader leaves: mpirun ends"
same "late" "$("$mpirun" -n 2 bash -c '[ $WEFT_BOOT_RANK = 1 ] || (sleep 0.3; echo late) &')" "what a rank left running a moment longer is heard"
before=$SECONDS
"$mpirun" -n 2 sh -c 'sleep 60 & true' >/dev/null
same yes "$([ $((SECONDS - before)) -le 10 ] && echo yes)" "but not waited for without end"
same "" "$(pgrep -f '^sleep 60$')" "and not left behind"
finish
