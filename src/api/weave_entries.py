# SPDX-License-Identifier: BSD-3-Clause
#
# weave_entries: src/mpi/calls.h, the entry points (src/api/entries-*.c) and the list of missing functions. Used by weave.
# Invariant: an entry holds one unlikely branch for all checks; what is wrong is found by a cold function beside it, which asks
# checks.h the same questions again, one by one, in the order init, communicator, others.
from weave_checks import checks_of, cold_checks
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


def inner_declare(row):
    out = []
    for param in row.params:
        if param.name == "...":
            raise TableError("%s: variable arguments cannot be woven through" % row.name)
        if param.is_wide_only:
            raise TableError("%s: parameters of the large-count twin alone cannot be woven yet" % row.name)
        if is_poly_array(param):
            if not param.is_in():
                raise TableError("%s: arrays of counts going out cannot be woven yet" % row.name)
            out.append("weft_counts " + param.name)
        elif param.is_callback_poly:
            out.append("void *%s, bool is_large" % param.name)
        else:
            out.append(converted(param) + param.name if converted(param) else param.declare(True))
    return ", ".join(out) or "void"


def calls_header(tables):
    out = [CARD % "calls.h: what the woven entry points call: one function of src/mpi per built row of the table."]
    out.append("#ifndef WEFT_MPI_CALLS_H\n#define WEFT_MPI_CALLS_H\n\n#include <mpi.h>\n#include <stdbool.h>\n#include <stddef.h>")
    out.append('#include <stdint.h>\n\n#include "mpi/comm.h"\n#include "type/op.h"\n#include "type/type.h"\n')
    out.append("/* An array of counts or displacements as the caller has it: elements of 4 or 8 bytes. `at` is borrowed for the call. */")
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
    """The lane that the entry locks, as a C expression, or None."""
    if row.via == "free" or "open" in row.flags:
        return None
    if row.via == "comm":
        return "comm_at->lane"
    if row.via == "request":
        param = next(p for p in row.params if p.kind_is("request"))
        length = param.length if param.length not in (None, "*") else "1"
        return "weft_checks_lane(%s%s, %s)" % ("&" if param.mark == "" and param.length is None else "", param.name, length)
    return None if "any" in row.flags else "weft_world_now->lanes[0]"


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


def built_entry(row, name, wide):
    comm = row.comm()
    call = "%s(%s)" % (inner_name(row), arguments(row, wide))
    if row.returns:
        return ["return %s;" % call]
    body = []
    if comm:
        body.append("weft_comm *comm_at = weft_comm_of(%s);" % (
            comm.name if comm.mark == "" else "%s ? *%s : NULL" % (comm.name, comm.name)))
    for param in row.params:
        if converted(param) and param is not comm:
            body.append("%s%s_at = %s(%s);" % (converted(param), param.name, {
                "comm": "weft_comm_of", "type": "weft_type_of", "op": "weft_op_of"}[param.kind.name], param.name))
    if door(row):
        body.append("weft_lane *lane;")
    body.append("int rc;")
    quick, substitutes = checks_of(row)
    blame = "comm_at" if comm else "NULL"
    if quick:
        body.append("if (weft_unlikely(%s)) {" % " || ".join(quick))
        asked = ", ".join(("(const void *)" if p.is_callback_poly else "") + p.name for p in row.params)
        body.append("    rc = %s_bad(\"%s\"%s%s);" % (row.name.lower(), name, ", " if asked else "", asked))
        body.append("    if (rc)\n        return weft_errors_raise(%s, \"%s\", rc);" % (blame, name))
        for line in substitutes:
            body.append("    " + line)
        body.append("}")
    for param in narrow_outs(row, wide):
        body.append("%s %s_wide = %s;" % (param.kind.wide, param.name, "*" + param.name if param.mark == "<>" else "0"))
    if door(row):
        body.append("lane = %s;\nweft_lane_lock(lane);" % door(row))
    body.append("rc = %s;" % call)
    if door(row):
        body.append("weft_lane_unlock(lane);")
    for param in narrow_outs(row, wide):
        if param.mark == ">":
            body.append("if (!rc)\n    *%s = (%s)%s_wide == %s_wide ? (%s)%s_wide : MPI_UNDEFINED;" % (
                (param.name, param.kind.narrow) + (param.name,) * 2 + (param.kind.narrow, param.name)))
        else:
            body.append("if (!rc && (%s)%s_wide != %s_wide)\n    rc = weft_checks_too_large(\"%s\", %s, \"%s\", %s_wide);" % (
                param.kind.narrow, param.name, param.name, name, blame, param.name, param.name))
            body.append("if (!rc)\n    *%s = (%s)%s_wide;" % (param.name, param.kind.narrow, param.name))
    body.append("return weft_likely(!rc) ? MPI_SUCCESS : weft_errors_raise(%s, \"%s\", rc);" % (blame, name))
    return body


def entry(row, name, wide):
    body = built_entry(row, name, wide) if row.built == "yes" else missing_entry(row, name, wide)
    text = "\n".join(body)
    lines = [wrapped(line, 4) for line in text.split("\n")]
    lines = [("    " + line).replace("\n", "\n    ") for line in lines]
    head = wrapped("WEFT_ENTRY %s P%s(%s)" % (row.result(), name, row.declare(wide)))
    return "%s\n{\n%s\n}\nWEFT_ALIAS(%s);\n" % (head, "\n".join(lines), name)


def entries(tables, chapters, what):
    out = [CARD % ("entries-%s: the functions of MPI's C interface: %s." % (what, ", ".join(chapters)))]
    out.append('#include "api/checks.h"\n#include "mpi/calls.h"\n#include "mpi/errors.h"\n')
    out.append('#pragma GCC diagnostic ignored "-Wunused-parameter"\n')
    for row in tables.rows:
        if row.chapter not in chapters:
            continue
        if row.built == "yes" and not row.returns:
            cold = cold_checks(row)
            if cold:
                out.append(cold)
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
    out.append("    NULL\n};\nconst unsigned weft_api_missing_count = %d;\nconst unsigned weft_api_total = %d;" % (len(names), total))
    return "\n".join(out) + "\n"


def files(tables):
    chapters = {row.chapter for row in tables.rows}
    known = {chapter for group in FILES.values() for chapter in group}
    if chapters - known:
        raise TableError("no file holds the chapter '%s'" % sorted(chapters - known)[0])
    made = {"src/api/entries-%s.c" % what: entries(tables, group, what) for what, group in FILES.items()}
    made["src/mpi/calls.h"] = calls_header(tables)
    made["src/api/missing.c"] = missing_source(tables)
    return made
