! ranks: 1 2 4
! SPDX-License-Identifier: BSD-3-Clause
!
! mpi_module: calls of the module mpi: INTEGER handles, attributes, callbacks of every kind, topologies, texts, intercepted by nothing.
module functions
  use mpi
  implicit none
  integer :: failures = 0, deleted = 0, freed = 0, queried = 0, cancelled = 0
contains
  subroutine copy_twice(comm, key, extra, value_in, value_out, flag, ierror)
    integer :: comm, key, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra, value_in, value_out
    logical :: flag
    value_out = value_in + extra
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine
  subroutine delete(comm, key, value, extra, ierror)
    integer :: comm, key, ierror
    integer(kind=MPI_ADDRESS_KIND) :: value, extra
    deleted = deleted + int(value)
    ierror = MPI_SUCCESS
  end subroutine
  subroutine fail(comm, code)
    integer :: comm, code
    if (comm == MPI_COMM_WORLD) failures = failures + 1
  end subroutine
  subroutine keep_left(in, inout, length, datatype)
    integer :: length, datatype
    integer :: in(length), inout(length)
    if (datatype /= MPI_INTEGER) failures = 100
    inout = 10*in + inout
  end subroutine
  subroutine query(extra, status, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra
    integer :: status(MPI_STATUS_SIZE), ierror
    queried = queried + int(extra)
    status(MPI_SOURCE) = 3
    status(MPI_TAG) = 4
    call MPI_STATUS_SET_ELEMENTS(status, MPI_INTEGER, 2, ierror)
    call MPI_STATUS_SET_CANCELLED(status, .false., ierror)
    ierror = MPI_SUCCESS
  end subroutine
  subroutine release(extra, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra
    integer :: ierror
    freed = freed + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine cancel(extra, complete, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra
    logical :: complete
    integer :: ierror
    if (.not. complete) cancelled = cancelled + 1
    ierror = MPI_SUCCESS
  end subroutine
end module

program mpi_module
  use mpi
  use functions
  implicit none
  integer :: rank, ranks, ierror
  call MPI_INIT(ierror)
  call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierror)
  call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, ierror)
  call attributes
  call errors
  call operators
  call generalized
  call grids
  call infos
  call memory
  call types
  call neighbours
  call MPI_FINALIZE(ierror)
  if (rank == 0) print *, 'ok'
contains
  include 'must.inc'

  subroutine attributes
    integer :: key, comm
    integer(kind=MPI_ADDRESS_KIND) :: value
    logical :: flag
    call MPI_COMM_GET_ATTR(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierror)
    call must(flag .and. value == huge(1), 'MPI_TAG_UB')
    call MPI_COMM_CREATE_KEYVAL(copy_twice, delete, key, 40_MPI_ADDRESS_KIND, ierror)
    call MPI_COMM_SET_ATTR(MPI_COMM_WORLD, key, 2_MPI_ADDRESS_KIND, ierror)
    call MPI_COMM_DUP(MPI_COMM_WORLD, comm, ierror)
    call MPI_COMM_GET_ATTR(comm, key, value, flag, ierror)
    call must(flag .and. value == 42, 'copied attribute')
    call MPI_COMM_FREE(comm, ierror)
    call must(comm == MPI_COMM_NULL .and. deleted == 42, 'deleted attribute')
    call MPI_COMM_DELETE_ATTR(MPI_COMM_WORLD, key, ierror)
    call must(deleted == 44, 'MPI_COMM_DELETE_ATTR')
    call MPI_COMM_FREE_KEYVAL(key, ierror)
    call must(key == MPI_KEYVAL_INVALID, 'freed key')
    call MPI_COMM_CREATE_KEYVAL(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, key, 0_MPI_ADDRESS_KIND, ierror)
    call MPI_COMM_SET_ATTR(MPI_COMM_WORLD, key, -7_MPI_ADDRESS_KIND, ierror)
    call MPI_COMM_DUP(MPI_COMM_WORLD, comm, ierror)
    call MPI_COMM_GET_ATTR(comm, key, value, flag, ierror)
    call must(flag .and. value == -7, 'MPI_COMM_DUP_FN')
    call MPI_COMM_FREE(comm, ierror)
    call MPI_COMM_DELETE_ATTR(MPI_COMM_WORLD, key, ierror)
    call MPI_COMM_GET_ATTR(MPI_COMM_WORLD, key, value, flag, ierror)
    call must(.not. flag, 'no attribute')
  end subroutine

  subroutine errors
    integer :: handler, a(1), code
    call MPI_COMM_CREATE_ERRHANDLER(fail, handler, ierror)
    call MPI_COMM_SET_ERRHANDLER(MPI_COMM_WORLD, handler, ierror)
    call MPI_SEND(a, 1, MPI_INTEGER, ranks, 0, MPI_COMM_WORLD, code)
    call must(failures == 1 .and. code == MPI_ERR_RANK, 'error handler')
    call MPI_COMM_SET_ERRHANDLER(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL, ierror)
    call MPI_ERRHANDLER_FREE(handler, ierror)
    call must(handler == MPI_ERRHANDLER_NULL, 'freed error handler')
  end subroutine

  subroutine operators
    integer :: op, a(2), b(2), expected, i
    logical :: commutes
    call MPI_OP_CREATE(keep_left, .false., op, ierror)
    call MPI_OP_COMMUTATIVE(op, commutes, ierror)
    call must(.not. commutes, 'MPI_OP_COMMUTATIVE')
    a = [rank + 1, 1]
    call MPI_ALLREDUCE(a, b, 2, MPI_INTEGER, op, MPI_COMM_WORLD, ierror)
    expected = 0
    do i = 1, ranks
      expected = expected + i
    end do
    call must(failures < 100 .and. b(2) >= 1, 'operator in Fortran')
    if (ranks == 2) call must(b(1) == 12 .and. b(2) == 11, 'operator in rank order')
    call MPI_OP_FREE(op, ierror)
    b = a
    call MPI_ALLREDUCE(MPI_IN_PLACE, b, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call must(b(1) == expected, 'MPI_IN_PLACE')
  end subroutine

  subroutine generalized
    integer :: request, status(MPI_STATUS_SIZE), count
    call MPI_GREQUEST_START(query, release, cancel, 5_MPI_ADDRESS_KIND, request, ierror)
    call MPI_CANCEL(request, ierror)
    call must(cancelled == 1, 'cancel function')
    call MPI_GREQUEST_COMPLETE(request, ierror)
    call MPI_WAIT(request, status, ierror)
    call MPI_GET_COUNT(status, MPI_INTEGER, count, ierror)
    call must(request == MPI_REQUEST_NULL .and. queried == 5 .and. freed == 1, 'query and free functions')
    call must(status(MPI_SOURCE) == 3 .and. status(MPI_TAG) == 4 .and. count == 2, 'status of a generalized request')
  end subroutine

  subroutine grids
    integer :: cart, sub, dims(2), coords(2), n
    logical :: periods(2)
    dims = 0
    call MPI_DIMS_CREATE(ranks, 2, dims, ierror)
    call MPI_CART_CREATE(MPI_COMM_WORLD, 2, dims, [.true., .false.], .false., cart, ierror)
    call MPI_CART_GET(cart, 2, dims, periods, coords, ierror)
    call must(periods(1) .and. .not. periods(2), 'periods')
    call MPI_CART_SUB(cart, [.true., .false.], sub, ierror)
    call MPI_COMM_SIZE(sub, n, ierror)
    call must(n == dims(1), 'MPI_CART_SUB')
    call MPI_COMM_FREE(sub, ierror)
    call MPI_COMM_FREE(cart, ierror)
  end subroutine

  subroutine infos
    integer :: info, length, comm, n, where(3)
    logical :: flag
    character(len=20) :: value, key
    character(len=MPI_MAX_OBJECT_NAME) :: name
    character(len=4) :: short
    call MPI_INFO_CREATE(info, ierror)
    call MPI_INFO_SET(info, '  key ', '  a value  ', ierror)
    call MPI_INFO_GET(info, 'key', 20, value, flag, ierror)
    call must(flag .and. value == 'a value', 'MPI_INFO_GET')
    call MPI_INFO_GET_VALUELEN(info, ' key', length, flag, ierror)
    call must(flag .and. length == 7, 'MPI_INFO_GET_VALUELEN')
    length = 4
    call MPI_INFO_GET_STRING(info, 'key', length, short, flag, ierror)
    call must(flag .and. short == 'a va' .and. length == 7, 'MPI_INFO_GET_STRING')
    length = 0
    call MPI_INFO_GET_STRING(info, 'other', length, short, flag, ierror)
    call must(.not. flag .and. short == 'a va', 'MPI_INFO_GET_STRING without the key')
    call MPI_INFO_GET_NKEYS(info, n, ierror)
    call MPI_INFO_GET_NTHKEY(info, 0, key, ierror)
    call must(n == 1 .and. key == 'key', 'MPI_INFO_GET_NTHKEY')
    call MPI_INFO_FREE(info, ierror)
    call MPI_COMM_DUP(MPI_COMM_WORLD, comm, ierror)
    call MPI_COMM_SET_NAME(comm, 'my name   ', ierror)
    call MPI_COMM_GET_NAME(comm, name, length, ierror)
    call must(name == 'my name' .and. length == 7, 'names')
    call MPI_COMM_FREE(comm, ierror)
    where = 0
  end subroutine

  subroutine memory
    use, intrinsic :: iso_c_binding
    type(c_ptr) :: place
    integer(kind=MPI_ADDRESS_KIND) :: address, other
    real(8), pointer :: a(:)
    call MPI_ALLOC_MEM(80_MPI_ADDRESS_KIND, MPI_INFO_NULL, place, ierror)
    call c_f_pointer(place, a, [10])
    a = 1
    call MPI_GET_ADDRESS(a, address, ierror)
    call MPI_GET_ADDRESS(a(2), other, ierror)
    call must(MPI_AINT_DIFF(other, address) == 8, 'MPI_AINT_DIFF')
    call MPI_FREE_MEM(a, ierror)
    call MPI_ALLOC_MEM(80_MPI_ADDRESS_KIND, MPI_INFO_NULL, address, ierror)
    call must(address /= 0, 'MPI_ALLOC_MEM')
    place = transfer(address, place)
    call c_f_pointer(place, a, [10])
    call MPI_FREE_MEM(a, ierror)
  end subroutine

  ! MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY, datatypes per rank and per neighbour.
  subroutine neighbours
    integer :: graph, left(1), right(1), weights(1), in, out, i
    logical :: weighted
    integer :: given(ranks), got(ranks), ones(ranks), kinds(ranks), places(ranks)
    integer(kind=MPI_ADDRESS_KIND) :: offset(1)
    left = mod(rank + ranks - 1, ranks)
    right = mod(rank + 1, ranks)
    call MPI_DIST_GRAPH_CREATE_ADJACENT(MPI_COMM_WORLD, 1, left, MPI_UNWEIGHTED, 1, right, MPI_UNWEIGHTED, MPI_INFO_NULL, .false., &
        graph, ierror)
    call MPI_DIST_GRAPH_NEIGHBORS_COUNT(graph, in, out, weighted, ierror)
    call must(in == 1 .and. out == 1 .and. .not. weighted, 'MPI_UNWEIGHTED')
    offset = 0
    kinds = MPI_INTEGER
    given(1) = rank
    call MPI_NEIGHBOR_ALLTOALLW(given, [1], offset, kinds, got, [1], offset, kinds, graph, ierror)
    call must(got(1) == left(1), 'MPI_NEIGHBOR_ALLTOALLW')
    call MPI_COMM_FREE(graph, ierror)
    weights = 5
    call MPI_DIST_GRAPH_CREATE_ADJACENT(MPI_COMM_WORLD, 1, left, weights, 1, right, weights, MPI_INFO_NULL, .false., graph, ierror)
    call MPI_DIST_GRAPH_NEIGHBORS(graph, 1, left, weights, 1, right, MPI_UNWEIGHTED, ierror)
    call must(weights(1) == 5, 'weights')
    call MPI_COMM_FREE(graph, ierror)
    call MPI_DIST_GRAPH_CREATE_ADJACENT(MPI_COMM_WORLD, 0, left, MPI_WEIGHTS_EMPTY, 0, right, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, &
        .false., graph, ierror)
    call MPI_DIST_GRAPH_NEIGHBORS_COUNT(graph, in, out, weighted, ierror)
    call must(in == 0 .and. out == 0 .and. weighted, 'MPI_WEIGHTS_EMPTY')
    call MPI_COMM_FREE(graph, ierror)
    given = [(10*rank + i, i = 1, ranks)]
    ones = 1
    places = [(4*(i - 1), i = 1, ranks)]
    call MPI_ALLTOALLW(given, ones, places, kinds, got, ones, places, kinds, MPI_COMM_WORLD, ierror)
    call must(all(got == [(10*(i - 1) + rank + 1, i = 1, ranks)]), 'MPI_ALLTOALLW')
  end subroutine

  ! MPI_BOTTOM, arrays of handles, constructor arguments.
  subroutine types
    integer :: datatype, given(2), got(2), numbers(3), integers, addresses, datatypes, combiner, status(MPI_STATUS_SIZE)
    integer(kind=MPI_ADDRESS_KIND) :: places(2), back(2)
    integer :: a(2), c(2)
    real :: b(3), d(3)
    a = [rank, 7]
    b = [1., 2., 3.]
    call MPI_GET_ADDRESS(a, places(1), ierror)
    call MPI_GET_ADDRESS(b, places(2), ierror)
    given = [MPI_INTEGER, MPI_REAL]
    call MPI_TYPE_CREATE_STRUCT(2, [2, 3], places, given, datatype, ierror)
    call MPI_TYPE_COMMIT(datatype, ierror)
    call MPI_TYPE_GET_ENVELOPE(datatype, integers, addresses, datatypes, combiner, ierror)
    call must(combiner == MPI_COMBINER_STRUCT .and. integers == 3 .and. datatypes == 2, 'envelope')
    call MPI_TYPE_GET_CONTENTS(datatype, 3, 2, 2, numbers, back, got, ierror)
    call must(all(got == given) .and. all(numbers == [2, 2, 3]) .and. all(back == places), 'contents')
    call MPI_SENDRECV(MPI_BOTTOM, 1, datatype, rank, 0, c, 0, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, status, ierror)
    call MPI_TYPE_FREE(datatype, ierror)
    call MPI_GET_ADDRESS(c, places(1), ierror)
    call MPI_GET_ADDRESS(d, places(2), ierror)
    call MPI_TYPE_CREATE_STRUCT(2, [2, 3], places, given, datatype, ierror)
    call MPI_TYPE_COMMIT(datatype, ierror)
    call MPI_RECV(MPI_BOTTOM, 1, datatype, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    call must(all(c == a) .and. all(d == b), 'MPI_BOTTOM')
    call MPI_TYPE_FREE(datatype, ierror)
  end subroutine
end program
