/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_absolute: collectives from MPI_BOTTOM to MPI_BOTTOM with two absolute types: equal addresses are different buffers. On one rank,
 * which copies its own block; immediate and recorded. No MPI program can make absolute types yet.
 */
#include <CUnit/Basic.h>
#include <CUnit/CUnit.h>

#include "launch/boot.h"
#include "mpi/calls.h"
#include "mpi/init.h"
#include "p2p/dispatch.h"

enum { COUNT = 5 };

static weft_world *world;
static int from[COUNT], to[COUNT];
static weft_type *from_type, *to_type;

static int open_all(void)
{
    weft_boot *boot;
    int64_t length = COUNT, at[2] = {(intptr_t)from, (intptr_t)to};
    const weft_type *integer = weft_type_of(MPI_INT);
    if (weft_boot_start(&boot) || weft_p2p_open(boot, MPI_THREAD_SINGLE, &world) || weft_mpi_world_open(world))
        return -1;
    return weft_type_hindexed(1, &length, &at[0], integer, &from_type) || weft_type_commit(from_type) ||
           weft_type_hindexed(1, &length, &at[1], integer, &to_type) || weft_type_commit(to_type);
}

static int close_all(void)
{
    weft_type_drop(from_type);
    weft_type_drop(to_type);
    weft_mpi_world_close(world);
    return weft_world_close(world);
}

static void begin(void)
{
    for (int i = 0; i < COUNT; i++) {
        from[i] = i + 1;
        to[i] = -1;
    }
}

static void end(int rc)
{
    CU_ASSERT(rc == 0);
    for (int i = 0; i < COUNT; i++)
        CU_ASSERT(to[i] == i + 1 && from[i] == i + 1);
}

static void test_blocking(void)
{
    weft_comm *comm = weft_mpi_now()->comm_self;
    begin();
    end(weft_mpi_allgather(MPI_BOTTOM, 1, from_type, MPI_BOTTOM, 1, to_type, comm));
    begin();
    end(weft_mpi_alltoall(MPI_BOTTOM, 1, from_type, MPI_BOTTOM, 1, to_type, comm));
    begin();
    end(weft_mpi_gather(MPI_BOTTOM, 1, from_type, MPI_BOTTOM, 1, to_type, 0, comm));
    begin();
    end(weft_mpi_scatter(MPI_BOTTOM, 1, from_type, MPI_BOTTOM, 1, to_type, 0, comm));
}

static int finish(int rc, MPI_Request *req) { return rc ? rc : weft_mpi_wait(req, MPI_STATUS_IGNORE); }

static void test_recorded(void)
{
    weft_comm *comm = weft_mpi_now()->comm_self;
    MPI_Request req;
    begin();
    end(finish(weft_mpi_iallgather(MPI_BOTTOM, 1, from_type, MPI_BOTTOM, 1, to_type, comm, &req), &req));
    begin();
    end(finish(weft_mpi_ialltoall(MPI_BOTTOM, 1, from_type, MPI_BOTTOM, 1, to_type, comm, &req), &req));
    begin();
    end(finish(weft_mpi_igather(MPI_BOTTOM, 1, from_type, MPI_BOTTOM, 1, to_type, 0, comm, &req), &req));
    begin();
    end(finish(weft_mpi_iscatter(MPI_BOTTOM, 1, from_type, MPI_BOTTOM, 1, to_type, 0, comm, &req), &req));
}

int main(void)
{
    CU_pSuite suite;
    unsigned failed;
    if (CU_initialize_registry() || !(suite = CU_add_suite("absolute", open_all, close_all)))
        return 2;
    CU_add_test(suite, "blocking", test_blocking);
    CU_add_test(suite, "recorded", test_recorded);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    failed = CU_get_number_of_failures() + CU_get_number_of_suites_failed();
    CU_cleanup_registry();
    return failed != 0;
}
