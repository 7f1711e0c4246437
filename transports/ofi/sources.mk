# transports/ofi: libfabric, a module. test/contract/ofi links the same sources without the glue; test/fuzz/ofi_frames without those that
# make connections of their own.
ofi_flow_sources = transports/ofi/ofi.h transports/ofi/coalesce.c transports/ofi/handshake.c transports/ofi/provider_select.c \
	transports/ofi/flow.c transports/ofi/keep.c transports/ofi/watch.c transports/ofi/ep.c \
	transports/ofi/addr_list.c \
	transports/ofi/memory.c transports/ofi/rma.c transports/ofi/iface.c
ofi_sources = $(ofi_flow_sources) transports/ofi/tcp_probe.c transports/ofi/tcp_sockets.c
EXTRA_DIST += $(ofi_sources)
if WITH_OFI
module_LTLIBRARIES += ofi.la
ofi_la_SOURCES = $(ofi_sources) src/transport/module_glue.c src/base/random.c
ofi_la_CFLAGS = $(AM_CFLAGS) $(OFI_CFLAGS) -DWEFT_MODULE_OPS=weft_ofi_ops
ofi_la_LDFLAGS = $(module_flags)
ofi_la_LIBADD = $(OFI_LIBS)
endif
