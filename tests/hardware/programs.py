# SPDX-License-Identifier: MIT
"""The programs under debug: three kernels on the GPU, or three scripts of the simulator in their shape."""
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import time

from harness import ROOT, CudaScene, status, wait_until

from engine import CommandFailed, end_group
from facts import find_nvcc

HARDWARE = ROOT / "tests/hardware"
FIXTURE = ROOT / "tests/data/cubin/spin.cu"


def marked_lines(path, *texts):
    """Numbers of the lines that contain one of the texts."""
    lines = path.read_text().splitlines()
    return {n for n, line in enumerate(lines, 1) if any(t in line for t in texts)}


class Kind:
    """What a look at one kind of program must show."""

    def __init__(self, kernel, source, lines, faults=frozenset(), lanes=32):
        self.kernel = kernel    # part of the demangled name
        self.source = source    # file name
        self.lines = lines      # where its warps may be
        self.faults = faults    # the line that faults
        self.lanes = lanes      # active lanes of a warp


HARDWARE_KINDS = {
    "spin": Kind("spin", "spin.cu", marked_lines(HARDWARE / "spin.cu", "// spin here")),
    "diverge": Kind("diverge", "diverge.cu", marked_lines(HARDWARE / "diverge.cu", "// called here", "// inlined here"),
                    lanes=16),
    "fault": Kind("fault", "fault.cu", marked_lines(HARDWARE / "fault.cu", "// wait here"),
                  marked_lines(HARDWARE / "fault.cu", "// fault here")),
}
SIMULATED_KINDS = {
    "spin": Kind("spin", "spin.cu", marked_lines(FIXTURE, "while (!*stop)")),
    "diverge": Kind("diverge", "spin.cu", marked_lines(FIXTURE, "value * value + 3.0f", "value = value * 0.5f", "i < rounds"),
                    lanes=16),
    "fault": Kind("fault", "spin.cu", marked_lines(FIXTURE, "if (threadIdx.x == 5)"), marked_lines(FIXTURE, "*where = 42")),
}


class HardwareProgram:
    """One of tests/hardware/*.cu, running."""

    STATUS = struct.Struct("<IiQQQiI")
    number = 0

    def __init__(self, lab, name, stop_at=None, user=None):
        self.name, self.kind = name, HARDWARE_KINDS[name]
        HardwareProgram.number += 1
        self.path = lab.engine.directory / f"status{HardwareProgram.number}"
        self.path.touch()
        os.chmod(self.path, 0o666)
        self.out_path = lab.engine.directory / f"program{HardwareProgram.number}.out"
        argv = [str(lab.binaries / name), "--status-file", str(self.path)]
        if stop_at:
            argv += ["--stop-at", stop_at]
        kwargs = {"user": user, "group": user, "extra_groups": []} if user else {}
        with open(self.out_path, "wb") as out:
            self.popen = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
                                          **kwargs)
        self.pid = self.popen.pid
        lab.programs.append(self)
        self.said(lambda m: "stopped" in m or "ready" in m)

    def messages(self):
        found = []
        for line in self.out_path.read_text(errors="replace").splitlines():
            if line.startswith("{"):
                found.append(json.loads(line))
        return found

    def said(self, condition, patience=30):
        def look():
            assert self.alive, f"{self.name} ended: {self.out_path.read_text(errors='replace')[-500:]}"
            return next((m for m in self.messages() if condition(m)), None)
        return wait_until(look, f"{self.name} says where it is", patience)

    @property
    def ready(self):
        return self.said(lambda m: "ready" in m)

    def go(self):
        """Past the stage where it stopped, or into its fault."""
        os.kill(self.pid, signal.SIGUSR1)

    fault = go

    def wait_kernel(self, patience):
        self.said(lambda m: "ready" in m, patience)

    def fault_reaches_it(self):
        """The error that its own runtime reports."""
        return self.said(lambda m: "kernel_error" in m, 20)["name"]

    @property
    def alive(self):
        return self.popen.poll() is None and status(self.pid).get("State", "Z")[0] not in "ZX"

    def _fields(self):
        return self.STATUS.unpack(self.path.read_bytes()[:self.STATUS.size])

    @property
    def beats(self):
        return self._fields()[2]

    def take_gap_ms(self):
        """Longest time without a heartbeat since the last call."""
        gap = self._fields()[3]
        with open(self.path, "r+b") as f:
            f.seek(16)
            f.write(bytes(8))
        return gap / 1e6

    def wait_gpu_runs(self, patience):
        """Seconds until the kernel is seen to count."""
        began, before = time.monotonic(), self._fields()[4]
        wait_until(lambda: self._fields()[4] > before, "the kernel's counters go on", patience)
        return time.monotonic() - began

    def gpu_stands(self, seconds=0.2):
        """Does the kernel not count for that long?"""
        before = self._fields()[4]
        time.sleep(seconds)
        return self._fields()[4] == before

    # -- what is planted ------------------------------------------------------------------------

    def global_memory(self):
        """(address, bytes)"""
        return int(self.ready["global"], 16), bytes(i * 7 & 255 for i in range(256))

    def shared_memory(self, _ref):
        return int(self.ready["shared"], 16), b"".join(struct.pack("<I", 0x5eed0000 + i) for i in range(16))

    def local_memory(self, _ref, first_thread, lane):
        return int(self.ready["local"], 16), b"".join(struct.pack("<I", (first_thread + lane << 16) + i) for i in range(16))

    def register_values(self, _ref, first_thread):
        """What some vector register must hold, lane by lane."""
        return [0xc0ffee00 + first_thread + lane for lane in range(32)]

    def stop(self):
        if self.popen.poll() is None:
            self.popen.terminate()
            try:
                self.popen.wait(5)
            except subprocess.TimeoutExpired:
                end_group(self.popen)


class SimulatedProgram:
    """gpu-agent-cuda-simapp with a script."""

    BEGIN = "init; context 0; module @CUBIN@; "
    GLOBAL, SHARED, LOCAL = 0x7f1000000000, 0x40, 0x100
    # Offsets of code are those of tests/data/cubin/spin-sm_90.cubin.
    SCRIPTS = {
        "spin": "gpu launch spin grid=8 block=128 pc=0x80",
        "diverge": "gpu launch _Z7divergeIfEvPT_i grid=4 block=64 pc=0x160 active=0xffff; "
                   "gpu warp 0 0 0 pc=0x2a0 active=0xffff0000; gpu warp 0 1 0 pc=0x2a0 active=0xffff0000",
        "fault": "gpu launch fault grid=2 block=64 pc=0x20",
    }
    STAGES = {"none": "sleep 1", "loaded": "sleep 1", "init": "init", "context": "init; context 0"}

    def __init__(self, lab, name, stop_at=None, user=None):
        self.name, self.kind = name, SIMULATED_KINDS[name]
        self.scene, self.lab = lab.scene, lab
        self.planted = {}
        if stop_at == "none":
            self.app = lab.scene.start("bare", ["sleep", "1000"])
            self.app.status_file = None
        else:
            memory = f"; gpu memory global {self.GLOBAL} hex={bytes(i * 7 & 255 for i in range(256)).hex()}"
            script = self.STAGES[stop_at] if stop_at else self.BEGIN + self.SCRIPTS[name] + memory
            self.app = lab.scene.start_app(script + "; listen", user=user, name=f"program{len(lab.programs)}-")
        self.popen = self.app.popen
        self.pid = self.app.pid
        lab.programs.append(self)

    def go(self):
        """Begin to use the GPU."""
        line = self.BEGIN.replace("@CUBIN@", str(self.scene.CUBIN)) + self.SCRIPTS[self.name]
        self.app.popen.stdin.write(line.encode() + b"\n")
        self.app.popen.stdin.flush()

    def wait_kernel(self, patience):
        wait_until(lambda: (self.scene.state(self.app) or {}).get("grids"), "a kernel runs", patience)

    def fault(self):
        self.scene.control("raise 0 1 0 14 lanes=0x20 errorpc=0x50", self.app)

    def fault_reaches_it(self):
        return "(not simulated)"

    @property
    def alive(self):
        return self.popen.poll() is None

    @property
    def beats(self):
        return self.scene.app_status(self.app).beats if self.app.status_file else 0

    def take_gap_ms(self):
        return self.scene.app_status(self.app).take_gap_ns() / 1e6 if self.app.status_file else 0

    def _stands(self):
        devices = self.scene.state(self.app)["devices"]
        return any(d["suspended"] for d in devices)

    def wait_gpu_runs(self, patience):
        began = time.monotonic()
        wait_until(lambda: not self._stands(), "the GPUs go on", patience)
        return time.monotonic() - began

    def gpu_stands(self, _seconds=0.2):
        return self._stands()

    # -- what is planted ------------------------------------------------------------------------

    def global_memory(self):
        return self.GLOBAL, bytes(i * 7 & 255 for i in range(256))

    def _plant(self, line, key):
        if key not in self.planted:
            self.planted[key] = self.scene.control(line, self.app)

    def shared_memory(self, ref):
        data = b"".join(struct.pack("<I", 0x5eed0000 + i) for i in range(16))
        self._plant(f"memory shared 0 {ref['unit']} {ref['index']} {self.SHARED} hex={data.hex()}", ("shared", ref["unit"]))
        return self.SHARED, data

    def local_memory(self, ref, _first_thread, lane):
        data = b"".join(struct.pack("<I", (lane << 16) + i) for i in range(16))
        self._plant(f"memory local 0 {ref['unit']} {ref['index']} {lane} {self.LOCAL} hex={data.hex()}",
                    ("local", ref["unit"], lane))
        return self.LOCAL, data

    def register_values(self, ref, _first_thread):
        """sim/cuda/README.md: values nobody planted."""
        return [ref["unit"] << 20 | ref["index"] << 14 | lane << 8 | 4 for lane in range(32)]

    def stop(self):
        self.app.stop(patience=3)


class Lab:
    """Where programs come from; ends them all."""

    def __init__(self, engine, simulated):
        """simulated: release of the simulated driver, or None."""
        self.engine, self.simulated = engine, simulated
        self.programs, self.scene = [], None
        self.binaries = engine.directory / "programs"
        self.make = SimulatedProgram if simulated else HardwareProgram
        self.kinds = SIMULATED_KINDS if simulated else HARDWARE_KINDS

    def prepare(self):
        """Compile, or start the simulator."""
        if self.simulated:
            self.scene = CudaScene(app=None, start_agent=False, release=self.simulated)
            self.scene.__enter__()
            return f"simulated driver of release {self.scene.release}"
        nvcc = find_nvcc()
        self.binaries.mkdir(exist_ok=True)
        for name in HARDWARE_KINDS:
            self.compile(nvcc, name)
        return f"{len(HARDWARE_KINDS)} programs"

    def compile(self, nvcc, name):
        argv = [nvcc, "-O2", "-lineinfo", HARDWARE / f"{name}.cu", "-o", self.binaries / name, "-ldl", "-lpthread"]
        done = self.engine.run(*argv, "-arch=native", seconds=120, codes=None)
        if done.code != 0:
            if not shutil.which("nvidia-smi"):
                raise CommandFailed(f"nvcc: exit {done.code}: {(done.err.strip() or 'no output').splitlines()[-1]}")
            # nvcc before 11.5 knows no `native`.
            arch = self.engine.run("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader").out.split()[0]
            self.engine.run(*argv, f"-arch=sm_{re.sub('[^0-9]', '', arch)}", seconds=120)

    @property
    def libcuda(self):
        """For --cuda-library; None: the loader finds it."""
        return self.scene.libcuda if self.simulated else None

    @property
    def environment(self):
        """For whoever loads that library; a sanitizer's dlopen() does not know its run path."""
        return {"LD_LIBRARY_PATH": str(self.scene.libraries)} if self.simulated else {}

    def start(self, name, **kwargs):
        return self.make(self, name, **kwargs)

    def end(self):
        for program in self.programs:
            program.stop()
        self.programs.clear()
        if self.scene:
            self.scene.__exit__(None, None, None)
            self.scene = None
