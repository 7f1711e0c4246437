! ranks: 1 2
! SPDX-License-Identifier: BSD-3-Clause
!
! spawn: how MPI_Comm_spawn and MPI_Comm_spawn_multiple pass texts and arrays to C. spawn.c has the C functions, in the place of a tool.
! Texts that only the root may read lie unterminated on the other ranks.
program spawn
  use mpi_f08
  implicit none
  integer :: rank, codes(3)
  character(len=8) :: argv(3), commands(2), argvs(2, 3)
  type(MPI_Comm) :: made
  type(MPI_Info) :: infos(2)

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  infos = [MPI_INFO_NULL, MPI_INFO_ENV]
  argv = [character(len=8) :: ' a b', 'c', '']
  commands = [character(len=8) :: 'one', 'two  2']
  argvs = reshape([character(len=8) :: 'x', 'y', 'xx', '', '', ''], [2, 3])
  if (rank /= 0) argv = 'endless'
  if (rank /= 0) argvs = 'endless'

  codes = 0
  call MPI_Comm_spawn('./prog  ', argv, 3, MPI_INFO_ENV, 0, MPI_COMM_WORLD, made, codes)
  call must(made == MPI_COMM_SELF .and. all(codes == [7, 8, 9]), 'MPI_Comm_spawn')
  call MPI_Comm_spawn('alone', MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, made, MPI_ERRCODES_IGNORE)
  call must(made == MPI_COMM_SELF, 'MPI_ARGV_NULL, MPI_ERRCODES_IGNORE')
  call MPI_Comm_spawn_multiple(2, commands, argvs, [1, 2], infos, 0, MPI_COMM_WORLD, made, codes)
  call must(made == MPI_COMM_SELF .and. all(codes == [4, 5, 6]), 'MPI_Comm_spawn_multiple')
  call MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, [3, 4], infos, 0, MPI_COMM_WORLD, made, MPI_ERRCODES_IGNORE)
  call must(made == MPI_COMM_SELF, 'MPI_ARGVS_NULL')
  call MPI_Finalize()
  if (rank == 0) print *, 'ok'
contains
  include 'must.inc'
end program
