# collectives: schedules, algorithms, selection, and collectives through shared memory
libweft_a_SOURCES += \
	collectives/team.h collectives/blocks.c collectives/blocks.h collectives/coll.c collectives/coll.h \
	collectives/rule.h collectives/select.c collectives/select.h collectives/choice.c collectives/choice.h \
	collectives/forced.c collectives/forced.h collectives/params.c collectives/params.h \
	collectives/cost.c collectives/cost.h collectives/cost_reduction.c collectives/cost_hier.c collectives/cost_area.c \
	collectives/cost_terms.c collectives/cost_terms.h \
	collectives/sched.c collectives/sched.h collectives/sched_memory.c collectives/sched_message.c collectives/sched_internal.h \
	collectives/sched_progress.c collectives/sched_start.c collectives/attempts.h collectives/sched_area.c collectives/sched_area.h \
	collectives/calls.c collectives/calls.h collectives/stop.c collectives/stop.h collectives/inquiry.c collectives/inquiry.h \
	collectives/algorithms.h collectives/split.h collectives/halving.c collectives/multiplying.c \
	collectives/pipeline.c collectives/pipeline.h collectives/reduce_pipeline.c \
	collectives/barrier.c collectives/bcast.c collectives/reduce.c collectives/allreduce.c collectives/gather.c \
	collectives/reduce_scatter.c collectives/scan.c collectives/scatter.c collectives/allgather.c collectives/alltoall.c \
	collectives/neighbor.c collectives/hier.c collectives/hier.h collectives/hier_bundles.c collectives/hier_bundles.h \
	collectives/hier_gather.c collectives/hier_allgather.c collectives/hier_alltoall.c \
	collectives/inter.c collectives/topology.c collectives/topology.h collectives/eager_split.c \
	collectives/shmcoll.c collectives/shmcoll.h collectives/shmcoll_reduction.c collectives/shmcoll_reduction.h collectives/shmcoll_slot.h \
	collectives/shmcoll_exchange.h collectives/shmcoll_vector.c collectives/shmcoll_block.c collectives/shmcoll_alltoallv.c \
	collectives/shmcoll_scan.c collectives/shmcoll_short.c collectives/shmcoll_short.h \
	collectives/shmcoll_setup.c collectives/shmcoll_setup.h collectives/agreement.c collectives/agreement.h \
	collectives/shmcoll_area.c collectives/shmcoll_area.h collectives/shmcoll_wait.c collectives/shmcoll_wait.h \
	collectives/shmcoll_queue.c collectives/shmcoll_queue.h collectives/shmcoll_lane.c collectives/shmcoll_lane.h \
	collectives/shmcoll_check.c collectives/shmcoll_check.h collectives/shmcoll_csum.c collectives/shmcoll_csum.h
