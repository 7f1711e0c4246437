# SPDX-License-Identifier: BSD-3-Clause
#
# Checks of configure. Missing dependencies are collected and reported together, each with its Debian package.

AC_DEFUN([WEFT_NEED_START], [weft_missing= ; weft_packages= ])

# WEFT_NEED(what, Debian package): records a missing dependency.
AC_DEFUN([WEFT_NEED], [
    weft_missing="$weft_missing
    $1 (Debian package: $2)"
    weft_packages="$weft_packages $2"
])

AC_DEFUN([WEFT_NEED_END], [
    AS_IF([test -n "$weft_packages"],
          [AC_MSG_ERROR([missing:$weft_missing
  On Debian: apt-get install$weft_packages])])
])

# WEFT_LIBRARY_MAYBE(VARIABLE, pkg-config name, header, Debian package): sets VARIABLE_CFLAGS, VARIABLE_LIBS and have_VARIABLE.
AC_DEFUN([WEFT_LIBRARY_MAYBE], [
    AC_ARG_VAR([$1_CFLAGS], [compiler flags for $2])
    AC_ARG_VAR([$1_LIBS], [linker flags for $2])
    AS_IF([test -z "${$1_CFLAGS+set}" && test -n "$PKG_CONFIG"], [$1_CFLAGS=`$PKG_CONFIG --cflags $2 2>/dev/null`])
    AS_IF([test -z "${$1_LIBS+set}" && test -n "$PKG_CONFIG"], [$1_LIBS=`$PKG_CONFIG --libs $2 2>/dev/null`])
    weft_cppflags=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $$1_CFLAGS"
    AC_CHECK_HEADER([$3], [have_$1=yes], [have_$1=no])
    CPPFLAGS=$weft_cppflags
    AS_IF([test "$have_$1" = no], [AC_MSG_NOTICE([$2 not found (Debian package: $4)])])
])

AC_DEFUN([WEFT_LIBRARY], [
    WEFT_LIBRARY_MAYBE([$1], [$2], [$3], [$4])
    AS_IF([test "$have_$1" = no], [WEFT_NEED([$3], [$4])])
])

# The compiler must support gnu11, visibility, and lock-free 8-byte C11 atomics without a library.
AC_DEFUN([WEFT_COMPILER], [
    weft_cflags=$CFLAGS
    CFLAGS="$CFLAGS -std=gnu11 -fvisibility=hidden"
    AC_MSG_CHECKING([whether $CC supports gnu11, atomics and visibility])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <stdatomic.h>
#include <stdint.h>
_Static_assert(sizeof(void *) == 8, "64 bit");
static _Atomic uint64_t word;]], [[return (int)atomic_fetch_add(&word, 1);]])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         WEFT_NEED([a 64-bit C compiler with -std=gnu11 and lock-free 8-byte atomics], [gcc])])
    CFLAGS=$weft_cflags
])

# BARE_CFLAGS: for code that runs inside patched system calls, where the vector registers are in use (src/mem/syscall_site.h).
AC_DEFUN([WEFT_BARE_REGISTERS], [
    weft_cflags=$CFLAGS
    BARE_CFLAGS="-mgeneral-regs-only"
    CFLAGS="$CFLAGS -Werror $BARE_CFLAGS"
    AC_MSG_CHECKING([whether $CC supports $BARE_CFLAGS])
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([[unsigned long twice(unsigned long n) { return 2 * n; }]])],
        [AC_MSG_RESULT([yes])
         BARE_CFLAGS="$BARE_CFLAGS -DWEFT_BARE_REGISTERS"],
        [AC_MSG_RESULT([no: system calls of libc cannot be patched])
         BARE_CFLAGS=])
    CFLAGS=$weft_cflags
    AC_SUBST([BARE_CFLAGS])
])

# Directory of libpmix for dlopen: Debian installs it outside of the linker's search path.
AC_DEFUN([WEFT_PMIX_SONAME], [
    weft_pmix_dir=`$PKG_CONFIG --variable=libdir pmix 2>/dev/null`
    AC_DEFINE_UNQUOTED([WEFT_PMIX_LIBDIR], ["$weft_pmix_dir"], [where libpmix.so.2 was at build time])
])

AC_DEFUN([WEFT_SANITIZERS], [
    SANITIZE_CFLAGS=
    AS_IF([test "$enable_asan" = yes && test "$enable_tsan" = yes], [AC_MSG_ERROR([--enable-asan and --enable-tsan exclude each other])])
    AS_IF([test "$enable_asan" = yes], [SANITIZE_CFLAGS="$SANITIZE_CFLAGS -fsanitize=address"])
    AS_IF([test "$enable_ubsan" = yes], [SANITIZE_CFLAGS="$SANITIZE_CFLAGS -fsanitize=undefined -fno-sanitize-recover=undefined"])
    AS_IF([test "$enable_tsan" = yes], [SANITIZE_CFLAGS="$SANITIZE_CFLAGS -fsanitize=thread"])
    AS_IF([test -n "$SANITIZE_CFLAGS"], [SANITIZE_CFLAGS="$SANITIZE_CFLAGS -fno-omit-frame-pointer"])
    AC_SUBST([SANITIZE_CFLAGS])
])

AC_DEFUN([WEFT_LITTLE_ENDIAN], [
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "little-endian");]], [])], [],
                      [AC_MSG_ERROR([Weft supports little-endian machines only])])
])

# transports/ofi needs the API of libfabric 1.17.
AC_DEFUN([WEFT_OFI_VERSION], [
    weft_cppflags=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $OFI_CFLAGS"
    AC_MSG_CHECKING([whether libfabric is 1.17 or later])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <rdma/fabric.h>
_Static_assert(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION) >= FI_VERSION(1, 17), "too old");]], [])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         have_OFI="no: older than 1.17"])
    CPPFLAGS=$weft_cppflags
])

# WEFT_FORTRAN: sets have_fortran, fortran_why (if it is no), fortran_text, FC_NAME, FC_MODOUT and FC_MODINC. Requires AC_PROG_FC.
AC_DEFUN([WEFT_FORTRAN], [
    have_fortran=no
    fortran_why=
    FC_NAME=none
    AS_IF([test "$enable_fortran" != yes], [fortran_why="disabled by --disable-fortran"],
          [test -z "$FC"], [fortran_why="no Fortran compiler found (Debian package: gfortran)"],
          [WEFT_FORTRAN_ARRAYS])
    AS_IF([test "$have_fortran" = yes],
          [FC_NAME=`set dummy $FC; basename "$[2]" | $SED 's/-@<:@0-9.@:>@*$//'`
           fortran_text=$FC
           AS_CASE([$FC_NAME], [*gfortran*], [FC_MODOUT=-J], [FC_MODOUT='-module-dir '])],
          [fortran_text="none: $fortran_why"
           AC_MSG_NOTICE([Fortran is left out: $fortran_why])])
    FC_MODINC=-I
    WEFT_FC=$FC
    AC_SUBST([FC_NAME])
    AC_SUBST([FC_MODOUT])
    AC_SUBST([FC_MODINC])
    AC_SUBST([WEFT_FC])
])

# Compiles an interface with TYPE(*), DIMENSION(..) and compares the descriptor and the symbol with src/fortran/array.h. A cross build,
# which cannot run it, compiles only.
AC_DEFUN([WEFT_FORTRAN_ARRAYS], [
    AC_MSG_CHECKING([whether $FC passes TYPE(*), DIMENSION(..) by the descriptors of gfortran 8 and later])
    mkdir -p conftest.dir
    cat >conftest.dir/main.f90 <<'_WEFT'
program main
  interface
    subroutine weft_probe(buf, ok)
      type(*), dimension(..), asynchronous :: buf
      logical, intent(out) :: ok
    end subroutine
  end interface
  integer, asynchronous :: a(10, 8)
  logical :: ok
  call weft_probe(a(2:9:3, 2:7), ok)
  if (.not. ok) error stop
end program
_WEFT
    cat >conftest.dir/probe.c <<'_WEFT'
#include <stddef.h>
#include "fortran/array.h"
void weft_probe_(const weft_f_array *at, int *ok)
{
    *ok = at->bytes == 4 && at->rank == 2 && at->span == 4 && at->dim@<:@0@:>@.stride == 3 && at->dim@<:@1@:>@.stride == 10 &&
          at->dim@<:@0@:>@.upper - at->dim@<:@0@:>@.lower == 2 && at->dim@<:@1@:>@.upper - at->dim@<:@1@:>@.lower == 5;
}
_WEFT
    AS_IF([$CC -I"$srcdir/src" -I"$srcdir/include" -c conftest.dir/probe.c -o conftest.dir/probe.o 2>&AS_MESSAGE_LOG_FD &&
           $FC $FCFLAGS conftest.dir/main.f90 conftest.dir/probe.o -o conftest.dir/main 2>&AS_MESSAGE_LOG_FD],
          [AS_IF([test "$cross_compiling" = yes || ./conftest.dir/main 2>&AS_MESSAGE_LOG_FD], [have_fortran=yes],
                 [fortran_why="$FC passes arrays by other descriptors than gfortran"])],
          [fortran_why="$FC cannot compile TYPE(*), DIMENSION(..) (config.log)"])
    rm -rf conftest.dir
    AC_MSG_RESULT([$have_fortran])
])
