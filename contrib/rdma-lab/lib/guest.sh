# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# guest: runs inside the lab's guests: set-up, networks with their devices, link failures. Sourced by the guest's job, and by tests for
# lab_cut, lab_mend, lab_hurt, lab_heal and lab_flap. Device rxeN (siwN) is on interface vN with address 10.77.0.N (N = 1, 2) or 10.77.1.N
# (N = 3, 4). Invariant: packets between partners cross the veth although both ends are in one network namespace (rxe supports no
# other), so that a cut link has an effect.

lab_begin() # SECONDS: sets the clock, which in a restored guest shows the time of the snapshot
{
    date -s "@$1" >/dev/null
    ip link set lo up
    chmod 666 /dev/infiniband/* 2>/dev/null
    return 0
}

lab_partner() { echo $((($1 - 1 ^ 1) + 1)); }
lab_address() { echo "10.77.$((($1 - 1) / 2)).$1"; }

# lab_pair KIND N: makes a veth between vN and v(N+1) with a device of that kind (rxe, siw) on each end.
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
        # Packets sent through this interface (rxe) or from its address (siw's TCP) use a table in which the partner's address is not
        # local. Received packets (not "iif lo") do not, or they would be sent back.
        ip rule add pref 10 oif "v$i" lookup "$((100 + i))"
        ip rule add pref 10 iif lo from "$(lab_address "$i")" lookup "$((100 + i))"
        # Used while the link is down; otherwise the local table would deliver the packets.
        ip route add blackhole "$(lab_address "$(lab_partner "$i")")" metric 9999 table $((100 + i))
        ip link set "v$i" up
    done
    for i in "$1" $(($1 + 1)); do
        lab_wire "$i"
        rdma link add "$kind$i" type "$kind" netdev "v$i"
    done
}

# lab_wire N: sets the route from vN to its partner and the partner's hardware address; the kernel drops both when a link goes down.
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

# -- link failures --

lab_cut() { ip link set "v$1" down; } # N: sets the link of vN down; the ports of both ends go down

lab_mend() # N
{
    ip link set "v$1" up
    ip link set "v$(lab_partner "$1")" up
    lab_wire "$1"
    lab_wire "$(lab_partner "$1")"
}

# lab_down: prints the devices with a port that is not active. A port follows its link with some delay.
lab_down()
{
    local file state
    for file in /sys/class/infiniband/*/ports/*/state; do
        { read -r state <"$file"; } 2>/dev/null || continue
        case $state in *ACTIVE*) ;; *) file=${file#/sys/class/infiniband/}; echo "${file%%/*} ($state)" ;; esac
    done
}

# lab_hurt N WHAT...: applies netem to packets sent by vN: loss 1%, delay 5ms, reorder 20% delay 2ms, duplicate, corrupt ...
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

# lab_counter N NAME: prints a counter of device rxeN (sent_pkts, rcvd_pkts, retry_exceeded_err, ...).
lab_counter() { cat "/sys/class/infiniband/rxe$1/ports/1/hw_counters/$2"; }
