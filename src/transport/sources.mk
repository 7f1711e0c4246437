# src/transport: the contract, the null iface, the rkey table for transports with software keys, the module loader
libweft_a_SOURCES += src/transport/iface.h src/transport/frame.h src/transport/null_iface.c \
	src/transport/inproc_shmem.c src/transport/inproc_shmem.h src/transport/rkey_table.c src/transport/rkey_table.h \
	src/transport/module.c src/transport/module.h
# Transports that are modules: each adds <name>.la to module_LTLIBRARIES and compiles src/transport/module_glue.c with the name of its ops.
moduledir = $(libdir)/weft
module_LTLIBRARIES =
module_flags_but_symbols = $(AM_LDFLAGS) -module -avoid-version -shared -no-undefined -Wl,-z,defs -Wl,-z,nodelete
module_flags = $(module_flags_but_symbols) -export-symbols-regex '^weft_module$$'
EXTRA_DIST += src/transport/module_glue.c
