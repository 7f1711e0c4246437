/* SPDX-License-Identifier: BSD-3-Clause
 *
 * syscall_patch: finds the sites, maps islands near them, and exchanges the pages of code.
 * Other threads may run the code meanwhile. So a page is never written in place: a private copy is changed, made executable and moved over
 * the old page by one mremap. A thread executes the old page or the new one, never a torn instruction: the kernel holds the address space's
 * lock from unmapping the one to mapping the other, a fault meanwhile waits for that, and the flush of the other CPUs' translations
 * interrupts them. The two differ in whole instructions (syscall_site.h). No page is ever writable and executable.
 * The system calls here are inline, as libc's are being patched.
 */
#include "mem/syscall_patch.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/raw_thread.h"
#include "base/status.h"
#include "mem/syscall_site.h"

#define STEP ((uintptr_t)1 << 20) /* between the addresses where an island page is tried */

weft_syscall_site weft_syscall_sites[WEFT_SYSCALL_SITES_MAX];
void (*weft_syscall_before)(long number, const long *args);

/* -- finding sites -- */

enum { LIBC, LOADER, THREADS, ALLOCATOR, OBJECTS };

typedef struct search {
    const long *numbers;
    int count;
    uintptr_t inside[OBJECTS]; /* an address in each object of interest; 0: none */
    uint64_t found[OBJECTS];   /* bit i: a site of numbers[i]; bit `count`: of syscall() */
    uint32_t site_count;
    bool is_full;
} search;

static int index_of(const search *s, long number)
{
    for (int i = 0; i < s->count; i++)
        if (s->numbers[i] == number)
            return i;
    return number == WEFT_SYSCALL_BY_CALLER ? s->count : -1;
}

static uint64_t search_text(search *s, const unsigned char *text, size_t bytes)
{
    const unsigned char *end = text + bytes;
    weft_syscall_site site;
    uint64_t found = 0;

    text += 4; /* one instruction may be looked at before it */
    while (weft_syscall_site_find(&text, end, &site)) {
        int i = index_of(s, site.number);
        if (i < 0)
            continue;
        s->is_full = s->site_count == WEFT_SYSCALL_SITES_MAX;
        if (s->is_full)
            break;
        weft_syscall_sites[s->site_count++] = site;
        found |= (uint64_t)1 << i;
    }
    return found;
}

static int search_object(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    search *s = arg;
    uint32_t roles = 0;
    uint64_t found = 0;

    (void)bytes;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr;
        for (int role = 0; role < OBJECTS; role++)
            if (part->p_type == PT_LOAD && s->inside[role] >= start && s->inside[role] - start < part->p_memsz)
                roles |= 1u << role;
    }
    for (int i = 0; roles && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (part->p_flags & (PF_X | PF_R)) == (PF_X | PF_R))
            found |= search_text(s, (const unsigned char *)(info->dlpi_addr + part->p_vaddr), part->p_filesz);
    }
    for (int role = 0; role < OBJECTS; role++)
        if (roles >> role & 1)
            s->found[role] |= found;
    return 0;
}

static int find_sites(search *s, int needed, char *why, size_t capacity)
{
    uintptr_t loader = getauxval(AT_BASE); /* 0: a static program, which has libc's code in it */

    s->inside[LIBC] = loader ? (uintptr_t)dlsym(RTLD_DEFAULT, "__libc_start_main") : getauxval(AT_PHDR);
    s->inside[LOADER] = loader ? loader : s->inside[LIBC];
    s->inside[THREADS] = loader ? (uintptr_t)dlsym(RTLD_DEFAULT, "pthread_create") : 0;
    s->inside[ALLOCATOR] = loader ? (uintptr_t)dlsym(RTLD_DEFAULT, "malloc") : 0;
    dl_iterate_phdr(search_object, s);
    if (s->is_full) {
        snprintf(why, capacity, "libc's code has more than %d such system calls", WEFT_SYSCALL_SITES_MAX);
        return WEFT_E_UNSUPPORTED;
    }
    for (int i = 0; i < needed; i++)
        if (!(s->found[LIBC] >> i & 1)) {
            snprintf(why, capacity, "system call %ld was not found in libc's code", s->numbers[i]);
            return WEFT_E_UNSUPPORTED;
        }
    if (!(s->found[LIBC] >> s->count & 1) || !(s->found[LOADER] & 1)) {
        snprintf(why, capacity, "%s was not found", s->found[LOADER] & 1 ? "the code of syscall()" : "munmap in the loader's code");
        return WEFT_E_UNSUPPORTED;
    }
    return WEFT_OK;
}

/* -- islands -- */

static bool is_error(long result) { return result < 0 && result >= -4095; }

static long map_page(uintptr_t hint, size_t bytes)
{
    return weft_raw_syscall6(SYS_mmap, (long)hint, (long)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static uintptr_t distance(uintptr_t a, uintptr_t b) { return a > b ? a - b : b - a; }

/* Maps a writable page within reach of the address. 0: none is free there. */
static uintptr_t map_near(uintptr_t address, size_t page)
{
    size_t reach = weft_syscall_site_reach();

    for (uintptr_t away = STEP; away < reach; away += away < 64 * STEP ? STEP : 16 * STEP)
        for (int side = 0; side < 2; side++) {
            long got = map_page(((side ? address + away : address - away) & ~(STEP - 1)), page);
            if (!is_error(got) && distance((uintptr_t)got, address) < reach)
                return (uintptr_t)got;
            if (!is_error(got))
                weft_raw_syscall(SYS_munmap, got, (long)page, 0, 0);
        }
    return 0;
}

/* Makes a page of islands for the sites from `first` on that are near the first: the entry's address, then one island each. *islands:
 * its address. Returns the number of sites served; 0: failed. */
static uint32_t make_islands(uint32_t first, uint32_t count, size_t page, uintptr_t *islands)
{
    uintptr_t at = map_near(weft_syscall_sites[first].at, page), *entry = (uintptr_t *)at;
    uint32_t made = 0;

    if (!at)
        return 0;
    *entry = (uintptr_t)weft_syscall_site_entry;
    for (; first + made < count && distance(weft_syscall_sites[first + made].at, at) < weft_syscall_site_reach() &&
           (made + 2) * WEFT_SYSCALL_ISLAND_BYTES <= page;
         made++)
        weft_syscall_island_write((unsigned char *)at + (made + 1) * WEFT_SYSCALL_ISLAND_BYTES, first + made,
                                  &weft_syscall_sites[first + made], entry);
    __builtin___clear_cache((char *)at, (char *)at + page);
    *islands = at;
    return weft_raw_syscall(SYS_mprotect, (long)at, (long)page, PROT_READ | PROT_EXEC, 0) ? 0 : made;
}

/* -- the exchange of a site's page, or two -- */

static bool exchange(const weft_syscall_site *site, uintptr_t island, size_t page)
{
    uintptr_t start = site->at & ~(uintptr_t)(page - 1), end = (site->at + site->bytes + page - 1) & ~(uintptr_t)(page - 1);
    size_t bytes = end - start;
    long copy = map_page(0, bytes);

    if (is_error(copy))
        return false;
    memcpy((void *)copy, (void *)start, bytes);
    weft_syscall_jump_write((unsigned char *)copy + (site->at - start), site, island);
    __builtin___clear_cache((char *)copy, (char *)copy + bytes);
    if (!weft_raw_syscall(SYS_mprotect, copy, (long)bytes, PROT_READ | PROT_EXEC, 0) &&
        weft_raw_syscall6(SYS_mremap, copy, (long)bytes, (long)bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (long)start, 0) == (long)start) {
        __builtin___clear_cache((char *)start, (char *)end);
        return true;
    }
    weft_raw_syscall(SYS_munmap, copy, (long)bytes, 0, 0);
    return false;
}

int weft_syscall_patch(const long *numbers, int count, int needed, void (*before)(long number, const long *args), char *why,
                       size_t capacity)
{
    search s = {.numbers = numbers, .count = count};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t islands;

    if (!weft_syscall_site_reach()) {
        snprintf(why, capacity, "the code of this architecture is not known to it");
        return WEFT_E_UNSUPPORTED;
    }
    if (find_sites(&s, needed, why, capacity))
        return WEFT_E_UNSUPPORTED;
    weft_syscall_before = before;
    for (uint32_t first = 0, made; first < s.site_count; first += made) {
        made = make_islands(first, s.site_count, page, &islands);
        bool is_done = made > 0;
        for (uint32_t i = 0; i < made && is_done; i++)
            is_done = exchange(&weft_syscall_sites[first + i], islands + (i + 1) * WEFT_SYSCALL_ISLAND_BYTES, page);
        if (!is_done) {
            snprintf(why, capacity, "the system forbids to change libc's code (SELinux, PR_SET_MDWE, sealed memory, a filter of system "
                                    "calls)");
            return WEFT_E_UNSUPPORTED;
        }
    }
    return WEFT_OK;
}
