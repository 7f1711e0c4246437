/* SPDX-License-Identifier: BSD-3-Clause
 *
 * list: intrusive doubly linked circular list. The head is a link that points to itself when the list is empty.
 * Not thread-safe: the lock of the list's owner guards it, mostly worker->lock.
 */
#ifndef WEFT_BASE_LIST_H
#define WEFT_BASE_LIST_H

#include <stdbool.h>

#include "base/macros.h"

typedef struct weft_list_link {
    struct weft_list_link *next, *prev;
} weft_list_link;

static inline void weft_list_init(weft_list_link *head) { head->next = head->prev = head; }
static inline bool weft_list_is_empty(const weft_list_link *head) { return head->next == head; }

static inline void weft_list_append(weft_list_link *head, weft_list_link *item)
{
    item->prev = head->prev;
    item->next = head;
    head->prev->next = item;
    head->prev = item;
}

static inline void weft_list_remove(weft_list_link *item)
{
    item->prev->next = item->next;
    item->next->prev = item->prev;
    item->next = item->prev = item;
}

/* The first item; NULL: empty. */
static inline weft_list_link *weft_list_first(const weft_list_link *head) { return head->next == head ? NULL : head->next; }

static inline weft_list_link *weft_list_take(weft_list_link *head)
{
    weft_list_link *item = weft_list_first(head);
    if (item)
        weft_list_remove(item);
    return item;
}

/* Moves all items, in order, to the end of `to`; `from` becomes empty. */
static inline void weft_list_splice(weft_list_link *to, weft_list_link *from)
{
    if (weft_list_is_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    weft_list_init(from);
}

#endif
