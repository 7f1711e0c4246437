# src/mpi: MPI objects and their rules; a file for each kind of object, called by the generated entry points
libweft_a_SOURCES += \
	src/mpi/attribute.c src/mpi/attribute.h src/mpi/attribute_of.h src/mpi/attribute_calls.c \
	src/mpi/bsend.c src/mpi/bsend.h src/mpi/bsend_buffer.c src/mpi/bsend_buffer.h \
	src/mpi/abi.c \
	src/mpi/bridge.h src/mpi/bridge_wait.c src/mpi/bridge_wait.h \
	src/mpi/cart.c src/mpi/cart_create.c src/mpi/cart_dims.c \
	src/mpi/coll.c src/mpi/coll_local.h src/mpi/coll_neighbor.c src/mpi/coll_scan.c src/mpi/coll_v.c \
	src/mpi/comm.c src/mpi/comm.h src/mpi/comm_create.c src/mpi/comm_dup.c src/mpi/comm_from_group.c src/mpi/comm_split_type.c \
	src/mpi/comm_info.c src/mpi/comm_info.h src/mpi/intercomm.c src/mpi/intercomm.h \
	src/mpi/comm_make.c src/mpi/comm_make.h src/mpi/exchange.c src/mpi/exchange.h \
	src/mpi/dist_graph.c \
	src/mpi/environment.c \
	src/mpi/errhandler.c src/mpi/errhandler.h \
	src/mpi/error_class.c src/mpi/error_class.h \
	src/mpi/errors.c src/mpi/errors.h \
	src/mpi/graph.c \
	src/mpi/grequest.c \
	src/mpi/group.c src/mpi/group.h \
	src/mpi/handle.c \
	src/mpi/info.c src/mpi/info.h src/mpi/info_env.c \
	src/mpi/init.c src/mpi/init.h src/mpi/stage.h src/mpi/traits.h \
	src/mpi/keyval.c src/mpi/keyval.h \
	src/mpi/language.c \
	src/mpi/mem.c src/mpi/memory_kinds.c src/mpi/memory_kinds.h \
	src/mpi/message.c src/mpi/message.h \
	src/mpi/partitioned.c src/mpi/partitioned.h src/mpi/precv.c src/mpi/psend.c \
	src/mpi/persistent.c src/mpi/persistent_reg.c src/mpi/persistent_reg.h \
	src/mpi/pt2pt.c src/mpi/pt2pt.h \
	src/mpi/request.c src/mpi/request.h src/mpi/request_array.c src/mpi/request_ops.h src/mpi/request_table.c \
	src/mpi/sendrecv.c \
	src/mpi/session.c src/mpi/session_type.h \
	src/mpi/status.c src/mpi/status.h \
	src/mpi/tool.c src/mpi/tool.h src/mpi/tool_category.c src/mpi/tool_cvar.c src/mpi/tool_enum.c src/mpi/tool_event.c \
	src/mpi/tool_event.h src/mpi/tool_deliver.c src/mpi/tool_pvar.c \
	src/mpi/topo.c src/mpi/topo.h src/mpi/topo_create.c src/mpi/topo_create.h \
	src/mpi/topo_grid.c src/mpi/topo_order.c src/mpi/topo_part.c src/mpi/topo_reorder.c src/mpi/topo_reorder.h \
	src/mpi/win.c src/mpi/win.h src/mpi/win_create.c src/mpi/win_epoch.c src/mpi/win_epoch.h src/mpi/win_epoch_type.h \
	src/mpi/win_info.c src/mpi/win_info.h src/mpi/win_notify.c \
	src/mpi/win_sync.c src/mpi/rma.c
