! ranks: 1 2 3 8
! SPDX-License-Identifier: BSD-3-Clause
!
! collectives_f08: collective calls of mpi_f08 on sections of arrays: by a datatype where a block describes them, else by a copy.
program collectives_f08
  use mpi_f08
  implicit none
  integer :: rank, ranks, i, j
  integer, allocatable :: all_(:), wide(:, :)
  integer, asynchronous :: a(6), b(6), m(4, 4)
  type(MPI_Request) :: request
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  allocate (all_(6*ranks), wide(2, 3*ranks))
  a = [(10*rank + i, i = 1, 6)]
  wide = -1
  call MPI_Allgather(a(1:6:2), 3, MPI_INTEGER, wide(2, :), 3, MPI_INTEGER, MPI_COMM_WORLD)
  call must(all(wide(2, :) == [((10*(j - 1) + i, i = 1, 5, 2), j = 1, ranks)]) .and. all(wide(1, :) == -1), 'Allgather')
  b = -1
  call MPI_Allreduce(a(2:6:2), b(1:6:2), 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call must(all(b(1:6:2) == [(10*ranks*(ranks - 1)/2 + ranks*i, i = 2, 6, 2)]) .and. all(b(2:6:2) == -1), 'Allreduce')
  b = a
  call MPI_Allreduce(MPI_IN_PLACE, b(6:2:-2), 3, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD)
  call must(all(b == [10*rank + 1, 10*ranks - 8, 10*rank + 3, 10*ranks - 6, 10*rank + 5, 10*ranks - 4]), 'Allreduce in place')
  m = 0
  if (rank == 0) m = reshape([(i, i = 1, 16)], [4, 4])
  call MPI_Ibcast(m(1:3:2, 2:4:2), 4, MPI_INTEGER, 0, MPI_COMM_WORLD, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call must(all(m(1:3:2, 2:4:2) == reshape([5, 7, 13, 15], [2, 2])) .and. (rank == 0 .or. sum(m) == 40), 'Ibcast')
  all_ = [(i, i = 1, 6*ranks)]
  b = 0
  call MPI_Scatter(all_(6*ranks:2:-2), 3_MPI_COUNT_KIND, MPI_INTEGER, b(2:6:2), 3_MPI_COUNT_KIND, MPI_INTEGER, 0, MPI_COMM_WORLD)
  call must(all(b == [0, 6*ranks - 6*rank, 0, 6*ranks - 6*rank - 2, 0, 6*ranks - 6*rank - 4]), 'Scatter')
  call MPI_Finalize()
  if (rank == 0) print *, 'ok'
contains
  include 'must.inc'
end program
