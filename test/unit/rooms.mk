# test/unit: see house.md; its owner lists the sources here
unit_programs += test/unit/test_type test/unit/test_pack test/unit/test_op
test_unit_test_type_SOURCES = test/unit/test_type.c
test_unit_test_pack_SOURCES = test/unit/test_pack.c
test_unit_test_op_SOURCES = test/unit/test_op.c
