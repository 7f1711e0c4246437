/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fd_id: identity of an open file, to tell whether a descriptor still leads to it. A program may close descriptors that it did not open
 * (closefrom), and the number then leads to another file. Files that share an inode count as one.
 */
#ifndef WEFT_BASE_FD_ID_H
#define WEFT_BASE_FD_ID_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

typedef struct weft_fd_id { uint64_t device, inode; } weft_fd_id; /* 0, 0: none */

/* Identity of what fd leads to; none if it is closed. One system call; sets errno. */
static inline weft_fd_id weft_fd_id_of(int fd)
{
    struct stat about;
    return fd < 0 || fstat(fd, &about) ? (weft_fd_id){0, 0} : (weft_fd_id){about.st_dev, about.st_ino};
}

static inline bool weft_fd_id_equal(weft_fd_id a, weft_fd_id b)
{
    return a.device == b.device && a.inode == b.inode && (a.device | a.inode);
}

#endif
