#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Threads of a process beside what its GPUs do, in one document: what is there, what a late half costs, what became of
threads between two snapshots, and which of two ranks is odd by its line of Python."""
import json
import os
import sys
import time
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from dapclient import Between
from harness import BIN, Scene, need_root

PYTHON = "/usr/bin/python3"
FORGED = BIN.parent / "tests" / "forged"
RANK = '''
import os, sys, time
def all_reduce():
    time.sleep(100000)
def train_step(rank):
    if rank:
        time.sleep(100001)
    all_reduce()
print(os.getpid(), flush=True)
train_step(int(sys.argv[1]))
'''


def shown(s, *args, status=0):
    done = s.ctl("snapshot", *args)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done


def test_threads_stand_beside_waves(monkeypatch):
    with Scene(app="runtime on; queues 2; spin") as s:
        done = s.ctl("snapshot", s.app.pid, "--host", "-j")
        doc = json.loads(done.stdout)
        # What the threads lack depends on how the program was built.
        assert done.returncode == (0 if doc["complete"] else 8) and len(doc["queues"]) == 2, done
        assert doc["host"]["stopped_us"] == 0 and doc["host"]["time_us"] >= doc["time_us"], doc
        assert doc["complete"] == (not doc["missing"]) and all(m.startswith("host: ") for m in doc["missing"]), doc["missing"]
        assert doc["host"]["pid"] == s.app.pid and sum(g["threads"] for g in doc["host"]["groups"]) == doc["host"]["threads"]
        assert "host" not in json.loads(shown(s, s.app.pid, "-j").stdout)
        monkeypatch.setenv("COLUMNS", "80")
        text = s.ctl("snapshot", s.app.pid, "--host").stdout
        assert "0 us stopped" in text and text.index("QUEUE") < text.index("THREADS"), text
        assert all(len(line) <= 80 for line in text.split("\n")), text


def test_process_without_a_gpu_has_its_threads():
    with Scene(app=None) as s:
        process = s.start("rank", [PYTHON, "-c", RANK, "0"])
        process.wait_line()
        doc = json.loads(shown(s, process.pid, "--host", "-j", status=8).stdout)
        assert not doc["complete"] and doc["missing"][0].startswith("gpu: "), doc["missing"]
        assert doc["process"]["vendor"] == "none" and not doc["process"]["debuggable"], doc["process"]
        assert doc["host"]["groups"][0]["frames"][0]["function"] == "all_reduce", doc["host"]
        assert "-c" not in doc["host"]["comm"] and s.ctl("snapshot", process.pid).returncode == 5


def test_threads_that_do_not_run_are_stuck():
    need_root()
    # Of root's threads that run now and then the kernel does not tell the worker where they are.
    somebody = {"user": 65534, "group": 65534, "extra_groups": []}
    with Scene(app=None, user_mode=False) as s:
        process = s.start("rank", [PYTHON, "-c", RANK, "0"], **somebody)
        process.wait_line()
        time.sleep(0.3)
        done = s.ctl("snapshot", process.pid, "--host", "--again", "600")
        assert "stuck; blocked" in " ".join(done.stdout.split()), done.stdout
        runs = s.start("runs", [PYTHON, "-c", "import os, time\nprint(os.getpid(), flush=True)\nwhile True:\n    time.sleep(0.01)"],
                       **somebody)
        runs.wait_line()
        done = s.ctl("snapshot", runs.pid, "--host", "--again", "600")
        assert "stuck" not in done.stdout and "has run" in done.stdout, done.stdout


def test_odd_rank_is_named_by_its_line(tmp_path):
    with Scene(app=None) as s:
        for rank in range(3):
            process = s.start(f"rank{rank}", [PYTHON, "-c", RANK, str(int(rank == 1))])
            process.wait_line()
            time.sleep(0.3)
            shown(s, process.pid, "--host", "-j", "-o", tmp_path / f"rank{rank}.json", status=8)
        files = [tmp_path / f"rank{rank}.json" for rank in range(3)]
        text = " ".join(s.ctl("merge", *files).stdout.split())
        assert "ODD rank1 its main thread is at <string>:7 train_step, most others at <string>:4 all_reduce" in text, text
        doc = json.loads(s.ctl("merge", *files, "-j").stdout)
        assert [bool(r.get("odd")) for r in doc["ranks"]] == [False, True, False] and "host" not in doc
        assert {g["ranks"] for g in doc["host_groups"] if g.get("main")} == {"0,2", "1"}, doc["host_groups"]
        # Of two ranks none is the majority: the one that does not wait in a collective operation is odd.
        two = [json.loads(f.read_text()) for f in files[:2]]
        two[0]["host"]["groups"][0]["role"] = "collective"
        for f, d in zip(files, two):
            f.write_text(json.dumps(d))
        text = " ".join(s.ctl("merge", *files[:2]).stdout.split())
        assert "ODD rank1" in text and "others wait in a collective operation at <string>:4 all_reduce" in text, text
        # Merging what was merged gives the same answer.
        (tmp_path / "both.json").write_text(s.ctl("merge", *files[:2], "-j").stdout)
        again = json.loads(s.ctl("merge", tmp_path / "both.json", "-j").stdout)
        assert again["host_groups"] == json.loads((tmp_path / "both.json").read_text())["host_groups"]


def test_threads_that_cannot_be_read_in_time():
    """A page that nobody ever brings keeps the reader of stacks until its deadline: the document says what it lacks."""
    need_root()
    with Scene(app=None, user_mode=False) as s:
        silent = s.start("forged", [FORGED, "silent", "nobody"])
        if silent.wait_line() == "none":
            raise SkipTest("no userfaultfd here")
        begun = time.monotonic()
        late = json.loads(shown(s, silent.pid, "--host", "-j", status=8).stdout)
        assert time.monotonic() - begun > 2 and any("does not answer" in m for m in late["missing"]), late["missing"]


def test_queues_run_while_threads_are_read():
    """The question about threads is passed on when queues run again, and when the waves were told."""
    with Scene(app="runtime on; queues 2; spin") as s, Between(s) as between:
        asked = []

        def look(request):
            asked.append((request["method"], s.target_state()["suspended_queues"], len(between.sizes)))

        between.look = look
        done = s.ctl("--socket", between.path, "snapshot", s.app.pid, "--host", "-j")
        assert json.loads(done.stdout)["host"]["threads"] > 0, done
        methods = [method for method, _, _ in asked]
        assert "gpu.snapshot" in methods[:methods.index("host.stacks")] and not any(n for _, n, _ in asked), asked
        # Each of the calls before it has had its answer.
        assert dict((method, answers) for method, _, answers in asked)["host.stacks"] == methods.index("host.stacks"), asked
