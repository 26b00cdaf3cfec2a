#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Threads on the processors as threads of an editor's, behind those of the GPU: off unless asked for, and only to look at.
Each message is checked against the protocol's schema by the client (dapclient.py)."""
import os
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from dapclient import Adapter, Between, runs_on, scene
from harness import status, wait_until

FIRST = 1001
HANG = """import os, time
def all_reduce():
    time.sleep(100000)
def train_step():
    all_reduce()
print(os.getpid(), flush=True)
train_step()
"""


def host_threads(a):
    return [t for t in a.call("threads")["threads"] if t["id"] >= FIRST]


def test_they_are_asked_for():
    with scene() as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        assert host_threads(a) == []
        assert "no thread 1001" in a.error("stackTrace", threadId=FIRST)
        a.finish()
    with scene() as s, Adapter(s.socket) as a:
        a.call("initialize", adapterID="gpu-agent")
        assert "hostThreads" in a.error("attach", pid=s.app.pid, hostThreads="yes")


def test_threads_and_frames():
    with scene() as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid, hostThreads=True)
        threads = a.call("threads")["threads"]
        ids = [t["id"] for t in threads]
        assert ids[0] == 1 and ids[1:] == list(range(FIRST, FIRST + len(ids) - 1)) and len(ids) > 1, threads
        assert all(t["name"].startswith("CPU: ") for t in threads[1:]), threads
        assert any("blocked in " in t["name"] for t in threads[1:]), threads
        seen, natives = set(), 0
        for thread in threads[1:]:
            stack = a.call("stackTrace", threadId=thread["id"])
            assert stack["totalFrames"] == len(stack["stackFrames"]), stack
            natives += sum("instructionPointerReference" not in f and "source" not in f for f in stack["stackFrames"])
            numbers = {f["id"] for f in stack["stackFrames"]}
            assert len(numbers) == len(stack["stackFrames"]) and not numbers & seen
            seen |= numbers
            # A page of frames is a part of all.
            assert a.call("stackTrace", threadId=thread["id"], startFrame=1, levels=1)["stackFrames"] == stack["stackFrames"][1:2]
        assert natives and seen
        for frame in seen:
            assert a.call("scopes", frameId=frame) == {"scopes": []}
        # What is about waves is refused, and says why; waves have their frames as before.
        for command, arguments in (("gpuAgent/waves", {"threadId": FIRST}), ("gpuAgent/focus", {"threadId": FIRST}),
                                   ("exceptionInfo", {"threadId": FIRST}),
                                   ("evaluate", {"expression": "1", "frameId": min(seen)})):
            assert "runs on a processor" in a.error(command, **arguments), command
        assert "waves" in a.call("evaluate", expression="help", context="repl", frameId=min(seen))["result"]
        frame = a.frame()
        assert frame["id"] not in seen and a.call("scopes", frameId=frame["id"])["scopes"]
        assert a.finish() == 0
        runs_on(s)


def test_pause_stops_no_thread():
    with scene() as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid, hostThreads=True)
        beats = s.app_status().beats
        old = a.call("stackTrace", threadId=FIRST)["stackFrames"][0]["id"]
        a.pause()
        assert host_threads(a) and status(s.app.pid)["State"].split()[0] not in "tT"
        wait_until(lambda: s.app_status().beats > beats + 10, "the threads run on")
        # Frames of what was shown before are not those of now.
        new = a.call("stackTrace", threadId=FIRST)["stackFrames"][0]["id"]
        assert new != old and "out of date" in a.error("scopes", frameId=old)
        a.call("continue", threadId=FIRST)
        assert not s.target_state()["suspended_queues"]
        assert a.finish() == 0
        runs_on(s)


def test_frames_of_python_have_their_sources(tmp_path):
    """No program of the simulator's is in Python: the question is passed on for one that is."""
    source = tmp_path / "hang.py"
    source.write_text(HANG)
    with scene() as s, Between(s) as between, Adapter(between.path) as a:
        hangs = s.start("hangs", ["/usr/bin/python3", str(source)])
        hangs.wait_line()

        def ask_for_it(request):
            if request["method"] == "host.stacks":
                request["params"] = {"pid": hangs.pid}

        between.look = ask_for_it
        a.start(pid=s.app.pid, hostThreads=True)
        (thread,) = host_threads(a)
        assert thread["name"].startswith("CPU: 1 x python3 hang.py:3 all_reduce, blocked in "), thread
        frames = [f for f in a.call("stackTrace", threadId=FIRST)["stackFrames"] if "source" in f]
        assert [(f["name"], f["line"]) for f in frames] == [("all_reduce", 3), ("train_step", 5), ("<module>", 7)], frames
        assert all(f["source"]["path"] == str(source) for f in frames), frames
        # Where the file is not here, it is only named.
        source.unlink()
        frame = next(f for f in a.call("stackTrace", threadId=FIRST)["stackFrames"] if "source" in f)
        assert frame["source"] == {"name": "hang.py", "origin": str(source)}, frame
        a.finish()


def test_without_an_answer_there_are_waves():
    with scene() as s, Between(s) as between, Adapter(between.path) as a:
        between.refused.add("host.stacks")
        a.start(pid=s.app.pid, hostThreads=True)
        assert host_threads(a) == [] and a.frame()
        a.wait(lambda m: m.get("event") == "output" and "missing: host: host.stacks refused" in m["body"]["output"], "why")
        a.finish()
