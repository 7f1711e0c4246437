# examples: compiled with the installed wrappers by examples/Makefile, and run by test/examples; not built by this Makefile.
examplesdir = $(docdir)/examples
dist_examples_DATA = examples/Makefile examples/hello.c examples/ring.c examples/cg.c examples/cg_matrix.c examples/cg_matrix.h \
	examples/heat.c examples/observer.c examples/parts.c examples/hello.f90 examples/lu.F90 examples/mcs.c examples/table.c \
	examples/stream.c examples/stream.h examples/stream_notify.c examples/notify.h examples/stream_put.c examples/stream_send.c \
	examples/stream_socket.c examples/store.c examples/crc.c examples/crc.h
examplesdatadir = $(examplesdir)/data
dist_examplesdata_DATA = examples/data/bcsstk16.mtx.gz
