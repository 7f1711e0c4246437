/* SPDX-License-Identifier: BSD-3-Clause
 *
 * relay: see relay.h. Nothing of what passes is looked into but whom it is for, or who speaks: of those, each side may name only who
 * stands behind its connection.
 */
#include "tools/mpirun/relay.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static limb *limb_to(relay *self, uint32_t node)
{
    uint32_t way = self->job ? tree_way(&self->tree, node) : UINT32_MAX;

    return way == UINT32_MAX ? NULL : &self->limbs.items[way];
}

/* In the name of one below. */
static void tell(relay *self, const limb *one, uint32_t kind, const char *text)
{
    wire as = {.via = self->up, .node = one->node};
    pack body = {0};

    pack_text(&body, text);
    pack_send(&body, &as, kind);
}

static void limb_met(void *owner, limb *one)
{
    relay *self = owner;

    wire_send(&one->wire, WIRE_START, self->job->bytes, self->job->size);
}

static void limb_frame(void *owner, limb *one, const wire_frame *frame)
{
    relay *self = owner;

    if (limb_to(self, frame->node) != one) {
        one->wire.trouble = "it speaks for a host that is not behind it";
        return;
    }
    wire_pass(self->up, frame);
    if (frame->kind == WIRE_OVER && frame->node == one->node)
        limb_part(one);
}

static void limb_lost(void *owner, limb *one, const char *why)
{
    tell(owner, one, WIRE_LOST, why);
    limb_drop(one);
}

static void limb_failed(void *owner, limb *one, const char *why)
{
    const relay *self = owner;
    const char *said = agent_words(&one->agent);
    char text[1024];

    snprintf(text, sizeof(text), "%s (started from host %s)%s%s", why, self->job->map.nodes[self->job->node].name, *said ? ": " : "", said);
    tell(owner, one, WIRE_UNMET, text);
    limb_drop(one);
}

int relay_open(relay *self, const description *job, wire *up, const unsigned char *secret, guard *guard)
{
    limbs_up in = {.met = limb_met, .frame = limb_frame, .lost = limb_lost, .failed = limb_failed, .owner = self};
    tree all = tree_of_head(&job->map, job->head, job->opts.fanout), below = tree_of_node(&all, job->node);

    if (!below.count)
        return 0;
    *self = (relay){.job = job, .up = up, .tree = below};
    if (limbs_open(&self->limbs, secret, tree_children(&below), guard, &in))
        return complain(1, "cannot listen for daemons of other hosts: %s", strerror(errno));
    for (uint32_t i = 0; i < tree_children(&below); i++) {
        uint32_t node = tree_child(&below, i);
        limbs_add(&self->limbs, node, job->map.nodes[node].name);
    }
    return limbs_start(&self->limbs, job->opts.agent);
}

size_t relay_window(const description *job, size_t window)
{
    tree all = tree_of_head(&job->map, job->head, job->opts.fanout);
    uint32_t first = tree_child(&all, tree_way(&all, job->node));

    window /= tree_of_node(&all, first).count + 1;
    return window ? window : 1;
}

void relay_down(relay *self, const wire_frame *frame)
{
    limb *one = limb_to(self, frame->node);

    if (one) /* one that has not come yet, or is gone, misses nothing that it could use */
        wire_pass(&one->wire, frame);
}

void relay_part(relay *self, uint32_t node)
{
    limb *one = limb_to(self, node);

    if (one && one->node == node)
        limb_drop(one);
}

void relay_drain(relay *self)
{
    for (uint32_t i = 0; self->job && i < self->limbs.count; i++) {
        limb *one = &self->limbs.items[i];
        if (one->is_over || one->is_met)
            continue;
        limb_spare(one);
        tell(self, one, WIRE_OVER, NULL);
    }
}

uint32_t relay_max(const relay *self)
{
    return self->job ? limbs_max(&self->limbs) : 0;
}

uint32_t relay_wishes(const relay *self, struct pollfd *set)
{
    return self->job ? limbs_wishes(&self->limbs, set) : 0;
}

void relay_turn(relay *self, const struct pollfd *set, uint32_t count)
{
    if (self->job)
        limbs_turn(&self->limbs, set, count);
}

bool relay_reaped(relay *self, pid_t pid, int status)
{
    return self->job && limbs_reaped(&self->limbs, pid, status);
}

void relay_deadlines(relay *self)
{
    if (self->job)
        limbs_deadlines(&self->limbs);
}

bool relay_is_over(const relay *self)
{
    return !self->job || limbs_are_over(&self->limbs);
}

void relay_close(relay *self)
{
    if (self->job)
        limbs_close(&self->limbs);
    self->job = NULL;
}
