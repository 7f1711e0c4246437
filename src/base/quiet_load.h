/* SPDX-License-Identifier: BSD-3-Clause
 *
 * quiet_load: loads shared objects without effect on the program's signals.
 */
#ifndef WEFT_BASE_QUIET_LOAD_H
#define WEFT_BASE_QUIET_LOAD_H

/* dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE). Threads started by its libraries inherit a mask that blocks all signals. Handlers
 * that a library loaded by this call has installed are replaced by the earlier ones (libpsm, below libfabric, installs some for SIGINT and
 * crashes); what another thread of the program sets meanwhile stays. NULL: dlerror has the reason. Any thread. */
void *weft_quiet_load(const char *path);

#endif
