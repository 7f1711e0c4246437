/* SPDX-License-Identifier: BSD-3-Clause
 *
 * main: a random program as a job of any MPI. See random.h.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "random.h"

enum { THREADS = 8 };

static rp_options options = {.seed = 1, .steps = 200};
static int threads = 1;
static MPI_Comm bases[THREADS];

static void usage(void)
{
    fputs("usage: random [--seed N] [--steps N] [--threads N] [--only-steps LIST] [--list] [--verbose] [--plant KIND@STEP]\n"
          "  --threads     each has a plan and a communicator of its own (MPI_THREAD_MULTIPLE)\n"
          "  --only-steps  performs these steps alone: 3,7,20-40\n"
          "  --list        prints the plan (rank 0) and performs nothing\n"
          "  --plant       flip (a sent byte), swap (another message's data), count (an item too few), split (a color), coll (a byte),\n"
          "                put (a byte)\n",
          stderr);
    exit(2);
}

static uint8_t *parse_steps(const char *text)
{
    uint8_t *only = calloc(options.steps + 1, 1);
    char *next = (char *)text;
    while (*next) {
        unsigned long first = strtoul(next, &next, 10), last = *next == '-' ? strtoul(next + 1, &next, 10) : first;
        for (; first <= last && first < options.steps; first++)
            only[first] = 1;
        if (*next && *next++ != ',')
            usage();
    }
    return only;
}

static void parse(int argc, char **argv)
{
    const char *steps = NULL;
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(name, "--list") || !strcmp(name, "--verbose")) {
            *(name[2] == 'l' ? &options.lists : &options.is_verbose) = true;
            continue;
        }
        i++;
        if (!strcmp(name, "--seed"))
            options.seed = strtoull(value, NULL, 10);
        else if (!strcmp(name, "--steps"))
            options.steps = (uint32_t)strtoul(value, NULL, 10);
        else if (!strcmp(name, "--threads"))
            threads = atoi(value);
        else if (!strcmp(name, "--only-steps"))
            steps = value;
        else if (!strcmp(name, "--plant")) {
            char *kind = strdup(value), *at = strchr(kind, '@');
            options.plant_step = at ? (uint32_t)strtoul(at + 1, NULL, 10) : 0;
            if (at)
                *at = 0;
            options.plant = kind;
        } else
            usage();
    }
    if (threads < 1 || threads > THREADS)
        usage();
    if (steps)
        options.only = parse_steps(steps);
}

static void *thread_main(void *arg)
{
    int thread = (int)(intptr_t)arg;
    rp_run(&options, bases[thread], thread);
    return NULL;
}

static void list_plan(int size)
{
    rp *rp = rp_alloc(sizeof *rp);
    rp->options = &options;
    rp->seed = rp_hash(options.seed, 0);
    rp->size = size;
    rp->now = UINT32_MAX;
    rp->comms[0] = (rp_comm){.state = RP_LIVE, .is_order_known = true, .n = {size, 0}, .marks = -1, .is_member = true};
    for (int i = 0; i < size; i++)
        rp->comms[0].members[0][i] = i;
    rp_list(rp, 0, UINT32_MAX);
    free(rp);
}

int main(int argc, char **argv)
{
    pthread_t others[THREADS];
    int rank, size, provided;
    parse(argc, argv);
    MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (options.plant && rank != size - 1)
        options.plant = NULL;
    if (options.lists) {
        if (rank == 0)
            list_plan(size);
        MPI_Finalize();
        return 0;
    }
    if (threads > 1 && provided < MPI_THREAD_MULTIPLE) {
        fprintf(stderr, "random: no MPI_THREAD_MULTIPLE\n");
        MPI_Abort(MPI_COMM_WORLD, 77);
    }
    for (int i = 0; i < threads; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &bases[i]);
    for (int i = 1; i < threads; i++)
        pthread_create(&others[i], NULL, thread_main, (void *)(intptr_t)i);
    thread_main(NULL);
    for (int i = 1; i < threads; i++)
        pthread_join(others[i], NULL);
    for (int i = 0; i < threads; i++)
        MPI_Comm_free(&bases[i]);
    MPI_Finalize();
    if (rank == 0)
        printf("random: seed %llu: %u steps, %d ranks, %d threads: ok\n", (unsigned long long)options.seed, options.steps, size, threads);
    return 0;
}
