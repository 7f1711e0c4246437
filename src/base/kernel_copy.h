/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernel_copy: what a copy by the kernel (process_vm_readv) costs on this machine: near nothing on some, several times the copy in some
 * virtual machines.
 */
#ifndef WEFT_BASE_KERNEL_COPY_H
#define WEFT_BASE_KERNEL_COPY_H

#include <stdint.h>

#define WEFT_KERNEL_COPY_BYTES 65536u

/* What the kernel adds to a copy of WEFT_KERNEL_COPY_BYTES, ns: the least of some copies within this process, measured in the first call,
 * which takes some 50 us. UINT32_MAX: refused, or no memory. Any thread. */
uint32_t weft_kernel_copy_ns(void);
/* A second copy of as many bytes by a CPU, from another CPU's cache, takes that long: up to it one copy by the kernel is preferred. */
#define WEFT_KERNEL_COPY_MAX_NS 4000u

#endif
