/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi-ext.h: what this library has beyond MPI 5.0, each part with a macro by which programs can ask for it. C and C++.
 * Generated from the tables of src/api: change those, then run src/api/gen_api --extensions include/mpi-ext.h.
 */
#ifndef WEFT_MPI_EXT_H
#define WEFT_MPI_EXT_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Notified access: the target of a put or get counts it, and can wait for it. Manual pages MPIX_Put_notify(3), MPIX_Win_notify_wait(3). */
#define MPIX_NOTIFIED_ACCESS 1

int MPIX_Get_notify(void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
    int target_count, MPI_Datatype target_datatype, MPI_Win win, int id);
int MPIX_Get_notify_c(void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint
    target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win, int id);
int PMPIX_Get_notify(void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
    int target_count, MPI_Datatype target_datatype, MPI_Win win, int id);
int PMPIX_Get_notify_c(void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint
    target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win, int id);
int MPIX_Put_notify(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint
    target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win, int id);
int MPIX_Put_notify_c(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint
    target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win, int id);
int PMPIX_Put_notify(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint
    target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win, int id);
int PMPIX_Put_notify_c(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint
    target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win, int id);
int MPIX_Win_notify_init(MPI_Win win, int count);
int PMPIX_Win_notify_init(MPI_Win win, int count);
int MPIX_Win_notify_reset(MPI_Win win, int id, MPI_Count *value);
int PMPIX_Win_notify_reset(MPI_Win win, int id, MPI_Count *value);
int MPIX_Win_notify_test(MPI_Win win, int id, MPI_Count threshold, int *flag, MPI_Count *value);
int PMPIX_Win_notify_test(MPI_Win win, int id, MPI_Count threshold, int *flag, MPI_Count *value);
int MPIX_Win_notify_wait(MPI_Win win, int id, MPI_Count threshold, MPI_Count *value);
int PMPIX_Win_notify_wait(MPI_Win win, int id, MPI_Count threshold, MPI_Count *value);
int MPIX_Win_notify_waitany(MPI_Win win, int count, const int ids[], const MPI_Count thresholds[], int *index, MPI_Count
    *value);
int PMPIX_Win_notify_waitany(MPI_Win win, int count, const int ids[], const MPI_Count thresholds[], int *index, MPI_Count
    *value);

#ifdef __cplusplus
}
#endif

#endif
