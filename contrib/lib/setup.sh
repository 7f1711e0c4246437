# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# setup: what contrib/quickstart and contrib/check share: the Debian packages, the build in _build/, the installation in _install/.
# Sourced with $top set to the source directory. Every step says what it does; a step that fails says where its log is.

packages_build="gcc g++ make autoconf automake libtool m4 pkg-config python3 libhwloc-dev libpmix-dev libibverbs-dev librdmacm-dev libfabric-dev libc6-dev gzip"
packages_check="$packages_build liburing-dev libcunit1-dev cmake valgrind binutils procps"
# For the tests over verbs devices in a guest (contrib/rdma-lab); where they cannot be had those tests are skipped.
packages_lab="qemu-system-x86 busybox-static iproute2 ibverbs-providers ibverbs-utils"
# For the tests over several hosts (contrib/testbed); the same.
packages_hosts="iproute2 openssh-server openssh-client util-linux"
# For a Slurm cluster on those hosts (contrib/slurm-lab); the same.
packages_slurm="slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge"
# Allocators that test/stress preloads; each that cannot be had is left out there.
packages_stress="libjemalloc2 libtcmalloc-minimal4 libmimalloc2.0"

say() { printf '%s\n' "$*"; }
die() { printf '%s\n' "$*" >&2; exit 1; }

as_root()
{
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo "$@"
    else
        die "You are not root and there is no sudo. Install these by hand, then run this again: $missing"
    fi
}

is_installed() { [ "$(dpkg-query -W -f '${Status}' "$1" 2>/dev/null)" = "install ok installed" ]; }

# install_packages NAME...: those that are missing, by apt-get.
install_packages()
{
    local log=$top/_build/apt.log name
    missing=
    if ! command -v dpkg-query >/dev/null 2>&1; then
        say "  this is no Debian: assuming that the packages are there ($*)"
        return
    fi
    for name in "$@"; do
        is_installed "$name" || missing="$missing $name"
    done
    missing=${missing# }
    if [ -z "$missing" ]; then
        say "  all there"
        return
    fi
    say "  installing: $missing"
    mkdir -p "$top/_build"
    # shellcheck disable=SC2086
    if ! { as_root env DEBIAN_FRONTEND=noninteractive apt-get update &&
           as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing; } </dev/null >"$log" 2>&1; then
        tail -n 15 "$log" >&2
        die "apt-get did not succeed; its log is $log"
    fi
}

# watch_step LOG WHAT COMMAND...: runs it with a line of progress: what, seconds, files compiled so far.
watch_step()
{
    local log=$1 what=$2 begin=$SECONDS shown=0 pid rc=0
    shift 2
    mkdir -p "$(dirname "$log")"
    "$@" </dev/null >"$log" 2>&1 &
    pid=$!
    while kill -0 "$pid" 2>/dev/null; do
        sleep 0.5
        if [ -t 1 ]; then
            printf '\r  %s: %d s, %d files compiled ' "$what" $((SECONDS - begin)) "$(grep -c '^  C[CX]' "$log")"
        elif [ $((SECONDS - begin - shown)) -ge 15 ]; then
            shown=$((SECONDS - begin))
            say "  $what: $shown s, $(grep -c '^  C[CX]' "$log") files compiled"
        fi
    done
    wait "$pid" || rc=$?
    [ -t 1 ] && printf '\r%60s\r' ''
    if [ $rc != 0 ]; then
        grep -E 'error|Error|missing|Debian package|apt-get install' "$log" | head -n 15 >&2
        tail -n 5 "$log" >&2
        die "$what failed (exit code $rc); its log is $log"
    fi
    say "  $what: done in $((SECONDS - begin)) s"
}

jobs_count() { getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2; }

# configure_in DIRECTORY OPTION...: autogen if need be, then configure there, unless it was done with the same options.
configure_in()
{
    local dir=$1
    shift
    mkdir -p "$dir"
    if [ ! -x "$top/configure" ] || [ -n "$(find "$top/configure.ac" "$top/m4/weft.m4" "$top/Makefile.am" -newer "$top/configure" 2>/dev/null)" ]; then
        watch_step "$dir/autogen.log" "autogen.sh" "$top/autogen.sh"
    fi
    if [ ! -f "$dir/Makefile" ] || [ "$(cat "$dir/options" 2>/dev/null)" != "$*" ] || [ "$top/configure" -nt "$dir/config.status" ]; then
        (cd "$dir" && watch_step configure.log configure "$top/configure" "$@") || exit 1
        printf '%s\n' "$*" >"$dir/options"
    fi
}

# build_and_install: Weft itself, from _build/ into _install/.
build_and_install()
{
    configure_in "$top/_build" --prefix="$top/_install"
    watch_step "$top/_build/make.log" build make -C "$top/_build" -j"$(jobs_count)"
    watch_step "$top/_build/install.log" "install into _install/" make -C "$top/_build" install
}
