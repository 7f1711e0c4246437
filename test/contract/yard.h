/* SPDX-License-Identifier: BSD-3-Clause
 *
 * yard: a rig whose sides have each registered memory. Used by rma.c and amo.c.
 */
#ifndef WEFT_TEST_CONTRACT_YARD_H
#define WEFT_TEST_CONTRACT_YARD_H

#include "test/contract/rig.h"

#define YARD_RIGHTS (WEFT_ACCESS_READ | WEFT_ACCESS_WRITE | WEFT_ACCESS_ATOMIC)
#define YARD_BYTES 12000u /* fits the narrowest pin limit twice */

typedef struct yard {
    weft_rig *rig;
    uint8_t *local, *remote; /* YARD_BYTES each, registered by a, as buffer, and by b, as target */
    weft_mr local_mr, remote_mr;
    weft_rkey rkey; /* remote_mr's; tests change it */
} yard;

/* Opens a rig whose sides have an ep to each other; the memory is zeroed. False (and a failed check): there is no rig. */
bool yard_open(yard *yard, const rig_row *row);
void yard_close(yard *yard);

#endif
