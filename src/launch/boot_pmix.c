/* SPDX-License-Identifier: BSD-3-Clause
 *
 * boot_pmix: boot of a rank of any launcher with a PMIx server. Loads libpmix on demand, never under Weft's mpirun.
 * The node's lowest rank creates the segment and serves its descriptor; see segment_fd.
 * Every step has a deadline; its error names the step and the peer it waited for.
 * Threads: libpmix's own call on_event(); a temporary watchdog limits PMIx_Init.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/knob.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/status.h"
#include "launch/boot_internal.h"
#include "launch/boot_pmix_internal.h"
#include "launch/segment_fd.h"

#define RETRY_NAP_NS 20000000
#define SEGMENT_FD_WAIT_S 2 /* the socket was put before, or the server has answered too early */
#define PRINT_LIMIT_S 5
#define LOST_CONNECTION_OLD (-101) /* PMIX_ERR_LOST_CONNECTION_TO_SERVER, before version 4 */
#define AT(call) offsetof(weft_pmix_calls, call)
#define COMMITTED_KEY "weft.told" /* put last: marks that all keys of a rank are committed */

static int library_load(weft_pmix_client *self)
{
    static const struct {
        const char *name;
        size_t at;
        bool is_optional;
    } names[] = {
        {"PMIx_Init", AT(init), false},     {"PMIx_Finalize", AT(finalize), false},
        {"PMIx_Abort", AT(abort), false},   {"PMIx_Put", AT(put), false},
        {"PMIx_Commit", AT(commit), false}, {"PMIx_Get_nb", AT(get), false},
        {"PMIx_Fence_nb", AT(fence), false}, {"PMIx_Error_string", AT(error_string), false},
        {"PMIx_Register_event_handler", AT(register_handler), false},
        {"PMIx_Resolve_nodes", AT(resolve_nodes), true}, {"PMIx_Resolve_peers", AT(resolve_peers), true},
    };
    void *library = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL); /* never closed: its threads keep running */

    if (!library)
        library = dlopen(WEFT_PMIX_LIBDIR "/libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return weft_fail(WEFT_E_OTHER,
                         "this process was started by a PMIx launcher (PMIX_NAMESPACE=%s), but libpmix cannot be loaded: %s. "
                         "Install libpmix2, or use Weft's own mpirun",
                         getenv("PMIX_NAMESPACE"), dlerror());
    for (size_t i = 0; i < weft_count(names); i++) {
        void *call = dlsym(library, names[i].name);
        if (!call && names[i].is_optional)
            continue;
        if (!call)
            return weft_fail(WEFT_E_OTHER, "libpmix.so.2 lacks %s: install a libpmix of version 3 or later", names[i].name);
        memcpy((char *)&self->pmix + names[i].at, &call, sizeof(call));
    }
    return WEFT_OK;
}

static int step_failed(const weft_pmix_client *self, const char *step, const char *peer, pmix_status_t status)
{
    if (status == PMIX_ERR_TIMEOUT)
        return weft_fail(WEFT_E_TIMEOUT,
                         "start-up: %s still waits for %s after %d s (WEFT_START_TIMEOUT_S): has a process or its node ended?",
                         step, peer, weft_knob.start_timeout_s);
    return weft_fail(WEFT_E_OTHER, "start-up: %s (of %s) failed: %s", step, peer, self->pmix.error_string(status));
}

/* Watchdog for PMIx_Init, which has no timeout: prints an error and ends the process if the server is gone or hangs. */
typedef struct watchdog {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool is_done;
} watchdog;

static void *watchdog_main(void *argument)
{
    watchdog *self = argument;
    struct timespec until;
    int rc = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += weft_knob.start_timeout_s;
    pthread_mutex_lock(&self->lock);
    while (!self->is_done && rc == 0)
        rc = pthread_cond_timedwait(&self->ended, &self->lock, &until);
    if (!self->is_done) {
        const char *server = getenv("PMIX_SERVER_URI41"), *rank = getenv("PMIX_RANK");
        weft_log_error("rank %s: start-up: PMIx_Init has had no answer from the launcher's PMIx server (%s) after %d s "
                       "(WEFT_START_TIMEOUT_S): does it run, and in this process's network namespace?",
                       rank ? rank : "?", server ? server : "no address in PMIX_SERVER_URI41", weft_knob.start_timeout_s);
        _exit(1);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

static pmix_status_t init_with_watchdog(weft_pmix_client *self)
{
    watchdog watchdog = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};
    sigset_t all, before;
    pthread_t thread;

    sigfillset(&all); /* libpmix's threads and the watchdog must not handle the program's signals */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool has_watchdog = pthread_create(&thread, NULL, watchdog_main, &watchdog) == 0;
    pmix_status_t status = self->pmix.init(&self->me, NULL, 0);
    if (has_watchdog) {
        pthread_mutex_lock(&watchdog.lock);
        watchdog.is_done = true;
        pthread_cond_signal(&watchdog.ended);
        pthread_mutex_unlock(&watchdog.lock);
        pthread_join(thread, NULL);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

/* The client whose server is monitored; NULL: none, or it is being finalized. (libpmix's callbacks have no user pointer.) */
static weft_pmix_client *_Atomic watched;

static _Atomic int limit_code = 1; /* exit code by exit_after_limit() */

static void *exit_after_limit(void *unused)
{
    (void)unused;
    nanosleep(&(struct timespec){.tv_sec = PRINT_LIMIT_S}, NULL);
    _exit(atomic_load(&limit_code));
}

/* Ends the process, on libpmix's thread: nothing else would end this rank now. If printing blocks (stderr is not read),
 * exit_after_limit() ends the process. */
static void __attribute__((noreturn)) on_server_lost(const weft_pmix_client *self)
{
    const weft_boot *b = &self->boot;
    char text[600];
    pthread_t thread;

    bool is_timed = pthread_create(&thread, NULL, exit_after_limit, NULL) == 0; /* inherits libpmix's blocked signals */
    if (self->offer)
        unlink(self->offer->path);
    snprintf(text, sizeof(text),
             "the connection to the launcher's PMIx server is lost: the launcher, or its daemon on host %.255s, has ended "
             "or was killed. The ranks of this node end (first seen by rank %u)", b->host, self->me.rank);
    if (is_timed && b->has_segment)
        weft_abort_text_print(&b->segment, b->local_rank, text);
    else if (is_timed)
        weft_log_error("%s", text);
    if (b->has_segment)
        atomic_store(&weft_segment_rank(&b->segment, b->local_rank)->state, WEFT_RANK_ABORT);
    _exit(1);
}

static void on_event(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t infos, pmix_info_t *results,
                     size_t result_count, pmix_event_notification_cbfunc_fn_t done, void *done_data)
{
    const weft_pmix_client *self = atomic_load(&watched);

    (void)id, (void)source, (void)info, (void)infos, (void)results, (void)result_count;
    if (self && (status == PMIX_ERR_LOST_CONNECTION || status == LOST_CONNECTION_OLD))
        on_server_lost(self);
    if (done)
        done(PMIX_SUCCESS, NULL, 0, NULL, NULL, done_data);
}

/* Static, never freed: libpmix may answer after the wait has timed out. */
typedef struct registration {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool is_done;
    pmix_status_t status;
} registration;

static void on_registered(pmix_status_t status, size_t id, void *given)
{
    registration *self = given;

    (void)id;
    pthread_mutex_lock(&self->lock);
    self->is_done = true;
    self->status = status;
    pthread_cond_signal(&self->ended);
    pthread_mutex_unlock(&self->lock);
}

/* Registers on_event() for a lost server; without it libpmix continues and blocks calls that need the server. A loss during the
 * registration is an error here, as libpmix would not report it later. */
static int server_watch(weft_pmix_client *self)
{
    static pmix_status_t lost[] = {PMIX_ERR_LOST_CONNECTION, LOST_CONNECTION_OLD}; /* libpmix may keep the pointer */
    static registration registered = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};
    struct timespec until;
    int rc = 0;

    atomic_store(&watched, self);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += weft_knob.start_timeout_s;
    registered.is_done = false;
    self->pmix.register_handler(lost, weft_count(lost), NULL, 0, on_event, on_registered, &registered);
    pthread_mutex_lock(&registered.lock);
    while (!registered.is_done && rc == 0)
        rc = pthread_cond_timedwait(&registered.ended, &registered.lock, &until);
    pmix_status_t status = registered.is_done ? registered.status : PMIX_ERR_TIMEOUT;
    pthread_mutex_unlock(&registered.lock);
    if (status == PMIX_SUCCESS || self->pmix.commit() == PMIX_SUCCESS) /* commit works: the server is alive but refuses the handler */
        return WEFT_OK;
    return weft_fail(WEFT_E_OTHER,
                     "start-up: the connection to the launcher's PMIx server is lost (%s): the launcher, or its daemon on this host, "
                     "has ended or was killed", self->pmix.error_string(status));
}

static void server_disconnect(weft_pmix_client *self)
{
    atomic_store(&watched, NULL);
    if (!self->has_parted)
        self->pmix.finalize(NULL, 0);
    self->has_parted = true;
}

static int client_open(weft_pmix_client *self)
{
    int rc = library_load(self);

    if (rc)
        return rc;
    pmix_status_t status = init_with_watchdog(self);
    if (status == PMIX_SUCCESS) {
        weft_boot_host(self->boot.host, sizeof(self->boot.host)); /* for error texts, until PMIX_HOSTNAME is read */
        return server_watch(self);
    }
    const char *name = getenv("PMIX_NAMESPACE"), *rank = getenv("PMIX_RANK");
    return weft_fail(WEFT_E_OTHER,
                     "this process was started as rank %s of job %s (PMIX_RANK, PMIX_NAMESPACE), but the PMIx server does not "
                     "answer: %s. Does the launcher run, and is its libpmix compatible? To run the program alone, unset "
                     "PMIX_NAMESPACE",
                     rank, name, self->pmix.error_string(status));
}

static int client_put(weft_boot *boot, const char *key, const void *bytes, size_t count)
{
    weft_pmix_client *self = (weft_pmix_client *)boot;
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT, .data.bo = {.bytes = (char *)bytes, .size = count}};
    pmix_status_t status = self->pmix.put(PMIX_GLOBAL, key, &value);

    return status == PMIX_SUCCESS ? WEFT_OK : step_failed(self, "PMIx_Put", key, status);
}

static int commit(weft_pmix_client *self)
{
    pmix_status_t status = self->pmix.commit();

    return status == PMIX_SUCCESS ? WEFT_OK : step_failed(self, "PMIx_Commit", "the launcher's server", status);
}

static int client_commit(weft_boot *boot)
{
    int rc = client_put(boot, COMMITTED_KEY, "", 1);

    return rc ? rc : commit((weft_pmix_client *)boot);
}

/* Retries a get that found no key, for within_s seconds: a server may answer so while the owner commits (Open MPI 4.1 with libpmix 4.2), or
 * on another host if it has received other keys before. */
static pmix_status_t put_value_get(weft_pmix_client *self, uint32_t rank, const char *key, int within_s, uint64_t until_ns,
                                   pmix_value_t **value)
{
    uint64_t last_try_ns = weft_clock_ns() + (uint64_t)within_s * 1000000000u;
    pmix_status_t status = weft_pmix_value_get(self, rank, key, until_ns, value);

    while (status == PMIX_ERR_NOT_FOUND && weft_clock_ns() < last_try_ns) {
        struct timespec nap = {.tv_nsec = RETRY_NAP_NS};
        nanosleep(&nap, NULL);
        status = weft_pmix_value_get(self, rank, key, until_ns, value);
    }
    return status;
}

static int value_copy(weft_pmix_client *self, uint32_t rank, const char *key, int within_s, uint64_t until_ns, void *bytes, size_t *count)
{
    pmix_value_t *value;
    char peer[64];
    int rc = WEFT_OK;

    pmix_status_t status = put_value_get(self, rank, key, within_s, until_ns, &value);
    snprintf(peer, sizeof(peer), "rank %u for its key %.32s", rank, key);
    if (status != PMIX_SUCCESS)
        return step_failed(self, "PMIx_Get", peer, status);
    if (value->type != PMIX_BYTE_OBJECT || value->data.bo.size > *count)
        rc = weft_fail(WEFT_E_TOOLARGE, "key %s of rank %u does not fit %zu bytes", key, rank, *count);
    else
        memcpy(bytes, value->data.bo.bytes, *count = value->data.bo.size);
    weft_pmix_value_free(value);
    return rc;
}

/* A missing key may still come: the get first waits for the owner's COMMITTED_KEY, after which missing is final. Both have one deadline. */
static int client_get(weft_boot *boot, uint32_t rank, const char *key, void *bytes, size_t *count)
{
    weft_pmix_client *self = (weft_pmix_client *)boot;
    char committed[1];
    size_t committed_bytes = sizeof(committed);
    uint64_t until_ns = weft_pmix_deadline();

    if (!self->modex_ready && !(self->modex_ready = calloc(boot->size, 1)))
        return weft_fail(WEFT_E_NOMEM, "no memory for the list of %u ranks", boot->size);
    if (!self->modex_ready[rank]) {
        int rc = value_copy(self, rank, COMMITTED_KEY, weft_knob.start_timeout_s, until_ns, committed, &committed_bytes);
        if (rc)
            return rc;
        self->modex_ready[rank] = 1;
    }
    return value_copy(self, rank, key, 0, until_ns, bytes, count);
}

static int client_fence(weft_boot *boot)
{
    weft_pmix_client *self = (weft_pmix_client *)boot;
    pmix_status_t status = weft_pmix_fence(self);

    return status == PMIX_SUCCESS ? WEFT_OK : step_failed(self, "PMIx_Fence", "all ranks of the job", status);
}

static void __attribute__((noreturn)) client_abort(weft_boot *boot, int code, const char *text)
{
    weft_pmix_client *self = (weft_pmix_client *)boot;
    int exit_code = code & 0xff || !code ? code & 0xff : 1;
    pthread_t thread;

    if (boot->has_segment)
        weft_abort_text_print(&boot->segment, boot->local_rank, text);
    else if (text && *text)
        weft_log_error("%s", text);
    if (boot->has_segment)
        atomic_store(&weft_segment_rank(&boot->segment, boot->local_rank)->state, WEFT_RANK_ABORT);
    if (self->has_parted)
        weft_boot_abort_parted(boot, exit_code);
    atomic_store(&watched, NULL); /* the server may end before this rank does */
    atomic_store(&limit_code, exit_code); /* PMIx_Abort itself waits for the server without a limit */
    pthread_create(&thread, NULL, exit_after_limit, NULL);
    self->pmix.abort(exit_code, text ? text : "", NULL, 0);
    _exit(exit_code);
}

static void client_free(weft_pmix_client *self)
{
    if (self->boot.has_segment)
        weft_segment_close(&self->boot.segment);
    free(self->node_of);
    free(self->local_of);
    free(self->locals);
    free(self->modex_ready);
    free(self);
}

static void client_part(weft_boot *boot) { server_disconnect((weft_pmix_client *)boot); }

static void client_finalize(weft_boot *boot)
{
    weft_pmix_client *self = (weft_pmix_client *)boot;

    if (boot->has_segment)
        atomic_store(&weft_segment_rank(&boot->segment, boot->local_rank)->state, WEFT_RANK_FINAL);
    server_disconnect(self);
    client_free(self);
}

static const weft_boot_ops client_ops = {
    .name = "pmix",
    .put = client_put,
    .commit = client_commit,
    .get = client_get,
    .fence = client_fence,
    .abort = client_abort,
    .part = client_part,
    .finalize = client_finalize,
};

/* The lowest rank of the node creates the segment and puts the socket's address; the others fetch the descriptor. */
static int segment_share(weft_pmix_client *self)
{
    weft_boot *b = &self->boot;
    char dir[200], peer[64];
    weft_segment_fd offer;
    size_t bytes = sizeof(offer);
    int rc;

    if (b->local_size == 1)
        return weft_segment_make(1, b->job, 0, &b->segment);
    if (b->local_rank != 0) {
        rc = value_copy(self, self->locals[0], WEFT_SEGMENT_FD_KEY, SEGMENT_FD_WAIT_S, weft_pmix_deadline(), &offer, &bytes);
        snprintf(peer, sizeof(peer), "rank %u", self->locals[0]);
        return rc ? rc : weft_segment_fd_fetch(&offer, bytes, self->locals_hash, b->local_rank, peer, &b->segment);
    }
    rc = weft_segment_make(b->local_size, b->job, 0, &b->segment);
    if (rc)
        return rc;
    if (!weft_pmix_text_get(self, PMIX_RANK_WILDCARD, PMIX_NSDIR, dir, sizeof(dir)) || access(dir, W_OK))
        snprintf(dir, sizeof(dir), "%.190s", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    int fd = weft_segment_fd_open(dir, self->locals_hash, &offer);
    if (fd < 0)
        return fd;
    self->offer = &offer;
    rc = client_put(b, WEFT_SEGMENT_FD_KEY, &offer, sizeof(offer));
    if (!rc)
        rc = commit(self);
    if (!rc)
        rc = weft_segment_fd_serve(fd, &offer, &b->segment, self->locals, b->local_size);
    self->offer = NULL;
    weft_segment_fd_close(fd, &offer);
    return rc;
}

int weft_boot_by_pmix(weft_boot **boot)
{
    weft_pmix_client *self = calloc(1, sizeof(*self));

    *boot = NULL;
    if (!self)
        return weft_fail(WEFT_E_NOMEM, "no memory for the description of the job");
    self->boot.ops = &client_ops;
    self->boot.segment.fd = -1;
    int rc = client_open(self);
    if (rc) /* without PMIx_Finalize, as the server does not answer */
        goto undo_new;
    rc = weft_pmix_job_read(self);
    if (!rc && weft_knob.segment != WEFT_SEGMENT_OFF) {
        rc = segment_share(self);
        self->boot.has_segment = self->boot.segment.hdr != NULL;
    }
    if (rc)
        goto undo_open;
    weft_boot_begin(&self->boot);
    *boot = &self->boot;
    return WEFT_OK;

undo_open:
    server_disconnect(self);
undo_new:
    atomic_store(&watched, NULL);
    client_free(self);
    return rc;
}
