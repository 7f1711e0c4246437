# SPDX-License-Identifier: BSD-3-Clause
#
# mpi4py_tests: runs one module of mpi4py's test suite, unchanged, on each rank of a job, and notes the result of each test. Called by
# mpi4py.sh. Rank R writes FOLDER/MODULE.R: lines of result, test, detail, flushed one by one, since a test may never end.
# With --sum, merges these files instead: a test has the worst result that a rank saw.
"""mpi4py_tests.py FOLDER TESTS-FOLDER MODULE
   mpi4py_tests.py --sum FOLDER MODULE RANKS"""
import os
import sys
import traceback
import unittest

ORDER = ("failed", "began", "stops", "passed", "skipped")  # worst first; skipped on some ranks only counts as passed


def missing_function(error):
    """The function that raised MPI_ERR_UNSUPPORTED_OPERATION, by the frame of mpi4py that called it; None: another error."""
    from mpi4py import MPI
    kind, value, trace = error
    if not issubclass(kind, MPI.Exception) or "UNSUPPORTED_OPERATION" not in str(value):
        return None
    frames = [frame.name for frame in traceback.extract_tb(trace) if "mpi4py.MPI" in frame.name or frame.filename.startswith("mpi4py/")]
    name = frames[-1].split(".")[-1] if frames else "a function"
    return "MPI_" + name.replace("PyMPI_", "").capitalize() if frames else name


class Noted(unittest.TestResult):
    def __init__(self, out):
        super().__init__()
        self.out = out

    def note(self, result, test, detail=""):
        self.out.write("%s\t%s\t%s\n" % (result, test.id(), " ".join(detail.split())))
        self.out.flush()

    def startTest(self, test):
        super().startTest(test)
        self.note("began", test)

    def addSuccess(self, test):
        self.note("passed", test)

    def addSkip(self, test, reason):
        self.note("skipped", test, reason)

    def addError(self, test, err):
        function = missing_function(err)
        if function:
            self.note("stops", test, function)
        else:
            text = "".join(traceback.format_exception(*err))
            sys.stderr.write("%s\n%s" % (test.id(), text))
            self.note("failed", test, traceback.format_exception_only(*err[:2])[-1])

    addFailure = addError

    def addExpectedFailure(self, test, err):
        self.note("passed", test)

    def addUnexpectedSuccess(self, test):
        self.note("failed", test, "unexpected success")


def run(folder, tests, name):
    from mpi4py import MPI
    sys.path.insert(0, tests)
    os.chdir(tests)
    with open(os.path.join(folder, "%s.%d" % (name, MPI.COMM_WORLD.Get_rank())), "w", encoding="utf-8") as out:
        suite = unittest.defaultTestLoader.loadTestsFromName(name)
        suite.run(Noted(out))
        out.write("end\t\t\n")


def sum_up(folder, name, ranks):
    found = {}  # test -> {rank: (result, detail)}
    missing = []
    for rank in range(ranks):
        has_end = False
        try:
            with open(os.path.join(folder, "%s.%d" % (name, rank)), encoding="utf-8") as lines:
                for line in lines:
                    result, test, detail = line.rstrip("\n").split("\t", 2)
                    if result == "end":
                        has_end = True
                    else:
                        found.setdefault(test, {})[rank] = (result, detail)
        except OSError:
            pass
        if not has_end:
            missing.append(rank)
    for test, ends in found.items():
        result, detail = min(ends.values(), key=lambda end: ORDER.index(end[0]))
        if result == "began":
            result, detail = "failed", "does not end on rank %s" % min(rank for rank, end in ends.items() if end[0] == "began")
        print("%s\t%s\t%s" % (result, test, detail))
    if missing and not any(end[0] == "began" for ends in found.values() for end in ends.values()):
        print("failed\t%s\trank %d did not run to the end" % (name, missing[0]))


if __name__ == "__main__":
    if sys.argv[1] == "--sum":
        sum_up(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        sys.dont_write_bytecode = True
        run(*sys.argv[1:4])
