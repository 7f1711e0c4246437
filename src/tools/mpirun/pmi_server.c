/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmi_server: see pmi_server.h. A message is a line "cmd=NAME KEY=VALUE ..."; a spawn is several, from "mcmd=spawn" to "endcmd".
 * A client waits for each reply, so a reply always fits the socket. A client that does not read is disconnected.
 */
#include "tools/mpirun/pmi_server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/boot_env.h"
#include "tools/mpirun/report.h"

#define INHERITED_FD 101          /* high: scripts use low numbers explicitly */
#define LINE_MAX_BYTES 65536      /* a client that sends a longer line is disconnected */
#define KEY_MAX 64                /* limits announced to clients */
#define VALUE_MAX 1024
#define TICKET ((uint64_t)1 << 63) /* ticket of barriers; those of the PMIx server are smaller */

typedef struct pair {
    struct pair *next;
    char *value, key[];
} pair;

typedef struct client {
    int fd;             /* -1: closed */
    uint32_t rank, app;
    enum pmi_state state;
    bool is_waiting;    /* has entered a barrier */
    bool in_spawn;      /* between "mcmd=spawn" and "endcmd" */
    buffer in;
} client;

struct pmi_server {
    const options *opts;
    const map *map;
    const char *job;
    pmi_callbacks up;
    uint32_t node;
    client *clients;    /* [count]: ranks of this node that were given a connection */
    uint32_t count, capacity;
    int poll_fd, child; /* poll_fd: epoll; child: the rank's end of the connection being made; -1: none */
    pair **buckets;
    uint32_t bucket_count;
    pack new_pairs;         /* pairs put on this node since the last barrier */
    bool is_gathering, has_reported_spawn;
    char mapping[VALUE_MAX]; /* PMI_process_mapping; "": too long */
};

/* "(vector,(node,nodes,ranks on each),...)". Readers restart at its beginning while ranks are left, so a repeating pattern is written
 * once. */
static void mapping_make(pmi_server *self)
{
    struct { uint32_t node, nodes, ranks; } runs[64];
    uint32_t count = 0, period;
    size_t used;

    for (uint32_t r = 0; r < self->map->ranks; count++) {
        uint32_t node = self->map->node_of[r], ranks = 0;
        if (count == 64)
            return;
        for (; r < self->map->ranks && self->map->node_of[r] == node; r++)
            ranks++;
        if (count && runs[count - 1].ranks == ranks && runs[count - 1].node + runs[count - 1].nodes == node)
            runs[--count].nodes++;
        else
            runs[count].node = node, runs[count].nodes = 1, runs[count].ranks = ranks;
    }
    for (period = 1; period < count; period++) {
        uint32_t i = period;
        while (i < count && !memcmp(&runs[i], &runs[i - period], sizeof(*runs)))
            i++;
        if (i == count)
            break;
    }
    used = (size_t)snprintf(self->mapping, sizeof(self->mapping), "(vector");
    for (uint32_t i = 0; i < period && used < sizeof(self->mapping); i++)
        used += (size_t)snprintf(self->mapping + used, sizeof(self->mapping) - used, ",(%u,%u,%u)",
                                 runs[i].node, runs[i].nodes, runs[i].ranks);
    if (used + 2 > sizeof(self->mapping))
        *self->mapping = '\0';
    else
        strcpy(self->mapping + used, ")");
}

pmi_server *pmi_server_open(const options *opts, const char *job, const map *map, uint32_t node, const pmi_callbacks *up)
{
    pmi_server *self = calloc(1, sizeof(*self));

    if (!self)
        return NULL;
    *self = (pmi_server){.opts = opts, .map = map, .job = job, .node = node, .up = *up, .child = -1};
    self->capacity = map->nodes[node].count;
    self->clients = calloc(self->capacity, sizeof(*self->clients));
    for (self->bucket_count = 64; self->bucket_count < 2 * map->ranks;)
        self->bucket_count *= 2;
    self->buckets = calloc(self->bucket_count, sizeof(*self->buckets));
    self->poll_fd = epoll_create1(EPOLL_CLOEXEC);
    mapping_make(self);
    if (self->clients && self->buckets && self->poll_fd >= 0)
        return self;
    pmi_server_close(self);
    return NULL;
}

int pmi_server_environ(pmi_server *self, uint32_t rank, uint32_t app, env_list *env)
{
    client *one = &self->clients[self->count];
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = self->count};
    struct stat stat;
    char text[300];
    int ends[2];

    if (self->count == self->capacity || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return -1;
    self->child = fcntl(ends[1], F_DUPFD_CLOEXEC, INHERITED_FD);
    close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    if (self->child < 0 || fstat(self->child, &stat) || epoll_ctl(self->poll_fd, EPOLL_CTL_ADD, ends[0], &event)) {
        close(ends[0]);
        return -1;
    }
    *one = (client){.fd = ends[0], .rank = rank, .app = app};
    self->count++;
    /* the socket's inode shows Weft, which needs no PMI, that this server is mpirun's and not another launcher's */
    snprintf(text, sizeof(text), WEFT_BOOT_ENV_PMI_NAME "=%d:%llu", self->child, (unsigned long long)stat.st_ino);
    int rc = env_set(env, text);
    snprintf(text, sizeof(text), "PMI_FD=%d", self->child);
    rc |= env_set(env, text);
    snprintf(text, sizeof(text), "PMI_RANK=%u", rank);
    rc |= env_set(env, text);
    snprintf(text, sizeof(text), "PMI_SIZE=%u", self->map->ranks);
    rc |= env_set(env, text);
    return rc;
}

void pmi_server_child(const pmi_server *self)
{
    if (self->child >= 0)
        fcntl(self->child, F_SETFD, 0);
}

void pmi_server_started(pmi_server *self)
{
    if (self->child >= 0)
        close(self->child);
    self->child = -1;
}

int pmi_server_fd(const pmi_server *self)
{
    return self->poll_fd;
}

static void client_close(client *one)
{
    if (one->fd >= 0)
        close(one->fd); /* also removes it from epoll */
    one->fd = -1;
    buffer_free(&one->in);
}

static void reply(client *one, const char *text)
{
    size_t bytes = strlen(text);

    if (one->fd >= 0 && send(one->fd, text, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
        client_close(one);
}

/* Copies the value of a field of a line, up to a blank. False: it is missing or too long. */
static bool field(const char *line, const char *name, char *value, size_t capacity)
{
    size_t length = strlen(name);

    for (const char *at = line; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        size_t bytes = strcspn(at, " ");
        if (bytes <= length || strncmp(at, name, length) || at[length] != '=')
            continue;
        bytes -= length + 1;
        if (bytes >= capacity)
            return false;
        memcpy(value, at + length + 1, bytes);
        value[bytes] = '\0';
        return true;
    }
    return false;
}

static pair **pair_find(pmi_server *self, const char *key)
{
    pair **at = &self->buckets[weft_boot_env_hash(key) & (self->bucket_count - 1)];

    while (*at && strcmp((*at)->key, key))
        at = &(*at)->next;
    return at;
}

/* 0 or -1: out of memory. */
static int pair_set(pmi_server *self, const char *key, const char *value)
{
    pair **at = pair_find(self, key), *one = *at;
    char *copy = strdup(value);

    if (copy && !one) {
        one = malloc(sizeof(*one) + strlen(key) + 1);
        if (one) {
            *one = (pair){0};
            strcpy(one->key, key);
            *at = one;
        }
    }
    if (!copy || !one) {
        free(copy);
        return -1;
    }
    free(one->value);
    one->value = copy;
    return 0;
}

static void on_put(pmi_server *self, client *one, const char *line)
{
    char key[KEY_MAX], value[VALUE_MAX];
    bool is_sound = field(line, "key", key, sizeof(key)) && field(line, "value", value, sizeof(value));

    if (!is_sound || pair_set(self, key, value)) {
        reply(one, is_sound ? "cmd=put_result rc=-1 msg=no_memory\n" : "cmd=put_result rc=-1 msg=key_or_value_too_long\n");
        return;
    }
    if (self->map->node_count > 1) {
        pack_text(&self->new_pairs, key);
        pack_text(&self->new_pairs, value);
    }
    reply(one, "cmd=put_result rc=0 msg=success\n");
}

static void on_get(pmi_server *self, client *one, const char *line)
{
    char key[KEY_MAX], text[VALUE_MAX + 64];
    const char *value = NULL;

    if (field(line, "key", key, sizeof(key))) {
        pair *found = *pair_find(self, key);
        value = found ? found->value : !strcmp(key, "PMI_process_mapping") && *self->mapping ? self->mapping : NULL;
    }
    snprintf(text, sizeof(text),
             value ? "cmd=get_result rc=0 msg=success value=%s\n" : "cmd=get_result rc=-1 msg=key_not_found value=unknown\n",
             value);
    reply(one, text);
}

static void barrier_end(pmi_server *self)
{
    for (uint32_t i = 0; i < self->count; i++) {
        if (!self->clients[i].is_waiting)
            continue;
        self->clients[i].is_waiting = false;
        reply(&self->clients[i], "cmd=barrier_out rc=0\n");
    }
}

/* When all unfinalized ranks of the node have entered the barrier: completes it, on several hosts by a gather at the head. */
static void barrier_try(pmi_server *self)
{
    pmix_msg what = {.kind = PMIX_MSG_COLL, .rank = PMIX_COLL_PMI, .ticket = TICKET};
    uint32_t waiting = 0, awaited = 0;
    pack body = {0};

    for (uint32_t i = 0; i < self->count; i++) {
        waiting += self->clients[i].is_waiting;
        awaited += self->clients[i].state != PMI_FINALIZED;
    }
    if (!waiting || waiting < awaited || self->is_gathering)
        return;
    if (self->map->node_count == 1) {
        barrier_end(self);
        return;
    }
    pack_u32(&body, 0); /* 0: all ranks */
    pack_bytes(&body, self->new_pairs.bytes.bytes + self->new_pairs.bytes.start, self->new_pairs.bytes.used);
    what.body = body.has_failed || self->new_pairs.has_failed ? NULL : refbuf_copy(body.bytes.bytes + body.bytes.start, body.bytes.used);
    buffer_free(&body.bytes);
    buffer_free(&self->new_pairs.bytes);
    if (!what.body) {
        report(1, "out of memory for keys that ranks have put by PMI");
        self->up.aborted(self->up.owner, self->clients[0].rank, 1);
        return;
    }
    self->is_gathering = true;
    self->up.pmix_msg(self->up.owner, &what);
}

bool pmi_server_handle(pmi_server *self, const pmix_msg *what)
{
    if (!self || what->kind != PMIX_MSG_DONE || what->ticket != TICKET)
        return false;
    unpack from = {.at = what->body ? what->body->data : NULL, .left = what->body ? what->body->bytes : 0};
    bool is_sound = what->status == PMIX_MSG_OK;

    while (is_sound && from.left) {
        const char *key = unpack_text(&from), *value = unpack_text(&from);
        is_sound = !from.has_failed && key && value && !pair_set(self, key, value);
    }
    refbuf_release(what->body);
    self->is_gathering = false;
    if (is_sound) {
        barrier_end(self);
    } else {
        report(1, "a PMI barrier has failed: the ranks' keys cannot be sent to all hosts");
        self->up.aborted(self->up.owner, self->clients[0].rank, 1);
    }
    return true;
}

static void on_spawn(pmi_server *self, client *one)
{
    if (!self->has_reported_spawn)
        report(0, "rank %u has called MPI_Comm_spawn (PMI): this mpirun cannot start processes in a running job", one->rank);
    self->has_reported_spawn = true;
    reply(one, "cmd=spawn_result rc=-1 msg=not_supported\n");
}

static void on_init(client *one, const char *line)
{
    char version[16] = "";

    if (!field(line, "pmi_version", version, sizeof(version)) || strcmp(version, "1") || one->state != PMI_NONE) {
        if (one->state != PMI_NONE)
            report(0, "rank %u starts a second MPI program: each rank can be one MPI program", one->rank);
        reply(one, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n");
        return;
    }
    one->state = PMI_BEGUN;
    reply(one, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
}

static void on_abort(pmi_server *self, client *one, const char *line)
{
    char code[16] = "";

    field(line, "exitcode", code, sizeof(code));
    self->up.aborted(self->up.owner, one->rank, *code ? atoi(code) : 1);
}

static void on_line(pmi_server *self, client *one, const char *line)
{
    char cmd[40] = "", text[400];

    if (one->in_spawn || !strncmp(line, "mcmd=spawn", 10)) {
        one->in_spawn = strcmp(line, "endcmd") != 0;
        if (!one->in_spawn)
            on_spawn(self, one);
        return;
    }
    field(line, "cmd", cmd, sizeof(cmd));
    if (!strcmp(cmd, "init")) {
        on_init(one, line);
    } else if (!strcmp(cmd, "put")) {
        on_put(self, one, line);
    } else if (!strcmp(cmd, "get")) {
        on_get(self, one, line);
    } else if (!strcmp(cmd, "barrier_in")) {
        one->is_waiting = true;
        barrier_try(self);
    } else if (!strcmp(cmd, "abort")) {
        on_abort(self, one, line);
    } else if (!strcmp(cmd, "finalize")) {
        one->state = PMI_FINALIZED;
        reply(one, "cmd=finalize_ack rc=0\n");
        barrier_try(self);
    } else if (!strcmp(cmd, "get_maxes")) {
        snprintf(text, sizeof(text), "cmd=maxes kvsname_max=256 keylen_max=%d vallen_max=%d rc=0\n", KEY_MAX, VALUE_MAX);
        reply(one, text);
    } else if (!strcmp(cmd, "get_appnum")) {
        snprintf(text, sizeof(text), "cmd=appnum appnum=%u rc=0\n", one->app);
        reply(one, text);
    } else if (!strcmp(cmd, "get_universe_size")) {
        snprintf(text, sizeof(text), "cmd=universe_size size=%u rc=0\n", self->map->ranks);
        reply(one, text);
    } else if (!strcmp(cmd, "get_my_kvsname")) {
        snprintf(text, sizeof(text), "cmd=my_kvsname kvsname=%.255s rc=0\n", self->job);
        reply(one, text);
    } else { /* publish_name, lookup_name, unpublish_name: NAME_result */
        size_t length = strcspn(cmd, "_");
        snprintf(text, sizeof(text), "cmd=%.*s_result rc=-1 msg=not_supported info=not_supported\n", (int)length, cmd);
        reply(one, text);
    }
}

static void lines_handle(pmi_server *self, client *one)
{
    while (one->fd >= 0 && one->in.used) {
        char *begin = one->in.bytes + one->in.start, *end = memchr(begin, '\n', one->in.used);
        if (!end && one->in.used > LINE_MAX_BYTES)
            client_close(one);
        if (!end)
            return;
        *end = '\0';
        char *line = strdup(begin); /* copied: a failing reply frees the buffer */
        buffer_drop(&one->in, (size_t)(end + 1 - begin));
        if (line)
            on_line(self, one, line);
        free(line);
    }
}

static void client_read(pmi_server *self, client *one)
{
    char bytes[4096];
    ssize_t n = 0;

    while (one->fd >= 0 && (n = recv(one->fd, bytes, sizeof(bytes), 0)) > 0)
        if (buffer_add(&one->in, bytes, (size_t)n))
            client_close(one);
        else
            lines_handle(self, one);
    if (one->fd >= 0 && (n == 0 || (errno != EAGAIN && errno != EINTR)))
        client_close(one);
}

void pmi_server_progress(pmi_server *self)
{
    struct epoll_event events[64];
    int count;

    while (self && (count = epoll_wait(self->poll_fd, events, 64, 0)) > 0)
        for (int i = 0; i < count; i++)
            client_read(self, &self->clients[events[i].data.u32]);
}

enum pmi_state pmi_server_rank_ended(pmi_server *self, uint32_t rank)
{
    for (uint32_t i = 0; self && i < self->count; i++) {
        client *one = &self->clients[i];
        if (one->rank != rank)
            continue;
        client_read(self, one);
        return one->state;
    }
    return PMI_NONE;
}

void pmi_server_close(pmi_server *self)
{
    if (!self)
        return;
    for (uint32_t i = 0; i < self->count; i++)
        client_close(&self->clients[i]);
    for (uint32_t b = 0; self->buckets && b < self->bucket_count; b++)
        for (pair *one = self->buckets[b], *next; one; one = next) {
            next = one->next;
            free(one->value);
            free(one);
        }
    pmi_server_started(self);
    if (self->poll_fd >= 0)
        close(self->poll_fd);
    buffer_free(&self->new_pairs.bytes);
    free(self->buckets);
    free(self->clients);
    free(self);
}
