# test/examples: builds and runs the examples with the installed wrappers and mpirun
EXTRA_DIST += test/examples/fortran test/examples/try
