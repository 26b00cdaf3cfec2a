#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What threads wait for: a packet of a GPU's queue, the interpreter's lock; and which rank and whose child a process is."""
import json
import os
import pathlib
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import Scene, as_user, need_root, wait_until

PYTHON = "/usr/bin/python3"
FIELDS = ("queue_id", "gpu_id", "ring_base", "ring_bytes", "read_pointer", "write_pointer")
IDLE = "runtime on; queues 2; idle"
# More packets than a queue takes while it is looked at.
MUCH = 1000000


def places(s):
    """The queues as gpu.queues tells them, for the threads to be matched with."""
    session = s.attach()
    found = [q for q in s.rpc.call("gpu.queues", session=session)["queues"] if q["type"] == "compute_aql"]
    s.rpc.call("session.detach", session=session)
    return [{k: q[k] for k in FIELDS} for q in found], {q["queue_id"]: int(q["read_index"]) for q in found}


def waits(s, **params):
    """{event: the group of the thread that waits for it}, without the runtime's own thread."""
    def settled():
        doc = s.rpc.call("host.stacks", pid=s.app.pid, **params)
        groups = {e: g for g in doc["groups"] if g.get("role") == "gpu_wait" for e in g["waits_for"]["events"]}
        return (doc, groups) if len(groups) == 2 else None
    return wait_until(settled, "two threads wait")


@pytest.mark.parametrize("is_swapped", [False, True])
def test_thread_waits_for_a_packet_of_a_queue(is_swapped):
    """The signals decide alone: exchanging them between two queues exchanges the answer."""
    with Scene(app=f"{IDLE}; wait 0 {MUCH}; wait 1 {MUCH}; {'swap 0 1; ' if is_swapped else ''}spin") as s:
        queues, read = places(s)
        doc, groups = waits(s, queues=queues)
        _, later = places(s)
        first, second = sorted(groups)
        answer = [groups[e]["waits_for"] for e in (first, second)]
        assert [w["queue_id"] for w in answer] == ([1, 0] if is_swapped else [0, 1]), answer
        for w in answer:
            assert w["by"] == "event_id" and read[w["queue_id"]] <= int(w["dispatch"]) <= later[w["queue_id"]], (w, read, later)
        assert not any("done" in w for w in answer) and "findings" not in doc, doc
        runtime = [g for g in doc["groups"] if g.get("role") == "runtime"]
        assert len(runtime) == 1 and len(runtime[0]["waits_for"]["events"]) > 1, doc["groups"]
        assert "queue_id" not in runtime[0]["waits_for"], "the runtime's own thread waits for everything"
        text = s.ctl("stacks", s.app.pid, "--queues").stdout
        assert "GPU wait for dispatch" in " ".join(text.split()) and "of queue 1" in " ".join(text.split()), text


def test_thread_waits_for_an_event_when_no_queue_is_known():
    """Queues are known to a session only; without one the event is what can be said."""
    with Scene(app=f"{IDLE}; wait 0 {MUCH}; wait 1 {MUCH}; spin") as s:
        doc, groups = waits(s)
        assert all("queue_id" not in g["waits_for"] and len(g["waits_for"]["events"]) == g["threads"] for g in groups.values()), doc
        assert "for one of 2 events" in " ".join(s.ctl("stacks", s.app.pid).stdout.split())
        queues, _ = places(s)
        for wrong in ({"ring_base": "0x10"}, {"ring_bytes": 100}, {"read_pointer": "0x8"}):
            doc, groups = waits(s, queues=[{**queues[0], **wrong}])
            assert not doc["complete"] and "its packets" in doc["missing"][0], doc
            assert not any("queue_id" in g["waits_for"] for g in groups.values()), doc


def test_thread_that_nobody_has_woken():
    """The signal says that the work is done, and the thread has not run since."""
    with Scene(app=f"{IDLE}; wait 0 0; wait 1 {MUCH}; spin") as s:
        queues, _ = places(s)
        doc, groups = waits(s, queues=queues)
        assert {w["queue_id"]: w.get("done") for w in (g["waits_for"] for g in groups.values())} == {0: True, 1: None}, doc
        assert len(doc["findings"]) == 1 and "1 thread was not woken although the work is done" in doc["findings"][0], doc
        assert "not woken" in s.ctl("stacks", s.app.pid, "--queues").stdout


LOCKED = """
import ctypes, os, threading, time
def hold():
    time.sleep(0.3)
    print(threading.get_native_id(), flush=True)
    # PyDLL keeps the lock while the function runs.
    ctypes.PyDLL(None).sleep(100000)
def compute():
    while True:
        pass
threads = [threading.Thread(target=compute, daemon=True) for _ in range(2)]
for t in threads:
    t.start()
holder = threading.Thread(target=hold, daemon=True)
holder.start()
holder.join()
"""


def test_holder_of_the_lock_waits_while_others_want_it():
    need_root()
    with Scene(app=None, user_mode=False) as s:
        # Of root's threads that run now and then the kernel tells the worker nothing.
        process = s.start("python", [PYTHON, "-c", LOCKED], user=65534, group=65534, extra_groups=[])
        holder = process.wait_line()

        def stuck():
            doc = s.rpc.call("host.stacks", pid=process.pid)
            return doc if doc.get("findings") else None
        doc = wait_until(stuck, "the lock is held, and waited for")
        (line,) = doc["findings"]
        assert line.startswith(f"thread {holder} ") and "holds the lock of Python and waits in clock_nanosleep" in line
        # A thread that wants the lock wakes every 5 ms: not each look catches both.
        waiting = sum(g["threads"] for g in doc["groups"] if g.get("role") == "lock_wait")
        assert waiting in (1, 2) and f"; {waiting} thread" in line and line.endswith("for the lock"), (line, doc["groups"])
        wait_until(lambda: "holds the lock of Python" in " ".join(s.ctl("stacks", process.pid).stdout.split()), "the text says it")


def test_nothing_stands_out_where_the_holder_runs():
    code = "import os, threading\nthreading.Thread(target=lambda: [0 for _ in iter(int, 1)], daemon=True).start()\n" \
           "print(os.getpid(), flush=True)\nwhile True:\n    pass\n"
    with Scene(app=None) as s:
        process = s.start("python", [PYTHON, "-c", code])
        process.wait_line()
        for _ in range(20):
            assert "findings" not in s.rpc.call("host.stacks", pid=process.pid)


def named(names):
    """A program whose threads have these names."""
    return ("import os, threading, time\n"
            "def run(name):\n    open('/proc/self/task/%d/comm' % threading.get_native_id(), 'w').write(name)\n"
            "    ready.release()\n    time.sleep(100000)\n"
            f"ready = threading.Semaphore(0)\nnames = {names!r}\n"
            "for n in names:\n    threading.Thread(target=run, args=(n,), daemon=True).start()\n"
            "for n in names:\n    ready.acquire()\n"
            "time.sleep(0.2)\nprint(os.getpid(), flush=True)\ntime.sleep(100000)\n")


def test_role_follows_from_names():
    roles = {"pt_nccl_watchdg": "watchdog", "pt_autograd_0": "autograd", "QueueFeederThre": "data_loader",
             "pt_gloo_runloop": "collective", "cuda-EvtHandlr": "runtime", "other": None}
    with Scene(app=None) as s:
        process = s.start("python", [PYTHON, "-c", named(list(roles))])
        process.wait_line()
        doc = s.rpc.call("host.stacks", pid=process.pid)
        told = {name: g.get("role") for g in doc["groups"] for name in g["names"]}
        assert {name: told[name] for name in roles} == roles, told
        assert "data loader" in s.ctl("stacks", process.pid).stdout


SLEEP = [PYTHON, "-c", "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(100000)"]


@pytest.mark.parametrize("env,expected", [
    ({"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "SLURM_JOB_ID": "4711", "SLURM_PROCID": "0"},
     {"rank": 3, "local_rank": 1, "world_size": 8, "job": "4711", "from": "RANK"}),
    ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "x"},
     {"rank": 2, "world_size": 4, "from": "OMPI_COMM_WORLD_RANK"}),
    ({"SLURM_PROCID": "7", "SLURM_LOCALID": "3", "SLURM_NTASKS": "16", "SLURM_JOB_ID": "a\x1b[1m"},
     {"rank": 7, "local_rank": 3, "world_size": 16, "job": "a?[1m", "from": "SLURM_PROCID"}),
    ({"JAX_PROCESS_ID": "5", "AWS_SECRET_ACCESS_KEY": "do-not-tell"}, {"rank": 5, "from": "JAX_PROCESS_ID"}),
    ({"RANK": "first", "XRANK": "1", "TORCHELASTIC_RUN_ID": "x"}, None),
])
def test_rank_is_the_launchers(env, expected):
    with Scene(app=None) as s:
        process = s.start("python", SLEEP, env=env)
        process.wait_line()
        doc = s.rpc.call("host.stacks", pid=process.pid)
        assert doc.get("rank") == expected and "do-not-tell" not in json.dumps(doc), doc
        text = s.ctl("stacks", process.pid).stdout
        assert (f"rank {expected['rank']}" if expected else "pid") in text and (expected or "\nrank" not in text), text


FAMILY = """
import os, time
depth = int(os.environ.get("DEPTH", "0"))
def named(level):
    time.sleep(100000)
for i in range(2):
    if not os.fork():
        if i == 0 and not os.fork():
            named("grandchild")
        named("child")
time.sleep(0.3)
print(os.getpid(), flush=True)
named("parent")
"""


def test_tree_has_children_and_theirs():
    with Scene(app=None) as s:
        process = s.start("python", [PYTHON, "-c", FAMILY])
        process.wait_line()
        try:
            doc = json.loads(s.ctl("stacks", process.pid, "--tree", "--json").stdout)
            assert [len(p["children"]) for p in doc["processes"]] == [2, 1, 0, 0] or \
                [len(p["children"]) for p in doc["processes"]] == [2, 0, 1, 0], doc
            assert doc["complete"] and doc["processes"][0]["pid"] == process.pid
            assert all(p["groups"][0]["frames"][0]["function"] == "named" for p in doc["processes"]), doc
            assert s.ctl("stacks", process.pid, "--tree").stdout.count(" was stopped") == 4
            assert "children" not in s.rpc.call("host.stacks", pid=process.pid)
            assert s.ctl("stacks", process.pid, "--tree", "--again", "10").returncode == 2
        finally:
            for line in reversed(list(descendants(process.pid))):
                os.kill(line, 9)


def descendants(pid):
    for task in os.listdir(f"/proc/{pid}/task"):
        for child in pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text().split():
            yield int(child)
            yield from descendants(int(child))


def test_tree_leaves_out_what_may_not_be_looked_at():
    """The right is judged for each process: another user's child is missing, and said to be."""
    need_root()
    code = ("import os, time\nif not os.fork():\n    os.setresgid(65533, 65533, 65533)\n    os.setresuid(65533, 65533, 65533)\n"
            "    time.sleep(100000)\nos.setgroups([])\nos.setresgid(65534, 65534, 65534)\nos.setresuid(65534, 65534, 65534)\n"
            "os.execv('/usr/bin/python3', ['python3', '-c', 'import os, time\\nprint(os.getpid(), flush=True)\\n"
            "time.sleep(100000)'])\n")
    with Scene(app=None, user_mode=False) as s:
        process = s.start("python", [PYTHON, "-c", code])
        process.wait_line()
        (child,) = descendants(process.pid)
        try:
            def look():
                shown = s.ctl("stacks", process.pid, "--tree")
                assert shown.returncode == 8 and f"missing: process {child}: " in shown.stderr, shown
                assert shown.stdout.count(" was stopped") == 1, shown
            as_user(65534, look)
            assert s.ctl("stacks", process.pid, "--tree").stdout.count(" was stopped") == 2
        finally:
            os.kill(child, 9)


def test_second_look_says_who_has_run():
    code = ("import os, threading, time\n"
            "def ticks():\n    while True:\n        time.sleep(0.01)\n"
            "threading.Thread(target=ticks, daemon=True).start()\ntime.sleep(0.2)\nprint(os.getpid(), flush=True)\n"
            "time.sleep(100000)\n")
    with Scene(app=None) as s:
        process = s.start("python", [PYTHON, "-c", code])
        process.wait_line()
        text = " ".join(s.ctl("stacks", process.pid, "--again", "300").stdout.split())
        assert "has run since" in text and "has not run since" in text, text
        before = {g["representative"]["tid"]: int(g["switches"]) for g in s.rpc.call("host.stacks", pid=process.pid)["groups"]}
        time.sleep(0.3)
        after = {g["representative"]["tid"]: int(g["switches"]) for g in s.rpc.call("host.stacks", pid=process.pid)["groups"]}
        moved = {tid for tid in after if after[tid] != before.get(tid)}
        assert process.pid not in moved and len(moved) == 1, (before, after)


def test_thread_that_runs_is_nothing_missing():
    """Its frames of Python are there, and registers of a thread that runs nobody could have: the answer is whole."""
    with Scene(app=None) as s:
        process = s.start("python", ["/usr/bin/perl", "-e", "$| = 1; print \"$$\\n\"; 1 while 1"])
        process.wait_line()
        doc = s.rpc.call("host.stacks", pid=process.pid)
        assert doc["running"] == 1 and doc["complete"] and doc["missing"] == [], doc
        assert doc["groups"][0]["native_end"] == "running"
        shown = s.ctl("stacks", process.pid)
        assert shown.returncode == 0 and "no native frames: it is running" in shown.stdout, shown
