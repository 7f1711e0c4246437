# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# what: eigenvalues of large sparse matrices in Fortran (mpif.h): PARPACK, ARPACK's parallel part
# needs: dpkg-dev gfortran libblas-dev liblapack-dev
# release: trixie
# leaves out: the serial tests, BLACS, the bindings of C and C++; in a quick run all but double precision
#
# The MPI examples of PARPACK, which print each eigenvalue with its residual: as many as asked for must converge, with small residuals.

build()
{
    local kinds='s d c z' kind name
    [ -z "$QUICK" ] || kinds=d
    {
        ls UTIL/*.f PARPACK/UTIL/MPI/*.f PARPACK/SRC/MPI/pcontext.f dbgini.f staini.f
        for kind in $kinds; do
            ls SRC/"$kind"*.f PARPACK/SRC/MPI/p"$kind"*.f
        done
        [ "${kinds#*c}" = "$kinds" ] || ls SRC/zzdotc.f PARPACK/SRC/MPI/p[sd]*norm2.f PARPACK/SRC/MPI/p[sd]lamch10.f
    } | sort -u | grep -v second_NONE >sources # a timer for systems without one
    mkdir -p objects
    # shellcheck disable=SC2016 # for the inner shell
    xargs -P "$JOBS" -I FILE sh -c 'name=$(echo FILE | tr / _); mpifort -O1 -w -fallow-argument-mismatch -IPARPACK/SRC/MPI -I. \
        -c FILE -o "objects/${name%.f}.o"' <sources
    for name in PARPACK/EXAMPLES/MPI/p["${kinds// /}"]?drv*.f; do
        mpifort -O1 -w -fallow-argument-mismatch "$name" objects/*.o -llapack -lblas -o "$(basename "$name" .f)"
    done
}

# shellcheck disable=SC2154 # output is of common.sh
run_tests()
{
    local program
    for program in ./p???rv[0-9]; do
        if [ "$1" -gt 5 ] && [[ $program == *drv1 ]]; then # av reads v(nx+1) and v(1-nx) of a rank that has one row of the 10 x 10 grid
            result skipped "${program#./}" "reads beyond its arrays with more than 5 ranks"
            continue
        fi
        check -s 120 "${program#./}" "$MPIRUN" -n "$1" "$program"
        cp "$output" answer
        export -f converged
        check "${program#./}, residuals" bash -c 'converged answer'
    done
}

# converged FILE: the number of converged values is that of the values asked for, or one more (a conjugate pair), and each printed row
# ends with a residual below 1e-3.
converged()
{
    awk '/number of Ritz values requested/ { asked = $NF }
        /number of converged Ritz values/ { got = $NF }
        /^ *Row *[0-9]+:/ { rows++; value = $NF; sub(/[dD]/, "E", value); if (value ^ 2 > 1e-6) bad = 1 }
        END { print asked, got, rows, bad + 0; exit !(asked && got >= asked && rows >= got && !bad) }' "$1"
}
