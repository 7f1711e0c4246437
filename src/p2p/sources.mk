libweft_a_SOURCES += src/p2p/dispatch.c src/p2p/dispatch.h src/p2p/bidir.h src/p2p/chan.c src/p2p/chan.h src/p2p/chan_close.c \
	src/p2p/deliver.c src/p2p/deliver.h src/p2p/eager.c src/p2p/eager.h \
	src/p2p/eager_frags.c src/p2p/eager_frags.h src/p2p/rndv_select.c src/p2p/rndv_select.h \
	src/p2p/frag.c src/p2p/frag.h src/p2p/frame_check.c src/p2p/frame_check.h \
	src/p2p/match.c src/p2p/match.h src/p2p/p2p.h src/p2p/promise.c src/p2p/promise.h src/p2p/recv.c src/p2p/req_data.h \
	src/p2p/rndv.c src/p2p/rndv.h \
	src/p2p/rndv_internal.h src/p2p/rndv_pool.c src/p2p/rndv_pool.h src/p2p/rndv_recv.c src/p2p/rndv_send.c \
	src/p2p/rndv_state.c src/p2p/rndv_state.h src/p2p/rndv_wire.h \
	src/p2p/send.c src/p2p/sendq.c src/p2p/sendq.h src/p2p/sendq_ask.c src/p2p/sendq_internal.h src/p2p/sendq_records.h \
	src/p2p/stall.c src/p2p/stall.h src/p2p/held.c src/p2p/held.h src/p2p/lost.c src/p2p/lost.h \
	src/p2p/withdrawn.c src/p2p/withdrawn.h \
	src/p2p/msg_csum.c src/p2p/msg_csum.h
