#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""AMD's own debugger library on the simulated device: does the simulator pass for a real one?"""
import os
import struct
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from dbgapi import Probe, compare_devices, compare_queues
from harness import ROOT, STOP_MS, Scene, status, wait_until

HALT = 1
CODE = ROOT / "tests/data/codeobj"


def our_view(s):
    """What our agent says, after it has let go again."""
    session = s.attach()
    snapshot = s.rpc.call("gpu.snapshot", session=session, max_stop_ms=STOP_MS)
    assert s.rpc.call("session.detach", session=session) == {"ended": True}
    assert snapshot["complete"] and not s.target_state()["enabled"], snapshot
    return snapshot


def look(gpus, kernel="1.17"):
    """Our agent, then the library in every way it has, then our agent again."""
    with Scene(app="runtime ttmp; queues 4; spin", gpus=gpus, sim=("--kernel", kernel)) as s:
        ours = our_view(s)
        probe = Probe(s, s.app.pid)
        lines = probe.step("attach")
        assert "runtime 1" in lines and any(line.startswith("breakpoint 0x") for line in lines), lines
        assert s.target_state()["enabled"] and int(status(s.app.pid)["TracerPid"]) == probe.process.pid
        compare_devices(probe.step("devices"), ours)
        compare_queues(probe.step("queues"), ours)
        assert s.rpc.error("session.attach", pid=s.app.pid).name == "busy"

        probe.step("stop-waves")
        assert s.target_state()["launch_mode"] == HALT
        probe.step("run-waves")
        assert s.target_state()["launch_mode"] == 0
        probe.step("waves")
        assert s.target_state()["suspended_queues"] == 0
        probe.step("hold")
        assert s.target_state()["suspended_queues"] == 4, s.target_state()
        probe.step("release")
        assert s.target_state()["suspended_queues"] == 0
        probe.step("watch")
        assert s.target_state()["watchpoints"] >= 1
        probe.step("unwatch")
        assert s.target_state()["watchpoints"] == 0
        probe.step("detach")
        assert not s.target_state()["enabled"]
        probe.end()
        wait_until(lambda: status(s.app.pid)["TracerPid"] == "0", "ptrace released")
        again = our_view(s)
        assert again["devices"] == ours["devices"]
        assert [q["queue_id"] for q in again["queues"]] == [q["queue_id"] for q in ours["queues"]]


def test_gfx942_and_gfx1100():
    look("gfx942,gfx1100")


def test_gfx90a_and_gfx1201():
    look("gfx90a,gfx1201")


def test_gfx906():
    look("gfx906")


def test_gfx1030():
    look("gfx1030")


def test_oldest_kernel():
    look("gfx942", "1.13")


def test_newest_kernel():
    look("gfx942,gfx1100", "1.23")


def test_runtime_queues_and_objects_come_and_go():
    """Attached first: the program waits in its runtime call until the library has answered."""
    with Scene(app="listen", gpus="gfx1100") as s:
        probe = Probe(s, s.app.pid)
        assert probe.step("attach") == ["watchpoints 4"]

        def tell(line):
            s.app.popen.stdin.write(line.encode() + b"\n")
            s.app.popen.stdin.flush()

        def runtime_event(state):
            lines = []

            def seen():
                lines.extend(probe.step("events"))
                return f"runtime {state}" in lines

            wait_until(seen, f"runtime event {state}")

        tell("runtime ttmp")
        wait_until(lambda: s.target_state()["handshake_waiting"], "the program waits for its debugger")
        runtime_event(1)
        wait_until(lambda: not s.target_state()["handshake_waiting"], "the program goes on")
        assert probe.step("queues") == []
        tell("queues 2")
        wait_until(lambda: len(s.target_state()["queues"]) == 2, "queues")
        assert len(probe.step("queues")) == 2
        probe.step("hold")
        assert s.target_state()["suspended_queues"] == 2
        probe.step("release")
        tell("destroy 0")
        wait_until(lambda: len(s.target_state()["queues"]) == 1, "one queue")
        found = probe.step("queues")
        assert len(found) == 1 and found[0].startswith("queue 1 "), found
        tell("destroy 1")
        wait_until(lambda: s.target_state()["queues"] == [], "no queue")
        # At detach the library does not look for queues that are gone once the runtime is off.
        assert probe.step("queues") == []
        tell("runtime off")
        runtime_event(2)
        probe.step("detach")
        probe.end()
        assert our_view(s)["runtime"]["state"] == "disabled"


# Code object, kernel.
KERNELS = {"gfx90a": ("spin-gfx90a.co", "scale"), "gfx1030": ("spin-gfx1030-z.co", "scale"),
           # Nothing is executed: what is there need only look like instructions.
           "gfx942": ("spin-gfx90a.co", "scale"), "gfx1201": ("spin-gfx1030-z.co", "scale")}
BREAKPOINT, STEPPED, MEMORY_VIOLATION = 1 << 0, 1 << 2, 1 << 13
S_TRAP_1 = {"gfx90": 0xBF920001, "gfx94": 0xBF920001, "gfx10": 0xBF920001, "gfx11": 0xBF900001, "gfx12": 0xBF900001}


def population(gfx, kind, what=""):
    """A program with waves of that kind in a kernel."""
    code, kernel = KERNELS[gfx]
    return Scene(app=f"runtime ttmp; load {CODE / code}; queues 1; dispatch 0 {kernel} 4096 64; "
                     f"waves 0 {kind} 4 {kernel}+0x20 group=2 vgprs=16 s3=0xdeadbeef v2=0x11111111 {what}; spin", gpus=gfx)


def waves(probe):
    """{id: words behind "stopped", or None}, after what happened was taken."""
    probe.step("events")
    found = {}
    for line in probe.step("list"):
        _, number, state, *words = line.split()
        found[number] = (int(words[0], 16), int(words[2], 16), dict(zip(words[3::2], words[4::2]))) if state == "stopped" else None
    return found


def all_stopped(probe):
    return wait_until(lambda: (w := waves(probe)) and None not in w.values() and w, "all waves are stopped")


@pytest.mark.parametrize("gfx", KERNELS)
def test_waves_are_stopped_written_and_stepped(gfx):
    with population(gfx, "spin", "loop=8") as s:
        probe = Probe(s, s.app.pid)
        probe.step("attach")
        first = waves(probe)
        assert len(first) == 4 and not any(first.values()), first
        # The same waves at every look.
        assert waves(probe) == waves(probe) == first
        probe.step("stop")
        stopped = all_stopped(probe)
        assert stopped.keys() == first.keys() and {w[0] for w in stopped.values()} == {0}, stopped
        assert all(w[2]["s3"] == "efbeadde" for w in stopped.values()), stopped
        # They stay where they are.
        assert waves(probe) == stopped
        probe.step("write")
        written = waves(probe)
        assert all(set("".join(w[2].values())) == {"3"} and len(w[2]) == 2 for w in written.values()), written
        probe.step("step")
        stepped = all_stopped(probe)
        for i, (reasons, pc, registers) in stepped.items():
            assert (reasons, pc, registers) == (STEPPED, stopped[i][1] + 4, written[i][2]), (stopped[i], stepped[i])
        probe.step("resume")
        assert not any(waves(probe).values())
        probe.step("stop")
        again = all_stopped(probe)
        assert again.keys() == first.keys() and all(w[2] == written[i][2] for i, w in again.items()), again
        probe.step("detach")
        probe.end()
        s.session = s.attach()
        group = s.rpc.call("gpu.snapshot", session=s.session, max_stop_ms=STOP_MS)["groups"]
        assert {g["state"] for g in group} == {"running"}, group


@pytest.mark.parametrize("gfx", KERNELS)
def test_a_fault_is_the_same_at_the_second_look(gfx):
    with population(gfx, "memory") as s:
        probe = Probe(s, s.app.pid)
        probe.step("attach")
        first = all_stopped(probe)
        assert len(first) == 4 and all(w[0] & MEMORY_VIOLATION for w in first.values()), first
        assert waves(probe) == waves(probe) == first
        probe.step("detach")
        probe.end()


@pytest.mark.parametrize("gfx", KERNELS)
def test_waves_stop_at_a_trap(gfx):
    """What a debugger does to set a breakpoint, with waves on their way to it."""
    with population(gfx, "spin", "loop=8") as s:
        probe = Probe(s, s.app.pid)
        probe.step("attach")
        first = waves(probe)
        probe.step("stop")
        place = min(w[1] for w in all_stopped(probe).values()) + 4
        with open(f"/proc/{s.app.pid}/mem", "r+b", buffering=0) as memory:
            memory.seek(place)
            before = memory.read(4)
            memory.seek(place)
            memory.write(struct.pack("<I", S_TRAP_1[gfx[:5]]))
            probe.step("resume")
            met = all_stopped(probe)
            # Such an old runtime's handler leaves them behind it.
            assert met.keys() == first.keys() and {w[:2] for w in met.values()} == {(BREAKPOINT, place + 4)}, met
            memory.seek(place)
            memory.write(before)
        probe.step("resume")
        assert not any(waves(probe).values())
        probe.step("detach")
        probe.end()


def test_code_objects_are_listed():
    with Scene(app="runtime ttmp; object file:///tmp/one.co 0x1000; object memory://1#offset=0x10&size=4 0x7f0000000000; "
                   "queues 1; spin", gpus="gfx942") as s:
        probe = Probe(s, s.app.pid)
        probe.step("attach")
        found = sorted(probe.step("objects"))
        assert found == ["object 0x1000 file:///tmp/one.co",
                         "object 0x7f0000000000 memory://1#offset=0x10&size=4"], found
        probe.step("detach")
        probe.end()


def test_one_debugger_at_a_time():
    """Whoever comes second is refused, and the first one's session is not touched."""
    with Scene(gpus="gfx942") as s:
        session = s.attach()
        probe = Probe(s, s.app.pid)
        try:
            probe.step("attach")
        except AssertionError as refused:
            assert "error attach: ptrace" in str(refused), refused
        else:
            raise AssertionError("the library attached beside our agent")
        assert s.rpc.call("gpu.suspend", session=session)["suspended"] == 4
        assert s.rpc.call("gpu.resume", session=session)["resumed"] == 4
        s.rpc.call("session.detach", session=session)
        probe.step("attach")
        assert s.rpc.error("session.attach", pid=s.app.pid).name == "busy"
        probe.step("hold")
        # Killed while it holds the queues: the kernel, here the simulator, resumes them.
        probe.process.popen.kill()
        probe.process.popen.wait(20)
        wait_until(lambda: s.target_state()["suspended_queues"] == 0, "queues run again")
        assert len(our_view(s)["queues"]) == 4


def test_the_program_dies():
    with Scene(gpus="gfx942") as s:
        probe = Probe(s, s.app.pid)
        probe.step("attach")
        s.app.popen.kill()
        wait_until(lambda: status(s.app.pid)["State"][0] == "Z", "its tracer may ask for it")
        probe.step("detach")
        probe.end()
