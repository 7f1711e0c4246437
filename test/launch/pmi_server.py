#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
#
# pmi_server: a PMI server that checks every byte of its clients and gives faulty answers on request. Used by test/launch/pmi.
"""usage: pmi_server.py -n RANKS [OPTION...] -- COMMAND...
  --wire 1|2          its PMI version; a client that requests 2 is offered 1 with --wire 1
  --map TEXT          PMI_process_mapping; "": there is none
  --move RANK         changes that rank's node: it is on a host of its own
  --values N, --keys N  limits that PMI-1 announces
  --drip              answers go out byte by byte
  --fault WHAT:CMD    at each command CMD, WHAT: eof, half (of the answer, then eof), mute, wrong (another answer), no (rc=-1), bytes
                      (no text), endless, empty (no field but cmd and rc), or NAME=VALUE: that field is changed
  --spoil N           the Nth value requested (by any rank) is one that no rank has put
  --lose PIECE        fragments of that number are missing
Exit code: that of an abort; else the greatest of the ranks'; 90: a client sent an invalid message; 91: 100 s have passed."""
import argparse
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import time

ANSWERS = {1: {"init": "response_to_init", "get_maxes": "maxes", "get_appnum": "appnum", "get_universe_size": "universe_size",
               "get_my_kvsname": "my_kvsname", "put": "put_result", "get": "get_result", "barrier_in": "barrier_out",
               "finalize": "finalize_ack"},
           2: {name: name + "-response" for name in ("fullinit", "job-getid", "kvs-put", "kvs-get", "kvs-fence", "info-getjobattr",
                                                     "finalize")}}
NAME = {1: "kvs_test_1", 2: "kvs;test;1"}


class Bad(Exception):
    pass


class Client:
    def __init__(self, rank, connection):
        self.rank, self.socket = rank, connection
        self.wire = 0  # 0: has not greeted
        self.came = b""
        self.has_finalized = self.is_known = False


class Server:
    def __init__(self, options):
        self.options = options
        self.fault, self.fault_at = (options.fault.rsplit(":", 1) + [""])[:2] if options.fault else ("", "")
        self.clients, self.tasks = [], []
        self.stored, self.seen = {}, {}  # key-values put; those visible since the last fence
        self.waiting, self.gets = [], 0
        self.aborted = None

    def start(self):
        for rank in range(self.options.only or self.options.n):
            local, remote = socket.socketpair()
            environment = dict(os.environ, PMI_FD=str(remote.fileno()), PMI_RANK=str(rank), PMI_SIZE=str(self.options.n))
            if self.options.wire == 2 or self.options.asks2:
                environment["PMI_JOBID"] = "7.0"
            self.tasks.append(subprocess.Popen(self.options.command, env=environment, pass_fds=[remote.fileno()], stdin=subprocess.DEVNULL))
            remote.close()
            self.clients.append(Client(rank, local))

    def serve(self):
        chooser = selectors.DefaultSelector()
        for client in self.clients:
            chooser.register(client.socket, selectors.EVENT_READ, client)
        end = time.monotonic() + 100
        while self.aborted is None:
            is_over = all(task.poll() is not None for task in self.tasks)  # asked before what they said last is read
            events = chooser.select(0.02) if chooser.get_map() else time.sleep(0.02) or []
            for key, _ in events:
                self.hear(chooser, key.data)
            if is_over and not events:
                return max(task.returncode if task.returncode >= 0 else 128 - task.returncode for task in self.tasks)
            if time.monotonic() > end:
                return self.kill(91)
        return self.kill(self.aborted)

    def hear(self, chooser, client):
        try:
            some = client.socket.recv(65536)
        except ConnectionResetError:
            some = b""
        client.came += some
        if some:
            self.read(client)
            return
        if not client.has_finalized:
            print("server: rank %d left without finalize" % client.rank, flush=True)
        chooser.unregister(client.socket)

    def kill(self, code):
        for task in self.tasks:
            if task.poll() is None:
                task.send_signal(signal.SIGKILL)
            task.wait()
        return code

    def read(self, client):
        """Whole messages only; the greeting is a line on either wire."""
        while client.came:
            if client.wire < 2:
                if b"\n" not in client.came:
                    return
                text, client.came = client.came.split(b"\n", 1)
                words = text.decode("ascii").split(" ")
            else:
                if len(client.came) < 6:
                    return
                if not re.fullmatch(rb"[0-9]+ *", client.came[:6]):
                    raise Bad("a length of %r" % client.came[:6])
                length = int(client.came[:6])
                if len(client.came) < 6 + length:
                    return
                text, client.came = client.came[6:6 + length], client.came[6 + length:]
                if not text.endswith(b";"):
                    raise Bad("%r does not end with ;" % text)
                words = [word.replace(";;", ";") for word in re.split("(?<!;);(?!;)", text[:-1].decode("ascii"))]
            if len(text) > 1023:
                raise Bad("a message of %d bytes" % len(text))
            if any("=" not in word for word in words) or not words[0].startswith("cmd="):
                raise Bad("rank %d says %r" % (client.rank, text))
            self.command(client, dict(word.split("=", 1) for word in words))

    def command(self, client, said):
        name = said["cmd"]
        if name == "init":
            wanted, minor = int(said["pmi_version"]), int(said["pmi_subversion"])
            if (wanted, minor) not in ((1, 1), (2, 0)):
                raise Bad("init %d.%d" % (wanted, minor))
            if client.wire == 2 or client.is_known:
                raise Bad("rank %d sends init twice" % client.rank)
            client.wire = 1
            if wanted > self.options.wire and self.options.refuses:
                return self.answer(client, name, {"pmi_version": "1", "pmi_subversion": "1", "rc": "-1"})
            self.answer(client, name, {"pmi_version": str(min(wanted, self.options.wire)), "pmi_subversion": "0", "rc": "0"})
            client.wire = min(wanted, self.options.wire)
        elif name == "abort":
            if self.options.wire == 1:
                self.aborted = int(said["exitcode"])
            elif said["isworld"] == "TRUE":
                self.aborted = 137
            print("server: rank %d aborts: %s" % (client.rank, said.get("msg", "")), flush=True)
        elif name not in ANSWERS.get(client.wire, {}):
            raise Bad("rank %d says %s over wire %d" % (client.rank, said, client.wire))
        else:
            client.is_known = True
            fields = getattr(self, "wire%d" % client.wire)(client, name, said)
            if fields is not None:
                self.answer(client, name, fields)

    def put(self, said, most):
        if said["key"] in self.stored:
            raise Bad("%s was put twice" % said["key"])
        if len(said["key"]) >= self.options.keys or len(said["value"]) > most:
            raise Bad("%s of %d characters" % (said["key"], len(said["value"])))
        self.stored[said["key"]] = said["value"]

    def get(self, key):
        """The value, or None."""
        if key == "PMI_process_mapping":
            return self.options.map or None
        self.gets += 1
        value = self.seen.get(key) if not key.endswith(".%d" % self.options.lose) else None
        if value and self.gets == self.options.spoil:
            return "!" + value[1:]
        if value and key == "%d.weft.place.0" % self.options.move:
            return value[:4] + ("A" if value[4] != "A" else "B") + value[5:]
        return value

    def fence(self, client, name):
        self.waiting.append((client, name))
        if len(self.waiting) == (self.options.only or self.options.n):
            self.seen = dict(self.stored)
            for one, cmd in self.waiting:
                self.answer(one, cmd, {"rc": "0"} if one.wire == 2 else {})
            self.waiting = []

    def wire1(self, client, name, said):
        if name in ("put", "get") and said["kvsname"] != NAME[1]:
            raise Bad("rank %d asks %s" % (client.rank, said))
        if name == "put":
            self.put(said, self.options.values - 1)
            return {"rc": "0", "msg": "success"}
        if name == "get":
            value = self.get(said["key"])
            if value is None:
                return {"rc": "-1", "msg": "no_such_key", "value": "unknown"}
            return {"rc": "0", "msg": "success", "value": value}
        if name == "barrier_in":
            return self.fence(client, name)
        client.has_finalized |= name == "finalize"
        return {"get_maxes": {"kvsname_max": "64", "keylen_max": str(self.options.keys), "vallen_max": str(self.options.values)},
                "get_appnum": {"appnum": "3"}, "get_universe_size": {"size": "-1"}, "get_my_kvsname": {"kvsname": NAME[1]},
                "finalize": {}}[name]

    def wire2(self, client, name, said):
        found = {"rc": "0", "found": "FALSE"}
        if name == "kvs-put":
            self.put(said, 1023)
        if name == "kvs-get" and said["jobid"] != NAME[2]:
            raise Bad("rank %d asks %s" % (client.rank, said))
        if name in ("kvs-get", "info-getjobattr"):
            value = self.get(said["key"])
            return found if value is None else {"rc": "0", "found": "TRUE", "value": value.replace(";", ";;")}
        if name == "kvs-fence":
            return self.fence(client, name)
        if name == "fullinit":
            if said["pmijobid"] != "7.0" or said["pmirank"] != str(client.rank) or said["threaded"] != "FALSE":
                raise Bad("fullinit %s" % said)
            return {"note": "a;;rank=99;;b", "pmi-version": "2", "pmi-subversion": "0", "rank": str(client.rank),
                    "size": str(self.options.n), "appnum": "3", "debugged": "FALSE", "rc": "0"}
        client.has_finalized |= name == "finalize"
        return {"rc": "0", "jobid": NAME[2].replace(";", ";;")} if name == "job-getid" else {"rc": "0"}

    def answer(self, client, name, fields):
        wire = client.wire
        words = dict({"cmd": ANSWERS.get(wire, {}).get(name, "response_to_init")}, **fields)
        fault = self.fault if name == self.fault_at else ""
        if fault == "wrong":
            words = {"cmd": "hello", "rc": "0"}
        elif fault == "no":
            words["rc"] = "-1"
        elif fault == "empty":
            words = {"cmd": words["cmd"], "rc": "0"}
        elif "=" in fault:
            words.update([fault.split("=", 1)])
        pairs = ["%s=%s" % pair for pair in words.items()]
        body = (";".join(pairs) + ";" if wire == 2 else " ".join(pairs) + "\n").encode("ascii")
        text = b"%6d" % len(body) + body if wire == 2 else body
        if fault == "bytes":
            text = b"\x00\xff\x01\n\x7f\n   \n" * 3
        elif fault == "endless":
            text = b"x" * 1100000 if wire == 1 else b"999999" + b"x" * 999999
        elif fault == "half":
            text = text[:len(text) // 2]
        try:
            if fault not in ("mute", "eof"):
                for part in [text[i:i + 1] for i in range(len(text))] if self.options.drip else [text]:
                    client.socket.sendall(part)
            if fault in ("eof", "half"):
                client.socket.shutdown(socket.SHUT_RDWR)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client has heard enough


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("-n", type=int, required=True)
    parser.add_argument("--only", type=int, default=0, help="start so many of the -n ranks")
    parser.add_argument("--wire", type=int, default=1)
    parser.add_argument("--map", default="")
    parser.add_argument("--move", type=int, default=-1)
    parser.add_argument("--values", type=int, default=1024)
    parser.add_argument("--keys", type=int, default=64)
    parser.add_argument("--fault", default="")
    parser.add_argument("--spoil", type=int, default=0)
    parser.add_argument("--lose", type=int, default=-1)
    parser.add_argument("--drip", action="store_true")
    parser.add_argument("--asks2", action="store_true", help="the environment promises PMI-2, whatever the wire is")
    parser.add_argument("--refuses", action="store_true", help="version 2 is refused, where 1 is all; without, 1 is offered")
    parser.add_argument("command", nargs="+")
    server = Server(parser.parse_args())
    server.start()
    try:
        code = server.serve()
    except (Bad, KeyError, ValueError, UnicodeDecodeError) as error:
        print("server: %s %s" % (type(error).__name__, error), flush=True)
        code = server.kill(90)
    return code


if __name__ == "__main__":
    sys.exit(main())
