! SPDX-License-Identifier: BSD-3-Clause
!
! budget_fortran: the calls of budget.c made from Fortran, by the module MODULE (mpi or mpi_f08). `toggle` of budget.c switches counting on
! and off around each call; its own cost, and that of passing arguments, is in `nothing` and `nothing_short` too.
subroutine f_nothing(buffer)
  use MODULE
  implicit none
  integer :: buffer(2), ierror
  interface
    subroutine nothing(buffer, count, datatype, to, tag, comm, ierror)
      use MODULE
#ifdef TYPED
      type(*), dimension(..), intent(in) :: buffer
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Comm), intent(in) :: comm
#else
      integer, intent(in) :: buffer(*), datatype, comm
#endif
      integer, intent(in) :: count, to, tag
      integer :: ierror
    end subroutine
  end interface
  call toggle()
  call nothing(buffer, 8, MPI_BYTE, 1, 7, MPI_COMM_WORLD, ierror)
  call toggle()
end subroutine

subroutine f_nothing_short(buffer)
  use MODULE
  implicit none
  integer :: buffer(2), ierror
  external :: nothing_short
#ifdef TYPED
  type(MPI_Request) :: request
#else
  integer :: request
#endif
  call toggle()
  call nothing_short(request, MPI_STATUS_IGNORE, ierror)
  call toggle()
end subroutine

subroutine f_send(buffer)
  use MODULE
  implicit none
  integer :: buffer(2), ierror
  call toggle()
  call MPI_Send(buffer, 8, MPI_BYTE, 1, 7, MPI_COMM_WORLD, ierror)
  call toggle()
end subroutine

subroutine f_send_made(buffer)
  use MODULE
  implicit none
  integer :: buffer(2), ierror
  integer, external :: made_handle
#ifdef TYPED
  type(MPI_Comm) :: comm
  comm%MPI_VAL = made_handle()
#else
  integer :: comm
  comm = made_handle()
#endif
  call toggle()
  call MPI_Send(buffer, 8, MPI_BYTE, 1, 7, comm, ierror)
  call toggle()
end subroutine

subroutine f_send_null(buffer)
  use MODULE
  implicit none
  integer :: buffer(2), ierror
  call toggle()
  call MPI_Send(buffer, 8, MPI_BYTE, MPI_PROC_NULL, 7, MPI_COMM_WORLD, ierror)
  call toggle()
end subroutine

subroutine f_recv(buffer)
  use MODULE
  implicit none
  integer :: buffer(2), ierror
  call toggle()
  call MPI_Recv(buffer, 8, MPI_BYTE, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
  call toggle()
end subroutine

subroutine f_isend(buffer)
  use MODULE
  implicit none
  integer :: buffer(2), ierror
#ifdef TYPED
  type(MPI_Request) :: request
#else
  integer :: request
#endif
  call toggle()
  call MPI_Isend(buffer, 8, MPI_BYTE, 1, 7, MPI_COMM_WORLD, request, ierror)
  call toggle()
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
end subroutine

subroutine f_wait(buffer)
  use MODULE
  implicit none
  integer :: buffer(2), ierror
#ifdef TYPED
  type(MPI_Request) :: request
#else
  integer :: request
#endif
  call MPI_Isend(buffer, 8, MPI_BYTE, 1, 7, MPI_COMM_WORLD, request, ierror)
  call toggle()
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
  call toggle()
end subroutine
