# src/fortran: libmpifort_abi.so, Fortran's procedures on top of libmpi_abi.so, and the modules. The procedures are C; a module is compiled
# by the program's own compiler, here $(FC), because module files and the symbols of their constants are the compiler's.
if WITH_FORTRAN
lib_LTLIBRARIES += libmpifort_abi.la
libmpifort_abi_la_SOURCES = src/fortran/argv.c src/fortran/argv.h src/fortran/array.c src/fortran/array.h src/fortran/blocks.c \
	src/fortran/blocks.h src/fortran/callbacks.c src/fortran/lengths.c src/fortran/lengths.h src/fortran/runtime.c \
	src/fortran/runtime.h src/fortran/special.c src/fortran/special.inc src/fortran/staging.c src/fortran/staging.h
nodist_libmpifort_abi_la_SOURCES = $(gen_fortran_entries)
# A call of C that needs no lazy binding jumps once less.
libmpifort_abi_la_CFLAGS = $(AM_CFLAGS) -fno-plt
libmpifort_abi_la_LIBADD = $(fortran_objects) libmpi_abi.la
libmpifort_abi_la_DEPENDENCIES = $(fortran_objects) libmpi_abi.la
libmpifort_abi_la_LDFLAGS = $(AM_LDFLAGS) -version-info 1:0:0 -no-undefined -Wl,-z,defs -Wl,-z,now

fortran_objects = src/fortran/weft_mpi_types.lo src/fortran/mpi_f08.lo src/fortran/mpi.lo
fortran_compile = $(AM_V_GEN)$(LIBTOOL) $(AM_V_lt) --tag=CC --mode=compile $(FC) $(FCFLAGS) $(SANITIZE_CFLAGS) $(FC_MODOUT)src/fortran \
	$(FC_MODINC)src/fortran -c -o $@
src/fortran/weft_mpi_types.lo: src/fortran/weft_mpi_types.f90
	$(fortran_compile) src/fortran/weft_mpi_types.f90
src/fortran/mpi_f08.lo: src/fortran/mpi_f08.f90 src/fortran/weft_mpi_types.lo
	$(fortran_compile) src/fortran/mpi_f08.f90
src/fortran/mpi.lo: src/fortran/mpi.f90 src/fortran/weft_mpi_types.lo
	$(fortran_compile) src/fortran/mpi.f90
CLEANFILES += src/fortran/*.mod

# mpif.h and the sources of the modules serve every compiler; module files stand in a folder named after theirs.
nodist_include_HEADERS = src/fortran/mpif.h
fortransourcedir = $(includedir)/weft
nodist_fortransource_DATA = $(gen_fortran_modules)
fortranmoddir = $(includedir)/weft/$(FC_NAME)
nodist_fortranmod_DATA = src/fortran/weft_mpi_types.mod src/fortran/mpi_f08.mod src/fortran/mpi.mod
$(nodist_fortranmod_DATA): $(fortran_objects)
pkgconfig_DATA += weft-fort.pc
endif
