/* np: 1 2 3 4 : dynamic windows: regions attached and detached, thousands at once, addresses from MPI_BOTTOM, a linked list that all
 * extend */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>

#include "check.h"

enum { REGIONS = 2000, LENGTH = 12, ELEMENTS = 50 };

static int rank, size;
static MPI_Win win;

static MPI_Aint address_of(const void *at)
{
    MPI_Aint address;
    OK(MPI_Get_address(at, &address));
    return address;
}

/* Each rank reads and writes regions of the next one, in an order of its own. */
static void regions(void)
{
    char **blocks = malloc(REGIONS * sizeof *blocks), local[2 * LENGTH];
    MPI_Aint *theirs = malloc(REGIONS * sizeof *theirs), *mine = malloc(REGIONS * sizeof *mine);
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    CHECK(blocks && theirs && mine);
    for (int i = 0; i < REGIONS; i++) {
        CHECK((blocks[i] = malloc(LENGTH)));
        memset(blocks[i], i % 100, LENGTH);
        OK(MPI_Win_attach(win, blocks[i], LENGTH));
        mine[i] = address_of(blocks[i]);
    }
    OK(MPI_Sendrecv(mine, REGIONS, MPI_AINT, before, 0, theirs, REGIONS, MPI_AINT, next, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < REGIONS; i++) {
        int at = i * 7 % REGIONS;
        memset(local, 101, sizeof local);
        OK(MPI_Get(local, LENGTH / 2, MPI_CHAR, next, MPI_Aint_add(theirs[at], LENGTH / 2), LENGTH / 2, MPI_CHAR, win));
        OK(MPI_Win_flush(next, win));
        for (int k = 0; k < LENGTH / 2; k++)
            CHECK(local[k] == at % 100, "region %d, byte %d: %d", at, k, local[k]);
        memset(local, (rank + at) % 50, LENGTH);
        OK(MPI_Put(local, 5, MPI_CHAR, next, theirs[at] + 2, 5, MPI_CHAR, win));
        OK(MPI_Win_flush_local(next, win));
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    for (int i = 0; i < REGIONS; i++)
        for (int k = 0; k < LENGTH; k++)
            CHECK(blocks[i][k] == (k >= 2 && k < 7 ? (before + i) % 50 : i % 100), "region %d, byte %d: %d", i, k, blocks[i][k]);
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < REGIONS; i++) {
        int at = i * 11 % REGIONS;
        OK(MPI_Win_detach(win, blocks[at]));
        free(blocks[at]);
    }
    free(blocks), free(theirs), free(mine);
}

/* The same memory is attached again, with other borders, while another window holds it too; targets are sent by each rank. */
static void attach_again(void)
{
    static int memory[64];
    MPI_Win other;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &other));
    OK(MPI_Win_attach(other, memory, sizeof memory));
    for (int i = 0; i < 20; i++) {
        int *at = memory + i, value = rank * 100 + i, next = (rank + 1) % size, got = -1;
        MPI_Aint mine = address_of(at), theirs;
        OK(MPI_Win_attach(win, at, (64 - i) * (MPI_Aint)sizeof *memory));
        OK(MPI_Sendrecv(&mine, 1, MPI_AINT, (rank + size - 1) % size, 1, &theirs, 1, MPI_AINT, next, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
        OK(MPI_Put(&value, 1, MPI_INT, next, theirs, 1, MPI_INT, win));
        OK(MPI_Win_unlock(next, win));
        OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, other));
        OK(MPI_Get(&got, 1, MPI_INT, next, theirs, 1, MPI_INT, other));
        OK(MPI_Win_unlock(next, other));
        CHECK(got == value, "%d instead of %d", got, value);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_detach(win, at));
    }
    OK(MPI_Win_attach(win, memory, 0)); /* no bytes */
    OK(MPI_Win_detach(win, memory));
    OK(MPI_Win_free(&other)); /* detaches memory */
}

typedef struct link { MPI_Aint disp; int rank; } link_t;
typedef struct element { link_t next; int value; } element_t;

static element_t elements[ELEMENTS + 1]; /* [0]: head, on rank 0 */

static void put_link(link_t at, link_t value)
{
    OK(MPI_Accumulate(&value.disp, 1, MPI_AINT, at.rank, MPI_Aint_add(at.disp, offsetof(element_t, next.disp)), 1, MPI_AINT, MPI_REPLACE,
                      win));
    OK(MPI_Win_flush(at.rank, win));
}

static MPI_Aint next_of(link_t at)
{
    MPI_Aint disp = 0, none = 0;
    while (!disp) { /* the rank is set before the displacement */
        OK(MPI_Fetch_and_op(&none, &disp, MPI_AINT, at.rank, MPI_Aint_add(at.disp, offsetof(element_t, next.disp)), MPI_NO_OP, win));
        OK(MPI_Win_flush(at.rank, win));
    }
    return disp;
}

/* Appends behind `tail` or a later element; returns the new element's link. */
static link_t append(link_t tail, element_t *new)
{
    link_t mine = {address_of(new), rank};
    for (;;) {
        int none = -1, old = -2;
        OK(MPI_Compare_and_swap(&rank, &none, &old, MPI_INT, tail.rank, MPI_Aint_add(tail.disp, offsetof(element_t, next.rank)), win));
        OK(MPI_Win_flush(tail.rank, win));
        if (old == none) {
            put_link(tail, mine);
            return mine;
        }
        tail = (link_t){next_of(tail), old};
    }
}

static void list(void)
{
    int *seen = calloc((size_t)size, sizeof *seen), total = 0;
    link_t head = {address_of(&elements[0]), 0}, tail;
    OK(MPI_Bcast(&head.disp, 1, MPI_AINT, 0, MPI_COMM_WORLD));
    for (int i = 0; i <= ELEMENTS; i++) {
        elements[i] = (element_t){{0, -1}, rank * ELEMENTS + i - 1};
        OK(MPI_Win_attach(win, &elements[i], sizeof elements[i]));
    }
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    tail = head;
    for (int i = 1; i <= ELEMENTS; i++)
        tail = append(tail, &elements[i]);
    OK(MPI_Win_flush_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (link_t at = head;; total++) { /* each rank's elements come in their order */
        element_t e;
        OK(MPI_Get(&e, sizeof e, MPI_BYTE, at.rank, at.disp, sizeof e, MPI_BYTE, win));
        OK(MPI_Win_flush(at.rank, win));
        if (total)
            CHECK(e.value == at.rank * ELEMENTS + seen[at.rank]++, "element %d holds %d", total, e.value);
        if (e.next.rank < 0)
            break;
        at = e.next;
    }
    CHECK(total == size * ELEMENTS, "%d elements", total);
    OK(MPI_Win_unlock_all(win));
    free(seen);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    regions();
    attach_again();
    list();
    OK(MPI_Win_free(&win));
    OK(MPI_Finalize());
    return 0;
}
