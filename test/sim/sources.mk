# test/sim: worlds of ranks over the simulated fabric, by seed
sim_programs += test/sim/sim
test_sim_sim_SOURCES = test/sim/sim.c test/sim/answers.c test/sim/answers.h test/sim/colls.c test/sim/rig.c test/sim/rig.h \
	test/sim/seeds.c test/sim/seeds.h test/sim/traffic.c test/sim/traffic.h
sim_programs += test/sim/profiles test/sim/flips
thread_programs += test/sim/profiles
test_sim_flips_SOURCES = test/sim/flips.c test/sim/rig.c test/sim/rig.h
test_sim_profiles_SOURCES = test/sim/profiles.c
sim_programs += test/sim/rndv_frags
test_sim_rndv_frags_SOURCES = test/sim/rndv_frags.c test/sim/rig.c test/sim/rig.h
sim_programs += test/sim/zcopy
test_sim_zcopy_SOURCES = test/sim/zcopy.c test/sim/rig.c test/sim/rig.h
sim_programs += test/sim/frags
test_sim_frags_SOURCES = test/sim/frags.c test/sim/rig.c test/sim/rig.h
sim_programs += test/sim/regcost
test_sim_regcost_SOURCES = test/sim/regcost.c test/sim/rig.c test/sim/rig.h
# MPI programs in simulated worlds: the generated entry points, linked statically
sim_programs += test/sim/mpi
test_sim_mpi_SOURCES = test/sim/mpi.c test/sim/apps.c test/sim/apps_comms.c test/sim/apps_forget.c test/sim/apps_modes.c \
	test/sim/apps_inter.c test/sim/apps_leaders.c \
	test/sim/apps_atomics.c test/sim/apps_moves.c test/sim/apps_promises.c test/sim/apps_rest.c test/sim/apps_gone.c \
	test/sim/apps_windows.c test/sim/apps_notify.c test/sim/apps_regions.c test/sim/apps_tables.c \
	test/sim/apps.h test/sim/rig.c \
	test/sim/rig.h \
	test/sim/seeds.c test/sim/seeds.h
test_sim_mpi_LDADD = libweftapi.a $(LDADD)
sim_programs += test/sim/damage
test_sim_damage_SOURCES = test/sim/damage.c test/sim/answers.c test/sim/answers.h test/sim/damage_mpi.c test/sim/damage.h test/sim/apps.c \
	test/sim/apps_comms.c \
	test/sim/apps_forget.c test/sim/apps.h test/sim/rig.c test/sim/rig.h test/sim/seeds.c test/sim/seeds.h
test_sim_damage_LDADD = libweftapi.a $(LDADD)
# Worlds over transports/verbs on the simulated HCA; not linked with libibverbs
if WITH_VERBS
sim_programs += test/sim/verbs_hca
test_sim_verbs_hca_SOURCES = test/sim/verbs_hca.c test/sim/verbs_hca.h test/sim/verbs_ends.c test/sim/verbs_ends.h \
	test/sim/verbs_fails.c test/sim/verbs_limits.c test/sim/verbs_relaxed.c test/sim/verbs_windows.c
test_sim_verbs_hca_LDADD = libsimhca.a $(LDADD)
sim_programs += test/sim/verbs_warm
test_sim_verbs_warm_SOURCES = test/sim/verbs_warm.c test/sim/verbs_net.c test/sim/verbs_net.h test/sim/rig.c test/sim/rig.h
test_sim_verbs_warm_LDADD = libweftverbs.a libsimhca.a $(LDADD)
sim_programs += test/sim/verbs
test_sim_verbs_SOURCES = test/sim/verbs.c test/sim/verbs_runs.c test/sim/verbs_runs.h test/sim/verbs_atomics.c test/sim/verbs_atomics.h \
	test/sim/verbs_net.c test/sim/verbs_net.h test/sim/answers.c test/sim/answers.h \
	test/sim/calls.c test/sim/colls.c \
	test/sim/rig.c test/sim/rig.h test/sim/seeds.c test/sim/seeds.h test/sim/traffic.c test/sim/traffic.h test/sim/apps.c \
	test/sim/apps_atomics.c test/sim/apps_comms.c test/sim/apps_forget.c test/sim/apps_moves.c test/sim/apps_notify.c \
	test/sim/apps_notify_costs.c \
	test/sim/apps_promises.c test/sim/apps_regions.c test/sim/apps_rest.c test/sim/apps_tables.c test/sim/apps_gone.c \
	test/sim/apps.h
test_sim_verbs_LDADD = libweftapi.a libweftverbs.a libsimhca.a $(LDADD)
endif
sim_programs += test/sim/stops
test_sim_stops_SOURCES = test/sim/stops.c test/sim/rig.c test/sim/rig.h
test_sim_stops_LDADD = libweftapi.a $(LDADD)
sim_programs += test/sim/pins
test_sim_pins_SOURCES = test/sim/pins.c test/sim/rig.c test/sim/rig.h test/sim/seeds.c test/sim/seeds.h
test_sim_pins_LDADD = libweftapi.a $(LDADD)
sim_programs += test/sim/stalls
test_sim_stalls_SOURCES = test/sim/stalls.c test/sim/rig.c test/sim/rig.h test/sim/seeds.c test/sim/seeds.h
# Random programs (test/random), simulated; test/stress/random compiles the same files with an installed mpicc
random_program = test/random/access.c test/random/colls.c test/random/comms.c test/random/objects.c test/random/ops.c \
	test/random/p2p.c test/random/pairs.c \
	test/random/plan.c test/random/topologies.c test/random/types.c test/random/wild.c test/random/windows.c \
	test/random/random.h
sim_programs += test/sim/random
test_sim_random_SOURCES = test/sim/random.c $(random_program) test/sim/rig.c test/sim/rig.h test/sim/seeds.c test/sim/seeds.h
test_sim_random_LDADD = libweftapi.a $(LDADD)
