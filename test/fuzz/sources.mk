# test/fuzz: one program for each parser of what another process has written. These replay the kept inputs; test/fuzz/run links the same
# objects with libFuzzer, whose main takes the place of the driver's.
check_LIBRARIES += libfuzzdriver.a
libfuzzdriver_a_SOURCES = test/fuzz/driver.c test/fuzz/fuzz.h
fuzz_libraries = libfuzzdriver.a $(LDADD)
fuzz_conn = src/tools/mpirun/ctrl_conn.c src/tools/mpirun/ctrl_pack.c src/tools/mpirun/buffer.c
fuzz_made_rank = test/fuzz/made_rank.c test/fuzz/made_rank.h
fuzz_programs += test/fuzz/pmi_client test/fuzz/pmi_server test/fuzz/hosts test/fuzz/job_desc test/fuzz/ctrl_conn \
	test/fuzz/daemon_frames test/fuzz/type_wire test/fuzz/frames test/fuzz/modex test/fuzz/shm_cells test/fuzz/coll_frames
test_fuzz_pmi_client_LDADD = $(fuzz_libraries)
test_fuzz_pmi_server_SOURCES = test/fuzz/pmi_server.c src/tools/mpirun/pmi_server.c src/tools/mpirun/environ.c \
	src/tools/mpirun/refbuf.c $(fuzz_conn)
test_fuzz_pmi_server_LDADD = $(fuzz_libraries)
test_fuzz_hosts_SOURCES = test/fuzz/hosts.c src/tools/mpirun/allocation.c src/tools/mpirun/hosts.c src/tools/mpirun/hostlist.c
test_fuzz_hosts_LDADD = $(fuzz_libraries)
test_fuzz_job_desc_SOURCES = test/fuzz/job_desc.c src/tools/mpirun/job_desc.c src/tools/mpirun/tree.c $(fuzz_conn)
test_fuzz_job_desc_LDADD = $(fuzz_libraries)
test_fuzz_ctrl_conn_SOURCES = test/fuzz/ctrl_conn.c $(fuzz_conn)
test_fuzz_ctrl_conn_LDADD = $(fuzz_libraries)
test_fuzz_daemon_frames_SOURCES = test/fuzz/daemon_frames.c src/tools/mpirun/remote_frames.c src/tools/mpirun/modex_head.c \
	src/tools/mpirun/pmix_head.c src/tools/mpirun/pmix_coll.c src/tools/mpirun/pmix_channel.c src/tools/mpirun/nameserver.c \
	src/tools/mpirun/id_table.c src/tools/mpirun/refbuf.c $(fuzz_conn)
test_fuzz_daemon_frames_LDADD = $(fuzz_libraries)
test_fuzz_type_wire_LDADD = $(fuzz_libraries)
test_fuzz_frames_SOURCES = test/fuzz/frames.c $(fuzz_made_rank)
test_fuzz_frames_LDADD = $(fuzz_libraries)
test_fuzz_coll_frames_SOURCES = test/fuzz/coll_frames.c $(fuzz_made_rank)
test_fuzz_coll_frames_LDADD = $(fuzz_libraries)
test_fuzz_modex_LDADD = $(fuzz_libraries)
test_fuzz_shm_cells_SOURCES = test/fuzz/shm_cells.c $(shm_ranks)
test_fuzz_shm_cells_LDADD = $(fuzz_libraries)
if WITH_OFI
fuzz_programs += test/fuzz/ofi_frames
test_fuzz_ofi_frames_SOURCES = test/fuzz/ofi_frames.c test/fuzz/ofi_provider.c test/fuzz/ofi_provider.h
test_fuzz_ofi_frames_CFLAGS = $(AM_CFLAGS) $(OFI_CFLAGS)
test_fuzz_ofi_frames_LDADD = libfuzzdriver.a libweftofi.a $(LDADD)
endif
if WITH_VERBS
fuzz_programs += test/fuzz/verbs_frames
test_fuzz_verbs_frames_CFLAGS = $(AM_CFLAGS) $(IBVERBS_CFLAGS) $(RDMACM_CFLAGS)
test_fuzz_verbs_frames_LDADD = libfuzzdriver.a libweftverbs.a libsimhca.a $(LDADD)
endif
