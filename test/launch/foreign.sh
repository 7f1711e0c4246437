#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Under launchers of others: Open MPI's PMIx server serves us; MPICH's PMI-1 is refused with a text.
. "$(dirname "$0")/lib.sh"
need_probe
if command -v mpiexec.mpich >/dev/null; then
    expect 3 "PMI-1" mpiexec.mpich -n 2 "$probe"
fi
command -v mpirun.openmpi >/dev/null || { [ $failed = 0 ] && exit 77; finish; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for n in 1 2 4; do
    expect 0 "^pmix: rank $((n - 1)) of $n, local $((n - 1)) of $n.*segment yes" mpirun.openmpi --oversubscribe -n $n "$probe"
done
expect 42 "the probe was told to" mpirun.openmpi --oversubscribe -n 2 "$probe" abort
expect 3 "still waits for rank 1 after 1 s" mpirun.openmpi --oversubscribe -x WEFT_START_TIMEOUT_S=1 -n 2 "$probe" late
same "" "$(find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'weft-[0-9]*-*' -newer "$tmp" 2>/dev/null)" "no socket is left"
finish
