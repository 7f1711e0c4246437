/* SPDX-License-Identifier: BSD-3-Clause
 * observer: a library of its own MPI session (no MPI_Init). Its first process observes; the others work and report structs to it over an
 * intercommunicator.
 * mpicc observer.c -o observer && mpirun -n 4 ./observer        Exit code: 0 all reports came and are right, 1 they did not.
 */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>

enum { REPORTS = 10 };

typedef struct report {
    int worker, number;
    double result;
    char state[8];
} report;

/* All processes of the job, as a communicator that belongs to this session alone. */
static MPI_Comm open_library(MPI_Session *session)
{
    MPI_Group group;
    MPI_Comm comm;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, session);
    MPI_Group_from_session_pset(*session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "org.example.observer", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    return comm;
}

/* The extent is the struct's own, so that arrays of reports can be sent too. */
static MPI_Datatype report_type(void)
{
    const int lengths[3] = {2, 1, 8};
    const MPI_Aint places[3] = {offsetof(report, worker), offsetof(report, result), offsetof(report, state)};
    const MPI_Datatype types[3] = {MPI_INT, MPI_DOUBLE, MPI_CHAR};
    MPI_Datatype packed, type;
    MPI_Type_create_struct(3, lengths, places, types, &packed);
    MPI_Type_create_resized(packed, 0, sizeof(report), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&packed);
    return type;
}

static void work(MPI_Comm observers, MPI_Datatype type, int me)
{
    for (int i = 0; i < REPORTS; i++) {
        report one = {.worker = me, .number = i, .result = me + i / 100.0, .state = "running"};
        if (i == REPORTS - 1)
            snprintf(one.state, sizeof one.state, "done");
        MPI_Send(&one, 1, type, 0, 0, observers); /* rank 0 of the other group */
    }
}

/* Returns the number of wrong or missing reports. */
static int observe(MPI_Comm workers, MPI_Datatype type)
{
    int count, running, wrong = 0, next[1024] = {0};
    MPI_Comm_remote_size(workers, &count);
    for (running = count; running > 0;) {
        report one;
        MPI_Status status;
        MPI_Recv(&one, 1, type, MPI_ANY_SOURCE, 0, workers, &status);
        wrong += one.worker != status.MPI_SOURCE || one.result != one.worker + one.number / 100.0;
        if (one.worker >= 0 && one.worker < 1024)
            wrong += one.number != next[one.worker]++;
        running -= one.state[0] == 'd';
    }
    printf("observer: %d workers, %d reports each, %d wrong\n", count, REPORTS, wrong);
    return wrong;
}

int main(void)
{
    MPI_Session session;
    MPI_Comm all = open_library(&session), side, others;
    MPI_Datatype type = report_type();
    int rank, size, me, wrong = 0;
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    if (size < 2 || size > 1024) {
        if (rank == 0)
            fprintf(stderr, "observer: needs 2 to 1024 processes\n");
        wrong = 1;
    } else {
        MPI_Comm_split(all, rank > 0, rank, &side);
        MPI_Comm_rank(side, &me);
        MPI_Intercomm_create(side, 0, all, rank > 0 ? 0 : 1, 0, &others);
        if (rank > 0)
            work(others, type, me);
        else
            wrong = observe(others, type);
        MPI_Comm_free(&others);
        MPI_Comm_free(&side);
        MPI_Bcast(&wrong, 1, MPI_INT, 0, all);
    }
    MPI_Type_free(&type);
    MPI_Comm_free(&all);
    MPI_Session_finalize(&session);
    return wrong != 0;
}
