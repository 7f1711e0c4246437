# transports/sim: worlds in one process. Linked by tests only, before libweft.la.
check_LTLIBRARIES += libweftsim.la
weft_sim_library += libweftsim.la
libweftsim_la_SOURCES = transports/sim/sim.h transports/sim/fabric.c transports/sim/fabric.h transports/sim/port.c \
	transports/sim/memory.c transports/sim/move.c transports/sim/profile.c \
	transports/sim/fibre.c transports/sim/fibre.h transports/sim/run.c transports/sim/run.h transports/sim/boot.c
