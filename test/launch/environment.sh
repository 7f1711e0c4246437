#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What ranks find in their environment and where they stand.
. "$(dirname "$0")/lib.sh"
export WEFT_TEST_A=outer PMI_RANK=5 PMI_SIZE=9
same "0/2 1/2 " "$("$mpirun" -n 2 sh -c 'echo $WEFT_BOOT_RANK/$WEFT_BOOT_SIZE' | sort | tr '\n' ' ')" "numbers"
same outer "$("$mpirun" -n 1 sh -c 'echo $WEFT_TEST_A')" "ours is passed on"
same inner "$("$mpirun" -x WEFT_TEST_A=inner -n 1 sh -c 'echo $WEFT_TEST_A')" "-x NAME=VALUE"
same outer "$("$mpirun" -x WEFT_TEST_A -n 1 sh -c 'echo $WEFT_TEST_A')" "-x NAME"
same "g p" "$("$mpirun" -genv WEFT_TEST_A g -env WEFT_TEST_B p -n 1 sh -c 'echo $WEFT_TEST_A $WEFT_TEST_B')" "-genv and -env"
same "g p|g|" "$("$mpirun" -genv WEFT_TEST_A g -env WEFT_TEST_B p -n 1 sh -c 'echo $WEFT_TEST_A $WEFT_TEST_B' : \
    -n 1 sh -c 'sleep 0.2; echo $WEFT_TEST_A $WEFT_TEST_B' | tr '\n' '|')" "-env is one program's, -genv all's"
same "" "$("$mpirun" -genvnone -n 1 /bin/sh -c 'echo $WEFT_TEST_A')" "-genvnone"
same "outer" "$("$mpirun" -genvlist PATH,WEFT_TEST_A -n 1 /bin/sh -c 'echo $WEFT_TEST_A$HOME')" "-genvlist"
same "" "$("$mpirun" -n 1 sh -c 'echo $PMI_RANK$PMI_SIZE')" "another launcher's words to mpirun do not reach ranks"
same "$(cd "$tmp" && pwd -P)" "$("$mpirun" --wdir "$tmp" -n 1 pwd)" "--wdir"
printf '#!/bin/sh\necho found\n' >"$tmp/prog" && chmod +x "$tmp/prog"
same found "$("$mpirun" -wd "$tmp" -n 1 ./prog)" "program relative to --wdir"
printf 'echo shell\n' >"$tmp/plain" && chmod +x "$tmp/plain"
same shell "$("$mpirun" -n 1 "$tmp/plain")" "a script without #!"
same "1 one 2 two 2 two " "$("$mpirun" -n 1 sh -c 'echo 1 one' : -n 2 sh -c 'echo 2 two' | sort | tr '\n' ' ')" "MPMD"
same 22 "$("$mpirun" -n 1 sh -c 'ulimit -n 22 2>/dev/null; ulimit -n')" "a rank sets its own limits"
limit=$(ulimit -Sn)
same "$limit" "$("$mpirun" -n 1 sh -c 'ulimit -Sn')" "ranks have our limit of descriptors"
finish
