/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_server: a PMIx launcher for tests, with rank orders that Weft's mpirun does not make. One process per node, all on one machine; each
 * is the server of every job's ranks on that node. Used by test/launch/pmix_order and test/launch/server_lost.
 *   pmix_server [OPTION...] JOB... -- COMMAND...
 * JOB: the ranks of each node as its LOCAL_PEERS lists them, nodes separated by '/': "1,9,5/0,2,4,3,8,7,6". All jobs run COMMAND.
 *   --place     PMIX_LOCAL_RANK is the place in that list; else the order of ranks
 *   --claim N   PMIX_LOCAL_RANK of every rank is N
 *   --pids FILE writes "server PID" and "rank R PID" lines there
 * Exit code: the greatest of the ranks' (128 + signal).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pmix.h>
#include <pmix_server.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NODES_MAX 8
#define JOBS_MAX 4
#define RANKS_MAX 256
#define DATA_MAX 65536

enum { FENCE, ASK, ANSWER };

typedef struct message {
    int kind, job, status, node;
    uint32_t rank, sequence;
    void *ticket; /* of the requesting node */
    size_t bytes;
    char data[DATA_MAX];
} message;

typedef struct job {
    uint32_t ranks[NODES_MAX][RANKS_MAX], count[NODES_MAX], size;
    int nodes;
    /* fences of this node's server; under `lock` */
    uint32_t sequence;
    pmix_modex_cbfunc_t done;
    void *done_data;
    char *parts[NODES_MAX], *early[NODES_MAX]; /* of this fence, of the next */
    size_t part_bytes[NODES_MAX], early_bytes[NODES_MAX];
} job;

typedef struct question {
    pmix_modex_cbfunc_t done;
    void *done_data, *ticket;
    int node, job;
} question;

static job jobs[JOBS_MAX];
static int job_count, node_count, here, mesh[NODES_MAX][NODES_MAX];
static long launcher, claim = -1;
static bool is_by_place;
static char **command, dir[256];
static FILE *pids;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void die(const char *what, int status)
{
    fprintf(stderr, "pmix_server: %s: %s\n", what, status ? PMIx_Error_string(status) : "failed");
    exit(99);
}

static int job_of(const char *nspace) { return atoi(strrchr(nspace, '-') + 1); }
static void nspace_of(int j, char *nspace) { snprintf(nspace, PMIX_MAX_NSLEN, "test-%ld-%d", launcher, j); }

static void message_send(int node, message *what)
{
    what->node = here;
    if (send(mesh[here][node], what, offsetof(message, data) + what->bytes, MSG_NOSIGNAL) < 0)
        perror("pmix_server: send");
}

/* Ends the fence if all nodes have entered. Requires lock. */
static void fence_try(job *one)
{
    size_t bytes = 0, at = 0;

    for (int n = 0; n < one->nodes; n++) {
        if (!one->parts[n])
            return;
        bytes += one->part_bytes[n];
    }
    char *all = malloc(bytes + 1);
    for (int n = 0; n < one->nodes; n++) {
        memcpy(all + at, one->parts[n], one->part_bytes[n]);
        at += one->part_bytes[n];
        free(one->parts[n]);
        one->parts[n] = one->early[n];
        one->part_bytes[n] = one->early_bytes[n];
        one->early[n] = NULL;
    }
    one->sequence++;
    one->done(PMIX_SUCCESS, all, bytes, one->done_data, free, all);
}

static void part_add(job *one, int node, uint32_t sequence, const char *data, size_t bytes)
{
    char *copy = memcpy(malloc(bytes + 1), data, bytes);

    *(sequence == one->sequence ? &one->parts[node] : &one->early[node]) = copy;
    *(sequence == one->sequence ? &one->part_bytes[node] : &one->early_bytes[node]) = bytes;
    fence_try(one);
}

static pmix_status_t on_fence(const pmix_proc_t procs[], size_t count, const pmix_info_t info[], size_t infos, char *data, size_t bytes,
                              pmix_modex_cbfunc_t done, void *done_data)
{
    int j = job_of(procs[0].nspace);
    message *what = calloc(1, sizeof(*what));

    (void)count, (void)info, (void)infos;
    pthread_mutex_lock(&lock);
    jobs[j].done = done;
    jobs[j].done_data = done_data;
    *what = (message){.kind = FENCE, .job = j, .sequence = jobs[j].sequence, .bytes = bytes};
    memcpy(what->data, data, bytes);
    for (int n = 0; n < jobs[j].nodes; n++)
        if (n != here)
            message_send(n, what);
    part_add(&jobs[j], here, jobs[j].sequence, data, bytes);
    pthread_mutex_unlock(&lock);
    free(what);
    return PMIX_SUCCESS;
}

static pmix_status_t on_dmodex(const pmix_proc_t *proc, const pmix_info_t info[], size_t infos, pmix_modex_cbfunc_t done, void *done_data)
{
    message *what = calloc(1, sizeof(*what));
    question *asked = malloc(sizeof(*asked));

    (void)info, (void)infos;
    *asked = (question){.done = done, .done_data = done_data};
    *what = (message){.kind = ASK, .job = job_of(proc->nspace), .rank = proc->rank, .ticket = asked};
    for (int n = 0; n < jobs[what->job].nodes; n++)
        for (uint32_t i = 0; i < jobs[what->job].count[n]; i++)
            if (jobs[what->job].ranks[n][i] == proc->rank)
                message_send(n, what);
    free(what);
    return PMIX_SUCCESS;
}

static void on_owned(pmix_status_t status, char *data, size_t bytes, void *given)
{
    question *asked = given;
    message *what = calloc(1, sizeof(*what));

    *what = (message){.kind = ANSWER, .status = status, .ticket = asked->ticket, .bytes = bytes};
    memcpy(what->data, data, bytes);
    message_send(asked->node, what);
    free(what);
    free(asked);
}

static void message_take(const message *what)
{
    pmix_proc_t proc = {.rank = what->rank};
    question *asked = what->ticket;
    char *copy;

    switch (what->kind) {
    case FENCE:
        pthread_mutex_lock(&lock);
        part_add(&jobs[what->job], what->node, what->sequence, what->data, what->bytes);
        pthread_mutex_unlock(&lock);
        break;
    case ASK:
        nspace_of(what->job, proc.nspace);
        asked = malloc(sizeof(*asked));
        *asked = (question){.ticket = what->ticket, .node = what->node};
        if (PMIx_server_dmodex_request(&proc, on_owned, asked))
            on_owned(PMIX_ERR_NOT_FOUND, NULL, 0, asked);
        break;
    default:
        copy = memcpy(malloc(what->bytes + 1), what->data, what->bytes);
        asked->done(what->status, copy, what->bytes, asked->done_data, free, copy);
        free(asked);
    }
}

static void *mesh_run(void *unused)
{
    struct pollfd set[NODES_MAX];
    message *what = malloc(sizeof(*what));

    (void)unused;
    for (int n = 0; n < node_count; n++)
        set[n] = (struct pollfd){.fd = n == here ? -1 : mesh[here][n], .events = POLLIN};
    while (poll(set, (nfds_t)node_count, -1) > 0)
        for (int n = 0; n < node_count; n++)
            if (set[n].revents && recv(set[n].fd, what, sizeof(*what), 0) > 0)
                message_take(what);
            else if (set[n].revents)
                set[n].fd = -1;
    return NULL;
}

static pmix_status_t on_client(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done, void *done_data)
{
    (void)proc, (void)object, (void)done, (void)done_data;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_abort(const pmix_proc_t *proc, void *object, int code, const char text[], pmix_proc_t procs[], size_t count,
                              pmix_op_cbfunc_t done, void *done_data)
{
    (void)object, (void)text, (void)procs, (void)count, (void)done, (void)done_data;
    printf("server: rank %u aborts with %d\n", proc->rank, code);
    fflush(stdout);
    return PMIX_OPERATION_SUCCEEDED;
}

static void on_done(pmix_status_t status, void *given)
{
    if (status)
        die("asynchronous call", status);
    *(_Atomic bool *)given = true;
}

#define FINISH(call) do { _Atomic bool is_done = false; pmix_status_t rc_ = (call); \
        if (rc_ && rc_ != PMIX_OPERATION_SUCCEEDED) die(#call, rc_); \
        while (!is_done && rc_ == PMIX_SUCCESS) usleep(1000); } while (0)

static pmix_info_t item(const char *key, pmix_data_type_t type, uint64_t number, void *pointer)
{
    pmix_info_t info = {.value = {.type = type}};

    snprintf(info.key, sizeof(info.key), "%s", key);
    if (type == PMIX_STRING)
        info.value.data.string = pointer;
    else if (type == PMIX_DATA_ARRAY)
        info.value.data.darray = pointer;
    else if (type == PMIX_UINT16)
        info.value.data.uint16 = (uint16_t)number;
    else
        info.value.data.uint32 = (uint32_t)number; /* a rank is one too */
    return info;
}

static void list_text(const job *one, int node, char *text)
{
    *text = '\0';
    for (uint32_t i = 0; i < one->count[node]; i++)
        sprintf(text + strlen(text), "%s%u", *text ? "," : "", one->ranks[node][i]);
}

static uint32_t local_rank(const job *one, int node, uint32_t place)
{
    uint32_t below = 0;

    for (uint32_t i = 0; i < one->count[node]; i++)
        below += one->ranks[node][i] < one->ranks[node][place];
    return claim >= 0 ? (uint32_t)claim : is_by_place ? place : below;
}

static void job_register(int j)
{
    static pmix_info_t list[32 + RANKS_MAX], inner[RANKS_MAX][6];
    static pmix_data_array_t arrays[RANKS_MAX];
    static char names[256], maps[8 * RANKS_MAX], peers[8 * RANKS_MAX], hosts[NODES_MAX][16];
    job *one = &jobs[j];
    char nspace[PMIX_MAX_NSLEN + 1], *node_map, *proc_map;
    size_t n = 0, a = 0;

    nspace_of(j, nspace);
    *names = *maps = '\0';
    for (int i = 0; i < one->nodes; i++) {
        snprintf(hosts[i], sizeof(hosts[i]), "n%d", i);
        sprintf(names + strlen(names), "%s%s", i ? "," : "", hosts[i]);
        strcat(maps, i ? ";" : "");
        list_text(one, i, maps + strlen(maps));
    }
    PMIx_generate_regex(names, &node_map);
    PMIx_generate_ppn(maps, &proc_map);
    list_text(one, here, peers);
    list[n++] = item(PMIX_JOBID, PMIX_STRING, 0, nspace);
    list[n++] = item(PMIX_JOB_SIZE, PMIX_UINT32, one->size, NULL);
    list[n++] = item(PMIX_UNIV_SIZE, PMIX_UINT32, one->size, NULL);
    list[n++] = item(PMIX_MAX_PROCS, PMIX_UINT32, one->size, NULL);
    list[n++] = item(PMIX_NUM_NODES, PMIX_UINT32, (uint32_t)one->nodes, NULL);
    list[n++] = item(PMIX_LOCAL_SIZE, PMIX_UINT32, one->count[here], NULL);
    list[n++] = item(PMIX_LOCAL_PEERS, PMIX_STRING, 0, peers);
    list[n++] = item(PMIX_NSDIR, PMIX_STRING, 0, dir);
    list[n++] = item(PMIX_NODE_MAP, PMIX_STRING, 0, node_map);
    list[n++] = item(PMIX_PROC_MAP, PMIX_STRING, 0, proc_map);
    for (int i = 0; i < one->nodes; i++)
        for (uint32_t p = 0; p < one->count[i]; p++, a++) {
            inner[a][0] = item(PMIX_RANK, PMIX_PROC_RANK, one->ranks[i][p], NULL);
            inner[a][1] = item(PMIX_APPNUM, PMIX_UINT32, 0, NULL);
            inner[a][2] = item(PMIX_LOCAL_RANK, PMIX_UINT16, local_rank(one, i, p), NULL);
            inner[a][3] = item(PMIX_NODEID, PMIX_UINT32, (uint32_t)i, NULL);
            inner[a][4] = item(PMIX_HOSTNAME, PMIX_STRING, 0, hosts[i]);
            arrays[a] = (pmix_data_array_t){.type = PMIX_INFO, .size = 5, .array = inner[a]};
            list[n++] = item(PMIX_PROC_DATA, PMIX_DATA_ARRAY, 0, &arrays[a]);
        }
    FINISH(PMIx_server_register_nspace(nspace, (int)one->count[here], list, n, on_done, &is_done));
}

static pid_t rank_start(int j, uint32_t rank)
{
    pmix_proc_t proc = {.rank = rank};
    char **more = NULL;

    nspace_of(j, proc.nspace);
    FINISH(PMIx_server_register_client(&proc, getuid(), getgid(), NULL, on_done, &is_done));
    if (PMIx_server_setup_fork(&proc, &more))
        die("setup_fork", 0);
    pid_t pid = fork();
    if (pid == 0) {
        for (; more && *more; more++)
            putenv(*more);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execvp(command[0], command);
        _exit(127);
    }
    if (pids) {
        fprintf(pids, "rank %u %ld\n", rank, (long)pid);
        fflush(pids);
    }
    return pid;
}

static int node_run(void)
{
    static pmix_server_module_t module = {.client_connected = on_client, .client_finalized = on_client, .abort = on_abort,
                                          .fence_nb = on_fence, .direct_modex = on_dmodex};
    char name[32];
    int worst = 0, live = 0, status;
    pthread_t thread;

    snprintf(name, sizeof(name), "n%d", here);
    snprintf(dir + strlen(dir), 16, "/%d", here);
    mkdir(dir, 0700);
    setenv("PMIX_MCA_psec", "native", 1);
    pmix_info_t list[] = {item(PMIX_SERVER_TMPDIR, PMIX_STRING, 0, dir), item(PMIX_SYSTEM_TMPDIR, PMIX_STRING, 0, dir),
                          item(PMIX_HOSTNAME, PMIX_STRING, 0, name), item(PMIX_SERVER_RANK, PMIX_PROC_RANK, (uint32_t)here, NULL)};
    pmix_status_t rc = PMIx_server_init(&module, list, 4);
    if (rc)
        die("PMIx_server_init", rc);
    if (pids) {
        fprintf(pids, "server %ld\n", (long)getpid());
        fflush(pids);
    }
    pthread_create(&thread, NULL, mesh_run, NULL);
    for (int j = 0; j < job_count; j++)
        if (here < jobs[j].nodes)
            job_register(j);
    for (int j = 0; j < job_count; j++)
        for (uint32_t i = 0; i < jobs[j].count[here]; i++, live++)
            rank_start(j, jobs[j].ranks[here][i]);
    for (; live; live--) {
        if (wait(&status) < 0)
            break;
        int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        worst = code > worst ? code : worst;
    }
    return worst; /* without PMIx_server_finalize: another node's rank may still send requests */
}

static void job_read(const char *text, job *one)
{
    char *end;

    for (one->nodes = 1;; text = end + 1) {
        int node = one->nodes - 1;
        one->ranks[node][one->count[node]++] = (uint32_t)strtoul(text, &end, 10);
        one->size++;
        one->nodes += *end == '/';
        if (!*end)
            break;
    }
    node_count = one->nodes > node_count ? one->nodes : node_count;
}

int main(int argc, char **argv)
{
    int at = 1, worst = 0, status, gate[NODES_MAX][2];
    pid_t nodes[NODES_MAX];

    for (; at + 1 < argc && strcmp(argv[at], "--"); at++) {
        if (!strcmp(argv[at], "--place"))
            is_by_place = true;
        else if (!strcmp(argv[at], "--claim"))
            claim = atol(argv[++at]);
        else if (!strcmp(argv[at], "--pids"))
            pids = fopen(argv[++at], "a");
        else
            job_read(argv[at], &jobs[job_count++]);
    }
    command = argv + at + 1;
    launcher = (long)getpid();
    snprintf(dir, sizeof(dir) - 16, "%s/pmix-test-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(dir))
        die("mkdtemp", 0);
    for (int i = 0; i < node_count; i++)
        for (int k = i + 1; k < node_count; k++) {
            int ends[2];
            if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
                die("socketpair", 0);
            mesh[i][k] = ends[0];
            mesh[k][i] = ends[1];
        }
    for (here = 0; here < node_count; here++) {
        if (pipe2(gate[here], O_CLOEXEC))
            die("pipe", 0);
        nodes[here] = fork();
        if (nodes[here] == 0) { /* stays until all nodes' ranks have ended: it may get requests */
            char go = (char)node_run();
            if (write(gate[here][1], &go, 1) == 1)
                pause();
            _exit(99);
        }
        close(gate[here][1]);
    }
    for (int i = 0; i < node_count; i++) {
        unsigned char code = 137; /* killed */
        if (read(gate[i][0], &code, 1) < 0)
            code = 99;
        worst = code > worst ? code : worst;
    }
    for (int i = 0; i < node_count; i++)
        kill(nodes[i], SIGKILL);
    while (wait(&status) > 0)
        ;
    char remove[300];
    snprintf(remove, sizeof(remove), "rm -rf '%s'", dir);
    if (system(remove))
        worst = 99;
    return worst;
}
