# src/base: status, log, knobs, place, and the small things that the language lacks
libweft_la_SOURCES += \
	src/base/bag.c src/base/bag.h src/base/bare.c src/base/bare.h \
	src/base/clock.h src/base/copy.h src/base/crc.c src/base/crc.h \
	src/base/fifomap.c src/base/fifomap.h \
	src/base/knob.c src/base/knob.h src/base/knobs.def \
	src/base/list.h \
	src/base/log.c src/base/log.h \
	src/base/macros.h \
	src/base/place.c src/base/place.h \
	src/base/sha256.c src/base/sha256.h \
	src/base/store.c src/base/store.h src/base/status.c src/base/status.h
