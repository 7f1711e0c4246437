# SPDX-License-Identifier: BSD-3-Clause
# lib: shared by the tests of registrations: builds churn, and runs it over the software HCA (test/transports/uring), whose registrations
# pin pages. Exit codes of the tests: 0 (ok), 1 (not ok), 77 (skipped).
here=$(cd "$(dirname "$0")" && pwd)
mpirun=${MPIRUN:-$(command -v mpirun)}
mpicc=${MPICC:-$(command -v mpicc)}
built=${WEFT_TEST_BUILD:-$here/../../_build}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
failed=0
case $("$mpirun" --version 2>/dev/null) in
*Weft*) ;;
*) echo "skip: no mpirun of Weft (MPIRUN)"; exit 77 ;;
esac
[ -e "$built/.libs/uring.so" ] || { echo "skip: no uring.so: liburing was missing at configure time (Debian package: liburing-dev)";
    exit 77; }
reason=$("$built/test/contract/uring" --why) || { echo "skip: ${reason#skipped: }"; exit 77; }
"$mpicc" -O2 -g -std=gnu11 -Wall -D_GNU_SOURCE "$here"/churn.c "$here"/blocks.c "$here"/hammer.c -o "$tmp/churn" -lpthread ||
    exit 1
"$mpicc" -O2 -g -std=gnu11 -Wall -D_GNU_SOURCE -fPIC -shared "$here"/deaf.c -o "$tmp/deaf.so" -ldl || exit 1
"$mpicc" -O2 -g -std=gnu11 -Wall "$here"/refuse.c -o "$tmp/refuse" || exit 1
export WEFT_MODULE_DIR=$built/.libs WEFT_TRANSPORTS=self,uring WEFT_COUNTERS=1
ranks=${WEFT_TEST_STRESS_RANKS:-2}
seed=${WEFT_TEST_STRESS_SEED:-$(($(date +%s) / 60))}

# Whether userfaultfd is in force: some tests are about it alone.
has_fault=no
"$(dirname "$mpirun")/weft-info" --registration 2>/dev/null | grep -Eq 'userfaultfd +in force' && has_fault=yes

# Counters of the registration cache, per rank.
show_counts()
{
    grep -E "^(churn: rank|churn: [0-9])|reg_" "$tmp/out" | sed 's/^/    /'
}

# churn LABEL CODE PATTERN [VARIABLE=VALUE...] -- ARGUMENT...: runs churn; verifies its exit code and that its output has PATTERN.
# $within: program that starts mpirun.
within=
churn()
{
    local label=$1 code=$2 pattern=$3 got
    local -a variables=()
    shift 3
    while [ "$1" != -- ]; do
        variables+=("$1")
        shift
    done
    shift
    env "${variables[@]}" timeout 500 $within "$mpirun" -n "$ranks" "$tmp/churn" -r "$seed" "$@" >"$tmp/out" 2>&1 </dev/null
    got=$?
    if [ "$got" != "$code" ] || ! grep -Eq -- "$pattern" "$tmp/out"; then
        echo "not ok: $label: exit code $got, expected $code and /$pattern/; to repeat:"
        echo "    WEFT_TEST_STRESS_SEED=$seed ${variables[*]} ${within##*/} churn $*"
        tail -30 "$tmp/out" | sed 's/^/    /'
        failed=1
        return 1
    fi
    echo "ok: $label, seed $seed"
    [ -n "${WEFT_TEST_STRESS_QUIET:-}" ] || show_counts
}

# Verifies that the last churn had look-ups in the cache and no hit.
expect_nothing_kept()
{
    grep -q reg_misses "$tmp/out" && ! grep -q reg_hits "$tmp/out" && return
    echo "not ok: registrations were kept without a memory monitor"
    show_counts
    failed=1
}

# Verifies that the last churn found registrations in the cache, without asking the kernel.
expect_kept()
{
    grep -q reg_hits "$tmp/out" && ! grep -q reg_sync_calls "$tmp/out" && return
    echo "not ok: no registration was kept, or the kernel was asked"
    show_counts
    failed=1
}

# Verifies that the last churn was told once, by one rank, that nothing can be kept.
expect_warned()
{
    [ "$(grep -c "registered anew for each message" "$tmp/out")" = 1 ] && return
    echo "not ok: not told once that nothing was kept"
    sed 's/^/    /' "$tmp/out"
    failed=1
}

# Verifies that the last churn gave registrations to the helper thread, and that no wake-up was lost meanwhile.
expect_woken()
{
    grep -q reg_async "$tmp/out" && ! grep -q lost_wakeups "$tmp/out" && return
    echo "not ok: no registration by the helper thread, or a wake-up was lost"
    grep -E "sleeps|lost_wakeups|reg_" "$tmp/out" | sed 's/^/    /'
    failed=1
}

# A sanitizer has an allocator of its own and must be loaded before any LD_PRELOAD.
is_sanitized() { ldd "$tmp/churn" | grep -q 'lib[at]san'; }

# Prints the path of an allocator's shared object, or nothing.
allocator()
{
    ! is_sanitized || return
    ldconfig -p | awk -v name="$1" 'index($1, name) == 1 { print $NF; exit }'
}
finish() { exit $failed; }
