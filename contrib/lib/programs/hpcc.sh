# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# what: HPL (dense linear system), PTRANS, MPIRandomAccess, MPIFFT, latency and bandwidth
# needs: dpkg-dev libblas-dev
# leaves out: RandomAccess with more than 4 ranks (it loses updates by a race of its own)
#
# HPL calls MPI_Address and MPI_Type_struct, which MPI 3.0 removed: the build names their successors.
# One run solves with every broadcast of HPL, with and without lookahead, then runs the other parts; each verifies its result.

build()
{
    cat >hpl/Make.weft <<'END'
SHELL        = /bin/sh
CD           = cd
CP           = cp
LN_S         = ln -s
MKDIR        = mkdir
RM           = /bin/rm -f
TOUCH        = touch
ARCH         = $(arch)
TOPdir       = ../../..
INCdir       = $(TOPdir)/include
BINdir       = $(TOPdir)/bin/$(ARCH)
LIBdir       = $(TOPdir)/lib/$(ARCH)
HPLlib       = $(LIBdir)/libhpl.a
LAlib        = -lblas
F2CDEFS      = -DAdd_ -DF77_INTEGER=int -DStringSunStyle
MPIDEFS      = -DMPI_Address=MPI_Get_address -DMPI_Type_struct=MPI_Type_create_struct
HPL_INCLUDES = -I$(INCdir) -I$(INCdir)/$(ARCH)
HPL_LIBS     = $(HPLlib) $(LAlib) -lm
HPL_DEFS     = $(F2CDEFS) $(MPIDEFS) $(HPL_INCLUDES)
CC           = $(MPICC)
CCNOOPT      = $(HPL_DEFS) -w
CCFLAGS      = $(HPL_DEFS) -w -O2
LINKER       = $(CC)
LINKFLAGS    = $(CCFLAGS)
ARCHIVER     = ar
ARFLAGS      = r
RANLIB       = echo
END
    make arch=weft # several make commands at once mix up its library
}

run_tests()
{
    local grid
    case $1 in
        1) grid="1 1" ;;
        2) grid="1 2" ;;
        4) grid="2 2" ;;
        8) grid="2 4" ;;
        *) grid="1 $1" ;;
    esac
    rm -f hpccoutf.txt
    cat >hpccinf.txt <<END
HPLinpack benchmark input file
.
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
$([ -n "$QUICK" ] && echo 300 || echo 700)
1            # of NBs
40           NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
${grid% *}
${grid#* }
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
6            # of broadcast
0 1 2 3 4 5  BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
2            # of lookahead depth
0 1          DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### This line (no. 32) is ignored (it serves as a separator). ######
2            Number of additional problem sizes for PTRANS
100 333      values of N
2            number of additional blocking sizes for PTRANS
9 16         values of NB
END
    check -s 600 "hpcc ends" "$MPIRUN" -n "$1" ./hpcc
    cat hpccoutf.txt
    check -e '^ *12 tests completed and passed residual checks' "HPL, 12 solutions" cat hpccoutf.txt
    check -e '^ *0 tests completed and failed residual checks' "HPL, no wrong solution" cat hpccoutf.txt
    check -e '^(WALL|CPU) .* PASSED' -n '^(WALL|CPU) .* FAILED' "PTRANS" cat hpccoutf.txt
    check -e '^End of HPL section' "all parts end" cat hpccoutf.txt
    if [ "$1" -gt 4 ]; then
        # It then posts 4 receives, and ends with a rank's last message although an update before it may have completed too: some
        # updates are lost, with other MPIs as well; Success is 0 then.
        result skipped "RandomAccess" "more than 4 ranks lose updates by a race of its own"
    else
        check -e 'Found 0 errors in' -n 'Found [1-9][0-9]* errors in' "RandomAccess" cat hpccoutf.txt
        check -e '^Success=1' "all parts succeed" cat hpccoutf.txt
    fi
}
