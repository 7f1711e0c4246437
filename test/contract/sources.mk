# test/contract: one suite over every transport
contract_programs += test/contract/contract test/contract/far
test_contract_contract_SOURCES = test/contract/contract.c test/contract/rooms.c test/contract/frame.c test/contract/life.c test/contract/move.c test/contract/lend.c \
	test/contract/mutant.c test/contract/mutant.h test/contract/rig.c test/contract/rig.h test/contract/wait.c
test_contract_far_SOURCES = test/contract/far.c test/contract/rig.c test/contract/rig.h
if WITH_URING
contract_programs += test/contract/uring
test_contract_uring_SOURCES = test/contract/uring.c test/contract/rooms.c test/contract/frame.c test/contract/life.c test/contract/move.c test/contract/lend.c test/contract/wait.c \
	test/contract/rig.c test/contract/rig.h $(uring_sources)
test_contract_uring_CFLAGS = $(AM_CFLAGS) $(URING_CFLAGS)
test_contract_uring_LDADD = $(LDADD) $(URING_LIBS)
endif
if WITH_VERBS
contract_programs += test/contract/verbs_sim test/contract/verbs
test_contract_verbs_SOURCES = test/contract/verbs.c test/contract/rooms.c test/contract/frame.c test/contract/life.c test/contract/move.c test/contract/lend.c test/contract/wait.c \
	test/contract/rig.c test/contract/rig.h
test_contract_verbs_LDADD = libweftverbs.la $(VERBS_LIBS) $(LDADD)
test_contract_verbs_sim_SOURCES = test/contract/verbs_sim.c test/contract/rooms.c test/contract/frame.c test/contract/life.c test/contract/move.c test/contract/lend.c \
	test/contract/wait.c test/contract/rig.c test/contract/rig.h test/sim/verbs_net.c test/sim/verbs_net.h
test_contract_verbs_sim_LDADD = libweftverbs.la libsimhca.la $(LDADD)
endif
if WITH_OFI
contract_programs += test/contract/ofi
test_contract_ofi_SOURCES = test/contract/ofi.c test/contract/rooms.c test/contract/frame.c test/contract/life.c test/contract/move.c test/contract/lend.c test/contract/wait.c \
	test/contract/rig.c test/contract/rig.h $(ofi_sources)
test_contract_ofi_CFLAGS = $(AM_CFLAGS) $(OFI_CFLAGS)
test_contract_ofi_LDADD = $(LDADD) $(OFI_LIBS)
endif
