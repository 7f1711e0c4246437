# SPDX-License-Identifier: BSD-3-Clause
#
# gen_fortran_c: generates the translations from Fortran to C (src/fortran/entries-*.c): one C function per procedure and calling convention
# (MPI 5.0 19.1.5, table 28), which the three interfaces share. MPI_X of Fortran calls MPI_X of C, PMPI_X calls PMPI_X, so that tools can
# intercept in either language. Used by gen_api.
# Invariant: an argument that has the same form in both languages is passed on as it is; all else by src/fortran/runtime.h.
import re

from gen_checks import at_root_only
from gen_entries import CARD, FILES
from gen_header import wrapped
from gen_tables import TableError

PLURAL = {"comm": "comms", "type": "types", "info": "infos", "request": "requests"}


class Passed:
    """How one argument is passed: its declaration, the expression that C gets, statements before and after the call, and the C variable
    that is NULL if memory is short."""

    def __init__(self, declare, value, before=(), after=(), allocated=None):
        self.declare, self.value, self.allocated = declare, value, allocated
        self.before, self.after = list(before), list(after)


def length_of(procedure, arg):
    """C expression for the number of elements of an array."""
    if "count" in arg.rules:
        return "weft_f_%s(*%s)" % (arg.rules["count"], procedure.row.comm().name)
    if arg.length == "*":
        raise TableError("%s: fortran.tbl needs count= for %s" % (procedure.row.name, arg.c_name))
    return "*" + arg.length


def pass_handle(procedure, arg):
    name, kind, mark = arg.c_name, arg.param.kind.name, arg.mark
    handle = "MPI_" + arg.handle()
    null = "MPI_%s_NULL" % arg.handle().upper()
    if not arg.is_array():
        if mark in ("", "="):
            return Passed("const int *%s" % name, "weft_f_%s(*%s)" % (kind, name))
        first = null if mark == ">" else "weft_f_%s(*%s)" % (kind, name)
        after = [] if mark == "*" else ["*%s = weft_f_%s_out(%s_c);" % (name, kind, name)]
        declare = "%sint *%s" % ("const " if mark == "*" else "", name)
        return Passed(declare, "&%s_c" % name, ["%s %s_c = %s;" % (handle, name, first)], after)
    length = length_of(procedure, arg)
    before = ["%s %s_few[WEFT_F_FEW], *%s_c;" % (handle, name, name)]
    what = "new" if mark == ">" else "in"
    before.append("%s_c = weft_f_%s_%s(%s, %s, %s_few);" % (name, PLURAL[kind], what, name, length, name))
    after = ["weft_f_%s_%s(%s, %s, %s_c, %s_few);" % (
        PLURAL[kind], {"": "free", ">": "out", "<>": "out"}[mark], name, length, name, name)]
    return Passed("%sint *%s" % ("const " if mark == "" else "", name), name + "_c", before, after, name + "_c")


def pass_number(procedure, arg):
    name, kind = arg.c_name, arg.param.kind
    if not arg.is_array() and arg.mark == "":
        return Passed("const %s *%s" % (arg.number(), name), "*" + name)
    declare = "%s%s *%s" % ("const " if arg.mark == "" else "", arg.number(), name)
    if kind.name in ("weight", "code") and arg.is_array():
        return Passed(declare, "weft_f_buffer(%s)" % name)
    if arg.rules.get("origin") is True:
        return Passed(declare, "&%s_c" % name, ["int %s_c = MPI_UNDEFINED;" % name],
                      ["*%s = %s_c == MPI_UNDEFINED ? MPI_UNDEFINED : %s_c + 1;" % (name, name, name)])
    if "origin" in arg.rules:
        return Passed(declare, name, (), ["weft_f_indices_out(%s, *%s);" % (name, arg.rules["origin"])])
    return Passed(declare, name)


def pass_logical(procedure, arg):
    name = arg.c_name
    declare = "%sint *%s" % ("const " if arg.mark == "" else "", name)
    if not arg.is_array():
        if arg.mark == "":
            return Passed(declare, "weft_f_is_true(*%s)" % name)
        return Passed(declare, "&%s_c" % name, ["int %s_c = 0;" % name], ["*%s = weft_f_logical(%s_c);" % (name, name)])
    if arg.mark == ">":
        return Passed(declare, name, (), ["if (!rc)\n    weft_f_logicals_out(%s, %s);" % (name, length_of(procedure, arg))])
    length = length_of(procedure, arg)
    return Passed(declare, name + "_c", ["int %s_few[WEFT_F_FEW], *%s_c;" % (name, name),
                                         "%s_c = weft_f_logicals_in(%s, %s, %s_few);" % (name, name, length, name)],
                  ["weft_f_free(%s_c, %s_few);" % (name, name)], name + "_c")


def pass_text(procedure, arg):
    name = arg.c_name
    if arg.mark == "":
        trim = "WEFT_F_BOTH" if "strip" in arg.rules else "WEFT_F_TRAILING"
        return Passed("const char *%s" % name, name + "_c",
                      ["char %s_few[WEFT_F_TEXT], *%s_c;" % (name, name),
                       "%s_c = weft_f_text_in(%s, %s_len, %s, %s_few);" % (name, name, name, trim, name)],
                      ["weft_f_free(%s_c, %s_few);" % (name, name)], name + "_c")
    limit = arg.rules.get("out", arg.rules.get("len"))
    if not limit:
        limit = "MPI_MAX_DATAREP_STRING" if name == "datarep" else None
    if not limit:
        raise TableError("%s: fortran.tbl needs len= for %s" % (procedure.row.name, name))
    return Passed("char *%s" % name, name + "_c", ["char %s_c[%s] = \"\";" % (name, limit)],
                  ["if (!rc)\n    weft_f_text_out(%s, %s_len, %s_c);" % (name, name, name)])


def pass_word(procedure, arg):
    """An attribute's value or an extra state: an integer that C sees as a pointer."""
    name = arg.c_name
    kind = "int" if arg.row.deprecated == "2.0" else "MPI_Aint"
    if arg.mark == "":
        return Passed("const %s *%s" % (kind, name), "(void *)(intptr_t)*%s" % name)
    return Passed("%s *%s" % (kind, name), "&%s_c" % name, ["void *%s_c = (void *)(intptr_t)*%s;" % (name, name)],
                  ["*%s = (%s)(intptr_t)%s_c;" % (name, kind, name)])


def pass_arg(procedure, arg, by_descriptor):
    name = arg.c_name
    if arg.what == "choice":
        if by_descriptor:
            return Passed("const weft_f_array *%s" % name, "weft_f_buffer(%s->base)" % name)
        return Passed("%svoid *%s" % ("const " if arg.param.is_in() else "", name), "weft_f_buffer(%s)" % name)
    if arg.what == "status":
        if arg.mark == "":
            return Passed("const int *%s" % name, "(const MPI_Status *)%s" % name)
        sentinel = "(MPI_Status *)weft_f_buffer(%s)" if arg.is_array() else "weft_f_status(%s)"
        return Passed("int *%s" % name, ("(MPI_Status *)%s" if arg.mark == "<>" else sentinel) % name)
    if arg.what == "procedure":
        function = "MPI_%s%s" % (arg.param.callback, "_c" if procedure.wide and arg.param.is_callback_poly else "")
        may_be_predefined = ("opy_attr_function", "elete_attr_function", "Copy_function", "Delete_function", "conversion_function")
        given = "weft_f_predefined(%s)" % name if arg.param.callback.endswith(may_be_predefined) else name
        return Passed("weft_f_function *%s" % name, "(%s *)(void *)%s" % (function, given))
    if arg.what == "address":
        return Passed("void **%s" % name, name)
    if arg.what == "ranges":
        return Passed("int (*%s)[3]" % name, name)
    if arg.what == "logical_raw":
        return Passed("void *%s" % name, name)
    return {"handle": pass_handle, "number": pass_number, "logical": pass_logical, "text": pass_text, "attr": pass_word,
            "state": pass_word}[arg.what](procedure, arg)


def c_arguments(procedure, passed):
    """The arguments of the C function in its order: 0 for those that Fortran has not."""
    by_name = {a.c_name: p.value for a, p in zip(procedure.args, passed)}
    return [by_name.get(p.name, "0" if p.kind_is("argc") and not p.mark else "NULL") for p in procedure.row.params_of(procedure.wide)]


def c_name(procedure):
    return procedure.name + ("_c" if procedure.wide else "")


def symbol(procedure, suffix=""):
    """The symbol of a specific name: gfortran's, flang's and ifx's mangling on Linux."""
    return (c_name(procedure) + suffix).lower() + "_"


def parameters(procedure, passed):
    lengths = ["size_t %s_len" % a.c_name for a in procedure.args if a.what == "text"]
    return ", ".join([p.declare for p in passed] + (["int *ierror"] if procedure.has_ierror else []) + lengths) or "void"


def needs_language(procedure):
    return any(a.what in ("procedure", "attr", "state") for a in procedure.args)


def body(procedure, passed, call):
    before = [text for p in passed for text in p.before]
    declares = [text for text in before if " " in text.split(" = ")[0]]
    others = [text for text in before if text not in declares]
    after = [text for p in passed for text in p.after]
    short = [p.allocated for p in passed if p.allocated]
    language = "weft_f_deprecated" if procedure.row.deprecated == "2.0" else "weft_f_language"
    if not procedure.has_ierror:
        return ["%s%s;" % ("return " if procedure.result else "", call)]
    if not before and not after and not needs_language(procedure):
        return ["weft_f_end(ierror, %s);" % call]
    out = declares + ["int rc;"] + others
    if needs_language(procedure):
        out.append("weft_language_set(&%s);" % language)
    if short:
        out.append("rc = weft_likely(%s) ? (%s) : weft_f_no_memory();" % (" && ".join(short), call))
    else:
        out.append("rc = %s;" % call)
    if needs_language(procedure):
        out.append("weft_language_set(NULL);")
    return out + after + ["weft_f_end(ierror, rc);"]


def indented(texts):
    return "\n".join(" " * (4 + len(line) - len(line.lstrip())) + wrapped(line.lstrip()).replace("\n", "\n    ")
                     for line in "\n".join(texts).split("\n"))


# Buffers with one block per rank or neighbour.
SCATTERED = re.compile("(?:I?|Neighbor_|Ineighbor_)(?:all)?(gather|toall|scatter)(v|w)?(_init)?$", re.IGNORECASE)


# Buffers of one item of `datatype`.
ONE_ITEM = ("Fetch_and_op", "Compare_and_swap")


def partners(procedure, arg):
    """(count, type): the arguments that with it describe one block of items; None: there are none, or many blocks."""
    stem = {"sendbuf": "send", "recvbuf": "recv", "origin_addr": "origin_", "result_addr": "result_"}.get(arg.c_name, "")
    count = procedure.find(stem + "count") or (procedure.find("incount") if arg.c_name == "inbuf" else None)
    kind = procedure.find(stem + "type" if stem in ("send", "recv") else stem + "datatype")
    many = SCATTERED.match(procedure.row.name)
    if many and arg.c_name != {"gather": "sendbuf", "scatter": "recvbuf"}.get(many.group(1).lower()):
        return None
    if procedure.find("partitions") or (procedure.find("op") and procedure.row.chapter != "windows"):
        return None
    return (count, kind) if count and kind and not count.is_array() else None


def layout(procedure, arg):
    """weft_f_layout of a buffer with many blocks, and the arguments that tell it: (text, counts, displacements or None, types); None: its
    elements are not blocks."""
    if not SCATTERED.match(procedure.row.name):
        return None
    side = arg.c_name[:4]
    count, kind = (procedure.find(side + one) or procedure.find(side + one + "s") for one in ("count", "type"))
    displs = procedure.find(side[0] + "displs") or procedure.find("displs")
    members, ignored = [".counts = %s, .count_bytes = sizeof *%s" % (count.c_name, count.c_name)], []
    if count.is_array():
        ranks = {"s": "out_degree", "r": "in_degree"}[side[0]] if "neighbor" in procedure.row.name.lower() else "ranks"
        members.append(".displs = %s, .displ_bytes = sizeof *%s" % (displs.c_name, displs.c_name))
        members.append(".number = weft_f_%s(*comm)" % ranks)
    else:
        displs = None
        members.append(".number = 1")
    if kind.is_array():
        members.append(".types = %s_c" % kind.c_name)
        ignored.append("!%s_c" % kind.c_name)  # no memory
    else:
        members.append(".type = weft_f_type(*%s)" % kind.c_name)
    if at_root_only(procedure.row, count.param):
        ignored.append("!weft_f_is_root(*comm, *root)")
    members += [".is_ignored = " + one for one in ignored]
    return "{%s}" % ", ".join(members), count, displs, kind


class Sparse:
    """Statements of a function that passes sparse arrays, and in `passed` what C gets."""

    def __init__(self, procedure):
        self.procedure, self.passed = procedure, [pass_arg(procedure, arg, True) for arg in procedure.args]
        self.declared, self.ready, self.opened, self.closed = [], [], [], []
        self.request = next((a for a in procedure.args if a.what == "handle" and a.param.kind_is("request") and a.mark == ">"), None)
        self.begun = "false" if procedure.row.name.endswith("_init") else "true"
        for arg in procedure.args:
            if arg.what == "choice":
                self.add(arg)
        if any("&staged" in text for text in self.opened):
            self.declared.append("weft_language_copy *staged = NULL;")
            self.closed.append("weft_f_stage_end(staged, rc, request_c);")

    def of(self, arg):
        return self.passed[self.procedure.args.index(arg)]

    def add(self, arg):
        pair, many, given = partners(self.procedure, arg), layout(self.procedure, arg), arg.c_name
        if pair:
            self.add_block(arg, *pair)
        elif many:
            self.add_blocks(arg, *many)
        elif self.procedure.row.name in ONE_ITEM:
            kind = self.of(self.procedure.find("datatype")).value
            self.opened.append("weft_f_item_open(&%s_block, %s, %s)" % (given, given, kind))
            self.declared.append("weft_f_block %s_block;" % given)
            self.of(arg).value = given + "_block.address"
        elif self.request:
            self.opened.append("weft_f_stage(&staged, %s, %s, %s, &%s_c)" % (given, self.is_in(arg), self.begun, given))
            self.declared.append("void *%s_c = NULL;" % given)
            self.of(arg).value = given + "_c"
        elif not arg.is_asynchronous:
            self.opened.append("weft_f_copy_open(&%s_copy, %s)" % (given, given))
            self.declared.append("weft_f_copy %s_copy = {.made = NULL};" % given)
            self.closed.append("weft_f_copy_close(&%s_copy, %s);" % (given, self.is_out(arg)))
            self.of(arg).value = given + "_copy.address"
        else:
            self.opened.append("weft_f_is_sparse(%s) ? MPI_ERR_BUFFER : MPI_SUCCESS" % given)

    @staticmethod
    def is_in(arg):
        return "true" if arg.param.is_in() else "false"

    @staticmethod
    def is_out(arg):
        return "false" if arg.param.is_in() else "!rc"

    def add_block(self, arg, count, kind):
        given, values = arg.c_name, [self.of(count), self.of(kind)]
        self.opened.append("weft_f_block_open(&%s_block, %s, %s, %s)" % (given, given, values[0].value, values[1].value))
        self.declared.append("weft_f_block %s_block = {.is_made = false};" % given)
        self.closed.append("weft_f_block_close(&%s_block);" % given)
        self.of(arg).value = given + "_block.address"
        values[0].value = "%s%s_block.count" % ("" if self.procedure.wide else "(int)", given)
        values[1].value = given + "_block.type"

    def add_blocks(self, arg, text, count, displs, kind):
        given = arg.c_name
        where = "&%s_blocks, %s, &%s_layout" % (given, given, given)
        self.declared += ["weft_f_blocks %s_blocks = {.numbers = NULL};" % given, "weft_f_layout %s_layout;" % given]
        self.ready.append("%s_layout = (weft_f_layout)%s;" % (given, text))
        self.opened.append("weft_f_blocks_stage(%s, &staged, %s, %s)" % (where, self.is_in(arg), self.begun) if self.request else
                           "weft_f_blocks_open(%s)" % where)
        self.closed.append("weft_f_blocks_close(&%s_blocks, %s);" % (given, self.is_out(arg)))
        self.of(arg).value = given + "_blocks.address"
        self.of(count).value = "%s%s_blocks.counts" % ("" if count.is_array() else "*(const %s *)" % count.number(), given)
        if displs:
            self.of(displs).value = given + "_blocks.displs"
        self.of(kind).value = "%s%s_blocks.types" % ("" if kind.is_array() else "*", given)


def sparse(procedure, prefix, name):
    """The cold function for buffers of which at least one is a sparse array; its name is the entry's with _sparse."""
    made, comm = Sparse(procedure), procedure.row.comm()
    passed = made.passed
    place = "weft_f_comm(*%s)" % comm.name if comm else "MPI_COMM_SELF"
    call = "%s%s(%s)" % (prefix, c_name(procedure), ", ".join(c_arguments(procedure, passed)))
    tries = ["rc = %s%s;" % ("rc ? rc : " if i else "", text) for i, text in enumerate(made.opened)]
    passed[0].before = made.declared + passed[0].before
    passed[-1].before += made.ready + tries  # they use translated arguments
    passed[0].after = made.closed + passed[0].after
    call = 'rc ? weft_f_array_refuse(%s, "MPI_%s", rc) : %s' % (place, procedure.row.name, call)
    head = wrapped("static WEFT_F_COLD void %s_sparse(%s)" % (name.rstrip("_"), parameters(procedure, passed)))
    return "%s\n{\n%s\n}\n" % (head, indented(body(procedure, passed, call)))


def given(procedure):
    """The entry's own arguments, to be passed on as they are."""
    out = [a.c_name for a in procedure.args] + (["ierror"] if procedure.has_ierror else [])
    return ", ".join(out + [a.c_name + "_len" for a in procedure.args if a.what == "text"])


def quick_forms(fortran):
    """(procedure, by descriptor?) of each short form (gen_quick)."""
    rows = [row for row in fortran.rows if "quick" in fortran.rules.get(row.name, "-")]
    return [(procedure, by_descriptor) for procedure in map(fortran.narrow, rows)
            for by_descriptor in ((False, True) if procedure.has_choice else (False,))]


def quick_member(procedure, by_descriptor):
    """Of weft_language_quick (base/language.h)."""
    return procedure.row.name.lower() + ("_array" if by_descriptor else "")


def whole_name(procedure, by_descriptor, prefix):
    """The whole translation of a procedure that has a short form."""
    return "%s%swhole" % (prefix.lower(), symbol(procedure, "_fts" if by_descriptor else ""))


def function(procedure, prefix, by_descriptor, name, aliases):
    """A translation and its further names. That of a procedure marked quick is a function of its own: the names jump to it or to the short
    form."""
    passed = [pass_arg(procedure, arg, by_descriptor) for arg in procedure.args]
    result, stem = procedure.row.returns or "void", name.rstrip("_")
    declared = parameters(procedure, passed)
    statements = body(procedure, passed, "%s%s(%s)" % (prefix, c_name(procedure), ", ".join(c_arguments(procedure, passed))))
    out = []
    if by_descriptor and not re.search("^Get_address$|_end$", procedure.row.name):  # wants the address; has the buffer of X_begin
        out.append(sparse(procedure, prefix, name))
        is_sparse = " || ".join("weft_f_is_sparse(%s)" % a.c_name for a in procedure.args if a.what == "choice")
        statements.insert(0, "if (weft_unlikely(%s)) {\n    %s_sparse(%s);\n    return;\n}" % (is_sparse, stem, given(procedure)))
    if "quick" in procedure.rules and not procedure.wide:
        out.append("%s\n{\n%s\n}\n" % (wrapped("static void %s(%s)" % (whole_name(procedure, by_descriptor, prefix), declared)),
                                       indented(statements)))
        statements = ["%squick.%s(%s);" % (prefix.lower(), quick_member(procedure, by_descriptor), given(procedure))]
    out.append("%s\n{\n%s\n}" % (wrapped("WEFT_F_ENTRY %s %s(%s)" % (result, name, declared)), indented(statements)))
    out += ["WEFT_F_ALIAS(%s, %s);" % (alias, name) for alias in aliases]
    return "\n".join(out) + "\n"


QUICK = """\
/* Short forms serve the calls whose C function no tool has replaced (MPI 5.0 15.2). */
__attribute__((constructor)) static void quick_find(void)
{
    const weft_language_binding binding = {quick, (uintptr_t)&weft_sentinels_, sizeof weft_sentinels_, weft_sentinels_.status_ignore};
    weft_language_quick made;
    weft_language_bind(&binding, &made);
%s
}
"""


def quick_tables(fortran):
    """(the tables that the entries jump by, their constructor, the chapters whose file has them)."""
    forms, declared, tables, found = quick_forms(fortran), [], [], []
    for prefix in ("", "P"):
        members = []
        for procedure, by_descriptor in forms:
            name = whole_name(procedure, by_descriptor, prefix)
            passed = [pass_arg(procedure, arg, by_descriptor) for arg in procedure.args]
            declared.append(wrapped("static void %s(%s);" % (name, parameters(procedure, passed))))
            members.append("    .%s = %s," % (quick_member(procedure, by_descriptor), name))
        tables.append("static weft_language_quick %squick = {\n%s\n};" % (prefix.lower(), "\n".join(members)))
    for name in dict.fromkeys(procedure.row.name for procedure, _ in forms):
        found.append("    if (weft_f_is_same((weft_f_function *)MPI_%s, (weft_f_function *)PMPI_%s)) {" % (name, name))
        found += ["        %s.%s = made.%s;" % (table, member, member) for table in ("quick", "pquick")
                  for member in (quick_member(*form) for form in forms if form[0].row.name == name)]
        found.append("    }")
    return "\n".join(declared + tables) + "\n", QUICK % "\n".join(found), {procedure.row.chapter for procedure, _ in forms}


def names(procedure, by_descriptor, prefix):
    """The specific names of one calling convention: the first is the function's, the others are aliases."""
    low = prefix.lower()
    f08 = low + symbol(procedure, "_f08ts" if by_descriptor else "_f08")
    if procedure.wide:
        return [f08]
    mine = [low + symbol(procedure, "_fts" if by_descriptor else ""), f08]
    address = any(a.what == "address" for a in procedure.args)
    return mine + ([low + symbol(procedure, "_cptr")] if address and not by_descriptor else [])


def entries_of(fortran, row):
    out = []
    forms = [fortran.narrow(row)] + ([fortran.large(row)] if fortran.large(row) else [])
    for procedure in forms:
        for by_descriptor in (False, True) if procedure.has_choice else (False,):
            for prefix in ("", "P"):
                all_names = names(procedure, by_descriptor, prefix)
                out.append(function(procedure, prefix, by_descriptor, all_names[0], all_names[1:]))
    return out


def files(fortran):
    made = {}
    declared, constructor, quick_chapters = quick_tables(fortran)
    for what, chapters in FILES.items():
        if what == "ext":
            continue  # extensions are for C
        has_quick = quick_chapters.intersection(chapters)
        out = [CARD % ("entries-%s: Fortran's procedures, as translations to C." % what)]
        out.append("".join('#include "fortran/%s.h"\n' % name for name in ("array", "blocks", "lengths", "runtime", "staging")))
        out += [declared] if has_quick else []
        for row in fortran.rows:
            if row.chapter in chapters and "hand" not in fortran.rules.get(row.name, "-"):
                out += entries_of(fortran, row)
        out += [constructor] if has_quick else []
        made["src/fortran/entries-%s.c" % what] = "\n".join(out)
    return made
