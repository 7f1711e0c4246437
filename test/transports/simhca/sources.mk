# test/transports/simhca: libibverbs over simulated HCAs. Linked by tests only, in place of -libverbs and -lrdmacm.
if WITH_VERBS
check_LIBRARIES += libsimhca.a
libsimhca_a_SOURCES = test/transports/simhca/simhca.h test/transports/simhca/hca.h test/transports/simhca/fabric.c \
	test/transports/simhca/profile.c test/transports/simhca/device.c test/transports/simhca/query.c test/transports/simhca/memory.c \
	test/transports/simhca/cq.c \
	test/transports/simhca/recv.c \
	test/transports/simhca/qp.c test/transports/simhca/modify.c test/transports/simhca/post.c test/transports/simhca/requester.c \
	test/transports/simhca/responder.c test/transports/simhca/visibility.c test/transports/simhca/ud.c test/transports/simhca/faults.c \
	test/transports/simhca/cm.c test/transports/simhca/mw.c
libsimhca_a_CFLAGS = $(AM_CFLAGS) $(IBVERBS_CFLAGS)
endif
