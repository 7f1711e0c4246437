/* SPDX-License-Identifier: BSD-3-Clause
 *
 * boot: rank, size, nodes and modex of this process, from one of four sources: the segment descriptor inherited from Weft's mpirun, a
 * PMIx server, a PMI-1 or PMI-2 server, or none (singleton). The simulator adds a fifth by weft_boot_hook. Layer 3.
 * Called by core/world only; src/mpi and tools print fatal texts by weft_boot_abort_text().
 */
#ifndef WEFT_LAUNCH_BOOT_H
#define WEFT_LAUNCH_BOOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mem/segment.h"

struct weft_world;
typedef struct weft_boot weft_boot;

typedef struct weft_boot_ops {
    const char *name; /* "mpirun", "pmix", "pmi", "singleton", "sim" */
    /* Modex: key-value exchange across nodes. put must precede commit. All ranks must commit equally often, even without a put: under PMI
     * commit is a fence. get copies the value; it may block for the owner, up to WEFT_START_TIMEOUT_S. */
    int (*put)(weft_boot *boot, const char *key, const void *value, size_t bytes);
    int (*commit)(weft_boot *boot);
    /* WEFT_E_UNSUPPORTED: the owner has committed without this key. *bytes: capacity of value, then its size. */
    int (*get)(weft_boot *boot, uint32_t rank, const char *key, void *value, size_t *bytes);
    /* Barrier of all ranks of the job; blocks. Only used where the standard requires it. */
    int (*fence)(weft_boot *boot);
    /* Ends the whole job with this exit code. `text` is printed once, even if several ranks fail together. */
    void (*abort)(weft_boot *boot, int code, const char *text) __attribute__((noreturn));
    /* What the launcher knows of a rank: an enum weft_rank_state, WEFT_RANK_NONE: nothing, -1: it was not told yet. Does not block.
     * `anew` forgets what was told before and asks. NULL: nothing is known. */
    int (*stage)(weft_boot *boot, uint32_t rank, bool anew);
    /* This rank goes to rest (WEFT_RANK_REST), or returns (WEFT_RANK_INIT): what `stage` of others tells. NULL where `stage` is. */
    void (*set_stage)(weft_boot *boot, uint32_t state);
    /* Reports to the launcher that this rank is finalized, before finalize: from now on only abort and finalize are called. Then the
     * launcher minds no _exit and no exec. NULL: nothing is reported. */
    void (*part)(weft_boot *boot);
    /* Reports to the launcher that this rank is finalized, unless part has; frees the boot. */
    void (*finalize)(weft_boot *boot);
} weft_boot_ops;

struct weft_boot {
    const weft_boot_ops *ops;
    char job_name[256];      /* namespace */
    uint64_t job;            /* hash of job_name, never 0 */
    uint32_t rank, size;     /* in the job */
    uint32_t app, universe;  /* app: MPI_APPNUM; universe: MPI_UNIVERSE_SIZE, 0: unknown */
    uint32_t node, nodes;    /* index of this rank's node, by the launcher; number of nodes */
    uint32_t local_rank, local_size;
    const uint32_t *node_of;  /* [size]: node index of each rank; NULL: all on this node */
    const uint32_t *local_of; /* [size]: node-local rank of each rank; NULL: equal to the rank */
    char host[256];
    bool has_failed;         /* MPI_Init failed: finalize must not report success to the launcher */
    bool has_segment;        /* false: no shared memory (segment is closed); only self and networks are usable */
    weft_segment segment;
    bool oversubscribed;            /* more ranks on this node than CPUs they may use */
    /* Set by the simulator: the only transport (NULL: shm and networks are selected), and how ranks sleep (sleep_ops, NULL: as
     * processes do). */
    const struct weft_iface_ops *fabric_ops;
    void *fabric;            /* segment of fabric_ops; NULL: a network, whose addresses go through put and get */
    uint64_t (*now_ns)(void); /* clock for timers of ifaces; NULL: the machine's */
    const struct weft_sleep_ops *sleep_ops;
};

/* If not NULL, weft_boot_start() calls it first: it returns the boot of the calling rank, or NULL for none. For many worlds in one
 * process (test/transports/sim), which sets it before the first rank and clears it after the last. */
extern weft_boot *(*weft_boot_hook)(void);
/* What src/mpi/init keeps for a process, or simulated rank, whether it has a world or not. */
typedef struct weft_boot_state {
    _Atomic int stage;             /* between MPI_Init and MPI_Finalize: enum weft_stage of src/mpi/stage.h */
    struct weft_world *resting;    /* left open for later sessions; NULL: none */
    bool was_closed;               /* its world was closed: it cannot join the job again */
    int exit_owner;                /* process id that has called at_exit; 0: none */
    int (*at_exit)(void (*call)(void)); /* `call` is called when the process, or the simulated rank's program, ends; as atexit() */
} weft_boot_state;
/* The process's own, or that of the running simulated rank: the simulator switches it together with weft_world_now. Never NULL. */
extern weft_boot_state *weft_boot_now;

/* Creates the boot; may block up to WEFT_START_TIMEOUT_S. On failure weft_fail_text() has the text for the user: one task of several
 * without a server is an error, never a silent singleton. Free with (*boot)->ops->finalize. */
int weft_boot_start(weft_boot **boot);

/* Prints a fatal text of at most five lines, once per job. For a process without a boot (MPI_Init failed or was not called, or MPI is
 * finalized); others call ops->abort. The caller must exit after it. Any thread; may block some seconds. */
void weft_boot_abort_text(const char *text);

#endif
