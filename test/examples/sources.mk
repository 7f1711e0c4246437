# test/examples: the examples as people meet them, by the installed mpicc and mpirun
EXTRA_DIST += test/examples/try
