/* SPDX-License-Identifier: BSD-3-Clause
 *
 * objects: local queries whose answers the plan knows: groups, comparisons, attributes, names, bounds of types, packed forms.
 */
#include <stdlib.h>
#include <string.h>

#include "random.h"

/* -- groups -- */

typedef struct set {
    int n, ranks[RP_RANKS];
} set;

static bool has(const set *s, int rank)
{
    for (int i = 0; i < s->n; i++)
        if (s->ranks[i] == rank)
            return true;
    return false;
}

static set draw_set(rp_dice *dice, int n)
{
    set s = {.n = 0};
    int first = (int)rp_draw(dice, (uint32_t)n);
    for (int i = 0; i < n; i++)
        if (rp_draw(dice, 2))
            s.ranks[s.n++] = (first + i) % n;
    return s;
}

static int compare_sets(const set *a, const set *b)
{
    if (a->n != b->n)
        return MPI_UNEQUAL;
    if (memcmp(a->ranks, b->ranks, sizeof(int) * (size_t)a->n) == 0)
        return MPI_IDENT;
    for (int i = 0; i < a->n; i++)
        if (!has(b, a->ranks[i]))
            return MPI_UNEQUAL;
    return MPI_SIMILAR;
}

void plan_groups(rp *rp, rp_step *step)
{
    step->other = rp_comm_pick(rp, &step->dice, true, false);
    rp_say(step, "group operations on %d", step->other);
}

static void verify_group(rp *rp, MPI_Group all, MPI_Group group, const set *want, int me, const char *what)
{
    int size, rank, place = MPI_UNDEFINED, to[RP_RANKS], from[RP_RANKS];
    RP_OK(rp, MPI_Group_size(group, &size));
    RP_SAME(rp, size, want->n, what);
    RP_OK(rp, MPI_Group_rank(group, &rank));
    for (int i = 0; i < want->n; i++) {
        from[i] = i;
        if (want->ranks[i] == me)
            place = i;
    }
    RP_SAME(rp, rank, place, what);
    RP_OK(rp, MPI_Group_translate_ranks(group, size, from, all, to));
    for (int i = 0; i < want->n; i++)
        RP_SAME(rp, to[i], want->ranks[i], what);
}

void run_groups(rp *rp, rp_step *step)
{
    const rp_comm *comm = &rp->comms[step->other];
    if (!comm->is_member)
        return;
    rp_dice dice = step->dice; /* own sets per rank would do as well */
    int n = comm->n[comm->side], me = comm->rank, result;
    set a = draw_set(&dice, n), b = draw_set(&dice, n), both = {.n = 0}, minus = {.n = 0}, join = a, out = {.n = 0};
    MPI_Group all, ga, gb, made[4];
    for (int i = 0; i < a.n; i++) {
        set *to = has(&b, a.ranks[i]) ? &both : &minus;
        to->ranks[to->n++] = a.ranks[i];
    }
    for (int i = 0; i < b.n; i++)
        if (!has(&a, b.ranks[i]))
            join.ranks[join.n++] = b.ranks[i];
    for (int i = 0; i < n; i++)
        if (!has(&a, i))
            out.ranks[out.n++] = i;
    RP_OK(rp, MPI_Comm_group(comm->mpi, &all));
    RP_OK(rp, MPI_Group_incl(all, a.n, a.ranks, &ga));
    RP_OK(rp, MPI_Group_incl(all, b.n, b.ranks, &gb));
    RP_OK(rp, MPI_Group_union(ga, gb, &made[0]));
    RP_OK(rp, MPI_Group_intersection(ga, gb, &made[1]));
    RP_OK(rp, MPI_Group_difference(ga, gb, &made[2]));
    RP_OK(rp, MPI_Group_excl(all, a.n, a.ranks, &made[3]));
    verify_group(rp, all, ga, &a, me, "MPI_Group_incl");
    verify_group(rp, all, made[0], &join, me, "MPI_Group_union");
    verify_group(rp, all, made[1], &both, me, "MPI_Group_intersection");
    verify_group(rp, all, made[2], &minus, me, "MPI_Group_difference");
    verify_group(rp, all, made[3], &out, me, "MPI_Group_excl");
    RP_OK(rp, MPI_Group_compare(ga, gb, &result));
    RP_SAME(rp, result, compare_sets(&a, &b), "MPI_Group_compare");
    for (int i = 0; i < 4; i++)
        if (made[i] != MPI_GROUP_EMPTY)
            RP_OK(rp, MPI_Group_free(&made[i]));
    if (ga != MPI_GROUP_EMPTY)
        RP_OK(rp, MPI_Group_free(&ga));
    if (gb != MPI_GROUP_EMPTY)
        RP_OK(rp, MPI_Group_free(&gb));
    RP_OK(rp, MPI_Group_free(&all));
}

/* -- communicators: comparison, attributes, names -- */

void plan_queries(rp *rp, rp_step *step)
{
    rp_dice *dice = &step->dice;
    step->comm = rp_comm_pick(rp, dice, true, false);
    step->other = rp_comm_pick(rp, dice, true, false);
    step->form = (int)rp_draw(dice, 3);
    step->count = (int)rp_draw(dice, 1000);
    step->made[0] = rp->comms[step->comm];
    rp_comm *comm = &rp->comms[step->comm];
    if (step->form == 0)
        comm->marks = step->count;
    else if (step->form == 1)
        comm->marks = -1;
    rp_say(step, "queries of %d and %d%s", step->comm, step->other,
           step->form == 0 ? ", sets its attribute" : step->form == 1 ? ", deletes it" : "");
}

static int compare_comms(const rp_comm *a, const rp_comm *b)
{
    set left[2], right[2];
    int worst = MPI_CONGRUENT;
    if (a->is_inter != b->is_inter)
        return MPI_UNEQUAL;
    for (int k = 0; k < 1 + a->is_inter; k++) { /* local group, then remote group */
        int i = a->is_inter ? a->side ^ k : 0, j = b->is_inter ? b->side ^ k : 0, same;
        left[k].n = a->n[i];
        right[k].n = b->n[j];
        memcpy(left[k].ranks, a->members[i], sizeof left[k].ranks);
        memcpy(right[k].ranks, b->members[j], sizeof right[k].ranks);
        same = compare_sets(&left[k], &right[k]);
        if (same == MPI_UNEQUAL)
            return MPI_UNEQUAL;
        if (same == MPI_SIMILAR)
            worst = MPI_SIMILAR;
    }
    return worst;
}

void run_queries(rp *rp, rp_step *step)
{
    const rp_comm *a = &rp->comms[step->comm], *b = &rp->comms[step->other];
    int result, flag, *value, length;
    char name[MPI_MAX_OBJECT_NAME];
    if (a->is_member && b->is_member) {
        RP_OK(rp, MPI_Comm_compare(a->mpi, b->mpi, &result));
        RP_SAME(rp, result, step->comm == step->other ? MPI_IDENT : compare_comms(a, b), "MPI_Comm_compare");
    }
    if (!a->is_member)
        return;
    RP_OK(rp, MPI_Comm_get_attr(a->mpi, rp->keyval, &value, &flag));
    RP_SAME(rp, flag ? (long long)(intptr_t)value : -1, step->made[0].marks, "MPI_Comm_get_attr");
    if (step->form == 0)
        RP_OK(rp, MPI_Comm_set_attr(a->mpi, rp->keyval, (void *)(intptr_t)step->count));
    else if (step->form == 1 && step->made[0].marks >= 0)
        RP_OK(rp, MPI_Comm_delete_attr(a->mpi, rp->keyval));
    RP_OK(rp, MPI_Comm_set_name(a->mpi, "random"));
    RP_OK(rp, MPI_Comm_get_name(a->mpi, name, &length));
    RP_SAME(rp, strcmp(name, "random"), 0, "MPI_Comm_get_name");
    RP_OK(rp, MPI_Topo_test(a->mpi, &result));
    if (a->dims)
        RP_SAME(rp, result, MPI_CART, "MPI_Topo_test of a grid");
}

/* -- types: bounds, envelopes -- */

void plan_types(rp *rp, rp_step *step)
{
    rp_message_draw(rp, &step->dice, &step->messages[0], 5000);
    step->messages[0].sdepth = 1 + (int)rp_draw(&step->dice, 5);
    rp_say(step, "queries of a type, depth %d", step->messages[0].sdepth);
}

void run_types(rp *rp, rp_step *step)
{
    rp_message *m = &step->messages[0];
    rp_type type;
    MPI_Aint lb, extent;
    int size, ints, addresses, types, combiner;
    rp_type_open(rp, &type, m->stype + (uint64_t)rp->rank, m->sdepth, &m->sig); /* another one on each rank */
    RP_OK(rp, MPI_Type_size(type.mpi, &size));
    RP_SAME(rp, size, type.size, "MPI_Type_size");
    RP_OK(rp, MPI_Type_get_extent(type.mpi, &lb, &extent));
    RP_SAME(rp, lb, type.lb, "MPI_Type_get_extent: lower bound");
    RP_SAME(rp, extent, type.ub - type.lb, "MPI_Type_get_extent: extent");
    RP_OK(rp, MPI_Type_get_true_extent(type.mpi, &lb, &extent));
    RP_SAME(rp, lb, type.true_lb, "MPI_Type_get_true_extent: lower bound");
    RP_SAME(rp, extent, type.true_ub - type.true_lb, "MPI_Type_get_true_extent: extent");
#if RP_MPI(4, 0)
    MPI_Count large[4];
    RP_OK(rp, MPI_Type_get_envelope_c(type.mpi, &large[0], &large[1], &large[2], &large[3], &combiner));
    RP_SAME(rp, combiner, type.combiner, "MPI_Type_get_envelope_c: combiner");
    if (large[2] == 0) /* the other call is for types of small parameters */
#endif
    {
        RP_OK(rp, MPI_Type_get_envelope(type.mpi, &ints, &addresses, &types, &combiner));
        RP_SAME(rp, combiner, type.combiner, "MPI_Type_get_envelope: combiner");
    }
    rp_type_close(rp, &type);
}

/* -- packed forms: here and back, by another layout of the same signature; external32 byte by byte -- */

void plan_pack(rp *rp, rp_step *step)
{
    plan_types(rp, step);
    step->text[0] = 0;
    rp_say(step, "pack, %u bytes", step->messages[0].bytes);
}

static void verify_external(rp *rp, const rp_type *type, const rp_buf *from, uint64_t items, uint64_t key)
{
    MPI_Aint size, position = 0;
    uint8_t *packed, *at;
    RP_OK(rp, MPI_Pack_external_size("external32", (int)items, type->mpi, &size));
    packed = at = rp_alloc((size_t)size + 1);
    RP_OK(rp, MPI_Pack_external("external32", rp_buf_at(from, type, 0), (int)items, type->mpi, packed, size, &position));
    RP_SAME(rp, position, items * (uint64_t)type->size, "MPI_Pack_external: position");
    for (uint64_t i = 0; i < items * type->entries; i++) {
        uint64_t value = rp_value(key, i);
        int bytes = rp_basics[type->map[i % type->entries].basic].bytes;
        for (int k = 0; k < bytes; k++, at++)
            if (*at != (uint8_t)(value >> 8 * (bytes - 1 - k)))
                rp_fail(rp, "MPI_Pack_external: byte %d of basic %llu: expected %02x, got %02x", k, (unsigned long long)i,
                        (unsigned)(uint8_t)(value >> 8 * (bytes - 1 - k)), *at);
    }
    rp_buf back;
    position = 0;
    rp_buf_open(&back, type, items + 1);
    RP_OK(rp, MPI_Unpack_external("external32", packed, size, &position, rp_buf_at(&back, type, 0), (int)items, type->mpi));
    rp_buf_same(rp, &back, from, "MPI_Unpack_external");
    rp_buf_close(&back);
    free(packed);
}

void run_pack(rp *rp, rp_step *step)
{
    rp_message *m = &step->messages[0];
    rp_end out;
    int bytes, position = 0;
    uint64_t key = rp_key(rp, step->index, rp->rank, 0);
    m->is_packed_out = m->is_packed_in = false;
    m->stype += (uint64_t)rp->rank;
    rp_end_send(rp, &out, m, key);
    RP_OK(rp, MPI_Pack_size((int)out.count, out.type.mpi, rp->base, &bytes));
    uint8_t *packed = rp_alloc((size_t)bytes + 1);
    RP_OK(rp, MPI_Pack(rp_buf_at(&out.buf, &out.type, 0), (int)out.count, out.type.mpi, packed, bytes, &position, rp->base));
    int end = position;
    rp_buf back;
    rp_buf_open(&back, &out.type, out.count + 1);
    position = 0;
    RP_OK(rp, MPI_Unpack(packed, end, &position, rp_buf_at(&back, &out.type, 0), (int)out.count, out.type.mpi, rp->base));
    RP_SAME(rp, position, end, "MPI_Unpack: position");
    rp_buf_same(rp, &back, &out.buf, "MPI_Unpack");
    if (RP_HAS_EXTERNAL)
        verify_external(rp, &out.type, &out.buf, out.count, out.key);
    rp_buf_close(&back);
    free(packed);
    rp_end_close(rp, &out);
}
