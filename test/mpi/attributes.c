/* np: 1 2 4 : attributes of communicators and datatypes: callbacks with their arguments, order and errors; freed keys; predefined ones */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

static int copies, deletes, failing, order[16], keys[4];
static intptr_t last_value;
static MPI_Comm last_comm;

static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    int size;
    CHECK(MPI_Comm_size(comm, &size) == MPI_SUCCESS && extra == (void *)&copies);
    copies++;
    *(intptr_t *)out = (intptr_t)in + 100;
    *flag = key != keys[1];
    return failing ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int delete(MPI_Comm comm, int key, void *value, void *extra)
{
    CHECK(extra == (void *)&copies);
    last_comm = comm;
    last_value = (intptr_t)value;
    order[deletes++ % 16] = key;
    return failing ? MPI_ERR_ARG : MPI_SUCCESS;
}

static intptr_t get(MPI_Comm comm, int key)
{
    void *value = NULL;
    int flag = -1;
    OK(MPI_Comm_get_attr(comm, key, &value, &flag));
    CHECK(flag == 0 || flag == 1);
    return flag ? (intptr_t)value : -1;
}

static void duplicates(void)
{
    MPI_Comm dup, again;
    copies = deletes = 0;
    for (int i = 0; i < 3; i++)
        OK(MPI_Comm_create_keyval(copy, delete, &keys[i], &copies));
    OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &keys[3], NULL));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    for (int i = 0; i < 4; i++) {
        CHECK(get(dup, keys[i]) == -1);
        OK(MPI_Comm_set_attr(dup, keys[i], (void *)(intptr_t)(i + 1)));
        CHECK(get(dup, keys[i]) == i + 1 && get(MPI_COMM_WORLD, keys[i]) == -1);
    }
    OK(MPI_Comm_dup(dup, &again));
    CHECK(copies == 3 && get(again, keys[0]) == 101 && get(again, keys[1]) == -1 && get(again, keys[2]) == 103 && get(again, keys[3]) == 4);
    OK(MPI_Comm_set_attr(dup, keys[0], (void *)(intptr_t)7)); /* deletes the old value first */
    CHECK(deletes == 1 && last_value == 1 && last_comm == dup && get(dup, keys[0]) == 7);
    OK(MPI_Comm_delete_attr(dup, keys[0]));
    CHECK(deletes == 2 && last_value == 7 && get(dup, keys[0]) == -1);
    CHECK(class_of(MPI_Comm_delete_attr(dup, keys[0])) == MPI_ERR_KEYVAL);
    deletes = 0;
    OK(MPI_Comm_free(&dup));
    CHECK(deletes == 2 && order[0] == keys[2] && order[1] == keys[1]); /* the latest first */
    OK(MPI_Comm_free(&again));
    CHECK(deletes == 4);
    for (int i = 0; i < 4; i++) {
        OK(MPI_Comm_free_keyval(&keys[i]));
        CHECK(keys[i] == MPI_KEYVAL_INVALID);
    }
}

/* MPI_Comm_split copies no attributes. A freed key stays valid for the attributes that have it. */
static void freed_key(void)
{
    MPI_Comm comm, dup, part;
    int key, stale;
    copies = deletes = 0;
    OK(MPI_Comm_create_keyval(copy, delete, &key, &copies));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    OK(MPI_Comm_set_attr(comm, key, (void *)(intptr_t)5));
    OK(MPI_Comm_split(comm, 0, 0, &part));
    CHECK(get(part, key) == -1 && copies == 0);
    stale = key;
    OK(MPI_Comm_free_keyval(&key));
    CHECK(class_of(MPI_Comm_set_attr(comm, stale, NULL)) == MPI_ERR_KEYVAL);
    OK(MPI_Comm_dup(comm, &dup));
    CHECK(copies == 1);
    OK(MPI_Comm_free(&comm));
    CHECK(deletes == 1 && last_value == 5 && order[0] == stale); /* the function gets the key that the program had */
    OK(MPI_Comm_free(&dup));
    CHECK(deletes == 2 && last_value == 105);
    OK(MPI_Comm_free(&part));
}

/* A failing copy function fails MPI_Comm_dup on all members, a failing delete function keeps attribute and communicator. */
static void failures(void)
{
    MPI_Comm comm, dup = MPI_COMM_NULL;
    int rank, size, code;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_create_keyval(copy, delete, &keys[0], &copies));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_attr(comm, keys[0], (void *)(intptr_t)1));
    failing = rank == 0;
    code = MPI_Comm_dup(comm, &dup);
    CHECK(code != MPI_SUCCESS && dup == MPI_COMM_NULL && (rank || code == MPI_ERR_OTHER));
    deletes = 0;
    failing = 1;
    CHECK(MPI_Comm_delete_attr(comm, keys[0]) == MPI_ERR_ARG && get(comm, keys[0]) == 1);
    CHECK(MPI_Comm_set_attr(comm, keys[0], NULL) == MPI_ERR_ARG && get(comm, keys[0]) == 1);
    CHECK(MPI_Comm_free(&comm) == MPI_ERR_ARG && comm != MPI_COMM_NULL && get(comm, keys[0]) == 1 && deletes == 3);
    failing = 0;
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_free_keyval(&keys[0]));
}

static void predefined(void)
{
    int *value = NULL, flag = 0, size, key = MPI_TAG_UB;
    MPI_Comm dup;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag));
    CHECK(flag && *value >= 32767);
    OK(MPI_Comm_get_attr(dup, MPI_TAG_UB, &value, &flag));
    CHECK(flag && *value >= 32767);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &value, &flag));
    CHECK(flag && *value == MPI_ANY_SOURCE);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag));
    CHECK(flag && (*value == 0 || *value == 1));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag));
    CHECK(flag && *value == 0);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag));
    CHECK(!flag || *value >= size);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag));
    CHECK(flag && *value >= MPI_ERR_LASTCODE);
    CHECK(class_of(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, value)) == MPI_ERR_KEYVAL);
    CHECK(class_of(MPI_Comm_delete_attr(MPI_COMM_WORLD, MPI_IO)) == MPI_ERR_KEYVAL);
    CHECK(class_of(MPI_Comm_free_keyval(&key)) == MPI_ERR_KEYVAL);
    CHECK(class_of(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_KEYVAL_INVALID, &value, &flag)) == MPI_ERR_KEYVAL);
    CHECK(class_of(MPI_Comm_get_attr(MPI_COMM_WORLD, 12345678, &value, &flag)) == MPI_ERR_KEYVAL);
    OK(MPI_Comm_free(&dup));
}

static int type_copies, type_deletes;

static int type_copy(MPI_Datatype type, int key, void *extra, void *in, void *out, int *flag)
{
    (void)type, (void)key, (void)extra;
    type_copies++;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int type_delete(MPI_Datatype type, int key, void *value, void *extra)
{
    (void)type, (void)key, (void)extra;
    type_deletes += (int)(intptr_t)value;
    return MPI_SUCCESS;
}

static void types(void)
{
    MPI_Datatype type, dup;
    int key, comm_key, win_key, flag;
    void *value;
    OK(MPI_Type_create_keyval(type_copy, type_delete, &key, NULL));
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    OK(MPI_Type_set_attr(type, key, (void *)(intptr_t)3));
    OK(MPI_Type_set_attr(MPI_INT, key, (void *)(intptr_t)20)); /* predefined types have attributes too */
    OK(MPI_Type_dup(type, &dup));
    OK(MPI_Type_get_attr(dup, key, &value, &flag));
    CHECK(flag && value == (void *)(intptr_t)3 && type_copies == 1);
    OK(MPI_Type_free(&type));
    CHECK(type_deletes == 3);
    OK(MPI_Type_delete_attr(dup, key));
    CHECK(type_deletes == 6);
    OK(MPI_Type_free(&dup));
    CHECK(type_deletes == 6);
    OK(MPI_Type_get_attr(MPI_INT, key, &value, &flag));
    CHECK(flag && value == (void *)(intptr_t)20);
    OK(MPI_Type_get_attr(MPI_DOUBLE, key, &value, &flag));
    CHECK(!flag);
    OK(MPI_Type_delete_attr(MPI_INT, key));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &comm_key, NULL));
    OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &win_key, NULL));
    CHECK(class_of(MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL)) == MPI_ERR_KEYVAL);
    CHECK(class_of(MPI_Type_set_attr(MPI_INT, comm_key, NULL)) == MPI_ERR_KEYVAL);
    CHECK(class_of(MPI_Type_free_keyval(&win_key)) == MPI_ERR_KEYVAL);
    OK(MPI_Type_free_keyval(&key));
    OK(MPI_Comm_free_keyval(&comm_key));
    OK(MPI_Win_free_keyval(&win_key));
}

/* The deprecated names. */
static void old_names(void)
{
    int key, flag;
    void *value;
    deletes = 0;
    OK(MPI_Keyval_create(MPI_DUP_FN, delete, &key, &copies));
    OK(MPI_Attr_put(MPI_COMM_SELF, key, (void *)(intptr_t)9));
    OK(MPI_Attr_get(MPI_COMM_SELF, key, &value, &flag));
    CHECK(flag && value == (void *)(intptr_t)9);
    OK(MPI_Attr_delete(MPI_COMM_SELF, key));
    CHECK(deletes == 1);
    OK(MPI_Keyval_free(&key));
}

static int again_key, again_calls;

/* Sets the attribute that is being deleted. */
static int set_again(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)value, (void)extra;
    if (again_calls++ == 0)
        OK(MPI_Comm_set_attr(comm, key, (void *)(intptr_t)77));
    return MPI_SUCCESS;
}

/* Frees the communicator whose attribute is copied or deleted. */
static int free_while_copied(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    (void)key, (void)extra, (void)in, (void)out;
    *flag = 0;
    OK(MPI_Comm_free(&comm));
    return MPI_SUCCESS;
}

static int free_while_deleted(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)key, (void)value, (void)extra;
    OK(MPI_Comm_free(&comm));
    return MPI_SUCCESS;
}

/* Callbacks that change the object that they are called for. */
static void callbacks_change_the_object(void)
{
    MPI_Comm comm, dup;
    int key;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, set_again, &again_key, NULL));
    OK(MPI_Comm_set_attr(comm, again_key, (void *)(intptr_t)1));
    OK(MPI_Comm_set_attr(comm, again_key, (void *)(intptr_t)2));
    CHECK(get(comm, again_key) == 2);
    OK(MPI_Comm_delete_attr(comm, again_key));
    CHECK(get(comm, again_key) == -1); /* there was one only */
    OK(MPI_Comm_free_keyval(&again_key));
    OK(MPI_Comm_create_keyval(free_while_copied, MPI_COMM_NULL_DELETE_FN, &key, NULL));
    OK(MPI_Comm_set_attr(comm, key, NULL));
    OK(MPI_Comm_dup(comm, &dup)); /* comm is gone then */
    OK(MPI_Comm_free_keyval(&key));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_while_deleted, &key, NULL));
    OK(MPI_Comm_set_attr(dup, key, NULL));
    CHECK(class_of(MPI_Comm_free(&dup)) == MPI_ERR_COMM);
    OK(MPI_Comm_free_keyval(&key));
}

static int at_end_calls;

/* Runs in MPI_Finalize, which is not over yet. */
static int at_end(MPI_Comm comm, int key, void *value, void *extra)
{
    int finalized = 1, size = 0;
    (void)key, (void)extra;
    OK(MPI_Finalized(&finalized));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(!finalized && size > 0 && comm == MPI_COMM_SELF && (int)(intptr_t)value == 2 - at_end_calls);
    return at_end_calls++ == 0 ? MPI_ERR_OTHER : MPI_SUCCESS; /* a failure does not keep the others from being called */
}

int main(void)
{
    int key[2];
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    duplicates();
    freed_key();
    failures();
    predefined();
    types();
    old_names();
    callbacks_change_the_object();
    for (int i = 0; i < 2; i++) {
        OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_end, &key[i], NULL));
        OK(MPI_Comm_set_attr(MPI_COMM_SELF, key[i], (void *)(intptr_t)(i + 1)));
    }
    OK(MPI_Finalize());
    CHECK(at_end_calls == 2);
    return 0;
}
