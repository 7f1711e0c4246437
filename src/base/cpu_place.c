/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cpu_place: see cpu_place.h.
 */
#include "base/cpu_place.h"

#include <sched.h>
#include <stdbool.h>
#include <string.h>

#define CPUS_MAX 8192 /* as many as Linux knows; a shorter mask is refused on some machines */

typedef struct mask {
    _Alignas(cpu_set_t) unsigned char bytes[CPUS_MAX / 8];
} mask;

static cpu_set_t *set_of(mask *self) { return (cpu_set_t *)self->bytes; }

static bool read_mask(mask *self)
{
    memset(self, 0, sizeof *self);
    return !sched_getaffinity(0, sizeof *self, set_of(self));
}

int weft_cpu_place_of(uint32_t index)
{
    mask all;
    uint32_t count, before;

    if (!read_mask(&all) || (count = (uint32_t)CPU_COUNT_S(sizeof all, set_of(&all))) < 2)
        return -1;
    before = index % count;
    for (int cpu = 0;; cpu++)
        if (CPU_ISSET_S((size_t)cpu, sizeof all, set_of(&all)) && !before--)
            return cpu;
}

void weft_cpu_place_at(int cpu)
{
    mask all, one;

    if (sched_getcpu() == cpu || !read_mask(&all) || !CPU_ISSET_S((size_t)cpu, sizeof all, set_of(&all)))
        return;
    memset(&one, 0, sizeof one);
    CPU_SET_S((size_t)cpu, sizeof one, set_of(&one));
    if (sched_setaffinity(0, sizeof one, set_of(&one)) || !sched_setaffinity(0, sizeof all, set_of(&all)))
        return;
    memset(&all, 255, sizeof all); /* its CPUs have changed meanwhile: the kernel takes those that there are */
    sched_setaffinity(0, sizeof all, set_of(&all));
}
