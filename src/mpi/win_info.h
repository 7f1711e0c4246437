/* SPDX-License-Identifier: BSD-3-Clause
 *
 * win_info: hints on windows (MPI 5.0 12.2). Called where windows are made and by the generated entries.
 */
#ifndef WEFT_MPI_WIN_INFO_H
#define WEFT_MPI_WIN_INFO_H

#include "mpi/info.h"
#include "mpi/win.h"

/* Sets the supported hints that info has; ignores other keys, and values of another form. info NULL: none. is_new: also those that cannot
 * change after the window was made. */
void weft_win_set_hints(weft_win *win, const weft_info *info, bool is_new);
/* Clears the hints same_size and same_disp_unit of a new window whose members differ in size or unit. Member 0 logs a warning. */
void weft_win_check_same(weft_win *win);

#endif
