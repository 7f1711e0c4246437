/* SPDX-License-Identifier: BSD-3-Clause
 *
 * boot: who am I, and who is there? One answer, four ways to it: the descriptor inherited from our mpirun, a PMIx server of
 * whatever launcher, a PMI-1 or PMI-2 server, or nobody (a singleton). sim makes a fifth. Floor 3; core/world asks, nobody else.
 */
#ifndef WEFT_LAUNCH_BOOT_H
#define WEFT_LAUNCH_BOOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mem/segment.h"

typedef struct weft_boot weft_boot;

typedef struct weft_boot_ops {
    const char *name; /* "mpirun", "pmix", "pmi", "singleton", "sim" */
    /* Key-value exchange across nodes (addresses). put before commit; all ranks of the job commit equally often, also those that have put
     * nothing: under PMI it is a fence. get may wait for the owner, up to the deadline knob; value is copied. */
    int (*put)(weft_boot *boot, const char *key, const void *value, size_t bytes);
    int (*commit)(weft_boot *boot);
    /* WEFT_E_UNSUPPORTED: the owner has committed and put no such key. */
    int (*get)(weft_boot *boot, uint32_t rank, const char *key, void *value, size_t *bytes);
    /* All ranks of the job; collective. Only where the standard needs it. */
    int (*fence)(weft_boot *boot);
    /* Ends the whole job with this exit code; does not return. `text` is shown once, however many ranks fail together. */
    void (*abort)(weft_boot *boot, int code, const char *text) __attribute__((noreturn));
    /* Tells the launcher that this rank is finalized, frees all. */
    void (*finalize)(weft_boot *boot);
} weft_boot_ops;

struct weft_boot {
    const weft_boot_ops *ops;
    char job_name[256];      /* namespace */
    uint64_t job;            /* its hash, never 0 */
    uint32_t rank, size;     /* in the job */
    uint32_t app, universe;  /* number of the MPMD part (MPI_APPNUM); MPI_UNIVERSE_SIZE or 0 */
    uint32_t node, nodes;    /* index of our node as the launcher sees it */
    uint32_t local_rank, local_size;
    const uint32_t *node_of;  /* [size]: node index of each rank; NULL when all are on ours */
    const uint32_t *local_of; /* [size]: index of each rank on its node; NULL when it is the rank itself */
    char host[256];
    bool has_failed;         /* MPI_Init did not come about: finish must not tell the launcher that all is well */
    bool has_segment;        /* false: shared memory could not be had (segment is closed); only self and networks remain */
    weft_segment segment;
    bool oversubscribed;            /* ranks of this node outnumber the CPUs that they may use together */
    /* The simulator's: the transport that reaches everybody (NULL: shm and networks as they fit), its env.segment, and how its
     * ranks rest (NULL: as processes do). */
    const struct weft_iface_ops *fabric_ops;
    void *fabric;            /* its medium; NULL: it is a network whose addresses go through put and get */
    uint64_t (*now_ns)(void); /* the clock of ports' timers; NULL: the machine's */
    const struct weft_sleep_ops *sleep_ops;
};

/* Asked first by weft_boot_start when not NULL: who runs many worlds in one process (test/transports/sim) answers here with the boot of
 * the rank that asks, or NULL for none. Defined in boot.c; set before the first and taken back after the last rank. */
extern weft_boot *(*weft_boot_hook)(void);
/* Where this process stands between MPI_Init and MPI_Finalize: src/mpi/init's, 0 at the start. Points to the process's own, or to
 * that of the simulated rank that runs: who runs many worlds switches it together with weft_world_now. Never NULL. */
extern _Atomic int *weft_boot_stage;

/* Finds out. On failure the text for the user is in weft_fail_text: a process that was started as one task of several and finds no
 * server is an error, never a silent singleton. Free with (*boot)->ops->finish. */
int weft_boot_start(weft_boot **boot);

/* Shows a fatal text, of at most five lines, once per job: for processes that end without a boot (MPI_Init failed or was not
 * called, or MPI is finalized); others call abort. The caller exits after it. Any thread. */
void weft_boot_abort_text(const char *text);

#endif
