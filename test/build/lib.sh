# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
#
# lib: shared by the scripts of test/build. Sourced; gives $scratch (a temporary folder), check and finish.
# test/run sets WEFT_PREFIX, WEFT_TEST_SOURCE and WEFT_TEST_BUILD; by hand: from the build directory after make install.
source=${WEFT_TEST_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${WEFT_TEST_BUILD:-$PWD}
prefix=${WEFT_PREFIX:-$PWD/_install}
scratch=$(mktemp -d) || exit 1
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM
failed=0
count=0

# check WHAT COMMAND...: the command must succeed. Its output is kept for `says` until the next command.
check()
{
    what=$1
    shift
    count=$((count + 1))
    case "$1 $2" in
        says* | "refuse says") output=$scratch/.answer ;;
        *) output=$scratch/.output ;;
    esac
    if "$@" >"$output" 2>&1; then
        echo "ok      $what"
    else
        echo "FAILED  $what: $*"
        tail -n 15 "$scratch/.output" | sed 's/^/        /'
        failed=$((failed + 1))
    fi
}

refuse() { ! "$@"; }
says() { grep -q -e "$1" "$scratch/.output"; }
finish() { echo "$count checks, $failed failed"; [ "$failed" = 0 ]; exit $?; }

hello() # FILE
{
    cat >"$1" <<'END'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    rank++;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("sum %d\n", sum);
    MPI_Finalize();
    return sum != 3;
}
END
}
