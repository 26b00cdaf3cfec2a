#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""AMD's own runtime on the simulated device, and our agent on its processes."""
import os
import signal
import sys
import threading

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from harness import ROOT, STOP_MS, wait_until
from rocm import RocmScene, build, run_by, trees

CODE = ROOT / "tests/data/codeobj"
# A code object for each, with a kernel `scale`.
OBJECTS = {"gfx90a": "spin-gfx90a.co", "gfx1030": "spin-gfx1030-z.co"}
MIB = 16
LAUNCHED_WAVES = {"gfx90a": 4 * 256 // 64, "gfx1030": 4 * 256 // 32}


def hip(s, gfx, **kwargs):
    roots = trees()
    program = s.run("hip", [*build("rocm_hip", roots, "libamdhip64.so.5"), CODE / OBJECTS[gfx], "scale", MIB], **kwargs)
    program.wait_line(words="ready")
    return program


def rocminfo(s):
    roots = trees()
    program = s.run("rocminfo", run_by(roots, roots[0] / "usr/bin/rocminfo"))
    assert program.popen.wait(30) == 0, program.out() + program.err()
    return program.out()


def test_rocminfo_lists_eight_gpus():
    trees()
    with RocmScene(",".join(["gfx942"] * 8), start_agent=False) as s:
        text = rocminfo(s)
    assert text.count("  Name:                    gfx942") == 8, text
    assert text.count("amdgcn-amd-amdhsa--gfx942") == 8, text


def test_rocminfo_without_a_gpu():
    trees()
    with RocmScene("none", start_agent=False) as s:
        text = rocminfo(s)
    assert "Device Type:             CPU" in text and "Device Type:             GPU" not in text, text


@pytest.mark.parametrize("copies", ["1", "0"])
def test_copies_come_back_and_memory_is_given_back(copies):
    """By the copy engines, and by the runtime's kernels."""
    trees()
    with RocmScene("gfx90a", start_agent=False) as s:
        program = hip(s, "gfx90a", env={"HSA_ENABLE_SDMA": copies})
        assert s.step(program, "copy", "ok copy").endswith(" wrong 0")
        assert s.step(program, "launch", "ok launch")
        assert any(q["type"] == 1 for q in s.queues(program)) == (copies == "1")
        # Killed with its memory mapped: the simulator has none of it left.
        assert s.state()["memory_touched"] > 0
        program.popen.kill()
        wait_until(lambda: s.state()["memory_touched"] == 0, "memory is given back")


def test_snapshots_and_dumps_change_nothing():
    trees()
    with RocmScene("gfx90a") as s:
        program = hip(s, "gfx90a")
        alone = s.step(program, "copy", "ok copy")
        assert alone.endswith(" wrong 0")
        session = s.attach(program.pid)
        ended = threading.Event()

        def look():
            for _ in range(100):
                if not s.rpc.call("gpu.snapshot", session=session, max_stop_ms=STOP_MS)["queues"]:
                    return
            s.rpc.call("session.detach", session=session)
            for i in range(20):
                run = s.ctl("dump", program.pid, f"--max-stop={STOP_MS}ms", "-o", s.directory / f"core{i}")
                if run.returncode:
                    raise AssertionError(run.stderr)
            ended.set()

        looker = threading.Thread(target=look)
        looker.start()
        rounds = 0
        while looker.is_alive() or not rounds:
            assert s.step(program, "copy", "ok copy") == alone
            rounds += 1
        looker.join()
        assert ended.is_set() and rounds > 1, rounds
        assert s.step(program, "copy", "ok copy") == alone


@pytest.mark.parametrize("gfx", OBJECTS)
def test_a_kernel_that_does_not_end_is_seen(gfx):
    trees()
    with RocmScene(gfx) as s:
        program = hip(s, gfx)
        s.control(f"dispatch {program.pid} hold")
        s.step(program, "launch", "launched")
        held = wait_until(lambda: [q for q in s.queues(program) if q["held"]], "the dispatch is held")
        assert len(held) == 1 and held[0]["waves"] == LAUNCHED_WAVES[gfx], held
        session = s.attach(program.pid)
        shot = s.rpc.call("gpu.snapshot", session=session, max_stop_ms=STOP_MS)
        assert shot["complete"], shot["missing"]
        assert [(g["kernel"]["name"], g["waves"]) for g in shot["groups"]] == [("scale", LAUNCHED_WAVES[gfx])], shot["groups"]
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


def test_the_simulator_dies():
    trees()
    with RocmScene("gfx90a", start_agent=False) as s:
        program = hip(s, "gfx90a")
        s.sim.popen.kill()
        program.popen.stdin.close()
        # Its own assertions end it; it hangs nowhere.
        assert program.popen.wait(30) is not None


def test_attached_while_the_runtime_starts():
    roots = trees()
    with RocmScene("gfx90a") as s:
        s.control("block runtime")
        program = s.run("hip", [*build("rocm_hip", roots, "libamdhip64.so.5"), CODE / OBJECTS["gfx90a"], "scale", MIB])
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
        program = s.run("rccl", build("rocm_rccl", roots, "librccl.so.1", "libamdhip64.so.5"))
        program.wait_line(words="ready")
        s.control(f"dispatch {program.pid} hold #1")
        s.step(program, "go", "started")
        held = wait_until(lambda: [q for q in s.queues(program) if q["held"]], "the dispatch is held")
        gpus = s.state()["gpus"]
        assert [q["gpu_id"] for q in held] == [gpus[1]["gpu_id"]], held
        run = s.ctl("snapshot", program.pid, "--again", "700", patience=120)
        assert run.returncode in (8, 10) and "HUNG" in run.stdout, run.stdout + run.stderr
        assert "ncclKernel_" in run.stdout and "all on GPU 1" in run.stdout, run.stdout
        assert "ok\n" not in program.out()
        s.control(f"dispatch {program.pid} complete")
        wait_until(lambda: "ok\n" in program.out(), "both GPUs are done")
        assert program.popen.wait(30) == 0
