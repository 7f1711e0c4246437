/* SPDX-License-Identifier: BSD-3-Clause
 *
 * session_type: sessions (MPI 5.0 11.3); session.c has the calls. An MPI_Session points to a weft_session. A session uses the process's
 * instance (init.h), as the World Model does; any thread.
 */
#ifndef WEFT_MPI_SESSION_TYPE_H
#define WEFT_MPI_SESSION_TYPE_H

#include "mpi/traits.h"

#define WEFT_SESSION_MAGIC WEFT_OBJECT_MAGIC('S', 'E', 'S', 'S')

typedef struct MPI_ABI_Session weft_session;
struct MPI_ABI_Session {
    weft_traits traits; /* refs: the user's handle */
    int thread_level;   /* MPI_THREAD_*, as provided */
    struct weft_bsend_buffer *bsend_buffer; /* attached for buffered sends (bsend.c), owned; NULL: none. Guarded by worker 0's lock */
    uint8_t kinds;      /* memory kinds that the program asked for (memory_kinds.h); 0: none */
};

extern weft_object_pool weft_session_pool;

/* Process sets (MPI 5.0 11.3.2). */
enum weft_pset { WEFT_PSET_WORLD, WEFT_PSET_SELF };
/* One of weft_pset, by its name without regard to case, as URIs' schemes are compared; -1: there is no such set. */
int weft_session_pset(const char *name);

/* Handle to session. NULL: MPI_SESSION_NULL, another constant, or a finalized session. */
static inline weft_session *weft_session_of(const void *handle)
{
    if (weft_object_is_constant(handle) || ((weft_session *)handle)->traits.object.magic != WEFT_SESSION_MAGIC)
        return NULL;
    return (weft_session *)handle;
}

#endif
