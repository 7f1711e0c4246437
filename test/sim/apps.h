/* SPDX-License-Identifier: BSD-3-Clause
 *
 * apps: MPI programs from MPI_Init to MPI_Finalize, as users write them, for weft_sim_run. Each checks every byte that it gets.
 * See apps.c (messages), apps_comms.c (communicators and collectives), apps_forget.c (who frees nothing).
 */
#ifndef WEFT_TEST_SIM_APPS_H
#define WEFT_TEST_SIM_APPS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct app {
    uint64_t seed;
    uint32_t rounds;
    uint32_t arrived; /* at barriers of all ranks: all simulated ranks see one memory */
} app;

typedef int app_program(int rank, void *arg); /* arg: app; 0, or 1 after a text on stderr */
app_program app_stages, app_ring, app_wild, app_storm, app_colls, app_comms, app_forgetful;

typedef struct app_self {
    int rank, size;
    app *what;
    uint32_t barriers;    /* of all ranks that this one has passed */
    uint64_t shared, own; /* random: the same draws on every rank; this rank's */
} app_self;

/* MPI_Init and who we are; false after a text. */
bool app_begin(app_self *self, void *what);
/* Says what is wrong and gives 1. */
int app_fail(const app_self *self, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint64_t app_draw(uint64_t *state, uint64_t below);
uint64_t app_draw_bytes(uint64_t *state);

/* Ends the program with a text when the call fails. */
#define APP_TRY(call) \
    do { \
        int app_code = (call); \
        if (app_code) \
            return app_fail(self, "%s gave %d", #call, app_code); \
    } while (0)

#endif
