# test/unit: CUnit programs, one for each room; all link the library statically.
unit_programs += test/unit/test_type test/unit/test_pack test/unit/test_op
test_unit_test_type_SOURCES = test/unit/test_type.c
test_unit_test_pack_SOURCES = test/unit/test_pack.c
test_unit_test_op_SOURCES = test/unit/test_op.c
unit_programs += test/unit/test_ring test/unit/test_match test/unit/test_doorbell test/unit/test_polling
test_unit_test_ring_SOURCES = test/unit/test_ring.c
test_unit_test_match_SOURCES = test/unit/test_match.c
test_unit_test_doorbell_SOURCES = test/unit/test_doorbell.c
test_unit_test_polling_SOURCES = test/unit/test_polling.c
unit_programs += test/unit/test_base
test_unit_test_base_SOURCES = test/unit/test_base.c
unit_programs += test/unit/test_segment
test_unit_test_segment_SOURCES = test/unit/test_segment.c
unit_programs += test/unit/test_requests
test_unit_test_requests_SOURCES = test/unit/test_requests.c
unit_programs += test/unit/test_speak
test_unit_test_speak_SOURCES = test/unit/test_speak.c
