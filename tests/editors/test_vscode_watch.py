#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""VS Code tells of exceptions in processes that nobody debugs, and holds none of them."""
import os
import signal
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from codeserver import Editor, drive, has_row, programs, workspace
from editor import extension, script
from harness import wait_until
from rulescene import ALL, RuleScene

LOOKS_S = 12  # in which the extension looks twice for new processes


def test_exceptions_of_processes_without_a_session_are_told():
    chromium, modules = programs()
    vsix = extension("vscode")
    with RuleScene(ALL + "keep = light\n", app=None) as s:
        place = workspace(s.directory)
        first = s.app = s.start_app(script(s.directory))
        editor = Editor(s, modules, vsix, **{"gpuAgent.watchExceptions": True})

        def attaches(app):
            return s.agentd.err().count(f"attach to {app.pid} asked by")

        def raise_in(app):
            """One that the application gets, whoever looks."""
            wait_until(lambda: any(x["pid"] == app.pid and x["readers"] and x.get("rule")
                                   for x in s.rpc.call("session.list")["sessions"]), "it is watched")
            before = s.app_status(app).faults
            s.app = app
            s.raise_queue(0, "wave_memory_violation")
            wait_until(lambda: s.app_status(app).faults > before, "the application has it")

        def fault():
            raise_in(first)

        def again():
            recorded = s.rule()["exceptions"]
            s.raise_queue(0, "wave_memory_violation")
            wait_until(lambda: s.rule()["exceptions"] > recorded, "the agent has told")

        def other():
            raise_in(s.start_app(script(s.directory), name="other"))

        def debugged():
            recorded = s.rule()["exceptions"]
            s.raise_queue(0, "wave_abort")
            wait_until(lambda: s.rule()["exceptions"] > recorded, "the agent has told")

        def ended():
            assert attaches(first) == 1, "the rule itself does not ask"
            for pid in s.worker_pids():
                os.kill(pid, signal.SIGKILL)
            time.sleep(LOOKS_S)
            assert attaches(first) == 1, "whoever has ended the session had a reason"

        seen = drive("watch", s, chromium, modules, editor.start(s, place), fault=fault, again=again, other=other,
                     debugged=debugged, ended=ended)
        text, = seen["notice"]
        assert f"process {first.pid} gpu-agent-simap: A wave touched memory it must not (2 waves of scale, spin.cl:8)." in text, text
        assert seen["warning"] == 1 and seen["buttons"] == ["Attach", "Open Record"], seen
        assert seen["notices"] == seen["notice"], "one for a process"
        assert has_row(seen["record"], "2 x scale spin.cl:8 memory_violation"), seen["record"]
        assert len(seen["other"]) == 1 and str(s.app.pid) in seen["other"][0], seen["other"]
        assert has_row(seen["attached"], "2 x scale spin.cl:8 memory_violation"), seen["attached"]
        assert seen["left"] == [], seen["left"]
        core, live = (wire.requests("attach")[0]["arguments"] for wire in editor.sessions())
        assert core["coreFile"].endswith(".gpucore") and live["pid"] == str(s.app.pid), (core, live)
