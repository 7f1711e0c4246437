# mpirun (and mpiexec, a link to it): starts the ranks. libpmix is loaded at run time, only for programs that may want it.
bin_PROGRAMS += mpirun
mpirun_CPPFLAGS = $(AM_CPPFLAGS) $(HWLOC_CFLAGS) $(PMIX_CFLAGS) \
	-DWEFT_BINDIR='"$(bindir)"' -DWEFT_LIBDIR='"$(libdir)"' -DWEFT_INCLUDEDIR='"$(includedir)"'
mpirun_LDADD = libweft.la $(HWLOC_LIBS)
nodist_mpirun_SOURCES = src/api/call_names.c
mpirun_SOURCES = src/tools/mpirun/main.c \
	src/tools/mpirun/allocation.c src/tools/mpirun/allocation.h \
	src/tools/mpirun/bind.c src/tools/mpirun/bind.h \
	src/tools/mpirun/board.c src/tools/mpirun/board.h \
	src/tools/mpirun/agent.c src/tools/mpirun/agent.h \
	src/tools/mpirun/buffer.c src/tools/mpirun/buffer.h \
	src/tools/mpirun/cards.c src/tools/mpirun/cards.h \
	src/tools/mpirun/cpuslot.c src/tools/mpirun/cpuslot.h \
	src/tools/mpirun/crew.c src/tools/mpirun/crew.h \
	src/tools/mpirun/daemon.c src/tools/mpirun/daemon.h \
	src/tools/mpirun/describe.c src/tools/mpirun/describe.h \
	src/tools/mpirun/door.c src/tools/mpirun/door.h \
	src/tools/mpirun/environ.c src/tools/mpirun/environ.h \
	src/tools/mpirun/gather.c src/tools/mpirun/gather.h \
	src/tools/mpirun/guard.c src/tools/mpirun/guard.h \
	src/tools/mpirun/haul.c src/tools/mpirun/haul.h \
	src/tools/mpirun/help.c \
	src/tools/mpirun/hosts.c src/tools/mpirun/hosts.h \
	src/tools/mpirun/hub.c src/tools/mpirun/hub.h \
	src/tools/mpirun/io.c src/tools/mpirun/io.h \
	src/tools/mpirun/job.c src/tools/mpirun/job.h \
	src/tools/mpirun/limbs.c src/tools/mpirun/limbs.h \
	src/tools/mpirun/links.c src/tools/mpirun/links.h \
	src/tools/mpirun/listen.c src/tools/mpirun/listen.h \
	src/tools/mpirun/map.c src/tools/mpirun/map.h \
	src/tools/mpirun/names.c src/tools/mpirun/names.h \
	src/tools/mpirun/node.c src/tools/mpirun/node.h \
	src/tools/mpirun/options.c src/tools/mpirun/options.h \
	src/tools/mpirun/plan.c src/tools/mpirun/plan.h \
	src/tools/mpirun/pmi_server.c src/tools/mpirun/pmi_server.h \
	src/tools/mpirun/pmix_host.h \
	src/tools/mpirun/preload.c src/tools/mpirun/preload.h src/tools/wrapper/house.c \
	src/tools/mpirun/program.c src/tools/mpirun/program.h \
	src/tools/mpirun/ready.c src/tools/mpirun/ready.h \
	src/tools/mpirun/relay.c src/tools/mpirun/relay.h \
	src/tools/mpirun/seek.c src/tools/mpirun/seek.h \
	src/tools/mpirun/signals.c src/tools/mpirun/signals.h \
	src/tools/mpirun/session.c src/tools/mpirun/session.h \
	src/tools/mpirun/slots.c src/tools/mpirun/slots.h \
	src/tools/mpirun/trade.c src/tools/mpirun/trade.h \
	src/tools/mpirun/tree.c src/tools/mpirun/tree.h \
	src/tools/mpirun/waits.c src/tools/mpirun/waits.h \
	src/tools/mpirun/wire.c src/tools/mpirun/wire.h
if WITH_PMIX
mpirun_SOURCES += src/tools/mpirun/pmix_host.c src/tools/mpirun/pmix_inner.h \
	src/tools/mpirun/pmix_ask.c src/tools/mpirun/pmix_describe.c src/tools/mpirun/pmix_tell.c
else
mpirun_SOURCES += src/tools/mpirun/pmix_stub.c
endif
EXTRA_DIST += src/tools/mpirun/pmix_stub.c
