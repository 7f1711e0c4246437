/* SPDX-License-Identifier: BSD-3-Clause
 *
 * task_env: detects by launchers' environment variables that this process is one of several tasks. Variables of an allocation
 * (SLURM_NTASKS in a batch script) are not used: ./a.out in a batch script is a job of one.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/macros.h"
#include "launch/boot_internal.h"

typedef struct task_sign {
    const char *size;     /* variable with the number of tasks of the step */
    const char *rank;     /* variable with this task's rank; must be set too */
    const char *launcher; /* launcher's name, for error texts */
    const char *instead;  /* how this launcher starts MPI programs; NULL: unknown */
} task_sign;

static const task_sign signs[] = {
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "Slurm's srun", "srun --mpi=pmix or srun --mpi=pmi2"},
    {"PMI_SIZE", "PMI_RANK", "a PMI launcher such as MPICH's mpiexec", NULL},
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "Open MPI's mpirun", NULL},
    {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "MVAPICH's mpirun", NULL},
    {"FLUX_JOB_SIZE", "FLUX_TASK_RANK", "Flux", NULL},
    {"JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK", "jsrun", NULL},
    {"ALPS_APP_SIZE", "ALPS_APP_PE", "ALPS' aprun", NULL},
    {"PALS_SIZE", "PALS_RANKID", "PALS", NULL},
};

bool weft_task_env_find(char *text, size_t capacity, const char **instead)
{
    for (size_t i = 0; i < weft_count(signs); i++) {
        const char *size = getenv(signs[i].size), *rank = getenv(signs[i].rank);
        if (!size || !rank || atol(size) <= 1)
            continue;
        snprintf(text, capacity, "%s set %s=%s and %s=%s", signs[i].launcher, signs[i].size, size, signs[i].rank, rank);
        *instead = signs[i].instead;
        return true;
    }
    return false;
}
