# transports/ofi: over libfabric. ofi.so is the front, which is linked to nothing; ofi-fabric.so is the rest. The same sources, without the
# glue, are linked by test/contract/ofi. The decoys' names in the linker's eyes (soname) are not those of their files, and libtool knows no way to say that.
ofi_sources = transports/ofi/ofi.h transports/ofi/bundle.c transports/ofi/call.c transports/ofi/find.c transports/ofi/flow.c transports/ofi/host.c \
	transports/ofi/memory.c transports/ofi/move.c transports/ofi/port.c transports/ofi/probe.c
EXTRA_DIST += $(ofi_sources) transports/ofi/front.c transports/ofi/hush.c transports/ofi/hush.h transports/ofi/decoy.c transports/ofi/decoy.map
if WITH_OFI
module_LTLIBRARIES += ofi.la ofi-fabric.la
ofi_la_SOURCES = transports/ofi/front.c transports/ofi/hush.c transports/ofi/hush.h
ofi_la_LDFLAGS = $(module_flags)
ofi_fabric_la_SOURCES = $(ofi_sources) src/transport/module_glue.c
ofi_fabric_la_CFLAGS = $(AM_CFLAGS) $(OFI_CFLAGS) -DWEFT_MODULE_OPS=weft_ofi_ops
ofi_fabric_la_LDFLAGS = $(module_flags)
ofi_fabric_la_LIBADD = $(OFI_LIBS)
module_DATA += .libs/decoy-psm.so .libs/decoy-psm2.so
.libs/decoy-psm.so: transports/ofi/decoy.c
	$(AM_V_CC)$(MKDIR_P) .libs && $(CC) -std=gnu11 -O1 -Wall -Wextra -fPIC -shared -nostdlib -DDECOY_PSM -Wl,-soname,libpsm_infinipath.so.1 -o $@ $<
.libs/decoy-psm2.so: transports/ofi/decoy.c transports/ofi/decoy.map
	$(AM_V_CC)$(MKDIR_P) .libs && $(CC) -std=gnu11 -O1 -Wall -Wextra -fPIC -shared -nostdlib -Wl,-soname,libpsm2.so.2 \
	    -Wl,--version-script=$(srcdir)/transports/ofi/decoy.map -o $@ $<
endif
