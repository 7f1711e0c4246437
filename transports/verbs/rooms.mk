# transports/verbs: the native HCA back end, a module; the same sources, without the glue, are linked by tests over a simulated HCA
# (libweftverbs.la before libsimhca.la) or over the real thing (before $(VERBS_LIBS)).
EXTRA_DIST += transports/verbs/verbs.h
if WITH_VERBS
verbs_sources = transports/verbs/verbs.h transports/verbs/cm.c transports/verbs/hush.c transports/verbs/cm.h transports/verbs/conn.c \
	transports/verbs/conn.h transports/verbs/datagram.c transports/verbs/drain.c transports/verbs/end.c \
	transports/verbs/explain.c \
	transports/verbs/find.c transports/verbs/find.h transports/verbs/flow.c transports/verbs/flow.h transports/verbs/gid.c \
	transports/verbs/gid.h transports/verbs/lend.c transports/verbs/life.c transports/verbs/link.c transports/verbs/memory.c \
	transports/verbs/rma.c transports/verbs/names.c transports/verbs/note.c transports/verbs/notice.c transports/verbs/op.c transports/verbs/op.h \
	transports/verbs/pair.c transports/verbs/iface.c transports/verbs/post.c transports/verbs/probe.c transports/verbs/proof.c \
	transports/verbs/rail.c \
	transports/verbs/rest.c transports/verbs/resume.c transports/verbs/ring.c transports/verbs/slots.c transports/verbs/slots.h transports/verbs/tally.c \
	transports/verbs/window.c
verbs_cflags = $(AM_CFLAGS) $(IBVERBS_CFLAGS) $(RDMACM_CFLAGS)
module_LTLIBRARIES += verbs.la
verbs_la_SOURCES = $(verbs_sources) src/transport/module_glue.c
verbs_la_CFLAGS = $(verbs_cflags) -DWEFT_MODULE_OPS=weft_verbs_ops
verbs_la_LDFLAGS = $(module_flags)
verbs_la_LIBADD = $(VERBS_LIBS)
check_LTLIBRARIES += libweftverbs.la
libweftverbs_la_SOURCES = $(verbs_sources)
libweftverbs_la_CFLAGS = $(verbs_cflags)
endif
