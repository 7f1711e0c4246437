# SPDX-License-Identifier: BSD-3-Clause
#
# gen_tables: reads functions.tbl, extensions.tbl, kinds.tbl, constants.tbl and types.tbl into objects. Used by gen_api and its modules, and test/api.
# Invariant: every row is checked here (kinds known, lengths name a parameter), so the generators need no checks.
import os
import re


class TableError(Exception):
    pass


def lines(path):
    """The rows of a table as (line number, text): without comments, continuation lines (that begin with a blank) joined."""
    rows = []
    with open(path, encoding="utf-8") as table:
        for number, line in enumerate(table, 1):
            line = line.rstrip()
            if not line or line.startswith("#"):
                continue
            if line[0] == " ":
                rows[-1] = (rows[-1][0], rows[-1][1] + " " + line.strip())
            else:
                rows.append((number, line))
    return rows


def sections(path):
    """As lines(), in sections: [(title, what follows the title's bracket, rows)]."""
    found = []
    for number, line in lines(path):
        match = re.match(r"\[(.*)\]\s*(.*)$", line)
        if match:
            found.append((match.group(1), match.group(2), []))
        else:
            found[-1][2].append((number, line))
    return found


class Kind:
    def __init__(self, text):
        left, _, names = text.partition("|")
        self.name, self.narrow, wide, self.sentence = left.split(None, 3)
        self.sentence = self.sentence.strip()
        self.wide = self.narrow if wide == "-" else wide
        self.is_poly = wide != "-"
        self.names = names.split()


class Param:
    """name; kind (a Kind or None); mark: '', '>', '<>', '*', '='; length of an array or None; is_wide_only; callback; raw."""

    def __init__(self, text, tables):
        self.kind = self.callback = self.raw = self.length = None
        self.mark = ""
        self.is_wide_only = text.startswith("+")
        self.is_callback_poly = False
        self.name = text
        if text == "...":
            return
        match = re.match(r"\+?(\w+)(?::([\w]+~?)|\{(.*)\})?(<>|>|\*|=)?(?:\[([\w*]+)\])?$", text)
        if not match:
            raise TableError("cannot read parameter '%s'" % text)
        self.name, kind, self.raw, self.mark, self.length = match.groups()
        self.mark = self.mark or ""
        if self.raw:
            self.raw = self.raw.replace("_", " ")
        elif kind and kind[0].isupper():
            self.is_callback_poly = kind.endswith("~")
            self.callback = kind.rstrip("~")
        else:
            kind = kind or tables.kind_of_name.get(self.name)
            if kind not in tables.kinds:
                raise TableError("parameter '%s' has no known kind" % text)
            self.kind = tables.kinds[kind]

    def kind_is(self, *names):
        return self.kind is not None and self.kind.name in names

    def is_in(self):
        return self.mark in ("", "=", "*")

    def declare(self, wide):
        """The C declaration in MPI_X (wide: in MPI_X_c)."""
        if self.name == "...":
            return "..."
        if self.raw:
            return self.raw.replace("@", self.name)
        if self.callback:
            return "MPI_%s%s *%s" % (self.callback, "_c" if wide and self.is_callback_poly else "", self.name)
        base = self.kind.wide if wide else self.kind.narrow
        if base == "void*":
            return "void *" + self.name
        const = "const " if self.is_in() else ""
        if base in ("void", "char"):
            return "%s%s *%s" % (const, base, self.name)
        if self.kind.name == "weight":
            return "%s%s *%s" % (const, base, self.name)  # gcc warns of MPI_UNWEIGHTED, (int *)10, where an array is expected
        if self.length is not None:
            return "%s%s %s[]" % (const, base, self.name)
        if base == "MPI_Status":
            return "%sMPI_Status *%s" % (const, self.name)
        if self.mark in ("", "="):
            return "%s %s" % (base, self.name)
        return "%s *%s" % (base, self.name)


class Row:
    def __init__(self, text, chapter, tables):
        fields = text.split(None, 5)
        self.name, self.built, self.via, self.since, flags = fields[:5]
        rest = fields[5] if len(fields) > 5 else ""
        rest, _, returns = rest.partition("->")
        self.chapter = chapter
        self.returns = returns.strip()  # '': an error code
        self.flags = set() if flags == "-" else set(flags.split(","))
        twins = [f for f in self.flags if re.match(r"c[\d.]*$", f)]
        self.twin_since = (twins[0][1:] or "4.0") if twins else None
        self.deprecated = next((f[3:] for f in self.flags if re.match(r"old[\d.]+$", f)), None)
        unknown = [f for f in self.flags - set(twins) if not re.match(r"(any|coll|rootrecv|rootsend|open|unlocked|form|joint|old[\d.]+)$", f)]
        if unknown:
            raise TableError("unknown flag '%s'" % unknown[0])
        if self.built not in ("yes", "no", "noop"):
            raise TableError("built is '%s', not yes, no or noop" % self.built)
        if self.via not in ("comm", "request", "world", "free", "file", "win", "session", "tool"):
            raise TableError("via is '%s'" % self.via)
        self.params = [Param(word, tables) for word in rest.split()]
        names = [p.name for p in self.params]
        for param in self.params:
            if param.length not in (None, "*") and param.length not in names:
                raise TableError("the length '%s' of %s is no parameter" % (param.length, param.name))
        if self.via == "comm" and not self.comm():
            raise TableError("via comm, but it has no communicator")

    def is_extension(self):
        return self.chapter == "extensions"

    def forms(self):
        """[(name, is_wide)]: MPI_X and, if it exists, MPI_X_c."""
        name = ("MPIX_" if self.is_extension() else "MPI_") + self.name
        return [(name, False)] + ([(name + "_c", True)] if self.twin_since else [])

    def needs_form(self):
        """Is the function in src/mpi told which form was called (its last argument, is_large)?"""
        return "form" in self.flags or any(p.is_wide_only for p in self.params)

    def params_of(self, wide):
        return [p for p in self.params if wide or not p.is_wide_only]

    def declare(self, wide):
        return ", ".join(p.declare(wide) for p in self.params_of(wide)) or "void"

    def result(self):
        return self.returns or "int"

    def comm(self):
        """The communicator whose worker and error handler it uses, or None."""
        return next((p for p in self.params if p.kind_is("comm") and p.mark in ("", "<>")), None)

    def find(self, name):
        return next((p for p in self.params if p.name == name), None)


class Tables:
    def __init__(self, directory):
        def path(name):
            return os.path.join(directory, name)

        self.kinds = {}
        self.kind_of_name = {}
        for _, text in lines(path("kinds.tbl")):
            kind = Kind(text)
            self.kinds[kind.name] = kind
            for name in kind.names:
                self.kind_of_name[name] = kind.name
        self.rows, self.extensions = [], []
        for table, into in (("functions.tbl", self.rows), ("extensions.tbl", self.extensions)):
            for title, _, rows in sections(path(table)):
                for number, text in rows:
                    try:
                        into.append(Row(text, title.split()[0], self))
                        into[-1].number = len(self.rows) + len(self.extensions)
                    except (TableError, ValueError) as error:
                        raise TableError("%s:%d: %s: %s" % (table, number, text.split()[0], error))
        self.constants = [(title, what, [text.split() for _, text in rows])
                          for title, what, rows in sections(path("constants.tbl"))]
        self.types = {title: [text for _, text in rows] for title, _, rows in sections(path("types.tbl"))}
