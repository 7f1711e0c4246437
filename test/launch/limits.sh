#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Many ranks, few descriptors, one CPU, nobody special.
. "$(dirname "$0")/lib.sh"
same 64 "$( (ulimit -n 256; "$mpirun" -n 64 echo x) | grep -c '^x$')" "64 ranks with 256 descriptors"
same 256 "$("$mpirun" -n 256 echo x | grep -c '^x$')" "256 ranks"
same 256 "$( (ulimit -n 256; "$mpirun" -n 256 echo x) | grep -c '^x$')" "256 ranks with 256 descriptors"
same 8 "$(taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')" "$mpirun" -n 8 echo x | grep -c x)" "on one CPU"
same 2 "$(env -i "$mpirun" -n 2 /bin/echo x | grep -c x)" "with an empty environment"
same 2 "$("$mpirun" -n 2 echo x <&- | grep -c x)" "without a standard input"
expect 0 "^" sh -c "'$mpirun' -n 2 echo x >&-"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && setpriv --reuid 65534 --clear-groups test -x "$mpirun" 2>/dev/null; then
    same 3 "$(cd / && TMPDIR=/tmp setpriv --reuid 65534 --regid 65534 --clear-groups "$mpirun" -n 3 echo x | grep -c x)" "as nobody"
fi

own=$(sh -c 'ls /proc/self/fd' </dev/null 2>/dev/null | sort -n -u) # what our own caller left open is not mpirun's doing
got=$("$mpirun" --pmix never -n 2 --stdin none ls /proc/self/fd | sort -n -u)
same "100" "$(comm -13 <(echo "$own" | sort) <(echo "$got" | sort) | tr '\n' ' ' | sed 's/ $//')" \
    "a rank inherits one descriptor more than mpirun was given"
finish
