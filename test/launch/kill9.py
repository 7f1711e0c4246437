#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Any one process of a job is killed with -9, at a random moment, mpirun and its guardian included; then nothing may be left: no
# process, no file in /tmp, no shared memory. WEFT_TEST_ROUNDS sets how often (default 40), WEFT_TEST_SEED which moments.
import os, random, shutil, signal, subprocess, sys, tempfile, time

mpirun = os.environ.get("WEFT_TEST_MPIRUN") or shutil.which("mpirun")
if not mpirun:
    print("skip: no mpirun")
    sys.exit(77)
seed = int(os.environ.get("WEFT_TEST_SEED", time.time_ns() % 1000000))
rounds = int(os.environ.get("WEFT_TEST_ROUNDS", "40"))
rng = random.Random(seed)
base = tempfile.mkdtemp()


def marked(mark):
    """Every living process whose environment holds the mark: the job's tree, wherever it was re-parented to."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            text = open("/proc/%s/environ" % pid, "rb").read()
            stat = open("/proc/%s/stat" % pid).read()
        except OSError:
            continue
        state = stat.rsplit(")", 1)[1].split()[0]
        if mark in text and state not in "ZX":
            found[int(pid)] = stat[stat.index("(") + 1:stat.rindex(")")]
    return found


def guardian(parent):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = open("/proc/%s/stat" % pid).read()
        except OSError:
            continue
        if "(weft-guard)" in stat and int(stat.rsplit(")", 1)[1].split()[1]) == parent:
            return int(pid)
    return None


def shm():
    return set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()


def one(i):
    mark = "WEFT_TEST_ROUND=%d-%d-%d" % (os.getpid(), seed, i)
    env = dict(os.environ, WEFT_TEST_ROUND=mark.split("=")[1], TMPDIR=base)
    before = shm()
    # each rank has a child, and a grandchild in a session of its own
    script = "sleep 300 & (setsid sleep 300 &) ; sleep 300"
    args = [mpirun, "--pmix", rng.choice(["always", "never"]), "-n", "3", "sh", "-c", script]
    job = subprocess.Popen(args, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    time.sleep(rng.choice([0, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.3]) * rng.random() * 1.5)
    guard = guardian(job.pid)
    tree = marked(mark.encode())
    choice = rng.choice(["mpirun", "guardian", "any"])
    if choice == "guardian" and guard:
        victim = guard
    elif choice == "any" and len(tree) > 1:
        victim = rng.choice([p for p in tree if p != job.pid])
    else:
        choice, victim = "mpirun", job.pid
    name = tree.get(victim, "weft-guard")
    try:
        os.kill(victim, signal.SIGKILL)
    except ProcessLookupError:
        pass
    is_only_leaf = choice == "any" and name == "sleep"
    if choice == "guardian" or is_only_leaf or choice == "any":
        # the job may well live on: a new guardian must stand in; then mpirun is killed too
        time.sleep(0.2)
        if job.poll() is None:
            again = guardian(job.pid)
            if choice == "guardian" and (again is None or again == victim):
                print("not ok: round %d: no new guardian" % i)
                return 1
            job.kill()
    job.wait()
    for wait in range(200):
        left, files, segments = marked(mark.encode()), os.listdir(base), shm() - before
        if not left and not files and not [s for s in segments if "weft" in s or "pmix" in s] and not guardian(job.pid):
            return 0
        time.sleep(0.02)
    print("not ok: round %d (seed %d): killed %s %s (%s): left %s, files %s, shm %s" % (i, seed, choice, victim, name, left, files,
                                                                                     segments))
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return 1


bad = sum(one(i) for i in range(rounds))
shutil.rmtree(base, ignore_errors=True)
print("%s: %d rounds, seed %d" % ("not ok" if bad else "ok", rounds, seed))
sys.exit(1 if bad else 0)
