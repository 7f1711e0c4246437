/* SPDX-License-Identifier: BSD-3-Clause
 *
 * program: see program.h. Finds the executable like a shell, in the parent, so that an error is reported once and not per rank.
 * The ELF headers tell whether it is linked with Weft: such a program boots from the inherited descriptor and needs no PMIx server.
 */
#include "tools/mpirun/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/mpirun/report.h"

static char *path_join(const char *dir, size_t length, const char *name)
{
    char *path = NULL;

    if (length == 0)
        dir = ".", length = 1;
    if (asprintf(&path, "%.*s/%s", (int)length, dir, name) < 0)
        return NULL;
    return path;
}

/* 0 if `path`, relative to the part's working directory, can be executed; else sets errno. */
static int path_try(int wdir, const char *path)
{
    struct stat stat;

    if (fstatat(wdir, path, &stat, 0))
        return -1;
    if (S_ISDIR(stat.st_mode)) {
        errno = EISDIR;
        return -1;
    }
    if (!(stat.st_mode & 0111)) { /* faccessat succeeds for root */
        errno = EACCES;
        return -1;
    }
    return faccessat(wdir, path, X_OK, AT_EACCESS);
}

static int path_search(int wdir, const char *name, char **found)
{
    const char *dirs = getenv("PATH");
    int worst = ENOENT;

    if (!dirs)
        dirs = "/usr/local/bin:/usr/bin:/bin";
    for (;;) {
        size_t length = strcspn(dirs, ":");
        char *path = path_join(dirs, length, name);
        if (!path)
            return ENOMEM;
        if (path_try(wdir, path) == 0) {
            *found = path;
            return 0;
        }
        if (errno == EACCES)
            worst = EACCES;
        free(path);
        if (!dirs[length])
            return worst;
        dirs += length + 1;
    }
}

/* Converts a virtual address to a file offset by the LOAD segments. */
static uint64_t file_offset(const Elf64_Phdr *parts, int count, uint64_t address)
{
    for (int i = 0; i < count; i++)
        if (parts[i].p_type == PT_LOAD && address >= parts[i].p_vaddr && address - parts[i].p_vaddr < parts[i].p_filesz)
            return address - parts[i].p_vaddr + parts[i].p_offset;
    return UINT64_MAX;
}

/* Sets the flags of `part` from the ELF image's NEEDED libraries. True if it needs libmpi_abi.so* and not libpmix.so*. The file is
 * untrusted: every offset is checked. */
static bool image_links_weft(const unsigned char *image, uint64_t bytes, app *part)
{
    const Elf64_Ehdr *head = (const void *)image;
    uint64_t strings = UINT64_MAX;
    bool has_weft = false, has_pmix = false, has_other = false;

    if (bytes < sizeof(*head) || memcmp(image, ELFMAG, SELFMAG) || image[EI_CLASS] != ELFCLASS64 ||
        head->e_phentsize != sizeof(Elf64_Phdr) || head->e_phoff > bytes || head->e_phoff % 8 ||
        (uint64_t)head->e_phnum * sizeof(Elf64_Phdr) > bytes - head->e_phoff)
        return false;
    const Elf64_Phdr *parts = (const void *)(image + head->e_phoff);
    for (int i = 0; i < head->e_phnum; i++) {
        if (parts[i].p_type != PT_DYNAMIC || parts[i].p_offset % 8 || parts[i].p_offset > bytes ||
            parts[i].p_filesz > bytes - parts[i].p_offset)
            continue;
        const Elf64_Dyn *rows = (const void *)(image + parts[i].p_offset);
        uint64_t count = parts[i].p_filesz / sizeof(*rows);
        for (uint64_t r = 0; r < count && rows[r].d_tag != DT_NULL; r++)
            if (rows[r].d_tag == DT_STRTAB)
                strings = file_offset(parts, head->e_phnum, rows[r].d_un.d_ptr);
        for (uint64_t r = 0; strings < bytes && r < count && rows[r].d_tag != DT_NULL; r++) {
            if (rows[r].d_tag != DT_NEEDED || rows[r].d_un.d_val >= bytes - strings)
                continue;
            const char *name = (const char *)image + strings + rows[r].d_un.d_val;
            size_t capacity = bytes - strings - rows[r].d_un.d_val;
            has_weft |= capacity > 13 && !strncmp(name, "libmpi_abi.so", 13);
            has_pmix |= capacity > 10 && !strncmp(name, "libpmix.so", 10);
            has_other |= capacity > 11 && (!strncmp(name, "libmpi.so", 9) || !strncmp(name, "libmpich.so", 11));
            part->is_mpich |= capacity > 12 && (!strcmp(name, "libmpi.so.12") || !strncmp(name, "libmpich.so", 11));
            part->is_open |= capacity > 12 && !strcmp(name, "libmpi.so.40");
        }
    }
    part->is_foreign = has_pmix || (has_other && !has_weft);
    part->is_mpich &= part->is_foreign && !has_pmix;
    part->is_open &= part->is_foreign;
    return has_weft && !has_pmix;
}

static bool file_links_weft(int wdir, const char *path, app *part)
{
    struct stat stat;
    bool is_weft = false;
    int fd = openat(wdir, path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_size > 0) {
        void *image = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (image != MAP_FAILED) {
            is_weft = image_links_weft(image, (uint64_t)stat.st_size, part);
            munmap(image, (size_t)stat.st_size);
        }
    }
    close(fd);
    return is_weft;
}

static int program_failed(const char *name, int error)
{
    switch (error) {
    case ENOENT:
        if (strchr(name, '/'))
            return report(127, "no such program: %s", name);
        return report(127, "no such program: %s is not in PATH%s", name,
                        access(name, X_OK) ? "" : " (it is in this directory: write ./ before it)");
    case ENOTDIR:
        return report(127, "no such program: %s", name);
    case EISDIR:
        return report(126, "cannot execute %s: it is a directory", name);
    case EACCES:
        return report(126, "cannot execute %s: no permission (chmod +x?)", name);
    default:
        return report(126, "cannot execute %s: %s", name, strerror(error));
    }
}

int program_find(app *part)
{
    const char *name = part->argv[0];
    int wdir = AT_FDCWD, error = 0;

    if (part->wdir) {
        wdir = open(part->wdir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (wdir < 0)
            return report(2, "working directory %s: %s", part->wdir, strerror(errno));
    }
    if (strchr(name, '/')) {
        if (path_try(wdir, name))
            error = errno;
        else if (!(part->path = strdup(name)))
            error = ENOMEM;
    } else {
        error = path_search(wdir, name, &part->path);
    }
    if (!error)
        part->is_weft = file_links_weft(wdir, part->path, part);
    if (wdir != AT_FDCWD)
        close(wdir);
    return error ? program_failed(name, error) : 0;
}

int program_check(const app *part, enum pmix_mode mode)
{
    if (!part->is_foreign || part->is_mpich)
        return 0;
    if (mode == PMIX_MODE_NEVER)
        return report(2,
                      "--pmix never: %s is linked with another MPI or with PMIx, and without a PMIx server each of its ranks would be a "
                      "job of one", part->path);
    return 0;
}
