#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Attach, detach, second attach and rescue by libcudbgshim alone, on the simulated CUDA stack."""
import os
import signal
import subprocess
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import BIN, CudaScene, need_root, status, wait_until
from debugger import get, say

PROBE = BIN.parent / "tests/session_probe"
RELEASES = ("11.8", "12.2", "12.4", "12.9", "13.4")
VARIABLES = ("cudbgIpcFlag", "cudbgRpcEnabled", "cudbgApiClientPid", "cudbgApiClientRevision", "cudbgSessionId",
             "cudbgDebuggerCapabilities", "cudbgUseExternalDebugger", "cudbgDebuggerInitialized")


def scene(release="12.4", app=CudaScene.APP, **kwargs):
    kwargs.setdefault("sim", "devices 2 sms=3 warps=8")
    return CudaScene(app=app, release=release, start_agent=False, **kwargs)


class Run:
    """One finished probe."""

    def __init__(self, code, out, err):
        self.lines = out.splitlines()
        self.code = code
        self.text = out + err

    def all(self, word):
        return [line.split(" ", 1)[1] for line in self.lines if line.startswith(word + " ")]

    @property
    def outcomes(self):
        return self.all("outcome")

    @property
    def error(self):
        """(outcome, errno, CUDBGResult) of the failure."""
        words = self.all("error")[0].split()
        return words[0], int(words[1]), int(words[2])


def begin(s, *words, pid=None, **kwargs):
    # A sanitizer's dlopen() does not know the library that calls it, nor that one's run path.
    return subprocess.Popen([PROBE, str(pid or s.app.pid), f"libcuda={s.libcuda}", *words], text=True,
                            stdout=subprocess.PIPE, env={**os.environ, "LD_LIBRARY_PATH": str(s.libraries)}, **kwargs)


def probe(s, *words, pid=None):
    run = begin(s, *words, pid=pid, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    out, err = run.communicate(timeout=60)
    return Run(run.returncode, out, err)


def outcome(run):
    """Of a probe that goes on; its output is read up to there."""
    return next((line for line in run.stdout if line.startswith("outcome ")), "").strip()


def values(s):
    return {name: get(s, name) for name in VARIABLES}


def assert_untouched(s):
    """As if never debugged, and alive."""
    wait_until(lambda: status(s.app.pid).get("TracerPid") == "0", "the tracer is gone")
    found = {name: value for name, value in values(s).items() if value}
    assert not found, found
    assert_alive(s)


def assert_alive(s):
    before = s.app_status().beats
    assert say(s, "ready") is not None
    wait_until(lambda: s.app_status().beats > before, "heartbeat")


# -- attach and detach ------------------------------------------------------------------------


def test_attach_and_detach_in_every_release():
    for release in RELEASES:
        with scene(release) as s:
            run = probe(s, "attach", "detach")
            assert run.outcomes == ["attached", "detached"], (release, run.text)
            assert "devices 2" in run.text and "event 10" in run.lines, run.text
            assert run.all("path")[0].startswith("1" if release == "13.4" else "2"), run.text
            assert_untouched(s)
            state = s.state()
            assert not any(d["suspended"] for d in state["devices"]), state


def test_second_attach_after_detach():
    for release in ("12.4", "13.4"):
        with scene(release) as s:
            for _ in range(3):
                run = probe(s, "attach", "detach")
                assert run.outcomes == ["attached", "detached"], run.text
                assert_untouched(s)


def test_other_ways_to_attach():
    for release, path in (("13.4", "call"), ("12.4", "legacy"), ("12.4", "call")):
        with scene(release) as s:
            run = probe(s, f"path={path}", "attach", "detach")
            assert run.outcomes == ["attached", "detached"], (path, run.text)
            assert_untouched(s)


def test_program_that_has_not_called_cuinit():
    with scene("12.4", app="listen") as s:
        run = probe(s, "attach", "detach")
        assert run.outcomes[-1] == "detached", run.text
        assert_untouched(s)
    with scene("13.4", app="listen") as s:
        run = probe(s, "attach", "detach")
        assert run.outcomes == ["armed", "detached"], run.text
        assert_untouched(s)
        armed = begin(s, "wait=20000", "attach", "detach")
        wait_until(lambda: get(s, "cudbgIpcFlag") == 1, "the session is armed")
        answer = say(s, "init", wait=False)
        out = armed.communicate(timeout=60)[0]
        assert "outcome attached" in out and "outcome detached" in out, out
        answer()
        assert_untouched(s)


def test_program_without_libcuda():
    with scene(app=None) as s:
        sleeper = subprocess.Popen(["sleep", "60"])
        try:
            run = probe(s, "attach", "detach", pid=sleeper.pid)
            assert run.outcomes == ["no_libcuda", "detached"], run.text
        finally:
            sleeper.kill()
            sleeper.wait()


def test_program_in_another_network_namespace():
    """Where its engine's name would be another's; nothing is changed in it."""
    need_root()
    for wrapper, want in ((["unshare", "--net"], ["detached"]), (["unshare", "--mount"], ["attached", "detached"])):
        with scene(app=None) as s:
            s.app = s.start("app", [*wrapper, BIN / "gpu-agent-cuda-simapp", "--status-file", s.directory / "status",
                                    "-e", "init; context 0; listen"], env={"LD_LIBRARY_PATH": str(s.libraries)})
            s.app.status_file = s.directory / "status"
            s.app.wait_line()
            run = probe(s, "attach", "detach")
            assert run.outcomes == want, (wrapper, run.text)
            assert ("step write the flags" in run.text) == ("attached" in want), run.text
            assert_untouched(s)


def test_replay_that_is_empty_long_or_reversed():
    for wish in ("replay none", "replay auto batch=1 reverse=1 extra=300", "replay auto extra=2000"):
        with scene() as s:
            s.control(wish)
            run = probe(s, "attach", "detach")
            assert run.outcomes == ["attached", "detached"], (wish, run.text[-2000:])
            assert_untouched(s)


# -- failures with names -----------------------------------------------------------------------


def test_old_drivers_are_refused():
    with scene("8.0") as s:
        run = probe(s, "attach")
        assert run.error[:2] == ("too_old", -95), run.text


def test_second_debugger_is_refused_and_the_first_not_disturbed():
    with scene() as s:
        first = begin(s, "attach", "hold", "detach", stdin=subprocess.PIPE)
        try:
            assert outcome(first) == "outcome attached"
            before = values(s)
            assert before["cudbgIpcFlag"] == 1, before
            run = probe(s, "attach")
            assert run.error[0] == "debugged", run.text
            assert values(s) == before, (before, values(s))
        finally:
            out = first.communicate(timeout=60)[0]
        assert "outcome detached" in out, out
        assert_untouched(s)


def test_driver_that_says_no():
    rows = (("mps on", "not_possible"), ("attach 20", "engine"), ("attach 37", "engine"),
            ("fail initialize 39", "no_device"), ("fail initialize 24", "no_device"), ("fail initialize 20", "api"),
            ("fail initialize 19", "our_driver"))
    for wish, want in rows:
        with scene() as s:
            s.control(wish)
            run = probe(s, "attach")
            assert run.error[0] == want, (wish, run.text)
            assert_untouched(s)


def test_driver_that_says_later():
    for wish in ("attach 40 times=2", "fail initialize 40 count=3", "fail initialize 5 count=3"):
        with scene() as s:
            s.control(wish)
            run = probe(s, "attach", "detach")
            assert run.outcomes == ["attached", "detached"], (wish, run.text)
            assert_untouched(s)


def test_software_preemption_is_refused():
    with scene() as s:
        say(s, "set cudbgEnablePreemptionDebugging 1")
        run = probe(s, "attach")
        assert run.error[0] == "preemption", run.text


def test_engine_that_is_missing():
    with scene() as s:
        (s.libraries / "libcudadebugger.so.1").rename(s.libraries / "away")
        run = probe(s, "attach")
        assert run.error[0] == "our_driver", run.text
        assert_untouched(s)


def test_target_that_dies():
    for slot in ("initialize", "getNextEvent", "acknowledgeSyncEvents", "requestCleanupOnDetach", "finalize"):
        with scene() as s:
            s.control(f"kill-target {slot}")
            run = probe(s, "attach", "detach")
            assert run.code in (0, 1), (slot, run.text)
            # Detaching from a process that has ended is done.
            assert run.error[0] in ("gone", "api") if "attached" not in run.outcomes else \
                run.outcomes[-1] == "detached", (slot, run.text)


def test_engine_that_dies_or_never_finishes_is_detached_from():
    for wish in ("kill-engine getNextEvent", "kill-engine requestCleanupOnDetach", "no-complete on"):
        with scene() as s:
            s.control(wish)
            run = probe(s, "attach", "detach")
            assert run.outcomes[-1] == "detached", (wish, run.text)
            wait_until(lambda: status(s.app.pid).get("TracerPid") == "0", "the tracer is gone")
            assert not get(s, "cudbgIpcFlag") and not get(s, "cudbgApiClientPid")


# -- killed at every step ----------------------------------------------------------------------


def kill_matrix(release, app=CudaScene.APP, *words):
    """Die at step 0, 1, 2... on one program; each time rescue it and see that it can be attached to again."""
    with scene(release, app=app) as s:
        undo = s.directory / "undo"
        for step in range(200):
            undo.write_bytes(bytes(4096))
            run = probe(s, f"undo={undo}", f"die={step}", *words, "attach", "detach")
            if run.code == 0:
                break
            assert run.code == -signal.SIGKILL, run.text
            for _ in range(2):  # a rescue may be repeated
                rescue = probe(s, f"undo={undo}", "rescue")
                assert rescue.code == 0, (run.text, rescue.text)
            assert_untouched(s)
        assert step > 20, step
        run = probe(s, "attach", "detach")
        assert run.outcomes[-1] == "detached" and run.code == 0, run.text
        return step


def test_killed_at_each_step_and_rescued():
    kill_matrix("12.4")


def test_killed_at_each_step_of_the_descriptor_path_and_rescued():
    kill_matrix("13.4")


def test_killed_at_each_step_before_cuinit_and_rescued():
    kill_matrix("12.9", "listen", "path=call")


def died(s, undo, *words):
    """A debugger attaches and is killed; then the rescue.  @return its result, and whether cudbgApiDetach was called."""
    undo.write_bytes(bytes(4096))
    assert probe(s, f"undo={undo}", "attach", *words, "die").code == -signal.SIGKILL
    results = [probe(s, f"undo={undo}", "rescue").all("rescue")[0].strip() for _ in range(2)]  # it may be repeated
    assert results[0] == results[1] and not any(get(s, name) for name in VARIABLES), results
    return results[0], bool(get(s, "cudbgResumeForAttachDetach") & 2)


def test_killed_while_a_gpu_is_suspended():
    """The engine is not told to let go: the next attach would kill the program.  A new session lets the GPU run."""
    for release in ("12.4", "13.4"):
        with scene(release) as s:
            undo = s.directory / "undo"
            assert died(s, undo, "suspend") == ("1", False)
            assert s.state()["devices"][0]["suspended"]
            assert probe(s, "left=1", "attach", "detach").outcomes == ["attached", "detached"]
            assert_untouched(s)
            assert not s.state()["devices"][0]["suspended"]
            # What did not stand is let go as ever, and the process can be attached to again.
            assert died(s, undo) == ("0", True)
            assert probe(s, "attach", "detach").outcomes == ["attached", "detached"]
            assert_untouched(s)


def test_rescuer_that_is_killed_is_followed_by_another():
    with scene() as s:
        undo = s.directory / "undo"
        for i in range(12):
            undo.write_bytes(bytes(4096))
            victim = begin(s, f"undo={undo}", "attach", "hold", stdin=subprocess.PIPE)
            wait_until(lambda: get(s, "cudbgIpcFlag") == 1, "the session")
            victim.kill()
            victim.wait()
            first = begin(s, f"undo={undo}", "rescue")
            time.sleep(0.002 * i)
            first.kill()
            first.wait()
            rescue = probe(s, f"undo={undo}", "rescue")
            assert rescue.code == 0, rescue.text
            assert_untouched(s)


def test_vendor_call_that_hangs_is_announced_and_survived():
    for slot in ("initialize", "getNextEvent", "requestCleanupOnDetach"):
        with scene() as s:
            undo = s.directory / "undo"
            undo.write_bytes(bytes(4096))
            s.control(f"hang {slot}")
            run = begin(s, f"undo={undo}", "attach", "detach")
            try:
                run.communicate(timeout=2)
                raise AssertionError(f"{slot} did not hang")
            except subprocess.TimeoutExpired:
                run.kill()
                run.communicate()
            assert probe(s, f"undo={undo}", "rescue").code == 0
            assert_untouched(s)


def test_record_that_needs_a_rescue_is_not_used_again():
    with scene() as s:
        undo = s.directory / "undo"
        undo.write_bytes(bytes(4096))
        assert probe(s, f"undo={undo}", "die=8", "attach").code == -signal.SIGKILL
        assert probe(s, f"undo={undo}", "attach").outcomes == []
        assert probe(s, f"undo={undo}", "rescue").code == 0
        assert probe(s, f"undo={undo}", "attach", "detach").outcomes == ["attached", "detached"]


def test_rescue_of_a_process_that_ended_says_so():
    with scene() as s:
        undo = s.directory / "undo"
        undo.write_bytes(bytes(4096))
        probe(s, f"undo={undo}", "die=8", "attach")
        s.app.stop(signal.SIGKILL)
        assert "rescue -3" in probe(s, f"undo={undo}", "rescue").text


def test_events_reach_the_caller():
    with scene() as s:
        run = begin(s, "attach", "events", "detach")
        assert outcome(run) == "outcome attached"
        say(s, "context 1", wait=False)
        out = run.communicate(timeout=60)[0]
        assert "event 7" in out and "outcome detached" in out, out
