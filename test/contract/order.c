/* SPDX-License-Identifier: BSD-3-Clause
 *
 * order: when the target sees what was put there: by the right ORDERED at once when the put has ended, else with the next frame.
 */
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/status.h"
#include "test/contract/rig.h"

#define BYTES 6000u /* fits the narrowest pin limit twice */
#define BODY 700u   /* longest of a frame */
#define FRAMES 8u   /* behind each put */

typedef struct target {
    weft_rig *rig;
    uint8_t *from, *to; /* of a, of b */
    weft_mr from_mr, to_mr;
    rig_done done; /* of all puts */
} target;

/* False: no puts here. */
static bool target_open(target *target, const rig_row *row, uint32_t rights)
{
    *target = (struct target){.rig = rig_open(row, false)};
    if (!target->rig)
        return false;
    rig_side *a = target->rig->a, *b = target->rig->b;
    target->from = aligned_alloc(64, weft_round_up(BYTES, 64));
    target->to = aligned_alloc(64, weft_round_up(BYTES, 64));
    memset(target->to, 0, BYTES);
    CHECK(rig_map(a, target->from, BYTES, 0, &target->from_mr) == 0 && rig_map(b, target->to, BYTES, rights, &target->to_mr) == 0);
    CHECK((target->to_mr.rights & rights) == rights);
    b->extra = target;
    return a->iface->caps.put && a->iface->ops->can_rma(a->iface, a->ep);
}

static void target_close(target *target)
{
    if (!target->rig)
        return;
    rig_side *a = target->rig->a, *b = target->rig->b;
    CHECK(a->iface->ops->mr_dereg(a->iface, &target->from_mr) == 0 && b->iface->ops->mr_dereg(b->iface, &target->to_mr) == 0);
    rig_close(target->rig);
    free(target->from);
    free(target->to);
}

static uint64_t bytes_of(const target *target, uint32_t n)
{
    static const uint32_t sizes[] = {8, 64, 100, 900, 4000};
    uint64_t max = target->rig->a->iface->caps.rma_max, bytes = sizes[n % weft_count(sizes)];
    return bytes < max ? bytes : max;
}

static uint32_t place_of(uint32_t n) { return n * 97 % 1000; }

static bool has_come(const target *target, uint32_t n) { return rig_is_pattern(target->to + place_of(n), n, bytes_of(target, n)); }

/* Puts the n-th pattern and waits for its end, as of those before. */
static bool put(target *target, uint32_t n)
{
    weft_rma rma = {.local = target->from + place_of(n), .mr = &target->from_mr, .remote = (uintptr_t)target->to + place_of(n),
                    .rkey = &target->to_mr.rkey, .bytes = bytes_of(target, n), .done = &target->done};
    rig_pattern(rma.local, n, rma.bytes);
    return rig_move(target->rig->a, &rma, false) == 0 && rig_until(target->rig, &target->done.times, n + 1) &&
           target->done.rc == 0;
}

static void ordered_puts_end_visible(const rig_row *row)
{
    target target;
    bool has_puts = target_open(&target, row, WEFT_ACCESS_WRITE | WEFT_ACCESS_ORDERED);
    for (uint32_t i = 0; has_puts && i < 40; i++) {
        CHECK(put(&target, i));
        CHECK(has_come(&target, i));
    }
    target_close(&target);
}

static void look(rig_side *side, void *peer, const weft_hdr *hdr, const void *body)
{
    (void)peer;
    CHECK(has_come(side->extra, hdr->seq / FRAMES) && rig_is_pattern(body, hdr->seq, hdr->bytes));
}

/* So many frames, the first behind a put and others, that a transport sends them in other ways than at first, too. */
static void puts_are_visible_at_frames(const rig_row *row)
{
    target target;
    bool has_puts = target_open(&target, row, WEFT_ACCESS_WRITE);
    uint32_t max = target.rig ? target.rig->a->iface->caps.frame_max : 0;
    for (uint32_t i = 0; has_puts && i < 120; i++) {
        target.rig->b->on_arrive = look;
        CHECK(put(&target, i));
        for (uint32_t k = i * FRAMES; k < (i + 1) * FRAMES; k++) {
            uint8_t body[BODY];
            weft_frame frame = {.hdr = {.seq = k, .bytes = k % (max < BODY ? max : BODY)}, .body = body};
            rig_pattern(body, k, frame.hdr.bytes);
            CHECK(rig_send(target.rig->a, &frame) == 0);
        }
        CHECK(rig_until(target.rig, &target.rig->b->arrival_count, (i + 1) * FRAMES));
    }
    target_close(&target);
}

const rig_test order_tests[] = {
    {"ordered-puts-end-visible", ordered_puts_end_visible}, {"puts-are-visible-at-frames", puts_are_visible_at_frames}, {NULL, NULL},
};
