# transports/verbs: native RDMA devices, a module. Tests link the same archive without the glue, over the simulated HCA
# (libweftverbs.a before libsimhca.a) or real devices (before $(VERBS_LIBS)).
EXTRA_DIST += transports/verbs/verbs.h
if WITH_VERBS
verbs_sources = transports/verbs/verbs.h transports/verbs/rdmacm.c transports/verbs/cm_deferred.c transports/verbs/conn.c \
	transports/verbs/cm_listen.c transports/verbs/cm_listen.h \
	transports/verbs/conn.h transports/verbs/ud.c transports/verbs/epoch.c transports/verbs/ep.c \
	transports/verbs/wc_error.c \
	transports/verbs/device_select.c transports/verbs/device_select.h transports/verbs/flow.c transports/verbs/flow.h transports/verbs/gid.c \
	transports/verbs/gid.h transports/verbs/credit.c transports/verbs/rc_qp.c transports/verbs/memory.c \
	transports/verbs/rma.c transports/verbs/conn_msg.c transports/verbs/rma_op.c transports/verbs/rma_op.h \
	transports/verbs/rail_pair.c transports/verbs/iface.c transports/verbs/post.c transports/verbs/rail_probe.c transports/verbs/read_fence.c \
	transports/verbs/rail.c transports/verbs/recv_queue.c \
	transports/verbs/evict.c transports/verbs/rest.c transports/verbs/replay.c transports/verbs/eager_ring.c transports/verbs/slots.c \
	transports/verbs/slots.h \
	transports/verbs/counters.c \
	transports/verbs/mw.c transports/verbs/loopback.c
verbs_cflags = $(AM_CFLAGS) $(IBVERBS_CFLAGS) $(RDMACM_CFLAGS)
# The libraries again after the archive, which libtool puts behind them.
module_LTLIBRARIES += verbs.la
verbs_la_SOURCES = src/transport/module_glue.c
verbs_la_CFLAGS = $(verbs_cflags) -DWEFT_MODULE_OPS=weft_verbs_ops
verbs_la_LDFLAGS = $(module_flags) $(whole)libweftverbs.a$(not_whole) $(VERBS_LIBS:-l%=-Wl,-l%)
verbs_la_DEPENDENCIES = libweftverbs.a
verbs_la_LIBADD = $(VERBS_LIBS)
noinst_LIBRARIES += libweftverbs.a
libweftverbs_a_SOURCES = $(verbs_sources)
libweftverbs_a_CFLAGS = $(verbs_cflags) $(pic_cflags)
endif
