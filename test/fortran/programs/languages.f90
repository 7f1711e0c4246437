! ranks: 1 2
! SPDX-License-Identifier: BSD-3-Clause
!
! languages: objects, attributes and callbacks between C and Fortran (MPI 5.0 19.3), and tools in either language.
module functions
  use mpi_f08
  implicit none
  integer :: failures = 0, copied = 0, f_sends = 0
contains
  subroutine add_tens(in, inout, length, datatype)
    use, intrinsic :: iso_c_binding
    type(c_ptr), value :: in, inout
    integer :: length
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)
    call c_f_pointer(in, a, [length])
    call c_f_pointer(inout, b, [length])
    if (datatype == MPI_INTEGER) b = 10*a + b
  end subroutine
  subroutine fail(comm, code)
    type(MPI_Comm) :: comm
    integer :: code
    failures = failures + 1
  end subroutine
  subroutine copy(comm, key, extra, value_in, value_out, flag, ierror)
    type(MPI_Comm) :: comm
    integer :: key, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra, value_in, value_out
    logical :: flag
    copied = copied + 1
    value_out = value_in
    flag = .false.
    ierror = MPI_SUCCESS
  end subroutine
end module

! A tool in Fortran: it intercepts the specific name that mpi_f08 calls.
subroutine MPI_Ssend_f08ts(buf, count, datatype, dest, tag, comm, ierror)
  use :: mpi_f08, my_noname => MPI_Ssend_f08ts
  use :: functions, only : f_sends
  type(*), dimension(..), intent(in) :: buf
  integer, intent(in) :: count, dest, tag
  type(MPI_Datatype), intent(in) :: datatype
  type(MPI_Comm), intent(in) :: comm
  integer, optional, intent(out) :: ierror
  f_sends = f_sends + 1
  call PMPI_Ssend(buf, count, datatype, dest, tag, comm, ierror)
end subroutine

program languages
  use mpi_f08
  use functions
  implicit none
  external :: c_set, c_get, c_use, c_key
  integer, external :: c_sends, c_copies, c_comm
  integer(kind=MPI_ADDRESS_KIND), external :: c_address
  integer :: rank, keys(5), i, old, ierror, a(6)
  integer(kind=MPI_ADDRESS_KIND) :: value
  logical :: flag
  type(MPI_Comm) :: comm
  type(MPI_Request) :: to_self
  type(MPI_Op) :: op
  type(MPI_Datatype) :: three
  type(MPI_Errhandler) :: handler
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  do i = 1, 3
    call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, keys(i), 0_MPI_ADDRESS_KIND)
  end do
  call c_set(MPI_COMM_SELF%MPI_VAL, keys(1), keys(3))
  call MPI_Comm_get_attr(MPI_COMM_SELF, keys(1), value, flag)
  call must(flag .and. value == c_address(), 'a pointer of C is its address')
  call MPI_Comm_get_attr(MPI_COMM_SELF, keys(3), value, flag)
  call must(flag .and. value == 17, 'an integer that C set')
  call MPI_Attr_get(MPI_COMM_SELF%MPI_VAL, keys(3), old, flag, ierror)
  call must(flag .and. old == 17, 'MPI_ATTR_GET')
  call MPI_Comm_set_attr(MPI_COMM_SELF, keys(1), 42_MPI_ADDRESS_KIND)
  call MPI_Comm_set_attr(MPI_COMM_SELF, keys(2), 2_MPI_ADDRESS_KIND**40)
  call MPI_Attr_put(MPI_COMM_SELF%MPI_VAL, keys(3), 7, ierror)
  call c_get(MPI_COMM_SELF%MPI_VAL, keys(1), keys(2), keys(3))
  call MPI_Attr_put(MPI_COMM_SELF%MPI_VAL, keys(3), -7, ierror)
  call MPI_Comm_get_attr(MPI_COMM_SELF, keys(3), value, flag)
  call must(value == -7, 'MPI_ATTR_PUT extends the sign')
  call MPI_Attr_get(MPI_COMM_SELF%MPI_VAL, keys(2), old, flag, ierror)
  call must(old == 0, 'MPI_ATTR_GET truncates')

  call MPI_Op_create(add_tens, .true., op)
  call MPI_Type_contiguous(3, MPI_INTEGER, three)
  comm%MPI_VAL = c_comm(MPI_COMM_WORLD%MPI_VAL)
  call MPI_Comm_create_errhandler(fail, handler)
  call MPI_Comm_set_errhandler(comm, handler)
  call MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, keys(4), 0_MPI_ADDRESS_KIND)
  call MPI_Comm_set_attr(comm, keys(4), 1_MPI_ADDRESS_KIND)
  call c_use(op%MPI_VAL, three%MPI_VAL, comm%MPI_VAL)
  call must(failures == 1 .and. copied == 1, 'callbacks of Fortran called from C')
  call c_key(keys(5))
  call MPI_Comm_delete_attr(comm, keys(4))
  call MPI_Comm_set_attr(comm, keys(5), 99_MPI_ADDRESS_KIND)
  block
    type(MPI_Comm) :: again
    call MPI_Comm_dup(comm, again)
    call MPI_Comm_get_attr(again, keys(5), value, flag)
    call must(flag .and. value == 100 .and. c_copies() == 1, 'copy function of C called from Fortran')
    call MPI_Comm_free(again)
  end block
  call MPI_Comm_free(comm)

  a = [(i, i = 1, 6)]
  i = c_sends()
  call MPI_Send(a, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD)
  call MPI_Send(a(1:6:2), 3, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD)
  call must(c_sends() == i + 2, 'a tool in C sees calls from Fortran')
  call PMPI_Send(a, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD)
  call must(c_sends() == i + 2, 'PMPI_SEND passes by it')
  call MPI_Irecv(a(4:4), 1, MPI_INTEGER, 0, 0, MPI_COMM_SELF, to_self)
  call MPI_Send(a, 1, MPI_INTEGER, 0, 0, MPI_COMM_SELF) ! a call that without the tool is made by its short form
  call MPI_Wait(to_self, MPI_STATUS_IGNORE)
  call must(c_sends() == i + 3 .and. a(4) == 1, 'a tool in C sees common calls too')
  call MPI_Ssend(a, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD)
  call MPI_Ssend(a(1:6:2), 3, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD)
  call must(f_sends == 2, 'a tool in Fortran')
  call MPI_Finalize()
  if (rank == 0) print *, 'ok'
contains
  include 'must.inc'
end program
