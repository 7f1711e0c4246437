/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmi: a client of PMI-1 (MPICH's hydra and many others) and PMI-2 (Slurm's srun --mpi=pmi2): who am I, keys and values that are
 * there for all ranks after a fence, abort, finalize. The server is found by what the launcher leaves in the environment: a
 * descriptor (PMI_FD, PMI_RANK, PMI_SIZE) or an address (PMI_PORT, PMI_ID). boot_pmi makes a boot of it.
 */
#ifndef WEFT_LAUNCH_PMI_H
#define WEFT_LAUNCH_PMI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launch/pmi_wire.h"

typedef struct weft_pmi {
    weft_pmi_wire line;
    uint32_t rank, size, app, universe; /* universe: 0 when it is not told */
    char name[256];     /* of the job: in PMI-1 that of its key-value space */
    size_t key_max, value_max; /* characters */
} weft_pmi;

enum weft_pmi_offer {
    WEFT_PMI_NONE,   /* no sign of a server */
    WEFT_PMI_NAMED,  /* the environment speaks of one */
    WEFT_PMI_OPEN,   /* and its descriptor is an open connection */
};

enum weft_pmi_offer weft_pmi_offered(void);
/* Connects, greets, learns the first four lines above. Free with weft_pmi_close also after an error. */
int weft_pmi_open(weft_pmi *pmi);
/* Text only: letters, digits, and what is neither blank nor ';'. */
int weft_pmi_put(weft_pmi *pmi, const char *key, const char *value);
/* What was put before the last fence. WEFT_E_UNSUPPORTED: there is no such key. */
int weft_pmi_get(weft_pmi *pmi, const char *key, char *value, size_t room);
/* What the launcher knows of the job (PMI_process_mapping). WEFT_E_UNSUPPORTED: it does not tell. */
int weft_pmi_job_get(weft_pmi *pmi, const char *key, char *value, size_t room);
/* All ranks of the job. */
int weft_pmi_fence(weft_pmi *pmi);
/* Asks the launcher to end the job; it may end us meanwhile. Any thread. */
void weft_pmi_abort(weft_pmi *pmi, int code, const char *text);
/* `in_peace`: tells the launcher that this rank is finalized; else the connection breaks, which it takes for a failure. */
void weft_pmi_close(weft_pmi *pmi, bool in_peace);

#endif
