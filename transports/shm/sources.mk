libweft_a_SOURCES += transports/shm/bulk.c transports/shm/bulk.h transports/shm/cma.c transports/shm/cma.h transports/shm/iface.c \
	transports/shm/recv.c transports/shm/ring.h transports/shm/send.c transports/shm/shm.h
