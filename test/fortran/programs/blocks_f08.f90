! ranks: 1 2 3 5 8
! SPDX-License-Identifier: BSD-3-Clause
!
! blocks_f08: collectives with one block per rank or neighbour on sections of many shapes, blocking, nonblocking and persistent. Each must do
! what it does with arrays without gaps, leave the gaps alone, and copy nothing (blocks_f08.c) where the blocks are whole runs.
module data
  use mpi_f08
  implicit none
  integer, parameter :: operations = 16, shapes = 8
  integer :: rank, ranks, root, n, k
  integer, allocatable, asynchronous, target :: cube(:, :, :, :), line(:, :)
  integer, allocatable, asynchronous :: counts(:), places(:), bytes(:), theirs(:)
  integer, asynchronous :: two(2), here(2), there(2), mine
  integer(MPI_ADDRESS_KIND), asynchronous :: near(2), far(2)
  type(MPI_Datatype), allocatable, asynchronous :: types(:)
  type(MPI_Datatype), asynchronous :: ints(2)
  type(MPI_Comm) :: grid
  type(MPI_Request) :: request
  interface
    subroutine memory(index, begin, bytes)
      integer, intent(in) :: index, begin(*), bytes
    end subroutine
    integer function copies()
    end function
  end interface
contains
  include 'must.inc'

  ! A section of n elements, and the elements of its runs. side: 1 to send, 2 to receive.
  subroutine take(shape, side, p, run)
    integer, intent(in) :: shape, side
    integer, pointer, intent(out) :: p(:, :, :)
    integer, intent(out) :: run
    run = 1
    select case (shape)
    case (1); p => cube(2:2, 3:3, 1:n, side)
    case (2); p => cube(5:5, 1:1, n:1:-1, side)
    case (3); p => cube(4:4, :, 2:n/4 + 1, side)
    case (4); p(1:n, 1:1, 1:1) => line(1::3, side)
    case (5); p => cube(1:3:2, 2:2, 1:n:2, side); run = 2
    case (6); p => cube(2:5, 4:4, n/4:1:-1, side); run = 4
    case (7); p => cube(4:1:-2, 1:3:2, n/2:n/4 + 1:-1, side); run = 4
    case (8); p => cube(4:1:-1, 4:3:-1, 1:n/8, side); run = 8
    end select
  end subroutine

  subroutine arguments(is_aligned)
    logical, intent(in) :: is_aligned
    integer :: i, unit, first
    unit = merge(8, 3, is_aligned)
    first = merge(8, 1, is_aligned)
    k = unit
    two = unit
    here = [32, 0] + first
    there = [0, 32] + first
    near = 4*here
    far = 4*there
    ints = MPI_INTEGER
    counts = [(unit*mod(rank + i, 3), i = 0, ranks - 1)]
    theirs = [(unit*mod(i, 3), i = 0, ranks - 1)]
    mine = theirs(rank + 1)
    places = [(32*(ranks - 1 - i) + first, i = 0, ranks - 1)]
    bytes = 4*places
    types = MPI_INTEGER
    do i = 0, ranks - 1
      if (mod(rank + i, 4) == 1) types(i + 1) = MPI_INTEGER4
    end do
  end subroutine

  ! mode: 0 blocking, 1 nonblocking, 2 persistent.
  subroutine perform(operation, mode, s, r)
    integer, intent(in) :: operation, mode
    type(*), dimension(..), asynchronous, intent(in) :: s
    type(*), dimension(..), asynchronous :: r
    select case (10*operation + mode)
    case (10)
      call MPI_Alltoall(s, k, MPI_INTEGER, r, k, MPI_INTEGER, MPI_COMM_WORLD)
    case (11)
      call MPI_Ialltoall(s, k, MPI_INTEGER, r, k, MPI_INTEGER, MPI_COMM_WORLD, request)
    case (12)
      call MPI_Alltoall_init(s, k, MPI_INTEGER, r, k, MPI_INTEGER, MPI_COMM_WORLD, MPI_INFO_NULL, request)
    case (20)
      call MPI_Alltoallv(s, counts, places, MPI_INTEGER, r, counts, places, MPI_INTEGER, MPI_COMM_WORLD)
    case (21)
      call MPI_Ialltoallv(s, counts, places, MPI_INTEGER, r, counts, places, MPI_INTEGER, MPI_COMM_WORLD, request)
    case (22)
      call MPI_Alltoallv_init(s, counts, places, MPI_INTEGER, r, counts, places, MPI_INTEGER, MPI_COMM_WORLD, &
        MPI_INFO_NULL, request)
    case (30)
      call MPI_Alltoallw(s, counts, bytes, types, r, counts, bytes, types, MPI_COMM_WORLD)
    case (31)
      call MPI_Ialltoallw(s, counts, bytes, types, r, counts, bytes, types, MPI_COMM_WORLD, request)
    case (32)
      call MPI_Alltoallw_init(s, counts, bytes, types, r, counts, bytes, types, MPI_COMM_WORLD, &
        MPI_INFO_NULL, request)
    case (40)
      call MPI_Allgather(s, k, MPI_INTEGER, r, k, MPI_INTEGER, MPI_COMM_WORLD)
    case (41)
      call MPI_Iallgather(s, k, MPI_INTEGER, r, k, MPI_INTEGER, MPI_COMM_WORLD, request)
    case (42)
      call MPI_Allgather_init(s, k, MPI_INTEGER, r, k, MPI_INTEGER, MPI_COMM_WORLD, MPI_INFO_NULL, request)
    case (50)
      call MPI_Allgatherv(s, mine, MPI_INTEGER, r, theirs, places, MPI_INTEGER, MPI_COMM_WORLD)
    case (51)
      call MPI_Iallgatherv(s, mine, MPI_INTEGER, r, theirs, places, MPI_INTEGER, MPI_COMM_WORLD, request)
    case (52)
      call MPI_Allgatherv_init(s, mine, MPI_INTEGER, r, theirs, places, MPI_INTEGER, MPI_COMM_WORLD, &
        MPI_INFO_NULL, request)
    case (60)
      call MPI_Gather(s, k, MPI_INTEGER, r, k, MPI_INTEGER, root, MPI_COMM_WORLD)
    case (61)
      call MPI_Igather(s, k, MPI_INTEGER, r, k, MPI_INTEGER, root, MPI_COMM_WORLD, request)
    case (62)
      call MPI_Gather_init(s, k, MPI_INTEGER, r, k, MPI_INTEGER, root, MPI_COMM_WORLD, MPI_INFO_NULL, request)
    case (70)
      call MPI_Gatherv(s, mine, MPI_INTEGER, r, theirs, places, MPI_INTEGER, root, MPI_COMM_WORLD)
    case (71)
      call MPI_Igatherv(s, mine, MPI_INTEGER, r, theirs, places, MPI_INTEGER, root, MPI_COMM_WORLD, request)
    case (72)
      call MPI_Gatherv_init(s, mine, MPI_INTEGER, r, theirs, places, MPI_INTEGER, root, MPI_COMM_WORLD, &
        MPI_INFO_NULL, request)
    case (80)
      call MPI_Scatter(s, k, MPI_INTEGER, r, k, MPI_INTEGER, root, MPI_COMM_WORLD)
    case (81)
      call MPI_Iscatter(s, k, MPI_INTEGER, r, k, MPI_INTEGER, root, MPI_COMM_WORLD, request)
    case (82)
      call MPI_Scatter_init(s, k, MPI_INTEGER, r, k, MPI_INTEGER, root, MPI_COMM_WORLD, MPI_INFO_NULL, request)
    case (90)
      call MPI_Scatterv(s, theirs, places, MPI_INTEGER, r, mine, MPI_INTEGER, root, MPI_COMM_WORLD)
    case (91)
      call MPI_Iscatterv(s, theirs, places, MPI_INTEGER, r, mine, MPI_INTEGER, root, MPI_COMM_WORLD, request)
    case (92)
      call MPI_Scatterv_init(s, theirs, places, MPI_INTEGER, r, mine, MPI_INTEGER, root, MPI_COMM_WORLD, &
        MPI_INFO_NULL, request)
    case (100)
      call MPI_Neighbor_alltoall(s, k, MPI_INTEGER, r, k, MPI_INTEGER, grid)
    case (101)
      call MPI_Ineighbor_alltoall(s, k, MPI_INTEGER, r, k, MPI_INTEGER, grid, request)
    case (102)
      call MPI_Neighbor_alltoall_init(s, k, MPI_INTEGER, r, k, MPI_INTEGER, grid, MPI_INFO_NULL, request)
    case (110)
      call MPI_Neighbor_alltoallv(s, two, there, MPI_INTEGER, r, two, here, MPI_INTEGER, grid)
    case (111)
      call MPI_Ineighbor_alltoallv(s, two, there, MPI_INTEGER, r, two, here, MPI_INTEGER, grid, request)
    case (112)
      call MPI_Neighbor_alltoallv_init(s, two, there, MPI_INTEGER, r, two, here, MPI_INTEGER, grid, &
        MPI_INFO_NULL, request)
    case (120)
      call MPI_Neighbor_alltoallw(s, two, far, ints, r, two, near, ints, grid)
    case (121)
      call MPI_Ineighbor_alltoallw(s, two, far, ints, r, two, near, ints, grid, request)
    case (122)
      call MPI_Neighbor_alltoallw_init(s, two, far, ints, r, two, near, ints, grid, MPI_INFO_NULL, request)
    case (130)
      call MPI_Neighbor_allgather(s, k, MPI_INTEGER, r, k, MPI_INTEGER, grid)
    case (131)
      call MPI_Ineighbor_allgather(s, k, MPI_INTEGER, r, k, MPI_INTEGER, grid, request)
    case (132)
      call MPI_Neighbor_allgather_init(s, k, MPI_INTEGER, r, k, MPI_INTEGER, grid, MPI_INFO_NULL, request)
    case (140)
      call MPI_Neighbor_allgatherv(s, k, MPI_INTEGER, r, two, here, MPI_INTEGER, grid)
    case (141)
      call MPI_Ineighbor_allgatherv(s, k, MPI_INTEGER, r, two, here, MPI_INTEGER, grid, request)
    case (142)
      call MPI_Neighbor_allgatherv_init(s, k, MPI_INTEGER, r, two, here, MPI_INTEGER, grid, MPI_INFO_NULL, request)
    case (150)
      call MPI_Alltoall(MPI_IN_PLACE, k, MPI_INTEGER, r, k, MPI_INTEGER, MPI_COMM_WORLD)
    case (151)
      call MPI_Ialltoall(MPI_IN_PLACE, k, MPI_INTEGER, r, k, MPI_INTEGER, MPI_COMM_WORLD, request)
    case (152)
      call MPI_Alltoall_init(MPI_IN_PLACE, k, MPI_INTEGER, r, k, MPI_INTEGER, MPI_COMM_WORLD, MPI_INFO_NULL, request)
    case (160)
      call MPI_Alltoallw(MPI_IN_PLACE, counts, bytes, types, r, counts, bytes, types, MPI_COMM_WORLD)
    case (161)
      call MPI_Ialltoallw(MPI_IN_PLACE, counts, bytes, types, r, counts, bytes, types, MPI_COMM_WORLD, request)
    case (162)
      call MPI_Alltoallw_init(MPI_IN_PLACE, counts, bytes, types, r, counts, bytes, types, MPI_COMM_WORLD, &
        MPI_INFO_NULL, request)
    end select
  end subroutine

  subroutine complete(mode)
    integer, intent(in) :: mode
    if (mode == 2) call MPI_Start(request)
    if (mode > 0) call MPI_Wait(request, MPI_STATUS_IGNORE)
  end subroutine

  subroutine compare(operation, mode, from, to, is_aligned)
    integer, intent(in) :: operation, mode, from, to
    logical, intent(in) :: is_aligned
    integer, pointer :: s(:, :, :), r(:, :, :)
    integer, asynchronous :: plain_s(n), plain_r(n)
    integer :: i, runs(2), made, round
    character(len=80) :: what
    cube = -9
    line = -9
    call take(from, 1, s, runs(1))
    call take(to, 2, r, runs(2))
    write (what, '(a,i0,a,i0,a,i0,a,i0,a,l1)') 'operation ', operation, ', mode ', mode, ', shapes ', from, ', ', to, &
      ', whole runs ', is_aligned
    plain_s = 0
    made = copies()
    if (mode == 2) call perform(operation, mode, s, r) ! before there are data
    made = copies()
    if (is_aligned .or. all(runs == 1)) call must(made == 0, trim(what)//': copied')
    if (operation == 1 .and. mode == 2 .and. .not. is_aligned) call must(made == count(runs > 1), trim(what)//': not copied')
    do round = 1, merge(2, 1, mode == 2)
      plain_s = [(round*(1000*rank + i), i = 1, n)]
      plain_r = -plain_s
      s = reshape(plain_s, shape(s))
      r = reshape(plain_r, shape(r))
      if (mode < 2) call perform(operation, mode, s, r)
      call complete(mode)
      made = copies()
      if (is_aligned .or. all(runs == 1)) call must(made == 0, trim(what)//': copied')
      call reference(operation, plain_s, plain_r)
      call must(all(reshape(r, [n]) == plain_r), what)
      call must(all(reshape(s, [n]) == plain_s), trim(what)//': sent data changed')
      s = -9
      r = -9
      call must(all(cube == -9) .and. all(line == -9), trim(what)//': gaps changed')
    end do
    if (mode == 2) call MPI_Request_free(request)
  end subroutine

  ! By arrays without gaps.
  subroutine reference(operation, s, r)
    integer, intent(in) :: operation
    integer, intent(in), asynchronous :: s(:)
    integer, intent(inout), asynchronous :: r(:)
    integer :: made
    call perform(operation, 0, s, r)
    made = copies()
  end subroutine

  ! Items of an element: MPI_REAL in a COMPLEX array; and large counts.
  subroutine parts()
    complex, asynchronous :: z(2*n), w(3*n)
    complex :: plain(n)
    integer :: i
    integer(MPI_COUNT_KIND) :: numbers(ranks)
    integer(MPI_ADDRESS_KIND) :: at(ranks)
    z = [(cmplx(rank, i), i = 1, 2*n)]
    w = 0
    plain = 0
    call arguments(.true.)
    numbers = counts
    at = places
    call MPI_Alltoallv(z(1::2), numbers, at, MPI_REAL, w(2::3), numbers, at, MPI_REAL, MPI_COMM_WORLD)
    call MPI_Alltoallv(z(1::2) + 0, counts, places, MPI_REAL, plain, counts, places, MPI_REAL, MPI_COMM_WORLD)
    call must(all(w(2::3) == plain) .and. all(w(1::3) == 0) .and. all(w(3::3) == 0), 'MPI_REAL in COMPLEX')
    call must(any(plain /= 0) .or. ranks == 1, 'MPI_REAL in COMPLEX moves nothing')
  end subroutine

  ! Blocks that go by rendezvous, from a section that goes downwards, into one of two dimensions.
  subroutine large()
    integer, parameter :: m = 40000
    integer, allocatable, asynchronous :: from(:), to(:, :, :)
    integer :: i
    allocate (from(3*m*ranks), to(2, m/8, 9*ranks))
    from = 7*rank + [(i, i = 1, size(from))]
    to = -1
    call MPI_Alltoall(from(size(from):1:-3), m, MPI_INTEGER, to(2, :, 1:8*ranks), m, MPI_INTEGER, MPI_COMM_WORLD)
    do i = 0, ranks - 1
      call must(all(reshape(to(2, :, 8*i + 1:8*i + 8), [m]) == large_block(i, m)), 'large blocks')
    end do
    call must(all(to(1, :, :) == -1) .and. all(to(2, :, 8*ranks + 1:) == -1), 'gaps of large blocks')
  end subroutine

  function large_block(sender, m) result(block)
    integer, intent(in) :: sender, m
    integer :: block(m), i
    block = 7*sender + 3*m*(ranks - rank) - 3*[(i, i = 0, m - 1)]
  end function
end module

program blocks_f08
  use data
  implicit none
  integer :: operation, mode, from, to, i
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call MPI_Cart_create(MPI_COMM_WORLD, 1, [ranks], [.true.], .false., grid)
  root = ranks - 1
  n = 32*max(ranks, 2)
  allocate (cube(5, 4, n, 2), line(3*n, 2), counts(ranks), places(ranks), bytes(ranks), theirs(ranks), types(ranks))
  call memory(1, cube, 4*size(cube))
  call memory(2, line, 4*size(line))
  do i = 0, 1
    call arguments(i == 0)
    do operation = 1, operations
      do mode = 0, 2
        do from = 1, shapes
          to = mod(from*3 + operation + mode, shapes) + 1
          call compare(operation, mode, from, to, i == 0)
        end do
      end do
    end do
  end do
  call parts()
  call large()
  call MPI_Finalize()
  if (rank == 0) print *, 'ok'
end program
