/* np: 2 3 6 : sessions_left without the World Model: processes that were never in contact */
/* SPDX-License-Identifier: BSD-3-Clause */
#define WITHOUT_WORLD
#include "sessions_left.c"
