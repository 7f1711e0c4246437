/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rma: one-sided operations (MPI 5.0 12.3). Called by the generated entries, which have checked counts, handles and buffers and hold the
 * worker's lock. Here: target, place, epoch, and what operations allow; then rma/op. Dense data on mapped memory are copied inline.
 */
#include <mpi.h>

#include "base/status.h"
#include "mpi/calls.h"
#include "mpi/request.h"
#include "mpi/request_ops.h"
#include "mpi/win_epoch.h"
#include "rma/atomic.h"
#include "rma/direct.h"
#include "rma/notify.h"
#include "rma/op.h"

/* The window of a request's channel (MPI 5.0 9.3). NULL: it was freed before the request was completed. */
static weft_traits *object(const weft_req *req)
{
    weft_mpi_world *mpi = req->worker->world->mpi;
    for (weft_list_link *link = mpi->windows.next; link != &mpi->windows; link = link->next) {
        weft_win *win = weft_container(link, weft_win, link);
        if (win->window->chan == req->chan)
            return &win->traits;
    }
    return NULL;
}

const weft_request_ops weft_request_ops_rma = {.name = "one-sided operation", .object = object};

/* -- arguments -- */

static __attribute__((cold, noinline)) int bad_rank(const weft_win *win, int rank)
{
    return weft_fail(WEFT_E_RANK, "argument target_rank is %d: not a rank of the window (0..%u), nor MPI_PROC_NULL", rank,
                     win->window->size - 1);
}

static __attribute__((cold, noinline)) int bad_place(const weft_win *win, int rank, MPI_Aint disp, MPI_Count count, const weft_type *type)
{
    const weft_window_target *target = &win->window->targets[rank];
    if (disp < 0)
        return weft_fail(WEFT_E_DISP, "argument target_disp is %lld: it must not be negative", (long long)disp);
    return weft_fail(WEFT_E_RMA_RANGE, "%lld elements of %s at target_disp %lld (unit %llu) are outside of the %llu bytes of target %d",
                     (long long)count, type->name[0] ? type->name : "a derived datatype", (long long)disp,
                     (unsigned long long)target->unit,
                     (unsigned long long)target->bytes, rank);
}

/* The offset of an access; the target's memory has it. */
static inline int place(const weft_win *win, int rank, MPI_Aint disp, MPI_Count count, const weft_type *type, uint64_t *offset)
{
    const weft_window_target *target = &win->window->targets[rank];
    int64_t low, span, high;
    if (weft_unlikely(win->window->flavor == WEFT_WINDOW_DYNAMIC)) { /* an address; its member knows what is attached */
        *offset = (uint64_t)disp;
        return (uint64_t)count > type->count_max ? weft_fail(WEFT_E_COUNT, "argument target_count is %lld: too many elements of their type",
                                                             (long long)count) : 0;
    }
    if (weft_unlikely(disp < 0 || (uint64_t)count > type->count_max || __builtin_mul_overflow(disp, (int64_t)target->unit, &low)))
        return bad_place(win, rank, disp, count, type);
    *offset = (uint64_t)low;
    if (weft_unlikely(!count || !type->size))
        return 0;
    span = (count - 1) * type->extent;
    if (weft_unlikely(__builtin_add_overflow(low, type->true_lb + (span < 0 ? span : 0), &low) ||
                      __builtin_add_overflow(low, type->true_extent + (span < 0 ? -span : span), &high) || low < 0 ||
                      (uint64_t)high > target->bytes))
        return bad_place(win, rank, disp, count, type);
    return 0;
}

static __attribute__((cold, noinline)) int bad_length(const char *what, uint64_t bytes, uint64_t target_bytes)
{
    return weft_fail(WEFT_E_TYPE, "%s has %llu bytes of data, the target's datatype %llu: both must have the same signature", what,
                     (unsigned long long)bytes, (unsigned long long)target_bytes);
}

static inline int check_length(const char *what, MPI_Count count, const weft_type *type, MPI_Count target_count,
                               const weft_type *target_type)
{
    uint64_t bytes = (uint64_t)count * (uint64_t)type->size, target_bytes = (uint64_t)target_count * (uint64_t)target_type->size;
    return weft_likely(bytes == target_bytes) ? 0 : bad_length(what, bytes, target_bytes);
}

/* Everything but the data: rank, epoch, place. *is_null: MPI_PROC_NULL, nothing to do. */
static inline int check_target(weft_win *win, int rank, bool has_request, bool *is_null)
{
    *is_null = false;
    if (weft_unlikely((uint32_t)rank >= win->window->size)) {
        *is_null = rank == MPI_PROC_NULL;
        return *is_null ? 0 : bad_rank(win, rank);
    }
    if (has_request) {
        int rc = weft_win_epoch_check_passive(win, (uint32_t)rank);
        if (rc)
            return rc;
    }
    return weft_win_epoch_access(win, (uint32_t)rank);
}

/* The basic type of an accumulate's data; all of them have one. */
static int check_basic(const char *argument, const weft_type *type, const weft_type *target_type)
{
    if (type->basic_handle && type->basic_handle == target_type->basic_handle)
        return 0;
    if (!type->basic_handle)
        return weft_fail(WEFT_E_TYPE, "argument %s has several basic types: an accumulate takes data of one predefined type "
                         "(MPI 5.0, 12.3.4)", argument);
    return weft_fail(WEFT_E_TYPE, "argument %s has basic type %s, target_datatype has %s: an accumulate takes data of one predefined type",
                     argument, weft_type_of((void *)(uintptr_t)type->basic_handle)->name,
                     target_type->basic_handle ? weft_type_of((void *)(uintptr_t)target_type->basic_handle)->name : "several");
}

static int check_op(const weft_op *op, const weft_type *target_type, bool is_fetched)
{
    if (op == weft_op_of(MPI_NO_OP) && !is_fetched)
        return weft_fail(WEFT_E_OP, "argument op is MPI_NO_OP, which only calls that fetch take (MPI 5.0, 12.3.4)");
    if (!op->handle)
        return weft_fail(WEFT_E_OP, "argument op is a user-defined operator: accumulates take predefined ones only (MPI 5.0, 12.3.4)");
    if (!target_type->basic_handle)
        return check_basic("target_datatype", target_type, target_type);
    return weft_op_fits(op, weft_type_of((void *)(uintptr_t)target_type->basic_handle));
}

/* -- operations -- */

/* Starts it if nothing failed, and hands out its request. */
static int start(weft_win *win, const weft_rma_op *op, int rc, bool is_null, MPI_Request *request)
{
    weft_req *req = &win->worker->done_req;
    if (!rc && !is_null)
        rc = weft_rma_start(win->window, op, request ? &req : NULL);
    return request ? weft_request_return(win->comm, win->window->chan, req, rc, request) : rc;
}

/* notify: counter + 1, which the target has; 0: none. */
static int move(enum weft_rma_kind kind, const void *origin, MPI_Count count, const weft_type *type, int rank, MPI_Aint disp,
                MPI_Count target_count, const weft_type *target_type, weft_win *win, MPI_Request *request, uint32_t notify)
{
    weft_rma_op op = {.kind = kind, .target = (uint32_t)rank, .origin = origin, .origin_count = (uint64_t)count, .origin_type = type,
                      .target_count = (uint64_t)target_count, .target_type = target_type, .notify = notify};
    bool is_null;
    int rc = check_target(win, rank, request, &is_null);
    if (!rc && !is_null)
        rc = check_length("the origin", count, type, target_count, target_type);
    if (!rc && !is_null)
        rc = place(win, rank, disp, target_count, target_type, &op.offset);
    return start(win, &op, rc, is_null, request);
}

/* The address of dense data in memory that the target lets be changed in this way, if all arguments are fine; NULL: the slow path
 * decides. */
static inline char *direct_place(weft_win *win, enum weft_window_direct how, MPI_Count count, const weft_type *type, int rank,
                                 MPI_Aint disp, MPI_Count target_count, const weft_type *target_type)
{
    const weft_window *window = win->window;
    const weft_window_target *target;
    uint64_t bytes = (uint64_t)count * (uint64_t)type->size, offset;
    if (weft_unlikely((uint32_t)rank >= window->size || !(win->epoch.to_all | win->epoch.access[rank]) || !type->is_dense ||
                      !target_type->is_dense || (uint64_t)target_count > target_type->count_max))
        return NULL;
    target = &window->targets[rank];
    if (weft_unlikely(!(target->direct & how) || bytes != (uint64_t)target_count * (uint64_t)target_type->size ||
                      __builtin_mul_overflow((uint64_t)disp, (uint64_t)target->unit, &offset) || offset > target->bytes ||
                      bytes > target->bytes - offset))
        return NULL;
    win->epoch.is_used = true;
    return target->mapped + offset;
}

int weft_mpi_put(const void *origin_addr, MPI_Count origin_count, const weft_type *origin_datatype, int target_rank, MPI_Aint target_disp,
                 MPI_Count target_count, const weft_type *target_datatype, weft_win *win)
{
    char *at = direct_place(win, WEFT_DIRECT_COPY, origin_count, origin_datatype, target_rank, target_disp, target_count,
                            target_datatype);
    if (weft_unlikely(!at))
        return move(WEFT_RMA_PUT, origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win,
                    NULL, 0);
    weft_rma_copy(at, origin_addr, (uint64_t)origin_count * (uint64_t)origin_datatype->size);
    return 0;
}

int weft_mpi_get(void *origin_addr, MPI_Count origin_count, const weft_type *origin_datatype, int target_rank, MPI_Aint target_disp,
                 MPI_Count target_count, const weft_type *target_datatype, weft_win *win)
{
    const char *at = direct_place(win, WEFT_DIRECT_COPY, origin_count, origin_datatype, target_rank, target_disp, target_count,
                            target_datatype);
    if (weft_unlikely(!at))
        return move(WEFT_RMA_GET, origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win,
                    NULL, 0);
    weft_rma_copy(origin_addr, at, (uint64_t)origin_count * (uint64_t)origin_datatype->size);
    return 0;
}

int weft_mpi_rput(const void *origin_addr, MPI_Count origin_count, const weft_type *origin_datatype, int target_rank,
                  MPI_Aint target_disp, MPI_Count target_count, const weft_type *target_datatype, weft_win *win, MPI_Request *request)
{
    return move(WEFT_RMA_PUT, origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win,
                request, 0);
}

int weft_mpi_rget(void *origin_addr, MPI_Count origin_count, const weft_type *origin_datatype, int target_rank, MPI_Aint target_disp,
                  MPI_Count target_count, const weft_type *target_datatype, weft_win *win, MPI_Request *request)
{
    return move(WEFT_RMA_GET, origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win,
                request, 0);
}

/* -- with notifications (an extension, docs/rma.md) -- */

static int bad_id(const weft_win *win, int rank, int id)
{
    uint32_t count = win->window->notify->targets[rank].count;
    if (!count)
        return weft_fail(WEFT_E_ARG, "argument id is %d: target %d has no counters, as it called MPIX_Win_notify_init with count 0", id,
                         rank);
    return weft_fail(WEFT_E_ARG, "argument id is %d: target %d has the counters 0..%u", id, rank, count - 1);
}

/* The slow path. */
static __attribute__((noinline)) int notified(enum weft_rma_kind kind, const void *origin, MPI_Count count, const weft_type *type, int rank,
                                              MPI_Aint disp, MPI_Count target_count, const weft_type *target_type, weft_win *win, int id)
{
    const weft_window *window = win->window;
    if (!window->notify)
        return weft_fail(WEFT_E_WIN, "argument win has no notification counters: call MPIX_Win_notify_init for it before");
    if ((uint32_t)rank < window->size && (uint32_t)id >= window->notify->targets[rank].count)
        return bad_id(win, rank, id);
    return move(kind, origin, count, type, rank, disp, target_count, target_type, win, NULL, (uint32_t)id + 1);
}

static inline bool has_counter(const weft_win *win, int rank, int id)
{
    const weft_window_notify *notify = win->window->notify;
    return weft_likely(notify && (uint32_t)id < notify->targets[rank].count);
}

int weft_mpi_put_notify(const void *origin_addr, MPI_Count origin_count, const weft_type *origin_datatype, int target_rank,
                        MPI_Aint target_disp, MPI_Count target_count, const weft_type *target_datatype, weft_win *win, int id)
{
    char *at = direct_place(win, WEFT_DIRECT_ACCUMULATE, origin_count, origin_datatype, target_rank, target_disp, target_count,
                            target_datatype);
    if (weft_unlikely(!at || !has_counter(win, target_rank, id)))
        return notified(WEFT_RMA_PUT, origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype,
                        win, id);
    weft_rma_copy(at, origin_addr, (uint64_t)origin_count * (uint64_t)origin_datatype->size);
    weft_notify_count(win->window, (uint32_t)target_rank, (uint32_t)id);
    return 0;
}

int weft_mpi_get_notify(void *origin_addr, MPI_Count origin_count, const weft_type *origin_datatype, int target_rank, MPI_Aint target_disp,
                        MPI_Count target_count, const weft_type *target_datatype, weft_win *win, int id)
{
    const char *at = direct_place(win, WEFT_DIRECT_ACCUMULATE, origin_count, origin_datatype, target_rank, target_disp, target_count,
                            target_datatype);
    if (weft_unlikely(!at || !has_counter(win, target_rank, id)))
        return notified(WEFT_RMA_GET, origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype,
                        win, id);
    weft_rma_copy(origin_addr, at, (uint64_t)origin_count * (uint64_t)origin_datatype->size);
    weft_notify_count(win->window, (uint32_t)target_rank, (uint32_t)id);
    return 0;
}

/* -- accumulates -- */

/* Accumulates dense data of a predefined type on mapped memory. False: the slow path decides. result NULL: nothing is fetched. */
static inline bool accumulate_direct(weft_win *win, const void *origin, void *result, MPI_Count count, const weft_type *type, int rank,
                                     MPI_Aint disp, const weft_op *op)
{
    weft_rma_update update = {.op = op, .basic = type, .target_type = type, .operand = origin, .result = result, .count = (uint64_t)count};
    if (weft_unlikely(!type->is_predefined || !op->handle ||
                      !(update.at = direct_place(win, WEFT_DIRECT_ACCUMULATE, count, type, rank, disp, count, type)) ||
                      weft_op_fits(op, type)))
        return false;
    update.bytes = (uint64_t)count * (uint64_t)type->size;
    if (op == weft_op_of(MPI_NO_OP)) {
        if (!result)
            return false;
        update.operand = NULL;
    }
    weft_rma_accumulate(win->window->targets[rank].control, &update);
    return true;
}

static int accumulate(weft_win *win, weft_rma_op *op, int rank, MPI_Aint disp, MPI_Request *request)
{
    bool is_null, is_read = op->op != weft_op_of(MPI_NO_OP) || op->kind == WEFT_RMA_ACCUMULATE;
    MPI_Count count = (MPI_Count)op->target_count;
    int rc = check_target(win, rank, request, &is_null);
    if (rc || is_null)
        return start(win, op, rc, is_null, request);
    op->target = (uint32_t)rank;
    rc = check_op(op->op, op->target_type, op->kind == WEFT_RMA_GET_ACCUMULATE);
    if (!rc && is_read)
        rc = check_basic("origin_datatype", op->origin_type, op->target_type);
    if (!rc && is_read)
        rc = check_length("the origin", (MPI_Count)op->origin_count, op->origin_type, count, op->target_type);
    if (!rc && op->kind == WEFT_RMA_GET_ACCUMULATE)
        rc = check_basic("result_datatype", op->result_type, op->target_type);
    if (!rc && op->kind == WEFT_RMA_GET_ACCUMULATE)
        rc = check_length("the result", (MPI_Count)op->result_count, op->result_type, count, op->target_type);
    if (!rc)
        rc = place(win, rank, disp, count, op->target_type, &op->offset);
    return start(win, op, rc, false, request);
}

int weft_mpi_raccumulate(const void *origin_addr, MPI_Count origin_count, const weft_type *origin_datatype, int target_rank,
                         MPI_Aint target_disp, MPI_Count target_count, const weft_type *target_datatype, const weft_op *op, weft_win *win,
                         MPI_Request *request)
{
    weft_rma_op all = {.kind = WEFT_RMA_ACCUMULATE, .origin = origin_addr, .origin_count = (uint64_t)origin_count,
                       .origin_type = origin_datatype, .target_count = (uint64_t)target_count, .target_type = target_datatype, .op = op};
    return accumulate(win, &all, target_rank, target_disp, request);
}

int weft_mpi_accumulate(const void *origin_addr, MPI_Count origin_count, const weft_type *origin_datatype, int target_rank,
                        MPI_Aint target_disp, MPI_Count target_count, const weft_type *target_datatype, const weft_op *op, weft_win *win)
{
    if (weft_likely(origin_datatype == target_datatype && origin_count == target_count) &&
        accumulate_direct(win, origin_addr, NULL, origin_count, origin_datatype, target_rank, target_disp, op))
        return 0;
    return weft_mpi_raccumulate(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, op,
                                win, NULL);
}

int weft_mpi_rget_accumulate(const void *origin_addr, MPI_Count origin_count, const weft_type *origin_datatype, void *result_addr,
                             MPI_Count result_count, const weft_type *result_datatype, int target_rank, MPI_Aint target_disp,
                             MPI_Count target_count, const weft_type *target_datatype, const weft_op *op, weft_win *win,
                             MPI_Request *request)
{
    weft_rma_op all = {.kind = WEFT_RMA_GET_ACCUMULATE, .origin = origin_addr, .origin_count = (uint64_t)origin_count,
                       .origin_type = origin_datatype, .target_count = (uint64_t)target_count, .target_type = target_datatype, .op = op,
                       .result = result_addr, .result_count = (uint64_t)result_count, .result_type = result_datatype};
    return accumulate(win, &all, target_rank, target_disp, request);
}

int weft_mpi_get_accumulate(const void *origin_addr, MPI_Count origin_count, const weft_type *origin_datatype, void *result_addr,
                            MPI_Count result_count, const weft_type *result_datatype, int target_rank, MPI_Aint target_disp,
                            MPI_Count target_count, const weft_type *target_datatype, const weft_op *op, weft_win *win)
{
    return weft_mpi_rget_accumulate(origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype, target_rank,
                                    target_disp, target_count, target_datatype, op, win, NULL);
}

static int check_predefined(const weft_type *type)
{
    if (type->is_predefined)
        return 0;
    return weft_fail(WEFT_E_TYPE, "argument datatype is a derived datatype: this call takes predefined ones only");
}

int weft_mpi_fetch_and_op(const void *origin_addr, void *result_addr, const weft_type *datatype, int target_rank, MPI_Aint target_disp,
                          const weft_op *op, weft_win *win)
{
    int rc;
    if (weft_likely(accumulate_direct(win, origin_addr, result_addr, 1, datatype, target_rank, target_disp, op)))
        return 0;
    rc = check_predefined(datatype);
    return rc ? rc : weft_mpi_get_accumulate(origin_addr, 1, datatype, result_addr, 1, datatype, target_rank, target_disp, 1, datatype, op,
                                             win);
}

/* MPI 5.0 12.3.4: C integers, Fortran integers, logicals, multi-language types and bytes. */
static int check_swapped(const weft_type *type)
{
    if (type->is_predefined && (type->class_ == WEFT_CLASS_INT || type->class_ == WEFT_CLASS_UINT || type->class_ == WEFT_CLASS_BOOL ||
                                type->class_ == WEFT_CLASS_BYTE || (type->class_ == WEFT_CLASS_CHAR && type->size == 1)))
        return 0;
    return weft_fail(WEFT_E_TYPE, "MPI_Compare_and_swap does not take %s: only integer, logical and byte types (MPI 5.0, 12.3.4)",
                     type->name[0] ? type->name : "a derived datatype");
}

int weft_mpi_compare_and_swap(const void *origin_addr, const void *compare_addr, void *result_addr, const weft_type *datatype,
                              int target_rank, MPI_Aint target_disp, weft_win *win)
{
    weft_rma_op op = {.kind = WEFT_RMA_COMPARE_AND_SWAP, .target = (uint32_t)target_rank, .origin = origin_addr, .origin_count = 1,
                      .origin_type = datatype, .target_count = 1, .target_type = datatype, .compare = compare_addr, .result = result_addr};
    bool is_null;
    int rc = check_target(win, target_rank, false, &is_null);
    if (!rc && !is_null)
        rc = check_swapped(datatype);
    if (!rc && !is_null)
        rc = place(win, target_rank, target_disp, 1, datatype, &op.offset);
    return start(win, &op, rc, is_null, NULL);
}
