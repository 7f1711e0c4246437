# SPDX-License-Identifier: BSD-3-Clause
#
# gen_fortran: what Fortran sees of the rows of functions.tbl: names, types, intents and lengths of the arguments in the three interfaces
# (MPI 5.0 19.1). Read by gen_fortran_c (translations in C) and gen_fortran_mod (modules, mpif.h); compared with the standard's own list by
# test/fortran/interfaces.
# Invariant: whatever follows from the kind and the mark of a parameter is derived here; fortran.tbl has the exceptions only.
import os
import re

from gen_tables import TableError, lines

HANDLES = {"comm": "Comm", "type": "Datatype", "op": "Op", "errhandler": "Errhandler", "group": "Group", "info": "Info",
           "message": "Message", "request": "Request", "session": "Session", "win": "Win", "file": "File"}
NUMBERS = {"int": "INTEGER", "MPI_Aint": "INTEGER(KIND=MPI_ADDRESS_KIND)", "MPI_Count": "INTEGER(KIND=MPI_COUNT_KIND)",
           "MPI_Offset": "INTEGER(KIND=MPI_OFFSET_KIND)"}
RESULTS = {"double": "DOUBLE PRECISION", "MPI_Aint": "INTEGER(KIND=MPI_ADDRESS_KIND)"}
INTENTS = {"": "IN", "=": "IN", "*": "IN", ">": "OUT", "<>": "INOUT"}


class Rules:
    """fortran.tbl: {(row, parameter): {rule: value}}; the parameter '-' is the row itself."""

    def __init__(self, directory):
        self.of = {}
        for number, text in lines(os.path.join(directory, "fortran.tbl")):
            words = text.split()
            if len(words) < 3:
                raise TableError("fortran.tbl:%d: a row has a function, a parameter (or -) and rules" % number)
            rules = self.of.setdefault((words[0], words[1]), {})
            for word in words[2:]:
                rule, _, value = word.partition("=")
                rules[rule] = value or True

    def get(self, row, param):
        return self.of.get((row, param), {})


class Arg:
    """One argument as Fortran sees it. what: choice, handle, number, logical, logical_raw, status, text, attr, state, procedure,
    address or ranges."""

    def __init__(self, row, param, wide, rules, is_asynchronous):
        self.row, self.param, self.wide, self.rules = row, param, wide, rules
        self.mark = rules.get("mark", param.mark)
        self.length = param.length
        self.c_name = param.name
        self.name = rules.get("name", "index" if param.name == "indx" else param.name)
        self.what = self.find_what()
        self.is_asynchronous = "async" in rules or param.kind_is("mem") or (is_asynchronous and "sync" not in rules and (
            self.what == "choice" or (self.length == "*" and self.mark == "" and self.what in ("number", "handle"))))

    def find_what(self):
        param, kind = self.param, self.param.kind
        if "what" in self.rules:
            return self.rules["what"]
        if param.callback:
            return "procedure"
        if kind is None:
            raise TableError("%s: no rule of fortran.tbl for %s" % (self.row.name, param.name))
        if kind.name in ("buf", "mem"):
            return "choice"
        if kind.name in HANDLES:
            return "handle"
        special = {"flag": "logical", "logical": "logical_raw", "status": "status", "string": "text", "attr": "attr", "state": "state",
                   "address": "address"}
        if kind.name in special:
            return special[kind.name]
        if (kind.wide if self.wide else kind.narrow) not in NUMBERS:
            raise TableError("%s: %s has no type in Fortran" % (self.row.name, param.name))
        return "number"

    def is_array(self):
        return self.length is not None

    def number(self):
        """The C type of a number."""
        return self.param.kind.wide if self.wide else self.param.kind.narrow

    def handle(self):
        return HANDLES[self.param.kind.name]

    def dimension(self, is_f08):
        if self.what == "ranges":
            return "(3,*)"
        if "shape" in self.rules:
            return self.rules["shape"]
        if self.what == "status" and not is_f08:
            return "(MPI_STATUS_SIZE,*)" if self.length else "(MPI_STATUS_SIZE)"
        if not self.length:
            return ""
        return "(%s)" % self.length if is_f08 and "open" not in self.rules else "(*)"

    def type(self, is_f08):
        """The type alone, without intent and dimension."""
        if self.what == "choice":
            return "TYPE(*), DIMENSION(..)" if is_f08 else "<type>(*)"
        if self.what == "handle":
            return "TYPE(MPI_%s)" % self.handle() if is_f08 else "INTEGER"
        if self.what in ("number", "ranges"):
            return NUMBERS["int" if self.what == "ranges" else self.number()]
        if self.what in ("logical", "logical_raw"):
            return "LOGICAL"
        if self.what == "status":
            return "TYPE(MPI_Status)" if is_f08 else "INTEGER"
        if self.what == "text":
            return "CHARACTER(LEN=%s)" % (self.rules.get("len", "*") if is_f08 else "*")
        if self.what in ("attr", "state"):
            return "INTEGER" if self.row.deprecated == "2.0" else "INTEGER(KIND=MPI_ADDRESS_KIND)"
        if self.what == "address":
            return "TYPE(C_PTR)" if is_f08 else "INTEGER(KIND=MPI_ADDRESS_KIND)"
        if self.what == "procedure":
            if not is_f08:
                return "EXTERNAL"
            return "PROCEDURE(MPI_%s%s)" % (self.param.callback, "_c" if self.wide and self.param.is_callback_poly else "")
        raise TableError("%s: %s is '%s'" % (self.row.name, self.name, self.what))

    def intent(self):
        """IN, OUT, INOUT, or '' where a sentinel may stand or the standard has none."""
        if "nointent" in self.rules or self.what == "procedure":
            return ""
        if self.what == "choice":
            return "IN" if "in" in self.rules or (self.param.is_in() and self.param.kind_is("buf")) else ""
        if self.param.kind_is("weight") and self.mark == ">":
            return ""
        if self.what == "status" and self.mark == ">":
            return ""
        return INTENTS[self.mark]


class Procedure:
    """A row in one form: args (without ierror), has_ierror, has_choice, result ('' for a subroutine)."""

    def __init__(self, row, wide, rules):
        self.row, self.wide = row, wide
        own = rules.get(row.name, "-")
        self.rules = own
        self.name = "MPI_" + row.name
        self.has_ierror = "noierror" not in own and not row.returns
        self.result = RESULTS[row.returns] if row.returns else ""
        out = any(p.kind_is("request") and p.mark == ">" for p in row.params)
        is_asynchronous = (out or "async" in own or row.chapter == "windows" or re.search("_(begin|end)$", row.name)) and "sync" not in own
        self.args = []
        for param in row.params_of(wide):
            mine = rules.get(row.name, param.name)
            if "omit" not in mine and param.name != "...":
                self.args.append(Arg(row, param, wide, mine, is_asynchronous))
        self.has_choice = any(a.what == "choice" for a in self.args)

    def find(self, name):
        return next((a for a in self.args if a.c_name == name), None)

    def signature(self):
        """What distinguishes specific procedures of one generic name in mpi_f08: types, kinds and rank; address and count kinds are one."""
        same = re.compile("MPI_(COUNT|ADDRESS|OFFSET)_KIND")
        return [(same.sub("8", a.type(True)), bool(a.dimension(True))) for a in self.args]


def is_fortran(row):
    """Has the row a Fortran binding? Tools' calls and the handles' ints have none."""
    return not row.name.startswith("T_") and not re.search("_(to|from)int$", row.name)


class Fortran:
    def __init__(self, tables, directory):
        self.rules = Rules(directory)
        self.rows = [row for row in tables.rows if is_fortran(row)]
        names = {row.name for row in self.rows}
        for name, _ in self.rules.of:
            if name not in names:
                raise TableError("fortran.tbl: no function MPI_%s has a Fortran binding" % name)

    def narrow(self, row):
        return Procedure(row, False, self.rules)

    def large(self, row):
        """The large-count specific of mpi_f08; None: it has none, or one that could not be told from the other."""
        if not row.twin_since:
            return None
        wide = Procedure(row, True, self.rules)
        if "explicit" not in wide.rules and wide.signature() == self.narrow(row).signature():
            return None
        return wide
