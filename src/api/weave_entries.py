# SPDX-License-Identifier: BSD-3-Clause
#
# weave_entries: src/mpi/calls.h, the entry points (src/api/entries-*.c) and the list of missing functions. Used by weave.
# Invariant: an entry holds one unlikely branch for all checks; what is wrong is found by a cold function beside it, which asks
# checks.h the same questions again, one by one, in the order init, communicator, others.
from weave_checks import checks_of, cold_checks, cold_declare, has_data
from weave_header import wrapped
from weave_tables import TableError

# Which chapters stand in which file.
FILES = {
    "p2p": ("point-to-point", "partitioned"),
    "type": ("datatype", "language"),
    "coll": ("collective",),
    "comm": ("communicators", "topologies", "processes", "sessions"),
    "env": ("environment", "info", "external", "abi", "deprecated"),
    "rest": ("windows", "files", "tools"),
}

CARD = """\
/* SPDX-License-Identifier: BSD-3-Clause
 *
 * %s
 * Woven by src/api/weave from src/api/functions.tbl: change that.
 */
"""


def inner_name(row):
    return "weft_mpi_" + row.name.lower()


def converted(param):
    """The inner C type of an argument that is a handle turned into an object, or None."""
    if param.mark == "" and param.length is None:
        if param.kind_is("comm"):
            return "weft_comm *"
        if param.kind_is("type"):
            return "const weft_type *"
        if param.kind_is("op"):
            return "const weft_op *"
    return None


def is_poly_array(param):
    return param.kind is not None and param.kind.is_poly and param.length is not None


def inner_declare_one(row, param, name_of):
    if param.name == "...":
        raise TableError("%s: variable arguments cannot be woven through" % row.name)
    if param.is_wide_only:
        raise TableError("%s: parameters of the large-count twin alone cannot be woven yet" % row.name)
    if is_poly_array(param):
        if not param.is_in():
            raise TableError("%s: arrays of counts going out cannot be woven yet" % row.name)
        return "weft_counts " + param.name
    if param.is_callback_poly:
        return "void *%s, bool is_large" % param.name
    return converted(param) + name_of(row, param) if converted(param) else param.declare(True)


def inner_declare(row):
    return ", ".join(inner_declare_one(row, p, lambda _, param: param.name) for p in row.params) or "void"


def calls_header(tables):
    out = [CARD % "calls.h: what the woven entry points call: one function of src/mpi per built row of the table."]
    out.append("#ifndef WEFT_MPI_CALLS_H\n#define WEFT_MPI_CALLS_H\n\n#include <mpi.h>\n#include <stdbool.h>")
    out.append('#include <stddef.h>\n#include <stdint.h>\n')
    out.append('#include "mpi/comm.h"\n#include "type/op.h"\n#include "type/type.h"\n')
    out.append("/* An array of counts or displacements as the caller has it: elements of 4 or 8 bytes. `at` is borrowed. */")
    out.append("typedef struct weft_counts {\n    const void *at;\n    size_t width;\n} weft_counts;\n")
    out.append("static inline int64_t weft_counts_get(weft_counts counts, size_t index)\n{")
    out.append("    return counts.width == 4 ? ((const int32_t *)counts.at)[index] : ((const int64_t *)counts.at)[index];\n}\n")
    out.append("#pragma GCC visibility push(hidden)")
    for row in tables.rows:
        if row.built == "yes":
            out.append(wrapped("%s %s(%s);" % (row.result(), inner_name(row), inner_declare(row))))
    out.append("#pragma GCC visibility pop\n\n#endif")
    return "\n".join(out) + "\n"


def narrow_outs(row, wide):
    """Parameters whose narrow form cannot hold what the inner function gives."""
    if wide:
        return []
    return [p for p in row.params if p.kind is not None and p.kind.is_poly and p.length is None and p.mark in (">", "<>")]


def arguments(row, wide):
    out = []
    for param in row.params:
        if is_poly_array(param):
            out.append("(weft_counts){%s, sizeof *%s}" % (param.name, param.name))
        elif param.is_callback_poly:
            out.append("(void *)%s, %s" % (param.name, "true" if wide else "false"))
        elif param in narrow_outs(row, wide):
            out.append("&%s_wide" % param.name)
        elif converted(param):
            out.append("comm_at" if param is row.comm() else param.name + "_at")
        else:
            out.append(param.name)
    return ", ".join(out)


def door(row):
    """The worker that the entry locks, as a C expression, or None."""
    if row.via == "free" or row.flags & {"open", "unlocked", "any"}:
        return None
    if row.via not in ("comm", "world"):
        raise TableError("%s: a built row via %s must be open: its function in src/mpi takes the locks" % (row.name, row.via))
    return "comm_at->worker" if row.via == "comm" else "weft_world_now->workers[0]"


def is_threaded(row):
    """Must the worker be locked at all? A C expression."""
    return "comm_at->worker->is_threaded" if row.via == "comm" else "weft_world_now->workers[0]->is_threaded"


def call_number(row):
    """Of a call that launchers are shown (core/call_status): every one that may wait. None: the others."""
    if row.built != "yes" or row.returns or row.via == "tool" or "unlocked" in row.flags:
        return None
    if "any" in row.flags and row.name not in ("Init", "Init_thread"):
        return None
    return row.number


def shown(row, statements, kind=""):
    """Statements of a call between entering and leaving."""
    if call_number(row) is None:
        return statements
    return ["weft_call_enter%s(%d);" % (kind, call_number(row))] + statements + ["weft_call_leave%s();" % kind]


def missing_entry(row, name, wide):
    comm = row.comm()
    if row.built == "noop":
        body = ["return MPI_SUCCESS;"]
    elif row.via == "tool":
        body = ["return MPI_T_ERR_NOT_SUPPORTED;"]
    elif row.via == "file":
        body = ['return weft_checks_missing_file("%s");' % name]
    else:
        handle = "NULL" if not comm else comm.name if comm.mark == "" else "%s ? *%s : NULL" % (comm.name, comm.name)
        body = ['%sweft_checks_missing(%s, "%s");' % ("" if row.returns else "return ", handle, name)]
        if row.returns:
            handles = {"MPI_Datatype": "MPI_DATATYPE_NULL"}
            value = "0" if not row.returns.startswith("MPI_") else handles.get(row.returns, row.returns.upper() + "_NULL")
            body.append("return %s;" % value)
    return body


def call_of(row, wide):
    return "%s(%s)" % (inner_name(row), arguments(row, wide))


def found(row, param):
    """The C variable that holds the object of a handle."""
    return "comm_at" if param is row.comm() else param.name + "_at"


def conversions(row, is_quick):
    """Declarations of the objects behind the handles; the quick ones are NULL also when a type is not ready to move data."""
    out = []
    for param in row.params:
        if param is row.comm() and param.mark == "<>":
            out.append("weft_comm *comm_at = %s ? weft_checks_comm_at(*%s) : NULL;" % (param.name, param.name))
        elif converted(param):
            what = "ready" if is_quick and param.kind_is("type") and has_data(row) else param.kind.name
            out.append("%s%s = weft_checks_%s_at(%s);" % (converted(param), found(row, param), what, param.name))
    return out


def locked(row, call):
    """Statements: the call between lock and unlock."""
    if not door(row):
        return ["rc = %s;" % call]
    return ["worker = %s;\nweft_worker_lock(worker);" % door(row), "rc = %s;" % call, "weft_worker_unlock(worker);"]


def is_simple(row):
    """Is there anything to do after the call? Then the entry is written in one piece, else in three: see go()."""
    return bool(narrow_outs(row, False))


def blame(row):
    return "comm_at" if row.comm() else "NULL"


def end(row, name):
    return "return weft_likely(!rc) ? MPI_SUCCESS : weft_errors_raise(%s, %s, rc);" % (blame(row), name)


def forward(row, names):
    """What an entry or odd() passes to go()."""
    extra = ", comm_at" if row.comm() and row.comm().mark == "<>" else ""
    return "%s%s%s" % (", " if names else "", names, extra)


def go(row):
    """The locked call as a function of its own, for threads and for odd arguments, so that the entry needs no lock."""
    declared = [inner_declare_one(row, p, found) for p in row.params]
    if row.comm() and row.comm().mark == "<>":
        declared.append("weft_comm *comm_at")
    head = wrapped("WEFT_APART int %s_go(%s)" % (row.name.lower(), ", ".join(["const char *function"] + declared)))
    passed = ", ".join(passed_on(row, p) for p in row.params)
    body = ["weft_worker *worker;"] if door(row) else []
    body += ["int rc;"] + shown(row, locked(row, "%s(%s)" % (inner_name(row), passed))) + [end(row, "function")]
    return "%s\n{\n%s\n}\n" % (head, indented(body))


def passed_on(row, param):
    if converted(param):
        return found(row, param)
    return param.name + (", is_large" if param.is_callback_poly else "")


def odd(row):
    """The second look as a function of its own: asks what is wrong, and when nothing is, makes the call after all."""
    declared = ["const char *function"] + [cold_declare(p) for p in row.params]
    head = wrapped("WEFT_COLD int %s_odd(%s)" % (row.name.lower(), ", ".join(declared)))
    passed = ", ".join(passed_on(row, p) for p in row.params)
    asked = ", ".join(["function"] + [p.name + (", is_large" if p.is_callback_poly else "") for p in row.params])
    body = conversions(row, False)
    body.append("int rc = %s_bad(%s);" % (row.name.lower(), asked))
    body.append("if (rc)\n    return weft_errors_raise(%s, function, rc);" % blame(row))
    body += checks_of(row)[1]
    body.append("return %s_go(function%s);" % (row.name.lower(), forward(row, passed)))
    return "%s\n{\n%s\n}\n" % (head, indented(body))


def raw_arguments(row, wide):
    """The arguments as the caller gave them, for the cold functions."""
    out = []
    for param in row.params:
        if is_poly_array(param):
            out.append("(weft_counts){%s, sizeof *%s}" % (param.name, param.name))
        elif param.is_callback_poly:
            out.append("(void *)%s, %s" % (param.name, "true" if wide else "false"))
        else:
            out.append(param.name)
    return "".join(", " + text for text in out)


def built_entry(row, name, wide):
    if row.returns or row.via == "tool":
        return ["return %s;" % call_of(row, wide)]
    quick, _ = checks_of(row)
    body = conversions(row, not is_simple(row))
    if is_simple(row):
        return body + simple_entry(row, name, wide, quick)
    # Each object is asked for where it is found: the compiler then needs no second test of it.
    early = ["!" + found(row, p) for p in row.params if converted(p)]
    body = [text for line in body for text in (line, *(
        "if (weft_unlikely(%s))\n    goto odd;" % e for e in early if line.split(" =")[0].split("*")[-1].split()[-1] == e[1:]))]
    late = [condition for condition in quick if condition not in early]
    if late:
        body.append("if (weft_unlikely(%s))\n    goto odd;" % " || ".join(late))
    if door(row):
        body.append("if (weft_unlikely(%s))\n    return %s_go(\"%s\"%s);" % (
            is_threaded(row), row.name.lower(), name, forward(row, arguments(row, wide))))
    body.append("int rc;")
    body += shown(row, ["rc = %s;" % call_of(row, wide)], "_single" if door(row) else "")
    body.append(end(row, '"%s"' % name))
    if quick:
        body.append("odd:\nreturn %s_odd(\"%s\"%s);" % (row.name.lower(), name, raw_arguments(row, wide)))
    return body


def simple_entry(row, name, wide, quick):
    body = ["weft_worker *worker;"] if door(row) else []
    body.append("int rc;")
    if quick:
        body.append("if (weft_unlikely(%s)) {" % " || ".join(quick))
        body.append("    rc = %s_bad(\"%s\"%s);" % (row.name.lower(), name, raw_arguments(row, wide)))
        body.append("    if (rc)\n        return weft_errors_raise(%s, \"%s\", rc);" % (blame(row), name))
        body.append("}")
    for param in narrow_outs(row, wide):
        body.append("%s %s_wide = %s;" % (param.kind.wide, param.name, "*" + param.name if param.mark == "<>" else "0"))
    body += shown(row, locked(row, call_of(row, wide)))
    for param in narrow_outs(row, wide):
        narrow, text = param.kind.narrow, {"n": param.name, "t": param.kind.narrow, "f": name, "c": blame(row)}
        if param.mark == ">":
            body.append("if (!rc)\n    *%(n)s = (%(t)s)%(n)s_wide == %(n)s_wide ? (%(t)s)%(n)s_wide : MPI_UNDEFINED;" % text)
        else:
            body.append("if (!rc && (%(t)s)%(n)s_wide != %(n)s_wide)\n"
                        "    rc = weft_checks_too_large(\"%(f)s\", %(c)s, \"%(n)s\", %(n)s_wide);" % text)
            body.append("if (!rc)\n    *%s = (%s)%s_wide;" % (param.name, narrow, param.name))
    body.append(end(row, '"%s"' % name))
    return body


def indented(body):
    out = []
    for line in "\n".join(body).split("\n"):
        indent = "" if line == "odd:" else " " * (4 + len(line) - len(line.lstrip()))
        out.append(indent + wrapped(line.lstrip(), 4, 128 - len(indent)).replace("\n", "\n" + indent))
    return "\n".join(out)


def helpers(row):
    """The functions that a row's entries share."""
    out = [cold_checks(row)]
    if not is_simple(row):
        if checks_of(row)[0] or door(row):
            out.append(go(row))
        if checks_of(row)[0]:
            out.append(odd(row))
    return [text for text in out if text]


def entry(row, name, wide):
    body = built_entry(row, name, wide) if row.built == "yes" else missing_entry(row, name, wide)
    head = wrapped("WEFT_ENTRY %s P%s(%s)" % (row.result(), name, row.declare(wide)))
    return "%s\n{\n%s\n}\nWEFT_ALIAS(%s);\n" % (head, indented(body), name)


def entries(tables, chapters, what):
    out = [CARD % ("entries-%s: the functions of MPI's C interface: %s." % (what, ", ".join(chapters)))]
    out.append('#include "api/checks.h"\n#include "mpi/calls.h"\n#include "mpi/errors.h"\n')
    out.append('#pragma GCC diagnostic ignored "-Wunused-parameter"\n')
    for row in tables.rows:
        if row.chapter not in chapters:
            continue
        if row.built == "yes" and not row.returns and row.via != "tool":
            out += helpers(row)
        for name, wide in row.forms():
            out.append(entry(row, name, wide))
    return "\n".join(out)


def missing_source(tables):
    names = [name for row in tables.rows for name, _ in row.forms() if row.built == "no"]
    total = sum(len(row.forms()) for row in tables.rows)
    out = [CARD % "missing: the functions that are not built yet, for weft-info."]
    out.append('#include "api/missing.h"\n\n#include <stddef.h>\n')
    out.append("const char *const weft_api_missing[] = {")
    out += ['    "%s",' % name for name in names]
    out.append("    NULL\n};\nconst unsigned weft_api_missing_count = %d;" % len(names))
    out.append("const unsigned weft_api_total = %d;" % total)
    return "\n".join(out) + "\n"


def names_source(tables):
    out = [CARD % "call_names: the functions that core/call_status numbers, for launchers."]
    out.append('#include "mem/segment.h"\n')
    out.append("const char *const weft_call_names[] = {")
    out += ['    [%d] = "MPI_%s",' % (row.number, row.name) for row in tables.rows if call_number(row) is not None]
    out.append("};\nconst uint32_t weft_call_names_count = sizeof weft_call_names / sizeof *weft_call_names;")
    return "\n".join(out) + "\n"


def files(tables):
    chapters = {row.chapter for row in tables.rows}
    known = {chapter for group in FILES.values() for chapter in group}
    if chapters - known:
        raise TableError("no file holds the chapter '%s'" % sorted(chapters - known)[0])
    made = {"src/api/entries-%s.c" % what: entries(tables, group, what) for what, group in FILES.items()}
    made["src/mpi/calls.h"] = calls_header(tables)
    made["src/api/missing.c"] = missing_source(tables)
    made["src/api/call_names.c"] = names_source(tables)
    return made
