#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The PMIx server in mpirun: there for those who may need it, with Open MPI's programs as a client of other hands.
. "$(dirname "$0")/lib.sh"
expect 0 "PMIX_RANK=1" "$mpirun" -n 2 env
grep -q PMIX_SERVER_URI "$tmp/out" || { echo "skip: no libpmix"; exit 77; }
expect 0 "WEFT_BOOT_RANK=1" "$mpirun" --pmix never -n 2 env
same 0 "$(grep -c PMIX_ "$tmp/out")" "--pmix never"
dir=$("$mpirun" -n 1 sh -c 'echo $PMIX_SERVER_TMPDIR')
same "gone" "$([ -e "$dir" ] && echo "$dir" || echo gone)" "the session directory is removed"
if command -v mpicc.openmpi >/dev/null; then
    cat >"$tmp/hello.c" <<'EOF'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, size, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d: sum %d\n", rank, size, sum);
    if (argc > 1 && rank == 1)
        MPI_Abort(MPI_COMM_WORLD, 9);
    if (argc > 1)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
EOF
    # Open MPI 4 takes a PMIx launcher that it does not know for none, unless this is set
    mpicc.openmpi "$tmp/hello.c" -o "$tmp/hello" && export JSM_JSRUN_PORT=1
    expect 0 "rank 3 of 4: sum 6" "$mpirun" -n 4 "$tmp/hello"
    expect 9 "rank 1 on host" "$mpirun" -n 2 "$tmp/hello" abort
fi
if command -v pkg-config >/dev/null && pkg-config --exists pmix; then
    cat >"$tmp/client.c" <<'EOF'
#include <pmix.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
    pmix_proc_t me, job, next;
    pmix_value_t *size, *found, mine = {.type = PMIX_UINT32};
    pmix_info_t all = {.key = PMIX_COLLECT_DATA, .value = {.type = PMIX_BOOL, .data.flag = true}};
    if (PMIx_Init(&me, NULL, 0))
        return 1;
    job = next = me;
    job.rank = PMIX_RANK_WILDCARD;
    mine.data.uint32 = me.rank * 7;
    if (PMIx_Get(&job, PMIX_JOB_SIZE, NULL, 0, &size) || PMIx_Put(PMIX_GLOBAL, "k", &mine) || PMIx_Commit() || PMIx_Fence(NULL, 0, &all, 1))
        return 2;
    next.rank = (me.rank + 1) % size->data.uint32;
    if (PMIx_Get(&next, "k", NULL, 0, &found) || found->data.uint32 != next.rank * 7)
        return 3;
    printf("rank %u of %u found its neighbour\n", me.rank, size->data.uint32);
    return PMIx_Finalize(NULL, 0) ? 4 : 0;
}
EOF
    cc "$tmp/client.c" -o "$tmp/client" $(pkg-config --cflags --libs pmix) || exit 1
    expect 0 "rank 4 of 5 found its neighbour" "$mpirun" -n 5 "$tmp/client"
    expect 0 "rank 31 of 32 found its neighbour" "$mpirun" -n 32 "$tmp/client"
fi
finish
