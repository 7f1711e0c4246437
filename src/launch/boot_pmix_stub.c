/* SPDX-License-Identifier: BSD-3-Clause
 *
 * boot_pmix_stub: replaces boot_pmix if configured with --disable-pmix.
 */
#include "base/status.h"
#include "launch/boot_internal.h"

int weft_boot_by_pmix(weft_boot **boot)
{
    *boot = NULL;
    return weft_fail(WEFT_E_UNSUPPORTED, "this process was started by a PMIx launcher (PMIX_NAMESPACE is set), but this library "
                                         "was configured with --disable-pmix: use Weft's own mpirun, or a library with PMIx");
}
