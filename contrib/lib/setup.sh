# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# setup: what contrib/quickstart and contrib/check share: the Debian packages, the build in _build/, the installation in _install/.
# Sourced with $top set to the source directory. Every step says what it does; a step that fails says where its log is.

packages_build="gcc g++ make autoconf automake libtool m4 pkg-config python3 libhwloc-dev libpmix-dev libibverbs-dev librdmacm-dev libfabric-dev libc6-dev gzip"
packages_check="$packages_build liburing-dev libcunit1-dev cmake valgrind binutils procps"
# The libraries that configure looks for: name for pkg-config, and header.
libraries="hwloc:hwloc.h pmix:pmix.h libibverbs:infiniband/verbs.h librdmacm:rdma/rdma_cma.h libfabric:rdma/fabric.h liburing:liburing.h cunit:CUnit/Basic.h"
# Of the following each that cannot be had is left out, and the tests that need it are skipped.
# For the tests over verbs devices in a guest (contrib/rdma-lab).
packages_lab="qemu-system-x86 busybox-static iproute2 ibverbs-providers ibverbs-utils"
# For the tests over several hosts (contrib/testbed).
packages_hosts="iproute2 openssh-server openssh-client util-linux"
# For a Slurm cluster on those hosts (contrib/slurm-lab).
packages_slurm="slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge"
# Launchers of other MPIs (test/launch).
packages_launchers="openmpi-bin libopenmpi-dev mpich libmpich-dev"
# Allocators that test/stress preloads.
packages_stress="libjemalloc2 libtcmalloc-minimal4 libmimalloc2.0"

say() { printf '%s\n' "$*"; }
die() { printf '%s\n' "$*" >&2; exit 1; }

is_root_or_sudo() { [ "$(id -u)" = 0 ] || command -v sudo >/dev/null 2>&1; }

as_root()
{
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

is_debian() { command -v dpkg-query >/dev/null 2>&1; }
is_installed() { [ "$(dpkg-query -W -f '${Status}' "$1" 2>/dev/null)" = "install ok installed" ]; }

# find_missing NAME...: sets `missing` to those that are not installed.
find_missing()
{
    local name
    missing=
    for name in "$@"; do
        is_installed "$name" || missing="$missing $name"
    done
    missing=${missing# }
}

# apt_install NAME...: 1 when it did not succeed; the log is $apt_log. The lists are fetched once.
apt_log=$top/_build/apt.log
apt_lists=old
apt_install()
{
    mkdir -p "$top/_build"
    if [ $apt_lists = old ]; then
        as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 update </dev/null >"$apt_log" 2>&1 || return 1
        apt_lists=new
    fi
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@" \
        </dev/null >"$apt_log" 2>&1
}

# install_packages NAME...: those that are missing, by apt-get; ends the script when that cannot be.
install_packages()
{
    if ! is_debian; then
        say "  this is no Debian: assuming that the packages are there ($*)"
        return
    fi
    find_missing "$@"
    if [ -z "$missing" ]; then
        say "  all there"
        return
    fi
    is_root_or_sudo || die "You are not root and there is no sudo. Install these by hand, then run this again: $missing"
    say "  installing: $missing"
    # shellcheck disable=SC2086
    if ! apt_install $missing; then
        tail -n 15 "$apt_log" >&2
        die "apt-get did not succeed; its log is $apt_log"
    fi
}

# try_packages CONSEQUENCE NAME...: the same for packages that some tests can do without: one that cannot be installed keeps no other out.
# Those that are not there in the end are added to `unavailable`.
unavailable=
try_packages()
{
    local consequence=$1 name
    shift
    if ! is_debian; then
        say "  this is no Debian: $consequence unless these are there: $*"
        unavailable="$unavailable $*"
        return
    fi
    find_missing "$@"
    if [ -z "$missing" ]; then
        say "  all there"
        return
    fi
    if is_root_or_sudo; then
        say "  installing: $missing"
        # shellcheck disable=SC2086
        if ! apt_install $missing && [ "$missing" != "${missing#* }" ]; then
            for name in $missing; do
                apt_install "$name" || continue
            done
        fi
    fi
    find_missing "$@"
    [ -z "$missing" ] && return
    is_root_or_sudo || say "  not root, and no sudo"
    say "  not to be had: $missing: $consequence"
    unavailable="$unavailable $missing"
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

jobs_count() { nproc 2>/dev/null || echo 2; } # CPUs that this process may use

# found_now: what configure would find at this moment, as far as packages change it: compilers, and libraries by version and header.
found_now()
{
    local name flags
    for name in "${CC:-cc}" "${CXX:-c++}"; do
        # shellcheck disable=SC2086
        printf '%s: %s\n' "$name" "$($name --version 2>/dev/null | head -n 1)"
    done
    for name in $libraries; do
        flags=$("${PKG_CONFIG:-pkg-config}" --cflags "${name%:*}" 2>/dev/null) || flags=
        # shellcheck disable=SC2086
        printf '%s %s %s\n' "$name" "$("${PKG_CONFIG:-pkg-config}" --modversion "${name%:*}" 2>/dev/null || echo none)" \
            "$(printf '#include <%s>\n' "${name#*:}" | ${CC:-cc} ${CPPFLAGS:-} $flags -x c -E - >/dev/null 2>&1 && echo header)"
    done
}

# compiled_with DIRECTORY: what the objects there depend on and make does not see.
compiled_with() { grep -E '^(CC|CXX|CFLAGS|CXXFLAGS|CPPFLAGS|DEFS|[A-Z]+_CFLAGS) = ' "$1/Makefile" 2>/dev/null || :; }

# configure_in DIRECTORY OPTION...: autogen if need be, then configure there, unless it was done with the same options and would find the
# same: contrib/check installs packages after contrib/quickstart has configured.
configure_in()
{
    local dir=$1 stamp flags
    shift
    mkdir -p "$dir"
    if [ ! -x "$top/configure" ] || [ -n "$(find "$top/configure.ac" "$top/m4/weft.m4" "$top/Makefile.am" -newer "$top/configure" 2>/dev/null)" ]; then
        watch_step "$dir/autogen.log" "autogen.sh" "$top/autogen.sh"
    fi
    stamp="$*
$(found_now)"
    if [ ! -f "$dir/Makefile" ] || [ "$(cat "$dir/configured" 2>/dev/null)" != "$stamp" ] || [ "$top/configure" -nt "$dir/config.status" ]; then
        flags=$(compiled_with "$dir")
        rm -f "$dir/configured"
        (cd "$dir" && watch_step configure.log configure "$top/configure" "$@") || exit 1
        [ -z "$flags" ] || [ "$flags" = "$(compiled_with "$dir")" ] || make -C "$dir" clean >"$dir/clean.log" 2>&1
        printf '%s\n' "$stamp" >"$dir/configured"
    fi
}

# build_and_install: Weft itself, from _build/ into _install/.
build_and_install()
{
    configure_in "$top/_build" --prefix="$top/_install"
    watch_step "$top/_build/make.log" build make -C "$top/_build" -j"$(jobs_count)"
    watch_step "$top/_build/install.log" "install into _install/" make -C "$top/_build" install
}
