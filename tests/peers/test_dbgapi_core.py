#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""AMD's debugger library opens the cores that we write, and finds in them what was planted."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from harness import BIN, LONG_STOP, ROOT, STOP_MS, Scene, need_root, status, unsanitized, wait_until
from largecode import enlarge
from peers import build_dbgapi, read_core

CODE = ROOT / "tests/data/codeobj"
TEXT = 0x1800  # of the one for gfx90a
PARTIAL = 8
# Code object, kernel, lanes of a wave.
KINDS = {"gfx90a": ("spin-gfx90a.co", "scale", 64), "gfx1030": ("spin-gfx1030-z.co", "scale", 32)}


def dump(s, core, *argv):
    """A machine may stand still for longer than queues do without being asked."""
    return s.ctl("dump", s.app.pid, LONG_STOP, "-o", core, *argv)


def planted(gfx, extra):
    code, kernel, lanes = KINDS[gfx]
    argv = build_dbgapi("dbgapi_core")
    script = f"runtime ttmp; load {CODE / code}; queues 2; dispatch 0 {kernel} 4096 64; dispatch 1 {kernel} 4096 64"
    with Scene(app=f"{script}; spin", gpus=gfx, app_program=unsanitized("gpu-agent-simapp")) as s:
        s.session = s.attach()
        objects = s.rpc.call("code.list", session=s.session)["objects"]
        pc = int(objects[0]["address"], 16) & ~3
        queue = [q["id"] for q in s.target_state()["queues"]][1]
        s.control(f"waves {s.app.pid} {queue} halted 6 {pc:#x} group=2 vgprs=16 s3=0xdeadbeef v2=0x11111111 "
                  f"v2.5=0x22222222")
        ours = s.rpc.call("gpu.snapshot", session=s.session, waves=True, max_stop_ms=STOP_MS)["waves"]
        core = s.directory / "core"
        run = dump(s, core, *extra)
        if "TiB" in run.stderr:
            raise SkipTest("the program's address space is larger than any disk: a sanitizer's shadow")
        assert run.returncode == 0, run.stderr
        # The program is gone when the core is opened.
        s.app.popen.kill()
        s.app.popen.wait()
        got = read_core(argv, core, "s3", "v2")
        want = sorted((str(w["ref"]["queue_id"]), ",".join(map(str, w["ref"]["workgroup"])),
                       str(w["ref"]["wave_in_group"]), "pc", w["pc"]) for w in ours)
        assert sorted(map(tuple, got["wave"])) == want, (got["wave"], want)
        assert len(got["queue"]) == 2 and got["objects"] == [["1"]], got
        scalars = [v for name, v in got["register"] if name == "s3"]
        vectors = [v for name, v in got["register"] if name == "v2"]
        vector = "".join("22222222" if lane == 5 else "11111111" for lane in range(lanes))
        assert scalars == ["efbeadde"] * 6 and vectors == [vector] * 6, got["register"]


@pytest.mark.parametrize("gfx", KINDS)
def test_light_core(gfx):
    planted(gfx, ())


def test_full_core():
    planted("gfx90a", ("--full",))


def large_core(*extra):
    """Of code that is too large for a core that is not full, there is what the waves are at."""
    argv = build_dbgapi("dbgapi_core")
    code, kernel, _ = KINDS["gfx90a"]
    with tempfile.TemporaryDirectory(prefix="gpu-agent-test.") as d:
        path = enlarge(CODE / code, pathlib.Path(d) / "large.co", 80 << 20)
        script = f"runtime ttmp; load {path}; queues 1; dispatch 0 {kernel} 4096 64"
        os.chmod(d, 0o755)
        with Scene(app=f"{script}; spin", gpus="gfx90a", **({"app_user": 65534, "user_mode": False} if extra else {})) as s:
            s.session = s.attach()
            bias = int(s.rpc.call("code.list", session=s.session)["objects"][0]["bias"], 16)
            s.control(f"waves {s.app.pid} 0 spin 6 {bias + TEXT:#x} group=2 vgprs=16 s3=0xdeadbeef")
            core = s.directory / "core"
            run = dump(s, core, *extra)
            assert run.returncode == PARTIAL and "of its 80 MiB" in run.stderr, (run.returncode, run.stderr)
            assert os.path.getsize(core) < 64 << 20, os.path.getsize(core)
            got = read_core(argv, core, "s3")
            assert len(got.get("wave", ())) == 6 and [v for _, v in got["register"]] == ["efbeadde"] * 6, got
            assert got["objects"] == [["1"]] and got["code"] == [["4"]] * 6, got


def test_light_core_of_a_large_code_object():
    large_core()


def test_unified_core_of_a_large_code_object():
    need_root()
    large_core("--unified")


def test_light_core_without_a_list_of_code_objects():
    """Waves are there; what their code is called is not, and that was told."""
    argv = build_dbgapi("dbgapi_core")
    code, kernel, _ = KINDS["gfx90a"]
    for state in ("busy", "gone"):
        script = f"runtime ttmp; load {CODE / code}; queues 1; dispatch 0 {kernel} 4096 64; " \
                 f"waves 0 spin 6 {kernel} group=2 vgprs=16 s3=0xdeadbeef; list {state}"
        with Scene(app=f"{script}; spin", gpus="gfx90a") as s:
            core = s.directory / "core"
            run = dump(s, core)
            assert run.returncode == PARTIAL and "code objects: " in run.stderr, (run.returncode, run.stderr)
            got = read_core(argv, core, "s3")
            assert [v for _, v in got["register"]] == ["efbeadde"] * 6 and got["code"] == [["4"]] * 6, got
            assert got["objects"] == [["0"]], got


def test_core_of_the_demo():
    """The first core that anybody writes: of the scene that scripts/demo makes."""
    argv = build_dbgapi("dbgapi_core")
    with tempfile.TemporaryDirectory(prefix="gpu-agent-test.") as d:
        core = pathlib.Path(d) / "core"
        run = subprocess.run([ROOT / "scripts/demo", "dump", "PID", LONG_STOP, "-o", core], capture_output=True, text=True,
                             timeout=120, stdin=subprocess.DEVNULL, env={**os.environ, "BIN": str(BIN), "TMPDIR": d})
        assert run.returncode == 0, run.stderr
        got = read_core(argv, core)
        assert len(got["wave"]) == len(got["code"]) == 3 + 125 + 384 + 512 + 64 and got["objects"] == [["1"]], got


def gdb(commands, *argv):
    """What it prints; it makes no use of anything but the files here."""
    if not shutil.which("gdb"):
        raise SkipTest("no gdb")
    return subprocess.run(["gdb", "-nx", "-batch", *(w for c in commands for w in ("-ex", c)), *map(str, argv)],
                          capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                          env={**os.environ, "DEBUGINFOD_URLS": ""}).stdout


def test_unified_core():
    """AMD's library opens its half; gdb the other, with every thread where it stood."""
    need_root()
    argv = build_dbgapi("dbgapi_core")
    script = f"runtime ttmp; load {CODE / KINDS['gfx90a'][0]}; queues 2; dispatch 0 scale 4096 64; dispatch 1 scale 4096 64"
    with Scene(app=f"{script}; threads 5; spin", gpus="gfx90a", app_user=65534, user_mode=False) as s:
        queue = [q["id"] for q in s.target_state()["queues"]][1]
        s.control(f"waves {s.app.pid} {queue} halted 6 0x7f0000001000 group=2 vgprs=16 s3=0xdeadbeef")
        core = s.directory / "core"
        # A thread that gets no processor for too long is left out, and that is told.
        wait_until(lambda: dump(s, core, "--unified").returncode == 0, "a whole core", 60)
        got = read_core(argv, core, "s3")
        assert len(got.get("wave", ())) == 6 and [v for _, v in got["register"]] == ["efbeadde"] * 6, got
        program = os.readlink(f"/proc/{s.app.pid}/exe")
        commands = ("info threads", "thread apply all -q p/x $sp", "thread apply all -q p/x $pc", "info sharedlibrary")
        text = gdb(commands, program, core)
        tids = sorted(map(int, os.listdir(f"/proc/{s.app.pid}/task")))
        assert sorted(map(int, re.findall(r"^[ *]+\d+ +(?:LWP|Thread 0x[0-9a-f]+ \(LWP) (\d+)", text, re.M))) == tids, text
        assert "libc.so" in text, text
        values = [int(v, 16) for v in re.findall(r"= (0x[0-9a-f]+)$", text, re.M)]
        assert len(values) == 2 * len(tids), text
        got = set(zip(values[:len(tids)], values[len(tids):]))

        def sleeping():
            """All but the main thread sleep between two beats, always at the same place."""
            for tid in tids:
                words = pathlib.Path(f"/proc/{s.app.pid}/task/{tid}/syscall").read_text().split()
                if tid != s.app.pid and len(words) > 2 and (int(words[-2], 16), int(words[-1], 16)) not in got:
                    return False
            return True
        wait_until(sleeping, "threads are where gdb sees them")


def registers_by_thread(text):
    found, registers = {}, {}
    for line in text.splitlines():
        thread = re.match(r"Thread \d+ .*LWP (\d+)", line)
        register = re.match(r"(\w+) +(0x[0-9a-f]+) ", line)
        if thread:
            registers = found.setdefault(int(thread[1]), {})
        elif register:
            registers[register[1]] = register[2]
    return found


def test_unified_core_has_all_registers():
    """Of a stopped program, gdb finds in the core what it finds in the process."""
    need_root()
    commands = ("thread apply all info registers", "thread apply all p $xmm0.uint128", "thread apply all p $mxcsr")
    with Scene(app="runtime on; queues 1; threads 3; spin", gpus="gfx90a", app_user=65534, user_mode=False) as s:
        os.kill(s.app.pid, signal.SIGSTOP)
        wait_until(lambda: all(status(int(t))["State"][0] == "T" for t in os.listdir(f"/proc/{s.app.pid}/task")), "stopped")
        core = s.directory / "core"
        wait_until(lambda: dump(s, core, "--unified").returncode == 0, "a whole core", 60)
        program = os.readlink(f"/proc/{s.app.pid}/exe")
        dead = gdb(commands, program, core)
        live = gdb(commands, "-p", s.app.pid)
        os.kill(s.app.pid, signal.SIGCONT)
        got, want = registers_by_thread(dead), registers_by_thread(live)
        assert sorted(got) == sorted(want) == sorted(map(int, os.listdir(f"/proc/{s.app.pid}/task"))), (got, want)
        for tid, registers in want.items():
            # Debian 12's gdb knows only Intel's layout of extended registers: on AMD it leaves out fs_base in any core.
            assert {"rax", "rip", "rsp", "r15", "eflags", "cs"} <= set(got[tid]), dead
            assert got[tid] == {name: registers[name] for name in got[tid]}, (tid, got[tid], registers)
        values = [re.findall(r"^\$\d+ = (.*)$", text, re.M) for text in (dead, live)]
        assert values[0] == values[1] and len(values[0]) == 2 * len(want), values
