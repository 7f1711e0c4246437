# SPDX-License-Identifier: BSD-3-Clause
# What the tests of mpirun share. WEFT_TEST_MPIRUN: the mpirun under test; WEFT_TEST_PROBE: test/launch/probe/boot_probe as built.
# patience: seconds after which a command that has not ended hangs; ten times what a slow machine takes.
# A test ends with 0 (ok), 1 (not ok) or 77 (cannot be tried here).
mpirun=${WEFT_TEST_MPIRUN:-${MPIRUN:-$(command -v mpirun)}}
probe=${WEFT_TEST_PROBE:-${WEFT_TEST_BUILD:-$(dirname "$0")/../..}/test/launch/probe/boot_probe}
case $("$mpirun" --version 2>/dev/null) in
*Weft*) ;;
*) mpirun= ;; # PATH may hold another one's
esac
[ -x "$mpirun" ] || { echo "skip: no mpirun (WEFT_TEST_MPIRUN)"; exit 77; }
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
failed=0
patience=300
export LSAN_OPTIONS="suppressions=$(cd "$(dirname "$0")/.." && pwd)/lsan.supp:print_suppressions=0:${LSAN_OPTIONS:-}"

# expect CODE PATTERN COMMAND...: the exit code must be CODE and the output (both streams) must match the extended PATTERN.
expect()
{
    local code=$1 pattern=$2 got
    shift 2
    timeout $patience "$@" >"$tmp/out" 2>&1 </dev/null
    got=$?
    if [ "$got" != "$code" ] || { [ "$pattern" != "^" ] && ! grep -Eq -- "$pattern" "$tmp/out"; }; then
        echo "not ok: $* gave $got (wanted $code, and /$pattern/):"
        sed 's/^/    /' "$tmp/out" | head -20
        failed=1
    else
        echo "ok: $*"
    fi
}

# same WANTED GOT WHAT
same()
{
    if [ "$1" = "$2" ]; then
        echo "ok: $3"
    else
        echo "not ok: $3: wanted '$1', got '$2'"
        failed=1
    fi
}
need_probe() { [ -x "$probe" ] || { echo "skip: no boot_probe (WEFT_TEST_PROBE)"; exit 77; }; }
finish() { exit $failed; }
