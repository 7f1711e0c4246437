# src/transport: the contract, its null object, and what transports with software keys share
libweft_la_SOURCES += src/transport/port.h src/transport/frame.h src/transport/dead.c \
	src/transport/keyring.c src/transport/keyring.h
