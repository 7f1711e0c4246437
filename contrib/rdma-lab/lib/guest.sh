# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# guest: what runs inside the lab's guests: their last set-up, the networks with their devices, and how to hurt them. The guest's job
# sources it first; tests source it again for lab_cut, lab_mend, lab_hurt, lab_heal and lab_flap. Device rxeN (siwN) sits on interface vN, whose
# address is 10.77.0.N (N = 1, 2) or 10.77.1.N (N = 3, 4). The invariant: what is sent from one device to its partner crosses the
# veth, though both ends are in one name space (rxe takes no packets in others), so that a cut wire is a cut wire.

lab_begin() # SECONDS-OF-THE-CLOCK: a restored guest still believes in the hour of its snapshot
{
    date -s "@$1" >/dev/null
    ip link set lo up
    chmod 666 /dev/infiniband/* 2>/dev/null
    return 0
}

lab_partner() { echo $((($1 - 1 ^ 1) + 1)); }
lab_address() { echo "10.77.$((($1 - 1) / 2)).$1"; }

# lab_pair KIND N: a veth between vN and v(N+1) with a device of that kind (rxe, siw) on each end.
lab_pair()
{
    local i kind=$1
    shift
    ip link add "v$1" mtu 4200 type veth peer name "v$(($1 + 1))" mtu 4200
    for i in "$1" $(($1 + 1)); do
        echo 0 >"/proc/sys/net/ipv4/conf/v$i/rp_filter"
        echo 1 >"/proc/sys/net/ipv4/conf/v$i/accept_local"
        echo 1 >"/proc/sys/net/ipv6/conf/v$i/keep_addr_on_down"
        ip address add "$(lab_address "$i")/24" dev "v$i"
        # Whoever sends through this interface (rxe), or from its address (siw's TCP), is routed by a table that does not know that the
        # partner's address is ours too. What comes in (no "iif lo") is not: it would be sent back.
        ip rule add pref 10 oif "v$i" lookup "$((100 + i))"
        ip rule add pref 10 iif lo from "$(lab_address "$i")" lookup "$((100 + i))"
        # While the link is down, or the next table would find the short way.
        ip route add blackhole "$(lab_address "$(lab_partner "$i")")" metric 9999 table $((100 + i))
        ip link set "v$i" up
    done
    for i in "$1" $(($1 + 1)); do
        lab_wire "$i"
        rdma link add "$kind$i" type "$kind" netdev "v$i"
    done
}

# lab_wire N: the route from vN to its partner, and the partner's hardware address; the kernel forgets both when a link goes down.
lab_wire()
{
    local partner hardware
    partner=$(lab_partner "$1")
    read -r hardware <"/sys/class/net/v$partner/address"
    ip route replace "$(lab_address "$partner")" dev "v$1" src "$(lab_address "$1")" table $((100 + $1))
    ip neighbour replace "$(lab_address "$partner")" lladdr "$hardware" dev "v$1" nud permanent
}

lab_net() # one, two, four, siw, siw4, or lines of shell
{
    case $1 in
        one)
            ip link add v1 mtu 4200 type veth peer name w1 mtu 4200
            ip address add 10.77.0.1/24 dev v1
            ip link set w1 up
            ip link set v1 up
            rdma link add rxe1 type rxe netdev v1 ;;
        two | four | siw | siw4)
            echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
            ip rule add pref 100 lookup local # behind the rules of lab_pair
            ip rule delete pref 0
            case $1 in
                two) lab_pair rxe 1 ;;
                four) lab_pair rxe 1 && lab_pair rxe 3 ;;
                siw) lab_pair siw 1 ;;
                siw4) lab_pair siw 1 && lab_pair siw 3 ;;
            esac ;;
        *) eval "$1" ;;
    esac
    chmod 666 /dev/infiniband/* 2>/dev/null
    return 0
}

# -- to hurt, and to mend --

lab_cut() { ip link set "v$1" down; } # N: nothing passes between vN and its partner; both ports go down

lab_mend() # N
{
    ip link set "v$1" up
    ip link set "v$(lab_partner "$1")" up
    lab_wire "$1"
    lab_wire "$(lab_partner "$1")"
}

# lab_down: the devices that have a port which is not active, if any. A port follows its link with some delay, down and up.
lab_down()
{
    local file state
    for file in /sys/class/infiniband/*/ports/*/state; do
        { read -r state <"$file"; } 2>/dev/null || continue
        case $state in *ACTIVE*) ;; *) file=${file#/sys/class/infiniband/}; echo "${file%%/*} ($state)" ;; esac
    done
}

# lab_hurt N WHAT...: what vN sends suffers by netem from now on: loss 1%, delay 5ms, reorder 20% delay 2ms, duplicate, corrupt ...
lab_hurt()
{
    local i=$1
    shift
    tc qdisc replace dev "v$i" root netem limit 10000 "$@"
}

lab_heal() { tc qdisc delete dev "v$1" root 2>/dev/null; return 0; } # N

# lab_flap N TIMES SECONDS-DOWN SECONDS-UP
lab_flap()
{
    local i
    for ((i = 0; i < $2; i++)); do
        lab_cut "$1"
        sleep "$3"
        lab_mend "$1"
        sleep "$4"
    done
}

# lab_counter N NAME: what device rxeN counts (sent_pkts, rcvd_pkts, retry_exceeded_err, ...).
lab_counter() { cat "/sys/class/infiniband/rxe$1/ports/1/hw_counters/$2"; }
