# SPDX-License-Identifier: BSD-3-Clause
#
# gen_quick: generates the short forms of the calls that fortran.tbl marks `quick` (src/api/entries-quick.c): their entries with arguments
# by reference, handles as ints and the error code in ierror (weft_language_quick of base/language.h). Used by gen_api.
# Invariant: a short form makes the call if its handles were used lately and no argument needs a cold check; else it has
# changed nothing and goes on with the binding's whole translation.
import re

from gen_checks import checks_of, is_pointer_out
from gen_entries import CARD, arguments, blame, call_number, converted, found, indented, is_special, locked_worker, offer, shown
from gen_fortran_c import given, parameters, pass_arg, quick_forms, quick_member
from gen_header import wrapped
from gen_tables import TableError

TOP = """\
#include "api/checks.h"
#include "base/language.h"
#include "core/progress_thread.h"
#include "mpi/calls.h"
#include "mpi/errors.h"
#include "mpi/pt2pt.h"
#include "mpi/status.h"

#pragma GCC diagnostic ignored "-Wunused-function"

/* What the binding has told: set before its first call, by one thread. */
static weft_language_binding binding;

/* Communicators, and datatypes that the program made, whose handles were used lately, by the low 8 bits of their numbers. The memory of
 * objects keeps its kind, and a number changes when its handle becomes invalid (base/object.h): an entry is right if it has the number. */
static weft_object none, none_at_0 = {.number = 1}; /* numbers that are not looked for in their entries */
#define NONE {[0] = &none_at_0, [1 ... 255] = &none}
static weft_object *recent_comms[256] = NONE, *recent_types[256] = NONE;

/* The object with this number; NULL: it is not among the recent ones. */
static inline void *recent_at(weft_object *const *recent, int number)
{
    weft_object *object = __atomic_load_n(&recent[(uint8_t)number], __ATOMIC_RELAXED);
    if (!object)
        __builtin_unreachable(); /* lets callers skip their NULL test */
    return __atomic_load_n(&object->number, __ATOMIC_RELAXED) == number ? object : NULL;
}
static void recent_set(weft_object **recent, int number, weft_object *object)
{
    if (object)
        __atomic_store_n(&recent[(uint8_t)number], object, __ATOMIC_RELAXED);
}
static void recent_comms_set(int number)
{
    bool is_constant = (unsigned)number < WEFT_OBJECT_CONSTANTS;
    weft_comm *comm = is_constant ? weft_comm_of((MPI_Comm)(uintptr_t)(unsigned)number) : weft_object_by_number(&weft_comm_pool, number);
    recent_set(recent_comms, number, comm ? &comm->traits.object : NULL);
}
static void recent_types_set(int number)
{
    weft_type *type = weft_object_by_number(&weft_type_pool, number);
    recent_set(recent_types, number, type ? &type->object : NULL);
}

/* A handle's object. NULL: it was not used lately, or is not valid. */
static inline weft_comm *comm_at_number(int number) { return recent_at(recent_comms, number); }
/* The same of a datatype, predefined ones included. NULL also: communication may not use it. */
static inline const weft_type *type_at_number(int number)
{
    unsigned index = (unsigned)number - 0x200;
    const weft_type *type;
    if (weft_unlikely(index >= 256)) {
        type = recent_at(recent_types, number);
        return weft_likely(type && type->is_committed) ? type : NULL;
    }
    type = weft_type_table[index];
    return weft_likely(type && !type->is_absent) ? type : NULL;
}

static inline bool is_sentinel(const void *buf) { return (uintptr_t)buf - binding.sentinels < binding.sentinel_bytes; }
static inline void status_set(void *status, const weft_recv_info *found)
{
    if (status != binding.status_ignore)
        weft_status_set(status, found);
}
/* Completes a send that was done at once: its request is no object of its own (weft_mpi_wait). */
static inline int wait_done(MPI_Request request, void *status)
{
    status_set(status, &((const weft_req *)(const void *)request)->recv_info);
    return MPI_SUCCESS;
}

/* A number that was read for the checks is read again where it is passed: until then its register holds the argument. */
#define RELOAD(number) __asm__ volatile("" : "+m"(*(int *)(number)))
/* After the call: the argument is in memory until now, so that no register has to be saved for it. */
#define LATE(argument) __asm__("" : "+m"(argument))

/* request: NULL, or where the call would have made one. */
WEFT_COLD void failed(weft_traits *at, const char *function, int rc, int *request, int *ierror)
{
    if (request)
        *request = (int)(uintptr_t)MPI_REQUEST_NULL;
    rc = weft_errors_raise(at, function, rc);
    if (ierror)
        *ierror = rc;
}
"""

BIND = """\
void weft_language_bind(const weft_language_binding *given, weft_language_quick *made)
{
    binding = *given;
    *made = (weft_language_quick){
%s
    };
}
"""


def numbers_of(row):
    return [p.name for p in row.params if p.kind_is("count", "dest", "source", "tag", "rtag")]


def by_reference(row, text):
    """C text about arguments by value, for numbers by reference."""
    numbers = numbers_of(row)
    return re.sub(r"(?<![\w>.])(%s)\b(?!\()" % "|".join(numbers), r"*\1", text) if numbers else text


def request_of(row, mark):
    return next((p.name for p in row.params if p.kind_is("request") and p.mark == mark), None)


def conditions(row):
    """Conditions for the whole translation, in C, without those of objects."""
    objects = ["!" + found(row, p) for p in row.params if converted(p)]
    outs = ["!" + p.name for p in row.params if is_pointer_out(p)]  # Fortran has no NULL there
    done = request_of(row, "<>")
    if done:
        return ["*%s != WEFT_LANGUAGE_DONE" % done, "!%s_c" % done]
    texts = [by_reference(row, text) for text in checks_of(row, False)[0] if text not in objects + outs]
    if "*tag < 0" in texts:  # the count is at hand and not negative when it is not too long: one instruction less
        texts.remove("*tag < 0")
        is_long = next(i for i, text in enumerate(texts) if text.startswith("weft_checks_is_long(*count"))
        texts.insert(is_long + 1, "(*count | *tag) < 0")
    return texts


def after(row):
    """(arguments that are used after the call, statements if it failed, statements if not)."""
    new, done, has_status = request_of(row, ">"), request_of(row, "<>"), row.comm() and row.find("status")
    failed = "failed(%s, \"MPI_%s\", rc, %s, ierror);" % (blame(row), row.name, new or "NULL")
    if new:
        return [new], [failed], ["*%s = ((const weft_language_request *)(const void *)%s_c)->number;" % (new, new)]
    if has_status:
        return ["status"], ["if (rc == WEFT_E_TRUNCATE)\n    status_set(status, &found);", failed], ["status_set(status, &found);"]
    return ([done], [failed], ["*%s = (int)(uintptr_t)MPI_REQUEST_NULL;" % done]) if done else ([], [failed], [])


def call_of(row):
    """The call of the inner function, inline (mpi/pt2pt.h)."""
    passed = by_reference(row, arguments(row, False))
    for name in (request_of(row, ">"), request_of(row, "<>")):
        if name:
            passed = re.sub(r"\b%s\b" % name, "&%s_c" % name, passed)
    if not row.comm():
        return "wait_done(%s_c, status)" % request_of(row, "<>")
    return "weft_pt2pt_%s(%s)" % (row.name.lower(), re.sub(r"\bstatus$", "&found", passed))


def short_form(procedure, by_descriptor):
    row = procedure.row
    if row.built != "yes" or call_number(row) is None or any(p.kind_is("type", "comm") and p.mark for p in row.params):
        raise TableError("%s cannot be quick" % row.name)
    declared = parameters(procedure, [pass_arg(procedure, arg, by_descriptor) for arg in procedure.args])
    declared = declared.replace("weft_f_array", "weft_language_array")
    handles = [p for p in row.params if converted(p)]
    body = ["int %s;" % ", ".join("%s_number = *%s" % (p.name, p.name) for p in handles)] if handles else []
    for param in row.params:
        if converted(param):
            body.append("%s%s = %s_at_number(%s_number);" % (converted(param), found(row, param), param.kind.name, param.name))
            body.append("if (weft_unlikely(!%s))\n    goto other;" % found(row, param))
        elif param.kind_is("request"):
            body.append("MPI_Request %s_c%s;" % (param.name, " = weft_language_done" if param.mark == "<>" else ""))
        elif param.kind_is("status") and row.comm():
            body.append("weft_recv_info found;")
    buf = next((p.name for p in row.params if p.kind_is("buf")), None)
    tests, call = conditions(row) + ([is_special(row)] if locked_worker(row) else []), call_of(row)
    if by_descriptor:
        *tests, call = [re.sub(r"\b%s\b" % buf, buf + "->base", text) for text in tests + [call]]
        tests.insert(0, "!weft_language_is_vector(%s)" % buf)
    elif buf:
        tests.append("is_sentinel(%s)" % buf)
    body.append("if (weft_unlikely(%s))\n    goto other;" % " || ".join(tests))
    body += ["RELOAD(%s);" % name for name in numbers_of(row)] + ["int rc;"]
    body += shown(row, ["rc = %s;" % call] + offer(row), "_single" if locked_worker(row) else "")
    used, failed, made = after(row)
    body += ["LATE(%s);" % name for name in used + ["ierror"]]
    body.append("if (weft_unlikely(rc)) {\n    %s\n    return;\n}" % "\n".join(failed).replace("\n", "\n    "))
    body += made + ["if (ierror)\n    *ierror = MPI_SUCCESS;", "return;", "other:"]
    member = quick_member(procedure, by_descriptor)
    by_value = r"\b(%s)\b" % ("|".join(p.name for p in handles) or "(?!)")
    body.append("%s_other(%s);" % (member, re.sub(by_value, r"\1_number", given(procedure))))
    text = indented(body).replace("    other:", "other:")
    found_next = ["if (!%s_at_number(%s))\n    recent_%ss_set(%s);" % (p.kind.name, p.name, p.kind.name, p.name) for p in handles]
    whole = "binding.whole.%s(%s);" % (member, re.sub(by_value, r"&\1", given(procedure)))
    other = indented(found_next + [whole])
    return "%s\n{\n%s\n}\n%s\n{\n%s\n}\n" % (wrapped("WEFT_COLD void %s_other(%s)" % (member, re.sub(r"const int \*" + by_value, r"int \1", declared))), other,
                                              wrapped("static void %s_quick(%s)" % (member, declared)), text)


def files(fortran):
    out = [CARD % "entries-quick: short forms of calls for bindings whose arguments are references (base/language.h)."]
    out += [TOP] + [short_form(*form) for form in quick_forms(fortran)]
    out.append(BIND % "\n".join("        .%s = %s_quick," % (quick_member(*form), quick_member(*form)) for form in quick_forms(fortran)))
    return {"src/api/entries-quick.c": "\n".join(out)}
