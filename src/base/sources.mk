# src/base: status, log, knobs, lists, hash of queues, clock, CPU count; includes no other folder
libweft_a_SOURCES += \
	src/base/bag.c src/base/bag.h src/base/raw_thread.c src/base/raw_thread.h \
	src/base/clock.h src/base/copy.h src/base/counts.h src/base/fd_id.h src/base/crc.c src/base/crc.h \
	src/base/event.c src/base/event.h src/base/events.def \
	src/base/hw_resource.c src/base/hw_resource.h src/base/fifomap.c src/base/fifomap.h \
	src/base/knob.c src/base/knob.h src/base/knobs.def \
	src/base/kernel_copy.c src/base/kernel_copy.h src/base/language.c src/base/language.h \
	src/base/list.h src/base/memory_size.h \
	src/base/log.c src/base/log.h \
	src/base/macros.h \
	src/base/random.c src/base/random.h src/base/object.c src/base/object.h src/base/slot_table.c src/base/slot_table.h \
	src/base/cpu_count.c src/base/cpu_count.h src/base/cpu_place.c src/base/cpu_place.h \
	src/base/sha256.c src/base/sha256.h \
	src/base/nt_copy.c src/base/nt_copy.h src/base/quiet_load.c src/base/quiet_load.h src/base/status.c src/base/status.h
