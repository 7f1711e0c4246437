# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# lib: the commands used in test/verbs/list; inside runs each of its commands in a shell that sourced this and the lab's
# lib/guest.sh. $stage is the folder with the installed Weft and the compiled programs, $devices the ranks' devices in turn, $transports
# their transports. A function's exit code is the test's: 0, 77 (skipped, the last line has the reason), else failed.

PATH=$stage/weft/bin:$PATH
export PINGPONG_MARKS=$PWD/marks
if [ "${slow:-1}" -gt 1 ]; then # nor are ranks' own deadlines for a machine as slow as this
    export WEFT_START_TIMEOUT_S=$((60 * slow)) WEFT_PEER_TIMEOUT_S=$((20 * slow))
fi

# over RANKS PROGRAM ARGUMENT...: a job over verbs. Settings go before it: WEFT_RNDV_SCHEME=copy over 2 p2p_sizes
over()
{
    local ranks=$1 program=$2
    shift 2
    [ ! -x "$stage/programs/$program" ] || program=$stage/programs/$program
    WEFT_TRANSPORTS=$transports WEFT_DEVICES=$devices mpirun -n "$ranks" "$program" "$@"
}

# seeds FIRST LAST RANKS PROGRAM ARGUMENT...: over, once with each --seed
seeds()
{
    local seed=$1 last=$2
    shift 2
    for ((; seed <= last; seed++)); do
        over "$@" --seed "$seed" || return
    done
}

# built FOLDER/PROGRAM ARGUMENT...: a program of the build directory's test/FOLDER that opens ports itself
built()
{
    local program=$stage/programs/${1##*/}
    shift
    WEFT_DEVICES=$devices "$program" "$@"
}

# take COMMAND...: runs it; afterwards $code is its exit code and `said PATTERN` searches its output.
take()
{
    code=0
    "$@" >said 2>&1 || code=$?
    tail -n 30 said
}

said() { grep -Eqi -e "$1" said || { echo "lib: nobody said: $1"; return 1; }; }

# within SECONDS COMMAND...: as take, with a deadline, which is longer on a slow machine.
within()
{
    local most=$(($1 * ${slow:-1})) begin=$SECONDS
    shift
    take "$@"
    [ $((SECONDS - begin)) -le "$most" ] || { echo "lib: took $((SECONDS - begin)) s, not $most"; return 1; }
}

# few_locked KIB COMMAND...: without the right to exceed the limit on locked memory
few_locked()
{
    local kib=$1
    shift
    setpriv --bounding-set -ipc_lock bash -c "ulimit -l $kib; $(declare -f over built); \"\$@\"" few_locked "$@"
}

# as_nobody COMMAND...: an ordinary user's job
as_nobody()
{
    chmod 777 . && setpriv --reuid nobody --regid nogroup --clear-groups bash -c "$(declare -f over); \"\$@\"" as_nobody "$@"
}

# -- failures: each breaks a link that the job uses --

# under_way RANKS: until pingpong's ranks exchange messages. A link that is cut during the start
# is another test: the job finds a port that is down.
under_way()
{
    local i
    for ((i = 0; i < 600 * ${slow:-1}; i++)); do
        [ "$(grep -c . "$PINGPONG_MARKS" 2>/dev/null)" != "$1" ] || return 0
        sleep 0.1
    done
    echo "lib: pingpong is not under way after $((60 * ${slow:-1})) s"
    return 1
}

survives() # WHAT-OF-NETEM...: payloads arrive whole however badly packets do
{
    local i
    for i in 1 2; do
        lab_hurt $i "$@" || { echo "this kernel or iproute2 has no netem"; return 77; }
    done
    over 2 pingpong 6 300000
    code=$?
    tc -s qdisc show dev v1 | sed -n 2p
    return $code
}

flap() # TIMES DOWN UP: the link goes down and up while messages are under way
{
    local job
    over 2 pingpong $(($1 * ($2 + $3) + 4)) 300000 &
    job=$!
    under_way 2 || return 1
    lab_flap 1 "$1" "$2" "$3"
    wait $job
}

cut_forever() # the peer cannot be reached any more: the job ends, in time, and says whom it lost
{
    { under_way 2 && lab_cut 1; } &
    WEFT_PEER_TIMEOUT_S=4 within 120 over 2 pingpong 300 300000 || return 1
    [ "$code" != 0 ] || { echo "the job passed, though its only wire was cut"; return 1; }
    said 'rank [01]' && [ "$(grep -c . said)" -lt 30 ]
}

kill_a_rank() # the survivor and the launcher end, and the dead rank is named
{
    { under_way 2 && kill -KILL "$(pgrep -n -x pingpong)"; } &
    within 120 over 2 pingpong 300 300000 || return 1
    [ "$code" != 0 ] && said 'rank [01]' && said 'kill|signal 9|SIGKILL'
}

lose_a_rail() # with two rails, one that goes costs speed only
{
    local job
    over 2 pingpong 10 &
    job=$!
    under_way 2 || return 1
    lab_cut "$1"
    sleep 4
    lab_mend "$1"
    wait $job
}

rail_down_at_start() # a port that is down is not used; the other one is
{
    lab_cut "$1"
    over 2 pingpong 2
}

no_such_device() # names the knob and what there is
{
    devices=mlx9_7
    take over 2 pingpong 1
    [ "$code" != 0 ] && said WEFT_DEVICES && said rxe1
}

falls_back() # RANKS PROGRAM: to libfabric, though an active port is there: said once, with the reason
{
    take env WEFT_SPLIT_NODE=2 WEFT_DEVICES=mlx9_7 mpirun -n "$1" "$stage/programs/$2"
    [ "$code" = 0 ] && said 'verbs is not used although it has an active port, ofi carries the job instead: .*mlx9_7' || return 1
    [ "$(grep -c 'verbs is not used' said)" = 1 ] || { echo "lib: that is not said once"; return 1; }
}

tells_devices() # weft-info sees them
{
    take weft-info
    sed -i '/WEFT_/d' said # the knobs' rows
    said "${devices%;*}" && said "${devices#*;}"
}

first_contact() # PROGRAM...: what an owner of an adapter runs; the programs that it uses
{
    take "$here/../../contrib/first-contact" --prefix "$stage/weft" --programs "$stage/programs" --output "$PWD/contact.tar.gz" --minutes 8
    [ "$code" = 0 ] && [ "$(tar -tzf contact.tar.gz | grep -c 'log$')" -gt 15 ]
}
