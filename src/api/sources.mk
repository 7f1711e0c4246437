# src/api: tables of the ABI, gen_api, and libmpi_abi.so, the library that programs link
gen_api_sources = src/api/gen_api src/api/gen_checks.py src/api/gen_entries.py src/api/gen_header.py src/api/gen_tables.py \
	src/api/gen_fortran.py src/api/gen_fortran_c.py src/api/gen_fortran_mod.py src/api/gen_quick.py \
	src/api/fortran.tbl \
	src/api/constants.tbl src/api/functions.tbl src/api/extensions.tbl src/api/kinds.tbl src/api/types.tbl
gen_entries = src/api/entries-coll.c src/api/entries-comm.c src/api/entries-env.c src/api/entries-p2p.c src/api/entries-rest.c \
	src/api/entries-type.c src/api/entries-ext.c src/api/entries-quick.c
gen_fortran_entries = src/fortran/entries-coll.c src/fortran/entries-comm.c src/fortran/entries-env.c src/fortran/entries-p2p.c \
	src/fortran/entries-rest.c src/fortran/entries-type.c
gen_fortran_modules = src/fortran/weft_mpi_types.f90 src/fortran/mpi_f08.f90 src/fortran/mpi.f90
gen_api_made = src/mpi/calls.h src/api/call_names.c src/api/missing.c $(gen_entries) \
	$(gen_fortran_entries) $(gen_fortran_modules) src/fortran/mpif.h
EXTRA_DIST += $(gen_api_sources) src/api/gen_manual src/api/manual.tbl
BUILT_SOURCES += $(gen_api_made)
CLEANFILES += $(gen_api_made) gen_api.stamp

# gen_api writes a file only if its content changes; the stamp records for make that it ran.
gen_api.stamp: $(gen_api_sources)
	$(AM_V_GEN)$(PYTHON3) $(srcdir)/src/api/gen_api --into . && touch $@
$(gen_api_made): gen_api.stamp
	@test -f $@ || { rm -f gen_api.stamp; $(MAKE) $(AM_MAKEFLAGS) gen_api.stamp; }

# Committed; test/api/generated compares it with the tables' output.
include_HEADERS = include/mpi.h include/mpi-ext.h include/weft_f2c.h

# The entry points, compiled once: libmpi_abi.so takes the whole archive, tests that call them link it before libweft.a.
noinst_LIBRARIES += libweftapi.a
libweftapi_a_SOURCES = src/api/checks.c src/api/checks.h
nodist_libweftapi_a_SOURCES = $(gen_entries)
libweftapi_a_CFLAGS = $(AM_CFLAGS) $(pic_cflags)

lib_LTLIBRARIES = libmpi_abi.la
libmpi_abi_la_SOURCES = src/api/missing.h
nodist_libmpi_abi_la_SOURCES = src/api/missing.c
libmpi_abi_la_DEPENDENCIES = libweftapi.a libweft.a src/api/libmpi_abi.map
EXTRA_DIST += src/api/libmpi_abi.map
# The soname libmpi_abi.so.1 carries the standard's ABI number. Never unloaded: threads and handlers may outlive a dlclose.
libmpi_abi_la_LDFLAGS = $(AM_LDFLAGS) -version-info 1:0:0 -no-undefined -Wl,-z,defs -Wl,-z,nodelete -Wl,-z,now \
	-Wl,--version-script=$(srcdir)/src/api/libmpi_abi.map $(whole)libweftapi.a,libweft.a$(not_whole)

# make check-abi: compares header and library with the standard's tables, compiles the header in each language (test/api). 77: no tables.
check-abi: all
	@CC="$(CC)" $(top_srcdir)/test/api/abi $(top_srcdir)/include .libs/libmpi_abi.so || test $$? = 77
	@CC="$(CC)" CXX="$(CXX)" $(top_srcdir)/test/api/header $(top_srcdir)/include
.PHONY: check-abi

# Manual pages, below man/ of the build directory. Section 1 is what the tools print; a cross build, which cannot run them, has
# section 3 only.
all-local: gen_manual.stamp
gen_manual.stamp: src/api/gen_manual src/api/gen_tables.py src/api/gen_fortran.py src/api/gen_fortran_mod.py src/api/fortran.tbl \
		src/api/manual.tbl src/api/functions.tbl src/api/extensions.tbl src/api/kinds.tbl \
		mpirun$(EXEEXT) weft-info$(EXEEXT) weft-bench$(EXEEXT) mpicc$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) man/man1 man/man3 && \
	$(PYTHON3) $(srcdir)/src/api/gen_manual --functions man/man3 $(PACKAGE_VERSION) && \
	for tool in mpirun weft-info weft-bench mpicc; do \
		case $$tool in mpicc) option=-showme:help;; *) option=--help;; esac; \
		if ./$$tool $$option >man/$$tool.help 2>/dev/null; then \
			$(PYTHON3) $(srcdir)/src/api/gen_manual --tool $$tool $(PACKAGE_VERSION) man/$$tool.help man/man1/$$tool.1 || exit 1; fi; \
	done && \
	if test -n "$(fortranmoddir)" && test -s man/mpicc.help; then \
		sed 's/^mpicc:/mpifort:/' man/mpicc.help >man/mpifort.help && \
		$(PYTHON3) $(srcdir)/src/api/gen_manual --tool mpifort $(PACKAGE_VERSION) man/mpifort.help man/man1/mpifort.1; fi && touch $@
CLEANFILES += gen_manual.stamp
clean-local: clean-manual
install-data-local: gen_manual.stamp
	$(MKDIR_P) "$(DESTDIR)$(mandir)/man1" "$(DESTDIR)$(mandir)/man3"
	$(INSTALL_DATA) man/man3/*.3 "$(DESTDIR)$(mandir)/man3"
	for page in man/man1/*.1; do test ! -f $$page || $(INSTALL_DATA) $$page "$(DESTDIR)$(mandir)/man1" || exit 1; done
	cd "$(DESTDIR)$(mandir)/man1" && for name in mpiexec; do echo ".so man1/mpirun.1" >$$name.1; done
	cd "$(DESTDIR)$(mandir)/man1" && for name in mpicc_abi mpicxx mpic++ mpiCC mpicxx_abi; do echo ".so man1/mpicc.1" >$$name.1; done
	cd "$(DESTDIR)$(mandir)/man1" && test ! -f mpifort.1 || for name in mpif77 mpif90 mpifort_abi; do echo ".so man1/mpifort.1" >$$name.1; done
uninstall-local:
	cd man/man3 && for page in *.3; do rm -f "$(DESTDIR)$(mandir)/man3/$$page"; done
	cd "$(DESTDIR)$(mandir)/man1" && for name in mpirun mpiexec weft-info weft-bench mpicc mpicc_abi mpicxx mpic++ mpiCC mpicxx_abi \
		mpifort mpif77 mpif90 mpifort_abi; do rm -f $$name.1; done
.PHONY: clean-manual
clean-manual:
	rm -rf man
