/* SPDX-License-Identifier: BSD-3-Clause
 *
 * missing: functions of the standard ABI that are not implemented yet; they raise MPI_ERR_UNSUPPORTED_OPERATION. And functions beyond
 * it. The lists are generated from functions.tbl and extensions.tbl (missing.c of the build directory); weft-info prints them.
 */
#ifndef WEFT_API_MISSING_H
#define WEFT_API_MISSING_H

extern const char *const weft_api_missing[];  /* names, in the order of the table; NULL after the last */
extern const unsigned weft_api_missing_count; /* large-count versions (MPI_X_c) are counted separately */
extern const unsigned weft_api_total;         /* all functions of the ABI: 664 */
extern const char *const weft_api_extensions[]; /* names of include/mpi-ext.h; NULL after the last */

#endif
