# test/sim: whole-library runs by seed
sim_programs += test/sim/sim
test_sim_sim_SOURCES = test/sim/sim.c test/sim/colls.c test/sim/crew.c test/sim/crew.h test/sim/traffic.c test/sim/traffic.h
