! ranks: 1 2 3
! SPDX-License-Identifier: BSD-3-Clause
!
! staged_f08: sections with gaps as buffers that no datatype describes: nonblocking and persistent reductions, partitioned messages; vector
! and all-to-all forms, one-sided operations on one item, and what must be refused.
program staged_f08
  use mpi_f08
  implicit none
  integer :: rank, ranks, i, j, round
  integer, asynchronous :: a(8), b(8), m(3, 4), item(4), result(4)
  integer, allocatable, asynchronous :: wide(:, :), from(:), to(:), counts(:), places(:)
  type(MPI_Request) :: request
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  allocate (wide(3, 2*ranks), from(4*ranks), to(4*ranks), counts(ranks), places(ranks))
  call nonblocking()
  call persistent()
  call vectors()
  call all_to_all()
  call partitioned()
  call one_sided()
  call refused()
  call MPI_Finalize()
  if (rank == 0) print *, 'ok'
contains
  include 'must.inc'

  subroutine nonblocking()
    logical :: flag
    a = [(10*rank + i, i = 1, 8)]
    b = -1
    call MPI_Iallreduce(a(2:8:2), b(7:1:-2), 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
    b(2:8:2) = -2 ! gaps are the program's meanwhile
    flag = .false.
    do while (.not. flag)
      call MPI_Request_get_status(request, flag, MPI_STATUS_IGNORE)
    end do
    call must(all(b(7:1:-2) == [(10*ranks*(ranks - 1)/2 + ranks*i, i = 2, 8, 2)]), 'Iallreduce, Request_get_status')
    b(1) = -3 ! not written again
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call must(b(1) == -3 .and. all(b(2:8:2) == -2), 'Iallreduce')
    m = reshape([(100*rank + i, i = 1, 12)], [3, 4])
    call MPI_Iallreduce(MPI_IN_PLACE, m(1:3:2, 2:4:2), 3, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, request)
    m(3, 4) = -7 ! beyond the count
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call must(all(m(1:3:2, 2) == 100*(ranks - 1) + [4, 6]) .and. m(1, 4) == 100*(ranks - 1) + 10 .and. m(3, 4) == -7 .and. &
              all(m(2, :) == 100*rank + [2, 5, 8, 11]) .and. all(m(:, 1) == 100*rank + [1, 2, 3]), 'Iallreduce in place')
    call MPI_Iscan(a(1:8:4), b(1:8:4), 2_MPI_COUNT_KIND, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call must(all(b(1:8:4) == 10*rank*(rank + 1)/2 + (rank + 1)*[1, 5]), 'Iscan')
  end subroutine

  subroutine persistent()
    type(MPI_Request) :: two(2)
    call MPI_Allreduce_init(a(1:8:2), b(2:8:2), 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, two(1))
    call MPI_Bcast_init(m(2, :), 4, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, MPI_INFO_NULL, two(2))
    do round = 1, 3
      a = [(round*(rank + i), i = 1, 8)]
      m = 0
      if (rank == ranks - 1) m(2, :) = round*[1, 2, 3, 4]
      b = 0
      call MPI_Startall(2, two)
      call MPI_Waitall(2, two, MPI_STATUSES_IGNORE)
      call must(all(b(2:8:2) == [(round*(ranks*(ranks - 1)/2 + ranks*i), i = 1, 8, 2)]) .and. all(b(1:8:2) == 0), 'Allreduce_init')
      call must(all(m(2, :) == round*[1, 2, 3, 4]) .and. all(m(1:3:2, :) == 0), 'Bcast_init')
    end do
    call MPI_Request_free(two(1))
    call MPI_Request_free(two(2))
  end subroutine

  ! Rank r contributes r + 1 items; displacements leave an item between blocks.
  subroutine vectors()
    integer, allocatable, asynchronous :: sparse(:), want(:)
    integer :: at
    counts = [(i, i = 1, ranks)]
    at = 0
    do i = 1, ranks
      places(i) = at
      at = at + i + 1
    end do
    allocate (sparse(2*at), want(2*at))
    want = -1
    do i = 1, ranks
      do j = 1, i
        want(2*(places(i) + j)) = 10*i + j
      end do
    end do
    a(1:8:2) = [(10*(rank + 1) + j, j = 1, 4)]
    sparse = -1
    call MPI_Allgatherv(a(1:7:2), rank + 1, MPI_INTEGER, sparse(2::2), counts, places, MPI_INTEGER, MPI_COMM_WORLD)
    call must(all(sparse == want), 'Allgatherv')
    sparse = -1
    call MPI_Iallgatherv(a(1:7:2), rank + 1, MPI_INTEGER, sparse(2::2), counts, places, MPI_INTEGER, MPI_COMM_WORLD, request)
    sparse(2*(places(ranks) + counts(ranks) + 1)) = -5 ! an element between the blocks is the program's
    want(2*(places(ranks) + counts(ranks) + 1)) = -5
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call must(all(sparse == want), 'Iallgatherv')
    b = 0
    call MPI_Iscatterv(sparse(2::2), counts, places, MPI_INTEGER, b(8:2:-2), rank + 1, MPI_INTEGER, 0, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call must(all(b(8:8 - 2*rank:-2) == [(10*(rank + 1) + j, j = 1, rank + 1)]) .and. all(b(1:7:2) == 0), 'Iscatterv')
  end subroutine

  subroutine all_to_all()
    type(MPI_Datatype) :: types(ranks)
    integer :: ones(ranks), bytes(ranks)
    wide = 0
    from = [(100*rank + i, i = 1, 4*ranks)]
    call MPI_Ialltoall(from(1::2), 2, MPI_INTEGER, wide(2, :), 2, MPI_INTEGER, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call must(all(wide(2, :) == [((100*(i - 1) + 4*rank + j, j = 1, 3, 2), i = 1, ranks)]) .and. &
              all(wide(1:3:2, :) == 0), 'Ialltoall')
    types = MPI_INTEGER
    ones = 1
    bytes = [(8*(i - 1), i = 1, ranks)]
    to = 0
    call MPI_Alltoallw_init(from(2::2), ones, bytes, types, to(1::2), ones, bytes, types, MPI_COMM_WORLD, MPI_INFO_NULL, request)
    call MPI_Start(request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call must(all(to(1::4) == [(100*(i - 1) + 4*rank + 2, i = 1, ranks)]) .and. all(to(2::2) == 0) .and. &
              all(to(3::4) == 0), 'Alltoallw_init')
    call MPI_Request_free(request)
  end subroutine

  ! A ring; a partition is a column of every third row. Partitions become ready after they are filled, in any order.
  subroutine partitioned()
    integer, asynchronous :: out(6, 3), in(6, 3)
    type(MPI_Request) :: both(2)
    logical :: flag
    call MPI_Psend_init(out(2:6:3, :), 3, 2, MPI_INTEGER, mod(rank + 1, ranks), 1, MPI_COMM_WORLD, MPI_INFO_NULL, both(1))
    call MPI_Precv_init(in(5:1:-3, :), 3, 2_MPI_COUNT_KIND, MPI_INTEGER, mod(rank + ranks - 1, ranks), 1, MPI_COMM_WORLD, &
                        MPI_INFO_NULL, both(2))
    do round = 1, 3
      in = -1
      out = -2
      call MPI_Startall(2, both)
      do j = 3, 1, -1
        out(2:6:3, j) = 1000*round + 100*rank + [10*j, 10*j + 1]
        call MPI_Pready(j - 1, both(1))
      end do
      flag = .false.
      do while (.not. flag)
        call MPI_Parrived(both(2), 1, flag)
      end do
      i = 1000*round + 100*mod(rank + ranks - 1, ranks)
      call must(in(5, 2) == i + 20 .and. in(2, 2) == i + 21, 'Parrived')
      call MPI_Waitall(2, both, MPI_STATUSES_IGNORE)
      call must(all(in(5, :) == i + [10, 20, 30]) .and. all(in(2, :) == i + [11, 21, 31]) .and. all(in(1:6:3, :) == -1) .and. &
                all(in(3:6:3, :) == -1), 'Precv_init')
    end do
    call MPI_Request_free(both(1))
    call MPI_Request_free(both(2))
  end subroutine

  subroutine one_sided()
    type(MPI_Win) :: win
    integer, asynchronous :: memory(8), plain(4)
    integer :: next
    memory = [(10*rank + i, i = 1, 8)]
    next = mod(rank + 1, ranks)
    call MPI_Win_create(memory, 32_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call MPI_Win_lock_all(0, win)
    item = 5
    result = 0
    call MPI_Fetch_and_op(item(1:4:2), result(2:4:2), MPI_INTEGER, next, 0_MPI_ADDRESS_KIND, MPI_SUM, win)
    call MPI_Win_flush(next, win)
    call must(all(result == [0, 10*next + 1, 0, 0]), 'Fetch_and_op')
    plain = 10*next + 2
    call MPI_Compare_and_swap(item(1:4:2), plain(1:4:3), result(4:2:-2), MPI_INTEGER, next, 1_MPI_ADDRESS_KIND, win)
    call MPI_Win_flush(next, win)
    call must(result(4) == 10*next + 2, 'Compare_and_swap')
    b = 0
    call MPI_Rget(b(1:8:4), 2, MPI_INTEGER, next, 6_MPI_ADDRESS_KIND, 2, MPI_INTEGER, win, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call must(all(b == [10*next + 7, 0, 0, 0, 10*next + 8, 0, 0, 0]), 'Rget')
    a = [(i, i = 1, 8)]
    call MPI_Accumulate(a(1:8:4), 2, MPI_INTEGER, next, 4_MPI_ADDRESS_KIND, 2, MPI_INTEGER, MPI_SUM, win)
    call MPI_Get_accumulate(a(2:8:4), 2, MPI_INTEGER, b(2:8:4), 2, MPI_INTEGER, next, 2_MPI_ADDRESS_KIND, 2, &
                            MPI_INTEGER, MPI_REPLACE, win)
    call MPI_Win_unlock_all(win)
    call must(b(2) == 10*next + 3 .and. b(6) == 10*next + 4, 'Get_accumulate')
    call MPI_Barrier(MPI_COMM_WORLD)
    call must(all(memory == [10*rank + 6, 5, 2, 6, 10*rank + 6, 10*rank + 11, 10*rank + 7, 10*rank + 8]), 'Accumulate')
    call MPI_Win_free(win)
  end subroutine

  ! Memory that outlives the call must be simply contiguous (MPI 5.0 3.6, 12.2.1, 12.2.4).
  subroutine refused()
    type(MPI_Win) :: win
    integer :: rc, class
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
    call MPI_Buffer_attach(a(1:8:2), 16, rc)
    call MPI_Error_class(rc, class)
    call must(class == MPI_ERR_BUFFER, 'Buffer_attach')
    call MPI_Win_create(a(1:8:2), 16_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_SELF, win, rc)
    call MPI_Error_class(rc, class)
    call must(class == MPI_ERR_BUFFER, 'Win_create')
    call MPI_Iallgatherv(a(1:7:2), -1, MPI_INTEGER, b(1:8:2), counts, places, MPI_INTEGER, MPI_COMM_WORLD, request, rc)
    call must(rc /= MPI_SUCCESS, 'an error of the call')
  end subroutine
end program
