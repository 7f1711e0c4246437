/* SPDX-License-Identifier: BSD-3-Clause
 *
 * local_calls: calls every local function that is built, as a program's callback may, from any number of threads at once.
 * unlocked_calls: those that never wait for a lock (test/unit/test_unlocked). local_calls: all.
 * test/api/tested checks that no function of the table is missing here.
 */
#ifndef TEST_MPI_LOCAL_CALLS_H
#define TEST_MPI_LOCAL_CALLS_H

#include "check.h"
#include "local_tool_calls.h"

static inline void local_add(void *in, void *inout, int *len, MPI_Datatype *type)
{
    int size;
    OK(MPI_Type_size(*type, &size));
    for (int i = 0; i < *len * size / (int)sizeof(int); i++)
        ((int *)inout)[i] += ((int *)in)[i];
}
static inline void local_add_c(void *in, void *inout, MPI_Count *len, MPI_Datatype *type)
{
    (void)type;
    for (MPI_Count i = 0; i < *len; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}
static inline void local_handler(MPI_Comm *comm, int *code, ...)
{
    CHECK(*comm != MPI_COMM_NULL && *code > 0);
}
static inline void local_win_handler(MPI_Win *win, int *code, ...) { (void)win, (void)code; }
static inline void local_file_handler(MPI_File *file, int *code, ...) { (void)file, (void)code; }
static inline void local_session_handler(MPI_Session *session, int *code, ...) { (void)session, (void)code; }

static inline void local_types(void)
{
    MPI_Datatype c, v, h, d, again;
    MPI_Aint lb, extent, here;
    MPI_Count lb_c, extent_c, size_c;
    int size, length, x[4];
    char name[MPI_MAX_OBJECT_NAME];
    OK(MPI_Type_contiguous(3, MPI_INT, &c));
    OK(MPI_Type_vector(2, 1, 2, c, &v));
    OK(MPI_Type_create_hvector(2, 1, 40, v, &h));
    OK(MPI_Type_commit(&h));
    OK(MPI_Type_dup(h, &d));
    OK(MPI_Type_set_name(d, "local"));
    OK(MPI_Type_get_name(d, name, &length));
    CHECK(!strcmp(name, "local"));
    OK(MPI_Type_size(d, &size));
    CHECK(size == 48);
    OK(MPI_Type_size_c(d, &size_c));
    OK(MPI_Type_size_x(d, &size_c));
    CHECK(size_c == 48);
    OK(MPI_Type_get_extent(d, &lb, &extent));
    CHECK(lb == 0 && extent == 76);
    OK(MPI_Type_get_true_extent(d, &lb, &extent));
    CHECK(lb == 0 && extent == 76);
    OK(MPI_Type_get_extent_x(d, &lb_c, &extent_c));
    OK(MPI_Type_get_true_extent_x(d, &lb_c, &extent_c));
    CHECK(lb_c == 0 && extent_c == 76);
    again = MPI_Type_fromint(MPI_Type_toint(d));
    CHECK(again == d);
    OK(MPI_Type_free(&c));
    OK(MPI_Type_free(&v));
    OK(MPI_Type_free(&h));
    OK(MPI_Type_free(&d));
    OK(MPI_Get_address(x, &here));
    CHECK(MPI_Aint_diff(MPI_Aint_add(here, 8), here) == 8);
}

static inline void local_type_constructors(void)
{
    const int lengths[2] = {2, 1}, disps[2] = {0, 3}, sizes[2] = {4, 4}, starts[2] = {1, 1}, ones[2] = {1, 1};
    const int none[2] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_NONE}, dargs[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
    const MPI_Aint bytes[2] = {0, 40};
    const MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE};
    MPI_Datatype made[8], parts[2];
    MPI_Aint addresses[4];
    int ints[8], ni, na, nd, combiner;
    OK(MPI_Type_indexed(2, lengths, disps, MPI_INT, &made[0]));
    OK(MPI_Type_create_hindexed(2, lengths, bytes, MPI_INT, &made[1]));
    OK(MPI_Type_create_indexed_block(2, 1, disps, MPI_INT, &made[2]));
    OK(MPI_Type_create_hindexed_block(2, 1, bytes, MPI_INT, &made[3]));
    OK(MPI_Type_create_resized(MPI_INT, 0, 8, &made[4]));
    OK(MPI_Type_create_subarray(2, sizes, lengths, starts, MPI_ORDER_C, MPI_INT, &made[5]));
    OK(MPI_Type_create_darray(1, 0, 2, sizes, none, dargs, ones, MPI_ORDER_C, MPI_INT, &made[6]));
    OK(MPI_Type_create_struct(2, lengths, bytes, types, &made[7]));
    OK(MPI_Type_get_envelope(made[7], &ni, &na, &nd, &combiner));
    CHECK(combiner == MPI_COMBINER_STRUCT && ni == 3 && na == 2 && nd == 2);
    OK(MPI_Type_get_contents(made[7], ni, na, nd, ints, addresses, parts));
    CHECK(ints[1] == 2 && addresses[1] == 40 && parts[1] == MPI_DOUBLE);
    for (int i = 0; i < 8; i++)
        OK(MPI_Type_free(&made[i]));
}

static inline void local_type_searches(void)
{
    MPI_Datatype type, again;
    OK(MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 4, &type));
    CHECK(type == MPI_INTEGER4);
    OK(MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &type));
    CHECK(type == MPI_DOUBLE_INT);
    OK(MPI_Type_create_f90_integer(9, &type));
    OK(MPI_Type_create_f90_integer(9, &again));
    CHECK(type == again);
    OK(MPI_Type_create_f90_real(6, 30, &type));
    OK(MPI_Type_create_f90_complex(6, 30, &again));
    CHECK(type != again);
}

static inline void local_external(void)
{
    int in[3] = {1, 2, 3}, out[3] = {0};
    MPI_Aint position = 0, size = 0;
    char packed[12];
    OK(MPI_Pack_external_size("external32", 3, MPI_INT, &size));
    CHECK(size == 12);
    OK(MPI_Pack_external("external32", in, 3, MPI_INT, packed, 12, &position));
    position = 0;
    OK(MPI_Unpack_external("external32", packed, 12, &position, out, 3, MPI_INT));
    CHECK(!memcmp(in, out, sizeof in));
}

static inline void local_ops(void)
{
    int in[3] = {1, 2, 3}, out[3] = {10, 20, 30}, commutes = -1;
    MPI_Op op, op_c;
    OK(MPI_Op_create(local_add, 1, &op));
    OK(MPI_Op_create_c(local_add_c, 0, &op_c));
    OK(MPI_Op_commutative(op, &commutes));
    CHECK(commutes == 1 && MPI_Op_fromint(MPI_Op_toint(op)) == op);
    OK(MPI_Reduce_local(in, out, 3, MPI_INT, op));
    OK(MPI_Reduce_local(in, out, 3, MPI_INT, op_c));
    OK(MPI_Reduce_local_c(in, out, 3, MPI_INT, MPI_SUM));
    CHECK(out[0] == 13 && out[1] == 26 && out[2] == 39);
    OK(MPI_Op_free(&op));
    OK(MPI_Op_free(&op_c));
}

static inline void local_packing(void)
{
    int in[3] = {1, 2, 3}, out[3] = {0}, position = 0, size = 0;
    char capacity[12];
    OK(MPI_Pack_size(3, MPI_INT, MPI_COMM_WORLD, &size));
    CHECK(size == 12);
    OK(MPI_Pack(in, 3, MPI_INT, capacity, 12, &position, MPI_COMM_WORLD));
    position = 0;
    OK(MPI_Unpack(capacity, 12, &position, out, 3, MPI_INT, MPI_COMM_WORLD));
    CHECK(!memcmp(in, out, sizeof in));
}

static inline void local_statuses(void)
{
    MPI_Status status;
    int flag = -1, count = -1, value = -1;
    memset(&status, 0, sizeof status);
    OK(MPI_Status_set_source(&status, 3));
    OK(MPI_Status_set_tag(&status, 4));
    OK(MPI_Status_set_error(&status, MPI_ERR_TAG));
    OK(MPI_Status_get_source(&status, &value));
    CHECK(value == 3);
    OK(MPI_Status_get_tag(&status, &value));
    CHECK(value == 4);
    OK(MPI_Status_get_error(&status, &value));
    CHECK(value == MPI_ERR_TAG);
    OK(MPI_Get_elements(&status, MPI_INT, &count));
    OK(MPI_Get_elements_x(&status, MPI_INT, &(MPI_Count){0}));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(count == 0 && flag == 0);
    OK(MPI_Status_set_elements(&status, MPI_INT, 4));
    OK(MPI_Status_set_elements_x(&status, MPI_INT, 5));
    OK(MPI_Status_set_cancelled(&status, 1));
    OK(MPI_Test_cancelled(&status, &flag));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(count == 5 && flag == 1);
}

static inline void local_environment(void)
{
    int flag = -1, rank = -1, size = -1, major, minor, length, level;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    OK(MPI_Initialized(&flag));
    CHECK(flag == 1);
    OK(MPI_Finalized(&flag));
    CHECK(flag == 0);
    OK(MPI_Query_thread(&level));
    CHECK(level == MPI_THREAD_MULTIPLE);
    OK(MPI_Is_thread_main(&flag));
    CHECK(MPI_Wtime() > 0 && MPI_Wtick() > 0);
    OK(MPI_Get_processor_name(text, &length));
    OK(MPI_Get_library_version(text, &length));
    OK(MPI_Get_version(&major, &minor));
    OK(MPI_Abi_get_version(&major, &minor));
    OK(MPI_Error_class(MPI_ERR_TAG, &flag));
    OK(MPI_Error_string(MPI_ERR_TAG, text, &length));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(rank >= 0 && rank < size);
    OK(MPI_Comm_test_inter(MPI_COMM_WORLD, &flag));
    OK(MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_SELF, &flag));
    CHECK(MPI_Comm_fromint(MPI_Comm_toint(MPI_COMM_WORLD)) == MPI_COMM_WORLD);
    CHECK(MPI_Request_fromint(MPI_Request_toint(MPI_REQUEST_NULL)) == MPI_REQUEST_NULL);
    OK(MPI_Win_get_name(MPI_WIN_NULL, text, &length));
}

static inline void local_errhandler_objects(void)
{
    MPI_Errhandler handler;
    OK(MPI_Comm_create_errhandler(local_handler, &handler));
    CHECK(MPI_Errhandler_fromint(MPI_Errhandler_toint(handler)) == handler);
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Win_create_errhandler(local_win_handler, &handler));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_File_create_errhandler(local_file_handler, &handler));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Session_create_errhandler(local_session_handler, &handler));
    OK(MPI_Errhandler_free(&handler));
}

static inline void local_attributes(void)
{
    int key, flag;
    void *value;
    OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, key, &key));
    OK(MPI_Comm_get_attr(MPI_COMM_SELF, key, &value, &flag));
    CHECK(flag && value == &key);
    OK(MPI_Comm_delete_attr(MPI_COMM_SELF, key));
    OK(MPI_Comm_free_keyval(&key));
    OK(MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, &key, NULL));
    OK(MPI_Attr_put(MPI_COMM_SELF, key, &key));
    OK(MPI_Attr_get(MPI_COMM_SELF, key, &value, &flag));
    OK(MPI_Attr_delete(MPI_COMM_SELF, key));
    OK(MPI_Keyval_free(&key));
    OK(MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &key, NULL));
    OK(MPI_Type_set_attr(MPI_INT, key, &key));
    OK(MPI_Type_get_attr(MPI_INT, key, &value, &flag));
    OK(MPI_Type_delete_attr(MPI_INT, key));
    OK(MPI_Type_free_keyval(&key));
    OK(MPI_Win_create_keyval(MPI_WIN_DUP_FN, MPI_WIN_NULL_DELETE_FN, &key, NULL));
    OK(MPI_Win_free_keyval(&key));
}

static inline void local_abi(void)
{
    MPI_Info info;
    int yes, no, flag;
    OK(MPI_Abi_get_info(&info));
    OK(MPI_Info_free(&info));
    OK(MPI_Get_hw_resource_info(&info));
    OK(MPI_Info_free(&info));
    OK(MPI_Abi_get_fortran_info(&info));
    CHECK(info == MPI_INFO_NULL);
    OK(MPI_Abi_get_fortran_booleans(4, &yes, &no, &flag));
    CHECK(MPI_Win_fromint(MPI_Win_toint(MPI_WIN_NULL)) == MPI_WIN_NULL);
    CHECK(MPI_File_fromint(MPI_File_toint(MPI_FILE_NULL)) == MPI_FILE_NULL);
    CHECK(MPI_Session_fromint(MPI_Session_toint(MPI_SESSION_NULL)) == MPI_SESSION_NULL);
}

static inline void local_error_codes(void)
{
    int class, code;
    OK(MPI_Add_error_class(&class));
    OK(MPI_Add_error_code(class, &code));
    OK(MPI_Add_error_string(code, "local"));
    OK(MPI_Remove_error_string(code));
    OK(MPI_Remove_error_code(code));
    OK(MPI_Remove_error_class(class));
}

static inline void local_infos(void)
{
    char text[MPI_MAX_INFO_KEY];
    int n, flag, length = sizeof text;
    MPI_Info info, copy;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "a", "1"));
    OK(MPI_Info_dup(info, &copy));
    OK(MPI_Info_get_string(copy, "a", &length, text, &flag));
    CHECK(flag && length == 2 && MPI_Info_fromint(MPI_Info_toint(copy)) == copy);
    OK(MPI_Info_get(copy, "a", 1, text, &flag));
    OK(MPI_Info_get_valuelen(copy, "a", &length, &flag));
    OK(MPI_Info_get_nkeys(copy, &n));
    OK(MPI_Info_get_nthkey(copy, n - 1, text));
    OK(MPI_Info_delete(copy, text));
    OK(MPI_Info_free(&info));
    OK(MPI_Info_free(&copy));
    OK(MPI_Info_create_env(0, NULL, &info));
    OK(MPI_Info_free(&info));
}

static inline void local_groups(void)
{
    MPI_Group world, one, others, group;
    int n, ranges[1][3] = {{0, 0, 1}}, zero = 0, other = -1;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, &zero, &one));
    OK(MPI_Group_range_excl(world, 1, ranges, &others));
    OK(MPI_Group_union(one, others, &group));
    OK(MPI_Group_compare(group, world, &n));
    CHECK(n == MPI_IDENT);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_difference(world, one, &group));
    OK(MPI_Group_free(&group));
    OK(MPI_Group_intersection(world, one, &group));
    OK(MPI_Group_size(group, &n));
    CHECK(n == 1 && MPI_Group_fromint(MPI_Group_toint(group)) == group);
    OK(MPI_Group_rank(group, &n));
    OK(MPI_Group_translate_ranks(group, 1, &zero, world, &other));
    CHECK(other == 0);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_excl(world, 1, &zero, &group));
    OK(MPI_Group_free(&group));
    OK(MPI_Group_range_incl(world, 1, ranges, &group));
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&one));
    OK(MPI_Group_free(&others));
    OK(MPI_Group_free(&world));
}

static inline void local_sessions(void)
{
    MPI_Session session;
    MPI_Info info;
    MPI_Group group;
    MPI_Errhandler handler;
    char name[32];
    int n, length = sizeof name;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
    CHECK(MPI_Session_fromint(MPI_Session_toint(session)) == session);
    OK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &n));
    OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, name));
    OK(MPI_Session_get_pset_info(session, name, &info));
    OK(MPI_Info_free(&info));
    OK(MPI_Session_get_info(session, &info));
    OK(MPI_Info_free(&info));
    OK(MPI_Group_from_session_pset(session, name, &group));
    OK(MPI_Group_free(&group));
    OK(MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN));
    OK(MPI_Session_get_errhandler(session, &handler));
    OK(MPI_Session_call_errhandler(session, MPI_ERR_OTHER));
    OK(MPI_Session_finalize(&session));
    OK(MPI_Comm_get_info(MPI_COMM_SELF, &info));
    OK(MPI_Info_free(&info));
}

static MPI_Comm local_grid = MPI_COMM_NULL, local_graph = MPI_COMM_NULL, local_dist = MPI_COMM_NULL;

/* Before the first call of local_calls or unlocked_calls: makes the communicators that they query. After the last: local_release. */
static inline void local_prepare(void)
{
    const int one = 1, zero = 0;
    OK(MPI_Cart_create(MPI_COMM_SELF, 1, &one, &one, 0, &local_grid));
    OK(MPI_Graph_create(MPI_COMM_SELF, 1, &one, &zero, 0, &local_graph));
    OK(MPI_Dist_graph_create(MPI_COMM_SELF, 1, &zero, &one, &zero, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &local_dist));
}

static inline void local_release(void)
{
    OK(MPI_Comm_free(&local_grid));
    OK(MPI_Comm_free(&local_graph));
    OK(MPI_Comm_free(&local_dist));
}

static inline void local_graphs(void)
{
    int a = -1, b = -1, c = -1, index = -1, edge = -1;
    OK(MPI_Graphdims_get(local_graph, &a, &b));
    OK(MPI_Graph_get(local_graph, 1, 1, &index, &edge));
    CHECK(a == 1 && b == 1 && index == 1 && edge == 0);
    OK(MPI_Graph_neighbors_count(local_graph, 0, &a));
    OK(MPI_Graph_neighbors(local_graph, 0, 1, &b));
    CHECK(a == 1 && b == 0);
    OK(MPI_Graph_map(local_graph, 1, &index, &edge, &a));
    CHECK(a == 0);
    OK(MPI_Dist_graph_neighbors_count(local_dist, &a, &b, &c));
    CHECK(a == 1 && b == 1 && !c);
    OK(MPI_Dist_graph_neighbors(local_dist, 1, &a, MPI_UNWEIGHTED, 1, &b, MPI_UNWEIGHTED));
    CHECK(a == 0 && b == 0);
}

static inline void local_topologies(void)
{
    int dims[2] = {0, 0}, periods[2], coords[2], a = -1, b = -1;
    OK(MPI_Dims_create(6, 2, dims));
    CHECK(dims[0] == 3 && dims[1] == 2);
    OK(MPI_Topo_test(local_grid, &a));
    CHECK(a == MPI_CART);
    OK(MPI_Cartdim_get(local_grid, &a));
    OK(MPI_Cart_get(local_grid, 2, dims, periods, coords));
    CHECK(a == 1 && dims[0] == 1 && periods[0] == 1 && coords[0] == 0);
    OK(MPI_Cart_coords(local_grid, 0, 2, coords));
    OK(MPI_Cart_rank(local_grid, coords, &a));
    OK(MPI_Cart_shift(local_grid, 0, 5, &a, &b));
    CHECK(a == 0 && b == 0);
    OK(MPI_Cart_map(local_grid, 1, dims, periods, &a));
    CHECK(a == 0);
}

static inline void unlocked_calls(void)
{
    local_topologies();
    local_graphs();
    local_types();
    local_type_constructors();
    local_type_searches();
    local_external();
    local_ops();
    local_packing();
    local_statuses();
    local_environment();
    local_groups();
    local_errhandler_objects();
    local_attributes();
    local_sessions();
    local_abi();
    local_error_codes();
    local_infos();
    local_tool_variables();
    local_tool_events();
}

/* Locked: mutable state of communicators, memory, requests. MPI_COMM_SELF's handler must be MPI_ERRORS_RETURN. */
static inline void local_comms(void)
{
    MPI_Errhandler handler;
    char name[MPI_MAX_OBJECT_NAME], *memory;
    int length, size;
    OK(MPI_Comm_set_name(MPI_COMM_SELF, "self"));
    OK(MPI_Comm_get_name(MPI_COMM_SELF, name, &length));
    CHECK(!strcmp(name, "self"));
    OK(MPI_Comm_get_errhandler(MPI_COMM_SELF, &handler));
    CHECK(handler == MPI_ERRORS_RETURN);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, handler));
    OK(MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_IO));
    CHECK(MPI_Comm_remote_size(MPI_COMM_SELF, &size) == MPI_ERR_COMM);
    CHECK(MPI_Comm_remote_group(MPI_COMM_SELF, &(MPI_Group){MPI_GROUP_NULL}) == MPI_ERR_COMM);
    CHECK(MPI_Type_size(MPI_DATATYPE_NULL, &size) == MPI_ERR_TYPE);
    CHECK(MPI_Abi_set_fortran_info(MPI_INFO_NULL) == MPI_ERR_INFO);
    CHECK(MPI_Abi_set_fortran_booleans(3, &size, &size) == MPI_ERR_ARG);
    OK(MPI_Alloc_mem(100000, MPI_INFO_NULL, &memory));
    memory[99999] = 1;
    OK(MPI_Free_mem(memory));
}

static inline int local_query(void *state, MPI_Status *status)
{
    (void)state;
    return MPI_Status_set_elements(status, MPI_INT, 1);
}
static inline int local_free(void *state)
{
    (void)state;
    return MPI_SUCCESS;
}
static inline int local_cancel(void *state, int complete)
{
    (void)state;
    (void)complete;
    return MPI_SUCCESS;
}

static inline void local_requests(void)
{
    int x = 0, flag, index, count;
    MPI_Request partitioned[2], reqs[5], none[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Message message = MPI_MESSAGE_NO_PROC;
    OK(MPI_Send_init(&x, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &reqs[0]));
    OK(MPI_Ssend_init(&x, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &reqs[1]));
    OK(MPI_Rsend_init(&x, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &reqs[2]));
    OK(MPI_Recv_init(&x, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &reqs[3]));
    OK(MPI_Psend_init(&x, 2, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, MPI_INFO_NULL, &partitioned[0]));
    OK(MPI_Precv_init(&x, 1, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, MPI_INFO_NULL, &partitioned[1]));
    OK(MPI_Startall(2, partitioned));
    OK(MPI_Pready(1, partitioned[0]));
    OK(MPI_Pready_list(0, NULL, partitioned[0]));
    OK(MPI_Pready_range(0, 0, partitioned[0]));
    OK(MPI_Parrived(partitioned[1], 0, &flag));
    OK(MPI_Waitall(2, partitioned, MPI_STATUSES_IGNORE));
    OK(MPI_Request_free(&partitioned[0]));
    OK(MPI_Request_free(&partitioned[1]));
    OK(MPI_Bsend_init(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, &reqs[4]));
    OK(MPI_Request_get_status(reqs[0], &flag, MPI_STATUS_IGNORE));
    CHECK(flag);
    for (int i = 0; i < 5; i++)
        OK(MPI_Request_free(&reqs[i]));
    OK(MPI_Bsend(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF));
    OK(MPI_Ibsend(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, &reqs[0]));
    OK(MPI_Wait(&reqs[0], MPI_STATUS_IGNORE));
    OK(MPI_Mrecv(&x, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
    message = MPI_Message_fromint(MPI_Message_toint(MPI_MESSAGE_NO_PROC));
    OK(MPI_Imrecv(&x, 1, MPI_INT, &message, &reqs[4]));
    OK(MPI_Wait(&reqs[4], MPI_STATUS_IGNORE));
    OK(MPI_Grequest_start(local_query, local_free, local_cancel, NULL, &reqs[4]));
    OK(MPI_Grequest_complete(reqs[4]));
    OK(MPI_Wait(&reqs[4], MPI_STATUS_IGNORE));
    OK(MPI_Request_get_status_all(2, none, &flag, MPI_STATUSES_IGNORE));
    OK(MPI_Request_get_status_any(2, none, &index, &flag, MPI_STATUS_IGNORE));
    OK(MPI_Request_get_status_some(2, none, &count, &index, MPI_STATUSES_IGNORE));
    OK(MPI_Test(&none[0], &flag, MPI_STATUS_IGNORE));
    OK(MPI_Testall(2, none, &flag, MPI_STATUSES_IGNORE));
    OK(MPI_Testany(2, none, &index, &flag, MPI_STATUS_IGNORE));
    OK(MPI_Testsome(2, none, &count, &index, MPI_STATUSES_IGNORE));
    CHECK(count == MPI_UNDEFINED);
    OK(MPI_Wait(&none[0], MPI_STATUS_IGNORE));
    OK(MPI_Waitall(2, none, MPI_STATUSES_IGNORE));
    OK(MPI_Waitany(2, none, &index, MPI_STATUS_IGNORE));
    OK(MPI_Waitsome(2, none, &count, &index, MPI_STATUSES_IGNORE));
}

static inline void local_calls(void)
{
    unlocked_calls();
    local_comms();
    local_requests();
}

#endif
