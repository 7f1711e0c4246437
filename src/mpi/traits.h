/* SPDX-License-Identifier: BSD-3-Clause
 *
 * traits: what communicators, windows, files and sessions have in common, their first member: base object, error handler, attributes,
 * name. Errors are raised on traits, whatever the object (errors.h).
 */
#ifndef WEFT_MPI_TRAITS_H
#define WEFT_MPI_TRAITS_H

#include <stdint.h>

#include "base/object.h"

struct MPI_ABI_Errhandler;

enum weft_traits_kind { WEFT_TRAITS_COMM, WEFT_TRAITS_WIN, WEFT_TRAITS_FILE, WEFT_TRAITS_SESSION };

typedef struct weft_traits {
    weft_object object;
    uint8_t kind;                          /* enum weft_traits_kind; constant */
    struct MPI_ABI_Errhandler *errhandler; /* held, never NULL, may be a constant of the ABI; use errhandler.h */
    void *attributes;                      /* NULL: none */
    char name[128];                        /* MPI_MAX_OBJECT_NAME */
} weft_traits;

#endif
