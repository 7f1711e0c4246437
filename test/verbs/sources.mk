# test/verbs: run by contrib/rdma-lab/check-verbs in the lab's guest. list: the tests; lib.sh: their functions; inside: the runner in the
# guest; planted: faults that the runner must report; programs, compiled by check-verbs with the installed mpicc.
# conn tests connections of transports/verbs: over simulated HCAs here, over real devices (conn_real) in the guest.
if WITH_VERBS
sim_programs += test/verbs/conn
conn_test = test/verbs/conn.c test/verbs/conn_pairs.c test/verbs/conn_rails.c test/verbs/conn_talk.c test/verbs/conn_parts.h
test_verbs_conn_SOURCES = $(conn_test) test/verbs/crowd.c test/verbs/crowd.h test/verbs/crowd_sim.c
test_verbs_conn_LDADD = libweftverbs.a libsimhca.a $(LDADD)
check_PROGRAMS += test/verbs/conn_real
test_verbs_conn_real_SOURCES = $(conn_test) test/verbs/crowd.c test/verbs/crowd.h test/verbs/crowd_real.c
test_verbs_conn_real_LDADD = libweftverbs.a $(VERBS_LIBS) $(LDADD)
# breaks puts queue pairs into error a thousand times, under frames and rma.
sim_programs += test/verbs/breaks
test_verbs_breaks_SOURCES = test/verbs/breaks.c test/verbs/bench.h test/verbs/on_simhca.c
test_verbs_breaks_LDADD = libweftverbs.a libsimhca.a $(LDADD)
# The same over devices that complete sends and writes when these have left, as iWARP does.
sim_programs += test/verbs/breaks_early
test_verbs_breaks_early_SOURCES = $(test_verbs_breaks_SOURCES)
test_verbs_breaks_early_CPPFLAGS = $(AM_CPPFLAGS) -DUSUAL_PROFILE='"early"'
test_verbs_breaks_early_LDADD = $(test_verbs_breaks_LDADD)
check_PROGRAMS += test/verbs/breaks_real
test_verbs_breaks_real_SOURCES = test/verbs/breaks.c test/verbs/bench.h test/verbs/on_device.c
test_verbs_breaks_real_LDADD = libweftverbs.a $(VERBS_LIBS) $(LDADD)
# costs counts posted work requests and completions per message, and floods in both directions.
sim_programs += test/verbs/costs
test_verbs_costs_SOURCES = test/verbs/costs.c test/verbs/bench.h test/verbs/on_simhca.c
test_verbs_costs_LDADD = libweftverbs.a libsimhca.a $(LDADD)
check_PROGRAMS += test/verbs/costs_real
test_verbs_costs_real_SOURCES = test/verbs/costs.c test/verbs/bench.h test/verbs/on_device.c
test_verbs_costs_real_LDADD = libweftverbs.a $(VERBS_LIBS) $(LDADD)
endif
