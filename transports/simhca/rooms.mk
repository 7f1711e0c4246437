# transports/simhca: libibverbs over simulated HCAs. Linked by tests only, in place of -libverbs and -lrdmacm.
if WITH_VERBS
check_LTLIBRARIES += libsimhca.la
libsimhca_la_SOURCES = transports/simhca/simhca.h transports/simhca/hca.h transports/simhca/fabric.c transports/simhca/profile.c \
	transports/simhca/device.c transports/simhca/query.c transports/simhca/memory.c transports/simhca/cq.c transports/simhca/recv.c \
	transports/simhca/qp.c transports/simhca/modify.c transports/simhca/post.c transports/simhca/request.c \
	transports/simhca/respond.c transports/simhca/place.c transports/simhca/datagram.c transports/simhca/harm.c \
	transports/simhca/cm.c transports/simhca/window.c
libsimhca_la_CFLAGS = $(AM_CFLAGS) $(IBVERBS_CFLAGS)
endif
