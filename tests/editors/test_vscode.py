#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""VS Code itself, in a browser, with our extension, on a simulated GPU process.

code-server and playwright-core come from npm, the browser from Debian (scripts/install-deps editors).
What counts are the messages between editor and adapter, which the extension writes down, and the texts
of rows; pictures of the run are left in build/editors, three of them are in docs/pictures.
"""
import contextlib
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from codeserver import Editor, drive, has_row, programs, workspace, write_launch
from dapclient import runs_on
from editor import extension, script
from harness import BIN, PATIENCE, ROOT, Scene, wait_until

STOP_IDLE_S = 8
NO_PID = 4194304
FAULT = 0x7f00dead0000
LAUNCH = [
    {"type": "gpu-agent", "request": "attach", "name": "GPU process", "pid": "${command:PickProcess}"},
    {"type": "gpu-agent", "request": "attach", "name": "GPU core", "coreFile": "${workspaceFolder}/../core"},
    {"type": "gpu-agent", "request": "attach", "name": "GPU gone", "pid": NO_PID},
]


@contextlib.contextmanager
def traced(pid):
    """Nobody else can debug a process that has a debugger."""
    libc = ctypes.CDLL(None, use_errno=True)
    seize, interrupt, detach = 0x4206, 0x4207, 17
    assert libc.ptrace(seize, pid, None, None) == 0, os.strerror(ctypes.get_errno())
    try:
        yield
    finally:
        libc.ptrace(interrupt, pid, None, None)
        os.waitpid(pid, 0x40000000)  # __WALL
        libc.ptrace(detach, pid, None, None)


# -- what is expected ------------------------------------------------------------------------------

def check_picker(seen, s, other):
    row = next(r for r in seen["picker"] if str(s.app.pid) in r)
    assert "gpu-agent-simap" in row and "AMD, 1 device, 2 queues" in row and "Cannot" not in row, row
    row = next(r for r in seen["picker"] if str(other.pid) in r)
    assert "Cannot be debugged" in row and seen["picker"][-1] == row, row
    assert seen["sessionsAfterEscape"] == 0, "a session without a process"


def check_screen(seen, pc):
    stack = seen["callStack"]
    assert has_row(stack, "2 x scale spin.cl:8 memory_violation", "Paused on exception"), stack
    assert has_row(stack, "6 x spin spin.cl:37", "Running"), stack
    for name, place in (("inner", "8:9"), ("middle", "14:10"), ("scale", "30:17")):
        assert has_row(seen["frames"], name, "spin.cl", place), seen["frames"]
    assert has_row(seen["wave"], "reasons", "memory_violation"), seen["wave"]
    assert "memory_violation" in seen["exception"] and f"2 waves stopped at {pc:#x}" in seen["exception"], seen["exception"]
    here, = seen["disassemblyHere"]
    assert f"{pc:#x}" in here and "s = s * x + i" in here, here
    assert has_row(seen["console"], "8 waves in 2 groups", "6 x spin"), seen["console"]
    assert int(seen["consolePc"][-1], 16) == pc, seen["consolePc"]
    assert has_row(seen["running"], "2 x scale", "Running") and has_row(seen["running"], "6 x spin", "Running"), seen["running"]
    assert has_row(seen["pausedAtFault"], "6 x spin", "Paused"), seen["pausedAtFault"]
    assert has_row(seen["paused"], "6 x spin", "Paused"), seen["paused"]
    assert "Memory violation on the device" in seen["deviceFault"] and hex(FAULT) in seen["deviceFault"], seen["deviceFault"]
    assert seen["notifications"] == [], seen["notifications"]
    dialog, = seen["dialogs"]
    # What was under way may still fade.
    told = [text for text in seen["inVain"] if text != "Attaching to the GPU process"]
    assert str(NO_PID) in dialog and told == [], (dialog, told)
    assert any("No GPU agent listens on" in text for text in seen["without"]), seen["without"]


def check_registers(seen, wire):
    scopes = wire.answer("scopes")["scopes"]
    reference = next(x["variablesReference"] for x in scopes if x["name"] == "Scalar registers")
    values = {v["name"]: v["value"] for v in wire.answer("variables", variablesReference=reference)["variables"]}
    shown = [re.fullmatch(r"(s\d+) =(0x[0-9a-f]+)", row) for row in seen["registers"]]
    shown = [m.groups() for m in shown if m]
    assert len(shown) > 8 and all(values[name] == value for name, value in shown), (shown, values)


def check_hover(seen, wire):
    """The value is the adapter's, of the lane that is shown."""
    asked = [m["seq"] for m in wire.requests("evaluate")
             if m["arguments"].get("context") == "hover" and m["arguments"]["expression"] == "x"]
    values = {m["body"]["result"] for m in wire.answers("evaluate") if m["request_seq"] in asked}
    assert seen["hover"] and values == set(seen["hover"]), (values, seen["hover"])
    assert all(re.fullmatch(r"-?\d+", value) for value in values), values


def check_lanes(seen, wire):
    """The one that is chosen is shown from then on; those offered are of the thread that the editor shows."""
    assert any("lane 7" in row and "(7, 0, 0), active, pc 0x" in row for row in seen["lanes"]), seen["lanes"]
    first, choice, second = [m["arguments"] for m in wire.requests("gpuAgent/lanes")]
    assert choice == {"threadId": 1, "lane": 7} and "frameId" in first and "frameId" in second, (first, choice, second)
    offered, chosen, others = wire.answers("gpuAgent/lanes")
    assert [x["lane"] for x in offered["body"]["lanes"] if x["shown"]] == [offered["body"]["lane"]], offered
    assert chosen["success"] and chosen["body"]["lane"] == 7, chosen
    assert others["body"]["threadId"] == 2 and others["body"]["wave"].startswith("1:0:"), others
    assert seen["lanesOf"] == f"Lanes of {others['body']['wave']}", seen["lanesOf"]


def is_late(wire, answer):
    """It was asked for what was shown before a stop, or two looks ago: the editor's window hears of either later."""
    asked = next(i for i, m in enumerate(wire.messages) if m["type"] == "request" and m["seq"] == answer["request_seq"])
    command, arguments = wire.messages[asked]["command"], wire.messages[asked]["arguments"]
    if command not in ("variables", "scopes") or "out of date" not in answer["message"]:
        return False
    told_as, number = (("variablesReference", arguments["variablesReference"]) if command == "variables" else
                       ("id", arguments["frameId"]))
    reference = re.compile(rf'"{told_as}": {number}\b')
    told = max(i for i, m in enumerate(wire.messages[:asked]) if m["type"] == "response" and reference.search(json.dumps(m)))
    # That a stop came is in the trace before the answer, and maybe behind the request.
    between = wire.messages[told:wire.messages.index(answer)]
    events = [m["event"] for m in between if m["type"] == "event"]
    return "stopped" in events or events.count("invalidated") > 1


def check_wire(wire, s, pc):
    attach, = wire.requests("attach")
    assert attach["arguments"]["pid"] == str(s.app.pid), attach
    bad = [m for m in wire.messages if m["type"] == "response" and not m["success"] and m["message"] != "cancelled"]
    assert all(is_late(wire, m) for m in bad), bad
    first, *others, last = wire.events("stopped")
    assert (first["reason"], first["allThreadsStopped"]) == ("exception", False), first
    assert len(others) == 2 and all(stopped["allThreadsStopped"] for stopped in (*others, last)), (others, last)
    assert last["reason"] == "exception" and hex(FAULT) in last["text"], last
    filters, = wire.requests("setExceptionBreakpoints")
    assert set(filters["arguments"]["filters"]) == {"memory", "illegal", "math", "assert", "queue", "device"}, filters
    assert len(wire.requests("exceptionInfo")) >= 1 and wire.requests("continue") and wire.requests("pause")
    lines = wire.answer("disassemble", instructionOffset=-200, instructionCount=400)["instructions"]
    assert len(lines) == 400 and int(lines[200]["address"], 16) == pc, len(lines)
    assert [m["arguments"].get("terminateDebuggee") for m in wire.requests("disconnect")] == [None]
    # With the answer in its hand, the editor ends the adapter's process if it is still there.
    assert wire.answers("disconnect")[0]["success"] and wire.exits in ([0], [128 + signal.SIGTERM]), wire.exits


def check_core(seen, wire, pc):
    assert has_row(seen["core"], "2 x scale spin.cl:8 memory_violation", "Paused on exception"), seen["core"]
    assert has_row(seen["core"], "inner", "8:9") and has_row(seen["core"], "6 x spin spin.cl:37"), seen["core"]
    frame = wire.answer("stackTrace", threadId=1)["stackFrames"][0]
    assert int(frame["instructionPointerReference"], 16) == pc, frame


def test_a_session_in_vs_code():
    chromium, modules = programs()
    vsix = extension("vscode")
    with Scene(app=None, gpus="gfx90a") as s:
        place = workspace(s.directory)
        write_launch(place, LAUNCH)
        s.app = s.start_app(script(s.directory))
        other = s.start_app("runtime on; queues 1; spin", name="other")
        dump = s.ctl("dump", s.app.pid, "--max-stop", "60s", "-o", s.directory / "core")
        assert dump.returncode == 0, dump.stderr
        editor = Editor(s, modules, vsix)
        url = editor.start(s, place)

        def running():
            s.control("memory-info fixed")
            s.control(f"fault {s.app.pid} {s.state()['gpus'][0]['gpu_id']} {FAULT:#x} not-present")

        with traced(other.pid):
            seen = drive("session", s, chromium, modules, url, running=running)
        wire, _, core = editor.sessions()
        pc = int(wire.answer("stackTrace", threadId=1)["stackFrames"][0]["instructionPointerReference"], 16)
        check_picker(seen, s, other)
        check_screen(seen, pc)
        check_registers(seen, wire)
        check_hover(seen, wire)
        check_lanes(seen, wire)
        check_wire(wire, s, pc)
        check_core(seen, core, pc)
        runs_on(s)
        beats = s.app_status().beats
        wait_until(lambda: s.app_status().beats > beats, "the process goes on")


@pytest.mark.parametrize("story", ["abandoned", "abandonedView"])
def test_an_abandoned_tab_lets_the_gpu_run(story):
    """Control is taken from another client, the GPU paused, the tab lost: the process of the adapter stays.

    The view of GPUs, where it is open, goes on to look by itself, which counts as nobody's use.
    """
    chromium, modules = programs()
    vsix = extension("vscode")
    with Scene(app=None, gpus="gfx90a") as s:
        place = workspace(s.directory)
        s.app = s.start_app(script(s.directory).replace("memory 2", "halted 2"))
        write_launch(place, [{"type": "gpu-agent", "request": "attach", "name": "GPU process", "pid": s.app.pid,
                              "stopIdleMs": STOP_IDLE_S * 1000}])
        holder = s.connect()
        editor = Editor(s, modules, vsix)

        def hold():
            session = s.attach(rpc=holder, control=True)
            assert holder.call("gpu.suspend", session=session, lease_ms=60000)["suspended"] == 2

        def paused():
            assert holder.notification("control.lost")["reason"] == "forced"
            assert s.target_state()["suspended_queues"] == 2

        def lost():
            begun = time.monotonic()
            wait_until(lambda: not s.target_state()["suspended_queues"], "the queues run again", STOP_IDLE_S + PATIENCE)
            print(f"  the queues run again {time.monotonic() - begun:.1f} s after the tab was lost")

        seen = drive(story, s, chromium, modules, editor.start(s, place), open=hold, paused=paused, lost=lost)
        assert has_row(seen["held"], "keeps 2 queues suspended") and not has_row(seen["held"], "Running"), seen["held"]
        assert has_row(seen["heldContinue"], f"process {os.getpid()} (user {os.getuid()})"), seen["heldContinue"]
        assert has_row(seen["control"], "This session controls the GPU process"), seen["control"]
        wire, = editor.sessions()
        assert not wire.exits, "the adapter lives: it has let the GPU run by itself"
        assert wire.events("continued"), "and has told the editor"
        said = [body["output"] for body in wire.events("output")]
        assert any("stopIdleMs" in text for text in said), said
        # Control is free for whoever asks for it.
        s.attach(rpc=holder, control=True)


def test_versions_are_those_of_the_agent():
    version = subprocess.run([BIN / "gpu-agentctl", "--version"], text=True, capture_output=True, check=True,
                             timeout=20).stdout.split()[-1]
    for package in ("editors/vscode", "clients/typescript"):
        assert json.loads((ROOT / package / "package.json").read_text())["version"] == version, package
    assert f'\nversion = "{version}"\n' in (ROOT / "clients/python/pyproject.toml").read_text()
