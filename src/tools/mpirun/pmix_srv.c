/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_srv: see pmix_srv.h. Start and end of the PMIx server, for programs of other MPIs and for those that scripts may start.
 * libpmix answers requests within a node itself; pmix_upcalls and pmix_downcalls serve the others.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/macros.h"
#include "tools/mpirun/pmix_srv_internal.h"
#include "tools/mpirun/report.h"

#define STEP_LIMIT_S 60 /* limit of one asynchronous call of libpmix */
#define END_LIMIT_S 5   /* limit of PMIx_server_finalize */

/* libpmix 4.2 stores ranks' data in sparse files of a fixed size, 4 MiB by default. A value that does not fit ends the process of the
 * server. Servers and clients must use the same size. */
#define STORE_NAME "NS_DATA_SEG_SIZE"
#define STORE_BYTES (REFBUF_MAX + (16 << 20))

pmix_srv *pmix_srv_current;

struct pmix_out {
    struct pmix_out *next;
    pmix_msg what;
};

void pmix_call_ended(pmix_status_t status, void *data)
{
    pmix_call *call = data;

    pthread_mutex_lock(&call->lock);
    call->status = status;
    call->is_done = true;
    pthread_cond_signal(&call->ended);
    pthread_mutex_unlock(&call->lock);
}

void pmix_call_begin(pmix_call *call)
{
    pthread_mutex_init(&call->lock, NULL);
    pthread_cond_init(&call->ended, NULL);
    call->is_done = false;
}

pmix_status_t pmix_call_wait(pmix_call *call, pmix_status_t status)
{
    struct timespec until;
    int rc = 0;

    if (status == PMIX_OPERATION_SUCCEEDED)
        return PMIX_SUCCESS;
    if (status != PMIX_SUCCESS)
        return status;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += STEP_LIMIT_S;
    pthread_mutex_lock(&call->lock);
    while (!call->is_done && rc == 0)
        rc = pthread_cond_timedwait(&call->ended, &call->lock, &until);
    status = call->is_done ? call->status : PMIX_ERR_TIMEOUT;
    pthread_mutex_unlock(&call->lock);
    return status;
}

static void wake(pmix_srv *self)
{
    if (write(self->wake[1], "n", 1) < 0) { /* full: it is awake */
    }
}

static size_t event_bytes(const pmix_msg *what)
{
    return what->kind == PMIX_MSG_EVENT && what->body ? what->body->bytes : 0;
}

int pmix_srv_send(pmix_srv *self, const pmix_msg *what)
{
    struct pmix_out *one = malloc(sizeof(*one));

    if (!one) {
        refbuf_release(what->body);
        return -1;
    }
    *one = (struct pmix_out){.what = *what};
    pthread_mutex_lock(&self->lock);
    *self->out_end = one;
    self->out_end = &one->next;
    self->out_events += event_bytes(what);
    pthread_mutex_unlock(&self->lock);
    wake(self);
    return 0;
}

void pmix_srv_message(pmix_srv *self, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    pthread_mutex_lock(&self->lock);
    if (!*self->message)
        vsnprintf(self->message, sizeof(self->message), format, list);
    pthread_mutex_unlock(&self->lock);
    va_end(list);
    wake(self);
}

/* Deregistering a client of an unknown nspace has no effect, and libpmix runs its callback in order. */
void pmix_srv_defer(pmix_srv *self, pmix_op_cbfunc_t then, void *data)
{
    pmix_proc_t unknown = {.nspace = "weft-unknown"};

    self->pmix.deregister_client(&unknown, then, data);
}

static int library_load(pmix_srv *self)
{
    static const struct {
        const char *name;
        size_t at;
    } names[] = {
        {"PMIx_server_init", offsetof(pmix_calls, init)},
        {"PMIx_server_finalize", offsetof(pmix_calls, finalize)},
        {"PMIx_server_register_nspace", offsetof(pmix_calls, register_nspace)},
        {"PMIx_server_register_client", offsetof(pmix_calls, register_client)},
        {"PMIx_server_deregister_client", offsetof(pmix_calls, deregister_client)},
        {"PMIx_server_setup_fork", offsetof(pmix_calls, setup_fork)},
        {"PMIx_server_dmodex_request", offsetof(pmix_calls, dmodex_request)},
        {"PMIx_Notify_event", offsetof(pmix_calls, notify_event)},
        {"PMIx_Data_pack", offsetof(pmix_calls, data_pack)},
        {"PMIx_Data_unpack", offsetof(pmix_calls, data_unpack)},
        {"PMIx_Data_load", offsetof(pmix_calls, data_load)},
        {"PMIx_generate_regex", offsetof(pmix_calls, generate_regex)},
        {"PMIx_generate_ppn", offsetof(pmix_calls, generate_ppn)},
        {"PMIx_Error_string", offsetof(pmix_calls, error_string)},
    };

    self->library = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!self->library)
        self->library = dlopen(WEFT_PMIX_LIBDIR "/libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!self->library)
        return report(1, "the ranks have no PMIx server: %s", dlerror());
    for (size_t i = 0; i < weft_count(names); i++) {
        void *call = dlsym(self->library, names[i].name);
        if (!call)
            return report(1, "the ranks have no PMIx server: libpmix lacks %s", names[i].name);
        memcpy((char *)&self->pmix + names[i].at, &call, sizeof(call));
    }
    return 0;
}

int pmix_srv_failed(const pmix_srv *self, const char *step, pmix_status_t status)
{
    return report(1, "the ranks have no PMIx server: %s failed: %s", step, self->pmix.error_string(status));
}

static pmix_info_t text_info(const char *key, const char *text)
{
    pmix_info_t item = {.value = {.type = PMIX_STRING, .data.string = (char *)text}};

    snprintf(item.key, sizeof(item.key), "%s", key);
    return item;
}

static int server_start(pmix_srv *self)
{
    sigset_t all, before;
    pmix_nspace_t name;
    char store[32];

    snprintf(name, sizeof(name), "%.230s-server", self->job); /* the server's name must differ from the ranks' */
    pmix_info_t list[] = {
        text_info(PMIX_SERVER_TMPDIR, self->dir),
        text_info(PMIX_SYSTEM_TMPDIR, self->dir),
        text_info(PMIX_SERVER_NSPACE, name),
        text_info(PMIX_HOSTNAME, self->host),
        {.value = {.type = PMIX_PROC_RANK, .data.rank = self->node}},
    };
    snprintf(list[4].key, sizeof(list[4].key), "%s", PMIX_SERVER_RANK);
    bool has_psec = getenv("PMIX_MCA_psec") != NULL, has_store = getenv(STORE_NAME) != NULL;
    if (!has_psec)
        setenv("PMIX_MCA_psec", "native", 1); /* munge would wait for its daemon, which is often absent */
    snprintf(store, sizeof(store), "%zu", STORE_BYTES);
    if (!has_store)
        setenv(STORE_NAME, store, 1);
    sigfillset(&all); /* libpmix's threads must not handle mpirun's signals */
    sigprocmask(SIG_SETMASK, &all, &before);
    pmix_status_t status = self->pmix.init(&pmix_module, list, weft_count(list));
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (!has_psec)
        unsetenv("PMIX_MCA_psec");
    if (!has_store)
        unsetenv(STORE_NAME);
    self->is_up = status == PMIX_SUCCESS;
    return self->is_up ? 0 : pmix_srv_failed(self, "PMIx_server_init", status);
}

/* Nodes may share a file system: each has its own directory. */
static void dir_name(pmix_srv *self, const char *job)
{
    const char *tmp = getenv("TMPDIR");

    if (!tmp || *tmp != '/' || strlen(tmp) > 100) /* the guardian's working directory is /: the path must be absolute */
        tmp = "/tmp";
    snprintf(self->dir, sizeof(self->dir), "%s/weft-%u-%s-%u", tmp, (unsigned)getuid(), strrchr(job, '-') + 1, self->node);
}

int pmix_srv_open(const options *opts, const char *job, const map *map, uint32_t node, const char *host, guard *guardian,
                   pmix_srv **result)
{
    pmix_srv *self = calloc(1, sizeof(*self));
    int rc;

    *result = NULL;
    if (!self || !(self->rank_bits = calloc(opts->ranks, 1)) || pipe2(self->wake, O_CLOEXEC | O_NONBLOCK)) {
        if (self)
            free(self->rank_bits);
        free(self);
        return report(1, "out of memory or descriptors for the PMIx server: %s", strerror(errno));
    }
    pthread_mutex_init(&self->lock, NULL);
    snprintf(self->job, sizeof(self->job), "%s", job);
    self->out_end = &self->out;
    self->map = map;
    self->node = node;
    self->host = map->node_count == 1 ? host : map->nodes[node].name;
    self->ranks = opts->ranks;
    dir_name(self, job);
    guardian->dir = self->dir;
    guard_add_dir(guardian);
    pmix_srv_current = self;
    rc = library_load(self);
    if (!rc && mkdir(self->dir, 0700))
        rc = report(1, "the ranks have no PMIx server: cannot make %s: %s", self->dir, strerror(errno));
    if (!rc)
        rc = server_start(self);
    if (!rc)
        rc = pmix_nspace_register(self, opts);
    if (rc) {
        guardian->dir = NULL;
        pmix_srv_close(self);
        return rc;
    }
    *result = self;
    return 0;
}

int pmix_srv_environ(pmix_srv *self, uint32_t rank, env_list *env)
{
    pmix_proc_t proc = {.rank = rank};
    char **more = NULL, store[64];
    int rc = 0;

    snprintf(store, sizeof(store), STORE_NAME "=%zu", STORE_BYTES);
    if (!getenv(STORE_NAME))
        rc = env_set(env, store);
    memcpy(proc.nspace, self->job, sizeof(proc.nspace));
    if (self->pmix.setup_fork(&proc, &more) != PMIX_SUCCESS)
        return -1;
    for (char **item = more; item && *item; item++) {
        rc |= env_set(env, *item);
        free(*item);
    }
    free(more);
    return rc;
}

int pmix_srv_aborted(pmix_srv *self, int *rank, int *code, char *text)
{
    char bytes[64];

    while (read(self->wake[0], bytes, sizeof(bytes)) > 0)
        ;
    pthread_mutex_lock(&self->lock);
    int is_new = self->has_aborted;
    self->has_aborted = false;
    *rank = self->abort_rank;
    *code = self->abort_code;
    memcpy(text, self->abort_text, sizeof(self->abort_text));
    pthread_mutex_unlock(&self->lock);
    return is_new;
}

bool pmix_srv_next(pmix_srv *self, pmix_msg *what)
{
    char message[sizeof(self->message)];

    pthread_mutex_lock(&self->lock);
    struct pmix_out *one = self->out;
    if (one) {
        self->out = one->next;
        if (!self->out)
            self->out_end = &self->out;
        self->out_events -= event_bytes(&one->what);
    }
    memcpy(message, self->message, sizeof(message));
    *self->message = '\0';
    pthread_mutex_unlock(&self->lock);
    if (*message)
        report(0, "%s", message);
    if (!one)
        return false;
    *what = one->what;
    free(one);
    return true;
}

int pmix_srv_fd(const pmix_srv *self)
{
    return self->wake[0];
}

static void *finalize_run(void *data)
{
    pmix_srv *self = data;

    self->pmix.finalize();
    return NULL;
}

static void leave(int code, void *data)
{
    (void)data;
    _exit(code);
}

/* Ends the server. False: finalize hangs (libpmix 4.2.2, after a client was killed); then libpmix is left as it is and the process exits
 * without running exit handlers of libraries. */
static bool server_end(pmix_srv *self)
{
    struct timespec until;
    sigset_t all, before;
    pthread_t thread;

    if (!self->is_up)
        return true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool is_begun = pthread_create(&thread, NULL, finalize_run, self) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += END_LIMIT_S;
    if (is_begun && pthread_timedjoin_np(thread, NULL, &until) == 0)
        return true;
    on_exit(leave, NULL);
    return false;
}

void pmix_srv_close(pmix_srv *self)
{
    pmix_msg left;
    bool has_ended = server_end(self);

    dir_remove(self->dir);
    if (!has_ended)
        return;
    while (pmix_srv_next(self, &left))
        refbuf_release(left.body);
    for (uint32_t i = 0; i < self->requests.count; i++)
        free(id_table_remove(&self->requests, id_table_at(&self->requests, i)));
    id_table_close(&self->requests);
    pmix_downcalls_close(self);
    close(self->wake[0]);
    close(self->wake[1]);
    /* not unloaded: its threads may still be ending, and it keeps memory passed to it */
    free(self->rank_bits);
    free(self);
}
