# test/verbs: what contrib/rdma-lab/check-verbs runs in the lab's guest: list (the tests), lib.sh (their words), inside (the runner there),
# planted (what that runner must find), and programs that check-verbs compiles with the installed mpicc.
# conn tries verbs' connections: over simulated HCAs here, over real devices (conn_real) in the guest.
if WITH_VERBS
sim_programs += test/verbs/conn
conn_test = test/verbs/conn.c test/verbs/conn_pairs.c test/verbs/conn_rails.c test/verbs/conn_talk.c test/verbs/conn_parts.h
test_verbs_conn_SOURCES = $(conn_test) test/verbs/crowd.c test/verbs/crowd.h test/verbs/crowd_sim.c
test_verbs_conn_LDADD = libweftverbs.la libsimhca.la $(LDADD)
check_PROGRAMS += test/verbs/conn_real
test_verbs_conn_real_SOURCES = $(conn_test) test/verbs/crowd.c test/verbs/crowd.h test/verbs/crowd_real.c
test_verbs_conn_real_LDADD = libweftverbs.la $(VERBS_LIBS) $(LDADD)
# breaks puts queue pairs into error a thousand times, under frames and moves.
sim_programs += test/verbs/breaks
test_verbs_breaks_SOURCES = test/verbs/breaks.c test/verbs/bench.h test/verbs/on_simhca.c
test_verbs_breaks_LDADD = libweftverbs.la libsimhca.la $(LDADD)
# The same over devices that tell of the end of sends and writes when they have left: the invariants of iWARP.
sim_programs += test/verbs/breaks_early
test_verbs_breaks_early_SOURCES = $(test_verbs_breaks_SOURCES)
test_verbs_breaks_early_CPPFLAGS = $(AM_CPPFLAGS) -DUSUAL_PROFILE='"early"'
test_verbs_breaks_early_LDADD = $(test_verbs_breaks_LDADD)
check_PROGRAMS += test/verbs/breaks_real
test_verbs_breaks_real_SOURCES = test/verbs/breaks.c test/verbs/bench.h test/verbs/on_device.c
test_verbs_breaks_real_LDADD = libweftverbs.la $(VERBS_LIBS) $(LDADD)
# costs counts what is posted and told for each message, and floods both ways.
sim_programs += test/verbs/costs
test_verbs_costs_SOURCES = test/verbs/costs.c test/verbs/bench.h test/verbs/on_simhca.c
test_verbs_costs_LDADD = libweftverbs.la libsimhca.la $(LDADD)
check_PROGRAMS += test/verbs/costs_real
test_verbs_costs_real_SOURCES = test/verbs/costs.c test/verbs/bench.h test/verbs/on_device.c
test_verbs_costs_real_LDADD = libweftverbs.la $(VERBS_LIBS) $(LDADD)
endif
