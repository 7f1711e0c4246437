# mpirun (and mpiexec, a link to it): starts the ranks. libpmix is loaded at run time, only for programs that may use it.
bin_PROGRAMS += mpirun
mpirun_CPPFLAGS = $(AM_CPPFLAGS) $(HWLOC_CFLAGS) $(PMIX_CFLAGS) \
	-DWEFT_BINDIR='"$(bindir)"' -DWEFT_LIBDIR='"$(libdir)"' -DWEFT_INCLUDEDIR='"$(includedir)"'
# Linked by libtool, which adds the run path of libraries outside of the linker's folders.
mpirun_LDFLAGS = $(AM_LDFLAGS)
mpirun_LDADD = libweft.a $(HWLOC_LIBS)
nodist_mpirun_SOURCES = src/api/call_names.c
mpirun_SOURCES = src/tools/mpirun/main.c \
	src/tools/mpirun/allocation.c src/tools/mpirun/allocation.h \
	src/tools/mpirun/bind.c src/tools/mpirun/bind.h \
	src/tools/mpirun/nameserver.c src/tools/mpirun/nameserver.h \
	src/tools/mpirun/agent.c src/tools/mpirun/agent.h \
	src/tools/mpirun/buffer.c src/tools/mpirun/buffer.h \
	src/tools/mpirun/modex_node.c src/tools/mpirun/modex_node.h \
	src/tools/mpirun/cpuslot.c src/tools/mpirun/cpuslot.h \
	src/tools/mpirun/ctrl_conn.c src/tools/mpirun/ctrl_conn.h \
	src/tools/mpirun/ctrl_pack.c src/tools/mpirun/ctrl_pack.h \
	src/tools/mpirun/srun_launch.c src/tools/mpirun/srun_launch.h \
	src/tools/mpirun/daemon.c src/tools/mpirun/daemon.h \
	src/tools/mpirun/job_desc.c src/tools/mpirun/job_desc.h \
	src/tools/mpirun/acceptor.c src/tools/mpirun/acceptor.h \
	src/tools/mpirun/environ.c src/tools/mpirun/environ.h \
	src/tools/mpirun/pmix_coll.c src/tools/mpirun/pmix_coll.h \
	src/tools/mpirun/guard.c src/tools/mpirun/guard.h \
	src/tools/mpirun/pmix_channel.c src/tools/mpirun/pmix_channel.h \
	src/tools/mpirun/help.c \
	src/tools/mpirun/hosts.c src/tools/mpirun/hosts.h \
	src/tools/mpirun/pmix_head.c src/tools/mpirun/pmix_head.h \
	src/tools/mpirun/io.c src/tools/mpirun/io.h \
	src/tools/mpirun/job.c src/tools/mpirun/job.h src/tools/mpirun/job_type.h \
	src/tools/mpirun/children.c src/tools/mpirun/children.h \
	src/tools/mpirun/remote_nodes.c src/tools/mpirun/remote_nodes.h src/tools/mpirun/remote_nodes_internal.h \
	src/tools/mpirun/remote_frames.c \
	src/tools/mpirun/contact.c src/tools/mpirun/contact.h \
	src/tools/mpirun/map.c src/tools/mpirun/map.h \
	src/tools/mpirun/hostlist.c src/tools/mpirun/hostlist.h \
	src/tools/mpirun/node.c src/tools/mpirun/node.h src/tools/mpirun/node_rank.h \
	src/tools/mpirun/options.c src/tools/mpirun/options.h \
	src/tools/mpirun/show_map.c src/tools/mpirun/show_map.h \
	src/tools/mpirun/pmi_server.c src/tools/mpirun/pmi_server.h \
	src/tools/mpirun/pmix_srv.h src/tools/mpirun/pmix_msg.h \
	src/tools/mpirun/refbuf.c src/tools/mpirun/refbuf.h \
	src/tools/mpirun/program.c src/tools/mpirun/program.h \
	src/tools/mpirun/poll_sparse.c src/tools/mpirun/poll_sparse.h \
	src/tools/mpirun/relay.c src/tools/mpirun/relay.h \
	src/tools/mpirun/report.c src/tools/mpirun/report.h \
	src/tools/mpirun/head_connect.c src/tools/mpirun/head_connect.h \
	src/tools/mpirun/signals.c src/tools/mpirun/signals.h \
	src/tools/mpirun/session.c src/tools/mpirun/session.h \
	src/tools/mpirun/id_table.c src/tools/mpirun/id_table.h \
	src/tools/mpirun/modex_head.c src/tools/mpirun/modex_head.h \
	src/tools/mpirun/tree.c src/tools/mpirun/tree.h \
	src/tools/mpirun/wait_report.c src/tools/mpirun/wait_report.h
if WITH_PMIX
mpirun_SOURCES += src/tools/mpirun/pmix_srv.c src/tools/mpirun/pmix_srv_internal.h \
	src/tools/mpirun/pmix_upcalls.c src/tools/mpirun/pmix_nspace.c src/tools/mpirun/pmix_downcalls.c
else
mpirun_SOURCES += src/tools/mpirun/pmix_stub.c
endif
EXTRA_DIST += src/tools/mpirun/pmix_stub.c
