/* SPDX-License-Identifier: BSD-3-Clause
 *
 * boot_pmi: boot of a rank of a PMI-1 or PMI-2 launcher: MPICH's hydra, srun --mpi=pmi2 and others with the same wire protocol.
 * Keys become visible by a fence of all ranks. Fences: one to share the node's segment, if ranks share a node; one for addresses
 * (commit); one more if the launcher gives no process mapping.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/knob.h"
#include "base/log.h"
#include "base/status.h"
#include "launch/boot_internal.h"
#include "launch/pmi.h"
#include "launch/pmi_map.h"
#include "launch/pmi_value.h"
#include "launch/segment_fd.h"

#define MAP_MAX 65536 /* characters of PMI_process_mapping; launchers omit a mapping that exceeds their value length */
#define STDERR_LIMIT_MS 1000
#define NODE_KEY "weft.place"

typedef struct pmi_client {
    weft_boot boot;
    weft_pmi pmi;
    uint32_t *node_of, *local_of;
    uint32_t *locals; /* [local_size]: ranks of this node, ascending */
    bool has_parted;  /* the connection is closed */
} pmi_client;

static int pmi_client_put(weft_boot *boot, const char *key, const void *value, size_t bytes)
{
    return weft_pmi_value_put(&((pmi_client *)boot)->pmi, key, value, bytes);
}

static int pmi_client_fence(weft_boot *boot)
{
    return weft_pmi_fence(&((pmi_client *)boot)->pmi);
}

static int pmi_client_get(weft_boot *boot, uint32_t rank, const char *key, void *value, size_t *bytes)
{
    return weft_pmi_value_get(&((pmi_client *)boot)->pmi, rank, key, value, bytes);
}

/* Waits up to STDERR_LIMIT_MS until the launcher has read stderr: hydra kills the job at an abort request and may lose unread text. */
static void stderr_wait_read(void)
{
    struct stat stat;
    int left = 0;

    if (fstat(STDERR_FILENO, &stat) || !S_ISFIFO(stat.st_mode))
        return;
    for (int i = 0; i < STDERR_LIMIT_MS && ioctl(STDERR_FILENO, FIONREAD, &left) == 0 && left; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void __attribute__((noreturn)) pmi_client_abort(weft_boot *boot, int code, const char *text)
{
    pmi_client *self = (pmi_client *)boot;
    int exit_code = code & 0xff || !code ? code & 0xff : 1;

    if (boot->has_segment) {
        weft_abort_text_print(&boot->segment, boot->local_rank, text);
        atomic_store(&weft_segment_rank(&boot->segment, boot->local_rank)->state, WEFT_RANK_ABORT);
    } else if (text && *text) {
        weft_log_error("%s", text);
    }
    if (self->has_parted)
        weft_boot_abort_parted(boot, exit_code);
    stderr_wait_read();
    weft_pmi_abort(&self->pmi, exit_code, text);
    _exit(exit_code);
}

static void pmi_client_free(pmi_client *self, bool is_orderly)
{
    if (self->boot.has_segment)
        weft_segment_close(&self->boot.segment);
    if (!self->has_parted)
        weft_pmi_close(&self->pmi, is_orderly);
    free(self->node_of);
    free(self->local_of);
    free(self->locals);
    free(self);
}

static void pmi_client_part(weft_boot *boot)
{
    pmi_client *self = (pmi_client *)boot;

    if (!self->has_parted)
        weft_pmi_close(&self->pmi, true);
    self->has_parted = true;
}

static void pmi_client_finalize(weft_boot *boot)
{
    if (boot->has_segment && !boot->has_failed)
        atomic_store(&weft_segment_rank(&boot->segment, boot->local_rank)->state, WEFT_RANK_FINAL);
    pmi_client_free((pmi_client *)boot, !boot->has_failed);
}

static const weft_boot_ops pmi_client_ops = {
    .name = "pmi",
    .put = pmi_client_put,
    .commit = pmi_client_fence,
    .get = pmi_client_get,
    .fence = pmi_client_fence,
    .abort = pmi_client_abort,
    .part = pmi_client_part,
    .finalize = pmi_client_finalize,
};

/* A hash of host name and boot id: one machine's until it reboots; a container with its own host name has its own. */
static uint64_t node_hash(const char *host)
{
    char text[320] = "", id[48] = "";
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        ssize_t bytes = read(fd, id, sizeof(id) - 1);
        id[bytes > 0 ? bytes : 0] = '\0';
        close(fd);
    }
    snprintf(text, sizeof(text), "%s %s", host, id);
    return weft_boot_env_hash(text);
}

/* For launchers without a process mapping: all ranks exchange node_hash(). */
static int nodes_exchange(pmi_client *self, uint64_t *node_ids)
{
    uint64_t own = node_hash(self->boot.host);
    int rc = weft_pmi_value_put(&self->pmi, NODE_KEY, &own, sizeof(own));

    if (!rc)
        rc = weft_pmi_fence(&self->pmi);
    for (uint32_t r = 0; r < self->boot.size && !rc; r++) {
        size_t bytes = sizeof(own);
        rc = weft_pmi_value_get(&self->pmi, r, NODE_KEY, &node_ids[r], &bytes);
        if (!rc && bytes != sizeof(own))
            rc = weft_fail(WEFT_E_OTHER, "start-up: rank %u runs another version of this library", r);
    }
    return rc;
}

/* place[r]: a number for the node of rank r; equal numbers mean one node. */
static int node_ids_read(pmi_client *self, uint64_t *node_ids)
{
    char *map = malloc(MAP_MAX);
    int rc = map ? weft_pmi_job_get(&self->pmi, "PMI_process_mapping", map, MAP_MAX)
                 : weft_fail(WEFT_E_NOMEM, "no memory for the launcher's map of %u ranks", self->boot.size);

    if (!rc && !weft_pmi_map_parse(map, self->boot.size, node_ids)) {
        if (self->boot.rank == 0)
            weft_log_warn("the launcher's PMI_process_mapping \"%.100s\" is not understood: ranks of one node are found by host name",
                          map);
        rc = WEFT_E_UNSUPPORTED;
    }
    free(map);
    return rc == WEFT_E_UNSUPPORTED ? nodes_exchange(self, node_ids) : rc;
}

static int nodes_read(pmi_client *self)
{
    weft_boot *b = &self->boot;
    uint64_t *node_ids = calloc(b->size, sizeof(*node_ids));
    int rc = WEFT_OK;

    self->node_of = calloc(b->size, sizeof(*self->node_of));
    self->local_of = calloc(b->size, sizeof(*self->local_of));
    self->locals = calloc(b->size, sizeof(*self->locals));
    if (!node_ids || !self->node_of || !self->local_of || !self->locals)
        rc = weft_fail(WEFT_E_NOMEM, "no memory for the map of %u ranks", b->size);
    else
        rc = node_ids_read(self, node_ids);
    if (!rc) {
        b->nodes = weft_pmi_map_count(node_ids, b->size, self->node_of, self->local_of);
        if (!b->nodes)
            rc = weft_fail(WEFT_E_NOMEM, "no memory for the map of %u ranks", b->size);
    }
    free(node_ids);
    if (rc)
        return rc;
    b->node = self->node_of[b->rank];
    b->local_rank = self->local_of[b->rank];
    for (uint32_t r = 0; r < b->size; r++)
        if (self->node_of[r] == b->node)
            self->locals[b->local_size++] = r;
    if (b->nodes > 1) {
        b->node_of = self->node_of;
        b->local_of = self->local_of;
    }
    return WEFT_OK;
}

static int job_read(pmi_client *self)
{
    weft_boot *b = &self->boot;
    const weft_pmi *pmi = &self->pmi;

    snprintf(b->job_name, sizeof(b->job_name), "%s", pmi->name);
    b->job = weft_boot_env_hash(b->job_name);
    b->rank = pmi->rank;
    b->size = pmi->size;
    b->app = pmi->app;
    b->universe = pmi->universe;
    weft_boot_host(b->host, sizeof(b->host));
    return nodes_read(self);
}

/* The lowest rank of each node creates the segment and puts the socket's address; the others fetch the descriptor. All ranks of the job
 * take part in the fence, also a rank alone on its node. */
static int segment_share(pmi_client *self)
{
    weft_boot *b = &self->boot;
    const char *dir = getenv("TMPDIR");
    weft_segment_fd offer;
    size_t bytes = sizeof(offer);
    char peer[64];
    int fd = -1, rc = WEFT_OK;

    if (b->local_rank == 0)
        rc = weft_segment_make(b->local_size, b->job, 0, &b->segment);
    if (b->nodes == b->size || rc)
        return rc;
    if (b->local_rank == 0 && b->local_size > 1) {
        fd = weft_segment_fd_open(dir && *dir && access(dir, W_OK) == 0 ? dir : "/tmp", 0, &offer);
        rc = fd < 0 ? fd : weft_pmi_value_put(&self->pmi, WEFT_SEGMENT_FD_KEY, &offer, sizeof(offer));
    }
    if (!rc)
        rc = weft_pmi_fence(&self->pmi);
    if (!rc && b->local_rank) {
        rc = weft_pmi_value_get(&self->pmi, self->locals[0], WEFT_SEGMENT_FD_KEY, &offer, &bytes);
        snprintf(peer, sizeof(peer), "rank %u", self->locals[0]);
        if (!rc)
            rc = weft_segment_fd_fetch(&offer, bytes, 0, b->local_rank, peer, &b->segment);
    } else if (!rc && fd >= 0) {
        rc = weft_segment_fd_serve(fd, &offer, &b->segment, self->locals, b->local_size);
    }
    if (fd >= 0)
        weft_segment_fd_close(fd, &offer);
    return rc;
}

int weft_boot_by_pmi(weft_boot **boot)
{
    pmi_client *self = calloc(1, sizeof(*self));
    int rc;

    *boot = NULL;
    if (!self)
        return weft_fail(WEFT_E_NOMEM, "no memory for the description of the job");
    self->boot.ops = &pmi_client_ops;
    self->boot.segment.fd = -1;
    rc = weft_pmi_open(&self->pmi);
    if (!rc)
        rc = job_read(self);
    if (!rc && weft_knob.segment != WEFT_SEGMENT_OFF) {
        rc = segment_share(self);
        self->boot.has_segment = self->boot.segment.hdr != NULL;
    }
    if (rc) {
        pmi_client_free(self, false);
        return rc;
    }
    weft_boot_begin(&self->boot);
    *boot = &self->boot;
    return WEFT_OK;
}
