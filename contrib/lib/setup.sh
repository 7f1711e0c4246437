# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# setup: shared by contrib/quickstart and contrib/check: Debian packages, the build in _build/, the installation in _install/.
# Sourced with $top set to the source directory. Each step prints what it does; a failed step names its log.

packages_build="gcc g++ make autoconf automake libtool m4 pkg-config python3 libhwloc-dev libpmix-dev libibverbs-dev librdmacm-dev"
packages_build="$packages_build libfabric-dev libc6-dev gzip"
# Optional: the Fortran interfaces are left out without it.
packages_fortran="gfortran"
packages_check="$packages_build liburing-dev libcunit1-dev cmake valgrind binutils procps"
# Libraries checked by configure, as pkg-config name:header.
libraries="hwloc:hwloc.h pmix:pmix.h libibverbs:infiniband/verbs.h librdmacm:rdma/rdma_cma.h libfabric:rdma/fabric.h"
libraries="$libraries liburing:liburing.h cunit:CUnit/Basic.h"
# Optional packages: tests that need one that cannot be installed are skipped.
# Tests over verbs devices in a guest (contrib/rdma-lab).
packages_lab="qemu-system-x86 busybox-static iproute2 ibverbs-providers ibverbs-utils"
# Tests over several hosts (contrib/testbed).
packages_hosts="iproute2 openssh-server openssh-client util-linux"
# Tests under Slurm (contrib/slurm-lab).
packages_slurm="slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge"
# Launchers of other MPIs (test/launch).
packages_launchers="openmpi-bin libopenmpi-dev mpich libmpich-dev"
# Allocators that test/stress and test/unit/test_memhooks preload.
packages_stress="libjemalloc2 libtcmalloc-minimal4 libmimalloc2.0"
# arm64, emulated (test/build/syscall_patch).
packages_arm64="qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
# Another release of gfortran than the library's (test/fortran/compilers).
packages_compilers="gfortran-11"
# libFuzzer for the harnesses of test/fuzz (test/build/fuzz).
packages_fuzz="clang-14 libclang-rt-14-dev"

# Source packages of contrib/programs: what test/programs builds needs. The other programs' needs are in contrib/lib/programs.
packages_programs="dpkg-dev perl libblas-dev"

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

# find_missing NAME...: sets `missing` to the packages that are not installed.
find_missing()
{
    local name
    missing=
    for name in "$@"; do
        is_installed "$name" || missing="$missing $name"
    done
    missing=${missing# }
}

# apt_install NAME...: installs them; 1 on failure, with the log in $apt_log. Runs apt-get update once.
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

# install_packages NAME...: installs the missing ones by apt-get; ends the script on failure.
install_packages()
{
    if ! is_debian; then
        say "  not a Debian system: assuming that these packages are installed: $*"
        return
    fi
    find_missing "$@"
    if [ -z "$missing" ]; then
        say "  all installed"
        return
    fi
    is_root_or_sudo || die "Not root, and no sudo. Install these packages, then run this again: $missing"
    say "  installing: $missing"
    # shellcheck disable=SC2086
    if ! apt_install $missing; then
        tail -n 15 "$apt_log" >&2
        die "apt-get failed; its log is $apt_log"
    fi
}

# try_packages CONSEQUENCE NAME...: installs optional packages, each by itself if all together fail. Adds those still missing to
# `unavailable` and prints the consequence.
unavailable=
try_packages()
{
    local consequence=$1 name
    shift
    if ! is_debian; then
        say "  not a Debian system: $consequence unless these packages are installed: $*"
        unavailable="$unavailable $*"
        return
    fi
    find_missing "$@"
    if [ -z "$missing" ]; then
        say "  all installed"
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
    say "  cannot be installed: $missing: $consequence"
    unavailable="$unavailable $missing"
}

# watch_step LOG WHAT COMMAND...: runs the command with a line of progress: WHAT, seconds, files compiled.
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

# found_now: prints what configure's result depends on: compilers, and each library's version and header.
found_now()
{
    local name flags
    for name in "${CC:-cc}" "${CXX:-c++}" "${FC:-gfortran}"; do
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

# compiled_with DIRECTORY: prints the compiler and flags of its objects, which make does not check.
compiled_with() { grep -E '^(CC|CXX|CFLAGS|CXXFLAGS|CPPFLAGS|DEFS|[A-Z]+_CFLAGS) = ' "$1/Makefile" 2>/dev/null || :; }

# configure_in DIRECTORY OPTION...: runs autogen.sh if needed, and configure unless its options and found_now are unchanged: contrib/check
# installs further packages after contrib/quickstart has configured.
configure_in()
{
    local dir=$1 stamp flags
    shift
    mkdir -p "$dir"
    if [ ! -x "$top/configure" ] ||
        [ -n "$(find "$top/configure.ac" "$top/m4/weft.m4" "$top/Makefile.am" -newer "$top/configure" 2>/dev/null)" ]; then
        watch_step "$dir/autogen.log" "autogen.sh" "$top/autogen.sh"
    fi
    stamp="$*
$(found_now)"
    if [ ! -f "$dir/Makefile" ] || [ "$(cat "$dir/configured" 2>/dev/null)" != "$stamp" ] ||
        [ "$top/configure" -nt "$dir/config.status" ]; then
        flags=$(compiled_with "$dir")
        rm -f "$dir/configured"
        (cd "$dir" && watch_step configure.log configure "$top/configure" "$@") || exit 1
        [ -z "$flags" ] || [ "$flags" = "$(compiled_with "$dir")" ] || make -C "$dir" clean >"$dir/clean.log" 2>&1
        printf '%s\n' "$stamp" >"$dir/configured"
    fi
}

# build_and_install: builds Weft in _build/ and installs it into _install/.
build_and_install()
{
    configure_in "$top/_build" --prefix="$top/_install"
    watch_step "$top/_build/make.log" build make -C "$top/_build" -j"$(jobs_count)"
    watch_step "$top/_build/install.log" "install into _install/" make -C "$top/_build" install
}
