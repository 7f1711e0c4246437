# transports/ofi: libfabric, a module. test/contract/ofi links the same sources without the glue.
ofi_sources = transports/ofi/ofi.h transports/ofi/coalesce.c transports/ofi/handshake.c transports/ofi/provider_select.c \
	transports/ofi/flow.c transports/ofi/keep.c transports/ofi/tcp_sockets.c transports/ofi/watch.c transports/ofi/ep.c \
	transports/ofi/addr_list.c \
	transports/ofi/memory.c transports/ofi/rma.c transports/ofi/iface.c transports/ofi/tcp_probe.c
EXTRA_DIST += $(ofi_sources)
if WITH_OFI
module_LTLIBRARIES += ofi.la
ofi_la_SOURCES = $(ofi_sources) src/transport/module_glue.c src/base/random.c
ofi_la_CFLAGS = $(AM_CFLAGS) $(OFI_CFLAGS) -DWEFT_MODULE_OPS=weft_ofi_ops
ofi_la_LDFLAGS = $(module_flags)
ofi_la_LIBADD = $(OFI_LIBS)
endif
