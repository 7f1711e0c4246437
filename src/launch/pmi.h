/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmi: client of PMI-1 (MPICH's hydra and others) and PMI-2 (Slurm's srun --mpi=pmi2): rank and size, key-value store, fence, abort,
 * finalize. Values become visible to all ranks by a fence. The server is given by the environment: a descriptor (PMI_FD, PMI_RANK,
 * PMI_SIZE) or an address (PMI_PORT, PMI_ID). Called by boot_pmi. All calls but weft_pmi_env_read() block, up to WEFT_START_TIMEOUT_S.
 */
#ifndef WEFT_LAUNCH_PMI_H
#define WEFT_LAUNCH_PMI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launch/pmi_wire.h"

typedef struct weft_pmi {
    weft_pmi_wire wire;
    uint32_t rank, size, app, universe; /* app: MPI_APPNUM; universe: 0: unknown */
    char name[256];            /* of the job; in PMI-1 of its key-value space */
    size_t key_max, value_max; /* longest key and value, characters */
} weft_pmi;

enum weft_pmi_env {
    WEFT_PMI_ENV_NONE,  /* no server in the environment */
    WEFT_PMI_ENV_NAMED, /* the environment names a server */
    WEFT_PMI_ENV_OPEN,  /* and PMI_FD is an open connection */
};

/* What the environment offers. Does not connect. */
enum weft_pmi_env weft_pmi_env_read(void);
/* Connects, negotiates the version and fills the members of weft_pmi. Free with weft_pmi_close(), also after an error. */
int weft_pmi_open(weft_pmi *pmi);
/* Puts a value; visible after the next fence. Printable text without blanks and ';'. */
int weft_pmi_put(weft_pmi *pmi, const char *key, const char *value);
/* Gets a value put before the last fence. capacity: of value. WEFT_E_UNSUPPORTED: no such key. */
int weft_pmi_get(weft_pmi *pmi, const char *key, char *value, size_t capacity);
/* Gets an attribute of the job from the launcher (PMI_process_mapping). WEFT_E_UNSUPPORTED: not provided. */
int weft_pmi_job_get(weft_pmi *pmi, const char *key, char *value, size_t capacity);
/* Barrier of all ranks of the job; makes their puts visible. */
int weft_pmi_fence(weft_pmi *pmi);
/* Requests the launcher to end the job, which may kill this process meanwhile. Does not wait for a reply. Any thread. */
void weft_pmi_abort(weft_pmi *pmi, int code, const char *text);
/* Closes and frees. is_orderly: sends finalize first; else the launcher sees a broken connection, a failure of this rank. */
void weft_pmi_close(weft_pmi *pmi, bool is_orderly);

#endif
