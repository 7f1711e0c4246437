/* SPDX-License-Identifier: BSD-3-Clause
 *
 * languages: C's side of languages.f90: attributes by the examples of MPI 5.0 19.3.7, handles, callbacks, and tools in C.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int c_sends;

/* A tool in C sees the calls of both languages. */
int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    c_sends++;
    return PMPI_Send(buf, count, datatype, dest, tag, comm);
}

int c_sends_(void) { return c_sends; }

static void must(int is, const char *what)
{
    if (is)
        return;
    printf("not so in C: %s\n", what);
    fflush(stdout);
    exit(1);
}

static int pointed = 3;

/* C sets: a pointer, and an integer. */
void c_set_(const int *comm, const int *key1, const int *key3)
{
    MPI_Comm_set_attr(MPI_Comm_f2c(*comm), *key1, &pointed);
    MPI_Comm_set_attr(MPI_Comm_f2c(*comm), *key3, (void *)17);
}

MPI_Aint c_address_(void) { return (MPI_Aint)&pointed; }

/* Fortran has set 42, 2**40 by MPI_COMM_SET_ATTR and 7 by MPI_ATTR_PUT. */
void c_get_(const int *comm, const int *key1, const int *key2, const int *key3)
{
    MPI_Aint *one, *two;
    int *three, flag;
    MPI_Comm_get_attr(MPI_Comm_f2c(*comm), *key1, &one, &flag);
    must(flag && *one == 42, "42");
    MPI_Comm_get_attr(MPI_Comm_f2c(*comm), *key2, &two, &flag);
    must(flag && *two == (MPI_Aint)1 << 40, "2**40");
    MPI_Comm_get_attr(MPI_Comm_f2c(*comm), *key3, &three, &flag);
    must(flag && *three == 7, "7");
}

/* Uses what Fortran made: an operator, a datatype, an error handler, a key with functions in Fortran. */
void c_use_(const int *op, const int *datatype, const int *comm)
{
    int a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, size;
    MPI_Comm made;
    MPI_Reduce_local(a, b, 4, MPI_INTEGER, MPI_Op_f2c(*op));
    must(b[0] == 15 && b[3] == 48, "operator of Fortran called from C");
    MPI_Type_size(MPI_Type_f2c(*datatype), &size);
    must(size == 12, "datatype of Fortran");
    must(MPI_Send(a, 1, MPI_INT, 12345, 0, MPI_Comm_f2c(*comm)) == MPI_ERR_RANK, "error handler of Fortran called from C");
    MPI_Comm_dup(MPI_Comm_f2c(*comm), &made);
    MPI_Comm_free(&made);
}

static int copies;

static int c_copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)key, (void)extra;
    copies++;
    must(*(MPI_Aint *)in == 99, "value of Fortran in a copy function of C");
    *(void **)out = (void *)100;
    *flag = 1;
    return MPI_SUCCESS;
}

void c_key_(int *key) { MPI_Comm_create_keyval(c_copy, MPI_COMM_NULL_DELETE_FN, key, NULL); }

int c_copies_(void) { return copies; }

/* MPI_Comm_split of C for Fortran. */
int c_comm_(const int *comm)
{
    MPI_Comm made;
    MPI_Comm_split(MPI_Comm_f2c(*comm), 0, 0, &made);
    return MPI_Comm_c2f(made);
}
