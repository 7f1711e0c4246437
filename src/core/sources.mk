libweft_a_SOURCES += src/core/absence.c src/core/absence.h src/core/bye.c src/core/bye.h src/core/call_status.c \
	src/core/call_status.h src/core/callout.c src/core/callout.h src/core/done.h \
	src/core/cpu_share.c src/core/cpu_share.h src/core/counters.c src/core/counters.h src/core/counters_type.h \
	src/core/counters.def src/core/failure.c \
	src/core/group.c src/core/group.h src/core/group_internal.h src/core/group_set.c src/core/group_select.c \
	src/core/hdr_csum.c src/core/hdr_csum.h src/core/iface_select.c src/core/iface_select.h src/core/leader.c src/core/leader.h \
	src/core/lock.c src/core/lock.h src/core/peer.c src/core/peer.h src/core/peer_type.h src/core/progress_thread.c \
	src/core/progress_thread.h src/core/reg.c src/core/reg.h src/core/reg_persistent.c src/core/reg_persistent.h \
	src/core/req.c src/core/req.h src/core/req_type.h src/core/wait.c src/core/wait.h src/core/wait_type.h \
	src/core/wait_policy.c src/core/wait_policy.h src/core/worker.c src/core/worker.h src/core/worker_type.h \
	src/core/world.c src/core/world.h src/core/world_type.h
