/* SPDX-License-Identifier: BSD-3-Clause
 *
 * boot_mpirun: boot of a rank of Weft's mpirun. All data is in the inherited segment: opening needs no round trip and no fence.
 * Invariant: one process per rank: it sets the rank page's pid from 0, and makes the descriptor close-on-exec.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/knob.h"
#include "base/status.h"
#include "launch/boot_internal.h"
#include "launch/modex_cache.h"
#include "mem/wakeup_sock.h"

typedef struct mpirun_rank {
    weft_boot boot;
    weft_segment own; /* always open, also if the knob `segment` hides it from the ifaces */
    weft_modex_cache *cache; /* mapped; NULL: all ranks are on this node */
    uint64_t cache_bytes;
    uint64_t fences;  /* passed so far */
} mpirun_rank;

static weft_rank_page *mpirun_rank_page(mpirun_rank *self)
{
    return weft_segment_rank(&self->own, self->boot.local_rank);
}

static void launcher_wake(mpirun_rank *self)
{
    weft_wakeup_sock *sock = &self->cache->wakeup;

    weft_wakeup_sock_send(sock, weft_wakeup_sock_name(sock));
}

static int mpirun_rank_put(weft_boot *boot, const char *key, const void *value, size_t bytes)
{
    weft_rank_page *page = mpirun_rank_page((mpirun_rank *)boot);
    size_t key_bytes = strlen(key) + 1;
    uint16_t length = (uint16_t)bytes;

    if (atomic_load_explicit(&page->modex_ready, memory_order_relaxed))
        return weft_fail(WEFT_E_INTERN, "key %s: put after commit", key);
    if (page->modex_bytes + key_bytes + sizeof(length) + bytes > WEFT_MODEX_CAPACITY)
        return weft_fail(WEFT_E_NOSPACE, "key %s: %zu more bytes exceed the space for a rank's keys (%u bytes are used)", key, bytes,
                         page->modex_bytes);
    memcpy(page->modex + page->modex_bytes, key, key_bytes);
    memcpy(page->modex + page->modex_bytes + key_bytes, &length, sizeof(length));
    memcpy(page->modex + page->modex_bytes + key_bytes + sizeof(length), value, bytes);
    page->modex_bytes += (uint32_t)(key_bytes + sizeof(length) + bytes);
    return WEFT_OK;
}

static int mpirun_rank_commit(weft_boot *boot)
{
    weft_rank_page *page = mpirun_rank_page((mpirun_rank *)boot);

    /* seq_cst, before the load of `has_requests`: the launcher stores has_requests, then loads modex_ready */
    atomic_store(&page->modex_ready, 1);
    syscall(SYS_futex, &page->modex_ready, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    if (((mpirun_rank *)boot)->cache && atomic_load(&((mpirun_rank *)boot)->cache->has_requests))
        launcher_wake((mpirun_rank *)boot);
    return WEFT_OK;
}

/* Waits until the rank has committed: 0, or an error if it ended or is late. */
static int wait_committed(weft_rank_page *page, uint32_t rank)
{
    uint64_t deadline = weft_clock_ns() + (uint64_t)weft_knob.start_timeout_s * 1000000000u;
    struct timespec nap = {.tv_nsec = 50000000};

    while (!atomic_load_explicit(&page->modex_ready, memory_order_acquire)) {
        uint32_t state = atomic_load_explicit(&page->state, memory_order_relaxed);
        if (state == WEFT_RANK_DEAD || state == WEFT_RANK_ABORT || state == WEFT_RANK_FINAL)
            return weft_fail(WEFT_E_PEER, "rank %u has ended without publishing its address", rank);
        if (weft_clock_ns() > deadline)
            return weft_fail(WEFT_E_TIMEOUT,
                             "rank %u has not published its address after %d s (WEFT_START_TIMEOUT_S): has it called MPI_Init?",
                             rank, weft_knob.start_timeout_s);
        syscall(SYS_futex, &page->modex_ready, FUTEX_WAIT, 0, &nap, NULL, 0);
    }
    return WEFT_OK;
}

/* Asks the launcher for a rank on another node: its address, or its stage. */
static void request(mpirun_rank *self, uint32_t rank)
{
    atomic_fetch_or(&weft_modex_requested(self->cache)[rank / 64], (uint64_t)1 << rank % 64);
    launcher_wake(self);
}

/* By the launcher's map: boot->node_of may be that of WEFT_SPLIT_NODE. */
static bool is_here(const mpirun_rank *self, uint32_t rank)
{
    return !self->cache || ((const uint32_t *)weft_modex_cache_at(self->cache, self->cache->node_of))[rank] == self->cache->node;
}

/* The page of a rank of this node. */
static weft_rank_page *page_of(mpirun_rank *self, uint32_t rank)
{
    return weft_segment_rank(&self->own, self->cache ? self->boot.local_of[rank] : rank);
}

/* Waits until the launcher has fetched the modex data of a rank on another node; requested once for all ranks of this node. */
static int wait_fetched(mpirun_rank *self, uint32_t rank)
{
    _Atomic uint32_t *state = weft_modex_state(self->cache, rank);
    uint64_t deadline = weft_clock_ns() + (uint64_t)weft_knob.start_timeout_s * 1000000000u;
    struct timespec nap = {.tv_nsec = 50000000};
    uint32_t seen = atomic_load_explicit(state, memory_order_acquire);

    if (seen == WEFT_MODEX_NONE && atomic_compare_exchange_strong(state, &seen, WEFT_MODEX_REQUESTED))
        request(self, rank);
    while ((seen = atomic_load_explicit(state, memory_order_acquire)) != WEFT_MODEX_READY) {
        if (seen == WEFT_MODEX_FAILED)
            return weft_fail(WEFT_E_PEER, "rank %u, on another host, has ended without publishing its address", rank);
        if (weft_clock_ns() > deadline)
            return weft_fail(WEFT_E_TIMEOUT,
                         "rank %u, on another host, has not published its address after %d s (WEFT_START_TIMEOUT_S): has it "
                             "called MPI_Init?",
                             rank, weft_knob.start_timeout_s);
        syscall(SYS_futex, state, FUTEX_WAIT, seen, &nap, NULL, 0);
    }
    return WEFT_OK;
}

static int mpirun_rank_get(weft_boot *boot, uint32_t rank, const char *key, void *value, size_t *bytes)
{
    mpirun_rank *self = (mpirun_rank *)boot;
    const char *modex;
    uint32_t modex_bytes;
    uint16_t length;
    int rc;

    if (is_here(self, rank)) {
        weft_rank_page *page = page_of(self, rank);
        rc = wait_committed(page, rank);
        modex = page->modex;
        modex_bytes = rc ? 0 : page->modex_bytes;
    } else {
        rc = wait_fetched(self, rank);
        modex = weft_modex_entry_of(self->cache, rank)->modex;
        modex_bytes = rc ? 0 : weft_modex_entry_of(self->cache, rank)->bytes;
    }
    if (rc)
        return rc;
    const char *found = weft_modex_find(modex, modex_bytes, key, &length);
    if (!found)
        return weft_fail(WEFT_E_UNSUPPORTED, "rank %u has not put the key %s", rank, key);
    if (*bytes < length)
        return weft_fail(WEFT_E_ARG, "key %s of rank %u has %u bytes, more than the caller's %zu", key, rank, length, *bytes);
    memcpy(value, found, length);
    *bytes = length;
    return WEFT_OK;
}

/* The rank with this node-local rank on this node, by the launcher's numbers. */
static uint32_t rank_at(const mpirun_rank *self, uint32_t local)
{
    const uint32_t *node_of = self->cache ? weft_modex_cache_at(self->cache, self->cache->node_of) : NULL;
    uint32_t rank = local;

    while (self->cache && (node_of[rank] != self->cache->node || self->boot.local_of[rank] != local))
        rank++;
    return rank;
}

/* Lists up to eight ranks of this node that have not called MPI_Init. True: one of them is dead. */
static bool missing_list(mpirun_rank *self, char *text, size_t capacity)
{
    bool is_dead = false;
    size_t used = 0;
    int shown = 0;

    text[0] = '\0';
    for (uint32_t r = 0; r < self->boot.local_size; r++) {
        uint32_t state = atomic_load_explicit(&weft_segment_rank(&self->own, r)->state, memory_order_relaxed);
        if (state == WEFT_RANK_INIT)
            continue;
        is_dead |= state == WEFT_RANK_DEAD || state == WEFT_RANK_ABORT;
        const char *why = state == WEFT_RANK_NONE    ? "has not called MPI_Init"
                          : state == WEFT_RANK_FINAL || state == WEFT_RANK_REST ? "has finalized"
                                                     : "is dead";
        if (++shown <= 8 && used < capacity)
            used += (size_t)snprintf(text + used, capacity - used, "%srank %u %s", shown > 1 ? ", " : "", rank_at(self, r), why);
    }
    return is_dead;
}

/* The count of arrivals only grows: fence k is complete at k * local_size arrivals. With other nodes the launcher sets cache->fenced
 * once all nodes have arrived. */
static int mpirun_rank_fence(weft_boot *boot)
{
    mpirun_rank *self = (mpirun_rank *)boot;
    _Atomic uint64_t *count = &self->own.hdr->fences[0];
    uint64_t arrivals = ++self->fences * boot->local_size, now;
    uint64_t deadline = weft_clock_ns() + (uint64_t)weft_knob.start_timeout_s * 1000000000u;
    struct timespec nap = {.tv_nsec = 50000000};
    char missing[400];
    uint64_t arrived = atomic_fetch_add_explicit(count, 1, memory_order_acq_rel) + 1;
    if (self->cache) {
        if (arrived == arrivals)
            launcher_wake(self);
        count = &self->cache->fenced;
        arrivals = self->fences;
    } else {
        syscall(SYS_futex, weft_modex_futex(count), FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    }
    while ((now = atomic_load_explicit(count, memory_order_acquire)) < arrivals) {
        syscall(SYS_futex, weft_modex_futex(count), FUTEX_WAIT, (uint32_t)now, &nap, NULL, 0);
        if (missing_list(self, missing, sizeof(missing)))
            return weft_fail(WEFT_E_PEER, "a fence of all ranks cannot complete: %s", missing);
        if (weft_clock_ns() > deadline)
            return weft_fail(WEFT_E_TIMEOUT, "a fence of all ranks is incomplete after %d s (WEFT_START_TIMEOUT_S): %s",
                             weft_knob.start_timeout_s,
                             *missing    ? missing
                             : self->cache ? "all ranks of this host have called MPI_Init; not all ranks of the job have entered the fence"
                                         : "all ranks have called MPI_Init; not all have entered the fence");
    }
    return WEFT_OK;
}

static int mpirun_rank_stage(weft_boot *boot, uint32_t rank, bool anew)
{
    mpirun_rank *self = (mpirun_rank *)boot;
    if (is_here(self, rank))
        return (int)atomic_load_explicit(&page_of(self, rank)->state, memory_order_acquire);
    if (anew) {
        atomic_store(weft_modex_stage(self->cache, rank), 0);
        request(self, rank);
    }
    return (int)atomic_load_explicit(weft_modex_stage(self->cache, rank), memory_order_acquire) - 1;
}

static void mpirun_rank_set_stage(weft_boot *boot, uint32_t state)
{
    atomic_store_explicit(&mpirun_rank_page((mpirun_rank *)boot)->state, state, memory_order_release);
}

static void __attribute__((noreturn)) mpirun_rank_abort(weft_boot *boot, int code, const char *text)
{
    mpirun_rank *self = (mpirun_rank *)boot;
    /* an exit status has 8 bits: a failure must not become 0 */
    int exit_code = code & 0xff || !code ? code & 0xff : 1;

    weft_abort_text_print(&self->own, boot->local_rank, text);
    atomic_store_explicit(&mpirun_rank_page(self)->exit_code, exit_code, memory_order_relaxed);
    atomic_store_explicit(&mpirun_rank_page(self)->state, WEFT_RANK_ABORT, memory_order_release);
    _exit(exit_code);
}

static void mpirun_rank_finalize(weft_boot *boot)
{
    mpirun_rank *self = (mpirun_rank *)boot;

    if (!boot->has_failed)
        atomic_store_explicit(&mpirun_rank_page(self)->state, WEFT_RANK_FINAL, memory_order_release);
    weft_segment_drop(self->cache, self->cache_bytes);
    weft_segment_close(&self->own);
    free(self);
}

static const weft_boot_ops mpirun_rank_ops = {
    .name = "mpirun",
    .put = mpirun_rank_put,
    .commit = mpirun_rank_commit,
    .get = mpirun_rank_get,
    .fence = mpirun_rank_fence,
    .stage = mpirun_rank_stage,
    .set_stage = mpirun_rank_set_stage,
    .abort = mpirun_rank_abort,
    .finalize = mpirun_rank_finalize,
};

/* Reads the job record. False: fd is not the segment of this job (it may have been closed and reused). */
static int job_read(int fd, const weft_boot_env *env, weft_boot_env_job *job)
{
    weft_segment_hdr hdr;
    struct stat stat;

    if (fstat(fd, &stat) || !S_ISREG(stat.st_mode) || pread(fd, &hdr, sizeof(hdr), 0) != (ssize_t)sizeof(hdr) ||
        hdr.magic != WEFT_SEGMENT_MAGIC || hdr.job != weft_boot_env_hash(env->name))
        return 0;
    return pread(fd, job, sizeof(*job), WEFT_BOOT_ENV_JOB_AT) == (ssize_t)sizeof(*job) && job->magic == WEFT_BOOT_ENV_JOB_MAGIC &&
           job->version == WEFT_BOOT_ENV_VERSION && !strcmp(job->name, env->name);
}

/* Opens the launcher's descriptor by /proc, if a wrapper (Python's subprocess, sudo) has closed the inherited one. */
static int fd_from_launcher(const weft_boot_env *env, weft_boot_env_job *job)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%ld/fd/%d", env->launcher, env->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && !job_read(fd, env, job)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Claims the rank. WEFT_AGAIN: another process has it and the descriptor was not inherited, so this one is a child of it. */
static int rank_claim(mpirun_rank *self, const weft_boot_env *env, bool is_inherited)
{
    weft_rank_page *page = weft_segment_rank(&self->own, env->local);
    uint32_t pid = 0;

    if (atomic_compare_exchange_strong(&page->pid, &pid, (uint32_t)getpid())) {
        atomic_store_explicit(&page->state, WEFT_RANK_INIT, memory_order_release);
        return WEFT_OK;
    }
    if (!is_inherited)
        return WEFT_AGAIN;
    return weft_fail(WEFT_E_OTHER,
                     "process %u is or was rank %u of this job, and process %ld has called MPI_Init as the same rank: under one mpirun "
                     "each rank can be one MPI program; to run this one alone, unset %s",
                     pid, env->rank, (long)getpid(), WEFT_BOOT_ENV_NAME);
}

int weft_boot_segment_reopen(const weft_boot_env *env, weft_segment *segment)
{
    weft_boot_env_job job;
    bool is_inherited = job_read(env->fd, env, &job);
    int fd = is_inherited ? env->fd : fd_from_launcher(env, &job);

    if (fd < 0 || weft_segment_open(fd, segment))
        return WEFT_AGAIN;
    if (env->local < segment->hdr->ranks) {
        uint32_t pid = atomic_load(&weft_segment_rank(segment, env->local)->pid);
        if (pid == (uint32_t)getpid() || (!pid && is_inherited))
            return WEFT_OK;
    }
    weft_segment_close(segment);
    return WEFT_AGAIN;
}

/* Maps the launcher's modex_cache, if there are other nodes. */
static int cache_open(mpirun_rank *self, const weft_boot_env *env, uint32_t size)
{
    const weft_segment_hdr *hdr = self->own.hdr;
    void *view;

    if (!hdr->extra_bytes)
        return hdr->ranks == size && env->local == env->rank
                   ? WEFT_OK
                   : weft_fail(WEFT_E_OTHER, "the launcher has given no map of the other hosts");
    int rc = weft_segment_view(&self->own, hdr->extra, hdr->extra_bytes, &view);
    if (rc)
        return rc;
    weft_modex_cache *cache = view;
    weft_boot *b = &self->boot;
    self->cache = cache;
    self->cache_bytes = hdr->extra_bytes;
    if (!weft_modex_cache_is_sound(cache, self->cache_bytes, size))
        return weft_fail(WEFT_E_OTHER, "the launcher's map of the other hosts is not of this library's version");
    b->node_of = weft_modex_cache_at(cache, cache->node_of);
    b->local_of = weft_modex_cache_at(cache, cache->local_of);
    b->node = cache->node;
    b->nodes = cache->nodes;
    if (b->node_of[env->rank] != b->node || b->local_of[env->rank] != env->local)
        return weft_fail(WEFT_E_OTHER, "the launcher calls this process rank %u and places that rank elsewhere", env->rank);
    return WEFT_OK;
}

int weft_boot_by_mpirun(const weft_boot_env *env, weft_boot **boot)
{
    weft_boot_env_job job;
    bool is_inherited = job_read(env->fd, env, &job);
    int fd = is_inherited ? env->fd : fd_from_launcher(env, &job);
    int rc;

    if (fd < 0)
        return WEFT_AGAIN; /* the job has ended, or is not accessible: the variable is stale */
    mpirun_rank *self = calloc(1, sizeof(*self));
    if (!self) {
        close(fd);
        return weft_fail(WEFT_E_NOMEM, "no memory for the description of the job");
    }
    rc = weft_segment_open(fd, &self->own);
    if (rc)
        goto undo_new;
    if (env->rank >= job.size || env->local >= self->own.hdr->ranks) {
        rc = weft_fail(WEFT_E_OTHER, "the launcher calls this process rank %u of %u", env->rank, job.size);
        goto undo_open;
    }
    weft_boot *b = &self->boot;
    b->nodes = 1;
    rc = cache_open(self, env, job.size);
    if (!rc)
        rc = rank_claim(self, env, is_inherited);
    if (rc)
        goto undo_open;
    b->ops = &mpirun_rank_ops;
    memcpy(b->job_name, job.name, sizeof(b->job_name));
    memcpy(b->host, job.host, sizeof(b->host));
    b->job = self->own.hdr->job;
    b->rank = env->rank;
    b->local_rank = env->local;
    b->size = job.size;
    b->local_size = self->own.hdr->ranks;
    b->app = env->app;
    b->universe = job.universe;
    b->has_segment = weft_knob.segment != WEFT_SEGMENT_OFF;
    b->segment = b->has_segment ? self->own : (weft_segment){.fd = -1};
    b->oversubscribed = job.is_oversubscribed || weft_boot_is_oversubscribed(b->local_size, job.is_bound);
    *boot = b;
    return WEFT_OK;

undo_open:
    weft_segment_drop(self->cache, self->cache_bytes);
    weft_segment_close(&self->own);
undo_new:
    free(self);
    return rc;
}
