/* SPDX-License-Identifier: BSD-3-Clause
 *
 * errors: see errors.h. Called without locks. Invariant: a fatal error is printed once per job, in at most five lines; the function that
 * detects the cause describes it with weft_fail.
 */
#include "mpi/errors.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "mpi/calls.h"
#include "mpi/errhandler.h"
#include "mpi/session_type.h"
#include "mpi/error_class.h"

static const short classes[] = {
    [0] = MPI_SUCCESS,
    [-WEFT_E_NOMEM] = MPI_ERR_NO_MEM,
    [-WEFT_E_NOSPACE] = MPI_ERR_NO_SPACE,
    [-WEFT_E_SYSTEM] = MPI_ERR_OTHER,
    [-WEFT_E_PEER] = MPI_ERR_PROC_ABORTED,
    [-WEFT_E_TIMEOUT] = MPI_ERR_OTHER,
    [-WEFT_E_UNSUPPORTED] = MPI_ERR_UNSUPPORTED_OPERATION,
    [-WEFT_E_INTERN] = MPI_ERR_INTERN,
    [-WEFT_E_TRUNCATE] = MPI_ERR_TRUNCATE,
    [-WEFT_E_BUFFER] = MPI_ERR_BUFFER,
    [-WEFT_E_COUNT] = MPI_ERR_COUNT,
    [-WEFT_E_TYPE] = MPI_ERR_TYPE,
    [-WEFT_E_TAG] = MPI_ERR_TAG,
    [-WEFT_E_COMM] = MPI_ERR_COMM,
    [-WEFT_E_RANK] = MPI_ERR_RANK,
    [-WEFT_E_REQUEST] = MPI_ERR_REQUEST,
    [-WEFT_E_ROOT] = MPI_ERR_ROOT,
    [-WEFT_E_GROUP] = MPI_ERR_GROUP,
    [-WEFT_E_OP] = MPI_ERR_OP,
    [-WEFT_E_ARG] = MPI_ERR_ARG,
    [-WEFT_E_ERRHANDLER] = MPI_ERR_ERRHANDLER,
    [-WEFT_E_INFO] = MPI_ERR_INFO,
    [-WEFT_E_KEY] = MPI_ERR_OTHER,
    [-WEFT_E_OTHER] = MPI_ERR_OTHER,
    [-WEFT_E_IN_STATUS] = MPI_ERR_IN_STATUS,
    [-WEFT_E_PENDING] = MPI_ERR_PENDING,
    [-WEFT_E_TOOLARGE] = MPI_ERR_VALUE_TOO_LARGE,
    [-WEFT_E_REVOKED] = MPI_ERR_OTHER, /* MPI 5.0 has no class for it */
    [-WEFT_E_CORRUPT] = MPI_ERR_OTHER, /* MPI 5.0 has no class for it */
    [-WEFT_E_STALE] = MPI_ERR_INTERN, /* never returned by p2p */
    [-WEFT_E_NOT_SAME] = MPI_ERR_NOT_SAME,
    [-WEFT_E_WIN] = MPI_ERR_WIN,
    [-WEFT_E_KEYVAL] = MPI_ERR_KEYVAL,
    [-WEFT_E_INFO_KEY] = MPI_ERR_INFO_KEY,
    [-WEFT_E_INFO_VALUE] = MPI_ERR_INFO_VALUE,
    [-WEFT_E_INFO_NOKEY] = MPI_ERR_INFO_NOKEY,
    [-WEFT_E_BASE] = MPI_ERR_BASE,
    [-WEFT_E_ABI] = MPI_ERR_ABI,
    [-WEFT_E_SESSION] = MPI_ERR_SESSION,
    [-WEFT_E_TOPOLOGY] = MPI_ERR_TOPOLOGY,
    [-WEFT_E_DIMS] = MPI_ERR_DIMS,
    [-WEFT_E_RMA_SYNC] = MPI_ERR_RMA_SYNC,
    [-WEFT_E_RMA_RANGE] = MPI_ERR_RMA_RANGE,
    [-WEFT_E_RMA_CONFLICT] = MPI_ERR_RMA_CONFLICT,
    [-WEFT_E_RMA_ATTACH] = MPI_ERR_RMA_ATTACH,
    [-WEFT_E_RMA_SHARED] = MPI_ERR_RMA_SHARED,
    [-WEFT_E_RMA_FLAVOR] = MPI_ERR_RMA_FLAVOR,
    [-WEFT_E_DISP] = MPI_ERR_DISP,
    [-WEFT_E_SIZE] = MPI_ERR_SIZE,
    [-WEFT_E_ASSERT] = MPI_ERR_ASSERT,
    [-WEFT_E_LOCKTYPE] = MPI_ERR_LOCKTYPE,
};
_Static_assert(weft_count(classes) == -WEFT_E_LAST, "every inner code has an MPI class");

int weft_errors_class(int code)
{
    if (code > 0) /* a program's function returned it */
        return code;
    return code <= WEFT_E_LAST ? MPI_ERR_UNKNOWN : classes[-code];
}

/* Object of the failed request, for the next raise on this thread (weft_errors_set_object). */
static _Thread_local weft_traits *failed_object;

int weft_errors_set_object(weft_traits *at, int code)
{
    failed_object = at;
    return code;
}

weft_traits *weft_errors_object(void) { return failed_object; }

/* Stands for an object that could not be made. */
static _Thread_local weft_traits unmade;

weft_traits *weft_errors_unmade(enum weft_traits_kind kind, weft_errhandler *errhandler)
{
    unmade = (weft_traits){.kind = (uint8_t)kind, .errhandler = MPI_ERRORS_ARE_FATAL};
    if (weft_errhandler_fits(errhandler, kind))
        unmade.errhandler = errhandler; /* the caller of MPI keeps it until the call returns */
    return &unmade;
}

weft_traits *weft_errors_of_group(const weft_group *group)
{
    return group && group->session ? weft_object_by_number(&weft_session_pool, group->session) : NULL;
}

void weft_errors_flush(void)
{
    if (ftrylockfile(stdout))
        return;
    fflush_unlocked(stdout);
    funlockfile(stdout);
}

/* Writes "MPI_COMM_WORLD (rank 0 of 2; world rank 0 on host)", or name and place of another object. */
static void describe(const weft_traits *at, char text[480])
{
    static const char *const unnamed[] = {[WEFT_TRAITS_COMM] = "an unnamed communicator", [WEFT_TRAITS_WIN] = "an unnamed window",
                                          [WEFT_TRAITS_FILE] = "a file", [WEFT_TRAITS_SESSION] = "a session"};
    const weft_boot *boot = weft_world_now->boot;
    const char *name = at->name[0] ? at->name : unnamed[at->kind];
    const weft_comm *comm = (const weft_comm *)at;
    if (at->kind == WEFT_TRAITS_COMM && at != &unmade)
        snprintf(text, 480, "%s (rank %d of %d; world rank %u on %s)", name, comm->rank, comm->size, boot->rank, boot->host);
    else
        snprintf(text, 480, "%s (world rank %u on %s)", name, boot->rank, boot->host);
}

/* Prints the error and ends the job, or this process if there is no job. */
static void abort_job(const weft_traits *at, const char *function, int mpi_code, const char *why, const char *handler)
{
    weft_world *world = weft_world_now;
    char message[1800], where[480];
    weft_error_text text;
    weft_error_text_of(mpi_code, &text);
    if (!world || !at) {
        snprintf(message, sizeof message, "%s failed: %s (%s)\n  %s", function, text.name, text.sentence, why);
        weft_boot_abort_text(message);
        exit(mpi_code & 255 ? mpi_code & 255 : 1);
    }
    describe(at, where);
    snprintf(message, sizeof message, "%s failed on %s: %s (%s)\n  %s\n  The error handler is %s: the job ends.", function, where,
             text.name, text.sentence, why, handler);
    weft_errors_flush();
    world->boot->ops->abort(world->boot, mpi_code & 255 ? mpi_code : 1, message);
}

/* Warns once per communicator that a collective failed on this rank and the job continues: the program may ignore return codes. */
static void warn_stopped(weft_comm *comm, const char *function, const char *why)
{
    weft_log_warn("%s stopped on %s (rank %d of %d): %s\n"
                  "Collective calls on it are errors from now on, on all of its members.",
                  function, comm->traits.name[0] ? comm->traits.name : "an unnamed communicator", comm->rank, comm->size, why);
}

/* User error handlers running on this thread, outermost first. A handler may be left by longjmp or an exception: an entry is stale if
 * its frame lies on the free side of the stack. On other stacks (fibers of the simulator) an entry may be dropped too early;
 * the handler is then entered again. */
#define HANDLERS_DEEP 16
static _Thread_local struct {
    const weft_traits *at;
    const char *frame; /* stacks grow downwards: stale frames have lower addresses */
} active_handlers[HANDLERS_DEEP];
static _Thread_local unsigned active_count;

static bool is_active(const weft_traits *at, const char *frame)
{
    while (active_count && active_handlers[active_count - 1].frame <= frame)
        active_count--;
    for (unsigned i = 0; i < active_count; i++)
        if (active_handlers[i].at == at)
            return true;
    return active_count == HANDLERS_DEEP;
}

/* The handle of the program for an object. */
static void *handle_of(weft_traits *at)
{
    if (at == &unmade)
        return at->kind == WEFT_TRAITS_COMM ? (void *)MPI_COMM_NULL : (void *)MPI_SESSION_NULL;
    return at->kind == WEFT_TRAITS_COMM ? (void *)weft_comm_handle((weft_comm *)at) : at;
}

/* Must be called without locks; `at` is not used after the call: the function may call MPI, free the object and its handler, finalize, or
 * not return. */
static __attribute__((noinline)) void call_user(weft_traits *at, weft_errhandler_function *function, const weft_language *language,
                                                int code)
{
    static const enum weft_language_kind kinds[] = {[WEFT_TRAITS_COMM] = WEFT_LANGUAGE_COMM, [WEFT_TRAITS_WIN] = WEFT_LANGUAGE_WIN,
                                                    [WEFT_TRAITS_FILE] = WEFT_LANGUAGE_FILE,
                                                    [WEFT_TRAITS_SESSION] = WEFT_LANGUAGE_SESSION};
    void *handle = handle_of(at);
    const char *frame = __builtin_frame_address(0);
    active_handlers[active_count].at = at;
    active_handlers[active_count++].frame = frame;
    weft_language_set(NULL); /* the failed call may have set another */
    if (language)
        language->fail((void *)function, kinds[at->kind], handle, &code);
    else
        function(&handle, &code);
    while (active_count && active_handlers[active_count - 1].frame <= frame)
        active_count--;
}

/* Has a collective stopped on this communicator, and was that not reported yet? */
static bool is_first_stop(weft_comm *comm)
{
    bool is_stopped;
    weft_worker_lock(comm->worker);
    is_stopped = !comm->is_stop_reported && weft_team_stopped(&comm->team);
    comm->is_stop_reported |= is_stopped;
    weft_worker_unlock(comm->worker);
    return is_stopped;
}

/* False: a handler is already running for this object on this thread; it is not entered again. */
static bool run(weft_traits *at, const char *function, int mpi_code, const char *why)
{
    weft_errhandler *handler = weft_errhandler_get(at);
    weft_errhandler_function *user = weft_errhandler_is_user(handler) ? handler->function : NULL;
    const weft_language *language = user ? handler->language : NULL;
    bool is_again = user && is_active(at, __builtin_frame_address(0));
    bool is_stopped = at->kind == WEFT_TRAITS_COMM && at != &unmade && is_first_stop((weft_comm *)at);
    weft_errhandler_drop(handler);
    if (handler == MPI_ERRORS_ARE_FATAL || handler == MPI_ERRORS_ABORT)
        abort_job(at, function, mpi_code, why, handler == MPI_ERRORS_ABORT ? "MPI_ERRORS_ABORT" : "MPI_ERRORS_ARE_FATAL");
    else if (is_stopped && mpi_code != MPI_ERR_PROC_ABORTED) /* mpirun reports deaths */
        warn_stopped((weft_comm *)at, function, why);
    if (user && !is_again)
        call_user(at, user, language, mpi_code);
    return !is_again;
}

/* MPI_Error_string returns this text. The rules of epochs, and the checks of calls that make windows, do not know the calling function. */
static bool lacks_function(const weft_traits *at, const char *function, const char *why)
{
    size_t length = strlen(function);
    if (!strncmp(why, function, length) && why[length] == ':')
        return false;
    return (at && at->kind == WEFT_TRAITS_WIN) || !strncmp(why, "argument ", 9);
}

int weft_errors_raise(weft_traits *given, const char *function, int code)
{
    weft_mpi_world *mpi = weft_mpi_now();
    int mpi_code = weft_errors_class(code);
    bool is_gone = given && given != &unmade && !given->object.magic; /* a callback of the program freed it during the call */
    weft_traits *set = failed_object && failed_object->object.magic ? failed_object : NULL; /* its operations may outlive its handle */
    weft_traits *at = given && !is_gone ? given : set ? set : mpi ? &mpi->comm_self->traits : NULL;
    char why[512];
    failed_object = NULL;
    snprintf(why, sizeof why, "%s", weft_fail_text(code)); /* copied: the user's handler may overwrite it by failing calls */
    if (code < 0 && lacks_function(at, function, why))
        weft_fail(code, "%s: %s", function, why);
    if (at)
        run(at, function, mpi_code, why);
    else if (weft_errhandler_initial() != MPI_ERRORS_RETURN)
        abort_job(NULL, function, mpi_code, why, "the initial error handler");
    return mpi_code;
}

int weft_errors_call(weft_traits *at, const char *function, int mpi_code)
{
    static const char *const kinds[] = {[WEFT_TRAITS_COMM] = "communicator", [WEFT_TRAITS_WIN] = "window", [WEFT_TRAITS_FILE] = "file",
                                        [WEFT_TRAITS_SESSION] = "session"};
    if (run(at, function, mpi_code, "the program raised this error"))
        return 0;
    return weft_fail(WEFT_E_OTHER, "the error handler of this %s is already running: it is not entered again", kinds[at->kind]);
}

int weft_mpi_comm_call_errhandler(weft_comm *comm, int errorcode)
{
    return weft_errors_call(&comm->traits, "MPI_Comm_call_errhandler", errorcode);
}

/* Text of this thread's last failure if it has this class; programs with MPI_ERRORS_RETURN print it. */
static const char *latest_cause(int mpi_code)
{
    const char *own = weft_fail_text(mpi_code); /* a program's function returned it */
    if (own != weft_status_text(mpi_code))
        return own;
    for (int code = -1; code > WEFT_E_LAST; code--) {
        const char *text = weft_fail_text(code);
        if (classes[-code] == mpi_code && text != weft_status_text(code))
            return text;
    }
    return NULL;
}

/* Of MPI's codes: name, sentence and this thread's latest cause. Of codes that the program added: its string. */
int weft_mpi_error_string(int errorcode, char *string, int *resultlen)
{
    weft_error_text text;
    char all[2 * MPI_MAX_ERROR_STRING + 128];
    const char *cause = latest_cause(errorcode);
    int class, rc = weft_mpi_error_class(errorcode, &class);
    size_t length;
    if (rc)
        return rc;
    weft_error_text_of(errorcode, &text);
    if (errorcode > MPI_ERR_LASTCODE)
        snprintf(all, sizeof all, "%s", text.sentence);
    else
        snprintf(all, sizeof all, "%s: %s%s%s", text.name, text.sentence, cause ? "; latest cause in this thread: " : "",
                 cause ? cause : "");
    length = strnlen(all, MPI_MAX_ERROR_STRING - 1);
    memcpy(string, all, length);
    string[length] = 0;
    *resultlen = (int)length;
    return 0;
}
