/* SPDX-License-Identifier: BSD-3-Clause
 * store: a storage server (rank 0) and its clients. A client asks for a block by its number; the answer is an address in the server's
 * memory, which the client then reads by MPI_Get or writes by MPI_Put: the server's CPU never touches data. Each block carries a CRC.
 *     mpicc store.c crc.c -o store && mpirun -n 4 ./store [--requests N] [--block BYTES] [--blocks N] [--abandon N] [--kill N]
 * A write goes to a place of its own and counts when the client commits it: readers see the old block or the new one, never parts of both.
 * --abandon N: each client gives up every N-th of its writes halfway and never says so: the block keeps its old data.
 * With mpirun --enable-recovery the death of a client harms nobody: the server hears of it by an error of its receive, gives back the
 * client's places, and serves the others. Since collectives cannot run without the dead, the end is agreed on by messages.
 * --kill N: the last client kills itself in its N-th step: with an address in hand, in the midst of a get or put, or before the commit.
 * Exit code: 0 every block read had its CRC and its own content, and no place was lost; 1 not so, 2 bad usage.
 */
#include "crc.h"

#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#if MPI_VERSION < 4
#define MPI_ERR_PROC_ABORTED MPI_ERR_OTHER
#endif

enum { TAG_REQUEST = 1, TAG_ANSWER = 2 };

enum kind { READ, WRITE, COMMIT, QUIT };

typedef struct request
{
    int64_t kind, block; /* block: of QUIT: bytes moved */
    int64_t crc;         /* of COMMIT; of QUIT: wrong blocks */
} request;

typedef struct answer
{
    int64_t place; /* displacement in the server's window */
    int64_t crc;   /* READ; QUIT: clients that died */
} answer;

typedef struct options
{
    int64_t requests, bytes, blocks, abandon, kill; /* requests: of each client */
} options;

/* Server: a place is free, holds a block, or is being written by a client. A place is reused when no client reads it. */
typedef struct server
{
    options o;
    int clients;
    int64_t places, *place_of, *crc_of; /* of each block */
    int64_t *readers;                   /* of each place */
    int64_t *reads, *writes;            /* of each client: place that it reads, that it writes; -1: none */
    int64_t *free, free_count;          /* places */
    int64_t *read_block;                /* of each client */
    int dead;                           /* clients */
    int64_t moved, wrong;               /* of all clients */
} server;

static void *take(size_t bytes)
{
    void *p = calloc(1, bytes ? bytes : 1);

    if (!p) {
        fprintf(stderr, "store: out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return p;
}

/* --- server ---------------------------------------------------------------------------------------------------------- */

static int is_current(const server *s, int64_t place, int64_t block)
{
    return s->place_of[block] == place;
}

/* A place is free if no block refers to it and no thread reads it. */
static void leave(server *s, int64_t place, int64_t block)
{
    if (!s->readers[place] && !is_current(s, place, block)) {
        s->free[s->free_count++] = place;
    }
}

/* Whatever the client had begun has ended or was abandoned: it asks for something new. */
static void forget(server *s, int client)
{
    if (s->reads[client] >= 0) {
        s->readers[s->reads[client]]--;
        leave(s, s->reads[client], s->read_block[client]);
        s->reads[client] = -1;
    }
    if (s->writes[client] >= 0) {
        s->free[s->free_count++] = s->writes[client];
        s->writes[client] = -1;
    }
}

static void commit(server *s, int client, const request *q)
{
    int64_t old = s->place_of[q->block];

    s->place_of[q->block] = s->writes[client];
    s->crc_of[q->block] = q->crc;
    s->writes[client] = -1;
    leave(s, old, q->block);
}

/* Class of an error; MPI_SUCCESS: none. */
static int class_of(int code)
{
    int class = MPI_SUCCESS;

    if (code != MPI_SUCCESS) {
        MPI_Error_class(code, &class);
    }
    return class;
}

/* Receives the next request. *client: its sender. Returns 0 if *client has died instead. */
static int receive(request *q, int *client)
{
    MPI_Status status;
    int rc = MPI_Recv(q, sizeof *q, MPI_BYTE, MPI_ANY_SOURCE, TAG_REQUEST, MPI_COMM_WORLD, &status);

    *client = status.MPI_SOURCE - 1;
    if (rc != MPI_SUCCESS && class_of(rc) != MPI_ERR_PROC_ABORTED) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return rc == MPI_SUCCESS;
}

/* Sends an answer. The error of a client that has died is ignored: the next receive reports it. */
static void reply(int client, const answer *a)
{
    int rc = MPI_Send(a, sizeof *a, MPI_BYTE, client + 1, TAG_ANSWER, MPI_COMM_WORLD);

    if (rc != MPI_SUCCESS && class_of(rc) != MPI_ERR_PROC_ABORTED) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void serve(server *s)
{
    char *has_quit = take((size_t)s->clients);
    answer last;

    for (int left = s->clients; left; ) {
        request q;
        answer a = {0, 0};
        int client;
        if (!receive(&q, &client)) {
            forget(s, client);
            left -= !has_quit[client];
            s->dead++;
            continue;
        }
        if (q.kind == COMMIT) {
            commit(s, client, &q);
        } else {
            forget(s, client);
        }
        if (q.kind == QUIT) {
            has_quit[client] = 1;
            s->moved += q.block;
            s->wrong += q.crc;
            left--;
            continue;
        }
        if (q.kind == READ) {
            s->reads[client] = s->place_of[q.block];
            s->read_block[client] = q.block;
            s->readers[s->reads[client]]++;
            a = (answer){s->reads[client] * s->o.bytes, s->crc_of[q.block]};
        } else if (q.kind == WRITE) {
            s->writes[client] = s->free[--s->free_count]; /* there is one: a client holds two places at most */
            a.place = s->writes[client] * s->o.bytes;
        }
        reply(client, &a);
    }
    last = (answer){0, s->dead};
    for (int i = 0; i < s->clients; i++) {
        if (has_quit[i]) {
            reply(i, &last);
        }
    }
    free(has_quit);
}

/* --- clients --------------------------------------------------------------------------------------------------------- */

static uint64_t random_of(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static answer ask(const request *q)
{
    answer a;

    if (MPI_Send(q, sizeof *q, MPI_BYTE, 0, TAG_REQUEST, MPI_COMM_WORLD) != MPI_SUCCESS ||
        MPI_Recv(&a, sizeof a, MPI_BYTE, 0, TAG_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
        fprintf(stderr, "store: the server is lost\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return a;
}

/* A block's content: its number, a writer and a version, then words that follow from them. */
static void fill(uint64_t *data, const options *o, int64_t block, uint64_t version)
{
    data[0] = (uint64_t)block;
    data[1] = version;
    for (int64_t i = 2; i < o->bytes / 8; i++) {
        data[i] = version * 0x9e3779b97f4a7c15u + (uint64_t)(block * 7919 + i);
    }
}

static int wrong_content(const uint64_t *data, const options *o, int64_t block)
{
    int wrong = data[0] != (uint64_t)block;

    for (int64_t i = 2; i < o->bytes / 8; i++) {
        wrong |= data[i] != data[1] * 0x9e3779b97f4a7c15u + (uint64_t)(block * 7919 + i);
    }
    return wrong;
}

/* Between any two steps of the protocol. kill_at: the step in which this client dies; 0: none. */
static void step(int64_t *steps, int64_t kill_at)
{
    if (++*steps == kill_at) {
        raise(SIGKILL);
    }
}

/* kill_at: see step(). Returns the number of clients that have died. */
static int client(const options *o, int rank, int64_t kill_at, MPI_Win win)
{
    uint64_t *data = take((size_t)o->bytes), state = (uint64_t)rank * 7919;
    int64_t moved = 0, steps = 0;
    int wrong = 0, writes = 0;

    for (int64_t i = 0; i < o->requests; i++) {
        request q = {random_of(&state) % 3 ? READ : WRITE, (int64_t)(random_of(&state) % (uint64_t)o->blocks), 0};
        answer a = ask(&q);
        step(&steps, kill_at);
        if (q.kind == READ) {
            MPI_Get(data, (int)o->bytes, MPI_BYTE, 0, a.place, (int)o->bytes, MPI_BYTE, win);
            step(&steps, kill_at);
            MPI_Win_flush(0, win);
            wrong += crc32_of(data, (size_t)o->bytes) != (uint32_t)a.crc || wrong_content(data, o, q.block);
        } else {
            int is_abandoned = ++writes && o->abandon && writes % o->abandon == 0;
            fill(data, o, q.block, (uint64_t)rank << 32 | (uint64_t)i);
            MPI_Put(data, (int)(is_abandoned ? o->bytes / 2 : o->bytes), MPI_BYTE, 0, a.place,
                    (int)(is_abandoned ? o->bytes / 2 : o->bytes), MPI_BYTE, win);
            step(&steps, kill_at);
            MPI_Win_flush(0, win); /* before the commit: readers must find it all */
            step(&steps, kill_at);
            if (!is_abandoned) {
                q = (request){COMMIT, q.block, crc32_of(data, (size_t)o->bytes)};
                ask(&q);
            }
        }
        moved += o->bytes;
    }
    request q = {QUIT, moved, wrong};
    free(data);
    return (int)ask(&q).crc;
}

/* --- both ------------------------------------------------------------------------------------------------------------ */

static double cpu_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec + 1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static server *server_open(const options *o, int clients, unsigned char *memory)
{
    server *s = take(sizeof *s);
    size_t n = (size_t)clients;

    s->o = *o;
    s->clients = clients;
    s->places = o->blocks + 2 * clients;
    s->place_of = take((size_t)o->blocks * sizeof *s->place_of);
    s->crc_of = take((size_t)o->blocks * sizeof *s->crc_of);
    s->read_block = take(n * sizeof *s->read_block);
    s->readers = take((size_t)s->places * sizeof *s->readers);
    s->free = take((size_t)s->places * sizeof *s->free);
    s->reads = take(n * sizeof *s->reads);
    s->writes = take(n * sizeof *s->writes);
    memset(s->reads, 0xff, n * sizeof *s->reads);
    memset(s->writes, 0xff, n * sizeof *s->writes);
    for (int64_t b = 0; b < s->places; b++) {
        uint64_t *data = (uint64_t *)(void *)(memory + b * o->bytes);
        if (b < o->blocks) {
            fill(data, o, b, 0);
            s->place_of[b] = b;
            s->crc_of[b] = crc32_of(data, (size_t)o->bytes);
        } else {
            memset(data, 0, (size_t)o->bytes);
            s->free[s->free_count++] = b;
        }
    }
    return s;
}

static void server_close(server *s)
{
    free(s->place_of);
    free(s->crc_of);
    free(s->readers);
    free(s->read_block);
    free(s->free);
    free(s->reads);
    free(s->writes);
    free(s);
}

static int parse(options *o, int argc, char **argv)
{
    struct { const char *name; int64_t *to, least, most; } rows[] = {
        {"--requests", &o->requests, 1, 1 << 30}, {"--block", &o->bytes, 16, 1 << 28}, {"--blocks", &o->blocks, 1, 1 << 20},
        {"--abandon", &o->abandon, 0, 1 << 20}, {"--kill", &o->kill, 1, 1 << 20}};
    for (int i = 1; i < argc; i += 2) {
        int is_known = 0;
        for (size_t k = 0; k < sizeof rows / sizeof *rows && i + 1 < argc; k++) {
            if (!strcmp(argv[i], rows[k].name)) {
                *rows[k].to = strtol(argv[i + 1], NULL, 10);
                is_known = *rows[k].to >= rows[k].least && *rows[k].to <= rows[k].most;
            }
        }
        if (!is_known) {
            return -1;
        }
    }
    return o->bytes % 8 ? -1 : 0;
}

/* Runs all ranks; rank 0 prints the line. Returns, at rank 0, the number of wrong blocks of all clients. */
static int run(const options *o, int rank, int ranks)
{
    MPI_Win win;
    unsigned char *memory;
    server *s = NULL;
    int dead, wrong = 0;
    int64_t lost;
    double time, cpu;

    MPI_Win_allocate(rank ? 0 : (o->blocks + 2 * (ranks - 1)) * o->bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_lock_all(0, win);
    if (!rank) {
        s = server_open(o, ranks - 1, memory);
    }
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    time = MPI_Wtime();
    cpu = cpu_seconds();
    if (rank) {
        dead = client(o, rank, rank == ranks - 1 ? o->kill : 0, win);
    } else {
        serve(s);
        cpu = cpu_seconds() - cpu;
        time = MPI_Wtime() - time;
        lost = s->places - o->blocks - s->free_count; /* every place that has no block is free again */
        printf("store: %d clients, %lld requests each, blocks of %lld bytes: %.3f GB/s, server's CPU s/GB: %.3f, %d wrong, %d died, "
               "%lld places lost\n",
               ranks - 1, (long long)o->requests, (long long)o->bytes, (double)s->moved / time * 1e-9, cpu / ((double)s->moved * 1e-9),
               (int)s->wrong, s->dead, (long long)lost);
        dead = s->dead;
        wrong = s->wrong || lost;
        server_close(s);
    }
    MPI_Win_unlock_all(win);
    if (!dead) { /* collective */
        MPI_Win_free(&win);
    }
    return wrong;
}

int main(int argc, char **argv)
{
    options o = {.requests = 1000, .bytes = 65536, .blocks = 64, .abandon = 0, .kill = 0};
    int rank, ranks, wrong;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (parse(&o, argc, argv) || ranks < 2) {
        if (!rank) {
            fprintf(stderr, "usage: mpirun -n 2 store [--requests N] [--block BYTES] [--blocks N] [--abandon N] [--kill N]\n"
                            "At least 2 ranks. BYTES: a multiple of 8, at least 16.\n");
        }
        MPI_Finalize();
        return 2;
    }
    wrong = run(&o, rank, ranks);
    MPI_Finalize();
    return wrong != 0;
}
