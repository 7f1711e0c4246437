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
