# test/unit: CUnit programs, one for each file or group of files under test; linked statically with the library
unit_programs += test/unit/test_type test/unit/test_pack test/unit/test_op
unit_programs += test/unit/test_rma
test_unit_test_rma_SOURCES = test/unit/test_rma.c test/unit/draw.h
unit_programs += test/unit/test_known
test_unit_test_known_SOURCES = test/unit/test_known.c test/unit/draw.h
unit_programs += test/unit/test_bounce
test_unit_test_bounce_SOURCES = test/unit/test_bounce.c
unit_programs += test/unit/test_region_table
test_unit_test_region_table_SOURCES = test/unit/test_region_table.c test/unit/draw.h
test_unit_test_type_SOURCES = test/unit/test_type.c
test_unit_test_pack_SOURCES = test/unit/test_pack.c test/unit/draw.h
test_unit_test_op_SOURCES = test/unit/test_op.c test/unit/draw.h
unit_programs += test/unit/test_ring test/unit/test_match test/unit/test_sleep_order test/unit/test_polling
test_unit_test_ring_SOURCES = test/unit/test_ring.c
test_unit_test_match_SOURCES = test/unit/test_match.c
test_unit_test_sleep_order_SOURCES = test/unit/test_sleep_order.c
shm_ranks = test/unit/shm_ranks.c test/unit/shm_ranks.h
test_unit_test_polling_SOURCES = test/unit/test_polling.c $(shm_ranks)
unit_programs += test/unit/test_bulk test/unit/test_nt_copy
test_unit_test_bulk_SOURCES = test/unit/test_bulk.c
test_unit_test_nt_copy_SOURCES = test/unit/test_nt_copy.c $(shm_ranks)
unit_programs += test/unit/test_lock test/unit/test_arming
test_unit_test_arming_SOURCES = test/unit/test_arming.c
test_unit_test_arming_LDADD = libweftapi.a $(LDADD)
interleave = test/unit/interleave.c test/unit/interleave.h
test_unit_test_lock_SOURCES = test/unit/test_lock.c $(interleave)
unit_programs += test/unit/test_leader
test_unit_test_leader_SOURCES = test/unit/test_leader.c test/unit/leader_hooks.h test/unit/atomic_hooks.h $(interleave) src/core/leader.c \
	src/core/wait.c src/core/lock.c src/mem/rank_page.c
test_unit_test_leader_CFLAGS = $(AM_CFLAGS) -include $(srcdir)/test/unit/leader_hooks.h
unit_programs += test/unit/test_shm_wait
test_unit_test_shm_wait_SOURCES = test/unit/test_shm_wait.c test/unit/shm_hooks.h test/unit/atomic_hooks.h $(interleave) \
	src/mem/rank_page.c transports/shm/send.c transports/shm/recv.c transports/shm/iface.c transports/shm/bulk.c
test_unit_test_shm_wait_CFLAGS = $(AM_CFLAGS) -include $(srcdir)/test/unit/shm_hooks.h
unit_programs += test/unit/test_crc
test_unit_test_crc_SOURCES = test/unit/test_crc.c
unit_programs += test/unit/test_hw_resource
test_unit_test_hw_resource_SOURCES = test/unit/test_hw_resource.c
unit_programs += test/unit/test_sha256
test_unit_test_sha256_SOURCES = test/unit/test_sha256.c
unit_programs += test/unit/test_ctrl_conn
test_unit_test_ctrl_conn_SOURCES = test/unit/test_ctrl_conn.c test/unit/conn_pair.c test/unit/conn_pair.h src/tools/mpirun/ctrl_conn.c \
	src/tools/mpirun/ctrl_pack.c src/tools/mpirun/buffer.c
unit_programs += test/unit/test_acceptor
test_unit_test_acceptor_SOURCES = test/unit/test_acceptor.c src/tools/mpirun/acceptor.c src/tools/mpirun/contact.c \
	src/tools/mpirun/ctrl_conn.c src/tools/mpirun/ctrl_pack.c src/tools/mpirun/buffer.c
unit_programs += test/unit/test_wait_report
test_unit_test_wait_report_SOURCES = test/unit/test_wait_report.c src/tools/mpirun/wait_report.c
unit_programs += test/unit/test_calls
test_unit_test_calls_SOURCES = test/unit/test_calls.c
unit_programs += test/unit/test_rndv_select
test_unit_test_rndv_select_SOURCES = test/unit/test_rndv_select.c
unit_programs += test/unit/test_rndv
test_unit_test_rndv_SOURCES = test/unit/test_rndv.c
unit_programs += test/unit/test_tree
test_unit_test_tree_SOURCES = test/unit/test_tree.c src/tools/mpirun/tree.c
unit_programs += test/unit/test_job_desc
test_unit_test_job_desc_SOURCES = test/unit/test_job_desc.c src/tools/mpirun/job_desc.c src/tools/mpirun/ctrl_conn.c \
	src/tools/mpirun/ctrl_pack.c src/tools/mpirun/buffer.c
unit_programs += test/unit/test_pmix_head
test_unit_test_pmix_head_SOURCES = test/unit/test_pmix_head.c test/unit/conn_pair.c test/unit/conn_pair.h src/tools/mpirun/nameserver.c \
	src/tools/mpirun/pmix_coll.c src/tools/mpirun/pmix_channel.c src/tools/mpirun/refbuf.c \
	src/tools/mpirun/pmix_head.c src/tools/mpirun/id_table.c src/tools/mpirun/ctrl_conn.c src/tools/mpirun/ctrl_pack.c \
	src/tools/mpirun/buffer.c
unit_programs += test/unit/test_object
test_unit_test_object_SOURCES = test/unit/test_object.c
unit_programs += test/unit/test_dims
test_unit_test_dims_SOURCES = test/unit/test_dims.c
unit_programs += test/unit/test_reorder
test_unit_test_reorder_SOURCES = test/unit/test_reorder.c
unit_programs += test/unit/test_group
test_unit_test_group_SOURCES = test/unit/test_group.c
unit_programs += test/unit/test_chan_memory
test_unit_test_chan_memory_SOURCES = test/unit/test_chan_memory.c
unit_programs += test/unit/test_base
test_unit_test_base_SOURCES = test/unit/test_base.c
unit_programs += test/unit/test_segment
test_unit_test_segment_SOURCES = test/unit/test_segment.c
unit_programs += test/unit/test_requests
test_unit_test_requests_SOURCES = test/unit/test_requests.c
unit_programs += test/unit/test_absolute
test_unit_test_absolute_SOURCES = test/unit/test_absolute.c
unit_programs += test/unit/test_callout
test_unit_test_callout_SOURCES = test/unit/test_callout.c
unit_programs += test/unit/test_unlocked
test_unit_test_unlocked_SOURCES = test/unit/test_unlocked.c test/mpi/local_calls.h test/mpi/local_tool_calls.h \
	test/mpi/check.h
test_unit_test_unlocked_LDADD = libweftapi.a $(LDADD)
unit_programs += test/unit/test_wait
test_unit_test_wait_SOURCES = test/unit/test_wait.c
unit_programs += test/unit/test_abort_text
test_unit_test_abort_text_SOURCES = test/unit/test_abort_text.c
unit_programs += test/unit/test_wakeup_sock
test_unit_test_wakeup_sock_SOURCES = test/unit/test_wakeup_sock.c
memmon_fixture = test/unit/memmon_fixture.c test/unit/memmon_fixture.h
unit_programs += test/unit/test_inval_log test/unit/test_memmon test/unit/test_memhooks
test_unit_test_inval_log_SOURCES = test/unit/test_inval_log.c $(memmon_fixture)
test_unit_test_memmon_SOURCES = test/unit/test_memmon.c $(memmon_fixture)
test_unit_test_memhooks_SOURCES = test/unit/test_memhooks.c $(memmon_fixture)
regcache_device = test/unit/regcache_device.c test/unit/regcache_device.h
unit_programs += test/unit/test_regcache test/unit/test_regcache_limits test/unit/test_regcache_async test/unit/test_regcache_real
test_unit_test_regcache_SOURCES = test/unit/test_regcache.c $(regcache_device)
test_unit_test_regcache_limits_SOURCES = test/unit/test_regcache_limits.c $(regcache_device)
test_unit_test_regcache_async_SOURCES = test/unit/test_regcache_async.c $(regcache_device)
test_unit_test_regcache_real_SOURCES = test/unit/test_regcache_real.c $(regcache_device)
unit_programs += test/unit/test_allocation
test_unit_test_allocation_SOURCES = test/unit/test_allocation.c src/tools/mpirun/allocation.c src/tools/mpirun/hosts.c \
	src/tools/mpirun/hostlist.c
unit_programs += test/unit/test_segment_heap
test_unit_test_segment_heap_SOURCES = test/unit/test_segment_heap.c
unit_programs += test/unit/test_lock_word
test_unit_test_lock_word_SOURCES = test/unit/test_lock_word.c
unit_programs += test/unit/test_window_lock
test_unit_test_window_lock_SOURCES = test/unit/test_window_lock.c test/unit/atomic_hooks.h $(interleave)
check_LTLIBRARIES += handlers.la
handlers_la_SOURCES = test/unit/handlers.c
handlers_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath $(abs_builddir)
unit_programs += test/unit/test_quiet_load
thread_programs += test/unit/test_abort_text test/unit/test_arming test/unit/test_base test/unit/test_callout test/unit/test_group \
	test/unit/test_inval_log test/unit/test_lock_word test/unit/test_memhooks test/unit/test_memmon test/unit/test_object \
	test/unit/test_regcache_async test/unit/test_regcache_real test/unit/test_ring test/unit/test_rma test/unit/test_segment \
	test/unit/test_segment_heap test/unit/test_type test/unit/test_unlocked test/unit/test_wait
test_unit_test_quiet_load_SOURCES = test/unit/test_quiet_load.c
EXTRA_test_unit_test_quiet_load_DEPENDENCIES = handlers.la
