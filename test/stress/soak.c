/* SPDX-License-Identifier: BSD-3-Clause
 *
 * soak: a job that uses all operations for a while and verifies every payload; test/stress/soak starts it in many set-ups.
 *   soak -r SEED -s SECONDS -t THREADS -p FILE [-d KIND] [-x KIND] [-b wrong|hang]
 * -p: a file of 1024 bytes for each rank, for its counts; -d: only this kind of round, -x: all but this one; -b: fault of rank 1 from round
 * 10 on; such a job runs until the fault ends it, without a time limit of its own.
 */
#include "soak.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { POOL = 4, ROUNDS_A_LOOK = 4, PLANTED_ROUND = 10 };

static struct {
    uint64_t seed;
    double seconds, begin;
    int threads;
    const char *page, *only, *without, *plant;
    soak_rank *own_page;
    MPI_Comm base[SOAK_THREADS_MAX];
} job = {.seed = 1, .seconds = 3, .threads = 1};

static const soak_deed *deed_pick(soak *s)
{
    const soak_deed *tables[] = {soak_p2p_deeds, soak_coll_deeds};
    unsigned sum = 0, at = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int t = 0; t < 2; t++)
            for (const soak_deed *deed = tables[t]; deed->name; deed++) {
                if ((job.only && strcmp(job.only, deed->name) != 0) || (job.without && strcmp(job.without, deed->name) == 0))
                    continue;
                if (pass && at < deed->weight)
                    return deed;
                at -= pass ? deed->weight : 0;
                sum += pass ? 0 : deed->weight;
            }
        CHECK(sum, "no deed is called %s", job.only ? job.only : "?");
        at = soak_pick(s, sum);
    }
    return NULL;
}

/* Frees a communicator of the pool, or makes one: of all, of a part, or in another order. */
static void pool_change(soak *s, MPI_Comm base, MPI_Comm *place)
{
    if (*place != MPI_COMM_NULL) {
        OK(MPI_Comm_free(place));
        return;
    }
    unsigned way = soak_pick(s, 4), colors = 1 + soak_pick(s, 3);
    int rank;
    OK(MPI_Comm_rank(base, &rank));
    if (way == 0)
        OK(MPI_Comm_dup(base, place));
    else if (way == 1)
        OK(MPI_Comm_split_type(base, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, place));
    else
        OK(MPI_Comm_split(base, (int)((unsigned)rank % colors), way == 2 ? -rank : rank, place));
}

static void *rounds(void *argument)
{
    int me = (int)(intptr_t)argument, goes_on = 1, world_rank;
    MPI_Comm base = job.base[me], pool[POOL];
    soak s = {.page = &job.own_page->thread[me]};
    for (int i = 0; i < POOL; i++)
        pool[i] = MPI_COMM_NULL;
    OK(MPI_Comm_rank(base, &world_rank));
    s.own = job.seed * 7919 + (uint64_t)world_rank * 31 + (uint64_t)me;
    for (unsigned round = 1; goes_on; round++) {
        s.round = round + (unsigned)me * 1000003u;
        s.shared = (job.seed * 1000003ull + (uint64_t)me) * 1000003ull + round;
        for (int i = 0; i < 3; i++)
            check_random(&s.shared);
        int at = (int)soak_pick(&s, POOL);
        if (soak_pick(&s, 12) == 0)
            pool_change(&s, base, &pool[at]);
        const soak_deed *deed = deed_pick(&s);
        s.comm = soak_pick(&s, 2) && pool[at] != MPI_COMM_NULL ? pool[at] : base;
        s.tag = (int)(round % 4000) * 8;
        OK(MPI_Comm_rank(s.comm, &s.rank));
        OK(MPI_Comm_size(s.comm, &s.size));
        snprintf(s.page->deed, sizeof s.page->deed, "%s", deed->name);
        atomic_store(&s.page->round, round);
        s.spoils = job.plant && world_rank == 1 && round >= PLANTED_ROUND;
        while (s.spoils && strcmp(job.plant, "hang") == 0)
            pause();
        deed->run(&s);
        soak_tick(&s);
        if (round % ROUNDS_A_LOOK == 0) {
            snprintf(s.page->deed, sizeof s.page->deed, "(go on?)");
            goes_on = job.plant || MPI_Wtime() - job.begin < job.seconds;
            OK(MPI_Bcast(&goes_on, 1, MPI_INT, 0, base));
        }
    }
    snprintf(s.page->deed, sizeof s.page->deed, "(over)");
    for (int i = 0; i < POOL; i++)
        if (pool[i] != MPI_COMM_NULL)
            OK(MPI_Comm_free(&pool[i]));
    return NULL;
}

static void options_read(int argc, char **argv)
{
    int option;
    while ((option = getopt(argc, argv, "r:s:t:p:d:x:b:")) != -1)
        switch (option) {
        case 'r': job.seed = strtoull(optarg, NULL, 10); break;
        case 's': job.seconds = atof(optarg); break;
        case 't': job.threads = atoi(optarg); break;
        case 'p': job.page = optarg; break;
        case 'd': job.only = optarg; break;
        case 'x': job.without = optarg; break;
        case 'b': job.plant = optarg; break;
        default: exit(2);
        }
    if (job.threads < 1 || job.threads > SOAK_THREADS_MAX)
        exit(2);
}

/* Without -p, or if the file cannot be opened, counts are discarded. */
static soak_rank *page_open(int rank)
{
    _Static_assert(sizeof(soak_rank) <= SOAK_RANK_BYTES, "a rank's line");
    static soak_rank nowhere;
    int fd = job.page ? open(job.page, O_RDWR) : -1;
    char *area = fd < 0 ? MAP_FAILED : mmap(NULL, (size_t)(rank + 1) * SOAK_RANK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return area == MAP_FAILED ? &nowhere : (soak_rank *)(area + (size_t)rank * SOAK_RANK_BYTES);
}

int main(int argc, char **argv)
{
    int rank, size, provided;
    pthread_t threads[SOAK_THREADS_MAX];
    options_read(argc, argv);
    OK(MPI_Init_thread(&argc, &argv, job.threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided));
    CHECK(job.threads == 1 || provided == MPI_THREAD_MULTIPLE);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    check_rank = rank;
    job.own_page = page_open(rank);
    job.own_page->threads = job.threads;
    job.own_page->pid = getpid();
    job.begin = MPI_Wtime();
    for (int i = 0; i < job.threads; i++)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &job.base[i]));
    for (int i = 1; i < job.threads; i++)
        CHECK(pthread_create(&threads[i], NULL, rounds, (void *)(intptr_t)i) == 0);
    rounds(NULL);
    for (int i = 1; i < job.threads; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < job.threads; i++)
        OK(MPI_Comm_free(&job.base[i]));
    OK(MPI_Finalize());
    job.own_page->pid = 0;
    return 0;
}
