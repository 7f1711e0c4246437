#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# bash completion offers mpirun's options where they belong, and each option that it offers is one that mpirun knows.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/../../contrib/completion/weft.bash"
words()
{
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _weft_mpirun mpirun 2>/dev/null
    echo "${COMPREPLY[*]}"
}
same "none numa" "$(words mpirun -n 2 --bind-to n)" "values of --bind-to"
same "--timeout" "$(words mpirun --tim)" "an option"
same ":" "$(words mpirun -n 2 ./a.out --tim)" "none behind the program"
same "--timeout" "$(words mpirun -n 2 ./a.out : --tim)" "again behind ':'"
for option in $(words mpirun -); do
    "$mpirun" "$option" </dev/null 2>&1 | grep -q "unknown option" && same known "$option unknown" "options that are offered"
done
finish
