# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# what: sparse direct solver in Fortran (mpif.h), with a C interface
# needs: dpkg-dev gfortran libblas-dev liblapack-dev
# leaves out: root fronts by ScaLAPACK (its functions stay undefined), single precision, orderings of other libraries
#
# Its own examples, which print 1 2 3 4 5; the same saved, restored and solved; and a Poisson problem of 900 unknowns that all are 1.

build()
{
    cat >Makefile.inc <<'END'
LPORDDIR    = $(topdir)/PORD/lib/
IPORD       = -I$(topdir)/PORD/include/
LPORD       = -L$(LPORDDIR) -lpord
ORDERINGSF  = -Dpord
ORDERINGSC  = $(ORDERINGSF)
LORDERINGS  = $(LPORD)
IORDERINGSC = $(IPORD)
PLAT        =
LIBEXT      = .a
LIBEXT_SHARED = .so
FPIC_OPT    = -fPIC
OUTC        = -o # a space ends this
OUTF        = -o # a space ends this
RM          = /bin/rm -f
CC          = mpicc
FC          = mpifort
FL          = mpifort
AR          = ar vr # a space ends this
RANLIB      = ranlib
LIBS        = -llapack -lblas -Wl,--unresolved-symbols=ignore-all
LIBBLAS     = -lblas
LIBOTHERS   = -lpthread
CDEFS       = -DAdd_
OPTF        = -O0 -w -fallow-argument-mismatch
OPTL        = -O0
OPTC        = -O -w
END
    make -j"$JOBS" d # several targets at once mix up the common objects
    make -j"$JOBS" z
}

# shellcheck disable=SC2016,SC2154 # texts for bash -c; output is of common.sh
run_tests()
{
    local kind input
    cd examples || return 1
    export LD_LIBRARY_PATH=$PWD/../lib
    export LD_LIBRARY_PATH=$PWD/../lib
    poisson 30 >poisson.input
    export -f solution
    for kind in d z; do
        input=input_simpletest_real
        [ $kind = d ] || input=input_simpletest_cmplx
        export input
        check -s 60 "solve, $kind" bash -c '"$@" <$input' solve "$MPIRUN" -n "$1" ./${kind}simpletest
        cp "$output" answer
        check "solution, $kind" bash -c 'solution "$@"' solution answer steps
        rm -f ./*.mumps ./*.info
        check -s 60 "save and restore, $kind" bash -c '"$@" <$input' solve "$MPIRUN" -n "$1" ./${kind}simpletest_save_restore
        cp "$output" answer
        check "solution, restored, $kind" bash -c 'solution "$@"' solution answer steps
    done
    export input=poisson.input
    check -s 120 "Poisson" bash -c '"$@" <$input' solve "$MPIRUN" -n "$1" ./dsimpletest
    cp "$output" answer
    check "solution, Poisson" bash -c 'solution "$@"' solution answer ones
    check -s 60 -e 'Solution is : *\( *1\.00 *2\.00' "C interface" "$MPIRUN" -n "$1" ./c_example
    check -s 60 -e 'Solution is : *\( *1\.00 *2\.00' "C interface, save and restore" "$MPIRUN" -n "$1" ./c_example_save_restore
}

# poisson N: the five-point problem of N x N unknowns whose solution is 1, as input of the examples.
poisson()
{
    awk -v n="$1" 'BEGIN {
        print n * n; print 5 * n * n - 4 * n
        for (r = 1; r <= n * n; r++) {
            x = (r - 1) % n; sum = 4; print r, r, 4
            if (x > 0) { print r, r - 1, -1; sum-- }
            if (x < n - 1) { print r, r + 1, -1; sum-- }
            if (r > n) { print r, r - n, -1; sum-- }
            if (r <= n * n - n) { print r, r + n, -1; sum-- }
            right[r] = sum
        }
        for (r = 1; r <= n * n; r++) print right[r]
    }'
}

# solution FILE WANTED: the numbers printed last, real parts only, must be 1 2 3 4 5 (steps), or 900 times 1 (ones).
solution()
{
    awk -v wanted="$2" '/Solution is/ { on = 1; sub(/.*Solution is/, ""); n = 0; bad = 0 }
        on { gsub(/[(]/, " "); gsub(/,[^)]*[)]/, " ")
             for (i = 1; i <= NF; i++) { if ($i !~ /^[-+0-9.E]+$/) { on = 0; break }
                 n++; if (($i - (wanted == "steps" ? n : 1)) ^ 2 > 1e-8) bad = 1 } }
        END { exit bad || n != (wanted == "steps" ? 5 : 900) }' "$1"
}
