! SPDX-License-Identifier: BSD-3-Clause
! hello: each rank prints its number and its host. mpifort hello.f90 -o hello_f08 && mpirun -n 4 ./hello_f08
program hello
  use mpi_f08
  implicit none
  character(len=MPI_MAX_PROCESSOR_NAME) :: host
  integer :: rank, ranks, length

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call MPI_Get_processor_name(host, length)
  print '(a,i0,a,i0,2a)', 'hello from rank ', rank, ' of ', ranks, ' on ', host(1:length)
  call MPI_Finalize()
end program
