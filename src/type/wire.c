/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire: see wire.h. Words of 8 bytes: the shape, then the nodes of the layout, each after those that it refers to, by number; the root is
 * the last one. A node that several parents share is written once.
 *
 * The reader checks what pack.c and runs.c rely on: each node moves as many bytes as it says, and the data lie within the type's true
 * bounds, which src/rma compares with the memory of a window. So a damaged type moves wrong bytes, but none outside of its window.
 */
#include "type/wire.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "type/layout.h"
#include "type/type_internal.h"

#define NONE UINT64_MAX
enum { NODE_WORDS = 6 };
#define DEPTH_MAX 10000 /* levels of a layout: the interpreter's stack */

typedef struct shape {
    int64_t size, count_max, lb, extent, true_lb, true_extent, elements, align;
    uint64_t nodes;
    uint16_t basic_handle;
    uint8_t class_, is_dense, is_resized, unused[3]; /* the flags: 0 or 1 */
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

/* Where the data of a node lie, bytes from its address, and the levels below it. */
typedef struct span {
    int64_t low, high;
    uint32_t depth;
} span;

typedef struct decoder {
    const char *at;
    uint64_t left;             /* words */
    weft_type_layout **nodes;  /* made so far */
    span *spans;               /* of the nodes */
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

/* The number of a node made before; NONE: a dense block. */
static uint64_t get_child(decoder *self)
{
    uint64_t number = get(self);
    self->is_bad |= number != NONE && number >= self->count;
    return self->is_bad ? NONE : number;
}

/* An array of the node; NULL: too short, or out of memory. */
static void *get_memory(decoder *self, uint64_t count, uint64_t words, uint64_t bytes, uint64_t extra)
{
    void *memory;
    if (!count || count > self->left / words) {
        self->is_bad = true;
        return NULL;
    }
    memory = malloc((count + extra) * bytes);
    self->is_out_of_memory |= !memory;
    return memory;
}

static span span_of_bytes(decoder *self, uint64_t bytes)
{
    self->is_bad |= !bytes || bytes > WEFT_TYPE_SPAN_MAX;
    return (span){.high = (int64_t)bytes};
}

static span moved(decoder *self, span one, int64_t disp)
{
    self->is_bad |= __builtin_add_overflow(one.low, disp, &one.low);
    self->is_bad |= __builtin_add_overflow(one.high, disp, &one.high);
    return one;
}

static span joined(span a, span b)
{
    return (span){a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high, a.depth > b.depth ? a.depth : b.depth};
}

/* count times `one`: the first and the last are the outermost. The node has that many times `bytes`. */
static span repeated(decoder *self, const weft_type_layout *node, span one, int64_t stride)
{
    int64_t past = 0;
    uint64_t size = 0;
    self->is_bad |= !node->count || __builtin_mul_overflow(node->count, stride, &past);
    self->is_bad |= __builtin_mul_overflow(node->count, node->bytes, &size) || size != node->size;
    if (self->is_bad)
        return one;
    return joined(one, moved(self, one, past - stride));
}

static span decode_blocks(decoder *self, weft_type_layout *node)
{
    weft_layout_block *blocks = get_memory(self, node->count, 3, sizeof *blocks, 1);
    span all = {0}, one;
    if (!blocks)
        return all;
    node->blocks = node->memory = blocks;
    blocks[node->count] = (weft_layout_block){.start = node->size};
    for (uint64_t i = 0; i < node->count; i++) {
        uint64_t number, end = node->size;
        const char *next = self->at + (3 + 1) * sizeof end; /* the start of the next block, if there is one */
        blocks[i].disp = (int64_t)get(self);
        blocks[i].start = get(self);
        number = get_child(self);
        if (i + 1 < node->count)
            memcpy(&end, next, sizeof end);
        self->is_bad |= blocks[i].start >= end || (!i && blocks[i].start);
        if (self->is_bad)
            return all;
        blocks[i].child = number == NONE ? NULL : self->nodes[number];
        if (number == NONE) {
            one = span_of_bytes(self, end - blocks[i].start);
        } else {
            one = self->spans[number];
            self->is_bad |= node->kind == WEFT_LAYOUT_TABLE || blocks[i].child->size != end - blocks[i].start;
        }
        one = moved(self, one, blocks[i].disp);
        all = i ? joined(all, one) : one;
    }
    return all;
}

static span decode_places(decoder *self, weft_type_layout *node)
{
    int64_t *disps = get_memory(self, node->count, 1, sizeof *disps, 0);
    span one = span_of_bytes(self, node->bytes), all = one;
    node->disps = node->memory = disps;
    for (uint64_t i = 0; disps && i < node->count; i++) {
        disps[i] = (int64_t)get(self);
        all = i ? joined(all, moved(self, one, disps[i])) : moved(self, one, disps[i]);
    }
    return repeated(self, node, all, 0);
}

static span decode_loop(decoder *self, weft_type_layout *node)
{
    uint64_t number = get_child(self);
    if (number == NONE || self->nodes[number]->size != node->bytes || !node->bytes) {
        self->is_bad = true;
        return (span){0};
    }
    node->child = self->nodes[number];
    return repeated(self, node, self->spans[number], node->stride);
}

static span decode_node(decoder *self, weft_type_layout *node)
{
    span all = {0};
    node->kind = (enum weft_layout_kind)get(self);
    node->disp = (int64_t)get(self);
    node->count = get(self);
    node->size = get(self);
    node->bytes = get(self);
    node->stride = (int64_t)get(self);
    if (node->kind == WEFT_LAYOUT_LOOP)
        all = decode_loop(self, node);
    else if (node->kind == WEFT_LAYOUT_LIST || node->kind == WEFT_LAYOUT_TABLE)
        all = decode_blocks(self, node);
    else if (node->kind == WEFT_LAYOUT_PLACES)
        all = decode_places(self, node);
    else if (node->kind == WEFT_LAYOUT_RUN && node->count)
        all = repeated(self, node, span_of_bytes(self, node->bytes), node->stride);
    else
        self->is_bad |= node->kind != WEFT_LAYOUT_RUN || node->size;
    all.depth++;
    self->is_bad |= all.depth > DEPTH_MAX;
    return moved(self, all, node->disp);
}

/* The root, which owns the others, and where its data lie; NULL: failed, and nothing is left. */
static weft_type_layout *decode_layout(decoder *self, uint64_t count, span *all)
{
    weft_type_layout *root = NULL;
    self->is_bad |= count > self->left / NODE_WORDS;
    self->nodes = self->is_bad ? NULL : malloc(count * sizeof(weft_type_layout *));
    self->spans = self->is_bad ? NULL : malloc(count * sizeof(span));
    self->is_out_of_memory |= !self->nodes || !self->spans;
    while (self->count < count && !self->is_bad && !self->is_out_of_memory) {
        weft_type_layout *node = calloc(1, sizeof *node);
        if (!node) {
            self->is_out_of_memory = true;
            break;
        }
        node->owned = root;
        root = node;
        *all = self->spans[self->count] = decode_node(self, node);
        self->nodes[self->count++] = node;
    }
    free(self->nodes);
    free(self->spans);
    if (!self->is_bad && !self->is_out_of_memory)
        return root;
    weft_layout_free(root);
    return NULL;
}

/* Is the type of so many elements at most that its size and extent times their count, and its data, stay below WEFT_TYPE_SPAN_MAX? */
static bool is_bounded(const shape *head)
{
    uint64_t step = head->extent < 0 ? -(uint64_t)head->extent : (uint64_t)head->extent, count = (uint64_t)head->count_max;
    if (head->size < 0 || head->elements < 0 || head->true_extent < 0 || head->count_max < 0 ||
        (uint64_t)head->true_extent > WEFT_TYPE_SPAN_MAX)
        return false;
    step = step > (uint64_t)head->size ? step : (uint64_t)head->size;
    return !step || count <= WEFT_TYPE_SPAN_MAX / step;
}

/* Do its numbers fit each other and its layout? Dense: there is none. */
static bool is_sound(const shape *head, const weft_type_layout *root, span data)
{
    const weft_type *basic = head->basic_handle ? weft_type_of((void *)(uintptr_t)head->basic_handle) : NULL;
    int64_t end;
    if (!is_bounded(head) || head->class_ > WEFT_CLASS_PAIR || head->is_dense > 1 || head->is_resized > 1 ||
        __builtin_add_overflow(head->true_lb, head->true_extent, &end))
        return false;
    if (head->basic_handle && (!basic || basic->size <= 0 || head->size % basic->size))
        return false;
    if (head->is_dense)
        return !root && !head->lb && !head->true_lb && head->size == head->extent && head->size == head->true_extent;
    return root && root->size == (uint64_t)head->size && (!root->size || (data.low >= head->true_lb && data.high <= end));
}

int weft_type_decode(const void *in, uint64_t bytes, weft_type **out)
{
    decoder self = {.at = (const char *)in + sizeof(shape)};
    weft_type_layout *root = NULL;
    weft_type *type;
    shape head;
    span data = {0};
    if (bytes < sizeof head)
        return weft_fail(WEFT_E_TYPE, "a datatype of %llu bytes was received", (unsigned long long)bytes);
    memcpy(&head, in, sizeof head);
    self.left = (bytes - sizeof head) / 8;
    if (head.nodes)
        root = decode_layout(&self, head.nodes, &data);
    if (self.is_out_of_memory && !self.is_bad)
        return weft_fail(WEFT_E_NOMEM, "no memory for a datatype");
    if (self.is_bad || !is_sound(&head, root, data)) {
        weft_layout_free(root);
        return weft_fail(WEFT_E_TYPE, "bytes that are no datatype were received: do all ranks run the same version?");
    }
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
