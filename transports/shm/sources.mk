libweft_la_SOURCES += transports/shm/bulk.c transports/shm/bulk.h transports/shm/cma.c transports/shm/cma.h transports/shm/iface.c \
	transports/shm/ring.h transports/shm/shm.c transports/shm/shm.h
