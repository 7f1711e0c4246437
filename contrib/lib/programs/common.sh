# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# common: functions for the recipes of contrib/programs. Sourced before a recipe; the current directory is the unpacked source.
# A recipe defines build, which runs with set -e, and run_tests RANKS, which calls check. contrib/programs sets MPICC, MPICXX, MPIRUN, PATH,
# JOBS, QUICK (empty: no), RANKS and RESULTS (file of results: one line for each check: result, name and detail, separated by tabs).

# result RESULT NAME DETAIL: passed, failed, stops or skipped.
result()
{
    printf '%s\t%s\t%s\n' "$1" "$2" "${3:-}" | tee -a "$RESULTS"
}

# check [-s SECONDS] [-e PATTERN] [-n PATTERN] NAME COMMAND...: the command must end within SECONDS (300) with exit code 0; its output must
# have a line that matches -e and none that matches -n (extended regular expressions). A command that does not, and whose output names a
# function that Weft does not have yet, stops there. Its output is left in the file $output.
output=$(mktemp)
trap 'rm -f "$output"' EXIT
check()
{
    local seconds=300 wanted='' unwanted='' name rc=0 why='' missing
    while :; do
        case $1 in
            -s) seconds=$2 ;;
            -e) wanted=$2 ;;
            -n) unwanted=$2 ;;
            *) break ;;
        esac
        shift 2
    done
    name=$1
    shift
    echo "---- $name: $*"
    timeout --kill-after=10 "$seconds" "$@" >"$output" 2>&1 </dev/null || rc=$?
    cat "$output"
    if [ $rc = 124 ]; then
        why="no end after $seconds s"
    elif [ $rc != 0 ]; then
        why="exit code $rc"
    elif [ -n "$wanted" ] && ! grep -Eq -e "$wanted" "$output"; then
        why="no line with $wanted"
    elif [ -n "$unwanted" ] && grep -Eq -e "$unwanted" "$output"; then
        why=$(grep -E -m 1 -e "$unwanted" "$output")
    fi
    missing=$(not_built "$output")
    if [ -z "$why" ]; then
        result passed "$name"
    elif [ -n "$missing" ]; then
        result stops "$name" "$missing"
    else
        result failed "$name" "$why"
        return 0
    fi
}

# not_built FILE: prints the first function that the output names as missing in Weft.
not_built()
{
    sed -nE -e 's/.*\b(MPI_[A-Za-z_]+): not built yet in Weft.*/\1/p' \
        -e 's/.*: (collective calls on intercommunicators) are not built yet.*/\1/p' "$1" | sed 1q
}
