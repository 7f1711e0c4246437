# src/rma: windows: memory, operations, synchronization
libweft_a_SOURCES += src/rma/open.c src/rma/open.h src/rma/window.h src/rma/memory.c src/rma/memory.h src/rma/sync.h src/rma/sync_state.h \
	src/rma/fence.c src/rma/pscw.c src/rma/lock.c src/rma/lock_word.h
libweft_a_SOURCES += src/rma/operation.h src/rma/op.h src/rma/op.c src/rma/direct.h src/rma/direct.c src/rma/atomic.h src/rma/atomic.c \
	src/rma/words.h src/rma/words.c src/rma/message.h src/rma/head.c src/rma/outbox.c src/rma/inbox.c src/rma/inbox.h src/rma/job.c \
	src/rma/job.h src/rma/region_table.c src/rma/region_table.h src/rma/regions.c src/rma/regions.h \
	src/rma/notify.c src/rma/notify.h src/rma/notify_open.c src/rma/notify_open.h src/rma/notice.c src/rma/notice.h \
	src/rma/bounce.c src/rma/bounce.h src/rma/device.c src/rma/device.h src/rma/device_amo.c src/rma/device_lookup.c \
	src/rma/device_op.c src/rma/device_state.h src/rma/device_target.c src/rma/key.h src/rma/keys.c src/rma/keys.h \
	src/rma/known.c src/rma/known.h src/rma/spans.c src/rma/spans.h
