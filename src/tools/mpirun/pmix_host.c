/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_host: hosts a PMIx server through libpmix, for programs of other MPIs and for what scripts may start. libpmix is loaded
 * here and now, so that a job of our own ranks pays nothing for it. Its upcalls come on its own thread: they touch the
 * mutex-guarded part only and tell the loop by a pipe. All ranks are local: libpmix answers fences and gets by itself.
 */
#include "tools/mpirun/pmix_host.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pmix.h>
#include <pmix_server.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/macros.h"

#define STEP_LIMIT_S 60 /* of one asynchronous call of libpmix */

typedef struct pmix_calls {
    pmix_status_t (*init)(pmix_server_module_t *, pmix_info_t *, size_t);
    pmix_status_t (*finalize)(void);
    pmix_status_t (*register_nspace)(const pmix_nspace_t, int, pmix_info_t *, size_t, pmix_op_cbfunc_t, void *);
    pmix_status_t (*register_client)(const pmix_proc_t *, uid_t, gid_t, void *, pmix_op_cbfunc_t, void *);
    pmix_status_t (*setup_fork)(const pmix_proc_t *, char ***);
    pmix_status_t (*generate_regex)(const char *, char **);
    pmix_status_t (*generate_ppn)(const char *, char **);
    const char *(*error_string)(pmix_status_t);
} pmix_calls;

struct pmix_host {
    void *library;
    pmix_calls pmix;
    pmix_nspace_t job;
    const char *host;
    uint32_t ranks;
    char dir[200];
    bool is_up;
    int wake[2];
    pthread_mutex_t lock; /* guards the rest: libpmix's thread writes it */
    bool has_aborted;
    int abort_rank, abort_code;
    char abort_text[256];
};

/* One asynchronous call that we wait for. */
typedef struct call_end {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool is_done;
    pmix_status_t status;
} call_end;

/* A list of attributes that grows; values point at memory that outlives the call that reads them. */
typedef struct info_list {
    pmix_info_t items[40];
    size_t count;
} info_list;

static pmix_value_t *info_add(info_list *list, const char *key, pmix_data_type_t type)
{
    pmix_info_t *item = &list->items[list->count++];

    memset(item, 0, sizeof(*item));
    snprintf(item->key, sizeof(item->key), "%s", key);
    item->value.type = type;
    return &item->value;
}

static void info_text(info_list *list, const char *key, const char *text)
{
    info_add(list, key, PMIX_STRING)->data.string = (char *)text;
}

static void info_u32(info_list *list, const char *key, uint32_t value)
{
    info_add(list, key, PMIX_UINT32)->data.uint32 = value;
}

static void info_u16(info_list *list, const char *key, uint16_t value)
{
    info_add(list, key, PMIX_UINT16)->data.uint16 = value;
}

static void info_rank(info_list *list, const char *key, uint32_t rank)
{
    info_add(list, key, PMIX_PROC_RANK)->data.rank = rank;
}

static void info_array(info_list *list, const char *key, pmix_data_array_t *array, info_list *inner)
{
    *array = (pmix_data_array_t){.type = PMIX_INFO, .size = inner->count, .array = inner->items};
    info_add(list, key, PMIX_DATA_ARRAY)->data.darray = array;
}

static void call_ended(pmix_status_t status, void *data)
{
    call_end *call = data;

    pthread_mutex_lock(&call->lock);
    call->status = status;
    call->is_done = true;
    pthread_cond_signal(&call->ended);
    pthread_mutex_unlock(&call->lock);
}

static void call_begin(call_end *call)
{
    pthread_mutex_init(&call->lock, NULL);
    pthread_cond_init(&call->ended, NULL);
    call->is_done = false;
}

static pmix_status_t call_wait(call_end *call, pmix_status_t status)
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

/* Upcalls. The module has no pointer of ours, so the one server of this process stands here. */
static pmix_host *host_now;

static pmix_status_t upcall_abort(const pmix_proc_t *proc, void *object, int code, const char text[], pmix_proc_t *procs,
                                  size_t n, pmix_op_cbfunc_t ended, void *data)
{
    (void)object, (void)procs, (void)n, (void)ended, (void)data;
    pthread_mutex_lock(&host_now->lock);
    host_now->has_aborted = true;
    host_now->abort_rank = (int)proc->rank;
    host_now->abort_code = code;
    snprintf(host_now->abort_text, sizeof(host_now->abort_text), "%s", text ? text : "");
    pthread_mutex_unlock(&host_now->lock);
    if (write(host_now->wake[1], "a", 1) < 0) { /* full: it is awake */
    }
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t upcall_gone(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t ended, void *data)
{
    (void)proc, (void)object, (void)ended, (void)data;
    return PMIX_OPERATION_SUCCEEDED;
}

/* libpmix calls this only when a member is on another node; should it do so here, what it collected is all there is. */
static pmix_status_t upcall_fence(const pmix_proc_t *procs, size_t count, const pmix_info_t *info, size_t info_count, char *bytes,
                                  size_t size, pmix_modex_cbfunc_t ended, void *data)
{
    (void)procs, (void)count, (void)info, (void)info_count;
    if (ended)
        ended(PMIX_SUCCESS, bytes, size, data, free, bytes);
    return PMIX_SUCCESS;
}

static pmix_server_module_t module = {
    .client_finalized = upcall_gone,
    .abort = upcall_abort,
    .fence_nb = upcall_fence,
};

static int library_load(pmix_host *self)
{
    static const struct {
        const char *name;
        size_t at;
    } names[] = {
        {"PMIx_server_init", offsetof(pmix_calls, init)},
        {"PMIx_server_finalize", offsetof(pmix_calls, finalize)},
        {"PMIx_server_register_nspace", offsetof(pmix_calls, register_nspace)},
        {"PMIx_server_register_client", offsetof(pmix_calls, register_client)},
        {"PMIx_server_setup_fork", offsetof(pmix_calls, setup_fork)},
        {"PMIx_generate_regex", offsetof(pmix_calls, generate_regex)},
        {"PMIx_generate_ppn", offsetof(pmix_calls, generate_ppn)},
        {"PMIx_Error_string", offsetof(pmix_calls, error_string)},
    };

    self->library = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!self->library)
        self->library = dlopen(WEFT_PMIX_LIBDIR "/libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!self->library)
        return complain(1, "no PMIx server is offered to the ranks: %s", dlerror());
    for (size_t i = 0; i < weft_count(names); i++) {
        void *call = dlsym(self->library, names[i].name);
        if (!call)
            return complain(1, "no PMIx server is offered to the ranks: libpmix lacks %s", names[i].name);
        memcpy((char *)&self->pmix + names[i].at, &call, sizeof(call));
    }
    return 0;
}

static int pmix_failed(const pmix_host *self, const char *step, pmix_status_t status)
{
    return complain(1, "no PMIx server is offered to the ranks: %s failed: %s", step, self->pmix.error_string(status));
}

static int server_start(pmix_host *self)
{
    info_list list = {.count = 0};
    sigset_t all, before;
    pmix_nspace_t name;

    info_text(&list, PMIX_SERVER_TMPDIR, self->dir);
    info_text(&list, PMIX_SYSTEM_TMPDIR, self->dir);
    snprintf(name, sizeof(name), "%.240s-server", self->job); /* the server's own name must not be a rank's */
    info_text(&list, PMIX_SERVER_NSPACE, name);
    info_rank(&list, PMIX_SERVER_RANK, 0);
    info_text(&list, PMIX_HOSTNAME, self->host);
    bool has_psec = getenv("PMIX_MCA_psec") != NULL;
    if (!has_psec)
        setenv("PMIX_MCA_psec", "native", 1); /* munge would wait for a daemon that often is not there */
    sigfillset(&all); /* its threads must not take our signals */
    sigprocmask(SIG_SETMASK, &all, &before);
    pmix_status_t status = self->pmix.init(&module, list.items, list.count);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (!has_psec)
        unsetenv("PMIX_MCA_psec");
    self->is_up = status == PMIX_SUCCESS;
    return self->is_up ? 0 : pmix_failed(self, "PMIx_server_init", status);
}

static char *ranks_text(uint32_t ranks)
{
    char *text = malloc(ranks * 5 + 1), *at = text;

    for (uint32_t r = 0; at && r < ranks; r++)
        at += sprintf(at, "%s%u", r ? "," : "", r);
    return text;
}

static void rank_describe(const pmix_host *self, const options *opts, uint32_t rank, info_list *list)
{
    uint32_t a = 0;

    while (rank >= opts->apps[a].first + opts->apps[a].count)
        a++;
    info_rank(list, PMIX_RANK, rank);
    info_rank(list, PMIX_GLOBAL_RANK, rank);
    info_rank(list, PMIX_APP_RANK, rank - opts->apps[a].first);
    info_u32(list, PMIX_APPNUM, a);
    info_u16(list, PMIX_LOCAL_RANK, (uint16_t)rank);
    info_u16(list, PMIX_NODE_RANK, (uint16_t)rank);
    info_u32(list, PMIX_NODEID, 0);
    info_text(list, PMIX_HOSTNAME, self->host);
}

typedef struct rank_info {
    info_list list;
    pmix_data_array_t array;
} rank_info;

static pmix_status_t job_describe(pmix_host *self, const options *opts, const char *nodes, const char *procs, const char *peers)
{
    size_t most = 24 + opts->app_count + self->ranks, count;
    rank_info *ranks = calloc(self->ranks + opts->app_count, sizeof(*ranks));
    pmix_info_t *all = calloc(most, sizeof(*all));
    info_list job = {.count = 0};
    pmix_status_t status = PMIX_ERR_NOMEM;
    call_end call;

    if (!ranks || !all)
        goto end;
    info_text(&job, PMIX_JOBID, self->job);
    info_u32(&job, PMIX_JOB_SIZE, self->ranks);
    info_u32(&job, PMIX_UNIV_SIZE, self->ranks);
    info_u32(&job, PMIX_MAX_PROCS, self->ranks);
    info_u32(&job, PMIX_NUM_SLOTS, self->ranks);
    info_u32(&job, PMIX_JOB_NUM_APPS, opts->app_count);
    info_u32(&job, PMIX_NUM_NODES, 1);
    info_u32(&job, PMIX_NODE_SIZE, self->ranks);
    info_u32(&job, PMIX_LOCAL_SIZE, self->ranks);
    info_rank(&job, PMIX_NPROC_OFFSET, 0);
    info_rank(&job, PMIX_LOCALLDR, 0);
    info_u32(&job, PMIX_NODEID, 0);
    info_text(&job, PMIX_LOCAL_PEERS, peers);
    info_text(&job, PMIX_HOSTNAME, self->host);
    info_text(&job, PMIX_NSDIR, self->dir);
    info_text(&job, PMIX_TMPDIR, self->dir);
    info_text(&job, PMIX_NODE_MAP, nodes);
    info_text(&job, PMIX_PROC_MAP, procs);
    memcpy(all, job.items, job.count * sizeof(*all));
    count = job.count;
    for (uint32_t i = 0; i < opts->app_count + self->ranks; i++) {
        info_list one = {.count = 0};
        bool is_app = i < opts->app_count;
        if (is_app) {
            info_u32(&ranks[i].list, PMIX_APPNUM, i);
            info_u32(&ranks[i].list, PMIX_APP_SIZE, opts->apps[i].count);
            info_rank(&ranks[i].list, PMIX_APPLDR, opts->apps[i].first);
        } else {
            rank_describe(self, opts, i - opts->app_count, &ranks[i].list);
        }
        info_array(&one, is_app ? PMIX_APP_INFO_ARRAY : PMIX_PROC_DATA, &ranks[i].array, &ranks[i].list);
        all[count++] = one.items[0];
    }
    call_begin(&call);
    status = call_wait(&call, self->pmix.register_nspace(self->job, (int)self->ranks, all, count, call_ended, &call));
end:
    free(ranks);
    free(all);
    return status;
}

static int job_register(pmix_host *self, const options *opts)
{
    char *nodes = NULL, *procs = NULL, *peers = ranks_text(self->ranks);
    pmix_status_t status = peers ? PMIX_SUCCESS : PMIX_ERR_NOMEM;
    pmix_proc_t proc;

    if (status == PMIX_SUCCESS)
        status = self->pmix.generate_regex(self->host, &nodes);
    if (status == PMIX_SUCCESS)
        status = self->pmix.generate_ppn(peers, &procs);
    if (status == PMIX_SUCCESS)
        status = job_describe(self, opts, nodes, procs, peers);
    memcpy(proc.nspace, self->job, sizeof(proc.nspace));
    for (uint32_t r = 0; r < self->ranks && status == PMIX_SUCCESS; r++) {
        call_end call;
        proc.rank = r;
        call_begin(&call);
        status = call_wait(&call, self->pmix.register_client(&proc, getuid(), getgid(), NULL, call_ended, &call));
    }
    free(nodes);
    free(procs);
    free(peers);
    return status == PMIX_SUCCESS ? 0 : pmix_failed(self, "describing the job", status);
}

int pmix_host_open(const options *opts, const char *job, const char *host, guard *guardian, pmix_host **result)
{
    const char *tmp = getenv("TMPDIR");
    pmix_host *self = calloc(1, sizeof(*self));
    int rc;

    *result = NULL;
    if (!self || pipe2(self->wake, O_CLOEXEC | O_NONBLOCK)) {
        free(self);
        return complain(1, "out of memory or descriptors for the PMIx server: %s", strerror(errno));
    }
    pthread_mutex_init(&self->lock, NULL);
    snprintf(self->job, sizeof(self->job), "%s", job);
    self->host = host;
    self->ranks = opts->ranks;
    if (!tmp || *tmp != '/' || strlen(tmp) > 100) /* the guardian stands in / : only a whole path means the same to it */
        tmp = "/tmp";
    snprintf(self->dir, sizeof(self->dir), "%s/weft-%u-%s", tmp, (unsigned)getuid(), strrchr(job, '-') + 1);
    guardian->dir = self->dir;
    guard_tell_dir(guardian);
    host_now = self;
    rc = library_load(self);
    if (!rc && mkdir(self->dir, 0700))
        rc = complain(1, "no PMIx server is offered to the ranks: cannot make %s: %s", self->dir, strerror(errno));
    if (!rc)
        rc = server_start(self);
    if (!rc)
        rc = job_register(self, opts);
    if (rc) {
        guardian->dir = NULL;
        pmix_host_close(self);
        return rc;
    }
    *result = self;
    return 0;
}

int pmix_host_environ(pmix_host *self, uint32_t rank, env_list *env)
{
    pmix_proc_t proc = {.rank = rank};
    char **more = NULL;
    int rc = 0;

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

int pmix_host_aborted(pmix_host *self, int *rank, int *code, char *text)
{
    char bytes[16];
    int is_news = 0;

    while (read(self->wake[0], bytes, sizeof(bytes)) > 0)
        is_news = 1;
    if (!is_news)
        return 0;
    pthread_mutex_lock(&self->lock);
    is_news = self->has_aborted;
    self->has_aborted = false;
    *rank = self->abort_rank;
    *code = self->abort_code;
    memcpy(text, self->abort_text, sizeof(self->abort_text));
    pthread_mutex_unlock(&self->lock);
    return is_news;
}

int pmix_host_fd(const pmix_host *self)
{
    return self->wake[0];
}

void pmix_host_close(pmix_host *self)
{
    if (self->is_up)
        self->pmix.finalize();
    dir_remove(self->dir);
    close(self->wake[0]);
    close(self->wake[1]);
    /* the library stays loaded: its threads may be on their way out */
    free(self);
}
