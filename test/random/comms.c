/* SPDX-License-Identifier: BSD-3-Clause
 *
 * comms: communicators: duplicates in flight over traffic, parts, groups, intercommunicators, sessions' ones; freed while messages are
 * pending. Slot 0 is the base communicator and stays. New communicators are modelled by all ranks, their members' handles by them alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

int rp_comm_rank_in(const rp *rp, const rp_comm *comm, int side)
{
    (void)rp;
    return comm->is_member && comm->side == side ? comm->rank : -1;
}

int rp_comm_pick(const rp *rp, rp_dice *dice, bool may_inter, bool is_known)
{
    int first = (int)rp_draw(dice, RP_COMMS);
    for (int i = 0; i < RP_COMMS; i++) {
        const rp_comm *comm = &rp->comms[(first + i) % RP_COMMS];
        if (comm->state == RP_LIVE && (may_inter || !comm->is_inter) && (!is_known || comm->is_order_known))
            return (first + i) % RP_COMMS;
    }
    return 0;
}

int rp_comm_slot(const rp *rp, int after)
{
    for (int i = after + 1; i < RP_COMMS; i++)
        if (rp->comms[i].state == RP_EMPTY)
            return i;
    return -1;
}

/* Where this rank is in the model's groups. */
void rp_comm_find_self(rp *rp, rp_comm *comm)
{
    comm->is_member = false;
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < comm->n[side]; i++)
            if (comm->members[side][i] == rp->rank) {
                comm->is_member = true;
                comm->side = side;
                comm->rank = i;
            }
}

/* Enters a new communicator of the plan into its slot. */
rp_comm *rp_comm_enter(rp *rp, rp_step *step, int slot, const rp_comm *model)
{
    rp_comm *comm = &rp->comms[slot];
    *comm = *model;
    comm->state = RP_LIVE;
    comm->born = step->index;
    comm->session = comm->buffer = NULL;
    comm->buffered = 0;
    comm->is_buffered = false;
    comm->started = MPI_REQUEST_NULL;
    comm->parent = 0;
    comm->mpi = MPI_COMM_NULL;
    rp_comm_find_self(rp, comm);
    return comm;
}

/* The communicator that a call made is the one that the plan says. */
void rp_comm_verify(rp *rp, rp_comm *comm)
{
    int rank, size, inter, flag, *value;
    if (!comm->is_member) {
        RP_SAME(rp, comm->mpi == MPI_COMM_NULL, 1, "new communicator: null outside of its group");
        return;
    }
    if (comm->mpi == MPI_COMM_NULL)
        rp_fail(rp, "new communicator: a member got MPI_COMM_NULL");
    RP_OK(rp, MPI_Comm_rank(comm->mpi, &rank));
    RP_OK(rp, MPI_Comm_size(comm->mpi, &size));
    RP_OK(rp, MPI_Comm_test_inter(comm->mpi, &inter));
    RP_SAME(rp, size, comm->n[comm->side], "new communicator: size");
    RP_SAME(rp, inter, comm->is_inter, "new communicator: MPI_Comm_test_inter");
    RP_SAME(rp, rank, comm->rank, "new communicator: rank");
    if (comm->is_inter) {
        RP_OK(rp, MPI_Comm_remote_size(comm->mpi, &size));
        RP_SAME(rp, size, comm->n[1 - comm->side], "new communicator: remote size");
    }
    RP_OK(rp, MPI_Comm_get_attr(comm->mpi, rp->keyval, &value, &flag));
    RP_SAME(rp, flag ? (long long)(intptr_t)value : -1, comm->marks, "new communicator: attribute");
    RP_OK(rp, MPI_Comm_set_errhandler(comm->mpi, MPI_ERRORS_RETURN));
#if RP_MPI(4, 1)
    switch (rp_draw(&rp->own, 4)) { /* a matter of each rank alone */
    case 0:
        comm->is_buffered = true;
        RP_OK(rp, MPI_Comm_attach_buffer(comm->mpi, MPI_BUFFER_AUTOMATIC, 0));
        break;
    case 1:
        comm->is_buffered = true;
        comm->buffer = rp_alloc(1 << 20);
        RP_OK(rp, MPI_Comm_attach_buffer(comm->mpi, comm->buffer, 1 << 20));
        break;
    }
#endif
}

/* -- attributes: a copy callback that adds one, or refuses odd tens -- */

static int attr_copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void)comm;
    (void)keyval;
    (void)extra;
    *flag = (intptr_t)in % 10 != 7;
    *(void **)out = (void *)((intptr_t)in + 1);
    return MPI_SUCCESS;
}

static int attr_delete(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm;
    (void)keyval;
    (void)value;
    (void)extra;
    return MPI_SUCCESS;
}

static int copied_mark(int marks) { return marks < 0 || marks % 10 == 7 ? -1 : marks + 1; }

int rp_attr_open(rp *rp)
{
    int keyval;
    RP_OK(rp, MPI_Comm_create_keyval(attr_copy, attr_delete, &keyval, NULL));
    return keyval;
}

/* -- duplicates -- */

void plan_dup(rp *rp, rp_step *step)
{
    rp_dice *dice = &step->dice;
    step->slot = rp_comm_slot(rp, 0);
    step->other = rp_comm_pick(rp, dice, true, false);
    step->form = (int)rp_draw(dice, 4);
    if (!RP_MPI(4, 0))
        step->form %= 2;
    if (step->slot < 0) {
        rp_say(step, "dup: no slot is free");
        return;
    }
    rp_comm *comm = rp_comm_enter(rp, step, step->slot, &rp->comms[step->other]);
    comm->marks = copied_mark(comm->marks);
    comm->parent = (uint32_t)step->other;
    comm->dims = rp->comms[step->other].dims;
    if (step->form >= 2)
        comm->state = RP_STARTED;
    rp_say(step, "%s %d from %d", step->form == 0 ? "dup" : step->form == 1 ? "dup_with_info" : step->form == 2 ? "idup" : "idup_with_info",
           step->slot, step->other);
}

void run_dup(rp *rp, rp_step *step)
{
    if (step->slot < 0)
        return;
    rp_comm *comm = &rp->comms[step->slot];
    MPI_Comm old = rp->comms[step->other].mpi;
    MPI_Info info = MPI_INFO_NULL;
    comm->is_member = rp->comms[step->other].is_member;
    comm->rank = rp->comms[step->other].rank;
    comm->side = rp->comms[step->other].side;
    if (!comm->is_member)
        return;
    if (step->form % 2 == 1) {
        RP_OK(rp, MPI_Info_create(&info));
        RP_OK(rp, MPI_Info_set(info, "mpi_assert_allow_overtaking", "false"));
    }
    switch (step->form) {
    case 0: RP_OK(rp, MPI_Comm_dup(old, &comm->mpi)); break;
    case 1: RP_OK(rp, MPI_Comm_dup_with_info(old, info, &comm->mpi)); break;
    case 2: RP_OK(rp, MPI_Comm_idup(old, &comm->mpi, &comm->started)); break;
#if RP_MPI(4, 0)
    default: RP_OK(rp, MPI_Comm_idup_with_info(old, info, &comm->mpi, &comm->started));
#endif
    }
    if (info != MPI_INFO_NULL)
        RP_OK(rp, MPI_Info_free(&info));
    if (step->form < 2)
        rp_comm_verify(rp, comm);
}

void plan_finish_dup(rp *rp, rp_step *step)
{
    step->slot = -1;
    for (int i = 0; i < RP_COMMS; i++)
        if (rp->comms[i].state == RP_STARTED)
            step->slot = i;
    if (step->slot >= 0)
        rp->comms[step->slot].state = RP_LIVE;
    rp_say(step, "wait for the idup of %d", step->slot);
}

static void finish_dup(rp *rp, rp_comm *comm)
{
    if (!comm->is_member)
        return;
    RP_OK(rp, MPI_Wait(&comm->started, MPI_STATUS_IGNORE));
    rp_comm_verify(rp, comm);
}

void run_finish_dup(rp *rp, rp_step *step)
{
    if (step->slot >= 0)
        finish_dup(rp, &rp->comms[step->slot]);
}

/* -- parts -- */

/* Colors and keys of an intracommunicator's ranks; at most two colors are kept in slots, a rank with another has none. */
void plan_split(rp *rp, rp_step *step)
{
    rp_dice *dice = &step->dice;
    step->other = rp_comm_pick(rp, dice, false, true);
    step->slots[0] = rp_comm_slot(rp, 0);
    step->slots[1] = step->slots[0] < 0 ? -1 : rp_comm_slot(rp, step->slots[0]);
    step->form = (int)rp_draw(dice, 3);
    if (step->slots[1] < 0) {
        rp_say(step, "split: no two slots are free");
        return;
    }
    const rp_comm *old = &rp->comms[step->other];
    rp_comm made[2] = {{.is_order_known = true, .marks = -1}, {.is_order_known = true, .marks = -1}};
    rp_say(step, "split of %d:", step->other);
    for (int i = 0; i < old->n[0]; i++) {
        step->colors[i] = (int)rp_draw(dice, 5) % 3;
        step->keys[i] = (int)rp_draw(dice, 4) - 1;
        rp_say(step, " %d/%d", step->colors[i], step->keys[i]);
    }
    for (int c = 0; c < 2; c++)
        for (int key = -1; key < 3; key++)
            for (int i = 0; i < old->n[0]; i++)
                if (step->colors[i] == c && step->keys[i] == key)
                    made[c].members[0][made[c].n[0]++] = old->members[0][i];
    for (int c = 0; c < 2; c++)
        if (made[c].n[0])
            rp_comm_enter(rp, step, step->slots[c], &made[c]);
        else
            step->slots[c] = -1;
    rp_say(step, " to %d, %d", step->slots[0], step->slots[1]);
    step->n = 1;
}

void run_split(rp *rp, rp_step *step)
{
    const rp_comm *old = &rp->comms[step->other];
    MPI_Comm new = MPI_COMM_NULL;
    if (!step->n || !old->is_member)
        return;
    int want = step->colors[old->rank], color = want, key = step->keys[old->rank];
    if (rp_plants(rp, "split")) /* with another color, a member alone in its part would be so again */
        color = want == 2 ? 0 : 2;
    RP_OK(rp, MPI_Comm_split(old->mpi, color == 2 ? MPI_UNDEFINED : color, key, &new));
    if (want == 2)
        RP_SAME(rp, new == MPI_COMM_NULL, 1, "split with MPI_UNDEFINED: null");
    for (int c = 0; c < 2; c++)
        if (step->slots[c] >= 0) {
            rp_comm *comm = &rp->comms[step->slots[c]];
            comm->mpi = want == c ? new : MPI_COMM_NULL;
            rp_comm_verify(rp, comm);
        }
}

/* By groups: MPI_Comm_create with one group per part, or MPI_Comm_create_group on two disjoint groups at once. */
void plan_create(rp *rp, rp_step *step)
{
    rp_dice *dice = &step->dice;
    plan_split(rp, step);
    step->form = (int)rp_draw(dice, 2);
    if (!step->n)
        return;
    rp_say(step, step->form ? " by create_group" : " by create");
}

/* Group of the members, in the model's order, made from the old communicator's. */
static MPI_Group group_of(rp *rp, const rp_comm *old, const rp_comm *model)
{
    int ranks[RP_RANKS];
    MPI_Group all, part;
    for (int i = 0; i < model->n[0]; i++)
        for (int k = 0; k < old->n[0]; k++)
            if (old->members[0][k] == model->members[0][i])
                ranks[i] = k;
    RP_OK(rp, MPI_Comm_group(old->mpi, &all));
    RP_OK(rp, MPI_Group_incl(all, model->n[0], ranks, &part));
    RP_OK(rp, MPI_Group_free(&all));
    return part;
}

void run_create(rp *rp, rp_step *step)
{
    const rp_comm *old = &rp->comms[step->other];
    if (!step->n || !old->is_member)
        return;
    MPI_Comm new = MPI_COMM_NULL;
    MPI_Group group = MPI_GROUP_EMPTY;
    rp_comm *joined = NULL;
    for (int c = 0; c < 2; c++)
        if (step->slots[c] >= 0 && rp->comms[step->slots[c]].is_member)
            joined = &rp->comms[step->slots[c]];
    if (joined)
        group = group_of(rp, old, joined);
    if (step->form == 0)
        RP_OK(rp, MPI_Comm_create(old->mpi, group, &new));
    else if (joined)
        RP_OK(rp, MPI_Comm_create_group(old->mpi, group, (int)(step->index % 1000), &new));
    if (joined) {
        joined->mpi = new;
        rp_comm_verify(rp, joined);
        RP_OK(rp, MPI_Group_free(&group));
    } else
        RP_SAME(rp, new == MPI_COMM_NULL, 1, "MPI_Comm_create with an empty group: null");
}

/* -- intercommunicators: of two parts of a communicator, which are split for it -- */

void plan_inter(rp *rp, rp_step *step)
{
    rp_dice *dice = &step->dice;
    step->other = rp_comm_pick(rp, dice, false, true);
    step->slot = rp_comm_slot(rp, 0);
    const rp_comm *old = &rp->comms[step->other];
    step->count = 1 + (int)rp_draw(dice, (uint32_t)old->n[0] - 1); /* ranks of the first group */
    if (step->slot < 0 || old->n[0] < 2) {
        step->slot = -1;
        rp_say(step, "intercomm_create: no slot, or one rank");
        return;
    }
    rp_comm made = {.is_inter = true, .is_order_known = true, .marks = -1};
    for (int i = 0; i < old->n[0]; i++) {
        int side = i >= step->count;
        made.members[side][made.n[side]++] = old->members[0][i];
    }
    step->root = (int)rp_draw(dice, (uint32_t)step->count);
    step->shift = step->count + (int)rp_draw(dice, (uint32_t)(old->n[0] - step->count));
    rp_comm_enter(rp, step, step->slot, &made);
    rp_say(step, "intercomm_create %d of %d: %d ranks and the others, leaders %d, %d", step->slot, step->other, step->count, step->root,
           step->shift);
}

void run_inter(rp *rp, rp_step *step)
{
    if (step->slot < 0)
        return;
    const rp_comm *old = &rp->comms[step->other];
    rp_comm *comm = &rp->comms[step->slot];
    MPI_Comm part;
    if (!old->is_member)
        return;
    bool is_first = old->rank < step->count;
    RP_OK(rp, MPI_Comm_split(old->mpi, is_first, 0, &part));
    RP_OK(rp, MPI_Intercomm_create(part, is_first ? step->root : step->shift - step->count, old->mpi, is_first ? step->shift : step->root,
                                   (int)(step->index % 1000), &comm->mpi));
    RP_OK(rp, MPI_Comm_free(&part));
    rp_comm_verify(rp, comm);
}

void plan_merge(rp *rp, rp_step *step)
{
    rp_dice *dice = &step->dice;
    step->slot = rp_comm_slot(rp, 0);
    step->other = (int)rp_draw(dice, RP_COMMS);
    for (int i = 0; i < RP_COMMS && !(rp->comms[step->other].state == RP_LIVE && rp->comms[step->other].is_inter); i++)
        step->other = (step->other + 1) % RP_COMMS;
    const rp_comm *old = &rp->comms[step->other];
    if (step->slot < 0 || old->state != RP_LIVE || !old->is_inter) {
        step->slot = -1;
        rp_say(step, "intercomm_merge: no slot, or no intercommunicator");
        return;
    }
    step->form = (int)rp_draw(dice, 2); /* the second group is first */
    rp_comm made = {.is_order_known = true, .marks = -1};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < old->n[k ^ step->form]; i++)
            made.members[0][made.n[0]++] = old->members[k ^ step->form][i];
    rp_comm_enter(rp, step, step->slot, &made);
    rp_say(step, "intercomm_merge %d of %d%s", step->slot, step->other, step->form ? ", second group first" : "");
}

void run_merge(rp *rp, rp_step *step)
{
    if (step->slot < 0 || !rp->comms[step->other].is_member)
        return;
    const rp_comm *old = &rp->comms[step->other];
    RP_OK(rp, MPI_Intercomm_merge(old->mpi, old->side != step->form, &rp->comms[step->slot].mpi));
    rp_comm_verify(rp, &rp->comms[step->slot]);
}

/* -- sessions -- */

void plan_session(rp *rp, rp_step *step)
{
    rp_dice *dice = &step->dice;
    step->slot = rp_comm_slot(rp, 0);
    if (step->slot < 0 || !RP_MPI(4, 0)) {
        step->slot = -1;
        rp_say(step, "session: no slot is free");
        return;
    }
    rp_comm made = {.is_order_known = true, .marks = -1};
    int skipped = (int)rp_draw(dice, (uint32_t)rp->size * 2), first = (int)rp_draw(dice, (uint32_t)rp->size);
    for (int i = 0; i < rp->size; i++)
        if ((first + i) % rp->size != skipped || rp->size == 1)
            made.members[0][made.n[0]++] = (first + i) % rp->size;
    rp_comm_enter(rp, step, step->slot, &made);
    rp_say(step, "session's communicator %d, %d ranks from %d on", step->slot, made.n[0], first);
}

void run_session(rp *rp, rp_step *step)
{
#if RP_MPI(4, 0)
    if (step->slot < 0 || !rp->comms[step->slot].is_member)
        return;
    rp_comm *comm = &rp->comms[step->slot];
    MPI_Session *session = rp_alloc(sizeof *session);
    MPI_Group world, group, all;
    char tag[60];
    int ranks[RP_RANKS];
    snprintf(tag, sizeof tag, "random/%d/%u", rp->thread, step->index);
    RP_OK(rp, MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, session));
    RP_OK(rp, MPI_Group_from_session_pset(*session, "mpi://WORLD", &world));
    RP_OK(rp, MPI_Comm_group(rp->base, &all));
    RP_OK(rp, MPI_Group_translate_ranks(all, comm->n[0], comm->members[0], world, ranks));
    RP_OK(rp, MPI_Group_incl(world, comm->n[0], ranks, &group));
    RP_OK(rp, MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm->mpi));
    RP_OK(rp, MPI_Group_free(&world));
    RP_OK(rp, MPI_Group_free(&group));
    RP_OK(rp, MPI_Group_free(&all));
    comm->session = session;
    rp_comm_verify(rp, comm);
#else
    (void)rp;
    (void)step;
#endif
}

/* -- the end of communicators -- */

void plan_free(rp *rp, rp_step *step)
{
    step->slot = 1 + (int)rp_draw(&step->dice, RP_COMMS - 1);
    for (int i = 0; i < RP_PAIRS; i++)
        if (rp->pairs[i].is_used && rp->pairs[i].comm == step->slot)
            step->slot = 0;
    if (rp->comms[step->slot].state != RP_LIVE)
        step->slot = 0;
    step->made[0] = rp->comms[step->slot]; /* run needs the handle */
    if (step->slot) {
        rp->comms[step->slot].state = RP_EMPTY;
        for (int i = 0; i < RP_COMMS; i++)
            if ((int)rp->comms[i].parent == step->slot)
                rp->comms[i].parent = 0;
    }
    rp_say(step, step->slot ? "free communicator %d" : "free communicator %d: not now", step->slot);
}

void rp_comm_release(rp *rp, rp_comm *comm)
{
    if (!comm->is_member)
        return;
#if RP_MPI(4, 1)
    if (comm->buffer) {
        void *address;
        int size;
        RP_OK(rp, MPI_Comm_detach_buffer(comm->mpi, &address, &size));
        RP_SAME(rp, address == comm->buffer && size == 1 << 20, 1, "MPI_Comm_detach_buffer: the attached buffer");
        free(comm->buffer);
    }
#endif
    RP_OK(rp, MPI_Comm_free(&comm->mpi));
    RP_SAME(rp, comm->mpi == MPI_COMM_NULL, 1, "MPI_Comm_free: the handle is null");
#if RP_MPI(4, 0)
    if (comm->session) {
        RP_OK(rp, MPI_Session_finalize(comm->session));
        free(comm->session);
    }
#endif
    comm->is_member = false;
}

void run_free(rp *rp, rp_step *step)
{
    if (step->slot)
        rp_comm_release(rp, &step->made[0]);
}

void rp_comms_close(rp *rp)
{
    for (int i = 1; i < RP_COMMS; i++) {
        rp_comm *comm = &rp->comms[i];
        if (comm->state == RP_STARTED)
            finish_dup(rp, comm);
        if (comm->state != RP_EMPTY)
            rp_comm_release(rp, comm);
        comm->state = RP_EMPTY;
    }
}
