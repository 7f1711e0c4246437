# test/examples: builds and runs the examples with the installed mpicc and mpirun
EXTRA_DIST += test/examples/try
