#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Who am I: a rank of mpirun, through wrappers too; a rank's child; alone; and never silently alone.
. "$(dirname "$0")/lib.sh"
need_probe
expect 0 "^mpirun: rank 2 of 3, local 2 of 3.*app 0, segment yes" "$mpirun" -n 3 "$probe"
expect 0 "^mpirun: rank 2 of 3.*app 1" "$mpirun" -n 1 "$probe" : -n 2 "$probe"
expect 0 "^mpirun: rank 1 of 2" "$mpirun" -n 2 sh -c "'$probe'; true"
expect 0 "^mpirun: rank 1 of 2" "$mpirun" -n 2 python3 -c "import subprocess; subprocess.run(['$probe'], check=True)"
expect 0 "^singleton: rank 0 of 1" "$mpirun" -n 2 "$probe" child
same 2 "$(grep -c ^mpirun: "$tmp/out")" "a rank's child is alone, and its parents are not"
same 2 "$(grep -c ^singleton: "$tmp/out")" "each of them"
expect 0 "^singleton: rank 0 of 1" "$mpirun" --pmix never -n 2 "$probe" child
expect 0 "segment no" env WEFT_SEGMENT=off "$mpirun" -n 1 "$probe"
expect 3 "already is, or was, rank 0" "$mpirun" -n 1 sh -c "'$probe' && '$probe'"
expect 0 "^singleton: rank 0 of 1.*segment yes" "$probe"
expect 0 "^singleton" env SLURM_NTASKS=4 SLURM_JOB_ID=7 SLURM_PROCID=0 "$probe"
expect 0 "^singleton" env SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0 "$probe"
expect 3 "SLURM_STEP_NUM_TASKS=4" env SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=1 "$probe"
expect 3 "PMI-1" env PMI_SIZE=2 PMI_RANK=0 PMI_FD=5 "$probe"
expect 3 "OMPI_COMM_WORLD_SIZE=2" env OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 "$probe"
expect 3 "FLUX_JOB_SIZE=3" env FLUX_JOB_SIZE=3 FLUX_TASK_RANK=0 "$probe"
expect 3 "does not answer" env PMIX_NAMESPACE=x PMIX_RANK=0 "$probe"
expect 3 "not a word of this version" env WEFT_BOOT=99:nonsense "$probe"
expect 0 "^singleton" env WEFT_BOOT=1:100:0:0:1:weft-gone-1-0 "$probe"
finish
