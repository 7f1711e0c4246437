/* SPDX-License-Identifier: BSD-3-Clause
 *
 * windows: windows of every flavor on the program's communicators, which they may outlive, and epochs that stay open over several steps,
 * beside messages and collectives in flight. At an epoch's end each rank compares its whole memory with the model.
 * Invariant: while an epoch is open its lock type and its groups stay, and a rank holds one lock at most, so that locks do not wait in a
 * circle.
 */
#include <stdlib.h>
#include <string.h>

#include "random.h"

static const char *const way_names[] = {"fence", "post-start", "lock", "lock_all"};

void rp_nodes_find(rp *rp)
{
    MPI_Comm node;
    int least = rp->rank;
    RP_OK(rp, MPI_Comm_split_type(rp->base, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    RP_OK(rp, MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, node));
    RP_OK(rp, MPI_Allgather(&least, 1, MPI_INT, rp->nodes, 1, MPI_INT, rp->base));
    RP_OK(rp, MPI_Comm_free(&node));
}

/* -- opening -- */

void plan_window(rp *rp, rp_step *step)
{
    static const uint32_t sizes[] = {2000, 2000, 20000, 150000};
    rp_dice *dice = &step->dice;
    for (step->slot = 0; step->slot < RP_WINDOWS && rp->windows[step->slot].is_used; step->slot++)
        ;
    step->comm = rp_comm_pick(rp, dice, false, true);
    if (step->slot == RP_WINDOWS || rp->comms[step->comm].is_inter) {
        rp_say(step, "window: no slot is free");
        step->slot = RP_WINDOWS;
        return;
    }
    rp_window *w = &rp->windows[step->slot];
    int flavor = (int)rp_draw(dice, 4);
    *w = (rp_window){.is_used = true, .is_dynamic = flavor == 3, .is_shared = flavor == 2, .is_created = flavor == 1, .born = step->index,
                     .group = rp->comms[step->comm], .has_no_locks = rp_draw(dice, 6) == 0};
    uint32_t most = sizes[rp_draw(dice, 4)];
    rp_say(step, "window %d on %d,%s%s%s%s, bytes:", step->slot, step->comm, w->is_created ? " created" : "", w->is_shared ? " shared" : "",
           w->is_dynamic ? " dynamic" : "", w->has_no_locks ? " no_locks" : "");
    for (int i = 0; i < w->group.n[0]; i++) {
        w->bytes[i] = rp_draw(dice, 8) ? rp_draw(dice, most) / 64 * 64 : 0;
        w->unit[i] = w->is_dynamic ? 1 : 1 << rp_draw(dice, 5);
        rp_say(step, " %u", w->bytes[i]);
    }
}

static bool is_one_node(const rp *rp, const rp_comm *group)
{
    for (int i = 1; i < group->n[0]; i++)
        if (rp->nodes[group->members[0][i]] != rp->nodes[group->members[0][0]])
            return false;
    return true;
}

static void fill_local(rp_window *w, int rank, uint64_t key, uint32_t from, uint32_t to)
{
    for (uint32_t i = from / 8 * 8; i + 8 <= to; i += 8) {
        uint64_t value = rp_value(key, i);
        memcpy(w->model[rank] + i, &value, 8);
    }
}

/* Own memory is attached in up to three regions that touch, with borders of this rank's choice. */
static void attach(rp *rp, rp_window *w)
{
    uint32_t bytes = w->bytes[w->group.rank], from = 0, to;
    for (w->regions = 0; from < bytes; from = to) {
        to = w->regions == RP_REGIONS - 1 || rp_draw(&rp->own, 2) ? bytes : from + 1 + rp_draw(&rp->own, bytes - from);
        RP_OK(rp, MPI_Win_attach(w->mpi, w->mem + from, to - from));
        w->region[w->regions++] = from;
    }
}

static void detach(rp *rp, rp_window *w)
{
    while (w->regions)
        RP_OK(rp, MPI_Win_detach(w->mpi, w->mem + w->region[--w->regions]));
}

static void open_memory(rp *rp, rp_window *w, int me, MPI_Info info)
{
    MPI_Aint bytes = (MPI_Aint)w->bytes[me];
    if (w->is_dynamic) {
        w->mem = rp_alloc(w->bytes[me]);
        RP_OK(rp, MPI_Win_create_dynamic(info, w->comm, &w->mpi));
        attach(rp, w);
        if (bytes)
            RP_OK(rp, MPI_Get_address(w->mem, &w->base[me]));
        RP_OK(rp, MPI_Allgather(MPI_IN_PLACE, 0, MPI_AINT, w->base, 1, MPI_AINT, w->comm));
    } else if (w->is_created) {
        w->mem = rp_alloc(w->bytes[me]);
        RP_OK(rp, MPI_Win_create(w->mem, bytes, w->unit[me], info, w->comm, &w->mpi));
    } else if (w->is_shared)
        RP_OK(rp, MPI_Win_allocate_shared(bytes, w->unit[me], info, w->comm, &w->mem, &w->mpi));
    else
        RP_OK(rp, MPI_Win_allocate(bytes, w->unit[me], info, w->comm, &w->mem, &w->mpi));
}

/* Own memory, and what a shared window shows of the others', is what the model says; then all ranks meet. */
static void verify_memory(rp *rp, rp_window *w)
{
    int me = w->group.rank;
    bool may_lock = !w->has_no_locks && w->way >= RP_LOCK;
    if (may_lock)
        RP_OK(rp, MPI_Win_lock(MPI_LOCK_SHARED, me, 0, w->mpi));
    for (int i = 0; i < w->group.n[0]; i++) {
        rp_buf got = {.mem = w->mem, .bytes = w->bytes[i]}, want = {.mem = w->model[i], .bytes = w->bytes[i]};
        MPI_Aint bytes;
        int unit;
        if (i != me && !w->is_shared)
            continue;
        if (i != me) {
            RP_OK(rp, MPI_Win_shared_query(w->mpi, i, &bytes, &unit, &got.mem));
            RP_SAME(rp, bytes, w->bytes[i], "MPI_Win_shared_query: bytes");
            RP_SAME(rp, unit, w->unit[i], "MPI_Win_shared_query: unit");
        }
        if (w->bytes[i])
            rp_buf_same(rp, &got, &want, i == me ? "window's memory" : "shared memory of another rank");
    }
    if (may_lock)
        RP_OK(rp, MPI_Win_unlock(me, w->mpi));
    RP_OK(rp, MPI_Barrier(w->comm));
}

/* Each rank writes a part of its memory by stores; dynamic windows' regions get other borders. */
static void store_local(rp *rp, rp_window *w, uint64_t key, bool is_all)
{
    int me = w->group.rank;
    for (int i = 0; i < w->group.n[0]; i++)
        fill_local(w, i, rp_hash(key, (uint64_t)i), is_all ? 0 : w->bytes[i] / 3, w->bytes[i]);
    if (!w->has_no_locks)
        RP_OK(rp, MPI_Win_lock(MPI_LOCK_EXCLUSIVE, me, 0, w->mpi));
    if (w->bytes[me])
        memcpy(w->mem, w->model[me], w->bytes[me]);
    if (!w->has_no_locks)
        RP_OK(rp, MPI_Win_unlock(me, w->mpi));
    if (w->is_dynamic && rp_draw(&rp->own, 2)) {
        detach(rp, w);
        attach(rp, w);
    }
    RP_OK(rp, MPI_Barrier(w->comm));
}

void run_window(rp *rp, rp_step *step)
{
    if (step->slot == RP_WINDOWS || !rp->comms[step->comm].is_member)
        return;
    rp_window *w = &rp->windows[step->slot];
    MPI_Info info = MPI_INFO_NULL;
    w->group = rp->comms[step->comm];
    if (w->is_shared && !is_one_node(rp, &w->group))
        w->is_shared = false;
    if (w->has_no_locks) {
        RP_OK(rp, MPI_Info_create(&info));
        RP_OK(rp, MPI_Info_set(info, "no_locks", "true"));
    }
    RP_OK(rp, MPI_Comm_dup(w->group.mpi, &w->comm));
    RP_OK(rp, MPI_Comm_set_errhandler(w->comm, MPI_ERRORS_RETURN));
    for (int i = 0; i < w->group.n[0]; i++)
        w->model[i] = rp_alloc(w->bytes[i]);
    open_memory(rp, w, w->group.rank, info);
    RP_OK(rp, MPI_Win_set_errhandler(w->mpi, MPI_ERRORS_RETURN));
    if (info != MPI_INFO_NULL)
        RP_OK(rp, MPI_Info_free(&info));
    store_local(rp, w, rp_key(rp, step->index, 0, 0), true);
}

/* -- epochs -- */

static MPI_Group group_of(rp *rp, const rp_window *w, int role)
{
    MPI_Group all, part;
    int ranks[RP_RANKS], n = 0;
    for (int i = 0; i < w->group.n[0]; i++)
        if (w->roles[i] & role)
            ranks[n++] = i;
    RP_OK(rp, MPI_Win_get_group(w->mpi, &all));
    RP_OK(rp, MPI_Group_incl(all, n, ranks, &part));
    RP_OK(rp, MPI_Group_free(&all));
    return part;
}

static void post_and_start(rp *rp, rp_window *w)
{
    int role = w->roles[w->group.rank];
    MPI_Group origins = group_of(rp, w, 1), targets = group_of(rp, w, 2);
    if (role & 2)
        RP_OK(rp, MPI_Win_post(origins, 0, w->mpi));
    if (role & 1)
        RP_OK(rp, MPI_Win_start(targets, 0, w->mpi));
    RP_OK(rp, MPI_Group_free(&origins));
    RP_OK(rp, MPI_Group_free(&targets));
}

static void complete_and_wait(rp *rp, rp_window *w)
{
    int role = w->roles[w->group.rank], flag = 0;
    if (role & 1)
        RP_OK(rp, MPI_Win_complete(w->mpi));
    if ((role & 2) && rp_draw(&rp->own, 2))
        while (!flag)
            RP_OK(rp, MPI_Win_test(w->mpi, &flag));
    else if (role & 2)
        RP_OK(rp, MPI_Win_wait(w->mpi));
}

static void open_epoch(rp *rp, rp_window *w)
{
    if (w->way == RP_FENCE)
        RP_OK(rp, MPI_Win_fence(w->is_exclusive ? MPI_MODE_NOPRECEDE : 0, w->mpi));
    else if (w->way == RP_PSCW)
        post_and_start(rp, w);
    else if (w->way == RP_LOCK_ALL)
        RP_OK(rp, MPI_Win_lock_all(rp_draw(&rp->own, 4) ? 0 : MPI_MODE_NOCHECK, w->mpi));
}

/* All accesses are performed, and what follows at other ranks finds them. */
static void close_epoch(rp *rp, rp_window *w, bool is_last)
{
    if (rp_draw(&rp->own, 2))
        rp_accesses_wait(rp, w, -1);
    if (w->way == RP_FENCE)
        RP_OK(rp, MPI_Win_fence(is_last ? MPI_MODE_NOSUCCEED : 0, w->mpi));
    else if (w->way == RP_PSCW)
        complete_and_wait(rp, w);
    else if (w->way == RP_LOCK_ALL && is_last)
        RP_OK(rp, MPI_Win_unlock_all(w->mpi));
    else if (w->way == RP_LOCK_ALL)
        RP_OK(rp, MPI_Win_flush_all(w->mpi));
    rp_accesses_wait(rp, w, -1);
    rp_accesses_done(rp, w, -1);
    if (w->way >= RP_LOCK || is_last)
        RP_OK(rp, MPI_Barrier(w->comm));
    if (w->way == RP_LOCK_ALL && !is_last)
        RP_OK(rp, MPI_Win_sync(w->mpi));
}

static void plan_epoch(rp_step *step, rp_window *w)
{
    rp_dice *dice = &step->dice;
    int n = w->group.n[0];
    w->is_open = true;
    w->way = (enum rp_way)rp_draw(dice, w->has_no_locks ? RP_LOCK : RP_WAYS);
    w->is_exclusive = rp_draw(dice, 2);
    memset(w->used, 0, sizeof w->used);
    for (int i = 0; i < n; i++)
        w->roles[i] = w->way == RP_PSCW ? (int)rp_draw(dice, 4) : 3;
    w->roles[rp_draw(dice, (uint32_t)n)] |= 1;
    w->roles[rp_draw(dice, (uint32_t)n)] |= 2;
}

/* form: 1: opens an epoch first. variant, after the accesses: 0: the epoch stays, 1: a new one of its kind begins, 2: it ends, 3: and ranks
 * store to their memory. */
void plan_access(rp *rp, rp_step *step)
{
    rp_dice *dice = &step->dice;
    step->slot = (int)rp_draw(dice, RP_WINDOWS);
    for (int i = 0; i < RP_WINDOWS && !rp->windows[step->slot].is_used; i++)
        step->slot = (step->slot + 1) % RP_WINDOWS;
    rp_window *w = &rp->windows[step->slot];
    if (!w->is_used) {
        step->slot = RP_WINDOWS;
        rp_say(step, "access: no window");
        return;
    }
    step->form = !w->is_open;
    if (!w->is_open)
        plan_epoch(step, w);
    rp_say(step, "window %d, %s%s%s:", step->slot, step->form ? "new " : "", w->way == RP_LOCK && w->is_exclusive ? "exclusive " : "",
           way_names[w->way]);
    int tries = (int)rp_draw(dice, RP_ACCESSES + 1);
    for (int i = 0; i < tries; i++)
        step->n += rp_access_draw(rp, step, w, &step->accesses[step->n]);
    step->variant = (int)rp_draw(dice, 4);
    if (step->variant == 1)
        memset(w->used, 0, sizeof w->used);
    if (step->variant >= 2)
        w->is_open = false;
    static const char *const ends[] = {"", "; again", "; end", "; end, stores"};
    rp_say(step, "%s", ends[step->variant]);
}

/* Flushes that the others need not know. */
static void flush_some(rp *rp, rp_window *w, const rp_access *a)
{
    uint32_t form = rp_draw(&rp->own, 12);
    if (form == 0)
        RP_OK(rp, MPI_Win_flush(a->target, w->mpi));
    else if (form == 1)
        RP_OK(rp, MPI_Win_flush_local(a->target, w->mpi));
    else if (form == 2)
        RP_OK(rp, MPI_Win_flush_all(w->mpi));
    else if (form == 3)
        RP_OK(rp, MPI_Win_flush_local_all(w->mpi));
    if (form < 4)
        rp_accesses_done(rp, w, form < 2 ? a->target : -1);
    if (form == 4)
        rp_ops_some(rp, rp_draw(&rp->own, 2));
}

static void unlock(rp *rp, rp_window *w, int target)
{
    if (target < 0)
        return;
    if (rp_draw(&rp->own, 2))
        rp_accesses_wait(rp, w, target);
    RP_OK(rp, MPI_Win_unlock(target, w->mpi));
    rp_accesses_done(rp, w, target);
}

void run_access(rp *rp, rp_step *step)
{
    rp_window *w = step->slot < RP_WINDOWS ? &rp->windows[step->slot] : NULL;
    int held = -1;
    if (!w || !w->group.is_member)
        return;
    if (step->form)
        open_epoch(rp, w);
    for (int i = 0; i < step->n; i++) {
        const rp_access *a = &step->accesses[i];
        bool is_mine = a->origin == w->group.rank;
        if (w->way == RP_LOCK && is_mine && held != a->target) {
            unlock(rp, w, held);
            held = a->target;
            RP_OK(rp, MPI_Win_lock(w->is_exclusive ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, held, 0, w->mpi));
        }
        rp_access_run(rp, w, a);
        if (is_mine && w->way >= RP_LOCK)
            flush_some(rp, w, a);
    }
    unlock(rp, w, held);
    if (step->variant) {
        close_epoch(rp, w, step->variant >= 2);
        if (step->variant == 1 && w->way == RP_PSCW)
            post_and_start(rp, w);
    }
    if (step->variant >= 2)
        verify_memory(rp, w);
    if (step->variant == 3)
        store_local(rp, w, rp_key(rp, step->index, 0, RP_ACCESSES), false);
}

/* -- the end of windows -- */

static void close_window(rp *rp, rp_window *w, bool is_open)
{
    if (!w->group.is_member)
        return;
    if (is_open) {
        close_epoch(rp, w, true);
        verify_memory(rp, w);
    }
    if (w->is_dynamic && rp_draw(&rp->own, 2))
        detach(rp, w);
    RP_OK(rp, MPI_Win_free(&w->mpi));
    RP_SAME(rp, w->mpi == MPI_WIN_NULL, 1, "MPI_Win_free: the handle is null");
    RP_OK(rp, MPI_Comm_free(&w->comm));
    if (w->is_dynamic || w->is_created)
        free(w->mem);
    for (int i = 0; i < w->group.n[0]; i++)
        free(w->model[i]);
}

void plan_unwindow(rp *rp, rp_step *step)
{
    step->slot = (int)rp_draw(&step->dice, RP_WINDOWS);
    rp_window *w = &rp->windows[step->slot];
    step->form = w->is_used ? 1 + w->is_open : 0;
    w->is_used = w->is_open = false;
    rp_say(step, step->form ? "free window %d" : "free window %d: none", step->slot);
}

void run_unwindow(rp *rp, rp_step *step)
{
    if (step->form)
        close_window(rp, &rp->windows[step->slot], step->form == 2);
}

void rp_windows_close(rp *rp)
{
    for (int i = 0; i < RP_WINDOWS; i++)
        if (rp->windows[i].is_used)
            close_window(rp, &rp->windows[i], rp->windows[i].is_open);
}
