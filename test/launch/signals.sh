#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Signals that mpirun gets reach every rank.
. "$(dirname "$0")/lib.sh"
cat >"$tmp/rank" <<'EOF'
trap 'echo usr1' USR1; trap 'echo usr2' USR2; trap 'echo int; exit 0' INT; trap 'echo term; exit 3' TERM
echo ready
while :; do sleep 0.05; done
EOF
python3 - "$mpirun" "$tmp" <<'EOF' || failed=1
import os, re, signal, subprocess, sys, time
mpirun, tmp = sys.argv[1:]
bad = 0
def same(want, got, what):
    global bad
    print(("ok: %s" if want == got else "not ok: %s: wanted %r, got %r") % ((what,) if want == got else (what, want, got)))
    bad |= want != got
def start(script, n=2):
    p = subprocess.Popen([mpirun, "-n", str(n), "bash", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), start_new_session=True)
    for i in range(n):
        assert p.stdout.readline() == "ready\n"
    return p
rank = open(tmp + "/rank").read()
p = start(rank)
p.send_signal(signal.SIGUSR1); time.sleep(.3); p.send_signal(signal.SIGUSR2); time.sleep(.3); p.send_signal(signal.SIGINT)
out, err = p.communicate(timeout=20)
same(["int"] * 2 + ["usr1"] * 2 + ["usr2"] * 2, sorted(out.split()), "USR1, USR2 and INT reach both ranks, which may handle them")
same(0, p.returncode, "and may end well")
p = start("echo ready; sleep 60"); p.send_signal(signal.SIGINT); out, err = p.communicate(timeout=20)
same(130, p.returncode, "INT ends ranks that do not handle it")
p = start(rank); p.send_signal(signal.SIGTERM); out, err = p.communicate(timeout=20)
same(3, p.returncode, "TERM: the ranks' exit code")
p = start("trap '' INT; echo ready; while :; do sleep .1; done")
p.send_signal(signal.SIGINT); time.sleep(.5)
same(None, p.poll(), "a rank may ignore the first INT")
p.send_signal(signal.SIGINT); out, err = p.communicate(timeout=20)
same(130, p.returncode, "the second INT kills")
# not a session of its own: a stop signal to an orphaned process group would be dropped by the kernel
p = subprocess.Popen([mpirun, "-n", "2", "bash", "-c", "echo ready $$; while :; do sleep .05; done"], stdout=subprocess.PIPE, text=True,
                     process_group=0) if sys.version_info >= (3, 11) else None
if p:
    pids = [int(p.stdout.readline().split()[1]) for i in range(2)]
    state = lambda pid: open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[0]
    p.send_signal(signal.SIGTSTP); time.sleep(.5)
    same(["T"] * 3, [state(x) for x in pids + [p.pid]], "TSTP stops ranks and mpirun")
    p.send_signal(signal.SIGCONT); time.sleep(.5)
    same(False, any(state(x) == "T" for x in pids + [p.pid]), "CONT goes on")
    p.send_signal(signal.SIGINT); p.communicate(timeout=20)
sys.exit(bad)
EOF
finish
