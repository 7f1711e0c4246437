/* np: 2 : MPI_T events: types, registrations, callbacks by safety level, order, dropped events, binding, free, before and after MPI */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <unistd.h>

#include "check.h"

enum { MOST = 4000 };

typedef struct record {
    MPI_Count ticks;
    int64_t values[4];
    MPI_T_cb_safety safety;
} record;

typedef struct log {
    int type, elements, count, drops, max; /* max: then the callback stops recording */
    MPI_Count dropped;
    record records[MOST];
    MPI_T_event_registration registration;
} log_;

static int rank, other, in_callback, freed;
static MPI_Count latest_ticks; /* of any event: the source is ordered */
static log_ logs[4];
static MPI_T_event_instance stale;

static void on_event(MPI_T_event_instance event, MPI_T_event_registration registration, MPI_T_cb_safety safety, void *user)
{
    log_ *log = user;
    record *to = &log->records[log->count < MOST ? log->count : MOST - 1];
    int64_t copy[4] = {-9, -9, -9, -9}, one;
    int source = -1;
    CHECK(!in_callback++, "callbacks run one at a time");
    CHECK(registration == log->registration);
    OK(MPI_T_event_get_timestamp(event, &to->ticks));
    OK(MPI_T_event_get_source(event, &source));
    OK(MPI_T_event_copy(event, copy));
    for (int i = 0; i < 4; i++) {
        to->values[i] = copy[i];
        if (i < log->elements) {
            OK(MPI_T_event_read(event, i, &one));
            CHECK(one == copy[i]);
        } else {
            CHECK(copy[i] == -9 && MPI_T_event_read(event, i, &one) == MPI_T_ERR_INVALID_INDEX);
        }
    }
    CHECK(MPI_T_event_read(event, -1, &one) == MPI_T_ERR_INVALID_INDEX && MPI_T_event_read(event, 0, NULL) == MPI_T_ERR_INVALID);
    CHECK(MPI_T_event_copy(event, NULL) == MPI_T_ERR_INVALID && MPI_T_event_get_source(event, NULL) == MPI_T_ERR_INVALID);
    CHECK(MPI_T_event_get_timestamp(event, NULL) == MPI_T_ERR_INVALID);
    CHECK(source == 0 && to->ticks >= latest_ticks);
    latest_ticks = to->ticks;
    to->safety = safety;
    log->count++;
    stale = event;
    in_callback--;
}

static void on_dropped(MPI_Count count, MPI_T_event_registration registration, int source, MPI_T_cb_safety safety, void *user)
{
    log_ *log = user;
    CHECK(registration == log->registration && source == 0 && count > 0 && safety <= MPI_T_CB_REQUIRE_MPI_RESTRICTED);
    log->drops++;
    log->dropped += count;
}

static void on_free(MPI_T_event_registration registration, MPI_T_cb_safety safety, void *user)
{
    log_ *log = user;
    CHECK(registration == log->registration && (safety == MPI_T_CB_REQUIRE_NONE || safety == MPI_T_CB_REQUIRE_MPI_RESTRICTED));
    freed++;
}

static int type_of(const char *name)
{
    int index = -1;
    OK(MPI_T_event_get_index(name, &index));
    return index;
}

static void listen(log_ *log, const char *name, MPI_Comm comm, MPI_T_cb_safety safety)
{
    memset(log, 0, sizeof *log);
    log->type = type_of(name);
    OK(MPI_T_event_get_info(log->type, NULL, NULL, NULL, NULL, NULL, &log->elements, NULL, NULL, NULL, NULL, NULL));
    OK(MPI_T_event_handle_alloc(log->type, comm == MPI_COMM_NULL ? NULL : &comm, MPI_INFO_NULL, &log->registration));
    OK(MPI_T_event_register_callback(log->registration, safety, MPI_INFO_NULL, log, on_event));
}

static void unlisten(log_ *log)
{
    int before = freed;
    OK(MPI_T_event_handle_free(log->registration, log, on_free));
    CHECK(freed == before + 1);
    CHECK(MPI_T_event_handle_free(log->registration, NULL, NULL) == MPI_T_ERR_INVALID_HANDLE);
}

/* All types have unique names, elements with names, and displacements from 0 on; each is in one category besides the first. */
static void types(void)
{
    int n, found = 0, categories, num;
    OK(MPI_T_event_get_num(&n));
    CHECK(n >= 10);
    for (int i = 0; i < n; i++) {
        char name[64] = "", desc[400] = "", item[64];
        int name_len = sizeof name, desc_len = sizeof desc, verbosity, bind, elements = 1, items, value;
        MPI_Datatype datatypes[8] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
        MPI_Aint places[8] = {-1, -1};
        MPI_T_enum names;
        MPI_Info info;
        OK(MPI_T_event_get_info(i, name, &name_len, &verbosity, datatypes, places, &elements, &names, &info, desc, &desc_len, &bind));
        CHECK(name_len == (int)strlen(name) + 1 && strncmp(name, "weft_", 5) == 0 && desc[0] && elements >= 1 && elements <= 8);
        CHECK(datatypes[0] == MPI_INT64_T && places[0] == 0 && datatypes[1] == MPI_DATATYPE_NULL, "only one was asked for");
        CHECK(bind == MPI_T_BIND_NO_OBJECT || bind == MPI_T_BIND_MPI_COMM);
        CHECK(type_of(name) == i);
        items = 8;
        OK(MPI_T_event_get_info(i, NULL, NULL, NULL, datatypes, places, &items, NULL, NULL, NULL, NULL, NULL));
        CHECK(items == elements && places[elements - 1] == 8 * (elements - 1) && datatypes[elements - 1] == MPI_INT64_T);
        OK(MPI_T_enum_get_info(names, &items, NULL, NULL));
        CHECK(items == elements);
        for (int k = 0; k < items; k++) {
            int length = sizeof item;
            OK(MPI_T_enum_get_item(names, k, &value, item, &length));
            CHECK(value == k && item[0]);
        }
        OK(MPI_Info_get_nkeys(info, &items));
        CHECK(items == 0);
        OK(MPI_Info_free(&info));
    }
    OK(MPI_T_category_get_num(&categories));
    for (int i = 0; i < categories; i++) {
        int indices[64];
        OK(MPI_T_category_get_num_events(i, &num));
        OK(MPI_T_category_get_events(i, 64, indices));
        for (int k = 0; k < num; k++)
            CHECK(indices[k] >= 0 && indices[k] < n);
        found += num;
    }
    CHECK(found == n);
    CHECK(MPI_T_event_get_info(n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == MPI_T_ERR_INVALID_INDEX);
}

static void source(void)
{
    char name[40], desc[200];
    int name_len = sizeof name, desc_len = sizeof desc, n;
    MPI_T_source_order order;
    MPI_Count per_second, most, first, second;
    MPI_Info info;
    OK(MPI_T_source_get_num(&n));
    CHECK(n == 1);
    OK(MPI_T_source_get_info(0, name, &name_len, desc, &desc_len, &order, &per_second, &most, &info));
    CHECK(name[0] && desc[0] && order == MPI_T_SOURCE_ORDERED && per_second == 1000000000 && most > per_second);
    OK(MPI_Info_free(&info));
    OK(MPI_T_source_get_timestamp(0, &first));
    usleep(2000);
    OK(MPI_T_source_get_timestamp(0, &second));
    CHECK(second - first >= 2 * per_second / 1000 && second < most);
    CHECK(MPI_T_source_get_timestamp(1, &first) == MPI_T_ERR_INVALID_INDEX && MPI_T_source_get_timestamp(0, NULL) == MPI_T_ERR_INVALID);
}

static void misuse(void)
{
    MPI_T_event_registration registration;
    MPI_Comm null = MPI_COMM_NULL;
    MPI_Info info;
    int bound = type_of("weft_unexpected_queued"), value;
    CHECK(MPI_T_event_handle_alloc(bound, NULL, MPI_INFO_NULL, &registration) == MPI_T_ERR_INVALID);
    CHECK(MPI_T_event_handle_alloc(bound, &null, MPI_INFO_NULL, &registration) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_event_handle_alloc(type_of("weft_sleep_ended"), NULL, MPI_INFO_NULL, NULL) == MPI_T_ERR_INVALID);
    OK(MPI_T_event_handle_alloc(type_of("weft_sleep_ended"), NULL, MPI_INFO_NULL, &registration));
    CHECK(MPI_T_event_register_callback(registration, (MPI_T_cb_safety)1, MPI_INFO_NULL, NULL, on_event) == MPI_T_ERR_INVALID);
    OK(MPI_T_event_handle_set_info(registration, MPI_INFO_NULL));
    OK(MPI_T_event_callback_set_info(registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL));
    CHECK(MPI_T_event_handle_get_info(registration, NULL) == MPI_T_ERR_INVALID);
    OK(MPI_T_event_handle_get_info(registration, &info));
    OK(MPI_Info_free(&info));
    OK(MPI_T_event_callback_get_info(registration, MPI_T_CB_REQUIRE_THREAD_SAFE, &info));
    OK(MPI_Info_get_nkeys(info, &value));
    CHECK(value == 0);
    OK(MPI_Info_free(&info));
    CHECK(MPI_T_event_read(stale, 0, &value) == MPI_T_ERR_INVALID_HANDLE, "outside of its callback");
    OK(MPI_T_event_handle_free(registration, NULL, NULL));
}

/* Unexpected messages of one communicator: bytes, tags, order; those of another are not seen. */
static void unexpected(void)
{
    static char body[100000];
    MPI_Comm comm;
    MPI_Message message;
    MPI_Status status;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    listen(&logs[0], "weft_unexpected_queued", comm, MPI_T_CB_REQUIRE_NONE);
    listen(&logs[1], "weft_unexpected_dequeued", comm, MPI_T_CB_REQUIRE_NONE);
    if (rank == 0) {
        MPI_Request req;
        OK(MPI_Send(body, 10, MPI_CHAR, 1, 5, comm));
        OK(MPI_Send(body, 20, MPI_CHAR, 1, 6, MPI_COMM_WORLD));
        OK(MPI_Isend(body, sizeof body, MPI_CHAR, 1, 7, comm, &req));
        OK(MPI_Send(body, 0, MPI_CHAR, 1, 8, comm));
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    } else {
        OK(MPI_Probe(0, 8, comm, &status));
        OK(MPI_Recv(body, 20, MPI_CHAR, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(logs[0].count == 3 && logs[1].count == 0, "%d queued, %d dequeued", logs[0].count, logs[1].count);
        OK(MPI_Recv(body, sizeof body, MPI_CHAR, 0, 7, comm, MPI_STATUS_IGNORE));
        OK(MPI_Mprobe(0, 5, comm, &message, &status));
        OK(MPI_Mrecv(body, 10, MPI_CHAR, &message, &status));
        OK(MPI_Recv(body, 0, MPI_CHAR, 0, 8, comm, MPI_STATUS_IGNORE));
        const int tags[2][3] = {{5, 7, 8}, {7, 5, 8}};
        for (int i = 0; i < 2; i++) {
            CHECK(logs[i].count == 3, "%d", logs[i].count);
            for (int k = 0; k < 3; k++) {
                const record *r = &logs[i].records[k];
                CHECK(r->values[0] == 0 && r->values[1] == tags[i][k], "%d %d: tag %d", i, k, (int)r->values[1]);
                CHECK(r->values[2] == (tags[i][k] == 5 ? 10 : tags[i][k] == 7 ? (int)sizeof body : 0));
            }
        }
    }
    unlisten(&logs[0]);
    unlisten(&logs[1]);
    OK(MPI_Comm_free(&comm));
}

/* Sender and receiver raise the begin and the end of a rendezvous; a wait raises an event when it sleeps. All come inside one call. */
static void waits(void)
{
    static char body[300000];
    listen(&logs[0], "weft_rndv_begun", MPI_COMM_NULL, MPI_T_CB_REQUIRE_MPI_RESTRICTED);
    listen(&logs[1], "weft_rndv_ended", MPI_COMM_NULL, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE);
    listen(&logs[2], "weft_sleep_begun", MPI_COMM_NULL, MPI_T_CB_REQUIRE_THREAD_SAFE);
    listen(&logs[3], "weft_sleep_ended", MPI_COMM_NULL, MPI_T_CB_REQUIRE_THREAD_SAFE);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    logs[0].count = logs[1].count = logs[2].count = logs[3].count = 0;
    if (rank == 0)
        usleep(100000);
    if (rank == 0)
        OK(MPI_Send(body, sizeof body, MPI_CHAR, 1, 1, MPI_COMM_WORLD));
    else
        OK(MPI_Recv(body, sizeof body, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 2; i++) {
        const record *r = &logs[i].records[0];
        CHECK(logs[i].count == 1, "%d", logs[i].count);
        CHECK(r->values[0] == other && r->values[1] == (rank == 0) && r->values[2] == sizeof body);
    }
    CHECK(rank == 0 ? logs[0].records[0].values[3] == -1 : logs[0].records[0].values[3] >= 0);
    CHECK(logs[0].records[0].ticks <= logs[1].records[0].ticks);
    if (rank == 1) {
        MPI_Count longest = 0;
        CHECK(logs[2].count >= 1 && logs[3].count >= logs[2].count, "%d %d", logs[2].count, logs[3].count);
        CHECK(logs[2].records[0].values[1] == 0 && logs[2].records[0].values[2] == 1);
        for (int i = 0; i < logs[3].count; i++)
            longest = logs[3].records[i].values[1] > longest ? logs[3].records[i].values[1] : longest;
        CHECK(longest > 50000000, "%lld ns", (long long)longest);
    }
    for (int i = 0; i < 4; i++)
        unlisten(&logs[i]);
}

/* Of several callbacks of a registration the one of the lowest level that a point allows is called; NULL removes one. */
static void levels(void)
{
    static char body[160000]; /* announced by an RTS, however fast copies are */
    listen(&logs[0], "weft_rndv_ended", MPI_COMM_NULL, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE);
    OK(MPI_T_event_register_callback(logs[0].registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, &logs[0], on_event));
    listen(&logs[1], "weft_rndv_ended", MPI_COMM_NULL, MPI_T_CB_REQUIRE_NONE);
    for (int i = 0; i < 20; i++) {
        int before = logs[0].count;
        OK(MPI_Sendrecv_replace(body, sizeof body, MPI_CHAR, other, 1, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        CHECK(logs[0].count >= before + 2 && logs[0].count == logs[1].count, "%d and %d after %d", logs[0].count, logs[1].count, before);
    }
    for (int i = 0; i < logs[1].count; i++)
        CHECK(logs[1].records[i].safety == MPI_T_CB_REQUIRE_NONE && logs[0].records[i].ticks == logs[1].records[i].ticks);
    OK(MPI_T_event_register_callback(logs[1].registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, NULL));
    logs[0].count = logs[1].count = 0;
    OK(MPI_Sendrecv_replace(body, sizeof body, MPI_CHAR, other, 1, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(logs[0].count >= 2 && logs[1].count == 0);
    unlisten(&logs[0]);
    unlisten(&logs[1]);
}

/* More events than the queue holds while no callback may run: the handler says how many were lost, before the next event. */
static void on_event_after_drop(MPI_T_event_instance event, MPI_T_event_registration registration, MPI_T_cb_safety safety, void *user)
{
    log_ *log = user;
    CHECK(log->drops == 1, "dropped events are reported first");
    log->count++;
    (void)event, (void)registration, (void)safety;
}

static void dropped(void)
{
    enum { N = 5000 };
    int value = 0;
    MPI_Request req;
    listen(&logs[0], "weft_unexpected_queued", MPI_COMM_WORLD, MPI_T_CB_REQUIRE_NONE);
    OK(MPI_T_event_register_callback(logs[0].registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, &logs[0], on_event_after_drop));
    OK(MPI_T_event_set_dropped_handler(logs[0].registration, on_dropped));
    if (rank == 0)
        for (int i = 0; i < N; i++)
            OK(MPI_Send(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD));
    if (rank == 0)
        OK(MPI_Send(&value, 1, MPI_INT, 1, 4, MPI_COMM_WORLD));
    else
        OK(MPI_Recv(&value, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE)); /* one call: no point for NONE inside */
    if (rank == 1) {
        CHECK(logs[0].drops == 1 && logs[0].count + logs[0].dropped == N, "%d delivered, %lld dropped in %d", logs[0].count,
              (long long)logs[0].dropped, logs[0].drops);
        CHECK(logs[0].count >= 500);
    }
    for (int i = 0; i < N && rank == 1; i++)
        OK(MPI_Recv(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_T_event_set_dropped_handler(logs[0].registration, NULL));
    OK(MPI_Irecv(&value, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, &req));
    OK(MPI_Send(&value, 1, MPI_INT, rank, 9, MPI_COMM_WORLD));
    OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    unlisten(&logs[0]);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* With a callback that may run inside of a wait, one long wait delivers many times as much as the queue holds. A sender that runs ahead
 * of its credit says so. */
static void one_wait(void)
{
    enum { N = 5000, LONG = 200, BYTES = 16000 };
    static char body[LONG][BYTES];
    static MPI_Request reqs[LONG];
    int value = 0;
    listen(&logs[0], "weft_unexpected_queued", MPI_COMM_WORLD, MPI_T_CB_REQUIRE_MPI_RESTRICTED);
    OK(MPI_T_event_set_dropped_handler(logs[0].registration, on_dropped));
    listen(&logs[1], "weft_send_stalled", MPI_COMM_NULL, MPI_T_CB_REQUIRE_MPI_RESTRICTED);
    for (int i = 0; i < N && rank == 0; i++) {
        OK(MPI_Send(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD));
        if (i == N / 2)
            usleep(20000); /* the receiver has delivered what there was */
    }
    if (rank == 0)
        OK(MPI_Send(&value, 1, MPI_INT, 1, 4, MPI_COMM_WORLD));
    else
        OK(MPI_Recv(&value, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(rank == 0 || (logs[0].count == N && logs[0].drops == 0), "%d delivered, %lld dropped", logs[0].count,
          (long long)logs[0].dropped);
    for (int i = 0; i < N && rank == 1; i++)
        OK(MPI_Recv(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 1)
        usleep(50000);
    for (int i = 0; i < LONG; i++)
        OK(rank ? MPI_Irecv(body[i], BYTES, MPI_CHAR, 0, 5, MPI_COMM_WORLD, &reqs[i])
                : MPI_Isend(body[i], BYTES, MPI_CHAR, 1, 5, MPI_COMM_WORLD, &reqs[i]));
    OK(MPI_Waitall(LONG, reqs, MPI_STATUSES_IGNORE));
    CHECK(rank == 1 || (logs[1].count > 0 && logs[1].records[0].values[0] == 1 && logs[1].records[0].values[2] == BYTES));
    unlisten(&logs[0]);
    unlisten(&logs[1]);
}

/* A callback of the lowest level may call MPI, and free its own registration: then no other event comes. */
static void on_event_frees(MPI_T_event_instance event, MPI_T_event_registration registration, MPI_T_cb_safety safety, void *user)
{
    log_ *log = user;
    int value = 7, got = 0;
    (void)event;
    CHECK(safety == MPI_T_CB_REQUIRE_NONE);
    OK(MPI_Sendrecv(&value, 1, MPI_INT, 0, 77, &got, 1, MPI_INT, 0, 77, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    CHECK(got == 7);
    log->count++;
    OK(MPI_T_event_handle_free(registration, log, on_free));
    CHECK(log->count == 1 && freed == log->max, "it is still running");
}

static void free_inside(void)
{
    int value = 1;
    listen(&logs[0], "weft_unexpected_queued", MPI_COMM_SELF, MPI_T_CB_REQUIRE_NONE);
    OK(MPI_T_event_register_callback(logs[0].registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, &logs[0], on_event_frees));
    logs[0].max = freed;
    OK(MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_SELF));
    OK(MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_SELF));
    for (int i = 0; i < 2; i++)
        OK(MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    CHECK(logs[0].count == 1 && freed == logs[0].max + 1, "%d events, %d freed", logs[0].count, freed - logs[0].max);
}

/* A callback that raises the event which it reports, at once and by dropping many: each call of MPI returns, and the events go on in
 * later ones. */
static void on_event_raises(MPI_T_event_instance event, MPI_T_event_registration registration, MPI_T_cb_safety safety, void *user)
{
    log_ *log = user;
    int value = 7, messages = log->count < 20 ? log->max : 1; /* 20 times is enough to drop events */
    (void)event, (void)registration, (void)safety;
    if (++log->count > 100000)
        check_fail(__FILE__, __LINE__, "a delivery without end", "%d calls", log->count);
    for (int i = 0; i < messages; i++)
        OK(MPI_Send(&value, 1, MPI_INT, 0, 78, MPI_COMM_SELF));
    for (int i = 0; i < messages; i++)
        OK(MPI_Recv(&value, 1, MPI_INT, 0, 78, MPI_COMM_SELF, MPI_STATUS_IGNORE));
}

static void on_dropped_raises(MPI_Count count, MPI_T_event_registration registration, int source, MPI_T_cb_safety safety, void *user)
{
    on_dropped(count, registration, source, safety, user);
    on_event_raises(NULL, registration, safety, user);
}

static void feeds_itself(int events)
{
    int value = 1, after;
    listen(&logs[0], "weft_unexpected_queued", MPI_COMM_SELF, MPI_T_CB_REQUIRE_NONE);
    OK(MPI_T_event_register_callback(logs[0].registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, &logs[0], on_event_raises));
    OK(MPI_T_event_set_dropped_handler(logs[0].registration, on_dropped_raises));
    logs[0].max = events;
    for (int i = 0; i < 2; i++)
        OK(MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_SELF));
    for (int i = 0; i < 2; i++)
        OK(MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    CHECK(logs[0].count >= 1 && (logs[0].drops > 0) == (events > 1000), "%d, %d", logs[0].count, logs[0].drops);
    after = logs[0].count;
    OK(MPI_Sendrecv_replace(&value, 1, MPI_INT, 0, 2, 0, 2, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    CHECK(logs[0].count > after, "what a callback raised is delivered by a later call");
    unlisten(&logs[0]);
}

/* Collectives name operation, rule and bytes. */
static void collectives(void)
{
    static double in[40000], out[40000];
    MPI_Request req;
    listen(&logs[0], "weft_coll_selected", MPI_COMM_WORLD, MPI_T_CB_REQUIRE_MPI_RESTRICTED);
    OK(MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    OK(MPI_Allreduce(in, out, 40000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &req));
    OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(logs[0].count == 4, "%d", logs[0].count);
    CHECK(logs[0].records[0].values[0] == logs[0].records[1].values[0] && logs[0].records[0].values[2] == 8);
    CHECK(logs[0].records[1].values[2] == sizeof in && logs[0].records[1].values[1] >= 0);
    CHECK(logs[0].records[2].values[0] == logs[0].records[3].values[0] && logs[0].records[2].values[3] == 2);
    unlisten(&logs[0]);
}

int main(int argc, char **argv)
{
    int provided, n;
    MPI_T_event_registration early;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    types();
    source();
    /* registered before MPI_Init, freed after MPI_Finalize */
    memset(&logs[3], 0, sizeof logs[3]);
    logs[3].elements = 3;
    OK(MPI_T_event_handle_alloc(type_of("weft_rndv_ended"), NULL, MPI_INFO_NULL, &early));
    OK(MPI_T_event_register_callback(early, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, MPI_INFO_NULL, &logs[3], on_event));
    logs[3].registration = early;
    check_start(&argc, &argv, &rank, &n);
    other = 1 - rank;
    levels();
    CHECK(logs[3].count > 0);
    OK(MPI_T_event_handle_free(early, &logs[3], on_free));
    unexpected();
    misuse();
    waits();
    dropped();
    one_wait();
    free_inside();
    feeds_itself(2);
    feeds_itself(3000);
    collectives();
    listen(&logs[3], "weft_sleep_ended", MPI_COMM_NULL, MPI_T_CB_REQUIRE_NONE); /* freed by MPI_T_finalize */
    listen(&logs[2], "weft_rndv_ended", MPI_COMM_NULL, MPI_T_CB_REQUIRE_NONE);
    OK(MPI_Finalize());
    unlisten(&logs[2]);
    OK(MPI_T_finalize());
    return 0;
}
