# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# what: solvers of sparse linear systems: the drivers ij, struct, sstruct
# needs: dpkg-dev
# leaves out: Fortran and C++ interfaces, jobs that read what a job of other ranks has written
#
# The jobs of its files src/test/TEST_*/*.jobs that have as many ranks. A job passes if it ends well and each number of iterations is the
# one of its own saved results, or off by one or a twentieth: they are of another machine.

build()
{
    cd src
    ./configure --disable-fortran --with-MPI CC="$MPICC" CXX="$MPICXX" --with-extra-CFLAGS="-O2 -w"
    make -j"$JOBS"
    make -C test -j"$JOBS" ij struct sstruct
}

# iterations: prints the numbers of iterations in its input, one a line.
iterations() { sed -nE 's/.*Iterations *= *([0-9]+).*/\1/p'; }

# same_iterations SAVED OUT: compares the two lists.
same_iterations()
{
    paste -d ' ' "$1" "$2" | awk '
        NF != 2 || ($1 - $2) ^ 2 > (1 + $1 / 20) ^ 2 { print "wrong number of iterations: " $2 ", saved " $1; bad = 1 }
        END { exit bad }'
}

# job COMMAND...: runs it; compares its iterations with $saved, if that file has a line.
job()
{
    "$@" >job.out 2>&1 || { local rc=$?; cat job.out; return $rc; }
    cat job.out
    [ ! -s "$saved" ] || { iterations <job.out >job.iterations; same_iterations "$saved" job.iterations; }
}

run_tests()
{
    local ranks=$1 files="TEST_ij/solvers TEST_ij/coarsening TEST_ij/interp TEST_ij/agg_interp TEST_ij/lobpcg TEST_ij/smoother"
    files="$files TEST_ij/vector TEST_struct/* TEST_sstruct/*"
    [ -z "$QUICK" ] || files="TEST_ij/solvers TEST_struct/pfmg*"
    cd src/test || return 1
    export -f job iterations same_iterations
    export saved=$PWD/saved.iterations
    local file folder name line out
    for file in $(for name in $files; do ls "$name.jobs"; done 2>/dev/null); do
        folder=$(dirname "$file")
        name=$(basename "$file" .jobs)
        while read -r line; do
            out=${line##*> }
            line=${line%%>*}
            # shellcheck disable=SC2086
            set -- $line
            shift 3
            [ -x "$(basename "$1")" ] || continue
            : >"$saved"
            [ ! -f "$folder/$name.saved" ] ||
                awk -v out="$out" '/^# Output file:/ { on = $NF == out } on' "$folder/$name.saved" | iterations >"$saved"
            cd "$folder" || return 1
            check -s 120 "$name ${out##*.out.}" bash -c 'job "$@"' job "$MPIRUN" -n "$ranks" "../$(basename "$1")" "${@:2}"
            cd .. || return 1
        done < <(grep -E "^ *mpirun +-np +$ranks +\./(ij|struct|sstruct) " "$file" | grep -Ev 'fromfile|fromonecsrfile')
    done
}
