libweft_la_SOURCES += collectives/plan.c collectives/plan.h collectives/player.c collectives/calls.c collectives/calls.h collectives/stop.c collectives/stop.h collectives/algorithms.h collectives/pieces.c collectives/barrier.c \
    collectives/bcast.c collectives/reduce.c collectives/allreduce.c collectives/gather.c collectives/scatter.c \
    collectives/allgather.c collectives/alltoall.c collectives/choose.c collectives/choose.h collectives/coll.c \
    collectives/hosts.c collectives/hosts.h collectives/hosts_coll.c collectives/node.c collectives/node.h collectives/node_area.h collectives/node_agree.c collectives/node_calls.c collectives/node_calls.h \
    collectives/node_coll.c collectives/node_parts.c collectives/node_sum.c \
    collectives/node_sum.h
