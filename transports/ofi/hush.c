/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hush: libfabric's verbs provider reads /proc/kallsyms twice from end to end (200,000 lines, 0.08 s of CPU) in its initialiser, whatever
 * provider was asked for, to learn whether this kernel lends the memory of GPUs to adapters. No variable of libfabric's prevents it, and a
 * job over hosts pays it once for each rank. Weft moves no memory of GPUs. So libfabric's own import of fopen leads here, where that one file
 * is not to be had, as in many a container; libfabric then goes on without. All else, and everybody else's fopen, is as before.
 * Called by front.c. The front is never unloaded, or the import would lead nowhere.
 */
#include "transports/ofi/hush.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KALLSYMS "/proc/kallsyms"

static FILE *fopen_but_one(const char *name, const char *mode)
{
    if (strcmp(name, KALLSYMS))
        return fopen(name, mode);
    errno = ENOENT;
    return NULL;
}

/* What a loaded library's own headers say; addresses are absolute. */
typedef struct library {
    uintptr_t base, relro, relro_end; /* relro: what the loader made read-only once all was bound */
    const ElfW(Dyn) *dynamic;
} library;

static uintptr_t entry(const library *lib, ElfW(Sxword) tag)
{
    for (const ElfW(Dyn) *d = lib->dynamic; d->d_tag != DT_NULL; d++)
        if (d->d_tag == tag)
            return d->d_un.d_ptr;
    return 0;
}

/* Some loaders put absolute addresses there, some leave what the file says. */
static uintptr_t address(const library *lib, ElfW(Sxword) tag)
{
    uintptr_t at = entry(lib, tag);
    return at && at < lib->base ? at + lib->base : at;
}

static bool put(const library *lib, uintptr_t *slot, uintptr_t value)
{
    uintptr_t bytes = (uintptr_t)sysconf(_SC_PAGESIZE), page = (uintptr_t)slot & ~(bytes - 1);
    bool is_closed = page >= (lib->relro & ~(bytes - 1)) && page < (lib->relro_end & ~(bytes - 1));
    if (is_closed && mprotect((void *)page, bytes, PROT_READ | PROT_WRITE))
        return false;
    __atomic_store_n(slot, value, __ATOMIC_RELEASE);
    return !is_closed || mprotect((void *)page, bytes, PROT_READ) == 0;
}

static void lead(const library *lib, uintptr_t relocations, uintptr_t bytes, const char *name, uintptr_t where)
{
    const ElfW(Sym) *symbols = (const ElfW(Sym) *)address(lib, DT_SYMTAB);
    const char *names = (const char *)address(lib, DT_STRTAB);
    const ElfW(Rela) *r = (const ElfW(Rela) *)relocations;
    for (; symbols && names && r && bytes >= sizeof *r; r++, bytes -= sizeof *r) {
        size_t symbol = sizeof(void *) == 8 ? r->r_info >> 32 : r->r_info >> 8;
        bool is_import = symbol && symbols[symbol].st_shndx == SHN_UNDEF && !r->r_addend;
        if (is_import && strcmp(names + symbols[symbol].st_name, name) == 0 && !put(lib, (uintptr_t *)(lib->base + r->r_offset), where))
            return;
    }
}

static int look(struct dl_phdr_info *info, size_t size, void *unused)
{
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    library lib = {.base = info->dlpi_addr};
    (void)size, (void)unused;
    if (!slash || strncmp(slash + 1, "libfabric.so", 12))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_DYNAMIC)
            lib.dynamic = (const ElfW(Dyn) *)(lib.base + part->p_vaddr);
        if (part->p_type == PT_GNU_RELRO)
            lib.relro = lib.base + part->p_vaddr, lib.relro_end = lib.relro + part->p_memsz;
    }
    if (lib.dynamic && entry(&lib, DT_PLTREL) == DT_RELA)
        lead(&lib, address(&lib, DT_JMPREL), entry(&lib, DT_PLTRELSZ), "fopen", (uintptr_t)fopen_but_one);
    if (lib.dynamic) /* where it was built without a table of calls */
        lead(&lib, address(&lib, DT_RELA), entry(&lib, DT_RELASZ), "fopen", (uintptr_t)fopen_but_one);
    return 1;
}

void ofi_hush(void) { dl_iterate_phdr(look, NULL); }
