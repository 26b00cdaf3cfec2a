#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/gpu-check rehearsed: the bundle, every step on the simulated GPU, what it says without a GPU, hung steps."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from harness import BIN, ROOT, CudaScene, need_root, status, wait_until

sys.dont_write_bytecode = True
import rows_measure
from engine import LOG_MAX, TRACE_MAX, Engine
from facts import find_nvcc
from programs import CARRIED, HARDWARE_KINDS, KERNELS, HardwareProgram, Lab

ROW = re.compile(r"^(.{34,}?) \| (.{8}) \| (PASS|FAIL|SKIP) \| +(\d+) \| (.*)$")


class Directory:
    """A temporary directory, and what is not to be left behind in it."""

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="gpu-check-test."))
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def rows_of(text):
    found = [m.groups() for m in map(ROW.match, text.splitlines()) if m]
    return [(step.strip(), program.strip(), result, detail) for step, program, result, _, detail in found]


@pytest.fixture(name="packed", scope="module")
def packed_once():
    """The bundle's archive, and nothing left where it was packed; to pack it takes longer than some of the tests."""
    for tool in ("patchelf", "strip"):
        if not shutil.which(tool):
            raise SkipTest(f"{tool} is not installed")
    with Directory() as d:
        subprocess.run([ROOT / "scripts/gpu-check", "pack", d / "bundle", "--build", BIN.parent, "--built"], check=True,
                       stdout=subprocess.DEVNULL)
        shutil.rmtree(d / "bundle")
        yield d / "bundle.tar.gz"


def check_bundle(bundle):
    """Nothing in it looks for libraries anywhere but in it and in the machine's C library."""
    for program in (bundle / "bin").iterdir():
        out = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        outside = [line for line in out.splitlines() if "=> /" in line and str(bundle) not in line]
        foreign = [line for line in outside if not re.search(r"lib(c|m|dl|rt|pthread|resolv)\.so|libcuda", line)]
        assert not foreign, (program.name, foreign)
    if b"__asan_init" not in (BIN / "gpu-agent-worker").read_bytes():
        assert sum(f.stat().st_size for f in bundle.rglob("*") if f.is_file()) < 40 << 20


def rehearse(bundle, log, release, seconds=240):
    done = subprocess.run([bundle / "scripts/gpu-check", "run", "--simulated", release, "--log", log, "--seconds", str(seconds)],
                          capture_output=True, text=True, check=False, cwd="/", stdin=subprocess.DEVNULL)
    rows = rows_of(done.stdout)
    last = done.stdout.splitlines()[-1]
    counts = [sum(r[2] == kind for r in rows) for kind in ("PASS", "FAIL", "SKIP")]
    assert last == f"{counts[0]} passed, {counts[1]} failed, {counts[2]} skipped", (last, done.stdout, done.stderr)
    assert done.returncode == (1 if counts[1] else 0), done.returncode
    failed = [r for r in rows if r[2] == "FAIL"]
    assert not failed, "\n".join([" | ".join(r) for r in failed] + [log.read_text()[-6000:]])
    return rows


# What a rehearsal cannot have.
REASONS = ("cuda-gdb is not installed", "cuda-gdb cannot attach to the simulator", "the simulated driver writes no cores",
           "there is no core of the driver", "the simulator has no CUDA runtime",
           "system calls cannot be watched here")


def assert_skipped(rows, *reasons):
    """Nothing else is: no kill that hit nobody, above all."""
    skipped = [r for r in rows if r[2] == "SKIP" and not r[3].startswith((*REASONS, *reasons))]
    assert not skipped, skipped


def test_rehearsal_from_the_bundle(packed):
    """Packed, unpacked elsewhere, run from there: every row passes, or is skipped for a reason that holds here."""
    need_root()
    with Directory() as d:
        shutil.unpack_archive(packed, d)
        check_bundle(d / "bundle")
        rows = rehearse(d / "bundle", d / "out/check.log", "12.4")
        assert sum(r[0].startswith("kill ") and r[2] == "PASS" for r in rows) >= 20, rows
        assert_skipped(rows, "this driver has no descriptor", "this release does not tell them")
        passed = {r[0] for r in rows if r[2] == "PASS"}
        for step in ("list", "doctor", "registers", "memory: global", "memory: shared", "memory: local", "suspend and resume",
                     "snapshot: kernel and lines", "inline chain", "events and snapshot on a fault", "second and third attach",
                     "attach before cuInit", "measure: a whole session", "measure: killed while suspended",
                     "variables of a thread, as planted", "expressions, as planted", "threads of a warp", "lanes at two places",
                     "our core, read by us"):
            assert step in passed, (step, sorted(passed))
        log, trace = (d / "out/check.log").read_text(), (d / "out/check.trace").read_text()
        assert len(log) <= LOG_MAX and len(trace) <= TRACE_MAX
        assert "simulated: yes: nothing here was seen on a GPU" in log
        for fact in ("events of a session: ", "cudbgResumeForAttachDetach", "slowest calls", "p50 of 10 rounds"):
            assert fact in log, fact
        assert '"call": "initialize"' in trace and "Sanitizer" not in trace and "runtime error" not in trace
        print(f"  {len(rows)} rows, {len(passed)} different ones pass, log {len(log) >> 10} KiB, trace {len(trace) >> 10} KiB")


def test_rehearsal_with_a_driver_that_has_the_descriptor(packed):
    need_root()
    with Directory() as d:
        shutil.unpack_archive(packed, d)
        rows = rehearse(d / "bundle", d / "check.log", "13.4")
        # This driver tells how many registers the kernel has (12.8 and later): ten, and there are seven predicates.
        assert next(r for r in rows if r[0] == "registers")[3].split(" of ")[1].startswith("17 vector"), rows
        assert ("measure: path fd", "spin", "PASS") in [r[:3] for r in rows], rows
        assert_skipped(rows, "this driver is asked through a descriptor")


def test_without_a_gpu_it_names_what_is_missing(packed):
    if pathlib.Path("/dev/nvidiactl").exists():
        raise SkipTest("this machine has an NVIDIA driver")
    with Directory() as d:
        shutil.unpack_archive(packed, d)
        done = subprocess.run([d / "bundle/scripts/gpu-check", "run", "--log", d / "check.log"], capture_output=True, text=True,
                              check=False, env={**os.environ, "NVCC": "/nonexistent", "PATH": "/usr/bin:/bin"})
        rows = {r[0]: r for r in rows_of(done.stdout)}
        assert done.returncode == 1 and "/dev/nvidiactl" in rows["driver"][3], done.stdout
        assert rows["everything else"][2] == "SKIP" and re.search(r"^\d+ passed, [1-9]\d* failed, ", done.stdout, re.M)
        assert not pathlib.Path("/dev/nvidiactl").exists()


def test_log_that_cannot_be_written_is_said_first(packed):
    with Directory() as d:
        shutil.unpack_archive(packed, d)
        began = time.monotonic()
        done = subprocess.run([d / "bundle/scripts/gpu-check", "run", "--log", d], capture_output=True, text=True, check=False)
        assert done.returncode == 1 and "--log" in done.stderr and "Traceback" not in done.stderr, done
        assert done.stdout == "" and time.monotonic() - began < 20
        # The disk may be full at the end only: then the log is on the screen.
        done = subprocess.run([sys.executable, "-c", FULL, ROOT / "tests/hardware", d / "e.log"], capture_output=True,
                              text=True, check=False, env={**os.environ, "TMPDIR": str(d)})
        assert done.returncode == 1 and "Traceback" not in done.stderr, done
        assert "=== FAIL broken" in done.stdout and done.stdout.splitlines()[-1] == "0 passed, 1 failed, 0 skipped", done.stdout


FULL = """
import os, sys
sys.path.insert(0, sys.argv[1])
from engine import Engine
e = Engine(8, sys.argv[2])
def broken(): raise AssertionError("why")
e.step("broken", "a", broken)
os.unlink(sys.argv[2]); os.mkdir(sys.argv[2])
sys.exit(e.finish())
"""


def test_no_bundle_is_said():
    with Directory() as d:
        done = subprocess.run([ROOT / "scripts/gpu-check", "run", "--bundle", d], capture_output=True, text=True, check=False)
        assert done.returncode == 1 and "gpu-check pack" in done.stderr, done


ENGINE = """
import sys, time
sys.path.insert(0, sys.argv[1])
from engine import Engine, Skipped
e = Engine(14, sys.argv[2])
e.context = lambda: "the daemon's last words"
def skip(): raise Skipped("not here")
def stubborn(): e.run("sh", "-c", "trap '' TERM INT; echo begun; while :; do sleep 60; done", seconds=3)
def deaf():
    while True:
        try:
            time.sleep(60)
        except BaseException:
            if time.monotonic() - began > 1: raise
e.step("fine", "a", lambda: "detail")
e.step("skipped", "a", skip)
e.step("hangs", "a", time.sleep, 60, seconds=0.3)
e.step("command hangs", "b", stubborn, seconds=20)
began = time.monotonic()
e.step("swallows its time-out", "b", deaf, seconds=0.2)
e.step("uses up the total", "b", time.sleep, 60, seconds=60)
e.step("has no time left", "b", time.sleep, 60)
e.section("long", "x" * (3 << 20))
for i in range(5): e.trace("t", "y" * (1 << 20))
sys.exit(e.finish())
"""


def test_hung_steps_are_ended_and_the_table_comes():
    with Directory() as d:
        began = time.monotonic()
        done = subprocess.run([sys.executable, "-c", ENGINE, ROOT / "tests/hardware", d / "e.log"], capture_output=True,
                              text=True, check=False, timeout=120, env={**os.environ, "TMPDIR": str(d)})
        rows = [(r[0], r[2]) for r in rows_of(done.stdout)]
        assert rows == [("fine", "PASS"), ("skipped", "SKIP"), ("hangs", "FAIL"), ("command hangs", "FAIL"),
                        ("swallows its time-out", "FAIL"), ("uses up the total", "FAIL"), ("has no time left", "SKIP")], done
        assert done.returncode == 1 and done.stdout.splitlines()[-1] == "1 passed, 4 failed, 2 skipped"
        assert time.monotonic() - began < 60
        log = (d / "e.log").read_text()
        assert len(log) <= LOG_MAX and "time is up, killed" in log and "begun" in log and "the daemon's last words" in log
        assert (d / "e.trace").stat().st_size == TRACE_MAX


class Simulated:
    """What a row of scripts/gpu-check works on: one simulated program, and gpu_check_measure from the build."""

    def __init__(self, directory):
        self.engine = Engine(60, directory / "row.log")
        self.lab = Lab(self.engine, "12.4")

    def __enter__(self):
        # Only a bundle has all programs in one directory.
        rows_measure.BIN = BIN.parent / "tests"
        self.lab.prepare()
        return self

    def __exit__(self, *_):
        self.lab.end()
        self.engine.retire()

    def killed_while_suspended(self, *wishes):
        """(result, detail, facts) of that row, after the simulator was told those."""
        p = self.lab.start("spin")
        for wish in wishes:
            self.lab.scene.control(wish, p.app)
        self.engine.step("killed while suspended", "spin", rows_measure.left_suspended, self, p)
        p.stop()
        _, _, result, _, detail = self.engine.rows[-1]
        return result, detail, dict(self.engine.facts)


def test_a_gpu_that_was_never_stopped_says_nothing_about_killed_debuggers():
    """Where attach or suspend fails the row fails, too: it has seen no debugger die with a GPU that stood still."""
    fact = "GPU of a debugger killed while it was suspended"
    with Directory() as d, Simulated(d) as s:
        result, detail, facts = s.killed_while_suspended("let-go on")
        assert result == "PASS" and facts[fact] == "goes on by itself", (result, detail, facts)
        # Only a new session lets it run.
        result, detail, facts = s.killed_while_suspended()
        assert result == "PASS" and facts[fact] == "stays suspended", (result, detail, facts)
    with Directory() as d, Simulated(d) as s:
        result, detail, facts = s.killed_while_suspended("attach 10")
        assert result == "FAIL" and "went on" not in detail and fact not in facts, (result, detail, facts)
        result, detail, facts = s.killed_while_suspended("attach 0", "fail 2 10")
        assert result == "FAIL" and "suspend" in detail and fact not in facts, (result, detail, facts)


class Here:
    """What HardwareProgram wants of a laboratory: programs of the CUDA runtime, and the one that needs none."""

    def __init__(self, scene, is_runtime):
        self.engine = Engine(60, scene.directory / "here.log")
        self.directory, self.is_runtime, self.programs = scene.directory, is_runtime, []

    def command(self, name, _debug, _runtime):
        if self.is_runtime:
            return [self.directory / name]
        return [BIN.parent / "tests/gpu_check_program", "--kernel", name, "--image", CARRIED / f"{name}-sm_90.cubin"]


def wait_beat(program):
    before = program.beats
    wait_until(lambda: program.beats > before, "heartbeat")


def wait_at_stages(scene, is_runtime):
    os.environ["LD_LIBRARY_PATH"] = str(scene.libraries)
    try:
        for stop_at in ("none", "loaded", "init"):
            here = Here(scene, is_runtime)
            p = HardwareProgram(here, "spin", stop_at=stop_at)
            try:
                assert {"stopped": stop_at, "pid": p.pid} in p.messages()
                maps = pathlib.Path(f"/proc/{p.pid}/maps").read_text()
                assert ("libcuda.so" in maps) == (stop_at != "none"), stop_at
                wait_beat(p)
                p.take_gap_ms()
                os.kill(p.pid, signal.SIGSTOP)
                wait_until(lambda: status(p.pid)["State"][0] == "T", "stopped")
                time.sleep(0.05)
                os.kill(p.pid, signal.SIGCONT)
                wait_beat(p)  # taken only once: between the reading and the zeroing a gap can be lost
                assert p.take_gap_ms() > 40
            finally:
                p.stop()
                here.engine.retire()
            assert p.popen.returncode == 0, p.popen.returncode
    finally:
        del os.environ["LD_LIBRARY_PATH"]


def test_the_program_without_a_runtime_waits_at_its_stages():
    with CudaScene(app=None, start_agent=False) as s:
        wait_at_stages(s, is_runtime=False)


def test_programs_for_the_gpu_compile_and_wait_at_their_stages():
    nvcc = find_nvcc()
    if not nvcc:
        raise SkipTest("nvcc is not installed: tests/hardware/*.cu were not compiled")
    with CudaScene(app=None, start_agent=False) as s:
        for name in KERNELS:
            subprocess.run([nvcc, "-O2", "-lineinfo", "-arch=sm_80", "-Xcompiler", "-Wall,-Werror",
                            ROOT / f"tests/hardware/{name}.cu", "-o", s.directory / name, "-ldl", "-lpthread"], check=True)
        wait_at_stages(s, is_runtime=True)


def test_marks_are_where_they_should_be():
    """Every kernel has its marked lines, and a mark stands on code."""
    for name in KERNELS:
        kind = HARDWARE_KINDS[name]
        assert all(kind.places) and (name != "fault" or len(kind.faults) == 1), name
        lines = (ROOT / f"tests/hardware/{name}.cu").read_text().splitlines()
        for n in kind.lines | kind.faults:
            assert re.search(r"[;)] //", lines[n - 1]), (name, n)
