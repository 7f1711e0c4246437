/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rig: see rig.h.
 */
#include "test/sim/rig.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/knob.h"
#include "base/status.h"
#include "p2p/dispatch.h"

uint64_t rig_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint8_t byte_of(uint64_t name, uint64_t at)
{
    uint64_t x = name * 0x9e3779b97f4a7c15u + at * 0xff51afd7ed558ccdu;
    return (uint8_t)(x >> 56 ^ x >> 19);
}

void rig_fill(uint8_t *to, uint64_t name, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++)
        to[i] = byte_of(name, i);
}

uint64_t rig_wrong(const uint8_t *at, uint64_t name, uint64_t bytes)
{
    uint64_t i = 0;
    while (i < bytes && at[i] == byte_of(name, i))
        i++;
    return i;
}

uint32_t rig_wrongs;

static int say(const rig *rig, const char *format, va_list args)
{
    char text[400];
    vsnprintf(text, sizeof text, format, args);
    fprintf(stderr, "    rank %d of %d: %s\n", rig->rank, rig->size, text);
    return 1;
}

int rig_fail(const rig *rig, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(rig, format, args);
    va_end(args);
    return 1;
}

int rig_fail_wrong(const rig *rig, const char *format, ...)
{
    va_list args;
    rig_wrongs++;
    va_start(args, format);
    say(rig, format, args);
    va_end(args);
    return 1;
}

const weft_type *rig_type(uint32_t handle)
{
    return weft_type_of((const void *)(uintptr_t)handle);
}

static int open_chan(rig *rig, int id, weft_chan **chan)
{
    uint32_t ids[64] = {0};
    int rc = weft_chan_open(rig->world->workers[0], NULL, (uint32_t)rig->rank, id, chan);
    for (int i = 0; i < rig->size; i++)
        ids[i] = (*chan)->id;
    return rc ? rc : weft_chan_connect(*chan, ids);
}

int rig_open(rig *rig, uint64_t seed)
{
    weft_boot *boot;
    weft_chan *coll;
    memset(rig, 0, sizeof *rig);
    int rc = weft_boot_start(&boot);
    if (rc)
        return rig_fail(rig, "no boot: %s", weft_fail_text(rc));
    rig->rank = (int)boot->rank;
    rig->size = (int)boot->size;
    rig->random = seed * 1000003 + boot->rank;
    rc = weft_p2p_open(boot, 0, &rig->world);
    if (rc)
        return rig_fail(rig, "no world: %s", weft_fail_text(rc));
    rc = open_chan(rig, 0, &rig->chan);
    rc = rc ? rc : open_chan(rig, 1, &coll);
    rc = rc ? rc : weft_team_open(coll, false, &rig->team);
    if (rc)
        return rig_fail(rig, "no channel: %s", weft_fail_text(rc));
    return 0;
}

static void close_chans(rig *rig)
{
    weft_chan *coll = rig->team.chan;
    weft_team_close(&rig->team);
    weft_chan_close(coll);
    weft_chan_close(rig->chan);
}

int rig_close(rig *rig)
{
    close_chans(rig);
    return weft_world_close(rig->world);
}

int rig_rest_and_close(rig *rig)
{
    close_chans(rig);
    weft_world_rest(rig->world);
    return weft_world_close(rig->world);
}

int rig_barrier(rig *rig)
{
    weft_coll none = {.sendbuf = NULL};
    int rc = weft_coll_run(&rig->team, WEFT_COLL_BARRIER, &none);
    return rc ? rig_fail(rig, "barrier: %s", weft_fail_text(rc)) : 0;
}

/* of the leak checker, if linked */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

int rig_mute(void)
{
    if (__lsan_disable)
        __lsan_disable();
    int kept = dup(2), nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, 2);
    close(nowhere);
    return kept;
}

void rig_unmute(int kept)
{
    if (__lsan_enable)
        __lsan_enable();
    fflush(stderr);
    dup2(kept, 2);
    close(kept);
}
