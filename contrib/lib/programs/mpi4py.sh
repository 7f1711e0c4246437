# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# what: MPI for Python, with its test suite: all of MPI 3.1 from Python
# needs: dpkg-dev python3-dev cython3 python3-numpy
# leaves out: test_file, test_io (files), test_win, test_rma, test_rma_nb (windows), test_spawn, test_dynproc (dynamic processes)
#
# Each module of tests is a job of its own; each test of it counts.

build() { python3 setup.py build --mpicc="$MPICC"; }

run_tests()
{
    local built notes=$PWD/notes.$1 module
    built=$(echo "$PWD"/build/lib.*)
    rm -rf "$notes"
    mkdir "$notes"
    for path in test/test_*.py; do
        module=$(basename "$path" .py)
        case $module in
            test_file | test_io | test_win | test_rma | test_rma_nb | test_spawn | test_dynproc) continue ;;
        esac
        echo "---- $module"
        PYTHONPATH=$built timeout --kill-after=10 180 "$MPIRUN" -n "$1" python3 "$PROGRAMS/mpi4py_tests.py" "$notes" "$PWD/test" "$module" \
            </dev/null || echo "exit code $?"
        python3 "$PROGRAMS/mpi4py_tests.py" --sum "$notes" "$module" "$1" >>"$RESULTS"
    done
}
