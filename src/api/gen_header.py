# SPDX-License-Identifier: BSD-3-Clause
#
# gen_header: generates include/mpi.h and include/mpi-ext.h from the tables. Used by gen_api.
# Invariant: mpi.h contains the standard ABI only; C99 and later and C++11 and later compile both without warnings.
import textwrap

TOP = """\
/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi.h: the C interface of MPI 5.0 in its standard ABI. Programs compiled with it run with any library of that ABI.
 * Generated from the tables of src/api: change those, then run src/api/gen_api --header include/mpi.h.
 */
#ifndef MPI_H_ABI
#define MPI_H_ABI

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
"""

EXTENSIONS = """\
/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi-ext.h: what this library has beyond MPI 5.0, each part with a macro by which programs can ask for it. C and C++.
 * Generated from the tables of src/api: change those, then run src/api/gen_api --extensions include/mpi-ext.h.
 */
#ifndef WEFT_MPI_EXT_H
#define WEFT_MPI_EXT_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Notified access: the target of a put or get counts it, and can wait for it. Manual pages MPIX_Put_notify(3), MPIX_Win_notify_wait(3). */
#define MPIX_NOTIFIED_ACCESS 1
"""

STATUS = """
/* Status of a receive. MPI_internal is the library's own; statuses may be copied by assignment. */
typedef struct {
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
    int MPI_internal[5];
} MPI_Status;
"""


def wrapped(text, indent=4, width=128):
    return "\n".join(textwrap.wrap(text, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False))


def value_of(what, value):
    return value if value.startswith("MPI_") else "((%s)%s)" % (what, value) if value[0] != "-" else "((%s)(%s))" % (what, value)


def enumeration(tag, names):
    head = "typedef enum %s {" % tag if tag else "enum {"
    body = ",\n".join("    %-40s = %s" % (n[0], n[1]) for n in names)
    return "%s\n%s\n}%s;\n" % (head, body, " " + tag if tag else "")


def prototypes(row):
    return [wrapped("%s %s%s(%s);" % (row.result(), prefix, name, row.declare(wide))) for prefix in ("", "P")
            for name, wide in row.forms()]


def extensions_header(tables):
    out = [EXTENSIONS] + [text for row in tables.extensions for text in prototypes(row)]
    return "\n".join(out + ["\n#ifdef __cplusplus\n}\n#endif\n\n#endif"]) + "\n"


def header(tables):
    out = [TOP]
    for text in tables.types["integers"]:
        name, base = text.split()
        out.append("typedef %s MPI_%s;" % (base, name))
    out.append("\n/* Handles: constants below 4096, or pointers. */")
    for name in tables.types["handles"]:
        out.append("typedef struct MPI_ABI_%s *MPI_%s;" % (name, name))
    out.append(STATUS)
    plain, casts = [], []
    for title, what, names in tables.constants:
        if what == "fortran":
            continue
        if what.startswith("enum"):
            plain.append("/* %s */\n%s" % (title, enumeration(what[5:], names)))
        elif what == "define":
            plain.append("/* %s */\n%s\n" % (title, "\n".join("#define %-40s %s" % (n[0], n[1]) for n in names)))
        else:
            casts.append("/* %s */\n%s\n" % (title, "\n".join("#define %-40s %s" % (n[0], value_of(what, n[1])) for n in names)))
    out += plain
    out.append("/* Functions that programs hand to the library */")
    for text in tables.types["callbacks"]:
        name, result, params = text.split(None, 2)
        out.append(wrapped("typedef %s (MPI_%s)(%s);" % (result, name, params)))
    for text in tables.types["aliases"]:
        old, name = text.split()
        out.append("typedef MPI_%s MPI_%s;" % (name, old))
    out.append("")
    out += casts
    chapter = None
    for row in tables.rows:
        if row.chapter != chapter:
            chapter = row.chapter
            out.append("/* %s */" % chapter)
        out += prototypes(row)
    out.append("\n#ifdef __cplusplus\n}\n#endif\n\n#include \"weft_f2c.h\" /* what lies outside of the ABI */\n\n#endif")
    return "\n".join(out) + "\n"
