/* SPDX-License-Identifier: BSD-3-Clause
 *
 * local_tool_calls: calls of the tool information interface (MPI 5.0 chapter 15), for local_calls.h. None waits for a lock.
 */
#ifndef TEST_MPI_LOCAL_TOOL_CALLS_H
#define TEST_MPI_LOCAL_TOOL_CALLS_H

#include "check.h"

static inline void local_tool_variables(void)
{
    int level, n, stamp, index, length, verbosity, class, bind, readonly, continuous, atomic, count, items, value;
    char name[256], capacity[4096];
    MPI_Datatype type;
    MPI_T_enum tenum;
    MPI_T_cvar_handle cvar;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle pvar;
    OK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &level));
    OK(MPI_T_cvar_get_num(&n));
    length = sizeof name;
    OK(MPI_T_cvar_get_info(n - 1, name, &length, &verbosity, &type, &tenum, NULL, NULL, &bind, &value));
    OK(MPI_T_cvar_get_index(name, &index));
    OK(MPI_T_cvar_handle_alloc(index, NULL, &cvar, &count));
    OK(MPI_T_cvar_read(cvar, capacity));
    CHECK(MPI_T_cvar_write(cvar, capacity) == MPI_T_ERR_CVAR_SET_NEVER);
    OK(MPI_T_cvar_handle_free(&cvar));
    for (int i = 0; i < n; i++) {
        OK(MPI_T_cvar_get_info(i, NULL, NULL, NULL, NULL, &tenum, NULL, NULL, NULL, NULL));
        if (tenum == MPI_T_ENUM_NULL)
            continue;
        OK(MPI_T_enum_get_info(tenum, &items, NULL, NULL));
        OK(MPI_T_enum_get_item(tenum, items - 1, &value, NULL, NULL));
    }
    OK(MPI_T_pvar_get_num(&n));
    length = sizeof name;
    OK(MPI_T_pvar_get_info(0, name, &length, &verbosity, &class, &type, &tenum, NULL, NULL, &bind, &readonly, &continuous, &atomic));
    OK(MPI_T_pvar_get_index(name, class, &index));
    OK(MPI_T_pvar_session_create(&session));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &pvar, &count));
    OK(MPI_T_pvar_read(session, pvar, capacity));
    MPI_T_pvar_start(session, pvar); /* these five as the variable allows */
    MPI_T_pvar_stop(session, pvar);
    MPI_T_pvar_reset(session, pvar);
    MPI_T_pvar_readreset(session, pvar, capacity);
    MPI_T_pvar_write(session, pvar, capacity);
    OK(MPI_T_pvar_handle_free(session, &pvar));
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_T_category_get_num(&n));
    OK(MPI_T_category_changed(&stamp));
    length = sizeof name;
    OK(MPI_T_category_get_info(0, name, &length, NULL, NULL, &count, &items, &value));
    OK(MPI_T_category_get_index(name, &index));
    OK(MPI_T_category_get_cvars(0, 0, &index));
    OK(MPI_T_category_get_pvars(0, 0, &index));
    OK(MPI_T_category_get_categories(0, 0, &index));
    OK(MPI_T_category_get_num_events(0, &count));
    OK(MPI_T_category_get_events(0, 0, &index));
    OK(MPI_T_finalize());
}

/* Invalid handles and indices. */
static inline void local_tool_events(void)
{
    int level, n = -1, index;
    char name[64];
    MPI_Count ticks;
    MPI_Info info;
    MPI_T_event_registration registration = NULL;
    MPI_T_event_instance instance = NULL;
    OK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &level));
    OK(MPI_T_event_get_num(&n));
    CHECK(n > 0);
    OK(MPI_T_source_get_num(&n));
    CHECK(n > 0);
    CHECK(MPI_T_event_get_index("x", &index) == MPI_T_ERR_INVALID_NAME);
    CHECK(MPI_T_event_get_info(-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_event_handle_alloc(-1, NULL, MPI_INFO_NULL, &registration) == MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_event_handle_free(registration, NULL, NULL) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_event_handle_get_info(registration, &info) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_event_handle_set_info(registration, MPI_INFO_NULL) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, NULL) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_event_callback_get_info(registration, MPI_T_CB_REQUIRE_NONE, &info) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_event_callback_set_info(registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_event_set_dropped_handler(registration, NULL) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_event_read(instance, 0, name) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_event_copy(instance, name) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_event_get_timestamp(instance, &ticks) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_event_get_source(instance, &index) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_source_get_info(-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_source_get_timestamp(-1, &ticks) == MPI_T_ERR_INVALID_INDEX);
    OK(MPI_T_finalize());
}

#endif
