/* SPDX-License-Identifier: BSD-3-Clause
 *
 * syscall_site_none: architectures whose code is not known, and compilers without BARE_CFLAGS: there are no sites.
 */
#include "mem/syscall_site.h"

#if !(defined(__x86_64__) || defined(__aarch64__)) || !defined(WEFT_BARE_REGISTERS)
size_t weft_syscall_site_reach(void) { return 0; }

bool weft_syscall_site_find(const unsigned char **text, const unsigned char *end, weft_syscall_site *site)
{
    (void)site;
    *text = end;
    return false;
}

void weft_syscall_island_write(unsigned char *to, uint32_t index, const weft_syscall_site *site, const uintptr_t *entry)
{
    (void)to, (void)index, (void)site, (void)entry;
}

void weft_syscall_jump_write(unsigned char *to, const weft_syscall_site *site, uintptr_t island) { (void)to, (void)site, (void)island; }

void weft_syscall_site_entry(void) {}
#endif
