/* SPDX-License-Identifier: BSD-3-Clause
 *
 * apps: MPI programs from MPI_Init to MPI_Finalize for weft_sim_run. Each verifies every byte received. apps.c: messages; apps_comms.c:
 * communicators and collectives; apps_forget.c: a program that frees nothing; apps_modes.c: buffered, matched, combined and partitioned
 * messages; apps_inter.c: intercommunicators; apps_promises.c: persistent pairs; apps_leaders.c: pairs that make intercommunicators, some
 * with arguments that differ; apps_rest.c: sessions after MPI_Finalize; apps_gone.c: a window whose target has left; apps_windows.c:
 * synchronization of windows; apps_moves.c: their puts and gets; apps_atomics.c: their accumulates; apps_regions.c: regions of dynamic
 * windows; apps_tables.c: regions found in tables of targets that compute; apps_notify.c: notified access, also in regions;
 * apps_notify_costs.c: what it sends.
 */
#ifndef WEFT_TEST_SIM_APPS_H
#define WEFT_TEST_SIM_APPS_H

#include <stdbool.h>
#include <stdint.h>

#define APP_WINDOWS 8 /* ranks of app_windows and app_regions, at most */

/* Of app_windows, by rank. */
typedef struct app_window {
    uint32_t readers, writers; /* ranks that hold its lock */
    uint32_t posts, completes, fences; /* calls so far */
} app_window;

typedef struct app {
    uint64_t seed;
    uint32_t rounds;
    uint32_t arrived; /* ranks that have entered barriers; simulated ranks share one memory */
    uint32_t cancels; /* cancels that have ended, of app_promises */
    uint32_t unknown; /* atomics of app_unknown that failed */
    uint64_t messages; /* operations of app_steady_tables that went by message */
    app_window windows[APP_WINDOWS];
} app;

typedef int app_program(int rank, void *arg); /* arg: app; returns 0, or 1 after a text on stderr */
app_program app_stages, app_ring, app_wild, app_storm, app_colls, app_comms, app_forgetful, app_modes, app_inter, app_promises,
    app_leaders, app_moves, app_computes, app_rest, app_left, app_await, app_part, app_gone, app_windows, app_regions, app_notify,
    app_notify_regions, app_notify_costs, app_atomics, app_counts, app_unknown, app_tables,
    app_steady_tables, app_finds;

typedef struct app_self {
    int rank, size;
    app *what;
    uint32_t barriers;    /* barriers that this rank has passed */
    uint64_t shared, own; /* random states: shared has the same draws on every rank, own only this rank's */
} app_self;

/* Calls MPI_Init and fills in rank and size. False after a text. */
bool app_begin(app_self *self, void *what);
/* Prints the failure; returns 1. */
int app_fail(const app_self *self, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint64_t app_draw(uint64_t *state, uint64_t below);
uint64_t app_draw_bytes(uint64_t *state);

/* Returns from the program with a text if the call fails. */
#define APP_TRY(call) \
    do { \
        int app_code = (call); \
        if (app_code) \
            return app_fail(self, "%s gave %d", #call, app_code); \
    } while (0)

#endif
