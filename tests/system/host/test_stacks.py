#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stacks of Python threads from outside: they are what the program says itself, no thread notices, and nothing that a
program plants hangs or fools the reader."""
import glob
import json
import os
import pathlib
import sys
import time
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from busyagent import MESSAGE, busy
from harness import BIN, Scene, as_user, need_root, wait_until
from pystacks import compare_at_rest, compare_running, start

PYTHON = "/usr/bin/python3"
HERE = pathlib.Path(__file__).parent
FORGED = BIN.parent / "tests" / "forged"
MINORS = range(8, 16)


def interpreter(minor):
    """A Python of that release, wherever there is one; GPU_AGENT_PYTHONS names more places."""
    places = [f"/usr/bin/python3.{minor}", *glob.glob(f"/root/.pyenv/versions/3.{minor}.*/bin/python3"),
              *glob.glob(os.environ.get("GPU_AGENT_PYTHONS", "/nowhere") + f"/python3.{minor}")]
    for place in places:
        if os.access(place, os.X_OK):
            return place
    raise SkipTest(f"no Python 3.{minor} here")


def switches(pid):
    """How often each thread has been on a processor."""
    return {tid: pathlib.Path(f"/proc/{pid}/task/{tid}/schedstat").read_text().split()[2]
            for tid in os.listdir(f"/proc/{pid}/task")}


@pytest.mark.parametrize("minor", MINORS)
def test_frames_are_those_that_the_program_tells(minor):
    python = interpreter(minor)
    with Scene(app=None) as s:
        compare_at_rest(s, [python], None, f"3.{minor}")


def test_no_thread_notices():
    """The kernel counts how often each thread runs: not once more, however often its stack is read."""
    with Scene(app=None) as s:
        process = start(s, [interpreter(11), HERE / "many.py", "7"])
        before = switches(process.pid)
        for _ in range(50):
            assert len(s.rpc.call("host.stacks", pid=process.pid)["groups"]) > 3
        assert switches(process.pid) == before
        assert "TracerPid:\t0" in pathlib.Path(f"/proc/{process.pid}/status").read_text()


@pytest.mark.parametrize("minor", MINORS)
def test_two_call_chains_are_never_mixed_unsaid(minor):
    python = interpreter(minor)
    with Scene(app=None) as s:
        compare_running(s, [python], None, f"3.{minor}")


def test_thread_of_two_interpreters():
    code = ("import os, threading, _xxsubinterpreters as x\n"
            "i = x.create()\n"
            "print(os.getpid(), flush=True)\n"
            "x.run_string(i, 'import time\\ndef within():\\n    time.sleep(100000)\\nwithin()')\n")
    with Scene(app=None) as s:
        process = start(s, [interpreter(11), "-c", code])
        doc = wait_until(lambda: deep(s.rpc.call("host.stacks", pid=process.pid)), "it is inside")
        frames = doc["groups"][0]["frames"]
        assert [(f["function"], f.get("interpreter")) for f in frames] == [
            ("within", 1), ("<module>", 1), ("<module>", None)], frames
        assert doc["python"][0]["interpreters"] == 2


def deep(doc):
    return doc if doc["groups"] and len(doc["groups"][0]["frames"]) == 3 else None


@pytest.mark.parametrize("kind", [["circle"], ["sizes"], ["unmapped"], *(["random", str(i)] for i in range(12))])
def test_forged_interpreter(kind):
    with Scene(app=None) as s:
        process = start(s, [FORGED, *kind])
        begun = time.monotonic()
        doc = s.rpc.call("host.stacks", pid=process.pid)
        assert time.monotonic() - begun < 4
        assert doc["threads"] == 1
        if kind[0] != "random":
            assert not doc["complete"] and doc["missing"], doc
        assert not any(g["frames"] for g in doc["groups"]), doc


@pytest.mark.parametrize("user", ["root", "nobody"])
def test_page_that_never_answers(user):
    """Nobody ever brings the page.  Of root's process the reader is refused it, of another user's it waits in the kernel
    until SIGKILL: the answer comes all the same, and says what it lacks."""
    need_root()
    with Scene(app=None, user_mode=False) as s:
        process = s.start("forged", [FORGED, "silent", *([user] if user == "nobody" else [])])
        if process.wait_line() == "none":
            raise SkipTest("no userfaultfd here")
        begun = time.monotonic()
        doc = s.rpc.call("host.stacks", pid=process.pid)
        took = time.monotonic() - begun
        assert took < 5 and not doc["complete"] and doc["missing"], doc
        if user == "nobody":
            assert took > 2 and "does not answer" in doc["missing"][0], doc
        wait_until(lambda: not s.worker_pids(), "the worker is gone")
        assert s.ctl("stacks", process.pid).returncode == 8


def test_who_may_look():
    need_root()
    with Scene(app=None, user_mode=False) as s:
        code = ["-c", "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(100000)"]
        mine = s.start("mine", ["/usr/bin/python3", *code], user=65534, group=65534, extra_groups=[])
        mine.wait_line()
        roots = start(s, ["/usr/bin/python3", *code])

        def look():
            assert s.connect().call("host.stacks", pid=mine.pid)["groups"][0]["frames"][0]["function"] == "<module>"
            assert s.connect().error("host.stacks", pid=roots.pid).code == -32002
        as_user(65534, look)
        doc = s.rpc.call("host.stacks", pid=mine.pid)
        assert doc["uid"] == 65534 and doc["groups"][0]["proof"] == "not_scheduled"
        wait_until(lambda: "host.stacks on process" in s.agentd.err(), "a look at another user's process is in the log")
        assert s.rpc.error("host.stacks", pid=s.agentd.pid).code == -32002
        assert s.rpc.error("host.stacks", pid=4194304).code == -32001


def test_verb(monkeypatch):
    """Rows fit 80 columns, names are harmless, native threads say where the kernel has them."""
    name = "x\u202e\x1b[31mevil" + "y" * 90
    code = ("import os, time, types\n"
            "def f():\n    print(os.getpid(), flush=True)\n    time.sleep(100000)\n"
            f"c = f.__code__.replace(co_name={name!r}, co_qualname={name!r}, co_filename='/very/long/' * 20 + 'end.py')\n"
            "types.FunctionType(c, globals())()\n")
    with Scene(app=None) as s:
        process = start(s, [interpreter(11), "-c", code])
        monkeypatch.setenv("COLUMNS", "80")
        shown = s.ctl("stacks", process.pid)
        text = shown.stdout
        assert shown.returncode == 0 and "clock_nanosleep" in text and "end.py:" in text, text
        assert all(len(line) <= 80 or "evil" in line for line in text.split("\n")), text
        assert "\x1b" not in text and "\u202e" not in text and "evil" in text, text
        sleeper = s.start("sleep", ["sleep", "1000"])
        time.sleep(0.3)
        doc = s.rpc.call("host.stacks", pid=sleeper.pid)
        assert doc["complete"] and doc["python"] == [] and doc["groups"][0]["frames"] == []
        assert doc["groups"][0]["waits_in"] == "clock_nanosleep"
        assert s.ctl("stacks", "4194304").returncode == 3 and s.ctl("stacks").returncode == 2


@pytest.mark.parametrize("mode", [[], ["--json"]])
def test_text_that_nobody_gets(mode):
    """Standard output was closed: nothing is written to whatever has its number by then, and the loss is told."""
    with Scene(app=None) as s:
        process = s.start("python", [PYTHON, "-c", "import time\nprint(1, flush=True)\ntime.sleep(100000)"])
        process.wait_line()
        done = s.ctl("stacks", process.pid, *mode, preexec_fn=lambda: os.close(1))
        assert done.returncode == 1 and done.stderr.startswith("gpu-agentctl: error: standard output: ") or \
            mode and json.loads(done.stderr)["error"]["message"].startswith("standard output: "), done
        assert "\n" not in done.stderr.strip(), done
        assert s.ctl("stacks", process.pid, *mode, "-o", s.directory / "kept", preexec_fn=lambda: os.close(1)).returncode == 0
        assert (s.directory / "kept").read_text()


def test_program_without_its_file():
    """Nothing of the program is opened: its file may be gone."""
    with Scene(app=None) as s:
        copy = s.directory / "python"
        copy.write_bytes(pathlib.Path("/usr/bin/python3.11").read_bytes())
        copy.chmod(0o755)
        process = start(s, [copy, "-c", "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(100000)"])
        copy.unlink()
        doc = s.rpc.call("host.stacks", pid=process.pid)
        assert doc["groups"][0]["frames"][0]["function"] == "<module>", doc


def test_who_has_no_connection_left_is_told_so():
    """It is not what --host waits for: nothing that this connection asks is answered any more."""
    with Scene(app="runtime on; queues 1; spin", start_agent=False) as s:
        (s.directory / "agentd.conf").write_text("[limits]\nconnections_per_user = 1\n")
        s.start_agentd("--config", s.directory / "agentd.conf")
        s.connect().call("agent.hello")
        run = s.ctl("snapshot", s.app.pid, "--host")
        assert run.returncode == 6 and "too many connections" in run.stderr, run


@pytest.mark.parametrize("often", [3, 1 << 30])
def test_who_wants_a_session_waits_for_a_turn_but_not_for_ever(often):
    """Of snapshot --host, as it is one of many that look at a job; both waits have one end."""
    with Scene(app="runtime on; queues 1; spin") as s, busy(s.socket, s.directory / "busy", "session.attach", often) as agent:
        run = s.ctl("snapshot", s.app.pid, "--host", "--socket", s.directory / "busy", "--timeout", "30s" if often == 3 else "2s")
        if often == 3:
            assert len(agent.refused) == 3 and MESSAGE not in run.stdout + run.stderr and " pause" in run.stdout, run
        else:
            assert len(agent.refused) > 1 and MESSAGE in run.stderr and run.returncode == 6 and not run.stdout, (len(agent.refused), run)
        # Others have nobody to wait for.
        del agent.refused[:]
        if often > 3:
            run = s.ctl("snapshot", s.app.pid, "--socket", s.directory / "busy")
            assert len(agent.refused) == 1 and run.returncode == 6, run


@pytest.mark.parametrize("often", [3, 1 << 30])
def test_who_asks_for_threads_waits_for_a_turn_but_not_for_ever(often):
    """The agent reads the threads of a few processes at a time: asking again is right, until the time is over that the user gives."""
    with Scene(app="runtime on; queues 1; spin") as s, busy(s.socket, s.directory / "busy", "host.stacks", often) as agent:
        for verb in (("stacks", s.app.pid), ("snapshot", s.app.pid, "--host")):
            del agent.refused[:]
            run = s.ctl(*verb, "--socket", s.directory / "busy", "--timeout", "30s" if often == 3 else "5s")
            if often == 3:
                assert len(agent.refused) == 3 and MESSAGE not in run.stdout + run.stderr and " pause" in run.stdout, run
            else:
                # More than once, and with the reason in the end; what else there is of a snapshot is shown.
                assert len(agent.refused) > 1 and MESSAGE in run.stderr and run.returncode in (6, 8), (len(agent.refused), run)
                assert (run.returncode == 6) == (verb[0] == "stacks"), run
