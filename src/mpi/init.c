/* SPDX-License-Identifier: BSD-3-Clause
 *
 * init: MPI_Init to MPI_Finalize, and MPI_Abort (MPI 5.0, 11.2 to 11.4). Called by the generated entries, without locks.
 * The instance
 * (weft_world_now) is shared by the World Model and sessions, and counts them. Invariant: it is open while the stage is OPEN or CLOSING, or
 * a session exists; the stage never goes back.
 */
#include "mpi/init.h"

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/event.h"
#include "base/knob.h"
#include "base/log.h"
#include "base/status.h"
#include "core/progress_thread.h"
#include "mpi/bridge_wait.h"
#include "mpi/bsend.h"
#include "mpi/calls.h"
#include "mpi/errors.h"
#include "mpi/message.h"
#include "mpi/persistent_reg.h"
#include "mpi/request.h"
#include "mpi/stage.h"
#include "mpi/tool.h"
#include "mpi/win.h"
#include "p2p/dispatch.h"

/* The stage belongs to the process or simulated rank, like weft_world_now: MPI can be initialized once. */
static void set_stage(enum weft_stage next) { atomic_store_explicit(&weft_boot_now->stage, (int)next, memory_order_release); }

int weft_mpi_world_open(weft_world *world)
{
    weft_mpi_world *mpi = calloc(1, sizeof *mpi);
    int rc;
    if (!mpi)
        return weft_fail(WEFT_E_NOMEM, "no memory for the predefined communicators");
    weft_list_init(&mpi->live);
    weft_list_init(&mpi->windows);
    weft_list_init(&mpi->messages);
    weft_list_init(&mpi->detached);
    weft_list_init(&mpi->persistent_regs);
    mpi->main_thread = (unsigned long)pthread_self();
    world->mpi = mpi;
    rc = weft_comm_open_predefined(world, mpi);
    if (!rc)
        rc = weft_bridge_wait_open(mpi);
    if (rc)
        weft_mpi_world_close(world);
    return rc;
}

/* Requires the worker's lock. */
static void close_objects(weft_world *world)
{
    weft_mpi_world *mpi = world->mpi;
    weft_message_close_all(mpi);
    weft_request_reap(mpi, true);
    weft_bsend_close_all(mpi);
    weft_request_release_all(world->workers[0]);
    weft_win_close_all(mpi);
    weft_comm_close_all(mpi);
    weft_persistent_reg_release_all(mpi);
}

void weft_mpi_world_rest(weft_world *world)
{
    weft_worker_lock(world->workers[0]);
    close_objects(world);
    weft_worker_unlock(world->workers[0]);
}

int weft_mpi_world_reopen(weft_world *world)
{
    int rc;
    weft_worker_lock(world->workers[0]);
    rc = weft_comm_open_predefined(world, world->mpi);
    weft_worker_unlock(world->workers[0]);
    return rc;
}

void weft_mpi_world_close(weft_world *world)
{
    weft_mpi_world *mpi = world->mpi;
    weft_worker_lock(world->workers[0]);
    close_objects(world);
    weft_comm_close_service(mpi);
    weft_bridge_wait_close(mpi);
    weft_worker_unlock(world->workers[0]);
    world->mpi = NULL;
    free(mpi);
}

static void open_thread(weft_world *world)
{
    if (!world->boot->fabric_ops) /* worlds of the simulator are not processes */
        weft_progress_thread_open(world);
}

static int open_world(int level)
{
    weft_boot *boot = NULL;
    weft_world *world;
    int rc;
    weft_knobs_load(false); /* launch reads some; without warnings, since the rank that prints them is not known yet */
    rc = weft_boot_start(&boot);
    if (rc)
        return rc;
    weft_log_identify((int)boot->rank, boot->host);
    if (boot->rank == 0)
        weft_knobs_load(true);
    rc = weft_p2p_open(boot, level, &world);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < world->worker_count; i++)
        world->workers[i]->is_threaded = level == MPI_THREAD_MULTIPLE;
    if (level != MPI_THREAD_SINGLE && level != MPI_THREAD_FUNNELED) /* any thread may wait: they should not crowd on one CPU */
        world->returns_left = 0;
    open_thread(world);
    weft_tool_on_open(world);
    if (!boot->fabric_ops)
        weft_call_open(world->page == world->own_page ? NULL : &boot->segment, boot->local_rank, level == MPI_THREAD_MULTIPLE);
    rc = weft_mpi_world_open(world);
    if (rc)
        weft_world_close(world);
    return rc;
}

/* Serializes openings and closings by threads; guards weft_boot_now but its stage. The simulator's ranks are fibres of one thread. */
static pthread_mutex_t instance_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_instance(void)
{
    if (!weft_boot_hook)
        pthread_mutex_lock(&instance_lock);
}

static void unlock_instance(void)
{
    if (!weft_boot_hook)
        pthread_mutex_unlock(&instance_lock);
}

static int close_instance(void)
{
    weft_world *world = weft_world_now;
    weft_progress_thread_close(world->workers[0]);
    weft_mpi_world_close(world);
    weft_tool_add_closed(world);
    weft_boot_now->was_closed = true;
    return weft_world_close(world);
}

/* The instance was kept for later sessions. A forked child does not close its parent's. */
static void close_at_exit(void)
{
    if (getpid() != weft_boot_now->exit_owner)
        return;
    if (weft_boot_now->resting)
        weft_world_now = weft_boot_now->resting;
    weft_boot_now->resting = NULL;
    if (weft_world_now && weft_mpi_now()->users == 0)
        close_instance();
}

static void register_exit(void)
{
    if (weft_boot_now->exit_owner == getpid())
        return;
    weft_boot_now->exit_owner = getpid();
    weft_boot_now->at_exit(close_at_exit);
}

/* The last user has left after MPI_Finalize. */
static int leave_instance(void)
{
    weft_world *world = weft_world_now;
    if (!weft_world_may_rest(world))
        return close_instance();
    weft_progress_thread_close(world->workers[0]);
    weft_mpi_world_rest(world);
    weft_tool_add_closed(world);
    weft_world_rest(world);
    weft_boot_now->resting = world;
    register_exit();
    return 0;
}

static int return_to_instance(void)
{
    weft_world *world = weft_boot_now->resting;
    int rc;
    if (getpid() != weft_boot_now->exit_owner)
        return weft_fail(WEFT_E_OTHER, "this process was forked by a rank that has called MPI_Finalize: it is no rank of the job");
    weft_world_return(world);
    weft_tool_on_open(world);
    rc = weft_mpi_world_reopen(world);
    if (rc) {
        weft_mpi_world_rest(world);
        weft_world_rest(world);
    } else {
        open_thread(world);
        weft_boot_now->resting = NULL;
    }
    return rc;
}

int weft_instance_open(int level, int *provided)
{
    int rc = 0;
    lock_instance();
    if (!weft_world_now)
        rc = weft_boot_now->resting      ? return_to_instance()
             : weft_boot_now->was_closed ? weft_fail(WEFT_E_OTHER, "this process has left the job at MPI_Finalize, and cannot return "
                                                     "where the transport verbs connects by rdma_cm (iWARP, WEFT_VERBS_CONNECT): "
                                                     "open a session before MPI_Finalize, and keep it")
                                         : open_world(level);
    if (!rc) {
        weft_mpi_now()->users++;
        *provided = level < weft_world_now->thread_level ? level : weft_world_now->thread_level;
    }
    unlock_instance();
    return rc;
}

int weft_instance_close(bool is_world)
{
    int rc = 0;
    lock_instance();
    if (--weft_mpi_now()->users == 0) {
        if (is_world || weft_init_stage() == WEFT_STAGE_AFTER)
            rc = leave_instance();
        else
            register_exit();
    }
    unlock_instance();
    return rc;
}

/* Provides the requested level, or that of the sessions before. Below MULTIPLE a lock is taken only while the progress thread runs. */
int weft_mpi_init_thread(int *argc, char ***argv, int required, int *provided)
{
    int expected = WEFT_STAGE_BEFORE, rc;
    if (required != MPI_THREAD_SINGLE && required != MPI_THREAD_FUNNELED && required != MPI_THREAD_SERIALIZED &&
        required != MPI_THREAD_MULTIPLE)
        return weft_fail(WEFT_E_ARG, "required is %d, which is none of MPI_THREAD_SINGLE, _FUNNELED, _SERIALIZED, _MULTIPLE",
                         required);
    if (!atomic_compare_exchange_strong(&weft_boot_now->stage, &expected, WEFT_STAGE_OPENING))
        return weft_fail(WEFT_E_OTHER, expected == WEFT_STAGE_AFTER ? "MPI was finalized: it cannot be initialized again"
                                                                    : "MPI is initialized already");
    rc = weft_instance_open(required, provided);
    if (!rc) {
        weft_mpi_now()->main_thread = (unsigned long)pthread_self();
        weft_mpi_now()->world_level = *provided;
        weft_world_model = weft_world_now;
        weft_info_env_open(argc ? *argc : 0, argv ? *argv : NULL);
    }
    set_stage(rc ? WEFT_STAGE_BEFORE : WEFT_STAGE_OPEN);
    return rc;
}

int weft_mpi_init(int *argc, char ***argv)
{
    int provided;
    return weft_mpi_init_thread(argc, argv, MPI_THREAD_SINGLE, &provided);
}

int weft_mpi_initialized(int *flag)
{
    *flag = weft_init_stage() >= WEFT_STAGE_OPEN;
    return 0;
}

int weft_mpi_finalized(int *flag)
{
    *flag = weft_init_stage() == WEFT_STAGE_AFTER;
    return 0;
}

/* MPI_COMM_SELF's attributes are deleted first, while MPI still works (MPI 5.0 11.2.4); then MPI_COMM_WORLD's. */
static void delete_attributes(weft_world *world)
{
    weft_mpi_world *mpi = world->mpi;
    weft_worker_lock(world->workers[0]);
    weft_comm_clear_attributes(mpi->comm_self);
    weft_comm_clear_attributes(mpi->comm_world);
    weft_worker_unlock(world->workers[0]);
}

int weft_mpi_finalize(void)
{
    int expected = WEFT_STAGE_OPEN, rc;
    weft_world *world = weft_world_now;
    weft_event_point(0);
    if (!atomic_compare_exchange_strong(&weft_boot_now->stage, &expected, WEFT_STAGE_CLOSING))
        return weft_fail(WEFT_E_OTHER, expected >= WEFT_STAGE_CLOSING ? "MPI is finalized already" : "MPI is not initialized");
    delete_attributes(world);
    weft_world_model = NULL;
    rc = weft_instance_close(true);
    set_stage(WEFT_STAGE_AFTER);
    return weft_event_point(rc);
}

int weft_mpi_query_thread(int *provided)
{
    *provided = weft_mpi_now()->world_level;
    return 0;
}

int weft_mpi_is_thread_main(int *flag)
{
    *flag = pthread_equal((pthread_t)weft_mpi_now()->main_thread, pthread_self()) != 0;
    return 0;
}

/* Ends the whole job, whatever the communicator (allowed by MPI 5.0 9.4). */
int weft_mpi_abort(weft_comm *comm, int errorcode)
{
    weft_boot *boot = comm->worker->world->boot;
    char text[256];
    snprintf(text, sizeof text, "MPI_Abort(%s, %d) was called", comm->traits.name[0] ? comm->traits.name : "a communicator without a name",
             errorcode);
    weft_errors_flush();
    boot->ops->abort(boot, errorcode, text);
    return 0;
}
