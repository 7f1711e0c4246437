# src/api: tables of the ABI, gen_api, and libmpi_abi.so, the library that programs link
gen_api_sources = src/api/gen_api src/api/gen_checks.py src/api/gen_entries.py src/api/gen_header.py src/api/gen_tables.py \
	src/api/constants.tbl src/api/functions.tbl src/api/kinds.tbl src/api/types.tbl
gen_entries = src/api/entries-coll.c src/api/entries-comm.c src/api/entries-env.c src/api/entries-p2p.c src/api/entries-rest.c \
	src/api/entries-type.c
gen_api_made = src/mpi/calls.h src/api/call_names.c src/api/missing.c $(gen_entries)
EXTRA_DIST += $(gen_api_sources)
BUILT_SOURCES += $(gen_api_made)
CLEANFILES += $(gen_api_made) gen_api.stamp

# gen_api writes a file only if its content changes; the stamp records for make that it ran.
gen_api.stamp: $(gen_api_sources)
	$(AM_V_GEN)$(PYTHON3) $(srcdir)/src/api/gen_api --into . && touch $@
$(gen_api_made): gen_api.stamp
	@test -f $@ || { rm -f gen_api.stamp; $(MAKE) $(AM_MAKEFLAGS) gen_api.stamp; }

# Committed; test/api/generated compares it with the tables' output.
include_HEADERS = include/mpi.h

lib_LTLIBRARIES = libmpi_abi.la
libmpi_abi_la_SOURCES = src/api/checks.c src/api/checks.h src/api/missing.h
nodist_libmpi_abi_la_SOURCES = src/api/missing.c $(gen_entries)
libmpi_abi_la_LIBADD = libweft.la
# The soname libmpi_abi.so.1 carries the standard's ABI number. Never unloaded: threads and handlers may outlive a dlclose.
libmpi_abi_la_LDFLAGS = $(AM_LDFLAGS) -version-info 1:0:0 -no-undefined -Wl,-z,defs -Wl,-z,nodelete -Wl,-z,now \
	-export-symbols-regex '^P?MPI_'

# make check-abi: compares header and library with the standard's tables, compiles the header in each language (test/api). 77: no tables.
check-abi: all
	@CC="$(CC)" $(top_srcdir)/test/api/abi $(top_srcdir)/include .libs/libmpi_abi.so || test $$? = 77
	@CC="$(CC)" CXX="$(CXX)" $(top_srcdir)/test/api/header $(top_srcdir)/include
.PHONY: check-abi
