/* np: 2 : MPI_T: performance variables count from each handle's start to its stop, also across MPI_Finalize */
#include "check.h"

#define LARGE (4 << 20)

static MPI_T_pvar_session session;

static MPI_T_pvar_handle handle_of(const char *name, int var_class)
{
    MPI_T_pvar_handle handle;
    int index, count;
    OK(MPI_T_pvar_get_index(name, var_class, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
    return handle;
}

static MPI_T_pvar_handle counter(const char *name) { return handle_of(name, MPI_T_PVAR_CLASS_COUNTER); }

static unsigned long long read_wide(MPI_T_pvar_handle handle)
{
    unsigned long long value = 0;
    OK(MPI_T_pvar_read(session, handle, &value));
    return value;
}

static unsigned read_narrow(MPI_T_pvar_handle handle)
{
    unsigned value = 0;
    OK(MPI_T_pvar_read(session, handle, &value));
    return value;
}

/* `times` messages from 0 to 1, and one back at the end so that no rank runs ahead. */
static void send_some(int rank, int times, int bytes, char *buf)
{
    for (int i = 0; i < times; i++)
        if (rank == 0)
            OK(MPI_Send(buf, bytes, MPI_BYTE, 1, 3, MPI_COMM_WORLD));
        else
            OK(MPI_Recv(buf, bytes, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (rank == 1)
        OK(MPI_Send(buf, 0, MPI_BYTE, 0, 4, MPI_COMM_WORLD));
    else
        OK(MPI_Recv(buf, 0, MPI_BYTE, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static void each_message_counts(int rank, char *buf)
{
    MPI_T_pvar_handle eager = counter("weft_eager"), bytes = counter("weft_eager_bytes"), brief = counter("weft_eager_inline");
    MPI_T_pvar_handle copied = counter("weft_bytes_copied"), sent = counter("weft_frames_sent"), taken = counter("weft_frames_received");
    OK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    send_some(rank, 10, 1000, buf);
    if (rank == 0)
        CHECK(read_wide(eager) == 10 && read_wide(bytes) == 10000, "%llu %llu", read_wide(eager), read_wide(bytes));
    CHECK(read_wide(copied) >= 10000 && read_wide(copied) <= 30000, "%llu", read_wide(copied)); /* copied twice if unexpected */
    CHECK((rank == 0 ? read_narrow(sent) : read_narrow(taken)) >= 10);
    CHECK((rank == 1 ? read_narrow(sent) : read_narrow(taken)) >= 1);
    OK(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
    send_some(rank, 50, 8, buf);
    if (rank == 0) /* a full iface turns an inline message into an eager one */
        CHECK(read_narrow(brief) + read_wide(eager) == 50, "%u %llu", read_narrow(brief), read_wide(eager));
    else
        CHECK(read_narrow(brief) + read_wide(eager) == 1, "%u %llu", read_narrow(brief), read_wide(eager));
    OK(MPI_T_pvar_handle_free(session, &eager));
    OK(MPI_T_pvar_handle_free(session, &bytes));
    OK(MPI_T_pvar_handle_free(session, &brief));
    OK(MPI_T_pvar_handle_free(session, &copied));
    OK(MPI_T_pvar_handle_free(session, &sent));
    OK(MPI_T_pvar_handle_free(session, &taken));
}

static void handles_have_values_of_their_own(int rank, char *buf)
{
    MPI_T_pvar_handle first = counter("weft_eager_bytes"), second = counter("weft_eager_bytes");
    unsigned long long value = 7;
    CHECK(read_wide(first) == 0);
    send_some(rank, 2, 500, buf); /* no handle is started */
    CHECK(read_wide(first) == 0);
    OK(MPI_T_pvar_start(session, first));
    send_some(rank, 2, 500, buf);
    OK(MPI_T_pvar_stop(session, first));
    OK(MPI_T_pvar_start(session, second));
    send_some(rank, 1, 500, buf);
    if (rank == 0)
        CHECK(read_wide(first) == 1000 && read_wide(second) == 500, "%llu %llu", read_wide(first), read_wide(second));
    OK(MPI_T_pvar_start(session, first)); /* continues from its last value */
    OK(MPI_T_pvar_start(session, first));
    send_some(rank, 1, 500, buf);
    if (rank == 0)
        CHECK(read_wide(first) == 1500, "%llu", read_wide(first));
    OK(MPI_T_pvar_readreset(session, second, &value));
    if (rank == 0)
        CHECK(value == 1000 && read_wide(second) == 0, "%llu %llu", value, read_wide(second));
    value = 70000;
    OK(MPI_T_pvar_write(session, second, &value));
    send_some(rank, 1, 500, buf);
    if (rank == 0)
        CHECK(read_wide(second) == 70500 && read_wide(first) == 2000, "%llu %llu", read_wide(second), read_wide(first));
    OK(MPI_T_pvar_handle_free(session, &first));
    OK(MPI_T_pvar_handle_free(session, &second));
}

/* The second use of a large buffer (registered by then): by get this process's CPU copies no byte of it. If get is not permitted, every
 * byte is copied on both sides. */
static void large_ones_are_not_copied(int rank, char *buf)
{
    MPI_T_pvar_handle copied = counter("weft_bytes_copied"), kernel = counter("weft_bytes_cma"), moved = counter("weft_bytes_rma");
    MPI_T_pvar_handle by_copy = counter("weft_rndv_copy"), hits = counter("weft_reg_hits"), misses = counter("weft_reg_misses");
    unsigned long long moves[2], all[2], by_copies, all_by_copies;
    send_some(rank, 1, LARGE, buf);
    OK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    send_some(rank, 1, LARGE, buf);
    OK(MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES));
    moves[0] = read_wide(kernel) + read_wide(moved);
    moves[1] = read_wide(copied);
    by_copies = read_wide(by_copy);
    if (read_wide(moved) > 0) /* by a device: the memory was registered before */
        CHECK(read_wide(hits) > 0 && read_wide(misses) == 0, "%llu hits, %llu misses", read_wide(hits), read_wide(misses));
    OK(MPI_Allreduce(&by_copies, &all_by_copies, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD));
    OK(MPI_Allreduce(moves, all, 2, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD));
    if (all_by_copies)
        CHECK(all[0] == 0 && all[1] == 2ull * LARGE, "%llu %llu", all[0], all[1]);
    else
        CHECK(all[0] == LARGE && all[1] == 0, "%llu %llu", all[0], all[1]);
}

int main(int argc, char **argv)
{
    int rank, size, provided;
    char *buf = calloc(1, LARGE);
    MPI_T_pvar_handle kept;
    unsigned long long before;
    setenv("WEFT_RNDV_SCHEME", "get", 1);
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_pvar_session_create(&session));
    kept = counter("weft_eager_bytes");
    OK(MPI_T_pvar_start(session, kept)); /* before any counted event */
    check_start(&argc, &argv, &rank, &size);
    each_message_counts(rank, buf);
    handles_have_values_of_their_own(rank, buf);
    large_ones_are_not_copied(rank, buf);
    OK(MPI_T_pvar_start(session, kept));
    before = read_wide(kept);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
    CHECK(read_wide(kept) >= before && read_wide(kept) < before + 4096, "%llu %llu", read_wide(kept), before);
    CHECK(rank == 1 || before > 0);
    CHECK(read_wide(handle_of("weft_reg_bytes", MPI_T_PVAR_CLASS_LEVEL)) == 0);
    OK(MPI_T_finalize()); /* frees the session and its handles */
    free(buf);
    return 0;
}
