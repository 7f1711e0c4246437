/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_hosts: a plain PMIx client for test/launch/pmix_hosts. argv[1] names the test; a success prints one line per rank, a failure prints
 * the reason and exits with 1.
 */
#include <pmix.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pmix_proc_t me;
static uint32_t size;
static char key[64]; /* of what is tried now: whoever has seen a value may keep it */
static pmix_info_t patience = {.key = PMIX_TIMEOUT, .value = {.type = PMIX_INT, .data.integer = 1}};
static pmix_info_t collect = {.key = PMIX_COLLECT_DATA, .value = {.type = PMIX_BOOL, .data.flag = true}};

static void must(const char *what, pmix_status_t got, pmix_status_t wanted)
{
    if (got == wanted)
        return;
    printf("rank %u: %s gave %s, not %s\n", me.rank, what, PMIx_Error_string(got), PMIx_Error_string(wanted));
    fflush(stdout);
    _exit(1);
}

static pmix_proc_t rank_of(uint32_t rank)
{
    pmix_proc_t proc = me;

    proc.rank = rank;
    return proc;
}

/* A value of this rank's own making: byte i of rank r is a function of both. */
static char byte_of(uint32_t rank, size_t i)
{
    return (char)(rank * 31 + i * 7 + i / 251);
}

static void put(size_t bytes)
{
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT, .data.bo = {.bytes = malloc(bytes), .size = bytes}};

    for (size_t i = 0; i < bytes; i++)
        value.data.bo.bytes[i] = byte_of(me.rank, i);
    must("PMIx_Put", PMIx_Put(PMIX_GLOBAL, key, &value), PMIX_SUCCESS);
    must("PMIx_Commit", PMIx_Commit(), PMIX_SUCCESS);
    free(value.data.bo.bytes);
}

/* again: retries while the key is missing: libpmix may report so to a client of its own server while the owner commits. */
static void get_from(uint32_t rank, size_t bytes, bool again)
{
    pmix_proc_t proc = rank_of(rank);
    pmix_value_t *found;
    pmix_status_t status = PMIx_Get(&proc, key, NULL, 0, &found);

    while (again && (status == PMIX_ERR_NOT_FOUND || status == PMIX_ERR_TIMEOUT)) {
        usleep(10000);
        status = PMIx_Get(&proc, key, NULL, 0, &found);
    }
    must("PMIx_Get", status, PMIX_SUCCESS);
    bool is_right = found->type == PMIX_BYTE_OBJECT && found->data.bo.size == bytes;
    for (size_t i = 0; is_right && i < bytes; i++)
        is_right = found->data.bo.bytes[i] == byte_of(rank, i);
    if (!is_right) {
        printf("rank %u: what rank %u put has come wrong\n", me.rank, rank);
        _exit(1);
    }
    free(found->data.bo.bytes);
    free(found);
}

static void get(uint32_t rank, size_t bytes)
{
    get_from(rank, bytes, false);
}

static void fence_all(void)
{
    must("PMIx_Fence", PMIx_Fence(NULL, 0, NULL, 0), PMIX_SUCCESS);
}

static void fence(size_t bytes)
{
    put(bytes);
    must("PMIx_Fence with data", PMIx_Fence(NULL, 0, &collect, 1), PMIX_SUCCESS);
    for (uint32_t r = 0; r < size; r++)
        get(r, bytes);
    for (int i = 0; i < 20; i++)
        fence_all();
}

/* Fence without data: each value is fetched. */
static void lazy(size_t bytes)
{
    put(bytes);
    fence_all();
    for (uint32_t r = 0; r < size; r++)
        get((me.rank + r) % size, bytes);
    fence_all();
}

/* Without a fence: the first get waits for the owner's commit. */
static void early(void)
{
    if (me.rank % 2)
        put(100);
    for (uint32_t r = 1; r < size; r += 2)
        get_from(r, 100, true);
    if (me.rank % 2 == 0)
        put(100);
    for (uint32_t r = 0; r < size; r += 2)
        get_from(r, 100, true);
    fence_all();
}

/* Some of the ranks, in an order of their own; the two fences run at once. */
static void parts(void)
{
    pmix_proc_t some[64];
    size_t count = 0;

    for (uint32_t r = size; r-- > 0;)
        if (r % 2 == me.rank % 2)
            some[count++] = rank_of(r);
    put(100);
    for (int i = 0; i < 10; i++)
        must("PMIx_Fence of some", PMIx_Fence(some, count, &collect, 1), PMIX_SUCCESS);
    for (size_t i = 0; i < count; i++)
        get(some[i].rank, 100);
    fence_all();
}

static void who(void)
{
    pmix_proc_t all = rank_of(PMIX_RANK_WILDCARD);
    const char *keys[] = {PMIX_NUM_NODES, PMIX_LOCAL_SIZE, PMIX_NODEID};
    pmix_value_t *found, *peers, *host;
    uint32_t told[3];

    for (int i = 0; i < 3; i++) {
        must(keys[i], PMIx_Get(&all, keys[i], NULL, 0, &found), PMIX_SUCCESS);
        told[i] = found->data.uint32;
    }
    must("local peers", PMIx_Get(&all, PMIX_LOCAL_PEERS, NULL, 0, &peers), PMIX_SUCCESS);
    printf("rank %u of %u: node %u of %u, with %s (%u)", me.rank, size, told[2], told[0], peers->data.string, told[1]);
    for (uint32_t r = 0; r < size; r++) {
        pmix_proc_t proc = rank_of(r);
        must("local rank", PMIx_Get(&proc, PMIX_LOCAL_RANK, NULL, 0, &found), PMIX_SUCCESS);
        must("host", PMIx_Get(&proc, PMIX_HOSTNAME, NULL, 0, &host), PMIX_SUCCESS);
        printf(" %u@%s", found->data.uint16, host->data.string);
    }
    printf("\n");
}

static void publish(const char *key, uint32_t number)
{
    pmix_info_t item = {.value = {.type = PMIX_UINT32, .data.uint32 = number}};

    snprintf(item.key, sizeof(item.key), "%s", key);
    must("PMIx_Publish", PMIx_Publish(&item, 1), PMIX_SUCCESS);
}

/* The number; `status` is to come of it. */
static uint32_t lookup(const char *key, bool waits, pmix_status_t status)
{
    pmix_info_t wait = {.key = PMIX_WAIT, .value = {.type = PMIX_INT}};
    pmix_pdata_t item;

    memset(&item, 0, sizeof(item));
    snprintf(item.key, sizeof(item.key), "%s", key);
    must("PMIx_Lookup", PMIx_Lookup(&item, 1, waits ? &wait : NULL, waits), status);
    return item.value.data.uint32;
}

static void board(void)
{
    char own[32], next[32];
    char *keys[] = {"port", NULL};

    snprintf(own, sizeof(own), "number-%u", me.rank);
    snprintf(next, sizeof(next), "number-%u", (me.rank + 1) % size);
    publish(own, me.rank * 5);
    if (lookup(next, true, PMIX_SUCCESS) != (me.rank + 1) % size * 5)
        must("what was looked up", PMIX_ERROR, PMIX_SUCCESS);
    lookup("nothing", false, PMIX_ERR_NOT_FOUND);
    if (me.rank == 0)
        publish("port", 7);
    lookup("port", true, PMIX_SUCCESS);
    fence_all();
    if (me.rank == 0)
        must("PMIx_Unpublish", PMIx_Unpublish(keys, NULL, 0), PMIX_SUCCESS);
    fence_all();
    lookup("port", false, PMIX_ERR_NOT_FOUND);
    fence_all();
}

/* A fence that one rank does not enter in time times out on each that does; the next one succeeds. */
static void late(void)
{
    if (me.rank == 0) {
        must("a fence of few", PMIx_Fence(NULL, 0, &patience, 1), PMIX_ERR_TIMEOUT);
        publish("go-fence", 1);
    } else {
        lookup("go-fence", true, PMIX_SUCCESS);
        must("a fence that is late", PMIx_Fence(NULL, 0, NULL, 0), PMIX_ERR_TIMEOUT);
    }
    fence_all();
    fence_all();
}

static void late_get(void)
{
    pmix_proc_t last = rank_of(size - 1);
    pmix_value_t *found;

    if (me.rank == 0) {
        must("what nobody has put", PMIx_Get(&last, key, &patience, 1, &found), PMIX_ERR_TIMEOUT);
        publish("go-get", 1);
    } else {
        lookup("go-get", true, PMIX_SUCCESS);
    }
    if (me.rank == size - 1)
        put(50);
    get(size - 1, 50);
    fence_all();
}

/* The last rank leaves without a word. */
static void leave(void)
{
    pmix_proc_t last = rank_of(size - 1);
    pmix_value_t *found;

    if (me.rank == size - 1)
        return;
    must("what will never be put", PMIx_Get(&last, key, NULL, 0, &found), PMIX_ERR_NOT_FOUND);
    pmix_status_t status = PMIx_Fence(NULL, 0, NULL, 0);
    if (status != PMIX_SUCCESS)
        printf("rank %u: a fence without one is told %s\n", me.rank, PMIx_Error_string(status));
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static uint32_t events, event_sum;

static void event_take(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t count, pmix_info_t results[],
                       size_t result_count, pmix_event_notification_cbfunc_fn_t done, void *data)
{
    (void)id, (void)status, (void)results, (void)result_count;
    pthread_mutex_lock(&lock);
    events++;
    for (size_t i = 0; i < count; i++)
        if (!strcmp(info[i].key, "number"))
            event_sum += info[i].value.data.uint32 + source->rank;
    pthread_cond_signal(&news);
    pthread_mutex_unlock(&lock);
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, data);
}

/* Each rank notifies all others; each receives each event once. */
static void event(void)
{
    pmix_info_t item = {.key = "number", .value = {.type = PMIX_UINT32, .data.uint32 = 100}};
    pmix_status_t code = PMIX_EXTERNAL_ERR_BASE - 7;

    PMIx_Register_event_handler(&code, 1, NULL, 0, event_take, NULL, NULL);
    fence_all();
    must("PMIx_Notify_event", PMIx_Notify_event(code, &me, PMIX_RANGE_NAMESPACE, &item, 1, NULL, NULL), PMIX_SUCCESS);
    pthread_mutex_lock(&lock);
    while (events < size)
        pthread_cond_wait(&news, &lock);
    pthread_mutex_unlock(&lock);
    fence_all();
    fence_all(); /* a duplicate would have arrived by now */
    if (events != size || event_sum != size * 100 + size * (size - 1) / 2)
        must("the events", PMIX_ERROR, PMIX_SUCCESS);
}

static void join(void)
{
    pmix_proc_t all = rank_of(PMIX_RANK_WILDCARD);

    must("PMIx_Connect", PMIx_Connect(&all, 1, NULL, 0), PMIX_SUCCESS);
    must("PMIx_Disconnect", PMIx_Disconnect(&all, 1, NULL, 0), PMIX_SUCCESS);
    fence_all();
}

static void spawn(void)
{
    char *argv[] = {"true", NULL};
    pmix_app_t app = {.cmd = "true", .argv = argv, .maxprocs = 1};
    pmix_nspace_t name;

    if (me.rank == size - 1)
        must("PMIx_Spawn", PMIx_Spawn(NULL, 0, &app, 1, name), PMIX_ERR_NOT_SUPPORTED);
    fence_all();
}

/* The last rank ends in the given way while all others are in a fence. */
static void end(const char *how)
{
    fence_all();
    printf("up\n");
    fflush(stdout);
    if (me.rank == size - 1) {
        if (!strcmp(how, "abort"))
            PMIx_Abort(9, "as the test wants it", NULL, 0);
        else if (!strcmp(how, "kill"))
            kill(getpid(), SIGKILL);
        else if (!strcmp(how, "quit"))
            _exit(0);
        else
            pause(); /* it is ended from outside */
    }
    /* A fence that fails by that end does not abort: mpirun could not determine which came first. */
    for (int i = 0; i < 2; i++)
        if (PMIx_Fence(NULL, 0, NULL, 0) != PMIX_SUCCESS)
            pause();
}

static void run(const char *what, size_t bytes)
{
    if (!strcmp(what, "fence"))
        fence(bytes);
    else if (!strcmp(what, "lazy"))
        lazy(bytes);
    else if (!strcmp(what, "early"))
        early();
    else if (!strcmp(what, "parts"))
        parts();
    else if (!strcmp(what, "who"))
        who();
    else if (!strcmp(what, "board"))
        board();
    else if (!strcmp(what, "late"))
        late();
    else if (!strcmp(what, "late-get"))
        late_get();
    else if (!strcmp(what, "leave"))
        leave();
    else if (!strcmp(what, "event"))
        event();
    else if (!strcmp(what, "join"))
        join();
    else if (!strcmp(what, "spawn"))
        spawn();
    else
        end(what);
}

int main(int argc, char **argv)
{
    pmix_value_t *found;

    (void)argc;
    must("PMIx_Init", PMIx_Init(&me, NULL, 0), PMIX_SUCCESS);
    pmix_proc_t all = rank_of(PMIX_RANK_WILDCARD);
    must("the job's size", PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &found), PMIX_SUCCESS);
    size = found->data.uint32;
    for (char **what = argv + 1; *what; what++) {
        const char *bytes = strchr(*what, '=');
        char word[32];
        snprintf(word, sizeof(word), "%.*s", (int)strcspn(*what, "="), *what);
        snprintf(key, sizeof(key), "key-%ld", (long)(what - argv));
        run(word, bytes ? (size_t)atol(bytes + 1) : 100);
        printf("rank %u of %u: %s is well\n", me.rank, size, *what);
        fflush(stdout);
    }
    must("PMIx_Finalize", PMIx_Finalize(NULL, 0), PMIX_SUCCESS);
    return 0;
}
