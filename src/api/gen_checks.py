# SPDX-License-Identifier: BSD-3-Clause
#
# gen_checks: checks of an entry point's arguments, by their kinds: one quick condition, and a cold function that finds the invalid
# argument. Used by gen_entries. The functions called are hand-written: checks.h.
# Invariant: arguments that pass the quick condition are valid; others may be valid (MPI_PROC_NULL, NULL with count 0).
import re

from gen_header import wrapped


# Kinds of handles that entries turn into objects, with the objects' C types. For each: weft_checks_KIND_at (inline: the object, or NULL),
# weft_checks_KIND (cold: describes an invalid handle; for NULLABLE ones with an argument: may it be null?) and weft_KIND_of.
OBJECTS = {"comm": "weft_comm *", "type": "const weft_type *", "op": "const weft_op *", "info": "weft_info *",
           "message": "weft_message *", "group": "weft_group *", "session": "weft_session *",
           "win": "weft_win *"}
# Those that may be null handles, except in their own functions.
NULLABLE = {"info": "MPI_INFO_NULL"}


def is_object(param):
    """A handle by value that becomes an object."""
    return param.kind is not None and param.kind.name in OBJECTS and param.mark == "" and param.length is None


def is_object_inout(param):
    """A handle by pointer, in and out."""
    return param.kind is not None and param.kind.name in OBJECTS and param.mark == "<>" and param.length is None


def null_of(row, param):
    """The null handle that the call accepts, or None."""
    return None if row.name.lower().startswith(param.kind.name + "_") else NULLABLE.get(param.kind.name)


def has_data(row):
    """Does the call move data? Then its types must be committed."""
    return any(p.kind_is("buf") for p in row.params) and any(p.kind_is("count", "bytes") for p in row.params)


def partners(row, buffer):
    """count, type and size (in bytes) that belong to a message buffer; each may be None."""
    prefix = buffer.name[:-3] if buffer.name.endswith("buf") else buffer.name[:-4] if buffer.name.endswith("_addr") else ""
    size = row.find(prefix + "size") if prefix else None
    if size:
        return None, None, size
    count = row.find(prefix + "count") or row.find("count") or (row.find("recvcount") if row.find("datatype") else None)
    return count, row.find(prefix + "type") or row.find(prefix + "datatype") or row.find("datatype"), None


# Counts of one member's block: the whole buffer holds a block for each member.
PER_RANK = {"gather": ("recv",), "scatter": ("send",), "allgather": ("recv",), "alltoall": ("send", "recv"),
            "reduce_scatter_block": ("recv",)}


def spans(row):
    """(count, type, ranks) of each message buffer, whose product must not overflow; ranks: C expression for the number of blocks."""
    name = re.sub("^i|_init$", "", row.name.lower())
    out = []
    for param in row.params:
        count, kind, _ = partners(row, param) if param.kind_is("buf") else (None, None, None)
        if not (count and kind) or count.mark or count.length or kind.mark or kind.length:
            continue
        size = "size" if name.startswith("reduce_scatter") else "remote_size"
        ranks = "comm_at->" + size if count.name[:4] in PER_RANK.get(name, ()) else "1"
        if (count, kind, ranks) not in out:
            out.append((count, kind, ranks))
    return out


def at_root_only(row, param):
    return ("rootrecv" in row.flags and param.name.startswith("recv")) or ("rootsend" in row.flags and
        param.name.startswith("send")) or ("coll" in row.flags and param.name == "displs" and row.find("root") is not None)


def length_of(row, param):
    """C expression for the length of an array, by comm_at; None: no array, or one that is not checked."""
    if param.length != "*":
        return param.length
    if "coll" not in row.flags or not param.kind_is("count", "displ", "type", "aint") or param.mark:
        return None
    if "neighbor" in row.name.lower():  # one element for each edge
        return edges("comm_at", param.name)
    # One element for each member that blocks come from or go to (MPI 5.0 6.2.3); in a reduce-scatter for each of the own group (6.10.2).
    return "comm_at->size" if "reduce_scatter" in row.name.lower() else "comm_at->remote_size"


def edges(comm, name):
    """C expression: the member's edges for which a neighborhood collective reads (send) or writes (recv) this argument."""
    return "weft_topo_degree(%s, %s)" % (comm, "true" if name.startswith("s") else "false")


def is_out_of_place(row, param):
    """Is the argument insignificant if sendbuf is MPI_IN_PLACE?"""
    names = ("sendcount", "sendcounts", "sdispls", "sendtype", "sendtypes")
    return "coll" in row.flags and row.find("recvbuf") and param.name in names and "rootsend" not in row.flags


def role_of(row, param):
    """C condition under which an argument of a call with a root is significant (checks.h); '': always, on intracommunicators."""
    if not row.find("root") or "coll" not in row.flags or param.name in ("comm", "root", "info", "request"):
        return ""
    if at_root_only(row, param):
        return "weft_checks_is_root(at, root)"
    has_block = row.find("recvbuf") and param.name[:4] in ("send", "recv")
    return "weft_checks_has_block(at, root)" if has_block else "weft_checks_takes_part(at, root)"


def is_operand(row, param):
    """Is the argument insignificant if op is MPI_NO_OP (MPI 5.0, 12.3.4)?"""
    return param.name.startswith("origin_") and row.find("op") is not None and row.find("result_addr") is not None


def may_be_in_place(row, buffer):
    """MPI_IN_PLACE: 'never', 'yes', or 'root' if only the root may pass it (MPI 5.0, 6.2); never on intercommunicators."""
    if "coll" not in row.flags or not (row.find("sendbuf") and row.find("recvbuf")):
        return "never"
    if "rootsend" in row.flags:
        return "root" if buffer.name == "recvbuf" else "never"
    if buffer.name != "sendbuf":
        return "never"
    return "root" if "rootrecv" in row.flags else "yes"


def is_pointer_out(param):
    """An address that must not be NULL."""
    if param.kind is None or param.kind_is("buf", "status", "argc", "request", "comm") and param.mark != ">":
        return False
    if param.kind_is("buf", "status"):
        return False
    return param.mark in (">", "<>", "*") and param.length is None


def is_status_in(param):
    return param.kind_is("status") and param.mark in ("", "<>") and param.length is None


def is_negative_an_error(param):
    return param.kind_is("count", "many", "bytes", "asize", "blocklen", "nparams") and param.mark == "" and param.length is None


def is_array_in(row, param):
    """An array of numbers or datatypes that src/mpi reads or fills, whose length is known."""
    if length_of(row, param) is None or param.mark not in ("", ">", "<>"):
        return False
    return param.kind_is("displ", "count", "blocklen", "pcount", "adispl", "aint", "elems", "counts", "int", "type", "dims", "flag", "coord", "urank",
                         "degree", "index", "rank", "counter", "notices")


def is_null_callback(param):
    """A callback whose predefined value is 0 (MPI_COMM_NULL_COPY_FN)."""
    return param.callback.endswith("attr_function") or param.callback in ("Copy_function", "Delete_function")


def quick_array(row, param):
    name, length = param.name, length_of(row, param)
    if param.kind_is("type") and param.mark == "":
        text = "weft_checks_types_odd(%s, %s)" % (name, length)
    elif param.kind_is("count", "blocklen") and param.mark == "":
        text = "weft_checks_counts_odd((weft_counts){%s, sizeof *%s}, %s)" % (name, name, length)
    else:
        text = "(!%s && %s > 0)" % (name, length)
    return "(sendbuf != MPI_IN_PLACE && %s)" % text if is_out_of_place(row, param) else text


def quick_of(row, param):
    """Conditions in C, each true if the argument needs the cold check."""
    name = param.name
    comm = row.comm()
    out = []
    if is_pointer_out(param):
        out.append("!" + name)
    if param.mark == "=" or param.kind is None:
        return ["!" + name] if param.callback and not is_null_callback(param) else []
    if param is comm:
        out.append("!comm_at")
    elif is_object(param):
        null = null_of(row, param)
        out.append("(!%s_at && %s != %s)" % (name, name, null) if null else "!%s_at" % name)
    elif is_object_inout(param):
        out.append("!weft_%s_of(*%s)" % (param.kind.name, name))
    elif param.kind_is("request") and param.mark != ">":
        if param.length is not None:
            out.append("weft_checks_some_bad(%s, %s)" % (name, param.length))
        elif param.mark == "":
            out.append("weft_checks_is_bad(%s)" % name)
        else:
            out += ["!" + name, "weft_checks_is_bad(*%s)" % name]
    elif param.kind_is("dest") and comm and param.mark == "":
        out.append("(uint32_t)%s >= comm_at->chan->size" % name)
    elif param.kind_is("source") and comm and param.mark == "":
        out.append("(uint32_t)%s + 1u > comm_at->chan->size" % name)  # 0 is MPI_ANY_SOURCE
        out.append("(%s == MPI_ANY_SOURCE && comm_at->hints & WEFT_COMM_NO_ANY_SOURCE)" % name)
    elif param.kind_is("root") and param.mark == "":
        out.append("(uint32_t)%s >= (uint32_t)comm_at->remote_size" % name)
    elif param.kind_is("rtag") and param.mark == "":
        wild = " || comm_at->hints & WEFT_COMM_NO_ANY_TAG" if comm else ""
        out.append("(%s < 0 && (%s != MPI_ANY_TAG%s))" % (name, name, wild))
    elif param.kind_is("string") and param.mark == "" or is_status_in(param):
        out.append("!" + name)
    elif param.kind_is("address"):
        out.append("!" + name)
    elif is_array_in(row, param):
        out.append(quick_array(row, param))
    elif param.kind_is("buf") and any(partners(row, param)):
        if may_be_in_place(row, param) == "yes":
            out.append("!" + name)
        else:
            out.append("weft_checks_buffer_is_odd(%s)" % name)
    return list(dict.fromkeys(out))


def signed_of(row, param):
    if any(param is count for count, _, _ in spans(row)):
        return False  # weft_checks_is_long finds negative ones too
    return is_negative_an_error(param) or (param.kind_is("tag") and param.mark == "" and row.comm())


def must_be_apart(row):
    """May the buffers not begin at one address? With displacements src/mpi compares the blocks."""
    arrays = any(p.length == "*" and p.kind_is("count") for p in row.params)
    return row.find("sendbuf") and row.find("recvbuf") and "coll" in row.flags and not arrays


def checks_of(row, wide=True):
    """(conditions for the cold check, statements that replace arguments that are not significant)."""
    always, root, signs, root_signs = [], [], [], []
    comm = row.comm()
    if not comm and "any" not in row.flags:
        always.append("!weft_world_now")
    for param in ([comm] if comm else []) + [p for p in row.params_of(wide) if p is not comm]:
        where, sign = (root, root_signs) if at_root_only(row, param) else (always, signs)
        where += quick_of(row, param)
        if signed_of(row, param):
            sign.append(param.name)
        for count, kind, ranks in spans(row):
            if param is count and ranks == "1":
                where.append("weft_checks_is_long(%s, %s_at)" % (count.name, kind.name))
            elif param is count:
                where.append("weft_checks_are_long(%s, %s_at, %s)" % (count.name, kind.name, ranks))
    if must_be_apart(row):
        (root if row.find("root") else always).append("sendbuf == recvbuf")
    first = [c for c in always if c in ("!comm_at", "!weft_world_now") or c.startswith("!") and c.endswith("_at")]
    rest = [c for c in always if c not in first]
    for names, where in ((signs, rest), (root_signs, root)):
        if names:
            where.insert(0, "(%s) < 0" % " | ".join(names) if len(names) > 1 else names[0] + " < 0")
    loops = [c for c in rest if "some_bad" in c or "s_odd(" in c]
    conditions = first + [c for c in rest if c not in loops] + loops
    if root:
        conditions.append("(comm_at->rank == root && (%s))" % " || ".join(root))
    # MPI_BYTE replaces a type that is not significant: src/mpi never gets NULL.
    insignificant = ("sendtype", "recvtype", "datatype") if row.find("root") else ("sendtype", "recvtype")
    substitutes = ["if (!%s_at)\n    %s_at = weft_type_of(MPI_BYTE);" % (p.name, p.name)
                   for p in row.params if p.name in insignificant and "coll" in row.flags or
                   p.kind_is("type") and is_operand(row, p)]
    return conditions, substitutes


def cold_declare(param):
    if param.is_callback_poly:
        return "void *%s, bool is_large" % param.name
    if param.kind and param.kind.is_poly and param.length is not None:
        return "weft_counts " + param.name
    if param.kind and param.kind.is_poly and param.mark in (">", "<>"):
        return "const void *" + param.name  # int or MPI_Count: only compared with NULL
    return param.declare(True)


def matters(row, param):
    """C condition under which the argument is significant; '': always."""
    terms = [role_of(row, param)] if role_of(row, param) else []
    if param.is_wide_only:
        terms.append("is_large")
    if is_operand(row, param):
        terms.append("op != MPI_NO_OP")
    if "coll" in row.flags and row.find("recvbuf"):
        if is_out_of_place(row, param):
            terms.append("sendbuf != MPI_IN_PLACE")
        if "exscan" in row.name.lower() and param.name == "recvbuf":
            terms.append("(at->rank > 0 || sendbuf == MPI_IN_PLACE)")
        if param.name in ("recvcount", "recvtype") and "rootsend" in row.flags:
            terms.append("(!weft_checks_is_root(at, root) || recvbuf != MPI_IN_PLACE)")
    return " && ".join(terms)


def cold_of(row, param):
    """Calls of checks.h for one argument, in order."""
    name = param.name
    comm = row.comm()
    at = "at" if comm else "NULL"
    about = 'function, %s, "%s"' % (at, name)
    length = (length_of(row, param) or "").replace("comm_at", "at")
    out = []
    if is_pointer_out(param) or is_status_in(param) or (param.kind_is("string") and param.mark == "") or param.kind_is("address"):
        out.append("weft_checks_pointer(%s, %s)" % (about, name))
    if param.callback and not is_null_callback(param):
        out.append("weft_checks_pointer(%s, %s%s)" % (about, "" if param.is_callback_poly else "(const void *)", name))
    if param.mark == "=" or param.kind is None:
        return out
    if (is_object(param) or is_object_inout(param)) and param is not comm:
        more = ", %s" % ("true" if has_data(row) else "false") if param.kind_is("type") else ""
        if param.kind.name in NULLABLE:
            more = ", %s" % ("true" if null_of(row, param) else "false")
        out.append("weft_checks_%s(%s, %s%s%s)" % (param.kind.name, about, "*" if param.mark else "", name, more))
    elif param.kind_is("request") and param.mark != ">":
        by_value = param.mark == "" and param.length is None
        length = param.length or "1"
        out.append("weft_checks_requests(%s, %s%s, %s, %s)" % (
            about, "&" if by_value else "", name, length, "true" if param.length else "false"))
    elif is_negative_an_error(param):
        check = {"count": "count", "many": "count", "blocklen": "blocklength", "nparams": "length"}.get(param.kind.name, "bytes")
        out.append("weft_checks_%s(%s, %s)" % (check, about, name))
    elif is_array_in(row, param) and param.kind_is("type") and param.mark == "":
        out.append("weft_checks_types(%s, %s, %s)" % (about, name, length))
    elif is_array_in(row, param) and param.kind_is("count", "blocklen") and param.mark == "":
        check = "counts" if param.kind_is("count") else "blocklengths"
        out.append("weft_checks_%s(%s, %s, %s)" % (check, about, name, length))
    elif is_array_in(row, param):
        out.append("weft_checks_array(%s, %s, %s)" % (about, name + (".at" if param.kind.is_poly else ""), length))
    elif param.kind_is("dest", "source", "root") and comm and param.mark == "":
        out.append("weft_checks_%s(%s, %s)" % (param.kind.name, about, name))
    elif param.kind_is("tag", "rtag") and comm and param.mark == "":
        out.append("weft_checks_tag(%s, %s, %s)" % (about, name, "true" if param.kind_is("rtag") else "false"))
    return out


def cold_buffer(row, param):
    count, kind, size = partners(row, param)
    about = 'function, %s, "%s"' % ("at" if row.comm() else "NULL", param.name)
    if size:
        return ["weft_checks_buffer_bytes(%s, %s, %s)" % (about, param.name, size.name)]
    if not (count and kind):
        return []
    place = may_be_in_place(row, param)
    allowed = {"never": "false", "yes": "!at->is_inter", "root": "weft_checks_is_own_root(at, root)"}[place]
    number = "%s ? %s : 0" % (edges("at", param.name), count.name) if "neighbor" in row.name.lower() else count.name
    return ["weft_checks_buffer(%s, %s, %s, %s, %s)" % (about, param.name, number, kind.name, allowed)]


def wrapped_lines(texts):
    out = []
    for line in "\n".join(texts).split("\n"):
        indent = len(line) - len(line.lstrip())
        out.append(" " * indent + wrapped(line.lstrip()).replace("\n", "\n" + " " * indent))
    return out


def cold_checks(row):
    """The cold function of a row, in C; '': nothing to check."""
    if not checks_of(row)[0]:
        return ""
    comm = row.comm()
    lines = []

    def check(call, when=""):
        lines.append("    if (%s(rc = %s))\n        return rc;" % (when + " && " if when else "", call))

    if "any" not in row.flags:
        check("weft_checks_alive(function)")
    if comm and comm.mark == "<>":
        check('weft_checks_pointer(function, NULL, "%s", %s)' % (comm.name, comm.name))
    if comm:
        handle = comm.name if comm.mark == "" else "*" + comm.name
        check('weft_checks_comm(function, NULL, "%s", %s)' % (comm.name, handle))
        lines.append("    at = weft_comm_of(%s);" % handle)
    before = len(lines)
    late = []
    for param in sorted((p for p in row.params if p is not comm), key=lambda p: not p.kind_is("root")):
        for call in cold_of(row, param):
            check(call, matters(row, param))
        if param.kind_is("buf"):
            late += [(call, matters(row, param)) for call in cold_buffer(row, param)]
    for call, when in late:
        check(call, when)
    for count, kind, ranks in spans(row):
        about = 'function, %s, "%s"' % ("at" if comm else "NULL", count.name)
        check("weft_checks_span(%s, %s, %s, %s)" % (about, count.name, kind.name, ranks.replace("comm_at", "at")), matters(row, count))
    if must_be_apart(row):
        both = "recvcount && %s && %s" % (edges("at", "send"), edges("at", "recv")) if "neighbor" in row.name.lower() else "recvcount"
        count = both + " ? sendcount : 0" if row.find("sendcount") else "count" if row.find("count") else "recvcount"
        when = "weft_checks_is_own_root(at, root)" if row.find("root") else "at->rank > 0" if "exscan" in row.name.lower() else ""
        check("weft_checks_apart(function, at, sendbuf, recvbuf, %s)" % count, when)
    declared = "".join(", " + text for text in [cold_declare(p) for p in row.params] + (["bool is_large"] if row.needs_form() else []))
    head = ["WEFT_COLD int %s_bad(const char *function%s)" % (row.name.lower(), declared), "{"]
    if comm and any(re.search(r"\bat\b", line) for line in lines[before:]):
        head.append("    weft_comm *at;")
    elif comm:
        del lines[before - 1]
    head.append("    int rc;")
    return "\n".join(wrapped_lines(head + lines + ["    return 0;", "}", ""]))
