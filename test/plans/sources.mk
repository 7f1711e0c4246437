plans_programs += test/plans/test_plans test/plans/test_node test/plans/test_lanes test/plans/test_clock
thread_programs += test/plans/test_node test/plans/test_lanes
test_plans_test_plans_SOURCES = test/plans/test_plans.c test/plans/req_new.c test/plans/model.c test/plans/model.h \
	test/plans/cases.c test/plans/cases.h
test_plans_test_node_SOURCES = test/plans/test_node.c test/plans/node_rig.c test/plans/node_rig.h \
	test/plans/no_messages.c test/plans/cases.c test/plans/cases.h
test_plans_test_lanes_SOURCES = test/plans/test_lanes.c test/plans/node_rig.c test/plans/node_rig.h \
	test/plans/no_messages.c test/plans/cases.c test/plans/cases.h
test_plans_test_clock_SOURCES = test/plans/test_clock.c test/plans/clock.c test/plans/clock.h test/plans/clock_plan.c \
	test/plans/clock_plan.h test/plans/req_new.c test/plans/no_messages.c
