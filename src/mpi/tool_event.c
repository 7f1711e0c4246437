/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tool_event: events of the tool information interface (MPI 5.0, 15.3.8). Called by the generated entries.
 * Weft has no event types and no event sources: every index and handle is invalid.
 */
#include "mpi/calls.h"
#include "mpi/tool.h"

/* Returns `why`, or MPI_T_ERR_NOT_INITIALIZED. */
static int refuse(int why)
{
    WEFT_TOOL_ENTER(tool);
    (void)tool;
    return weft_tool_leave(why);
}

static int none(int *number)
{
    WEFT_TOOL_ENTER(tool);
    (void)tool;
    if (!number)
        return weft_tool_leave(MPI_T_ERR_INVALID);
    *number = 0;
    return weft_tool_leave(MPI_SUCCESS);
}

int weft_mpi_t_event_get_num(int *num_events) { return none(num_events); }
int weft_mpi_t_source_get_num(int *num_sources) { return none(num_sources); }

int weft_mpi_t_event_get_index(const char *name, int *event_index)
{
    return refuse(name && event_index ? MPI_T_ERR_INVALID_NAME : MPI_T_ERR_INVALID);
}

int weft_mpi_t_event_get_info(int event_index, char *name, int *name_len, int *verbosity, MPI_Datatype array_of_datatypes[],
                              MPI_Aint array_of_displacements[], int *num_elements, MPI_T_enum *enumtype, MPI_Info *info, char *desc,
                              int *desc_len, int *bind)
{
    (void)event_index, (void)name, (void)name_len, (void)verbosity, (void)array_of_datatypes, (void)array_of_displacements;
    (void)num_elements, (void)enumtype, (void)info, (void)desc, (void)desc_len, (void)bind;
    return refuse(MPI_T_ERR_INVALID_INDEX);
}

int weft_mpi_t_event_handle_alloc(int event_index, void *obj_handle, MPI_Info info, MPI_T_event_registration *event_registration)
{
    (void)event_index, (void)obj_handle, (void)info, (void)event_registration;
    return refuse(MPI_T_ERR_INVALID_INDEX);
}

int weft_mpi_t_event_handle_free(MPI_T_event_registration event_registration, void *user_data,
                                 MPI_T_event_free_cb_function *free_cb_function)
{
    (void)event_registration, (void)user_data, (void)free_cb_function;
    return refuse(MPI_T_ERR_INVALID_HANDLE);
}

int weft_mpi_t_event_handle_get_info(MPI_T_event_registration event_registration, MPI_Info *info_used)
{
    (void)event_registration, (void)info_used;
    return refuse(MPI_T_ERR_INVALID_HANDLE);
}

int weft_mpi_t_event_handle_set_info(MPI_T_event_registration event_registration, MPI_Info info)
{
    (void)event_registration, (void)info;
    return refuse(MPI_T_ERR_INVALID_HANDLE);
}

int weft_mpi_t_event_register_callback(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety, MPI_Info info,
                                       void *user_data, MPI_T_event_cb_function *event_cb_function)
{
    (void)event_registration, (void)cb_safety, (void)info, (void)user_data, (void)event_cb_function;
    return refuse(MPI_T_ERR_INVALID_HANDLE);
}

int weft_mpi_t_event_callback_get_info(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety, MPI_Info *info_used)
{
    (void)event_registration, (void)cb_safety, (void)info_used;
    return refuse(MPI_T_ERR_INVALID_HANDLE);
}

int weft_mpi_t_event_callback_set_info(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety, MPI_Info info)
{
    (void)event_registration, (void)cb_safety, (void)info;
    return refuse(MPI_T_ERR_INVALID_HANDLE);
}

int weft_mpi_t_event_set_dropped_handler(MPI_T_event_registration event_registration,
                                         MPI_T_event_dropped_cb_function *dropped_cb_function)
{
    (void)event_registration, (void)dropped_cb_function;
    return refuse(MPI_T_ERR_INVALID_HANDLE);
}

int weft_mpi_t_event_read(MPI_T_event_instance event_instance, int element_index, void *buffer)
{
    (void)event_instance, (void)element_index, (void)buffer;
    return refuse(MPI_T_ERR_INVALID_HANDLE);
}

int weft_mpi_t_event_copy(MPI_T_event_instance event_instance, void *buffer)
{
    (void)event_instance, (void)buffer;
    return refuse(MPI_T_ERR_INVALID_HANDLE);
}

int weft_mpi_t_event_get_source(MPI_T_event_instance event_instance, int *source_index)
{
    (void)event_instance, (void)source_index;
    return refuse(MPI_T_ERR_INVALID_HANDLE);
}

int weft_mpi_t_event_get_timestamp(MPI_T_event_instance event_instance, MPI_Count *event_timestamp)
{
    (void)event_instance, (void)event_timestamp;
    return refuse(MPI_T_ERR_INVALID_HANDLE);
}

int weft_mpi_t_source_get_info(int source_index, char *name, int *name_len, char *desc, int *desc_len, MPI_T_source_order *ordering,
                               MPI_Count *ticks_per_second, MPI_Count *max_ticks, MPI_Info *info)
{
    (void)source_index, (void)name, (void)name_len, (void)desc, (void)desc_len, (void)ordering;
    (void)ticks_per_second, (void)max_ticks, (void)info;
    return refuse(MPI_T_ERR_INVALID_INDEX);
}

int weft_mpi_t_source_get_timestamp(int source_index, MPI_Count *timestamp)
{
    (void)source_index, (void)timestamp;
    return refuse(MPI_T_ERR_INVALID_INDEX);
}
