/* SPDX-License-Identifier: BSD-3-Clause
 *
 * modules: the compilers whose Fortran module files are installed.
 */
#ifndef WEFT_TOOLS_INFO_MODULES_H
#define WEFT_TOOLS_INFO_MODULES_H

#include "tools/info/out.h"

/* Prints a row with their names, in alphabetical order. */
void modules_show(out *to);

#endif
