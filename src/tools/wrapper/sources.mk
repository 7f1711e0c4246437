# mpicc, mpicxx, mpifort and their other names: one program; argv[0] selects the language
bin_PROGRAMS += mpicc
mpicc_SOURCES = src/tools/wrapper/main.c src/tools/wrapper/line.c src/tools/wrapper/line.h src/tools/wrapper/prefix.c \
	src/tools/wrapper/prefix.h
mpicc_CPPFLAGS = $(AM_CPPFLAGS) -DWEFT_BINDIR='"$(bindir)"' -DWEFT_LIBDIR='"$(libdir)"' -DWEFT_INCLUDEDIR='"$(includedir)"' \
	-DWEFT_CC='"$(WEFT_CC)"' -DWEFT_CXX='"$(WEFT_CXX)"' \
	-DWEFT_FC='"$(WEFT_FC)"' -DWEFT_FC_NAME='"$(FC_NAME)"' \
	-DWEFT_SANITIZE='"$(SANITIZE_CFLAGS)"'
mpicc_LDADD =
if WITH_FORTRAN
fortran_wrapper_names = mpifort mpif77 mpif90 mpifort_abi
endif
wrapper_names = mpicc_abi mpicxx mpic++ mpiCC mpicxx_abi $(fortran_wrapper_names)

install-exec-hook: install-wrapper-names
.PHONY: install-wrapper-names
install-wrapper-names:
	cd "$(DESTDIR)$(bindir)" && for name in $(wrapper_names); do rm -f $$name && $(LN_S) mpicc $$name || exit 1; done
uninstall-hook: uninstall-wrapper-names
.PHONY: uninstall-wrapper-names
uninstall-wrapper-names:
	cd "$(DESTDIR)$(bindir)" && rm -f $(wrapper_names)
