# transports/ofi: libfabric, a module. test/contract/ofi links the same archive without the glue and without library_load.c, before
# $(OFI_LIBS); test/fuzz/ofi_frames before nothing: its made provider stands for what makes connections of its own, too.
ofi_sources = transports/ofi/ofi.h transports/ofi/coalesce.c transports/ofi/handshake.c transports/ofi/provider_select.c \
	transports/ofi/flow.c transports/ofi/keep.c transports/ofi/watch.c transports/ofi/ep.c transports/ofi/endpoint.c \
	transports/ofi/addr_list.c transports/ofi/memory.c transports/ofi/rma.c transports/ofi/iface.c \
	transports/ofi/knock.c transports/ofi/tcp_probe.c transports/ofi/tcp_sockets.c
EXTRA_DIST += $(ofi_sources) transports/ofi/library.h transports/ofi/library_load.c transports/ofi/library.c
if WITH_OFI
module_LTLIBRARIES += ofi.la ofi_libfabric.la
ofi_la_SOURCES = transports/ofi/library.h transports/ofi/library_load.c src/transport/module_glue.c src/base/random.c \
	src/base/quiet_load.c
ofi_la_CFLAGS = $(AM_CFLAGS) $(OFI_CFLAGS) -DWEFT_MODULE_OPS=weft_ofi_ops
ofi_la_LDFLAGS = $(module_flags) $(whole)libweftofi.a$(not_whole)
ofi_la_DEPENDENCIES = libweftofi.a
noinst_LIBRARIES += libweftofi.a
libweftofi_a_SOURCES = $(ofi_sources)
libweftofi_a_CFLAGS = $(AM_CFLAGS) $(OFI_CFLAGS) $(pic_cflags)
ofi_libfabric_la_SOURCES = transports/ofi/library.h transports/ofi/library.c
ofi_libfabric_la_CFLAGS = $(AM_CFLAGS) $(OFI_CFLAGS)
ofi_libfabric_la_LDFLAGS = $(module_flags_but_symbols) -export-symbols-regex '^weft_ofi_library$$'
ofi_libfabric_la_LIBADD = $(OFI_LIBS)
endif
