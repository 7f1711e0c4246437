# SPDX-License-Identifier: BSD-3-Clause
# bash completion for mpirun, mpiexec, weft-info and weft-bench. Source it, or install it in
# /usr/share/bash-completion/completions under those names.
_weft_mpirun()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} i word skip=0 start=1
    local options="-n -np -c -x -env -genv -envlist -genvlist -envnone -genvnone -genvall -wdir -wd -l --tag-output -prepend-rank
        --output-filename --stdin --timeout --bind-to --map-by --report-bindings --oversubscribe --allow-run-as-root --pmix -host -hostfile
        -rankfile --launch-agent -ppn
        --enable-recovery --verbose --help --version"

    # words after the program's name are its arguments; after ':' they are mpirun's again
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $word == : ]]; then
            start=1 skip=0
        elif ((skip)); then
            ((skip--))
        elif ((start)); then
            case $word in
            -env | -genv | --env | --genv) skip=2 ;;
            -n | -np | -c | --np | -x | -envlist | -genvlist | -wdir | -wd | --wdir | --output-filename | --stdin | --timeout | \
                --bind-to | --map-by | --pmix | -host | --host | -H | -hosts | -ppn | -N | --npernode | -hostfile | --hostfile | \
                -machinefile |                 -f | -rankfile | --rankfile | -rf | --launch-agent) skip=1 ;;
            -*) ;;
            *) start=0 ;;
            esac
        fi
    done
    if ((!start)); then
        COMPREPLY=($(compgen -f -- "$cur") ":")
        compopt -o filenames 2>/dev/null
        return
    fi
    case $prev in
    --bind-to) COMPREPLY=($(compgen -W "none hwthread core numa socket auto" -- "$cur")) ;;
    --map-by) COMPREPLY=($(compgen -W "slot node hwthread core numa socket" -- "$cur")) ;;
    --pmix) COMPREPLY=($(compgen -W "auto always never" -- "$cur")) ;;
    --stdin) COMPREPLY=($(compgen -W "all none 0 1" -- "$cur")) ;;
    -n | -np | -c | --np) COMPREPLY=($(compgen -W "1 2 4 8 16 $(nproc 2>/dev/null)" -- "$cur")) ;;
    -wdir | -wd | --wdir) COMPREPLY=($(compgen -d -- "$cur")) && compopt -o filenames 2>/dev/null ;;
    --output-filename | -hostfile | --hostfile | -machinefile | -f | -rankfile | --rankfile | -rf)
        COMPREPLY=($(compgen -f -- "$cur")) && compopt -o filenames 2>/dev/null
        ;;
    -x | -env | -genv) COMPREPLY=($(compgen -e -- "$cur")) ;;
    *)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W "$options" -- "$cur"))
        else
            COMPREPLY=($(compgen -c -f -- "$cur"))
            compopt -o filenames 2>/dev/null
        fi
        ;;
    esac
}
complete -F _weft_mpirun mpirun mpiexec

# weft-info and weft-bench: the options of their --help. weft-bench: the tests of its --list.
_weft_by_help()
{
    local cur=${COMP_WORDS[COMP_CWORD]}

    if [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "$("$1" --help 2>/dev/null | grep -oE -- '(^|[ ,])--?[a-z][a-z-]*' | tr -d ' ,')" -- "$cur"))
    elif [[ ${1##*/} == weft-bench ]]; then
        COMPREPLY=($(compgen -W "all $("$1" --list 2>/dev/null | cut -d ' ' -f 1)" -- "$cur"))
    else
        COMPREPLY=($(compgen -f -- "$cur"))
    fi
}
complete -F _weft_by_help weft-info weft-bench
