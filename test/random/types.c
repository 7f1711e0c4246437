/* SPDX-License-Identifier: BSD-3-Clause
 *
 * types: random derived datatypes with a model of their own: the list of (displacement, basic) that the standard's type maps prescribe
 * (MPI 5.0, 5.1). The model is computed beside the MPI calls, never by asking MPI. No type overlaps itself, so it may receive.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

enum { ENTRIES = 1500, BLOCKS = 6 };

const rp_basic rp_basics[] = {{"byte", 1, 1}, {"char", 1, 1}, {"short", 2, 2}, {"int", 4, 4}, {"int64", 8, 8}, {"float", 4, 4},
                              {"double", 8, 8}, {"uint32", 4, 4}};
enum { BASICS = sizeof rp_basics / sizeof rp_basics[0] };

MPI_Datatype rp_basic_type(uint8_t basic)
{
    const MPI_Datatype types[BASICS] = {MPI_BYTE, MPI_CHAR, MPI_SHORT, MPI_INT, MPI_INT64_T, MPI_FLOAT, MPI_DOUBLE, MPI_UINT32_T};
    return types[basic];
}

uint64_t rp_hash(uint64_t a, uint64_t b)
{
    uint64_t z = a * 0x9e3779b97f4a7c15u + b * 0xd1b54a32d192ed03u + 0x94d049bb133111ebu;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint32_t rp_draw(rp_dice *dice, uint32_t below)
{
    dice->state = rp_hash(dice->state, 1);
    return below ? (uint32_t)((dice->state >> 32) % below) : 0;
}

rp_sig rp_sig_draw(rp_dice *dice)
{
    rp_sig sig = {.n = rp_draw(dice, 3) ? 1 : 2 + (int)rp_draw(dice, RP_SIG - 1)};
    for (int i = 0; i < sig.n; i++)
        sig.basics[i] = (uint8_t)rp_draw(dice, BASICS);
    return sig;
}

uint64_t rp_value(uint64_t key, uint64_t at) { return rp_hash(key, at + 17); }

uint32_t rp_type_units(const rp_type *type) { return type->entries / (uint32_t)type->sig.n; }

/* -- building: the parameters of a constructor, and the places of the child that they mean -- */

typedef struct build {
    rp *rp; /* NULL: the model alone */
    rp_dice dice;
    rp_type *type;
    int64_t align;
} build;

static void place(rp_type *to, const rp_type *child, int64_t at)
{
    to->map = realloc(to->map, (to->entries + child->entries + 1) * sizeof *to->map);
    if (!to->entries) {
        to->lb = to->true_lb = INT64_MAX;
        to->ub = to->true_ub = INT64_MIN;
    }
    for (uint32_t i = 0; i < child->entries; i++)
        to->map[to->entries++] = (rp_entry){child->map[i].at + at, child->map[i].basic};
#define LEAST(a, b) a = (b) < (a) ? (b) : (a)
#define MOST(a, b) a = (b) > (a) ? (b) : (a)
    LEAST(to->lb, child->lb + at);
    LEAST(to->true_lb, child->true_lb + at);
    MOST(to->ub, child->ub + at);
    MOST(to->true_ub, child->true_ub + at);
    to->size += child->size;
}

static int64_t extent_of(const rp_type *type) { return type->ub - type->lb; }

/* A new type takes the place of the child that it was built from. */
static void replace(build *b, rp_type *now, MPI_Datatype mpi, int combiner)
{
    rp_type *old = b->type;
    now->sig = old->sig;
    now->depth = old->depth + 1;
    now->combiner = combiner;
    if (b->rp) {
        if (!old->is_named)
            RP_OK(b->rp, MPI_Type_free(&old->mpi));
        now->mpi = mpi;
    }
    now->is_named = false;
    free(old->map);
    *old = *now;
}

typedef struct blocks {
    int n, lens[BLOCKS], at[BLOCKS]; /* at: in extents */
    MPI_Aint bytes[BLOCKS];
    bool is_large;
#if RP_MPI(4, 0)
    MPI_Count clens[BLOCKS], cat[BLOCKS], cbytes[BLOCKS];
#endif
} blocks;

/* Blocks that do not overlap, in a random order, partly at negative places. same: all of one length. */
static void draw_blocks(build *b, blocks *set, bool same)
{
    int order[BLOCKS];
    int64_t at = -(int64_t)rp_draw(&b->dice, 5), bytes = at * 16, extent = extent_of(b->type);
    uint32_t room = ENTRIES / (b->type->entries * BLOCKS + 1);
    room = room > 4 ? 4 : room ? room : 1;
    memset(set, 0, sizeof *set);
    set->n = b->type->entries * 2 > ENTRIES ? 1 : 1 + (int)rp_draw(&b->dice, BLOCKS);
    while (set->n > 1 && (uint32_t)set->n * room * b->type->entries > ENTRIES)
        set->n--;
    set->is_large = rp_draw(&b->dice, 2);
    for (int i = 0; i < set->n; i++)
        order[i] = i;
    for (int i = set->n - 1; i > 0; i--) {
        int j = (int)rp_draw(&b->dice, (uint32_t)i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    int len = 1 + (int)rp_draw(&b->dice, room);
    for (int k = 0; k < set->n; k++) {
        int i = order[k];
        /* the first block is never empty, so that no type is */
        set->lens[i] = same ? len : i ? (int)rp_draw(&b->dice, room + 1) : len;
        set->at[i] = (int)at;
        set->bytes[i] = (MPI_Aint)bytes;
        at += set->lens[i] + rp_draw(&b->dice, 3);
        bytes += set->lens[i] * extent + 16 * (int64_t)rp_draw(&b->dice, 3);
    }
#if RP_MPI(4, 0)
    for (int i = 0; i < set->n; i++) {
        set->clens[i] = set->lens[i];
        set->cat[i] = set->at[i];
        set->cbytes[i] = set->bytes[i];
    }
#endif
}

#if RP_MPI(4, 0)
#define EITHER(is_large, small, large) RP_OK(b->rp, (is_large) ? (large) : (small))
#else
#define EITHER(is_large, small, large) RP_OK(b->rp, small)
#endif

static void put_blocks(build *b, const blocks *set, rp_type *now, bool by_bytes)
{
    int64_t extent = extent_of(b->type);
    for (int i = 0; i < set->n; i++)
        for (int k = 0; k < set->lens[i]; k++)
            place(now, b->type, (by_bytes ? (int64_t)set->bytes[i] : set->at[i] * extent) + k * extent);
}

static void make_indexed(build *b, int kind)
{
    blocks s;
    rp_type now = {.map = NULL};
    MPI_Datatype old = b->type->mpi, new = MPI_DATATYPE_NULL;
    draw_blocks(b, &s, kind >= 2);
    put_blocks(b, &s, &now, kind % 2 == 1);
    if (b->rp)
        switch (kind) {
        case 0:
            EITHER(s.is_large, MPI_Type_indexed(s.n, s.lens, s.at, old, &new), MPI_Type_indexed_c(s.n, s.clens, s.cat, old, &new));
            break;
        case 1:
            EITHER(s.is_large, MPI_Type_create_hindexed(s.n, s.lens, s.bytes, old, &new),
                   MPI_Type_create_hindexed_c(s.n, s.clens, s.cbytes, old, &new));
            break;
        case 2:
            EITHER(s.is_large, MPI_Type_create_indexed_block(s.n, s.lens[0], s.at, old, &new),
                   MPI_Type_create_indexed_block_c(s.n, s.clens[0], s.cat, old, &new));
            break;
        default:
            EITHER(s.is_large, MPI_Type_create_hindexed_block(s.n, s.lens[0], s.bytes, old, &new),
                   MPI_Type_create_hindexed_block_c(s.n, s.clens[0], s.cbytes, old, &new));
        }
    int made[] = {MPI_COMBINER_INDEXED, MPI_COMBINER_HINDEXED, MPI_COMBINER_INDEXED_BLOCK, MPI_COMBINER_HINDEXED_BLOCK};
    replace(b, &now, new, made[kind]);
}

static int few(build *b, int most)
{
    int room = (int)(ENTRIES / b->type->entries);
    return 1 + (int)rp_draw(&b->dice, (uint32_t)(room < 1 ? 1 : room < most ? room : most));
}

static void make_contiguous(build *b)
{
    rp_type now = {.map = NULL};
    MPI_Datatype new = MPI_DATATYPE_NULL;
    bool is_large = rp_draw(&b->dice, 2);
    int n = few(b, 12);
    for (int i = 0; i < n; i++)
        place(&now, b->type, i * extent_of(b->type));
    if (b->rp)
        EITHER(is_large, MPI_Type_contiguous(n, b->type->mpi, &new), MPI_Type_contiguous_c(n, b->type->mpi, &new));
    (void)is_large;
    replace(b, &now, new, MPI_COMBINER_CONTIGUOUS);
}

static void make_vector(build *b, bool by_bytes)
{
    rp_type now = {.map = NULL};
    MPI_Datatype new = MPI_DATATYPE_NULL, old = b->type->mpi;
    bool is_large = rp_draw(&b->dice, 2), is_back = rp_draw(&b->dice, 4) == 0;
    int n = few(b, 8), len = 1, stride;
    int64_t extent = extent_of(b->type), step;
    if ((uint32_t)n * b->type->entries * 4 <= ENTRIES)
        len = 1 + (int)rp_draw(&b->dice, 4);
    stride = len + (int)rp_draw(&b->dice, 4);
    step = by_bytes ? len * extent + 16 * (int64_t)rp_draw(&b->dice, 3) : stride * extent;
    if (is_back) {
        stride = -stride;
        step = -step;
    }
    for (int i = 0; i < n; i++)
        for (int k = 0; k < len; k++)
            place(&now, b->type, i * step + k * extent);
    if (b->rp && by_bytes)
        EITHER(is_large, MPI_Type_create_hvector(n, len, (MPI_Aint)step, old, &new), MPI_Type_create_hvector_c(n, len, step, old, &new));
    else if (b->rp)
        EITHER(is_large, MPI_Type_vector(n, len, stride, old, &new), MPI_Type_vector_c(n, len, stride, old, &new));
    (void)is_large;
    replace(b, &now, new, by_bytes ? MPI_COMBINER_HVECTOR : MPI_COMBINER_VECTOR);
}

/* Bounds that let repeated items not overlap: an extent of at least what the data span. */
static void make_resized(build *b)
{
    rp_type now = {.map = NULL};
    MPI_Datatype new = MPI_DATATYPE_NULL;
    bool is_large = rp_draw(&b->dice, 2);
    int64_t lb = 16 * ((int64_t)rp_draw(&b->dice, 9) - 4), span = b->type->true_ub - b->type->true_lb;
    int64_t extent = (span + 15) / 16 * 16 + 16 * (int64_t)rp_draw(&b->dice, 3);
    place(&now, b->type, 0);
    now.lb = lb;
    now.ub = lb + extent;
    if (b->rp)
        EITHER(is_large, MPI_Type_create_resized(b->type->mpi, (MPI_Aint)lb, (MPI_Aint)extent, &new),
               MPI_Type_create_resized_c(b->type->mpi, lb, extent, &new));
    (void)is_large;
    replace(b, &now, new, MPI_COMBINER_RESIZED);
}

/* A struct of blocks of the child in a random order. Its padding is the MPI's affair: bounds are set after it. */
static void make_struct(build *b)
{
    blocks s;
    rp_type now = {.map = NULL};
    MPI_Datatype new = MPI_DATATYPE_NULL, types[BLOCKS];
    draw_blocks(b, &s, false);
    put_blocks(b, &s, &now, true);
    for (int i = 0; i < s.n; i++)
        types[i] = b->type->mpi;
    if (b->rp)
        EITHER(s.is_large, MPI_Type_create_struct(s.n, s.lens, s.bytes, types, &new),
               MPI_Type_create_struct_c(s.n, s.clens, s.cbytes, types, &new));
    replace(b, &now, new, MPI_COMBINER_STRUCT);
    make_resized(b);
}

static void make_dup(build *b)
{
    rp_type now = {.map = NULL};
    MPI_Datatype new = MPI_DATATYPE_NULL;
    place(&now, b->type, 0);
    if (b->rp)
        RP_OK(b->rp, MPI_Type_dup(b->type->mpi, &new));
    replace(b, &now, new, MPI_COMBINER_DUP);
}

/* The child at each index of `owned` (per dimension), in an array of `sizes`. The last dimension varies fastest, in Fortran the first. */
static void place_array(build *b, rp_type *now, int dims, const int *sizes, int owned[3][8], const int *owns, bool is_c)
{
    int64_t extent = extent_of(b->type), all = 1;
    int total = 1;
    for (int d = 0; d < dims; d++) {
        total *= owns[d];
        all *= sizes[d];
    }
    for (int k = 0; k < total; k++) {
        int rest = k, index[3] = {0};
        int64_t at = 0;
        for (int i = 0; i < dims; i++) {
            int d = is_c ? dims - 1 - i : i;
            index[d] = owned[d][rest % owns[d]];
            rest /= owns[d];
        }
        for (int i = 0; i < dims; i++) {
            int d = is_c ? i : dims - 1 - i;
            at = at * sizes[d] + index[d];
        }
        place(now, b->type, at * extent);
    }
    now->lb = 0; /* both constructors set the bounds of the whole array */
    now->ub = all * extent;
}

static void make_subarray(build *b)
{
    rp_type now = {.map = NULL};
    MPI_Datatype new = MPI_DATATYPE_NULL;
    int dims = 1 + (int)rp_draw(&b->dice, 3), sizes[3], subsizes[3], starts[3], owned[3][8], order, total = 1;
    bool is_large = rp_draw(&b->dice, 2), is_c = rp_draw(&b->dice, 2);
    for (int d = 0; d < dims; d++) {
        sizes[d] = 1 + (int)rp_draw(&b->dice, 6);
        subsizes[d] = 1 + (int)rp_draw(&b->dice, (uint32_t)sizes[d]);
        if ((uint32_t)(total * subsizes[d]) * b->type->entries > ENTRIES)
            subsizes[d] = 1;
        total *= subsizes[d];
        starts[d] = (int)rp_draw(&b->dice, (uint32_t)(sizes[d] - subsizes[d]) + 1);
        for (int i = 0; i < subsizes[d]; i++)
            owned[d][i] = starts[d] + i;
    }
    order = is_c ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    place_array(b, &now, dims, sizes, owned, subsizes, is_c);
#if RP_MPI(4, 0)
    MPI_Count large[3][3];
    for (int d = 0; d < dims; d++) {
        large[0][d] = sizes[d];
        large[1][d] = subsizes[d];
        large[2][d] = starts[d];
    }
#endif
    if (b->rp)
        EITHER(is_large, MPI_Type_create_subarray(dims, sizes, subsizes, starts, order, b->type->mpi, &new),
               MPI_Type_create_subarray_c(dims, large[0], large[1], large[2], order, b->type->mpi, &new));
    (void)is_large;
    replace(b, &now, new, MPI_COMBINER_SUBARRAY);
}

/* MPI 5.0, 5.1.4: block and cyclic distributions of each dimension over a grid of processes in row-major order. */
static void make_darray(build *b)
{
    rp_type now = {.map = NULL};
    MPI_Datatype new = MPI_DATATYPE_NULL;
    int dims = 1 + (int)rp_draw(&b->dice, 2), sizes[3], distribs[3], dargs[3], psizes[3], owned[3][8], owns[3];
    int size = 1, rank = 0, total = 1;
    bool is_c = rp_draw(&b->dice, 2);
    for (int d = 0; d < dims; d++) {
        int kind = (int)rp_draw(&b->dice, 3);
        sizes[d] = 1 + (int)rp_draw(&b->dice, 7);
        psizes[d] = kind == 2 ? 1 : 1 + (int)rp_draw(&b->dice, (uint32_t)(sizes[d] < 3 ? sizes[d] : 3));
        distribs[d] = kind == 0 ? MPI_DISTRIBUTE_BLOCK : kind == 1 ? MPI_DISTRIBUTE_CYCLIC : MPI_DISTRIBUTE_NONE;
        dargs[d] = MPI_DISTRIBUTE_DFLT_DARG;
        int block = kind == 0 ? (sizes[d] + psizes[d] - 1) / psizes[d] : kind == 1 ? 1 : sizes[d];
        if (kind == 1 && rp_draw(&b->dice, 2))
            dargs[d] = block = 1 + (int)rp_draw(&b->dice, 2);
        int coord = (int)rp_draw(&b->dice, (uint32_t)psizes[d]);
        owns[d] = 0;
        for (int i = 0; i < sizes[d]; i++)
            if (i / block % psizes[d] == coord)
                owned[d][owns[d]++] = i;
        if (!owns[d]) { /* an empty share: take the first process's, which is not */
            coord = 0;
            for (int i = 0; i < sizes[d]; i++)
                if (i / block % psizes[d] == 0)
                    owned[d][owns[d]++] = i;
        }
        rank = rank * psizes[d] + coord;
        size *= psizes[d];
        total *= owns[d];
    }
    if ((uint32_t)total * b->type->entries > ENTRIES) {
        make_dup(b);
        return;
    }
    place_array(b, &now, dims, sizes, owned, owns, is_c);
    if (b->rp)
        RP_OK(b->rp, MPI_Type_create_darray(size, rank, dims, sizes, distribs, dargs, psizes, is_c ? MPI_ORDER_C : MPI_ORDER_FORTRAN,
                                            b->type->mpi, &new));
    replace(b, &now, new, MPI_COMBINER_DARRAY);
}

/* The signature itself: a basic, or a struct of basics in a random arrangement. */
static void make_base(build *b, const rp_sig *sig)
{
    rp_type *type = b->type;
    int64_t at = 16 * ((int64_t)rp_draw(&b->dice, 5) - 2);
    MPI_Aint places[RP_SIG];
    MPI_Datatype types[RP_SIG];
    int ones[RP_SIG], first = (int)rp_draw(&b->dice, (uint32_t)sig->n);
    if (sig->n == 1) {
        int bytes = rp_basics[sig->basics[0]].bytes;
        type->map = rp_alloc(sizeof *type->map);
        type->map[0] = (rp_entry){0, sig->basics[0]};
        type->entries = 1;
        type->ub = type->true_ub = type->size = bytes;
        type->mpi = rp_basic_type(sig->basics[0]);
        type->is_named = true;
        type->combiner = MPI_COMBINER_NAMED;
        return;
    }
    for (int k = 0; k < sig->n; k++) { /* memory order begins at `first` */
        int i = (first + k) % sig->n, bytes = rp_basics[sig->basics[i]].bytes;
        places[i] = (MPI_Aint)((at + bytes - 1) / bytes * bytes);
        if (at < 0)
            places[i] = (MPI_Aint)(at / 8 * 8);
        at = places[i] + bytes + (int64_t)rp_draw(&b->dice, 2) * 8;
        ones[i] = 1;
        types[i] = rp_basic_type(sig->basics[i]);
    }
    for (int i = 0; i < sig->n; i++) {
        rp_entry entry = {0, sig->basics[i]};
        int64_t bytes = rp_basics[sig->basics[i]].bytes;
        rp_type one = {.map = &entry, .entries = 1, .ub = bytes, .true_ub = bytes, .size = bytes};
        place(type, &one, places[i]);
    }
    if (b->rp)
        RP_OK(b->rp, MPI_Type_create_struct(sig->n, ones, places, types, &type->mpi));
    make_resized(b);
}

void rp_type_open(rp *rp, rp_type *type, uint64_t seed, int depth, const rp_sig *sig)
{
    build b = {.rp = rp, .dice = {seed}, .type = type};
    memset(type, 0, sizeof *type);
    type->sig = *sig;
    type->mpi = MPI_DATATYPE_NULL;
    make_base(&b, sig);
    for (int i = 0; i < depth && extent_of(type) < 8000; i++)
        switch (rp_draw(&b.dice, 12)) {
        case 0: make_contiguous(&b); break;
        case 1: make_vector(&b, false); break;
        case 2: make_vector(&b, true); break;
        case 3: make_indexed(&b, 0); break;
        case 4: make_indexed(&b, 1); break;
        case 5: make_indexed(&b, 2); break;
        case 6: make_indexed(&b, 3); break;
        case 7: make_struct(&b); break;
        case 8: make_resized(&b); break;
        case 9: make_subarray(&b); break;
        case 10: make_darray(&b); break;
        default: make_dup(&b);
        }
    if (rp && !type->is_named)
        RP_OK(rp, MPI_Type_commit(&type->mpi));
}

void rp_type_close(rp *rp, rp_type *type)
{
    if (rp && type->map && !type->is_named && type->mpi != MPI_DATATYPE_NULL)
        RP_OK(rp, MPI_Type_free(&type->mpi));
    free(type->map);
    type->map = NULL;
}

/* -- buffers -- */

void rp_buf_open(rp_buf *buf, const rp_type *type, uint64_t items)
{
    int64_t reach = items ? (int64_t)(items - 1) * extent_of(type) : 0;
    buf->origin = 32 - type->true_lb;
    buf->origin = (buf->origin + 15) / 16 * 16;
    buf->bytes = (size_t)(buf->origin + type->true_ub + reach + 32);
    buf->mem = rp_alloc(buf->bytes);
    memset(buf->mem, RP_GAP, buf->bytes);
}

void rp_buf_close(rp_buf *buf)
{
    free(buf->mem);
    buf->mem = NULL;
}

void *rp_buf_at(const rp_buf *buf, const rp_type *type, uint64_t item)
{
    return buf->mem + buf->origin + (int64_t)item * extent_of(type);
}

void rp_buf_put(rp_buf *buf, const rp_type *type, uint64_t item, uint64_t key, uint64_t n)
{
    uint8_t *base = rp_buf_at(buf, type, item);
    int64_t extent = extent_of(type);
    uint32_t e = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t value = rp_value(key, i);
        memcpy(base + type->map[e].at, &value, rp_basics[type->map[e].basic].bytes);
        if (++e == type->entries) {
            e = 0;
            base += extent;
        }
    }
}

void rp_buf_same(rp *rp, const rp_buf *got, const rp_buf *want, const char *what)
{
    size_t i = 0;
    if (memcmp(got->mem, want->mem, want->bytes) == 0)
        return;
    while (got->mem[i] == want->mem[i])
        i++;
    rp_fail(rp, "%s: byte %lld of the buffer (%zu bytes): expected %02x, got %02x%s", what, (long long)i - (long long)got->origin,
            want->bytes, want->mem[i], got->mem[i], want->mem[i] == RP_GAP ? " (a gap, or beyond the message)" : "");
}
