#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Which CPUs ranks get: even shares of the allowed ones, none when ranks outnumber them.
. "$(dirname "$0")/lib.sh"
cpus=$(nproc)
masks() { "$mpirun" "$@" sh -c 'grep Cpus_allowed_list /proc/self/status' | sort | uniq -c | awk '{print $1}' | tr '\n' ' '; }
same "$((cpus + 1)) " "$(masks -n $((cpus + 1)))" "more ranks than CPUs: all the same"
expect 0 "rank 0 on host .* is not bound" "$mpirun" --report-bindings -n $((cpus + 1)) true
same "1 " "$(masks -n 1)" "one rank"
expect 0 "rank 0 on host .* is not bound" "$mpirun" --report-bindings --bind-to none -n 2 true
one=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
same "$one" "$(taskset -c "$one" "$mpirun" -n 2 sh -c 'grep Cpus_allowed_list /proc/self/status' | awk '{print $2}' | sort -u)" \
    "only CPUs that are allowed here"
expect 0 "rank 1 on host .* is bound to CPUs $one" taskset -c "$one" "$mpirun" --bind-to core --report-bindings -n 2 true
[ "$cpus" -ge 2 ] || finish
same "$(yes 1 | head -n 2 | tr '\n' ' ')" "$(masks -n 2)" "two ranks: two different shares"
got=$("$mpirun" -n 2 nproc | paste -sd+ | bc 2>/dev/null || "$mpirun" -n 2 nproc | awk '{s+=$1} END {print s}')
same yes "$([ "$got" -le "$cpus" ] && echo yes || echo "$got of $cpus")" "the shares do not overlap"
for unit in core hwthread socket numa; do
    expect 0 "rank 1 on host .* is bound to CPUs" "$mpirun" --bind-to $unit --report-bindings -n 2 true
    expect 0 "rank 1 on host .* is bound to CPUs" "$mpirun" --map-by $unit --report-bindings -n 2 true
done
finish
