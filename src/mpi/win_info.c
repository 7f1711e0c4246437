/* SPDX-License-Identifier: BSD-3-Clause
 *
 * win_info: see win_info.h.
 */
#include "mpi/win_info.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/macros.h"
#include "base/status.h"
#include "mpi/calls.h"
#include "mpi/memory_kinds.h"

/* By bit of weft_win.hints (enum weft_win_hint). The default is false, but of the last its knob's; only the first may change later, and
 * only to false. */
static const char *const hints[] = {"no_locks", "same_size", "same_disp_unit", "alloc_shared_noncontig", "weft_device_atomics"};

/* By bit of weft_win.ordering (enum weft_win_ordering). */
static const char *const orders[] = {"rar", "raw", "war", "waw"};

static void set_ordering(weft_win *win, const char *value)
{
    char item[8];
    uint8_t ordering = 0;
    while (weft_info_next_item(&value, item, sizeof item)) {
        unsigned bit = 0;
        while (bit < weft_count(orders) && strcmp(item, orders[bit]))
            bit++;
        if (bit < weft_count(orders))
            ordering |= (uint8_t)(1u << bit);
        else if (strcmp(item, "none"))
            return;
    }
    win->ordering = ordering;
}

void weft_win_set_hints(weft_win *win, const weft_info *info, bool is_new)
{
    char text[WEFT_INFO_VALUE_BYTES];
    bool value;
    for (unsigned i = 0; i < weft_count(hints); i++)
        if (weft_info_find_bool(info, hints[i], &value) && (is_new || (i == 0 && !value)))
            win->hints = (uint8_t)(value ? win->hints | 1u << i : win->hints & ~(1u << i));
    if (weft_info_find(info, "mpi_assert_memory_alloc_kinds", text) && weft_memory_kinds_known(text))
        win->asserted_kinds = weft_memory_kinds_keep(text);
    if (!is_new) /* operations may be under way */
        return;
    if (weft_info_find(info, "accumulate_ordering", text))
        set_ordering(win, text);
    if (weft_info_find(info, "accumulate_ops", text) && (!strcmp(text, "same_op") || !strcmp(text, "same_op_no_op")))
        win->is_same_op = !strcmp(text, "same_op");
    if (weft_info_find_int(info, "mpi_accumulate_granularity", &win->granularity) && win->granularity < 0)
        win->granularity = 0;
}

static uint64_t value_of(const weft_window *window, uint32_t member, bool is_unit)
{
    return is_unit ? window->targets[member].unit : window->targets[member].bytes;
}

/* Clears the hint if a member's value differs from that of member 0. */
static void check_same(weft_win *win, enum weft_win_hint hint, const char *key)
{
    const weft_window *window = win->window;
    bool is_unit = hint == WEFT_WIN_SAME_DISP_UNIT;
    uint64_t first = value_of(window, 0, is_unit);
    uint32_t other = 1;
    if (!(win->hints & hint) || window->flavor == WEFT_WINDOW_DYNAMIC)
        return;
    while (other < window->size && value_of(window, other, is_unit) == first)
        other++;
    if (other == window->size)
        return;
    win->hints &= (uint8_t)~hint;
    if (window->rank == 0)
        weft_log_once(WEFT_LOG_WARN, "a window's info key %s is true, but member 0 passes %llu bytes, member %u %llu (MPI 5.0, 12.2.1)\n"
                      "The key counts as false. Pass it only where all members pass the same value.", key, (unsigned long long)first,
                      other, (unsigned long long)value_of(window, other, is_unit));
}

void weft_win_check_same(weft_win *win)
{
    check_same(win, WEFT_WIN_SAME_SIZE, "same_size");
    check_same(win, WEFT_WIN_SAME_DISP_UNIT, "same_disp_unit");
}

int weft_mpi_win_set_info(weft_win *win, weft_info *info)
{
    weft_win_set_hints(win, info, false);
    return 0;
}

static int add_accumulate(const weft_win *win, weft_info *info)
{
    char text[24] = "";
    int rc;
    for (unsigned i = 0; i < weft_count(orders); i++)
        if (win->ordering >> i & 1)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", *text ? "," : "", orders[i]);
    rc = weft_info_set(info, "accumulate_ordering", *text ? text : "none");
    if (!rc)
        rc = weft_info_set(info, "accumulate_ops", win->is_same_op ? "same_op" : "same_op_no_op");
    snprintf(text, sizeof text, "%lld", (long long)win->granularity);
    return rc ? rc : weft_info_set(info, "mpi_accumulate_granularity", text);
}

/* Returns all supported hints with their values (MPI 5.0 12.2.7). */
int weft_mpi_win_get_info(weft_win *win, MPI_Info *info_used)
{
    weft_info *info = weft_info_new();
    int rc = info ? weft_memory_kinds_add(info, win->asserted_kinds) : WEFT_E_NOMEM;
    for (unsigned i = 0; i < weft_count(hints) && !rc; i++)
        rc = weft_info_set(info, hints[i], win->hints >> i & 1 ? "true" : "false");
    if (!rc)
        rc = add_accumulate(win, info);
    if (rc)
        weft_info_drop(info);
    else
        *info_used = info;
    return rc;
}
