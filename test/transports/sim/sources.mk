# test/transports/sim: simulated fabric, worlds in one process. Linked by tests only, before libweft.a.
check_LIBRARIES += libweftsim.a
libweftsim_a_SOURCES = test/transports/sim/sim.h test/transports/sim/fabric.c test/transports/sim/fabric.h test/transports/sim/iface.c \
	test/transports/sim/memory.c test/transports/sim/rma.c test/transports/sim/amo.c test/transports/sim/profile.c \
	test/transports/sim/fibre.c test/transports/sim/fibre.h test/transports/sim/run.c test/transports/sim/run.h test/transports/sim/boot.c
