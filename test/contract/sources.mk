# test/contract: one suite over every transport
contract_suites = test/contract/suites.c test/contract/frame.c test/contract/lifecycle.c test/contract/rma.c test/contract/amo.c \
	test/contract/order.c test/contract/mw.c test/contract/wait.c test/contract/yard.c test/contract/yard.h test/contract/rig.c \
	test/contract/rig.h
check_LIBRARIES += libcontract.a
libcontract_a_SOURCES = $(contract_suites)
contract_libraries = libcontract.a $(LDADD)
contract_programs += test/contract/contract test/contract/processes
thread_programs += test/contract/contract
test_contract_contract_SOURCES = test/contract/contract.c test/contract/mutant.c test/contract/mutant.h
test_contract_contract_LDADD = $(contract_libraries)
test_contract_processes_SOURCES = test/contract/processes.c
test_contract_processes_LDADD = $(contract_libraries)
if WITH_URING
contract_programs += test/contract/uring
thread_programs += test/contract/uring
test_contract_uring_SOURCES = test/contract/uring.c $(uring_sources)
test_contract_uring_CFLAGS = $(AM_CFLAGS) $(URING_CFLAGS)
test_contract_uring_LDADD = $(contract_libraries) $(URING_LIBS)
endif
if WITH_VERBS
contract_programs += test/contract/verbs_sim test/contract/verbs
thread_programs += test/contract/verbs_sim
test_contract_verbs_SOURCES = test/contract/verbs.c
test_contract_verbs_LDADD = libcontract.a libweftverbs.a $(VERBS_LIBS) $(LDADD)
test_contract_verbs_sim_SOURCES = test/contract/verbs_sim.c test/sim/verbs_net.c test/sim/verbs_net.h
test_contract_verbs_sim_LDADD = libcontract.a libweftverbs.a libsimhca.a $(LDADD)
endif
if WITH_OFI
contract_programs += test/contract/ofi
test_contract_ofi_SOURCES = test/contract/ofi.c test/contract/ofi_breaks.c test/contract/ofi_breaks.h test/contract/ofi_contact.c \
	test/contract/ofi_contact.h test/contract/tcp_reset.h
test_contract_ofi_CFLAGS = $(AM_CFLAGS) $(OFI_CFLAGS)
test_contract_ofi_LDADD = libcontract.a libweftofi.a $(LDADD) $(OFI_LIBS)
endif
