# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# common: shared by run (QEMU) and uml (user-mode Linux): options, the cache, the script that the guest runs. Sourced with $lab set to
# contrib/rdma-lab and $tool to the caller's name. All failures of the lab go through `cannot`: one sentence and exit code 125 (77 with
# --check), so that they differ from failures of the command.

cache=${XDG_CACHE_HOME:-$HOME/.cache}/weft-rdma-lab
unavailable=125 # exit code of cannot
net=two fresh=no memlock=unlimited user='' smp=2 mem=1G limit=600
writes=() command=()

cannot() { printf '%s: %s\n' "$tool" "$*" >&2; exit "$unavailable"; }
bad_usage() { printf '%s: %s (try --help)\n' "$tool" "$*" >&2; exit 2; }

# lab_options ARGUMENT...: sets the variables above, and $check for the caller.
lab_options()
{
    check=no
    while [ $# -gt 0 ]; do
        case $1 in
            --net | --write | --memlock | --user | --smp | --mem | --timeout)
                [ $# -ge 2 ] || bad_usage "$1 needs a value"
                set_option "$1" "$2"
                shift ;;
            --fresh) fresh=yes ;;
            --check) check=yes unavailable=77 ;;
            --help) sed -n '/^# usage:/,/^$/s/^# \{0,1\}//p' "$lab/$tool"; exit 0 ;;
            --) shift; break ;;
            -*) bad_usage "unknown option $1" ;;
            *) break ;;
        esac
        shift
    done
    command=("$@")
    [ $check = yes ] || [ $# -gt 0 ] || bad_usage "no command"
}

set_option()
{
    local dir
    case $1 in
        --memlock | --smp | --timeout)
            case $2 in '' | *[!0-9]*) bad_usage "$1 needs a number, not \"$2\"" ;; esac ;;
    esac
    case $1 in
        --net) net=$2 ;;
        --write)
            dir=$(realpath -e -- "$2" 2>/dev/null) && [ -d "$dir" ] || bad_usage "--write $2: no such folder"
            writes+=("$dir") ;;
        --memlock) memlock=$2 ;;
        --user)
            id -u "$2" >/dev/null 2>&1 || bad_usage "--user $2: no such user"
            user=$2 ;;
        --smp) smp=$2 ;;
        --mem) mem=$2 ;;
        --timeout) limit=$2 ;;
    esac
}

# has PROGRAM-OR-FILE PACKAGE: adds the package to $missing if the program or file is missing.
has() { [ -e "$1" ] || command -v "$1" >/dev/null 2>&1 || missing="$missing $2"; }

# download PACKAGE FOLDER: downloads the .deb by apt-get into the folder; it gets its name when complete.
download()
{
    local into output
    command -v apt-get >/dev/null 2>&1 || cannot "no apt-get to download Debian's $1; copy its .deb into $2"
    into=$(mktemp -d "$2/.fetch.XXXXXX") || cannot "cannot write to $2"
    if ! output=$(cd "$into" && apt-get download "$1" 2>&1); then
        rm -rf "$into"
        cannot "cannot download Debian's package $1: $(printf '%s\n' "$output" | grep '^E:' | head -n 1) (no package lists? apt-get update)"
    fi
    mv -- "$into"/*.deb "$2"/
    rm -rf "$into"
}

# lab_job: prints the script for the guest's bash: set-up, then the command in this folder with this environment. RDMA_LAB is the lab's
# folder.
lab_job()
{
    local name prefix=()
    printf 'export RDMA_LAB=%q\nlab=$RDMA_LAB\n. "$lab/lib/guest.sh"\nlab_begin %s\n' "$lab" "$(date +%s)"
    [ ${#writes[@]} = 0 ] || printf 'lab_write_through %q\n' "${writes[@]}"
    printf 'lab_net %q\n' "$net"
    for name in $(compgen -e); do
        case $name in PWD | OLDPWD | SHLVL | _) ;; *) printf 'export %s=%q\n' "$name" "${!name}" ;; esac
    done
    printf 'cd %q || exit 125\nulimit -l %s\n' "$PWD" "$memlock"
    # The limit binds root only without the capability IPC_LOCK.
    [ -z "$user" ] || prefix+=(setpriv --reuid "$user" --regid "$(id -g "$user")" --init-groups)
    [ -n "$user" ] || [ "$memlock" = unlimited ] || prefix+=(setpriv --bounding-set -ipc_lock)
    printf 'exec'
    printf ' %q' "${prefix[@]}" "${command[@]}"
    printf '\n'
}
