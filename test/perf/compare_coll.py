# SPDX-License-Identifier: BSD-3-Clause
"""compare_coll: compare's part coll: which collectives are run with how many ranks, and their tables.

A cell of a table has Weft's median in us and how many times better that is than the best peer. Persistent calls are left out:
those of MPICH 4.0 deliver wrong data (weft-bench --check), Open MPI 4.1 has none.
"""
import json
import re
import statistics
import time

TESTS = ("barrier bcast bcast1 reduce reduce1 allreduce gather gather1 gatherv scatter scatter1 scatterv allgather allgatherv alltoall "
         "alltoallv alltoallw reduce_scatter_block reduce_scatter scan exscan neighbor_allgather neighbor_alltoall").split()
SIZES, SIZES_QUICK = "8,256,1K,4K,16K,64K,256K,1M,4M", "8,1K,32K,256K,4M"
RANKS = [2, 3, 4, 8, 16]
MEMORY = "64M"  # of one rank: larger rows, alltoall of 4 MB with 16 ranks, are left out
QUICK_MINUTES = 9  # no launch of --quick begins later
QUICK_TOGETHER = 3  # operations of a launch of --quick: a launch takes as long as its rows
# --quick has the 17 collectives of MPI with a rotating root, without those of neighbours.
TESTS_QUICK = [test for test in TESTS if not test.endswith("1") and not test.startswith("neighbor")]


def groups(options):
    """Arguments of weft-bench for each launch: operations, blocking and nonblocking."""
    sizes, together = (SIZES_QUICK, QUICK_TOGETHER) if options.quick else (SIZES, 1)
    tests = options.collectives or (TESTS_QUICK if options.quick else TESTS)
    launches = [tests[i:i + together] for i in range(0, len(tests), together)]
    return [[*(form + test for test in launch for form in ("", "i")), f"--list-sizes={sizes}", "--samples=5", f"--memory={MEMORY}"]
            for launch in launches]


def measure(lab, rounds, row_ms):
    """Rounds over all numbers of ranks, so that --quick, whose time is limited, leaves out rounds before rows."""
    end = time.monotonic() + 60 * QUICK_MINUTES if lab.options.quick else float("inf")
    for turn in range(rounds):
        for ranks in lab.options.ranks or RANKS:
            if ranks == 2 or turn < 3:
                lab.suite(f"coll {ranks}, round {turn + 1}", f"coll {ranks}", ranks, groups(lab.options), row_ms, end)


def rows_before(text):
    """The finished tests and rows of a report that ended too early."""
    tests = []
    for line in text.splitlines():
        head = re.search(r'\{"test": "(\w+)", "unit": "([\w/]+)", "rows": \[', line)
        if head:
            tests.append({"test": head[1], "unit": head[2], "rows": []})
        elif tests and '"bytes"' in line:
            try:
                tests[-1]["rows"].append(json.loads(line.strip().rstrip(",")))
            except ValueError:
                break
    return {"tests": tests}


def base(test):
    """Name of the blocking form."""
    return test[1:] if test[:1] == "i" and test[1:] in TESTS else test


def titles(lab):
    """(title, suite, kinds of CPUs) of each table: with more ranks than CPUs all kinds are taken together."""
    suites = {suite for suite, _, _ in lab.figures if suite.startswith("coll ")}
    for suite in sorted(suites, key=lambda s: int(s[5:])):
        if suite == "coll 2":
            for kind in sorted({kind for s, _, kind in lab.figures if s == suite}, reverse=True):
                yield f"2 ranks, {kind} CPUs", suite, [kind]
        else:
            yield f"{suite[5:]} ranks", suite, None


def cells(lab, suite, kinds, merged):
    """{(test, bytes): {side: medians}} of one table."""
    out = {}
    for its_suite, name, kind in lab.figures:
        if its_suite == suite and (not kinds or kind in kinds):
            by_side = merged(lab, suite, name) if not kinds else lab.figures[(suite, name, kind)]
            if "Weft" in by_side:
                out[(name[0], name[2])] = by_side
    return out


def matrix(rows, nonblocking, best_peer, figure, size):
    tests = [t for t in TESTS if any((test == "i" + t if nonblocking else test == t) for test, _ in rows)]
    counts = sorted({count for test, count in rows if test.endswith(tuple(tests)) and count})
    if not tests:
        return []
    lines = ["| us / times better | " + " | ".join(size(count) for count in counts) + " |", "|---|" + "--:|" * len(counts)]
    for test in tests:
        name = ("i" if nonblocking else "") + test
        line = []
        for count in [0] if (name, 0) in rows else counts:
            by_side = rows.get((name, count))
            best = best_peer(by_side, True) if by_side else None
            if not best:
                line.append(figure(statistics.median(by_side["Weft"])) + " / -" if by_side else "-")
                continue
            ratio = f"{best[1][0]:.2f}"
            line.append(f"{figure(statistics.median(by_side['Weft']))} / " + (f"**{ratio}**" if best[2] == "behind" else ratio))
        lines.append(f"| {name} | " + " | ".join(line + [""] * (len(counts) - len(line))) + " |")
    return lines


def behind(lab, helpers):
    """Rows in which the best peer is ahead beyond the spread, or by more than a tenth within it."""
    merged, best_peer, figure, size = helpers
    lines = ["| behind | | Weft, us | best peer | times better (spread) | |", "|---|---|--:|---|---|---|"]
    for title, suite, kinds in titles(lab):
        rows = cells(lab, suite, kinds, merged)
        for test, count in sorted(rows, key=lambda row: (TESTS.index(base(row[0])), row[0] != base(row[0]), row[1])):
            by_side = rows[(test, count)]
            best = best_peer(by_side, True)
            if best and (best[2] == "behind" or best[1][0] < 0.9):
                what = f"{test} {size(count)}" if count else test
                lines.append(f"| {what} | {title} | {figure(statistics.median(by_side['Weft']))} | {best[0]} | "
                             f"{best[1][0]:.2f} ({best[1][1]:.2f}-{best[1][2]:.2f}) | "
                             f"{'' if best[2] == 'behind' else 'in the spread'} |")
    return lines if len(lines) > 2 else ["No row is behind."]


def tables(lab, helpers):
    merged, best_peer, figure, size = helpers
    out = []
    for title, suite, kinds in titles(lab):
        rows = cells(lab, suite, kinds, merged)
        for nonblocking in (False, True):
            lines = matrix(rows, nonblocking, best_peer, figure, size)
            if lines:
                out += ["", f"**{title}, {'nonblocking with MPI_Wait at once' if nonblocking else 'blocking'}**", "", *lines]
    return out + ["", *behind(lab, helpers)] if out else []
