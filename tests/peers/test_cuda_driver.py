#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Our way into a CUDA process against NVIDIA's own user-space drivers 470, 535, 550 and 555, without a GPU.

Symbols, flags, calls in the other process, refusals, and the driver with the simulator's engine put
in its place.  Everything runs without CAP_MKNOD: libcuda would create /dev/nvidiactl.
"""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import BIN, CudaScene, status, wait_until
from peers import fetch

PROBE = BIN.parent / "tests/session_probe_plain"
UNIFIED = ("535", "550", "555")
VERSIONS = {"535": "12.2", "550": "12.4", "555": "12.5"}
UNPRIVILEGED = ["setpriv", "--bounding-set=-mknod"] if os.geteuid() == 0 else []
# A process that uses the driver: loads it, calls cuInit when told to, and waits.
TARGET = """
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
if "init" in sys.argv:
    print("cuInit", lib.cuInit(0))
print("ready", flush=True)
for line in sys.stdin:
    print("alive", flush=True)
"""


def driver(version):
    """Directory with the libraries of one driver."""
    if pathlib.Path("/dev/nvidiactl").exists():
        raise SkipTest("this machine has an NVIDIA driver of its own")
    if UNPRIVILEGED and not shutil.which("setpriv"):
        raise SkipTest("setpriv is needed to give CAP_MKNOD up")
    tree = fetch(f"cuda-driver-{version}")
    for found in tree.glob("usr/lib/x86_64-linux-gnu/nvidia/*/libcuda.so.1"):
        return found.parent
    raise SkipTest(f"no libcuda.so.1 in {tree}")


class Target:
    """A process with the driver loaded."""

    def __init__(self, libraries, *words, env=None):
        environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries), **(env or {})}
        self.libraries, self.environment = libraries, environment
        self.popen = subprocess.Popen([*UNPRIVILEGED, sys.executable, "-c", TARGET, str(libraries / "libcuda.so.1"), *words],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                      text=True, env=environment)
        self.pid = self.popen.pid
        self.said = []
        while not self.said or self.said[-1] != "ready":
            line = self.popen.stdout.readline()
            assert line, "the target ended"
            self.said.append(line.strip())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.popen.kill()
        self.popen.communicate()

    def probe(self, *words):
        command = [*UNPRIVILEGED, str(PROBE), str(self.pid), f"libcuda={self.libraries / 'libcuda.so.1'}", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False, env=self.environment,
                              stdin=subprocess.DEVNULL)
        assert done.returncode in (0, 1, -signal.SIGKILL), done
        return done.stdout

    def error(self, *words):
        """(outcome, CUDBGResult) of the failure, and all that was printed."""
        out = self.probe(*words)
        lines = [line.split() for line in out.splitlines() if line.startswith("error ")]
        assert lines, out
        return lines[0][1], int(lines[0][3]), out

    def symbols(self):
        """name -> (address, size, value)"""
        rows = [line.split()[1:] for line in self.probe("symbols").splitlines() if line.startswith("symbol ")]
        return {name: (int(address, 16), int(size), int(value)) for name, address, size, value in rows}

    def value(self, name):
        return self.symbols()[name][2]

    def assert_untouched(self, besides=()):
        assert status(self.pid)["TracerPid"] == "0"
        left = {name: row[2] for name, row in self.symbols().items() if row[1] == 4 and row[2]}
        # The first is the engine's own word; a debugger only reads it.
        for name in ("cudbgResumeForAttachDetach", *besides):
            left.pop(name, None)
        assert not left, left
        self.popen.stdin.write("x\n")
        self.popen.stdin.flush()
        assert self.popen.stdout.readline() == "alive\n"
        assert not pathlib.Path("/dev/nvidiactl").exists()

    def sockets(self):
        return [line.split()[-1] for line in pathlib.Path(f"/proc/{self.pid}/net/unix").read_text().splitlines()
                if "@nv_target_process_" in line]


def nm(library):
    """name -> (value, size) as binutils see them."""
    out = subprocess.run(["nm", "-D", "-S", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in out.splitlines()]
    return {row[3].split("@")[0]: (int(row[0], 16), int(row[1], 16)) for row in rows if len(row) == 4}


def test_symbols_are_those_that_binutils_find():
    for version in ("470", *UNIFIED):
        libraries = driver(version)
        theirs = {name: row for name, row in nm(libraries / "libcuda.so.1").items() if name.startswith("cudbg")}
        with Target(libraries) as target:
            ours = target.symbols()
            base = min(int(line.split("-")[0], 16) for line in
                       pathlib.Path(f"/proc/{target.pid}/maps").read_text().splitlines() if "libcuda.so" in line)
        for name in ("cudbgGetAPI", "cudbgGetAPIVersion"):
            theirs.pop(name)
        missing = {name for name, row in theirs.items() if row[1] <= 8} - set(ours)
        assert not missing, (version, missing)
        for name, (address, size, _) in ours.items():
            assert address - base == theirs[name][0], (version, name)
            assert size in (0, theirs[name][1]), (version, name)


def test_classic_driver_is_refused_by_name():
    with Target(driver("470")) as target:
        assert target.error("attach")[0] == "too_old"
        target.assert_untouched()


def test_attach_reaches_the_missing_gpu():
    """Call, flags and engine work in the other process; then initialize says 39."""
    for version in UNIFIED:
        for words in ((), ("init",)):
            with Target(driver(version), *words) as target:
                outcome, result, out = target.error(f"label={target.pid}", "attach")
                assert (outcome, result) == ("no_device", 39), (version, words, out)
                assert "step wait for the engine" in out and "step call cudbgApiDetach" in out, out
                assert any(str(target.pid) in name for name in target.sockets()), target.sockets()
                assert target.value("cudbgResumeForAttachDetach") == 2
                target.assert_untouched()


def test_second_attach_is_possible():
    with Target(driver("550")) as target:
        for _ in range(3):
            assert target.error("attach")[:2] == ("no_device", 39)
            target.assert_untouched()


def test_driver_wants_the_first_capability():
    for version in UNIFIED:
        with Target(driver(version), "init") as target:
            assert target.error("capabilities=2", "attach")[:2] == ("engine", 46)
            target.assert_untouched()
        with Target(driver(version)) as target:  # not asked for before cuInit
            assert target.error("capabilities=2", "attach")[:2] == ("no_device", 39)


def test_engine_that_is_missing_in_the_target_only():
    """The driver says 20 when it cannot open its engine."""
    for version in UNIFIED:
        libraries = driver(version)
        with tempfile.TemporaryDirectory() as directory:
            shutil.copy(libraries / "libcuda.so.1", directory)
            with Target(pathlib.Path(directory)) as target:
                target.libraries = libraries
                target.environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
                assert target.error("attach")[:2] == ("engine", 20)
                target.assert_untouched()


def test_two_debuggers_do_not_meet():
    with Target(driver("550")) as target:
        undo = tempfile.NamedTemporaryFile()
        out = target.probe(f"undo={undo.name}", "die=20", "attach")
        assert "outcome" not in out, out
        assert target.value("cudbgUseExternalDebugger") == 1
        assert target.error("attach")[0] == "debugged"
        assert "rescue 0" in target.probe(f"undo={undo.name}", "rescue")
        assert target.value("cudbgUseExternalDebugger") == 0
        target.assert_untouched()


def test_killed_at_each_step_and_rescued():
    with Target(driver("550")) as target, tempfile.NamedTemporaryFile() as undo:
        for step in range(100):
            os.pwrite(undo.fileno(), bytes(4096), 0)
            out = target.probe(f"undo={undo.name}", f"die={step}", "attach")
            if "error" in out:
                break
            assert "rescue 0" in target.probe(f"undo={undo.name}", "rescue"), out
            target.assert_untouched()
        assert step > 20, out


@contextlib.contextmanager
def simulated(version):
    """The simulator's engine beside its configuration, for NVIDIA's libcuda to load."""
    with CudaScene(app=None, release=VERSIONS[version], start_agent=False, sim="devices 2 sms=3 warps=8") as s:
        yield s.libraries / "libcudadebugger.so.1"


def test_our_engine_in_their_driver():
    """NVIDIA's libcuda on both sides, with the simulated engine through cudbgInjectionPath."""
    for version in UNIFIED:
        with simulated(version) as engine, Target(driver(version)) as target:
            out = target.probe(f"engine={engine}", "attach", "detach")
            assert "outcome attached" in out and "outcome detached" in out, (version, out)
            assert "devices 2" in out, out
            # NVIDIA's cudbgApiDetach leaves this word to NVIDIA's engine.
            target.assert_untouched(besides=["cudbgUseExternalDebugger"])


def test_the_whole_agent_reaches_the_missing_gpu():
    """The vendor's library in a worker with its sandbox and the user's rights: as far as it goes without a GPU, and back."""
    for version in UNIFIED:
        libraries = driver(version)
        with CudaScene(app=None, start_agent=False) as s, Target(libraries, "init") as target:
            s.libraries, s.libcuda = libraries, libraries / "libcuda.so.1"
            # NVIDIA's library frees with free() what its C++ has made with new.
            options = f"{os.environ.get('ASAN_OPTIONS', '')}:alloc_dealloc_mismatch=0"
            s.start_agentd(env={"ASAN_OPTIONS": options})
            for _ in range(2):  # and it can be tried again
                error = s.connect().error("session.attach", pid=target.pid)
                assert error.name == "not_debuggable" and "no CUDA device is available (initialize)" in error.message, (version, error)
                target.assert_untouched()
            wait_until(lambda: not s.worker_pids(), "the worker leaves")
            assert "Sanitizer" not in s.agentd.err(), s.agentd.err()
