/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rig: two sides of one transport in one process, and the callbacks that each has received. The tests of the contract suite use transports
 * through this only; a transport joins the suite by one row in rig.c. Every loop is bounded: a broken transport fails and does not hang.
 */
#ifndef WEFT_TEST_CONTRACT_RIG_H
#define WEFT_TEST_CONTRACT_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "mem/segment.h"
#include "transport/iface.h"
#include "test/transports/sim/sim.h"

typedef struct rig weft_rig;
typedef struct rig_side rig_side;

typedef struct rig_row {
    const char *name;
    const weft_iface_ops *ops;
    const char *profile; /* sim's */
    uint64_t seed;
    bool is_self;        /* both sides are one iface */
    bool wants_fd;       /* the owner sleeps on descriptors: no futex */
} rig_row;

extern const rig_row rig_rows[]; /* ends with name NULL */

typedef struct rig_arrival {
    weft_hdr hdr;
    void *peer;
    uint8_t *body; /* a copy */
    bool is_aligned;
} rig_arrival;

struct rig_side {
    weft_rig *rig;
    weft_proc_id proc_id;
    weft_iface *iface;
    weft_ep *ep;      /* to the other side; NULL: not open */
    rig_side *other;
    rig_arrival *arrivals;
    uint32_t arrival_count, arrival_room;
    uint32_t depth, deepest; /* of recv_frame inside recv_frame */
    bool is_in_poll;
    uint32_t arrived_outside_poll;
    uint32_t greets, losts, lost_rc_bad, notifies;
    uint32_t last_notify;
    void *last_notify_peer;
    void (*on_arrive)(rig_side *side, void *peer, const weft_hdr *hdr, const void *body);
    void (*on_notify)(rig_side *side);
    void *extra;
};

struct rig {
    const rig_row *row;
    rig_side sides[2];
    rig_side *a, *b; /* the same when the row is self */
    weft_sim *sim;
    weft_segment segment;
    bool has_segment;
    uint64_t random;
    rig_side *third;   /* rig_third's; NULL: none */
    weft_ep *to_third; /* b's */
    bool skip_b_reach; /* b has no ep to a: accept_peer will be called */
    bool gave_up;      /* a loop reached its limit */
};

/* A completion: argument of weft_rma.done. */
typedef struct rig_done {
    uint32_t times;
    int rc;
} rig_done;

/* Opens both ifaces and an ep from each to the other; skip_b_reach: none from b. NULL (and a failed check) on error. */
weft_rig *rig_open(const rig_row *row, bool skip_b_reach);
void rig_close(weft_rig *rig);
/* Opens a third side with an ep to b, which b accepts. rig_close closes it. NULL (and a failed check) on error. */
rig_side *rig_third(weft_rig *rig);
/* Set by mutants: changes an iface that was just opened. */
extern void (*rig_patch)(weft_iface *iface);
/* Above 1 if another thread or the kernel must make progress, which may get no CPU for seconds. */
extern uint32_t rig_patience;
/* The device checks the bounds of a window's registration, not of the window: Linux 6.1's soft-RoCE. */
extern bool rig_loose_windows;

uint64_t rig_random(weft_rig *rig);
/* Polls both once. */
int rig_turn(weft_rig *rig);
int rig_poll(rig_side *side, int budget);
/* Polls until *count reaches `want`; false when it never does. */
bool rig_until(weft_rig *rig, const uint32_t *count, uint32_t want);
/* Polls until nothing has come for a long time, which shows that nothing unexpected comes; rig_until waits for what is expected. */
void rig_settle(weft_rig *rig);
/* Sends, retrying on AGAIN; the rc that ended it. */
int rig_send(rig_side *side, const weft_frame *frame);
int rig_move(rig_side *side, const weft_rma *rma, bool is_get);
int rig_amo(rig_side *side, const weft_atomic *atomic);
int rig_flush(rig_side *side, bool remotely, rig_done *done);
/* Posts and waits for its end: the call's rc or done's. */
int rig_move_wait(rig_side *side, weft_rma rma, bool is_get);
int rig_map(rig_side *side, void *addr, uint64_t bytes, uint32_t rights, weft_mr *mr);
/* Closes every ep without failure. */
bool rig_leave(rig_side *side);
void rig_forget(rig_side *side); /* the arrivals so far */

/* The byte at `at` of the message number `n`. */
static inline uint8_t rig_byte(uint32_t n, uint64_t at)
{
    uint64_t x = (n + 1) * 0x9e3779b97f4a7c15u + at * 0xff51afd7ed558ccdu;
    return (uint8_t)(x >> 56 ^ x >> 17);
}
void rig_pattern(uint8_t *to, uint32_t n, uint64_t bytes);
bool rig_is_pattern(const uint8_t *at, uint32_t n, uint64_t bytes);

/* -- checks: CUnit's, or counted when mutants run -- */
extern uint32_t rig_failures;
extern bool rig_counts_only;
void rig_check(bool ok, const char *text, const char *file, unsigned line);
#define CHECK(x) rig_check((x), #x, __FILE__, __LINE__)

/* -- the tests, by file; each runs on any row -- */
typedef struct rig_test {
    const char *name;
    void (*run)(const rig_row *row);
} rig_test;
struct CU_Suite;
/* -- suites.c: all of the suite, for CUnit -- */
extern const rig_test *const rig_rooms[]; /* ends with NULL */
/* Adds every test (`only`: the one of this name; NULL: all); `run` finds it by rig_run_named, as CUnit gives a test no argument. */
void rig_add_rooms(struct CU_Suite *suite, const char *only, void (*run)(void));
const rig_test *rig_find(const char *name); /* NULL: none */
/* The test of this row with the name of CUnit's current test. */
void rig_run_named(const rig_row *row);

/* Each ends with name NULL. */
extern const rig_test life_tests[], frame_tests[], move_tests[], amo_tests[], order_tests[], lend_tests[], wait_tests[];

#endif
