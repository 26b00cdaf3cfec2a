#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""AMD's own runtime on the simulated device, and our agent on its processes."""
import collections
import concurrent.futures
import contextlib
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import sys
import threading
import time
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from harness import BIN, EXCEPTIONS, LONG_STOP, STOP_MS, status, wait_until
from peers import build_dbgapi, read_core
from rocm import RocmScene, hip, hip_command, hsa, object_of, rccl, run_by, trees

SNAPSHOTS, DUMPS = 100, 20
SYS_IOCTL = "16"
AQL = 2
Fault = collections.namedtuple("Fault", "name line words")
# What the device does, and what the runtime says of it.
FAULTS = (Fault("device_memory_violation", "fault {pid} #0 0xdead000 not-present",
                "Memory access fault by GPU node-1 .* on address FAULT. Reason: Page not present"),
          Fault("wave_illegal_instruction", "raise {pid} queue {queue} %d" % EXCEPTIONS["wave_illegal_instruction"],
                "illegal instruction|ILLEGAL_INSTRUCTION"))
LAUNCHED_WAVES = {"gfx90a": 4 * 256 // 64, "gfx1030": 4 * 256 // 32}


def rocminfo(s, allowed=None):
    """What it prints; strace has seen each of its calls to the device, and none of them failed but the one that may."""
    if not shutil.which("strace"):
        raise SkipTest("no strace")
    roots = trees()
    calls = s.directory / "calls"
    # What products are called is in a file of theirs, which this machine may have an older one of.
    program = s.run("rocminfo", ["strace", "-f", "-yy", "-e", "trace=ioctl", "-o", calls,
                                 *run_by(roots, roots[0] / "usr/bin/rocminfo")],
                    env={"AMDGPU_ASIC_ID_TABLE_PATH": str(roots[0] / "usr/share/libdrm/amdgpu.ids")})
    assert program.popen.wait(30) == 0, program.out() + program.err()
    asked = [line for line in calls.read_text().splitlines() if "</dev/kfd" in line or "</dev/dri/" in line]
    failed = [line for line in asked if " = -1 " in line and not (allowed and allowed in line)]
    assert asked and not failed, failed
    return program.out()


def test_rocminfo_lists_eight_gpus():
    trees()
    with RocmScene(",".join(["gfx942"] * 8), start_agent=False) as s:
        text = rocminfo(s)
    assert text.count("  Name:                    gfx942") == 8, text
    assert text.count("amdgcn-amd-amdhsa--gfx942") == 8, text
    assert len(re.findall(r"Marketing Name: +AMD Instinct MI300X *$", text, re.M)) == 8, text


@pytest.mark.parametrize("gfx,name,units,lanes", [
    ("gfx906", "AMD Instinct MI60 / MI50", 60, 64), ("gfx90a", "AMD Instinct MI210", 104, 64),
    ("gfx1030", "AMD Radeon RX 6900 XT", 80, 32), ("gfx1100", "AMD Radeon RX 7900 XTX", 96, 32)])
def test_rocminfo_of_each_generation(gfx, name, units, lanes):
    trees()
    with RocmScene(gfx, start_agent=False) as s:
        text = rocminfo(s).split("  Name:                    " + gfx)[1]
    for key, value in (("Marketing Name", name), ("Compute Unit", units), ("Wavefront Size", lanes)):
        assert re.search(rf"^ +{key}: +{value}(\(| *$)", text, re.M), (key, value, text)


def test_rocminfo_without_a_gpu():
    trees()
    with RocmScene("none", start_agent=False) as s:
        # So do real drivers without one (tests/conformance/measured.c).
        text = rocminfo(s, allowed="SET_XNACK_MODE")
    assert "Device Type:             CPU" in text and "Device Type:             GPU" not in text, text


@pytest.mark.parametrize("copies", ["1", "0"])
@pytest.mark.parametrize("interrupts", ["1", "0"])
def test_copies_come_back_and_memory_is_given_back(copies, interrupts):
    """By the copy engines, and by the runtime's kernels; waited for by events, and by looking at memory."""
    trees()
    with RocmScene("gfx90a", start_agent=False) as s:
        program = hip(s, "gfx90a", env={"HSA_ENABLE_SDMA": copies, "HSA_ENABLE_INTERRUPT": interrupts})
        assert s.step(program, "copy", "ok copy").endswith(" wrong 0")
        assert s.step(program, "launch", "ok launch")
        assert any(q["type"] == 1 for q in s.queues(program)) == (copies == "1")
        # Killed with its memory mapped: the simulator has none of it left.
        assert s.state()["memory_touched"] > 0
        program.popen.kill()
        wait_until(lambda: s.state()["memory_touched"] == 0, "memory is given back")


@pytest.mark.parametrize("interrupts", ["1", "0"])
def test_kernels_end(interrupts):
    """Those who wait for it sleep in the device, or look at memory."""
    trees()
    with RocmScene("gfx942", start_agent=False) as s:
        program = hsa(s, "gfx942", env={"HSA_ENABLE_INTERRUPT": interrupts})
        s.step(program, "run 200", "ok run")
        s.control(f"dispatch {program.pid} hold")
        s.step(program, "launch", "launched")
        wait_until(lambda: [q for q in s.queues(program) if q["held"]], "the dispatch is held")

        def waits_in_the_device():
            return pathlib.Path(f"/proc/{program.pid}/syscall").read_text().split()[0] == SYS_IOCTL

        if interrupts == "1":
            wait_until(waits_in_the_device, "it waits for an event")
        else:
            assert not any(waits_in_the_device() for _ in range(20))
        s.control(f"dispatch {program.pid} complete")
        wait_until(lambda: "ok launch" in program.out(), "the kernel ends")
        program.popen.stdin.close()
        assert program.popen.wait(30) == 0, program.err()


def look_often(s, pid, snapshots, dumps):
    session = s.attach(pid)
    for _ in range(snapshots):
        assert s.rpc.call("gpu.snapshot", session=session, max_stop_ms=STOP_MS)["queues"]
    s.rpc.call("session.detach", session=session)
    for i in range(dumps):
        run = s.ctl("dump", pid, LONG_STOP, "-o", s.directory / f"core{i}")
        assert run.returncode == 0, run.stderr


def same_under_looks(s, program, step, snapshots, dumps):
    """What a step printed before anybody looked, it prints as often as it is made beside all these looks."""
    alone, rounds = step(), 0
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        looks = pool.submit(look_often, s, program.pid, snapshots, dumps)
        while not looks.done():
            assert step() == alone
            rounds += 1
        looks.result()
    assert rounds > 1 and step() == alone, rounds
    return alone


def test_snapshots_and_dumps_change_nothing():
    trees()
    with RocmScene("gfx90a") as s:
        program = hip(s, "gfx90a")
        assert same_under_looks(s, program, lambda: s.step(program, "copy", "ok copy"), SNAPSHOTS, DUMPS).endswith(" wrong 0")


def test_snapshots_and_dumps_of_a_collective_change_nothing():
    roots = trees("rccl")
    with RocmScene("gfx90a,gfx90a") as s:
        program = rccl(s, roots)
        same_under_looks(s, program, lambda: s.step(program, "go", "ok"), SNAPSHOTS, DUMPS)


@pytest.mark.parametrize("gfx", LAUNCHED_WAVES)
@pytest.mark.parametrize("debug", ["0", "1"])
def test_a_kernel_that_does_not_end_is_seen(gfx, debug):
    """With and without asking for waves that carry their dispatch, which only gfx90a of these needs."""
    trees()
    with RocmScene(gfx) as s:
        program = hip(s, gfx, env={"HSA_ENABLE_DEBUG": debug})
        s.control(f"dispatch {program.pid} hold")
        s.step(program, "launch", "launched")
        held = wait_until(lambda: [q for q in s.queues(program) if q["held"]], "the dispatch is held")
        assert len(held) == 1 and held[0]["waves"] == LAUNCHED_WAVES[gfx], held
        session = s.attach(program.pid)
        shot = s.rpc.call("gpu.snapshot", session=session, max_stop_ms=STOP_MS)
        assert shot["complete"], shot["missing"]
        assert [(g["kernel"]["name"], g["waves"]) for g in shot["groups"]] == [("scale", LAUNCHED_WAVES[gfx])], shot["groups"]
        assert ("dispatch" in shot["groups"][0]["representative"]) == (debug == "1" or gfx != "gfx90a"), shot["groups"]
        s.rpc.call("session.detach", session=session)
        run = s.ctl("snapshot", program.pid, "--again", "700")
        assert run.returncode == 10 and "scale" in run.stdout, run.stdout + run.stderr
        s.control(f"dispatch {program.pid} complete")
        wait_until(lambda: "ok launch" in program.out(), "the kernel ends")
        assert s.step(program, "copy", "ok copy").endswith(" wrong 0")


def test_errors_take_the_runtime_s_own_way():
    """Without a debugger the runtime is told, and aborts."""
    trees()
    with RocmScene("gfx90a", start_agent=False) as s:
        program = hip(s, "gfx90a")
        s.control(f"fault {program.pid} #0 0xdead000 not-present")
        assert program.popen.wait(30) == -signal.SIGABRT
        assert "Memory access fault by GPU node-1" in program.out() + program.err(), program.err()


def last_words(program):
    """What a program says when a fault ends it, without what differs from one run to the next."""
    assert program.popen.wait(30) == -signal.SIGABRT, program.err()
    said = program.err() + "".join(line + "\n" for line in program.out().splitlines() if line != "ready")
    said = re.sub(r"0x[0-9a-f]{6,}", "ADDRESS", said.replace("0xdead000", "FAULT"))
    # It lists memory by address, which differs: lines and blocks that stand for one have no order of their own.
    said = re.sub(r"(?:^ADDRESS, .*\n)+", lambda m: "".join(sorted(m[0].splitlines(True))), said, flags=re.M)
    block = r"^PtrInfo:\n(?:\t.*\n)+"
    return re.sub(rf"(?:{block})+", lambda m: "".join(sorted(re.findall(block, m[0], re.M))), said, flags=re.M)


def last_words_observed(s, how, fault):
    """The same, while somebody watches: by the command, by a session that holds the fault back for a while, or nobody."""
    program = hip(s, "gfx90a")
    s.step(program, "launch", "ok launch")
    queue = next(q["id"] for q in s.queues(program) if q["type"] == AQL)
    if how == "events":
        s.start("events", [BIN / "gpu-agentctl", "--socket", s.socket, "events", program.pid])
    elif how == "held":
        session = s.attach(program.pid, control=True)
        s.rpc.call("exception.subscribe", session=session, exceptions=[fault.name], hold=True)
    if how != "nobody":
        wait_until(lambda: listens(s, program, fault.name), "somebody listens")
    s.control(fault.line.format(pid=program.pid, queue=queue))
    if how == "held":
        assert s.rpc.notification("exception.raised")["held"]
        time.sleep(0.3)
        assert program.popen.poll() is None, "it was told"
        s.rpc.call("session.detach", session=session)
    return last_words(program)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_runtime_s_last_words_are_its_own(fault):
    """Word for word those that it has when nobody watches."""
    trees()
    with RocmScene("gfx90a") as s:
        alone = last_words_observed(s, "nobody", fault)
        assert re.search(fault.words, alone), alone
        for how in ("events", "held"):
            assert last_words_observed(s, how, fault) == alone


@contextlib.contextmanager
def stalled(store):
    """Nothing can be stored: its own lock is taken."""
    store.mkdir(0o700, exist_ok=True)
    fd = os.open(store, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def listens(s, program, exception="device_memory_violation"):
    process = next(p for p in s.state()["processes"] if p["pid"] == program.pid)
    return process["debugged"] and int(process["enabled_mask"], 16) >> EXCEPTIONS[exception] - 1 & 1


def test_a_rule_has_the_core_before_the_runtime_aborts():
    """And what it loaded is in it, when its file is gone."""
    trees()
    reader = build_dbgapi("dbgapi_core")
    with RocmScene("gfx90a", start_agent=False) as s:
        conf = s.directory / "rules.conf"
        conf.write_text("[rule all]\ndevice = amd\nrate_limit = none\ndeduplicate = none\nkeep = light\nhold = 5m\n")
        s.start_agentd("--config", conf)
        code = pathlib.Path(shutil.copy(object_of("gfx90a"), s.directory))
        program = hip(s, "gfx90a", code=code, env={"HSA_ENABLE_DEBUG": "1"})
        s.control(f"dispatch {program.pid} hold")
        s.step(program, "launch", "launched")
        wait_until(lambda: [q for q in s.queues(program) if q["held"]], "the dispatch is held")
        wait_until(lambda: listens(s, program), "the rule listens")
        with stalled(s.cores):
            s.control(f"fault {program.pid} #0 0xdead000 not-present")
            wait_until(lambda: s.rpc.call("agent.status")["rules"][0]["exceptions"], "the rule has the fault")
            time.sleep(1)
            assert program.popen.poll() is None, "it did not wait for its core"
        assert program.popen.wait(30) == -signal.SIGABRT
        assert "Memory access fault by GPU node-1" in program.out() + program.err(), program.err()
        code.unlink()
        # The store has all of it, and may still be writing its end.
        record = wait_until(lambda: [r for r in s.rpc.call("cores.list")["records"]
                                     if r["pid"] == program.pid and r["body"] == "present"], "its core is stored")[0]
        assert record["exception"] == "device_memory_violation", record
        core = s.directory / "core"
        run = s.ctl("cores", "export", record["record"], "-o", core)
        assert run.returncode == 0, run.stderr
        seen = read_core(reader, core)
        assert len(seen["wave"]) == LAUNCHED_WAVES["gfx90a"] and seen["code"] == [["4"]] * len(seen["wave"]), seen
        analyzed = json.loads(s.ctl("analyze", core, "-j").stdout)
        group, = analyzed["groups"]
        assert group["kernel"]["name"] == "scale" and group["frames"][0]["file"], group


def test_the_simulator_dies():
    trees()
    words = []
    for start_agent in (False, True):
        with RocmScene("gfx90a", start_agent=start_agent) as s:
            program = hsa(s, "gfx90a")
            session = s.attach(program.pid) if start_agent else None
            s.sim.popen.kill()
            program.popen.stdin.close()
            # Its own assertions end it; it hangs nowhere.
            assert program.popen.wait(30) == -signal.SIGABRT, program.err()
            words.append(last_words(program))
            if session:
                note = s.rpc.notification("session.ended")
                assert note["session"] == session, note
    assert words[0] == words[1] and "FreeKfdMemory" in words[0], words


def test_a_program_dies_with_a_suspended_queue():
    trees()
    with RocmScene("gfx90a") as s:
        program = hip(s, "gfx90a")
        assert s.step(program, "copy", "ok copy").endswith(" wrong 0")
        session = s.attach(program.pid, control=True)
        s.rpc.call("gpu.suspend", session=session, lease_ms=60000)
        assert all(q["suspended"] for q in s.queues(program)) and s.state()["memory_touched"] > 0
        program.popen.kill()
        wait_until(lambda: not s.state()["processes"] and s.state()["memory_touched"] == 0, "memory is given back")
        assert s.rpc.notification("session.ended") == {"session": session, "pid": program.pid, "reason": "exited"}


def test_fork_and_exec_while_attached():
    roots = trees()
    with RocmScene("gfx90a") as s:
        program = hip(s, "gfx90a")
        alone = s.step(program, "copy", "ok copy")
        session = s.attach(program.pid)
        child = int(s.step(program, "fork", "ok fork").split()[-1])
        # It has what its parent has open, and nothing on the GPU.
        assert child not in [p["pid"] for p in s.state()["processes"]]
        error = s.rpc.error("session.attach", pid=child)
        assert error.name == "not_debuggable" and "no GPU context" in error.message, error
        assert s.rpc.call("gpu.snapshot", session=session, max_stop_ms=STOP_MS)["queues"]
        assert s.step(program, "copy", "ok copy") == alone
        # The child lives on, with the device open and all that was mapped; no memory of the GPU is kept for it.
        command = hip_command("gfx90a", roots)
        s.step(program, "exec " + " ".join(map(str, command)), "ready")
        note = s.rpc.notification("session.ended")
        assert note["session"] == session and note["reason"] == "exec", note
        wait_until(lambda: status(program.pid)["TracerPid"] == "0", "ptrace released")
        session = s.attach(program.pid)
        assert s.step(program, "copy", "ok copy") == alone
        assert s.rpc.call("gpu.snapshot", session=session, max_stop_ms=STOP_MS)["queues"]
        program.popen.kill()
        wait_until(lambda: s.state()["memory_touched"] == 0, "memory is given back")
        os.kill(child, signal.SIGKILL)


def test_attached_while_the_runtime_starts():
    roots = trees()
    with RocmScene("gfx90a") as s:
        s.control("block runtime")
        program = s.run("hip", hip_command("gfx90a", roots))
        wait_until(lambda: any(c["wait"] == "block" for c in s.state()["pending"]), "it waits in RUNTIME_ENABLE")
        attached = []
        attacher = threading.Thread(target=lambda: attached.append(s.attach(program.pid)))
        attacher.start()
        # The debugger's first operation waits for the runtime's, as it does for the lock of a real process.
        wait_until(lambda: any(c["wait"] == "turn" for c in s.state()["pending"]), "the debugger waits for it")
        s.control("release runtime")
        attacher.join()
        session, = attached
        program.wait_line(words="ready")
        assert s.step(program, "copy", "ok copy").endswith(" wrong 0")
        assert s.rpc.call("gpu.snapshot", session=session, max_stop_ms=STOP_MS)["queues"]


def test_rccl_on_two_gpus_of_which_one_hangs():
    roots = trees("rccl")
    with RocmScene("gfx90a,gfx90a") as s:
        program = rccl(s, roots)
        s.control(f"dispatch {program.pid} hold #1")
        s.step(program, "go", "started")
        held = wait_until(lambda: [q for q in s.queues(program) if q["held"]], "the dispatch is held")
        gpus = s.state()["gpus"]
        assert [q["gpu_id"] for q in held] == [gpus[1]["gpu_id"]], held
        run = s.ctl("snapshot", program.pid, "--again", "700", patience=120)
        assert run.returncode == 10 and "HUNG" in run.stdout, run.stdout + run.stderr
        assert "ncclKernel_" in run.stdout and "sendrecv.cpp:" in run.stdout and "all on GPU 1" in run.stdout, run.stdout
        # Its code object has 46 MiB of debug information.
        assert "NOT COMPLETE" not in run.stdout and "missing" not in run.stdout, run.stdout
        assert "ok" not in program.out()
        s.control(f"dispatch {program.pid} complete")
        wait_until(lambda: "ok" in program.out(), "both GPUs are done")
        program.popen.stdin.close()
        assert program.popen.wait(30) == 0
