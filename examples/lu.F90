! SPDX-License-Identifier: BSD-3-Clause
! lu: solves A x = b by elimination with row exchanges (partial pivoting). Column j of A is kept by rank mod(j - 1, ranks).
!     mpifort -O2 lu.F90 -o lu && mpirun -n 4 ./lu 300
! With -DHAVE_LAPACK ... -llapack -lblas, rank 0 solves the system by dgesv too and compares. The argument is the number of rows (200).
! Exit code: 0 solved, 1 not solved, 2 bad usage.
program lu
  use mpi_f08
  use, intrinsic :: iso_fortran_env, only : error_unit, int64, real64
  implicit none
  real(real64), parameter :: limit = 1e-9_real64 ! of the residual, relative to the norms of A and x
  real(real64), allocatable :: whole(:,:), mine(:,:), right(:), x(:)
  integer :: rank, ranks, n, columns
  logical :: is_solved

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  n = rows_wanted()
  columns = (n - rank - 1 + ranks) / ranks
  allocate (mine(n, columns), right(n), x(n))
  if (rank == 0) then
    allocate (whole(n, n))
    call make_system()
  end if
  call deal()
  call eliminate()
  call substitute()
  is_solved = .true.
  if (rank == 0) call check()
  call MPI_Bcast(is_solved, 1, MPI_LOGICAL, 0, MPI_COMM_WORLD)
  call MPI_Finalize()
  if (.not. is_solved) stop 1, quiet=.true.

contains

  ! The argument of the program, or 200. A bad one ends the job.
  integer function rows_wanted()
    character(len=32) :: word
    integer :: failed
    rows_wanted = 200
    if (command_argument_count() == 0) return
    call get_command_argument(1, word)
    read (word, *, iostat=failed) rows_wanted
    if (failed == 0 .and. rows_wanted >= 1 .and. command_argument_count() == 1) return
    if (rank == 0) write (error_unit, '(a)') 'usage: lu [ROWS], at least 1'
    call MPI_Finalize()
    stop 2, quiet=.true.
  end function

  ! A dense matrix of pseudorandom entries between -1/2 and 1/2, and b = A x of x = 1, 2, ..., n.
  subroutine make_system()
    integer(int64), parameter :: modulus = 2147483647
    integer(int64) :: state
    integer :: i, j
    state = 4711
    do j = 1, n
      do i = 1, n
        state = mod(state * 16807, modulus)
        whole(i, j) = real(state, real64) / modulus - 0.5_real64
      end do
    end do
    right = matmul(whole, [(real(i, real64), i = 1, n)])
  end subroutine

  ! Rank 0 sends every rank its columns: sections with gaps, which mpi_f08 sends from where they lie.
  subroutine deal()
    type(MPI_Request) :: requests(0:ranks - 1)
    integer :: r
    call MPI_Irecv(mine, n * columns, MPI_DOUBLE_PRECISION, 0, 0, MPI_COMM_WORLD, requests(0))
    if (rank == 0) then
      do r = 0, ranks - 1
        call MPI_Send(whole(:, r + 1::ranks), n * ((n - r - 1 + ranks) / ranks), MPI_DOUBLE_PRECISION, r, 0, MPI_COMM_WORLD)
      end do
    end if
    call MPI_Wait(requests(0), MPI_STATUS_IGNORE)
    if (.not. MPI_ASYNC_PROTECTS_NONBLOCKING) call MPI_F_sync_reg(mine)
    call MPI_Bcast(right, n, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD)
  end subroutine

  ! A becomes upper triangular. The owner of column k finds the pivot; all exchange and subtract rows in their columns right of k.
  subroutine eliminate()
    real(real64) :: factors(n)
    integer :: k, j, owner, local, pivot
    do k = 1, n - 1
      owner = mod(k - 1, ranks)
      local = (k - 1) / ranks + 1
      if (rank == owner) then
        pivot = k - 1 + maxloc(abs(mine(k:n, local)), 1)
        mine([k, pivot], local) = mine([pivot, k], local)
        factors(k + 1:n) = mine(k + 1:n, local) / mine(k, local)
      end if
      call MPI_Bcast(pivot, 1, MPI_INTEGER, owner, MPI_COMM_WORLD)
      call MPI_Bcast(factors(k + 1:n), n - k, MPI_DOUBLE_PRECISION, owner, MPI_COMM_WORLD)
      do j = 1, columns
        if ((j - 1) * ranks + rank + 1 <= k) cycle
        mine([k, pivot], j) = mine([pivot, k], j)
        mine(k + 1:n, j) = mine(k + 1:n, j) - factors(k + 1:n) * mine(k, j)
      end do
      right([k, pivot]) = right([pivot, k])
      right(k + 1:n) = right(k + 1:n) - factors(k + 1:n) * right(k)
    end do
  end subroutine

  ! From the last row up: the owner of column k finds x(k), and what it leaves of the rows above.
  subroutine substitute()
    integer :: k, owner, local
    do k = n, 1, -1
      owner = mod(k - 1, ranks)
      local = (k - 1) / ranks + 1
      if (rank == owner) then
        right(k) = right(k) / mine(k, local)
        right(1:k - 1) = right(1:k - 1) - right(k) * mine(1:k - 1, local)
      end if
      call MPI_Bcast(right(1:k), k, MPI_DOUBLE_PRECISION, owner, MPI_COMM_WORLD)
      x(k) = right(k)
    end do
  end subroutine

  ! On rank 0: the residual, and the difference from LAPACK's solution.
  subroutine check()
    real(real64) :: residual, known(n)
    integer :: i
    known = [(real(i, real64), i = 1, n)]
    residual = maxval(abs(matmul(whole, x - known))) / (maxval(sum(abs(whole), 2)) * maxval(abs(x)))
    is_solved = residual < limit
    print '(2(a,i0),2(a,es8.1))', 'lu: ', n, ' rows on ', ranks, ' ranks: residual ', residual, ', error ', maxval(abs(x - known))
#ifdef HAVE_LAPACK
    call compare(known)
#endif
    print '(a)', trim(merge('lu: solved    ', 'lu: NOT SOLVED', is_solved))
  end subroutine

#ifdef HAVE_LAPACK
  subroutine compare(known)
    real(real64), intent(in) :: known(n)
    real(real64) :: answer(n, 1), difference
    integer :: pivots(n), failed
    external :: dgesv
    answer(:, 1) = matmul(whole, known)
    call dgesv(n, 1, whole, n, pivots, answer, n, failed)
    difference = maxval(abs(answer(:, 1) - x)) / maxval(abs(x))
    print '(a,es8.1)', 'lu: relative difference from LAPACK ', difference
    is_solved = is_solved .and. failed == 0 .and. difference < limit
  end subroutine
#endif
end program
