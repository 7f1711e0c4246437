# SPDX-License-Identifier: BSD-3-Clause
#
# soak_watch: distinguishes a stalled job from one that cannot run. Called by test/stress/soak at each poll, and by soak_spares.
# Invariant: time in which a rank is stopped, throttled or waits for a CPU, or in which the caller does not run, is not part of a stall.
"""In each second without a completed message, samples each thread's state, CPU time and time waiting for a CPU from the kernel."""
import os
import re
from collections import namedtuple

LOOK_S = 1.0      # between two samples
LOOK_MAX_S = 2.0  # a longer time between two polls counts as this: the caller did not run and could not continue a stopped rank
LATE_SHARE = 3    # a job ended by its time limit has stalled if it could run for the stall's time divided by this

Thread = namedtuple("Thread", "state wchan call cpu_s wait_s sleeps preempted")
Group = namedtuple("Group", "periods throttled throttled_s")


def read_text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as text:
            return text.read()
    except OSError:  # ended, or not permitted
        return ""


def read_thread(folder):
    """None if the thread has ended."""
    status = dict(re.findall(r"(\w+):\s+(\w+)", read_text(folder + "/status")))
    times = read_text(folder + "/schedstat").split()
    if "State" not in status:
        return None
    cpu_ns, wait_ns = (int(times[0]), int(times[1])) if len(times) == 3 else (0, 0)
    return Thread(status["State"], read_text(folder + "/wchan") or "?", read_text(folder + "/syscall").split(" ")[0].strip() or "?",
                  cpu_ns / 1e9,
                  wait_ns / 1e9, int(status.get("voluntary_ctxt_switches", 0)), int(status.get("nonvoluntary_ctxt_switches", 0)))


def read_threads(pids):
    """{(pid, thread id): Thread} of all threads of the processes."""
    out = {}
    for pid in pids:
        try:
            numbers = sorted(int(name) for name in os.listdir("/proc/%d/task" % pid))
        except OSError:
            continue
        for number in numbers:
            thread = read_thread("/proc/%d/task/%d" % (pid, number))
            if thread:
                out[pid, number] = thread
    return out


def read_group(folder):
    """Throttling of a cgroup, version 1 or 2; None without a group."""
    stat = dict(re.findall(r"(\w+) (\d+)", read_text(folder + "/cpu.stat"))) if folder else {}
    if "nr_periods" not in stat:
        return None
    throttled_s = int(stat["throttled_usec"]) / 1e6 if "throttled_usec" in stat else int(stat["throttled_time"]) / 1e9
    return Group(int(stat["nr_periods"]), int(stat["nr_throttled"]), throttled_s)


Sample = namedtuple("Sample", "at_s threads group stopped_s")


def take_sample(now_s, pids, folder, stopped_s):
    return Sample(now_s, read_threads(pids), read_group(folder), stopped_s)


def is_unserved(before, after):
    """Was the thread runnable all the time, and did not run?"""
    return before.state == after.state == "R" and (before.cpu_s, before.sleeps) == (after.cpu_s, after.sleeps)


def waited_s(before, after, passed_s):
    """The kernel adds a wait for a CPU when it ends: an unserved thread waits all the time."""
    return passed_s if is_unserved(before, after) else after.wait_s - before.wait_s


def has_unserved(before, after):
    """Such a thread holds the job up, whatever CPU time the others spend in waiting for it."""
    return any(is_unserved(before.threads[key], after.threads[key]) for key in after.threads if key in before.threads)


def held_s(before, after):
    """Longest time between two samples in which a thread waited for a CPU or was throttled."""
    waits = [waited_s(before.threads[key], after.threads[key], after.at_s - before.at_s) for key in after.threads if key in before.threads]
    if before.group and after.group:
        waits.append(after.group.throttled_s - before.group.throttled_s)  # summed over CPUs: an upper bound
    return max(waits, default=0.0)


def used_s(before, after):
    """CPU time of all threads between two samples."""
    return sum(after.threads[key].cpu_s - before.threads[key].cpu_s for key in after.threads if key in before.threads)


class Progress:
    """Time in which a job did not progress although it could run. `take(now)` returns a Sample."""

    def __init__(self, limit_s, take):
        self.limit_s, self.take = limit_s, take
        self.moved(0.0)

    def moved(self, now_s):
        self.since_s = self.last_s = now_s
        self.first = self.last = None
        self.could_s = self.cpu_s = self.held_s = self.stopped_s = self.unseen_s = 0.0

    def is_slow(self, now_s):
        """True: the caller must not slow the job down further."""
        return now_s - self.since_s > 2 * LOOK_S

    def has_stalled(self, now_s):
        """Called at each poll without progress. True if the job could run for `limit_s`."""
        self.unseen_s, self.last_s = max(self.unseen_s, now_s - self.last_s), now_s
        if now_s - (self.last.at_s if self.last else self.since_s) < LOOK_S:
            return False
        sample = self.take(now_s)
        if self.last:
            self.count(self.last, sample)
        self.first, self.last = self.first or sample, sample
        return self.could_s >= self.limit_s

    def had_stalled(self):
        """The same for a job ended by its time limit; a throttled job could run for a short time only."""
        return self.last_s - self.since_s >= self.limit_s and self.could_s >= self.limit_s / LATE_SHARE

    def count(self, before, after):
        passed, held, used = after.at_s - before.at_s, held_s(before, after), used_s(before, after)
        stopped = after.stopped_s - before.stopped_s
        self.held_s += held
        self.cpu_s += used
        self.stopped_s += stopped
        could = max(0.0, min(passed, LOOK_MAX_S) - stopped)
        if not has_unserved(before, after):
            self.could_s += could if held < passed / 2 else min(used, could)

    def summary(self):
        return ("no message completed for %.1f s: for %.1f s of them it could run, for %.1f s a rank was stopped, "
                "for %.1f s at most one waited "
                "for a CPU or its quota; CPU time %.2f s; longest time between two polls %.1f s" %
                (self.last_s - self.since_s, self.could_s, self.stopped_s, self.held_s, self.cpu_s, self.unseen_s))


def describe(before, after, rank_of):
    """One line for each thread, the cgroup and the machine: state, and usage between two samples."""
    out = []
    for pid, number in sorted(after.threads, key=lambda key: (rank_of.get(key[0], -1), key)):
        now = after.threads[pid, number]
        was = before.threads.get((pid, number), now)
        out.append("rank %s thread %d: %s in %s (call %s); in %.1f s: CPU %.3f s, waited for a CPU %.3f s, %d sleeps, "
                   "%d times preempted" % (
            rank_of.get(pid, "?"), number, now.state, now.wchan, now.call, after.at_s - before.at_s, now.cpu_s - was.cpu_s,
            now.wait_s - was.wait_s, now.sleeps - was.sleeps, now.preempted - was.preempted))
    if not after.threads:
        out.append("no rank is between MPI_Init and MPI_Finalize")
    if before.group and after.group:
        out.append("the group's quota: used up in %d of %d periods, for %.3f s" % (
            after.group.throttled - before.group.throttled, after.group.periods - before.group.periods,
            after.group.throttled_s - before.group.throttled_s))
    out.append("the machine: load %s; pressure %s" % (read_text("/proc/loadavg").strip(),
                                                      "".join(read_text("/proc/pressure/cpu").split("\n")[:1]) or "unknown"))
    return out
