# mpicc, mpicxx and their other names: one program; argv[0] selects the language
bin_PROGRAMS += mpicc
mpicc_SOURCES = src/tools/wrapper/main.c src/tools/wrapper/line.c src/tools/wrapper/line.h src/tools/wrapper/prefix.c \
	src/tools/wrapper/prefix.h
mpicc_CPPFLAGS = $(AM_CPPFLAGS) -DWEFT_BINDIR='"$(bindir)"' -DWEFT_LIBDIR='"$(libdir)"' -DWEFT_INCLUDEDIR='"$(includedir)"' \
	-DWEFT_CC='"$(WEFT_CC)"' -DWEFT_CXX='"$(WEFT_CXX)"' \
	-DWEFT_SANITIZE='"$(SANITIZE_CFLAGS)"'
mpicc_LDADD =

install-exec-hook: install-wrapper-names
.PHONY: install-wrapper-names
install-wrapper-names:
	cd "$(DESTDIR)$(bindir)" && for name in mpicc_abi mpicxx mpic++ mpiCC mpicxx_abi; do rm -f $$name && $(LN_S) mpicc $$name || exit 1; done
uninstall-hook: uninstall-wrapper-names
.PHONY: uninstall-wrapper-names
uninstall-wrapper-names:
	cd "$(DESTDIR)$(bindir)" && rm -f mpicc_abi mpicxx mpic++ mpiCC mpicxx_abi
