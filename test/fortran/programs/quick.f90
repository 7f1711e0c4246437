! ranks: 1 2
! SPDX-License-Identifier: BSD-3-Clause
!
! quick: calls that have a short form (quick in fortran.tbl), with arguments that it takes and those that go on with the whole translation:
! communicators, datatypes, sentinels, scalars, dimensions, MPI_PROC_NULL, errors. By mpi_f08 and by mpi.
module by_f08
  use mpi_f08
  implicit none
contains
  include 'must.inc'

  subroutine run_f08
    type(MPI_Comm) :: copy
    integer :: rank, ranks
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
    call MPI_Comm_dup(MPI_COMM_WORLD, copy)
    call ring(MPI_COMM_WORLD, mod(rank + 1, ranks), mod(rank + ranks - 1, ranks))
    call ring(copy, mod(rank + 1, ranks), mod(rank + ranks - 1, ranks))
    call ring(MPI_COMM_SELF, 0, 0)
    call wrong
    call many
    call MPI_Comm_free(copy)
  end subroutine

  ! Sends in a circle; what arrives is of one's own making.
  subroutine ring(comm, to, from)
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: to, from
    type(MPI_Request) :: request, sent
    type(MPI_Status) :: status
    type(MPI_Datatype) :: absolute, pair
    integer(MPI_ADDRESS_KIND) :: place
    integer, asynchronous :: v(6), w(6), s, t, a(3, 2), b(3, 2)
    integer :: count, ierror
    v = [1, 2, 3, 4, 5, 6]
    w = 0
    ! vectors
    call MPI_Irecv(w, 6, MPI_INTEGER, from, 1, comm, request)
    call MPI_Send(v, 6, MPI_INTEGER, to, 1, comm)
    call MPI_Wait(request, status)
    call must(all(v == w) .and. request == MPI_REQUEST_NULL, 'vector')
    call must(status%MPI_SOURCE == from .and. status%MPI_TAG == 1, 'status of Irecv')
    ! a request that is done at once; statuses
    call MPI_Isend(v(2:4), 3, MPI_INTEGER, to, 2, comm, sent, ierror)
    call must(ierror == MPI_SUCCESS, 'ierror')
    call MPI_Recv(w(4:6), 3, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, status, ierror)
    call MPI_Get_count(status, MPI_INTEGER, count)
    call must(all(w == [1, 2, 3, 2, 3, 4]) .and. count == 3, 'part of a vector')
    call must(status%MPI_TAG == 2 .and. status%MPI_SOURCE == from, 'status of Recv')
    call MPI_Wait(sent, status, ierror)
    call must(sent == MPI_REQUEST_NULL .and. ierror == MPI_SUCCESS, 'Wait')
    call MPI_Wait(sent, MPI_STATUS_IGNORE, ierror)
    call must(sent == MPI_REQUEST_NULL .and. ierror == MPI_SUCCESS, 'Wait of no request')
    ! scalars, with a status that is ignored
    s = 7; t = 0
    call MPI_Isend(s, 1, MPI_INTEGER, to, 3, comm, sent)
    call MPI_Recv(t, 1, MPI_INTEGER, from, 3, comm, MPI_STATUS_IGNORE)
    call MPI_Wait(sent, MPI_STATUS_IGNORE)
    call must(t == 7 .and. MPI_SUCCESS == 0, 'scalar')
    ! two dimensions, whole and in parts
    a = reshape([1, 2, 3, 4, 5, 6], [3, 2]); b = 0
    call MPI_Isend(a, 6, MPI_INTEGER, to, 4, comm, sent)
    call MPI_Recv(b, 6, MPI_INTEGER, from, 4, comm, MPI_STATUS_IGNORE)
    call MPI_Wait(sent, MPI_STATUS_IGNORE)
    call must(all(a == b), 'two dimensions')
    b = 0
    call MPI_Isend(a(2, :), 2, MPI_INTEGER, to, 5, comm, sent)
    call MPI_Recv(b(3, 2:1:-1), 2, MPI_INTEGER, from, 5, comm, MPI_STATUS_IGNORE)
    call MPI_Wait(sent, MPI_STATUS_IGNORE)
    call must(b(3, 1) == 5 .and. b(3, 2) == 2 .and. sum(b) == 7, 'sections')
    w = 0
    call MPI_Isend(v(6:1:-1), 6, MPI_INTEGER, to, 5, comm, sent)
    call MPI_Recv(w, 6, MPI_INTEGER, from, 5, comm, MPI_STATUS_IGNORE)
    call MPI_Wait(sent, MPI_STATUS_IGNORE)
    call must(all(w == [6, 5, 4, 3, 2, 1]), 'backwards')
    ! MPI_BOTTOM and a datatype that is no constant
    call MPI_Get_address(v, place)
    call MPI_Type_create_struct(1, [6], [place], [MPI_INTEGER], absolute)
    call MPI_Type_commit(absolute)
    w = 0
    call MPI_Isend(MPI_BOTTOM, 1, absolute, to, 6, comm, sent)
    call MPI_Recv(w, 6, MPI_INTEGER, from, 6, comm, MPI_STATUS_IGNORE)
    call MPI_Wait(sent, MPI_STATUS_IGNORE)
    call must(all(w == v), 'MPI_BOTTOM')
    call MPI_Type_free(absolute)
    call MPI_Type_contiguous(2, MPI_INTEGER, pair)
    call MPI_Type_commit(pair)
    w = 0
    call MPI_Isend(v, 3, pair, to, 7, comm, sent)
    call MPI_Recv(w, 3, pair, from, 7, comm, MPI_STATUS_IGNORE)
    call MPI_Wait(sent, MPI_STATUS_IGNORE)
    call must(all(w == v), 'pairs')
    call MPI_Type_free(pair)
    ! no peer
    call MPI_Send(v, 6, MPI_INTEGER, MPI_PROC_NULL, 8, comm)
    call MPI_Isend(v, 6, MPI_INTEGER, MPI_PROC_NULL, 8, comm, sent)
    call MPI_Wait(sent, MPI_STATUS_IGNORE)
    call MPI_Recv(w, 6, MPI_INTEGER, MPI_PROC_NULL, 8, comm, status)
    call must(status%MPI_SOURCE == MPI_PROC_NULL, 'no peer')
  end subroutine

  ! More communicators and datatypes than are remembered, made, used twice, freed, and made anew in the memory of freed ones. A freed
  ! handle is an error, also right after its use.
  subroutine many
    integer, parameter :: n = 40
    type(MPI_Comm) :: comms(n), freed
    type(MPI_Datatype) :: types(n), old
    type(MPI_Request) :: request
    type(MPI_Status) :: status
    integer :: i, k, turn, v(n), w(n), count, ierror
    v = [(i, i = 1, n)]
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
    do turn = 1, 3
      do i = 1, n
        call MPI_Comm_dup(MPI_COMM_SELF, comms(i))
        call MPI_Type_contiguous(i, MPI_INTEGER, types(i))
        call MPI_Type_commit(types(i))
      end do
      do k = 1, 2 * n
        i = mod(k * 7, n) + 1
        w = 0
        call MPI_Irecv(w, n, MPI_INTEGER, 0, i, comms(i), request)
        call MPI_Send(v, 1, types(i), 0, i, comms(i))
        call MPI_Wait(request, status)
        call MPI_Get_count(status, MPI_INTEGER, count)
        call must(count == i .and. all(w(:i) == v(:i)) .and. all(w(i + 1:) == 0), 'a message of a handle that was made')
      end do
      freed = comms(n); old = types(n)
      do i = 1, n
        call MPI_Comm_free(comms(i))
        call MPI_Type_free(types(i))
      end do
      call MPI_Send(v, 1, MPI_INTEGER, 0, 1, freed, ierror)
      call must(class_of(ierror) == MPI_ERR_COMM, 'a freed communicator')
      call MPI_Send(v, 1, old, 0, 1, MPI_COMM_SELF, ierror)
      call must(class_of(ierror) == MPI_ERR_TYPE, 'a freed datatype')
    end do
    call MPI_Type_contiguous(2, MPI_INTEGER, old)
    do i = 1, 2
      call MPI_Send(v, 1, old, 0, 1, MPI_COMM_SELF, ierror)
      call must(class_of(ierror) == MPI_ERR_TYPE, 'a datatype that is not committed')
    end do
    call MPI_Type_free(old)
  end subroutine

  ! Errors of either way reach ierror.
  subroutine wrong
    type(MPI_Request) :: request
    type(MPI_Status) :: status
    integer :: v(4), w(4), ierror
    v = [1, 2, 3, 4]; w = -1
    call must(class_of(sent_with(v, -5, MPI_INTEGER)) == MPI_ERR_TAG, 'tag')
    call must(class_of(sent_with(v, 1, MPI_DATATYPE_NULL)) == MPI_ERR_TYPE, 'datatype')
    call MPI_Send(v, 4, MPI_INTEGER, 12345, 1, MPI_COMM_WORLD, ierror)
    call must(class_of(ierror) == MPI_ERR_RANK, 'rank')
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
    call MPI_Isend(v, 4, MPI_INTEGER, 0, 1, MPI_COMM_SELF, request)
    call MPI_Recv(w, 2, MPI_INTEGER, 0, 1, MPI_COMM_SELF, status, ierror)
    call must(class_of(ierror) == MPI_ERR_TRUNCATE .and. status%MPI_TAG == 1, 'truncation')
    call must(all(w(3:4) == -1), 'beyond the buffer')
    call MPI_Wait(request, MPI_STATUS_IGNORE)
  end subroutine

  integer function sent_with(v, tag, datatype) result(ierror)
    integer, intent(in) :: v(4), tag
    type(MPI_Datatype), intent(in) :: datatype
    call MPI_Send(v, 4, datatype, 0, tag, MPI_COMM_WORLD, ierror)
  end function

  integer function class_of(ierror)
    integer, intent(in) :: ierror
    call MPI_Error_class(ierror, class_of)
  end function
end module

module by_mpi
  use mpi
  use by_f08, only: must
  implicit none
contains
  subroutine run_mpi
    integer :: rank, ranks, to, from, copy, v(4), w(4), request, status(MPI_STATUS_SIZE), ierror, absolute, class
    integer(MPI_ADDRESS_KIND) :: place
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
    call MPI_Comm_dup(MPI_COMM_WORLD, copy, ierror)
    to = mod(rank + 1, ranks)
    from = mod(rank + ranks - 1, ranks)
    v = [1, 2, 3, 4]
    call one(MPI_COMM_WORLD)
    call one(copy)
    call MPI_Get_address(v, place, ierror)
    call MPI_Type_create_struct(1, [4], [place], [MPI_INTEGER], absolute, ierror)
    call MPI_Type_commit(absolute, ierror)
    w = 0
    call PMPI_Isend(MPI_BOTTOM, 1, absolute, to, 2, MPI_COMM_WORLD, request, ierror)
    call PMPI_Recv(w, 4, MPI_INTEGER, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    call PMPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call must(all(w == v), 'MPI_BOTTOM of module mpi')
    call MPI_Type_free(absolute, ierror)
    call MPI_Isend(v, 4, MPI_INTEGER, 12345, 1, MPI_COMM_WORLD, request, ierror)
    call MPI_Error_class(ierror, class, from)
    call must(class == MPI_ERR_RANK, 'rank, of module mpi')
    call MPI_Comm_free(copy, ierror)
  contains
    subroutine one(comm)
      integer, intent(in) :: comm
      w = 0
      call MPI_Irecv(w, 4, MPI_INTEGER, from, 1, comm, request, ierror)
      call MPI_Send(v, 4, MPI_INTEGER, to, 1, comm, ierror)
      call MPI_Wait(request, status, ierror)
      call must(all(w == v) .and. status(MPI_SOURCE) == from .and. status(MPI_TAG) == 1, 'module mpi')
      call must(request == MPI_REQUEST_NULL .and. ierror == MPI_SUCCESS, 'Wait of module mpi')
    end subroutine
  end subroutine
end module

program quick
  use by_f08
  use by_mpi, only: run_mpi
  implicit none
  integer :: rank
  call MPI_Init()
  call run_f08
  call run_mpi
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Finalize()
  if (rank == 0) print *, 'ok'
end program
