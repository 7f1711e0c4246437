/* SPDX-License-Identifier: BSD-3-Clause
 *
 * proc_maps: see proc_maps.h. Allocates nothing, as that could change the mappings being read.
 */
#include "mem/proc_maps.h"

#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* PROCMAP_QUERY, in linux/fs.h since 6.11; an older kernel refuses the ioctl. */
struct query {
    uint64_t size, flags, addr;
    uint64_t start, end, vma_flags, page_bytes, offset, inode;
    uint32_t dev_major, dev_minor, name_bytes, id_bytes;
    uint64_t name_addr, id_addr;
};
#define QUERY _IOWR('f', 17, struct query)
#define QUERY_IS_SHARED 8u

int weft_proc_maps_open(void)
{
    return open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
}

static enum weft_mapping_kind kind_of(bool is_shared, uint64_t inode, const char *name)
{
    if (!strncmp(name, "/SYSV", 5))
        return WEFT_MAPPING_SYSV;
    if (is_shared)
        return WEFT_MAPPING_OTHER;
    if (!inode)
        return WEFT_MAPPING_ANONYMOUS; /* also [vdso] and the like, which userfaultfd refuses */
    return strncmp(name, "/anon_hugepage", 14) ? WEFT_MAPPING_OTHER : WEFT_MAPPING_HUGE;
}

static uint64_t number(const char **at, int base)
{
    uint64_t value = 0;

    for (;; (*at)++) {
        unsigned c = (unsigned char)**at;
        unsigned digit = c - '0' < 10 ? c - '0' : c - 'a' < 6 ? c - 'a' + 10 : 99;
        if (digit >= (unsigned)base)
            return value;
        value = value * (unsigned)base + digit;
    }
}

/* "start-end perms offset major:minor inode   name" */
static void parse(const char *at, weft_mapping *mapping)
{
    mapping->start = number(&at, 16);
    at++;
    mapping->end = number(&at, 16);
    bool is_shared = strlen(at) > 4 && at[4] == 's';
    for (int field = 0; field < 4 && *at; field++) {
        at += strspn(at, " ");
        if (field < 3)
            at += strcspn(at, " ");
    }
    uint64_t inode = number(&at, 10);
    at += strspn(at, " ");
    mapping->kind = kind_of(is_shared, inode, at);
}

bool weft_proc_maps_find_by_text(int maps, uint64_t addr, weft_mapping *mapping)
{
    char text[8192 + 1];
    size_t held = 0;
    off_t offset = 0;

    for (;;) {
        ssize_t got = pread(maps, text + held, sizeof(text) - 1 - held, offset);
        if (got <= 0)
            return false;
        offset += got;
        held += (size_t)got;
        text[held] = '\0';
        char *line = text;
        for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            *end = '\0';
            parse(line, mapping);
            if (addr < mapping->end)
                return addr >= mapping->start;
        }
        held -= (size_t)(line - text);
        memmove(text, line, held);
    }
}

bool weft_proc_maps_find(int maps, uint64_t addr, weft_mapping *mapping)
{
    char name[64] = "";
    struct query query = {.size = sizeof(query), .addr = addr, .name_bytes = sizeof(name), .name_addr = (uintptr_t)name};

    int rc = ioctl(maps, QUERY, &query);
    if (rc < 0) {
        query = (struct query){.size = sizeof(query), .addr = addr}; /* a longer name, so a file's: query without the name */
        name[0] = '\0';
        rc = ioctl(maps, QUERY, &query);
    }
    if (rc < 0) /* an older kernel, or no mapping */
        return weft_proc_maps_find_by_text(maps, addr, mapping);
    *mapping = (weft_mapping){query.start, query.end, kind_of(query.vma_flags & QUERY_IS_SHARED, query.inode, name)};
    return true;
}
