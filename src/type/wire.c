/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire: see wire.h. Words of 8 bytes: the shape, then the nodes of the layout, each after those that it refers to, by number; the root is
 * the last one. A node that several parents share is written once.
 */
#include "type/wire.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "type/layout.h"
#include "type/type_internal.h"

#define NONE UINT64_MAX
enum { NODE_WORDS = 6 };

typedef struct shape {
    int64_t size, count_max, lb, extent, true_lb, true_extent, elements, align;
    uint64_t nodes;
    uint16_t basic_handle;
    uint8_t class_, is_dense, is_resized, unused[3];
} shape;
_Static_assert(sizeof(shape) % 8 == 0, "words follow");

typedef struct encoder {
    uint64_t *words;
    uint64_t count, capacity;
    const weft_type_layout **known; /* hash of nodes; [mask + 1] */
    uint64_t *numbers;              /* beside it */
    uint64_t mask, nodes;
    bool is_out_of_memory;
} encoder;

static void put(encoder *self, uint64_t word)
{
    if (self->count == self->capacity) {
        uint64_t capacity = self->capacity ? self->capacity * 2 : 64;
        uint64_t *words = realloc(self->words, capacity * sizeof *words);
        if (!words) {
            self->is_out_of_memory = true;
            return;
        }
        self->words = words;
        self->capacity = capacity;
    }
    self->words[self->count++] = word;
}

static uint64_t slot_of(const encoder *self, const weft_type_layout *node)
{
    uint64_t slot = ((uintptr_t)node >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20 & self->mask;
    while (self->known[slot] && self->known[slot] != node)
        slot = (slot + 1) & self->mask;
    return slot;
}

/* Doubles the hash when it is half full. */
static void grow(encoder *self)
{
    const weft_type_layout **old = self->known;
    uint64_t *old_numbers = self->numbers, length = self->mask + 1;
    if (old && self->nodes * 2 < length)
        return;
    length = old ? length * 2 : 64;
    self->known = calloc(length, sizeof *self->known);
    self->numbers = calloc(length, sizeof *self->numbers);
    if (!self->known || !self->numbers) {
        free(self->known);
        free(self->numbers);
        self->known = old;
        self->numbers = old_numbers;
        self->is_out_of_memory = true;
        return;
    }
    self->mask = length - 1;
    for (uint64_t i = 0; old && i < length / 2; i++) {
        if (old[i]) {
            uint64_t slot = slot_of(self, old[i]);
            self->known[slot] = old[i];
            self->numbers[slot] = old_numbers[i];
        }
    }
    free(old);
    free(old_numbers);
}

static uint64_t encode_node(encoder *self, const weft_type_layout *node);

static void encode_blocks(encoder *self, const weft_type_layout *node)
{
    for (uint64_t i = 0; i < node->count; i++) {
        const weft_layout_block *b = &node->blocks[i];
        put(self, (uint64_t)b->disp);
        put(self, b->start);
        put(self, b->child ? self->numbers[slot_of(self, b->child)] : NONE);
    }
}

/* Returns the node's number. */
static uint64_t encode_node(encoder *self, const weft_type_layout *node)
{
    bool is_list = node->kind == WEFT_LAYOUT_LIST || node->kind == WEFT_LAYOUT_TABLE;
    uint64_t slot, child = NONE;
    grow(self);
    if (self->is_out_of_memory)
        return NONE;
    slot = slot_of(self, node);
    if (self->known[slot])
        return self->numbers[slot];
    if (node->kind == WEFT_LAYOUT_LOOP)
        child = encode_node(self, node->child);
    for (uint64_t i = 0; is_list && i < node->count; i++)
        if (node->blocks[i].child)
            encode_node(self, node->blocks[i].child);
    if (self->is_out_of_memory)
        return NONE;
    put(self, (uint64_t)node->kind);
    put(self, (uint64_t)node->disp);
    put(self, node->count);
    put(self, node->size);
    put(self, node->bytes);
    put(self, node->kind == WEFT_LAYOUT_LOOP || node->kind == WEFT_LAYOUT_RUN ? (uint64_t)node->stride : 0);
    if (node->kind == WEFT_LAYOUT_LOOP)
        put(self, child);
    if (is_list)
        encode_blocks(self, node);
    for (uint64_t i = 0; node->kind == WEFT_LAYOUT_PLACES && i < node->count; i++)
        put(self, (uint64_t)node->disps[i]);
    slot = slot_of(self, node); /* the hash may have grown */
    self->known[slot] = node;
    self->numbers[slot] = self->nodes;
    return self->nodes++;
}

int weft_type_encode(const weft_type *type, void **out, uint64_t *bytes)
{
    shape head = {.size = type->size, .count_max = (int64_t)type->count_max, .lb = type->lb, .extent = type->extent,
                  .true_lb = type->true_lb, .true_extent = type->true_extent, .elements = type->elements, .align = type->align,
                  .basic_handle = type->basic_handle, .class_ = type->class_, .is_dense = type->is_dense,
                  .is_resized = type->is_resized};
    encoder self = {0};
    for (uint64_t i = 0; i < sizeof head / 8; i++)
        put(&self, 0);
    if (type->layout)
        encode_node(&self, type->layout);
    free(self.known);
    free(self.numbers);
    if (self.is_out_of_memory) {
        free(self.words);
        return weft_fail(WEFT_E_NOMEM, "no memory to send a datatype");
    }
    head.nodes = self.nodes;
    memcpy(self.words, &head, sizeof head);
    *out = self.words;
    *bytes = self.count * 8;
    return 0;
}

typedef struct decoder {
    const char *at;
    uint64_t left;             /* words */
    weft_type_layout **nodes;  /* made so far */
    uint64_t count;
    bool is_bad, is_out_of_memory;
} decoder;

static uint64_t get(decoder *self)
{
    uint64_t word = 0;
    if (!self->left) {
        self->is_bad = true;
        return 0;
    }
    memcpy(&word, self->at, sizeof word);
    self->at += sizeof word;
    self->left--;
    return word;
}

static const weft_type_layout *get_child(decoder *self)
{
    uint64_t number = get(self);
    if (number == NONE)
        return NULL;
    self->is_bad |= number >= self->count;
    return self->is_bad ? NULL : self->nodes[number];
}

/* An array of the node; NULL: too short, or out of memory. */
static void *get_memory(decoder *self, uint64_t count, uint64_t words, uint64_t bytes, uint64_t extra)
{
    void *memory;
    if (count > self->left / words) {
        self->is_bad = true;
        return NULL;
    }
    memory = malloc((count + extra) * bytes);
    self->is_out_of_memory |= !memory;
    return memory;
}

static void decode_blocks(decoder *self, weft_type_layout *node)
{
    weft_layout_block *blocks = get_memory(self, node->count, 3, sizeof *blocks, 1);
    if (!blocks)
        return;
    for (uint64_t i = 0; i < node->count; i++) {
        blocks[i].disp = (int64_t)get(self);
        blocks[i].start = get(self);
        blocks[i].child = get_child(self);
    }
    blocks[node->count] = (weft_layout_block){.start = node->size};
    node->blocks = node->memory = blocks;
}

static void decode_node(decoder *self, weft_type_layout *node)
{
    node->kind = (enum weft_layout_kind)get(self);
    node->disp = (int64_t)get(self);
    node->count = get(self);
    node->size = get(self);
    node->bytes = get(self);
    node->stride = (int64_t)get(self);
    if (node->kind == WEFT_LAYOUT_LOOP) {
        node->child = get_child(self);
        self->is_bad |= !node->child;
    } else if (node->kind == WEFT_LAYOUT_LIST || node->kind == WEFT_LAYOUT_TABLE) {
        decode_blocks(self, node);
    } else if (node->kind == WEFT_LAYOUT_PLACES) {
        int64_t *disps = get_memory(self, node->count, 1, sizeof *disps, 0);
        for (uint64_t i = 0; disps && i < node->count; i++)
            disps[i] = (int64_t)get(self);
        node->disps = node->memory = disps;
    } else {
        self->is_bad |= node->kind != WEFT_LAYOUT_RUN;
    }
}

/* The root, which owns the others; NULL: failed, and nothing is left. */
static weft_type_layout *decode_layout(decoder *self, uint64_t count)
{
    weft_type_layout *root = NULL;
    self->is_bad |= count > self->left / NODE_WORDS;
    self->nodes = self->is_bad ? NULL : malloc(count * sizeof(weft_type_layout *));
    self->is_out_of_memory |= !self->nodes;
    while (self->nodes && self->count < count && !self->is_bad && !self->is_out_of_memory) {
        weft_type_layout *node = calloc(1, sizeof *node);
        if (!node) {
            self->is_out_of_memory = true;
            break;
        }
        node->owned = root;
        root = node;
        decode_node(self, node);
        self->nodes[self->count++] = node;
    }
    free(self->nodes);
    if (!self->is_bad && !self->is_out_of_memory)
        return root;
    weft_layout_free(root);
    return NULL;
}

int weft_type_decode(const void *in, uint64_t bytes, weft_type **out)
{
    decoder self = {.at = (const char *)in + sizeof(shape)};
    weft_type_layout *root = NULL;
    weft_type *type;
    shape head;
    if (bytes < sizeof head)
        return weft_fail(WEFT_E_TYPE, "a datatype of %llu bytes was received", (unsigned long long)bytes);
    memcpy(&head, in, sizeof head);
    self.left = (bytes - sizeof head) / 8;
    if (head.nodes && !(root = decode_layout(&self, head.nodes)))
        return self.is_bad ? weft_fail(WEFT_E_TYPE, "bytes that are no datatype were received: do all ranks run the same version?")
                           : weft_fail(WEFT_E_NOMEM, "no memory for a datatype");
    type = weft_type_blank();
    if (!type) {
        weft_layout_free(root);
        return weft_fail(WEFT_E_NOMEM, "no memory for a datatype");
    }
    type->size = head.size;
    type->count_max = (uint64_t)head.count_max;
    type->lb = head.lb;
    type->extent = head.extent;
    type->true_lb = head.true_lb;
    type->true_extent = head.true_extent;
    type->elements = head.elements;
    type->align = head.align;
    type->basic_handle = head.basic_handle;
    type->class_ = head.class_;
    type->is_dense = head.is_dense;
    type->is_resized = head.is_resized;
    type->is_committed = true;
    type->layout = root;
    *out = type;
    return 0;
}
