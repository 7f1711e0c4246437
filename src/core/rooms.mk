libweft_la_SOURCES += src/core/lane.c src/core/lane.h src/core/peer.c src/core/peer.h src/core/req.c src/core/req.h \
	src/core/wait.c src/core/wait.h src/core/world.c src/core/world.h
