# SPDX-License-Identifier: MIT
"""The programs under debug: three kernels on the GPU, or scripts of the simulator in their shape."""
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time

from harness import BIN, ROOT, CudaScene, status, wait_until

from engine import end_group
from facts import find_nvcc

HARDWARE = ROOT / "tests/hardware"
CARRIED = HARDWARE / "carried"
CARRIED_ARCH = "90"
FIXTURE = ROOT / "tests/data/cubin/spin.cu"


def marked_lines(path, *texts):
    """Numbers of the lines that contain one of the texts."""
    lines = path.read_text().splitlines()
    return {n for n, line in enumerate(lines, 1) if any(t in line for t in texts)}


class Kind:
    """What one kind of program must show."""

    def __init__(self, kernel, source, places, warps, faults=frozenset(), lanes=32, thread=(0, 0)):
        self.kernel = kernel    # part of the demangled name
        self.source = source    # file name
        self.places = places    # lines where warps, or parts of them, must be: one set for each place
        self.lines = set().union(*places)
        self.warps = warps      # how many there are
        self.faults = faults    # the line that faults
        self.lanes = lanes      # active lanes of a warp
        self.thread = thread    # the one that faults: block, thread


def of_hardware(source, *marks):
    return [marked_lines(HARDWARE / source, mark) for mark in marks]


HARDWARE_KINDS = {
    "spin": Kind("spin", "spin.cu", of_hardware("spin.cu", "// spin here"), 32),
    "diverge": Kind("diverge", "diverge.cu", of_hardware("diverge.cu", "// called here", "// inlined here"), 8, lanes=16),
    "fault": Kind("fault", "fault.cu", of_hardware("fault.cu", "// wait here"), 4,
                  marked_lines(HARDWARE / "fault.cu", "// fault here"), thread=(1, 37)),
}
SIMULATED_KINDS = {
    "spin": Kind("spin", "spin.cu", [marked_lines(FIXTURE, "while (!*stop)")], 32),
    "diverge": Kind("diverge", "spin.cu", [marked_lines(FIXTURE, "value * value + 3.0f"),
                                           marked_lines(FIXTURE, "value = value * 0.5f", "i < rounds")], 8, lanes=16),
    "fault": Kind("fault", "spin.cu", [marked_lines(FIXTURE, "if (threadIdx.x == 5)")], 4, marked_lines(FIXTURE, "*where = 42"),
                  thread=(1, 5)),
    "values": Kind("spin", "spin.cu", of_hardware("spin.cu", "// spin here"), 32),
}
HARDWARE_KINDS["values"] = HARDWARE_KINDS["spin"]


# -- what the kernel spin() keeps: spin.cu and words.h say the same -----------------------------------

BLOCK_SIZE, GRID_SIZE = 128, 8
ARGUMENTS = {"number": "-12345", "ratio": "1.5", "wide": str(0x123456789abcdef0), "both": "{first = 77, second = 0.125}"}


def real(x):
    """As debuggers write it; what is planted here needs no more digits."""
    return f"{x:.17g}"


def planted_values(block, thread):
    """Name -> text of what a thread of the kernel keeps: arguments, variables, what is built in."""
    index = block * BLOCK_SIZE + thread
    return {
        **ARGUMENTS,
        "tag": str(0xc0ffee00 + thread),
        "index": str(index),
        "small": str(-index),
        "far": str((index << 32) + 7),
        "half": real(index * 0.5),
        "quarter": real(index + 0.25),
        "mine": f"{{first = {index + 1000}, second = {real(-index * 0.5) if index else '-0'}}}",
        "own": "{" + ", ".join(str((thread << 16) + i) for i in range(16)) + "}",
        "pattern": "{" + ", ".join(str(0x5eed0000 + i) for i in range(64)) + "}",
        "threadIdx": f"{{x = {thread}, y = 0, z = 0}}",
        "blockIdx": f"{{x = {block}, y = 0, z = 0}}",
        "blockDim": f"{{x = {BLOCK_SIZE}, y = 1, z = 1}}",
        "gridDim": f"{{x = {GRID_SIZE}, y = 1, z = 1}}",
        "warpSize": "32",
    }


def planted_bytes(block, thread):
    """The same as bytes, of what is not built in."""
    index = block * BLOCK_SIZE + thread
    return {
        "number": struct.pack("<i", -12345), "ratio": struct.pack("<f", 1.5), "wide": struct.pack("<Q", 0x123456789abcdef0),
        "both": struct.pack("<if", 77, 0.125), "tag": struct.pack("<I", 0xc0ffee00 + thread), "index": struct.pack("<i", index),
        "small": struct.pack("<h", -index), "far": struct.pack("<q", (index << 32) + 7), "half": struct.pack("<f", index * 0.5),
        "quarter": struct.pack("<d", index + 0.25), "mine": struct.pack("<if", index + 1000, -(index * 0.5)),
        "own": b"".join(struct.pack("<I", (thread << 16) + i) for i in range(16)),
        "pattern": b"".join(struct.pack("<I", 0x5eed0000 + i) for i in range(64)),
    }


KERNELS = ("spin", "diverge", "fault")


def find_arch(engine):
    """Compute capability of the first GPU; asked in a process of its own, for it is the vendor's code."""
    code = ("import ctypes\nd = ctypes.CDLL('libcuda.so.1')\nmajor, minor = ctypes.c_int(), ctypes.c_int()\n"
            "r = d.cuInit(0) or d.cuDeviceGetAttribute(ctypes.byref(major), 75, 0) or "
            "d.cuDeviceGetAttribute(ctypes.byref(minor), 76, 0)\nassert not r, f'cuInit or cuDeviceGetAttribute: {r}'\n"
            "print(f'{major.value}{minor.value}')")
    return engine.run(sys.executable, "-c", code).out.strip()


class HardwareProgram:
    """One of the kernels of tests/hardware/*.cu, running."""

    STATUS = struct.Struct("<IiQQQiI")
    number = 0

    def __init__(self, lab, name, stop_at=None, user=None, debug=False, runtime=False, env=None):
        self.name, self.kind = name, HARDWARE_KINDS[name]
        self.has_faulted = False
        HardwareProgram.number += 1
        self.path = lab.engine.directory / f"status{HardwareProgram.number}"
        self.path.touch()
        os.chmod(self.path, 0o666)
        self.out_path = lab.engine.directory / f"program{HardwareProgram.number}.out"
        argv = [*lab.command(name, debug, runtime), "--status-file", str(self.path)]
        if stop_at:
            argv += ["--stop-at", stop_at]
        kwargs = {"user": user, "group": user, "extra_groups": []} if user else {}
        with open(self.out_path, "wb") as out:
            self.popen = lab.engine.start(argv, env, keep=True, stdin=subprocess.DEVNULL, stdout=out, stderr=out, **kwargs)
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
        def found():
            assert self.alive, f"{self.name} ended: {self.out_path.read_text(errors='replace')[-500:]}"
            return next((m for m in self.messages() if condition(m)), None)
        return wait_until(found, f"{self.name} says where it is", patience)

    @property
    def ready(self):
        return self.said(lambda m: "ready" in m)

    def go(self):
        """Past the stage where it stopped, or into its fault."""
        os.kill(self.pid, signal.SIGUSR1)

    def fault(self):
        self.has_faulted = True
        self.go()

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

    def pointers(self):
        """Arguments that are known only when the program runs."""
        return {"w": int(self.ready["words"], 16), "out": int(self.ready["out"], 16)}

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
        "diverge": "gpu launch _Z7divergeIfEvPT_i grid=4 block=64 pc=0x160 idle=0x2a0 active=0xffff; "
                   "gpu warp 0 0 0 pc=0x2a0 idle=0x160 active=0xffff0000; gpu warp 0 1 0 pc=0x2a0 idle=0x160 active=0xffff0000",
        "fault": "gpu launch fault grid=2 block=64 pc=0x20",
        "values": "gpu launch spin grid=8 block=128 shared=0x600 pc=0x1500",
    }
    STAGES = {"none": "sleep 1", "loaded": "sleep 1", "init": "init", "context": "init; context 0"}

    def __init__(self, lab, name, stop_at=None, user=None, debug=False, runtime=False, env=None):
        self.name, self.kind = name, SIMULATED_KINDS[name]
        self.scene, self.lab = lab.scene, lab
        self.planted = {}
        self.has_faulted = False
        if stop_at == "none":
            self.app = lab.scene.start("bare", ["sleep", "1000"])
            self.app.status_file = None
        else:
            memory = f"; gpu memory global {self.GLOBAL} hex={bytes(i * 7 & 255 for i in range(256)).hex()}"
            begin = self.BEGIN.replace("@CUBIN@", str(self._copy(CARRIED / "spin-sm_90-g.cubin"))) if name == "values" else self.BEGIN
            script = self.STAGES[stop_at] if stop_at else begin + self.SCRIPTS[name] + memory
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

    def _copy(self, path):
        """Where a program of another user may read it."""
        return shutil.copy(path, self.scene.directory)

    def fault(self):
        self.has_faulted = True
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

    STACK, PARAMETERS, SHARED_SIZE = 0x1000, 0x210, 0x600

    def plant_variables(self, ref, locations):
        """What each thread of a warp would keep, at the places that are named for it (name -> words of a location)."""
        unit, warp = ref["unit"], ref["index"]
        for lane in range(32):
            stack = bytearray(256)
            for name, data in planted_bytes(ref["workgroup"][0], 32 * ref["wave_in_group"] + lane).items():
                kind, _, where = locations.get(name, "").partition(" ")
                if kind == "private":
                    at = int(where, 16) - self.STACK
                    stack[at:at + len(data)] = data
                elif kind.startswith("R"):
                    data = data.ljust(4 * len(kind.split(":")), b"\0")
                    for i, register in enumerate(kind.split(":")):
                        value, = struct.unpack_from("<I", data, 4 * i)
                        self.scene.control(f"register 0 {unit} {warp} {lane} {register[1:]} {value:#x}", self.app)
                elif kind == "shared" and lane == 0:
                    at = int(where, 16)
                    memory = (bytes(at) + data).ljust(self.SHARED_SIZE, b"\0")
                    self.scene.control(f"memory shared 0 {unit} {warp} 0 hex={memory.hex()}", self.app)
            self.scene.control(f"memory local 0 {unit} {warp} {lane} {self.STACK:#x} hex={stack.hex()}", self.app)

    def plant_stack(self, ref):
        """What the places of variables depend on, and arguments."""
        unit, warp = ref["unit"], ref["index"]
        for lane in range(32):
            self.scene.control(f"register 0 {unit} {warp} {lane} 1 {self.STACK:#x}", self.app)
        data = struct.pack("<QQifQif", 0x7e1000, 0x7e2000, -12345, 1.5, 0x123456789abcdef0, 77, 0.125)
        self.scene.control(f"memory param 0 {unit} {warp} {self.PARAMETERS:#x} hex={data.hex()}", self.app)

    def pointers(self):
        return {"w": 0x7e1000, "out": 0x7e2000}

    def stop(self):
        self.app.stop(patience=3)


class Lab:
    """Where programs come from; ends them all."""

    def __init__(self, engine, simulated):
        """simulated: release of the simulated driver, or None."""
        self.engine, self.simulated = engine, simulated
        self.programs, self.scene = [], None
        self.images = engine.directory / "programs"
        self.arch = None        # compute capability without its point
        self.is_runtime = False  # the driver's own programs do not start here
        self.make = SimulatedProgram if simulated else HardwareProgram
        self.kinds = SIMULATED_KINDS if simulated else HARDWARE_KINDS

    def prepare(self):
        """Compile, or take what is carried, or start the simulator."""
        if self.simulated:
            self.scene = CudaScene(app=None, start_agent=False, release=self.simulated)
            self.scene.__enter__()
            return f"simulated driver of release {self.scene.release}"
        self.images.mkdir(exist_ok=True)
        # Where programs of other users may read it.
        starter = BIN / "gpu_check_program"
        shutil.copy(starter if starter.exists() else BIN.parent / "tests/gpu_check_program", self.images)
        self.arch = self.arch or find_arch(self.engine)
        how, nvcc = "compiled here", find_nvcc()
        refusal = self.compile(nvcc) if nvcc else "no nvcc"
        if refusal:
            assert self.arch == CARRIED_ARCH, f"{refusal}, and the kernels carried are for sm_{CARRIED_ARCH}, not sm_{self.arch}"
            how = f"carried ({refusal})"
            for path in CARRIED.iterdir():
                shutil.copy(path, self.images)
        try:
            self.start("spin").stop()
        except AssertionError as error:
            assert nvcc and not self.compile_programs(nvcc), error
            self.is_runtime = True
            self.start("spin").stop()
            how += f"; started by the CUDA runtime, for by the driver alone: {error}"
        return f"{len(KERNELS)} kernels for sm_{self.arch}, {how}"

    def _nvcc(self, nvcc, targets):
        """Compile all at once; what the first one that failed said, or nothing."""
        path = self.engine.directory / "nvcc.out"
        with open(path, "ab") as out:
            running = [self.engine.start([nvcc, f"-arch=sm_{self.arch}", *argv], stdin=subprocess.DEVNULL, stdout=out, stderr=out)
                       for argv in targets]
        codes = [popen.wait(120) for popen in running]
        if any(codes):
            said = path.read_text(errors="replace")
            self.engine.section("nvcc", said)
            return "nvcc: " + (said.strip().splitlines() or ["no output"])[-1][:160]
        return ""

    def compile(self, nvcc):
        targets = []
        for name in KERNELS:
            argv = ["-cubin", "-DDEVICE_ONLY", HARDWARE / f"{name}.cu", "-o"]
            targets += [["-O2", "-lineinfo", *argv, self.image(name, False)], ["-G", *argv, self.image(name, True)]]
        return self._nvcc(nvcc, targets)

    def compile_programs(self, nvcc, names=KERNELS):
        """As programs of the CUDA runtime."""
        return self._nvcc(nvcc, [[*options, HARDWARE / f"{name}.cu", "-o", self.program(name, "-G" in options), "-ldl", "-lpthread"]
                                 for name in names for options in (["-O2", "-lineinfo"], ["-G"])])

    def image(self, name, debug):
        return self.images / f"{name}-sm_{self.arch}{'-g' if debug else ''}.cubin"

    def program(self, name, debug):
        return self.images / f"{name}{'-g' if debug else ''}"

    def command(self, name, debug, runtime):
        """What starts a kernel; `values` is spin with full debug information."""
        name, debug = ("spin", True) if name == "values" else (name, debug)
        if runtime or self.is_runtime:
            return [self.program(name, debug)]
        return [self.images / "gpu_check_program", "--kernel", name, "--image", self.image(name, debug)]

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
