# test/mpi: one program per behaviour; test/run compiles each with the installed mpicc and runs it at the rank counts of its first line.
