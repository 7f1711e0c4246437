/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mutant: transports with one fault each, made by a wrapper around a healthy one. The suite must fail on every one of them.
 */
#ifndef WEFT_TEST_CONTRACT_MUTANT_H
#define WEFT_TEST_CONTRACT_MUTANT_H

#include <stdbool.h>

#include "transport/iface.h"

typedef struct mutant {
    const char *name;
    void (*plant)(weft_iface_ops *ops, weft_iface_callbacks *callbacks); /* changes the tables of ifaces opened from now on */
    bool self_only, not_self;
    const char *row; /* only there: a fault in what not all transports promise; NULL: on the first two rows */
} mutant;

extern const mutant mutants[]; /* ends with name NULL */

/* Fault of all ifaces that rigs open from now on; NULL: none. */
void mutant_choose(const mutant *what);
/* Before each test: the faults count anew. */
void mutant_reset(void);

#endif
