! ranks: 2 3 8
! SPDX-License-Identifier: BSD-3-Clause
!
! p2p_f08: point-to-point calls of mpi_f08: sections of arrays without a copy, large counts, optional ierror, sentinels, statuses.
program p2p_f08
  use mpi_f08
  implicit none
  integer :: rank, ranks, i
  if (.not. MPI_SUBARRAYS_SUPPORTED .or. .not. MPI_ASYNC_PROTECTS_NONBLOCKING) error stop 'constants'
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call sections
  call partial
  call persistent
  call texts
  call own_error
  call probes
  call MPI_Finalize()
  if (rank == 0) print *, 'ok'
contains
  include 'must.inc'

  subroutine sections
    integer, asynchronous :: a(10, 10), b(10, 10), v(30), cube(4, 5, 6)
    integer, pointer :: down(:)
    integer, target, asynchronous :: line(20)
    type(MPI_Status) :: status
    type(MPI_Request) :: requests(3)
    integer :: count, which
    a = reshape([(i, i = 1, 100)], [10, 10])
    b = -1
    line = [(i, i = 1, 20)]
    cube = reshape([(i, i = 1, 120)], [4, 5, 6])
    if (rank == 0) then
      call MPI_Send(a(2:8:3, 1:10:2), 15, MPI_INTEGER, 1, 5, MPI_COMM_WORLD)
      call MPI_Isend(a(5, :), 10, MPI_INTEGER, 1, 6, MPI_COMM_WORLD, requests(1))
      call MPI_Isend(a, 100_MPI_COUNT_KIND, MPI_INTEGER, 1, 7, MPI_COMM_WORLD, requests(2))
      down => line(19:1:-3)
      call MPI_Isend(down, 7, MPI_INTEGER, 1, 8, MPI_COMM_WORLD, requests(3))
      call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE)
      call must(all([(requests(i) == MPI_REQUEST_NULL, i = 1, 3)]), 'requests are null after Waitall')
      call MPI_Send(cube(2:3, 1:5:2, 6:1:-2), 18, MPI_INTEGER, 1, 9, MPI_COMM_WORLD)
    else if (rank == 1) then
      call MPI_Recv(v, 30, MPI_INTEGER, 0, 5, MPI_COMM_WORLD, status)
      call MPI_Get_count(status, MPI_INTEGER, count)
      call must(count == 15 .and. status%MPI_TAG == 5 .and. status%MPI_SOURCE == 0, 'status')
      call must(all(v(1:15) == reshape(a(2:8:3, 1:10:2), [15])), 'section sent')
      call MPI_Irecv(b(10:1:-1, 3), 10, MPI_INTEGER, 0, 6, MPI_COMM_WORLD, requests(1))
      call MPI_Waitany(1, requests, which, status)
      call must(which == 1 .and. requests(1) == MPI_REQUEST_NULL, 'Waitany')
      call must(all(b(10:1:-1, 3) == a(5, :)) .and. all(b(:, 4) == -1) .and. all(b(:, 2) == -1), 'section received')
      call MPI_Recv(b, 100, MPI_INTEGER, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      call must(all(a == b), 'whole array')
      call MPI_Recv(v, 7, MPI_INTEGER, 0, 8, MPI_COMM_WORLD, status)
      call must(all(v(1:7) == line(19:1:-3)), 'pointer with a negative stride')
      call MPI_Recv(v, 18_MPI_COUNT_KIND, MPI_INTEGER, 0, 9, MPI_COMM_WORLD, status)
      call must(all(v(1:18) == reshape(cube(2:3, 1:5:2, 6:1:-2), [18])), 'three dimensions')
    end if
  end subroutine

  ! Fewer items than the section has, and elements of several items.
  subroutine partial
    integer :: a(6, 6), v(20)
    complex :: z(8)
    real :: r(16)
    a = reshape([(i, i = 1, 36)], [6, 6])
    z = [(cmplx(i, -i), i = 1, 8)]
    v = 0
    if (rank == 0) then
      call MPI_Send(a(1:5:2, :), 8, MPI_INTEGER, 1, 1, MPI_COMM_WORLD)
      call MPI_Send(z(1:8:2), 5, MPI_REAL, 1, 2, MPI_COMM_WORLD)
      call MPI_Send(z(2:8:2), 3, MPI_COMPLEX, 1, 3, MPI_COMM_WORLD)
      call MPI_Send(z(2:8:2), 1, MPI_REAL, 1, 4, MPI_COMM_WORLD)
    else if (rank == 1) then
      call MPI_Recv(v, 20, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      call must(all(v(1:9) == [1, 3, 5, 7, 9, 11, 13, 15, 0]), 'part of a section')
      call MPI_Recv(r, 5, MPI_REAL, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      call must(all(r(1:5) == [1., -1., 3., -3., 5.]), 'two items per element')
      call MPI_Recv(r, 6, MPI_REAL, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      call must(all(r(1:6) == [2., -2., 4., -4., 6., -6.]), 'complex')
      call MPI_Recv(r, 1, MPI_REAL, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      call must(r(1) == 2., 'half an element')
    end if
  end subroutine

  subroutine persistent
    integer, asynchronous :: a(8), b(8)
    type(MPI_Request) :: requests(2)
    integer :: round
    do i = 1, 8
      a(i) = i + 100*rank
    end do
    b = 0
    call MPI_Send_init(a(1:8:2), 4, MPI_INTEGER, mod(rank + 1, ranks), 0, MPI_COMM_WORLD, requests(1))
    call MPI_Recv_init(b(2:8:2), 4, MPI_INTEGER, mod(rank + ranks - 1, ranks), 0, MPI_COMM_WORLD, requests(2))
    do round = 1, 2
      a = a + 1
      call MPI_Startall(2, requests)
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
      call must(all(b(2:8:2) == [1, 3, 5, 7] + 100*mod(rank + ranks - 1, ranks) + round) .and. all(b(1:8:2) == 0), 'persistent')
    end do
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
    call must(requests(1) == MPI_REQUEST_NULL, 'Request_free')
  end subroutine

  ! Character buffers of any length and rank.
  subroutine texts
    character(len=5) :: words(4), got(2)
    character(len=11) :: line
    words = ['alpha', 'beta ', 'gamma', 'delta']
    if (rank == 0) then
      line = 'hello world' ! gfortran 11 passes the first letter of a constant
      call MPI_Send(line, 11, MPI_CHARACTER, 1, 0, MPI_COMM_WORLD)
      call MPI_Send(words(2:4:2), 10, MPI_CHARACTER, 1, 0, MPI_COMM_WORLD)
    else if (rank == 1) then
      call MPI_Recv(line, 11, MPI_CHARACTER, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      call MPI_Recv(got, 10, MPI_CHARACTER, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      call must(line == 'hello world' .and. got(1) == 'beta' .and. got(2) == 'delta', 'characters')
    end if
  end subroutine

  subroutine own_error
    integer :: code, class, length
    character(len=MPI_MAX_ERROR_STRING) :: text
    type(MPI_Errhandler) :: old
    integer :: a(4)
    call MPI_Comm_get_errhandler(MPI_COMM_WORLD, old)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
    call MPI_Send(a, -1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, code)
    call MPI_Error_class(code, class)
    call MPI_Error_string(code, text, length)
    call must(class == MPI_ERR_COUNT .and. text(1:13) == 'MPI_ERR_COUNT' .and. text(length + 1:) == ' ', 'error code and text')
    call MPI_Send(a(1:4:2), 3, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, code)
    call MPI_Error_class(code, class)
    call MPI_Error_string(code, text, length)
    call must(class == MPI_ERR_COUNT .and. index(text, 'section') > 0, 'more items than the section has')
    block
      integer, asynchronous :: memory(8)
      call MPI_Comm_attach_buffer(MPI_COMM_WORLD, memory(1:8:2), 16, code)
      call MPI_Error_class(code, class)
      call MPI_Error_string(code, text, length)
      call must(class == MPI_ERR_BUFFER .and. index(text, 'MPI_Comm_attach_buffer: memory') > 0, 'a section as a buffer to attach')
    end block
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, old)
  end subroutine

  subroutine probes
    type(MPI_Message) :: message
    type(MPI_Status) :: status
    logical :: flag
    integer :: a(2), b(4), indices(2), count
    type(MPI_Request) :: requests(2)
    a = rank
    call MPI_Isend(a, 2, MPI_INTEGER, rank, 3, MPI_COMM_WORLD, requests(1))
    call MPI_Mprobe(rank, 3, MPI_COMM_WORLD, message, status)
    call must(message /= MPI_MESSAGE_NULL, 'message')
    b = -1
    call MPI_Mrecv(b(1:4:2), 2, MPI_INTEGER, message, status)
    call must(message == MPI_MESSAGE_NULL .and. all(b == [rank, -1, rank, -1]), 'Mrecv')
    requests(2) = MPI_REQUEST_NULL
    call MPI_Testsome(2, requests, count, indices, MPI_STATUSES_IGNORE)
    call must(count == 1 .and. indices(1) == 1, 'Testsome counts from 1')
    call MPI_Testsome(2, requests, count, indices, MPI_STATUSES_IGNORE)
    call must(count == MPI_UNDEFINED, 'Testsome of null requests')
    call MPI_Testany(2, requests, count, flag, MPI_STATUS_IGNORE)
    call must(flag .and. count == MPI_UNDEFINED, 'Testany of null requests')
  end subroutine
end program
