/* SPDX-License-Identifier: BSD-3-Clause
 *
 * boot_pmix: a rank of any launcher that has a PMIx server. libpmix is loaded here, when it is needed, and never under our own
 * mpirun. The node's lowest rank makes the segment and hands it out; see handout.
 * Every step has a deadline, and says which step it was and for whom it waited.
 */
#include <dlfcn.h>
#include <pmix.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/knob.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/status.h"
#include "launch/handout.h"
#include "launch/pmi_map.h"
#include "launch/ways.h"

#define LOOK_NAP_NS 20000000
#define LOOKS_AGAIN 100
#define TOLD_KEY "weft.told" /* stands beside the last of a rank's keys */

typedef struct pmix_calls {
    pmix_status_t (*init)(pmix_proc_t *, pmix_info_t *, size_t);
    pmix_status_t (*finalize)(const pmix_info_t *, size_t);
    pmix_status_t (*abort)(int, const char *, pmix_proc_t *, size_t);
    pmix_status_t (*put)(pmix_scope_t, const char *, pmix_value_t *);
    pmix_status_t (*commit)(void);
    pmix_status_t (*get)(const pmix_proc_t *, const char *, const pmix_info_t *, size_t, pmix_value_t **);
    pmix_status_t (*fence)(const pmix_proc_t *, size_t, const pmix_info_t *, size_t);
    const char *(*error_string)(pmix_status_t);
} pmix_calls;

typedef struct client {
    weft_boot boot;
    pmix_calls pmix;
    pmix_proc_t me;
    uint32_t *node_of, *local_of;
    uint32_t *locals; /* [local_size]: world ranks of this node, rising */
    unsigned char *has_told; /* [size]: that all of its keys are there is known; NULL: nobody was asked yet */
} client;

static int library_load(client *self)
{
    static const struct {
        const char *name;
        size_t at;
    } names[] = {
        {"PMIx_Init", offsetof(pmix_calls, init)},     {"PMIx_Finalize", offsetof(pmix_calls, finalize)},
        {"PMIx_Abort", offsetof(pmix_calls, abort)},   {"PMIx_Put", offsetof(pmix_calls, put)},
        {"PMIx_Commit", offsetof(pmix_calls, commit)}, {"PMIx_Get", offsetof(pmix_calls, get)},
        {"PMIx_Fence", offsetof(pmix_calls, fence)},   {"PMIx_Error_string", offsetof(pmix_calls, error_string)},
    };
    void *library = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL); /* never closed: its threads outlive any call */

    if (!library)
        library = dlopen(WEFT_PMIX_LIBDIR "/libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return weft_fail(WEFT_E_OTHER,
                         "this process was started by a PMIx launcher (PMIX_NAMESPACE=%s), but libpmix cannot be loaded: %s. "
                         "Install libpmix2, or use Weft's own mpirun",
                         getenv("PMIX_NAMESPACE"), dlerror());
    for (size_t i = 0; i < weft_count(names); i++) {
        void *call = dlsym(library, names[i].name);
        if (!call)
            return weft_fail(WEFT_E_OTHER, "libpmix.so.2 lacks %s: install a libpmix of version 3 or later", names[i].name);
        memcpy((char *)&self->pmix + names[i].at, &call, sizeof(call));
    }
    return WEFT_OK;
}

static int step_failed(const client *self, const char *step, const char *who, pmix_status_t status)
{
    if (status == PMIX_ERR_TIMEOUT)
        return weft_fail(WEFT_E_TIMEOUT, "start-up: %s still waits for %s after %d s (WEFT_START_TIMEOUT_S)", step, who,
                         weft_knob.start_timeout_s);
    return weft_fail(WEFT_E_OTHER, "start-up: %s (asking %s) failed: %s", step, who, self->pmix.error_string(status));
}

/* PMIx_Init has no deadline of its own: a server that is gone or hangs would hold us for ever, so a watcher speaks and ends us.
 * */
typedef struct watch {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool is_done;
} watch;

static void *watch_main(void *argument)
{
    watch *self = argument;
    struct timespec until;
    int rc = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += weft_knob.start_timeout_s;
    pthread_mutex_lock(&self->lock);
    while (!self->is_done && rc == 0)
        rc = pthread_cond_timedwait(&self->ended, &self->lock, &until);
    if (!self->is_done) {
        const char *server = getenv("PMIX_SERVER_URI41"), *rank = getenv("PMIX_RANK");
        weft_log_error("rank %s: start-up: PMIx_Init still waits for the launcher's PMIx server (%s) after %d s "
                       "(WEFT_START_TIMEOUT_S): is it alive, and in this process's network namespace?",
                       rank ? rank : "?", server ? server : "no address in PMIX_SERVER_URI41", weft_knob.start_timeout_s);
        _exit(1);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

static pmix_status_t init_watched(client *self)
{
    watch watch = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};
    sigset_t all, before;
    pthread_t thread;

    sigfillset(&all); /* libpmix's threads and ours must not take the program's signals */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool is_watched = pthread_create(&thread, NULL, watch_main, &watch) == 0;
    pmix_status_t status = self->pmix.init(&self->me, NULL, 0);
    if (is_watched) {
        pthread_mutex_lock(&watch.lock);
        watch.is_done = true;
        pthread_cond_signal(&watch.ended);
        pthread_mutex_unlock(&watch.lock);
        pthread_join(thread, NULL);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

static int client_open(client *self)
{
    int rc = library_load(self);

    if (rc)
        return rc;
    pmix_status_t status = init_watched(self);
    if (status == PMIX_SUCCESS)
        return WEFT_OK;
    const char *name = getenv("PMIX_NAMESPACE"), *rank = getenv("PMIX_RANK");
    return weft_fail(WEFT_E_OTHER,
                     "this process was started as rank %s of job %s (PMIX_RANK, PMIX_NAMESPACE), but the PMIx server does not "
                     "answer: %s. Is the launcher alive, and is its libpmix compatible? To run the program alone, unset "
                     "PMIX_NAMESPACE",
                     rank, name, self->pmix.error_string(status));
}

static void value_free(pmix_value_t *value)
{
    if (value->type == PMIX_STRING)
        free(value->data.string);
    else if (value->type == PMIX_BYTE_OBJECT)
        free(value->data.bo.bytes);
    free(value);
}

/* Of `rank` (or PMIX_RANK_WILDCARD: the job's), waiting up to the deadline if the owner has not put it yet. */
static pmix_status_t value_get(client *self, uint32_t rank, const char *key, pmix_value_t **value)
{
    pmix_proc_t proc = {.rank = rank};
    pmix_info_t limit = {.value = {.type = PMIX_INT, .data.integer = weft_knob.start_timeout_s}};

    snprintf(limit.key, sizeof(limit.key), "%s", PMIX_TIMEOUT);
    memcpy(proc.nspace, self->me.nspace, sizeof(proc.nspace));
    return self->pmix.get(&proc, key, &limit, 1, value);
}

static bool number_get(client *self, uint32_t rank, const char *key, uint32_t *number)
{
    pmix_value_t *value;

    if (value_get(self, rank, key, &value) != PMIX_SUCCESS)
        return false;
    bool is_known = true;
    switch (value->type) {
    case PMIX_UINT16:
        *number = value->data.uint16;
        break;
    case PMIX_UINT32:
        *number = value->data.uint32;
        break;
    case PMIX_PROC_RANK:
        *number = value->data.rank;
        break;
    case PMIX_INT:
        *number = (uint32_t)value->data.integer;
        break;
    case PMIX_SIZE:
        *number = (uint32_t)value->data.size;
        break;
    default:
        is_known = false;
    }
    value_free(value);
    return is_known;
}

static bool text_get(client *self, uint32_t rank, const char *key, char *text, size_t room)
{
    pmix_value_t *value;

    if (value_get(self, rank, key, &value) != PMIX_SUCCESS)
        return false;
    bool is_text = value->type == PMIX_STRING && value->data.string && strlen(value->data.string) < room;
    if (is_text)
        strcpy(text, value->data.string);
    value_free(value);
    return is_text;
}

/* The ranks of this node, rising. A launcher that does not tell leaves us alone on it. */
static int locals_read(client *self)
{
    weft_boot *b = &self->boot;
    pmix_value_t *value;
    char *save = NULL;

    self->locals = calloc(b->size, sizeof(*self->locals));
    if (!self->locals)
        return weft_fail(WEFT_E_NOMEM, "no memory for the list of %u ranks", b->size);
    if (value_get(self, PMIX_RANK_WILDCARD, PMIX_LOCAL_PEERS, &value) == PMIX_SUCCESS) {
        if (value->type == PMIX_STRING && value->data.string)
            for (char *one = strtok_r(value->data.string, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
                uint32_t rank = (uint32_t)strtoul(one, NULL, 10);
                if (rank >= b->size || b->local_size == b->size)
                    return weft_fail(WEFT_E_OTHER, "the launcher names rank %u on this node, in a job of %u", rank, b->size);
                if (rank == b->rank)
                    b->local_rank = b->local_size;
                self->locals[b->local_size++] = rank;
            }
        value_free(value);
    }
    if (b->local_size == 0)
        self->locals[b->local_size++] = b->rank;
    if (self->locals[b->local_rank] != b->rank)
        return weft_fail(WEFT_E_OTHER, "the launcher's list of ranks on this node lacks this one (%u)", b->rank);
    return WEFT_OK;
}

/* By the launcher's own numbers, which may be those of a pool that is wider than the job. */
static bool numbers_read(client *self, uint64_t *place)
{
    uint32_t node;

    for (uint32_t r = 0; r < self->boot.size; r++) {
        if (!number_get(self, r, PMIX_NODEID, &node) || node == UINT32_MAX)
            return false;
        place[r] = node;
    }
    return true;
}

/* Slurm 22.05 tells numbers of the ranks of this node only, but every rank's host. (On all nodes: so all come to these numbers.) */
static int hosts_read(client *self, uint64_t *place)
{
    char host[256];

    for (uint32_t r = 0; r < self->boot.size; r++) {
        if (!text_get(self, r, PMIX_HOSTNAME, host, sizeof(host)))
            return weft_fail(WEFT_E_OTHER, "start-up: the launcher's PMIx server does not tell on which node rank %u is", r);
        place[r] = weft_word_hash(host);
    }
    return WEFT_OK;
}

static int nodes_read(client *self)
{
    weft_boot *b = &self->boot;
    int rc = WEFT_OK;

    b->nodes = 1;
    if (b->local_size == b->size)
        return WEFT_OK;
    self->node_of = calloc(b->size, sizeof(*self->node_of));
    self->local_of = calloc(b->size, sizeof(*self->local_of));
    uint64_t *place = self->node_of && self->local_of ? calloc(b->size, sizeof(*place)) : NULL;
    if (!place)
        return weft_fail(WEFT_E_NOMEM, "no memory for the map of %u ranks", b->size);
    if (!numbers_read(self, place))
        rc = hosts_read(self, place);
    if (!rc) {
        b->nodes = weft_pmi_map_count(place, b->size, self->node_of, self->local_of);
        if (!b->nodes)
            rc = weft_fail(WEFT_E_NOMEM, "no memory for the map of %u ranks", b->size);
    }
    free(place);
    if (rc)
        return rc;
    b->node = self->node_of[b->rank];
    b->node_of = self->node_of;
    b->local_of = self->local_of;
    if (b->local_of[b->rank] != b->local_rank)
        return weft_fail(WEFT_E_OTHER, "the launcher's list of ranks on this node and what it tells of each do not agree (rank %u)",
                         b->rank);
    return WEFT_OK;
}

static int job_read(client *self)
{
    weft_boot *b = &self->boot;

    snprintf(b->job_name, sizeof(b->job_name), "%.255s", self->me.nspace);
    b->job = weft_word_hash(b->job_name);
    b->rank = self->me.rank;
    if (!number_get(self, PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, &b->size) || b->rank >= b->size)
        return weft_fail(WEFT_E_OTHER, "start-up: the launcher's PMIx server does not tell how many ranks job %s has",
                         b->job_name);
    if (!number_get(self, PMIX_RANK_WILDCARD, PMIX_UNIV_SIZE, &b->universe))
        b->universe = 0;
    if (!number_get(self, b->rank, PMIX_APPNUM, &b->app))
        b->app = 0;
    if (!text_get(self, b->rank, PMIX_HOSTNAME, b->host, sizeof(b->host)))
        weft_boot_host(b->host, sizeof(b->host));
    int rc = locals_read(self);
    return rc ? rc : nodes_read(self);
}

static int client_put(weft_boot *boot, const char *key, const void *bytes, size_t count)
{
    client *self = (client *)boot;
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT, .data.bo = {.bytes = (char *)bytes, .size = count}};
    pmix_status_t status = self->pmix.put(PMIX_GLOBAL, key, &value);

    return status == PMIX_SUCCESS ? WEFT_OK : step_failed(self, "PMIx_Put", key, status);
}

static int commit(client *self)
{
    pmix_status_t status = self->pmix.commit();

    return status == PMIX_SUCCESS ? WEFT_OK : step_failed(self, "PMIx_Commit", "the launcher's server", status);
}

static int client_commit(weft_boot *boot)
{
    int rc = client_put(boot, TOLD_KEY, "", 1);

    return rc ? rc : commit((client *)boot);
}

/* A server that is asked while the owner commits may say that there is no such key (Open MPI 4.1 with libpmix 4.2, 8 of 60 jobs
 * of four ranks), and one on another host does when it has been given others before: it is asked again for a while. */
static pmix_status_t put_value_get(client *self, uint32_t rank, const char *key, long looks, pmix_value_t **value)
{
    pmix_status_t status = value_get(self, rank, key, value);

    for (long i = 0; i < looks && status == PMIX_ERR_NOT_FOUND; i++) {
        struct timespec nap = {.tv_nsec = LOOK_NAP_NS};
        nanosleep(&nap, NULL);
        status = value_get(self, rank, key, value);
    }
    return status;
}

static int value_take(client *self, uint32_t rank, const char *key, long looks, void *bytes, size_t *count)
{
    pmix_value_t *value;
    char who[64];
    int rc = WEFT_OK;

    pmix_status_t status = put_value_get(self, rank, key, looks, &value);
    snprintf(who, sizeof(who), "rank %u for its key %.32s", rank, key);
    if (status != PMIX_SUCCESS)
        return step_failed(self, "PMIx_Get", who, status);
    if (value->type != PMIX_BYTE_OBJECT || value->data.bo.size > *count)
        rc = weft_fail(WEFT_E_TOOLARGE, "key %s of rank %u does not fit %zu bytes", key, rank, *count);
    else
        memcpy(bytes, value->data.bo.bytes, *count = value->data.bo.size);
    value_free(value);
    return rc;
}

/* A key that is not there may be one that is not there yet: only when the owner has told all is it none. */
static int client_get(weft_boot *boot, uint32_t rank, const char *key, void *bytes, size_t *count)
{
    client *self = (client *)boot;
    long looks = weft_knob.start_timeout_s * (1000000000l / LOOK_NAP_NS);
    char mark[1];
    size_t mark_bytes = sizeof(mark);

    if (!self->has_told && !(self->has_told = calloc(boot->size, 1)))
        return weft_fail(WEFT_E_NOMEM, "no memory for the list of %u ranks", boot->size);
    if (!self->has_told[rank]) {
        int rc = value_take(self, rank, TOLD_KEY, looks, mark, &mark_bytes);
        if (rc)
            return rc;
        self->has_told[rank] = 1;
    }
    return value_take(self, rank, key, 0, bytes, count);
}

static int client_fence(weft_boot *boot)
{
    client *self = (client *)boot;
    pmix_info_t limit = {.value = {.type = PMIX_INT, .data.integer = weft_knob.start_timeout_s}};

    snprintf(limit.key, sizeof(limit.key), "%s", PMIX_TIMEOUT);
    pmix_status_t status = self->pmix.fence(NULL, 0, &limit, 1);
    return status == PMIX_SUCCESS ? WEFT_OK : step_failed(self, "PMIx_Fence", "all ranks of the job", status);
}

static void __attribute__((noreturn)) client_abort(weft_boot *boot, int code, const char *text)
{
    client *self = (client *)boot;
    int exit_code = code & 0xff || !code ? code & 0xff : 1;

    if (boot->has_segment)
        weft_speak(&boot->segment, boot->local_rank, text);
    else if (text && *text)
        weft_log_error("%s", text);
    if (boot->has_segment)
        atomic_store(&weft_segment_rank(&boot->segment, boot->local_rank)->state, WEFT_RANK_ABORT);
    self->pmix.abort(exit_code, text ? text : "", NULL, 0);
    _exit(exit_code);
}

static void client_free(client *self)
{
    if (self->boot.has_segment)
        weft_segment_close(&self->boot.segment);
    free(self->node_of);
    free(self->local_of);
    free(self->locals);
    free(self->has_told);
    free(self);
}

static void client_finish(weft_boot *boot)
{
    client *self = (client *)boot;

    if (boot->has_segment)
        atomic_store(&weft_segment_rank(&boot->segment, boot->local_rank)->state, WEFT_RANK_FINAL);
    self->pmix.finalize(NULL, 0);
    client_free(self);
}

static const weft_boot_ops client_ops = {
    .name = "pmix",
    .put = client_put,
    .commit = client_commit,
    .get = client_get,
    .fence = client_fence,
    .abort = client_abort,
    .finish = client_finish,
};

/* The lowest rank of the node makes the segment and says where it hands it out; the others ask it. */
static int segment_share(client *self)
{
    weft_boot *b = &self->boot;
    char dir[200], who[64];
    weft_handout offer;
    size_t bytes = sizeof(offer);
    int rc;

    if (b->local_size == 1)
        return weft_segment_make(1, b->job, 0, &b->segment);
    if (b->local_rank != 0) {
        rc = value_take(self, self->locals[0], WEFT_HANDOUT_KEY, LOOKS_AGAIN, &offer, &bytes);
        snprintf(who, sizeof(who), "rank %u", self->locals[0]);
        return rc ? rc : weft_handout_fetch(&offer, bytes, b->local_rank, who, &b->segment);
    }
    rc = weft_segment_make(b->local_size, b->job, 0, &b->segment);
    if (rc)
        return rc;
    if (!text_get(self, PMIX_RANK_WILDCARD, PMIX_NSDIR, dir, sizeof(dir)) || access(dir, W_OK))
        snprintf(dir, sizeof(dir), "%.190s", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    int fd = weft_handout_open(dir, &offer);
    if (fd < 0)
        return fd;
    rc = client_put(b, WEFT_HANDOUT_KEY, &offer, sizeof(offer));
    if (!rc)
        rc = commit(self);
    if (!rc)
        rc = weft_handout_serve(fd, &offer, &b->segment, self->locals, b->local_size);
    weft_handout_close(fd, &offer);
    return rc;
}

int weft_boot_by_pmix(weft_boot **boot)
{
    client *self = calloc(1, sizeof(*self));

    *boot = NULL;
    if (!self)
        return weft_fail(WEFT_E_NOMEM, "no memory for the description of the job");
    self->boot.ops = &client_ops;
    self->boot.segment.fd = -1;
    int rc = client_open(self);
    if (rc)
        goto undo_new;
    rc = job_read(self);
    if (!rc && weft_knob.segment != WEFT_SEGMENT_OFF) {
        rc = segment_share(self);
        self->boot.has_segment = self->boot.segment.head != NULL;
    }
    if (rc)
        goto undo_open;
    weft_boot_begin(&self->boot);
    *boot = &self->boot;
    return WEFT_OK;

undo_open:
    self->pmix.finalize(NULL, 0);
undo_new:
    client_free(self);
    return rc;
}
