/* SPDX-License-Identifier: BSD-3-Clause
 *
 * session: sessions and their process sets (MPI 5.0 11.3). Called by the generated entries without locks.
 * Process sets: mpi://WORLD and mpi://SELF.
 */
#include "mpi/session_type.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/macros.h"
#include "base/status.h"
#include "mpi/bsend.h"
#include "mpi/calls.h"
#include "mpi/errhandler.h"
#include "mpi/errors.h"
#include "mpi/group.h"
#include "mpi/init.h"
#include "mpi/memory_kinds.h"

weft_object_pool weft_session_pool = WEFT_OBJECT_POOL(weft_session, WEFT_SESSION_MAGIC);

/* By enum weft_pset. */
static const char *const psets[] = {"mpi://WORLD", "mpi://SELF"};

static const struct { int level; const char *name; } levels[] = {
    {MPI_THREAD_SINGLE, "MPI_THREAD_SINGLE"}, {MPI_THREAD_FUNNELED, "MPI_THREAD_FUNNELED"},
    {MPI_THREAD_SERIALIZED, "MPI_THREAD_SERIALIZED"}, {MPI_THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE"}};

/* The level that info asks for; MPI_THREAD_MULTIPLE if it asks for none. */
static int wanted_level(const weft_info *info)
{
    char value[WEFT_INFO_VALUE_BYTES];
    for (unsigned i = 0; weft_info_find(info, "thread_level", value) && i < weft_count(levels); i++)
        if (strcmp(value, levels[i].name) == 0)
            return levels[i].level;
    return MPI_THREAD_MULTIPLE;
}

int weft_mpi_session_init(weft_info *info, MPI_Errhandler errhandler, MPI_Session *session)
{
    char kinds[WEFT_INFO_VALUE_BYTES];
    weft_session *made;
    int level = wanted_level(info), rc;
    *session = MPI_SESSION_NULL;
    rc = weft_instance_open(level, &level);
    if (rc)
        return rc;
    made = weft_object_new(&weft_session_pool);
    if (!made) {
        weft_instance_close(false);
        return weft_fail(WEFT_E_NOMEM, "no memory for a session");
    }
    made->traits.kind = WEFT_TRAITS_SESSION;
    made->traits.errhandler = MPI_ERRORS_ARE_FATAL;
    made->thread_level = level;
    if (weft_info_find(info, "mpi_memory_alloc_kinds", kinds))
        made->kinds = weft_memory_kinds_keep(kinds);
    rc = weft_errhandler_set(&made->traits, errhandler);
    if (rc) {
        weft_object_free(&weft_session_pool, made);
        weft_instance_close(false);
        return rc;
    }
    *session = made;
    return 0;
}

int weft_mpi_session_finalize(MPI_Session *session)
{
    weft_session *gone = weft_session_of(*session);
    if (!gone || !weft_object_retire(&gone->traits.object))
        return weft_fail(WEFT_E_SESSION, "session %p is no session, or was finalized already", (void *)*session);
    if (gone->bsend_buffer)
        weft_bsend_close_session(gone);
    weft_errhandler_drop(gone->traits.errhandler);
    weft_object_free(&weft_session_pool, gone);
    *session = MPI_SESSION_NULL;
    return weft_instance_close(false);
}

int weft_mpi_session_get_info(weft_session *session, MPI_Info *info_used)
{
    char kinds[WEFT_INFO_VALUE_BYTES];
    weft_info *info = weft_info_new();
    int rc;
    weft_memory_kinds(weft_memory_kinds_kept(session->kinds), kinds);
    rc = info ? weft_info_set(info, "mpi_memory_alloc_kinds", kinds) : WEFT_E_NOMEM;
    for (unsigned i = 0; i < weft_count(levels) && !rc; i++)
        if (levels[i].level == session->thread_level)
            rc = weft_info_set(info, "thread_level", levels[i].name);
    if (rc)
        weft_info_drop(info);
    else
        *info_used = info;
    return rc;
}

int weft_mpi_session_get_num_psets(weft_session *session, weft_info *info, int *npset_names)
{
    (void)session;
    (void)info;
    *npset_names = (int)weft_count(psets);
    return 0;
}

int weft_mpi_session_get_nth_pset(weft_session *session, weft_info *info, int n, int *pset_len, char *pset_name)
{
    (void)session;
    (void)info;
    if (n < 0 || n >= (int)weft_count(psets))
        return weft_fail(WEFT_E_ARG, "MPI_Session_get_nth_pset: argument n is %d: there are the process sets 0..%zu", n,
                         weft_count(psets) - 1);
    if (*pset_len < 0)
        return weft_fail(WEFT_E_ARG, "MPI_Session_get_nth_pset: argument pset_len is %d: a length cannot be negative", *pset_len);
    if (*pset_len > 0 && !pset_name)
        return weft_fail(WEFT_E_ARG, "MPI_Session_get_nth_pset: argument pset_name is NULL, and pset_len is %d, not 0", *pset_len);
    if (*pset_len > 0)
        snprintf(pset_name, (size_t)*pset_len, "%s", psets[n]);
    *pset_len = (int)strlen(psets[n]) + 1;
    return 0;
}

int weft_session_pset(const char *name)
{
    for (unsigned i = 0; i < weft_count(psets); i++)
        if (strcasecmp(name, psets[i]) == 0)
            return (int)i;
    return -1;
}

static int unknown_pset(const char *name)
{
    return weft_fail(WEFT_E_ARG, "there is no process set '%.100s': this job has mpi://WORLD and mpi://SELF", name);
}

int weft_mpi_session_get_pset_info(weft_session *session, const char *pset_name, MPI_Info *info)
{
    int which = weft_session_pset(pset_name), rc;
    weft_info *made;
    char size[16];
    (void)session;
    if (which < 0)
        return unknown_pset(pset_name);
    made = weft_info_new();
    if (!made)
        return WEFT_E_NOMEM;
    snprintf(size, sizeof size, "%u", which == WEFT_PSET_WORLD ? weft_world_now->boot->size : 1);
    rc = weft_info_set(made, "mpi_size", size);
    if (rc)
        weft_info_drop(made);
    else
        *info = made;
    return rc;
}

int weft_mpi_group_from_session_pset(weft_session *session, const char *pset_name, MPI_Group *newgroup)
{
    const weft_boot *boot = weft_world_now->boot;
    int which = weft_session_pset(pset_name), rc;
    weft_group *group;
    if (which < 0)
        return unknown_pset(pset_name);
    rc = weft_group_range(boot->job, which == WEFT_PSET_WORLD ? 0 : boot->rank, 1, which == WEFT_PSET_WORLD ? boot->size : 1, &group);
    if (rc)
        return rc;
    group->session = session->traits.object.number;
    *newgroup = weft_group_handle(group);
    return 0;
}

int weft_mpi_session_get_errhandler(weft_session *session, MPI_Errhandler *errhandler)
{
    return weft_errhandler_give(&session->traits, errhandler);
}

int weft_mpi_session_set_errhandler(weft_session *session, MPI_Errhandler errhandler)
{
    return weft_errhandler_set(&session->traits, errhandler);
}

int weft_mpi_session_call_errhandler(weft_session *session, int errorcode)
{
    return weft_errors_call(&session->traits, "MPI_Session_call_errhandler", errorcode);
}
