# test/transports/uring: a software HCA whose registrations pin pages, for tests; a module built with the check programs, never installed.
# test/contract links the same sources without the glue.
uring_sources = test/transports/uring/uring.h test/transports/uring/iface.c test/transports/uring/frame_sock.c \
	test/transports/uring/fixed_bufs.c \
	test/transports/uring/hca.c test/transports/uring/rma.c
EXTRA_DIST += $(uring_sources)
if WITH_URING
check_LTLIBRARIES += uring.la
uring_la_SOURCES = $(uring_sources) src/transport/rkey_table.c src/transport/module_glue.c
uring_la_CFLAGS = $(AM_CFLAGS) $(URING_CFLAGS) -DWEFT_MODULE_OPS=weft_uring_ops
uring_la_LDFLAGS = $(module_flags) -rpath $(abs_builddir)
uring_la_LIBADD = $(URING_LIBS)
endif
