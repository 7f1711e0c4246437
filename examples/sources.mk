# Examples are copied and compiled by people with `make` of examples/Makefile, and tried by test/examples/try. The tree's own build
# does not compile them: they want the installed mpicc.
examplesdir = $(docdir)/examples
dist_examples_DATA = examples/Makefile examples/hello.c examples/ring.c examples/cg.c examples/cg_matrix.c examples/cg_matrix.h
examplesdatadir = $(examplesdir)/data
dist_examplesdata_DATA = examples/data/bcsstk16.mtx.gz
