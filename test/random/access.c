/* SPDX-License-Identifier: BSD-3-Clause
 *
 * access: one-sided accesses and their model: the bytes of every member's window memory, changed in the order of the plan.
 * Invariant: accesses of an epoch that have no order do not change one place, or are accumulates of one commutative operator that return
 * nothing. A chain of accesses to one place is of one origin, ordered by MPI (12.7.2, accumulates) or by a flush between them.
 */
#include <stdlib.h>
#include <string.h>

#include "random.h"

enum { SUM, XOR, AND, OR, MAX, MIN, COMMUTATIVE, REPLACE = COMMUTATIVE, NO_OP, OPS };
enum { TARGET, ORIGIN, RESULT };
static const char *const use_names[] = {"put", "get", "acc", "get_acc", "fetch", "swap"};

typedef struct rp_pending {
    struct rp_pending *next;
    int target;
    rp_window *window;
    rp_type types[2];    /* of out and in */
    rp_buf out, in, want; /* want: what `in` must be */
    bool has_in;
    rp_op *op; /* of a request */
} rp_pending;

/* -- drawing -- */

/* Counts of items, so that all types have the same number of units: about `units`, or exactly. A type that is too coarse becomes a plain
 * one. */
static void draw_counts(rp_access *a, const rp_type *target, uint64_t units, bool is_exact)
{
    uint32_t per[3] = {rp_type_units(target)};
    uint64_t least = per[TARGET];
    for (int k = ORIGIN; k <= RESULT; k++) {
        rp_type type;
        rp_type_open(NULL, &type, a->types[k], a->depths[k], &a->sig);
        per[k] = rp_type_units(&type);
        rp_type_close(NULL, &type);
        if (is_exact ? units % per[k] != 0 : least % per[k] && (least * per[k] > units * 2 || least * per[k] > 4096)) {
            a->depths[k] = 0;
            per[k] = 1;
        } else if (!is_exact && least % per[k])
            least *= per[k];
    }
    for (int k = 0; k < 3; k++)
        a->counts[k] = (uint32_t)((units + least - 1) / least * least / per[k]);
}

/* A place for the target's items in what the epoch has left of its memory. */
static bool draw_place(rp_dice *dice, rp_window *w, rp_access *a, const rp_type *target)
{
    int64_t unit = w->unit[a->target], used = (w->used[a->target] + 15) / 16 * 16, span, below;
    span = a->counts[TARGET] ? target->true_ub - target->true_lb + (a->counts[TARGET] - 1) * (target->ub - target->lb) : 0;
    below = target->true_lb < 0 ? (-target->true_lb + 15) / 16 * 16 : 0;
    a->at = used + below;
    if (target->true_lb > 0) /* what is below the data may be used by others */
        a->at = used > target->true_lb ? (used - target->true_lb + 15) / 16 * 16 : 0;
    if (a->use <= RP_GET) /* also places without alignment */
        a->at += unit * rp_draw(dice, (uint32_t)(16 / unit));
    if (a->at + target->true_lb + span > w->bytes[a->target])
        return false;
    w->used[a->target] = (uint32_t)(a->at + target->true_lb + span);
    return true;
}

/* An access to the place of an earlier one. False: none is possible. */
static bool draw_chained(rp_dice *dice, rp_step *step, rp_window *w, rp_access *a)
{
    rp_access fresh = *a;
    if (!step->n)
        return false;
    const rp_access *to = &step->accesses[rp_draw(dice, (uint32_t)step->n)];
    for (int i = 0; i < step->n; i++) /* the last of a chain tells what it is */
        if (step->accesses[i].target == to->target && step->accesses[i].at == to->at)
            to = &step->accesses[i];
    bool may_flush = w->way >= RP_LOCK, is_open = to->use == RP_ACCUMULATE && to->op < COMMUTATIVE && !to->is_chained;
    *a = *to;
    a->key = fresh.key;
    a->is_chained = true;
    a->is_null = false;
    a->is_after_flush = false;
    memcpy(&a->types[ORIGIN], &fresh.types[ORIGIN], 2 * sizeof a->types[0]);
    memcpy(&a->depths[ORIGIN], &fresh.depths[ORIGIN], 2 * sizeof a->depths[0]);
    if (to->is_null || to->use == RP_SWAP)
        return !to->is_null;
    if (is_open && rp_draw(dice, 2)) {
        a->is_chained = false; /* others may join */
        a->origin = fresh.origin;
        return true;
    }
    if (is_open)
        return false; /* it may have been joined */
    if (to->use >= RP_ACCUMULATE) { /* ordered: the same operator, or none */
        a->use = to->use == RP_FETCH ? RP_FETCH : rp_draw(dice, 2) ? RP_GET_ACCUMULATE : RP_ACCUMULATE;
        if (a->use != RP_ACCUMULATE && rp_draw(dice, 4) == 0)
            a->op = NO_OP;
        return to->op != NO_OP || a->use != RP_ACCUMULATE;
    }
    if (!may_flush)
        return false;
    a->is_after_flush = true;
    a->is_by_request = false;
    a->use = rp_draw(dice, 2) ? RP_GET : RP_PUT;
    return true;
}

/* Ranks of the role, as the epoch has them; each epoch has some. */
static int draw_role(rp_dice *dice, const rp_window *w, int role)
{
    int n = w->group.n[0], i = (int)rp_draw(dice, (uint32_t)n);
    while (!(w->roles[i] & role))
        i = (i + 1) % n;
    return i;
}

static void draw_fresh(rp_dice *dice, rp_window *w, rp_access *a)
{
    static const uint8_t integers[] = {2, 3, 4, 7}; /* of rp_basics */
    static const uint32_t sizes[] = {1, 30, 30, 200, 200, 3000, 20000, 70000};
    *a = (rp_access){.use = (enum rp_use)rp_draw(dice, RP_USES), .origin = draw_role(dice, w, 1), .target = draw_role(dice, w, 2)};
    a->sig = rp_sig_draw(dice);
    a->op = (int)rp_draw(dice, COMMUTATIVE);
    if (a->use >= RP_ACCUMULATE)
        a->sig = (rp_sig){.n = 1, .basics = {integers[rp_draw(dice, 4)]}};
    if ((a->use == RP_GET_ACCUMULATE || a->use == RP_FETCH) && rp_draw(dice, 3) == 0)
        a->op = rp_draw(dice, 2) ? REPLACE : NO_OP;
    for (int k = 0; k < 3; k++) {
        a->types[k] = rp_draw(dice, 1u << 30);
        a->depths[k] = (int)rp_draw(dice, 2) * (int)rp_draw(dice, 4);
    }
    a->is_by_request = w->way >= RP_LOCK && rp_draw(dice, 3) == 0;
    a->is_large = rp_draw(dice, 4) == 0;
    a->is_null = rp_draw(dice, 30) == 0;
    a->is_equal = rp_draw(dice, 2);
    a->counts[TARGET] = rp_draw(dice, sizes[rp_draw(dice, 8)]); /* bytes, for now */
    if (a->use >= RP_FETCH)
        a->is_by_request = false;
}

bool rp_access_draw(rp *rp, rp_step *step, rp_window *w, rp_access *a)
{
    static const char *const op_names[] = {"sum", "xor", "and", "or", "max", "min", "replace", "no_op"};
    rp_dice *dice = &step->dice;
    rp_access fresh;
    rp_type target;
    bool is_placed = true;
    draw_fresh(dice, w, a);
    a->key = rp_key(rp, step->index, a->origin, (uint32_t)step->n);
    fresh = *a;
    bool is_chained = rp_draw(dice, 3) == 0 && draw_chained(dice, step, w, a);
    if (!is_chained)
        *a = fresh;
    if (a->use >= RP_FETCH)
        memset(a->depths, 0, sizeof a->depths);
    rp_type_open(NULL, &target, a->types[TARGET], a->depths[TARGET], &a->sig);
    uint64_t units = is_chained ? (uint64_t)a->counts[TARGET] * rp_type_units(&target)
                                : (uint64_t)a->counts[TARGET] * (uint64_t)a->sig.n / (uint64_t)target.size * rp_type_units(&target);
    if (a->use >= RP_FETCH)
        units = 1;
    draw_counts(a, &target, units, is_chained);
    if (!is_chained)
        is_placed = draw_place(dice, w, a, &target);
    rp_type_close(NULL, &target);
    if (is_placed)
        rp_say(step, " %d>%d %s%s%s%s%s at %lld, %llu units", a->origin, a->target, use_names[a->use], a->use >= RP_ACCUMULATE ? "_" : "",
               a->use >= RP_ACCUMULATE && a->use < RP_SWAP ? op_names[a->op] : "", a->is_by_request ? " by request" : "",
               is_chained ? " again" : "", (long long)a->at, (unsigned long long)units);
    return is_placed;
}

/* -- model -- */

static uint64_t mask_of(int bytes) { return bytes == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * bytes) - 1; }

static bool is_less(uint8_t basic, uint64_t a, uint64_t b)
{
    int shift = 64 - 8 * rp_basics[basic].bytes;
    return basic == 7 ? a < b : (int64_t)(a << shift) < (int64_t)(b << shift);
}

static uint64_t combine(const rp_access *a, uint64_t old, uint64_t k)
{
    uint64_t by = rp_value(a->key, k) & mask_of(rp_basics[a->sig.basics[0]].bytes);
    switch (a->op) {
    case SUM: return old + by;
    case XOR: return old ^ by;
    case AND: return old & by;
    case OR: return old | by;
    case MAX: return is_less(a->sig.basics[0], old, by) ? by : old;
    case MIN: return is_less(a->sig.basics[0], by, old) ? by : old;
    case REPLACE: return by;
    default: return old;
    }
}

/* Performs the access on the model. p: this rank's, whose expected buffer gets the old values; or NULL. */
static void run_model(rp_window *w, const rp_access *a, rp_pending *p)
{
    rp_type target;
    rp_type_open(NULL, &target, a->types[TARGET], a->depths[TARGET], &a->sig);
    const rp_type *in = p ? &p->types[1] : NULL;
    uint64_t n = (uint64_t)a->counts[TARGET] * target.entries;
    for (uint64_t k = 0; k < n; k++) {
        const rp_entry *e = &target.map[k % target.entries];
        size_t bytes = rp_basics[e->basic].bytes;
        uint8_t *at = w->model[a->target] + a->at + (int64_t)(k / target.entries) * (target.ub - target.lb) + e->at;
        uint64_t old = 0, new = rp_value(a->key, k);
        memcpy(&old, at, bytes);
        if (p && p->has_in)
            memcpy((uint8_t *)rp_buf_at(&p->want, in, k / in->entries) + in->map[k % in->entries].at, &old, bytes);
        if (a->use == RP_GET || (a->use == RP_SWAP && !a->is_equal))
            continue;
        if (a->use >= RP_ACCUMULATE && a->use < RP_SWAP)
            new = combine(a, old, k);
        memcpy(at, &new, bytes);
    }
    rp_type_close(NULL, &target);
}

/* -- performing -- */

static void finish(rp *rp, rp_pending *p)
{
    if (p->has_in)
        rp_buf_same(rp, &p->in, &p->want, "one-sided access: result");
    for (int k = 0; k < 2; k++)
        rp_type_close(rp, &p->types[k]);
    rp_buf_close(&p->out);
    rp_buf_close(&p->in);
    rp_buf_close(&p->want);
    free(p);
}

static void unlink_pending(rp_pending *p)
{
    rp_pending **at = &p->window->pending;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
}

static void request_done(rp *rp, rp_op *op, const MPI_Status *status)
{
    rp_pending *p = op->arg;
    (void)status;
    unlink_pending(p);
    finish(rp, p);
}

void rp_accesses_done(rp *rp, rp_window *w, int target)
{
    rp_pending **at = &w->pending;
    while (*at) {
        rp_pending *p = *at;
        if (p->op || (target >= 0 && p->target != target)) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        finish(rp, p);
    }
}

void rp_accesses_wait(rp *rp, rp_window *w, int target)
{
    rp_pending *p = w->pending;
    while (p) {
        bool is_met = p->op && (target < 0 || p->target == target);
        if (is_met)
            rp_op_finish(rp, p->op);
        p = is_met ? w->pending : p->next;
    }
}

static MPI_Op op_of(int op)
{
    const MPI_Op ops[OPS] = {MPI_SUM, MPI_BXOR, MPI_BAND, MPI_BOR, MPI_MAX, MPI_MIN, MPI_REPLACE, MPI_NO_OP};
    return ops[op];
}

#if RP_MPI(4, 0)
#define CALL(name, ...) RP_OK(rp, a->is_large ? MPI_##name##_c(__VA_ARGS__) : MPI_##name(__VA_ARGS__))
#else
#define CALL(name, ...) RP_OK(rp, MPI_##name(__VA_ARGS__))
#endif
#define OUT rp_buf_at(&p->out, &p->types[0], 0), (int)a->counts[ORIGIN], p->types[0].mpi
#define IN rp_buf_at(&p->in, &p->types[1], 0), (int)a->counts[RESULT], p->types[1].mpi
#define AT to, disp, (int)a->counts[TARGET], far.mpi

static void issue(rp *rp, rp_window *w, const rp_access *a, rp_pending *p, MPI_Request *req)
{
    rp_type far;
    rp_type_open(rp, &far, a->types[TARGET], a->depths[TARGET], &a->sig);
    int to = a->is_null ? MPI_PROC_NULL : a->target;
    MPI_Aint disp = w->is_dynamic ? MPI_Aint_add(w->base[a->target], (MPI_Aint)a->at) : (MPI_Aint)(a->at / w->unit[a->target]);
    MPI_Op op = op_of(a->op);
    void *out = rp_buf_at(&p->out, &p->types[0], 0), *in = rp_buf_at(&p->in, &p->types[1], 0);
    uint64_t compared = 0;
    if (a->use == RP_PUT && req)
        CALL(Rput, OUT, AT, w->mpi, req);
    else if (a->use == RP_PUT)
        CALL(Put, OUT, AT, w->mpi);
    else if (a->use == RP_GET && req)
        CALL(Rget, IN, AT, w->mpi, req);
    else if (a->use == RP_GET)
        CALL(Get, IN, AT, w->mpi);
    else if (a->use == RP_ACCUMULATE && req)
        CALL(Raccumulate, OUT, AT, op, w->mpi, req);
    else if (a->use == RP_ACCUMULATE)
        CALL(Accumulate, OUT, AT, op, w->mpi);
    else if (a->use == RP_GET_ACCUMULATE && req)
        CALL(Rget_accumulate, OUT, IN, AT, op, w->mpi, req);
    else if (a->use == RP_GET_ACCUMULATE)
        CALL(Get_accumulate, OUT, IN, AT, op, w->mpi);
    else if (a->use == RP_FETCH)
        RP_OK(rp, MPI_Fetch_and_op(out, in, far.mpi, to, disp, op, w->mpi));
    else {
        memcpy(&compared, w->model[a->target] + a->at, (size_t)far.size);
        compared ^= !a->is_equal;
        memcpy((uint8_t *)out + far.size, &compared, (size_t)far.size); /* it lives as long as the buffer */
        RP_OK(rp, MPI_Compare_and_swap(out, (uint8_t *)out + far.size, in, far.mpi, to, disp, w->mpi));
    }
    rp_type_close(rp, &far); /* in use still */
}

static void perform(rp *rp, rp_window *w, const rp_access *a, rp_pending *p)
{
    MPI_Request req = MPI_REQUEST_NULL;
    *p = (rp_pending){.next = w->pending, .target = a->target, .window = w, .has_in = a->use != RP_PUT && a->use != RP_ACCUMULATE};
    w->pending = p;
    for (int k = 0; k < 2; k++)
        rp_type_open(rp, &p->types[k], a->types[ORIGIN + k], a->depths[ORIGIN + k], &a->sig);
    rp_buf_open(&p->out, &p->types[0], a->counts[ORIGIN] + 1);
    rp_buf_open(&p->in, &p->types[1], a->counts[RESULT] + 1);
    rp_buf_open(&p->want, &p->types[1], a->counts[RESULT] + 1);
    rp_buf_put(&p->out, &p->types[0], 0, a->key, (uint64_t)a->counts[ORIGIN] * p->types[0].entries);
    if (a->use == RP_PUT && a->counts[ORIGIN] && !a->is_null && rp_plants(rp, "put"))
        ((uint8_t *)rp_buf_at(&p->out, &p->types[0], 0))[p->types[0].map[0].at] ^= 4;
    issue(rp, w, a, p, a->is_by_request ? &req : NULL);
    for (int k = 0; k < 2; k++)
        if (!p->types[k].is_named && rp_draw(&rp->own, 2))
            RP_OK(rp, MPI_Type_free(&p->types[k].mpi)); /* in use still */
    if (req != MPI_REQUEST_NULL) {
        p->op = rp_op_add(rp, use_names[a->use], request_done, p);
        p->op->req = req;
    }
}

void rp_access_run(rp *rp, rp_window *w, const rp_access *a)
{
    rp_pending *p = NULL;
    if (a->origin == w->group.rank) {
        if (a->is_after_flush) {
            RP_OK(rp, MPI_Win_flush(a->target, w->mpi));
            rp_accesses_done(rp, w, a->target);
        }
        p = rp_alloc(sizeof *p);
        perform(rp, w, a, p);
    }
    if (!a->is_null)
        run_model(w, a, p);
}
