# SPDX-License-Identifier: MIT
"""What the machine is, and what it lacks."""
import ctypes
import glob
import os
import pathlib
import platform
import re
import shutil
import signal
import sys

from engine import Skipped

GLIBC = (2, 36)
PYTHON = (3, 8)
# What /proc/version says in every container of gVisor, whose GPU support has no debugger interface.
GVISOR = "#1 SMP Sun Jan 10 15:06:54 PST 2016"
CAPABILITIES = {19: "SYS_PTRACE", 21: "SYS_ADMIN", 27: "MKNOD", 12: "NET_ADMIN"}


def read(path):
    try:
        return pathlib.Path(path).read_text(errors="replace").strip()
    except OSError as error:
        return f"({error.strerror})"


def find_nvcc():
    for path in (os.environ.get("NVCC"), shutil.which("nvcc"), "/usr/local/cuda/bin/nvcc"):
        if path and os.access(path, os.X_OK):
            return path
    return None


def find_library(engine, name):
    """Where the loader finds it; None.  In a process of its own: it is the vendor's code."""
    code = ("import ctypes, sys; ctypes.CDLL(sys.argv[1]); stem = '/' + sys.argv[1].split('.so')[0] + '.so'\n"
            "print(next(l.split(maxsplit=5)[5].strip() for l in open('/proc/self/maps') if stem in l))")
    done = engine.run(sys.executable, "-c", code, name, codes=None)
    engine.commands.pop()
    return done.out.strip() if done.code == 0 else None


def runtime(engine):
    """The C library and the interpreter that the bundle needs."""
    name, version = platform.libc_ver()
    engine.fact("python", platform.python_version())
    engine.fact("glibc", f"{name} {version}")
    if sys.version_info < PYTHON:
        raise AssertionError(f"Python {platform.python_version()}: 3.8 or later is needed")
    if name != "glibc" or tuple(map(int, version.split(".")[:2])) < GLIBC:
        raise AssertionError(f"{name} {version}: glibc 2.36 or later is needed")
    return f"glibc {version}, Python {platform.python_version()}"


def kernel(engine):
    for key, value in (("kernel", platform.release()), ("machine", platform.machine()),
                       ("uid", os.geteuid()), ("ptrace_scope", read("/proc/sys/kernel/yama/ptrace_scope")),
                       ("cpus", os.cpu_count())):
        engine.fact(key, value)
    if platform.machine() != "x86_64":
        raise AssertionError(f"{platform.machine()}: the bundle is for x86-64")
    if GVISOR in read("/proc/version"):
        engine.fact("gVisor", "yes: attaching to the GPU is not to be expected to work")
        raise AssertionError("this is gVisor, where GPUs cannot be debugged; take a virtual machine or plain containers")
    return f"{platform.release()}, ptrace_scope {engine.facts['ptrace_scope']}, uid {os.geteuid()}"


def container(engine):
    """Rights that a container may have taken away; what can be seen of one."""
    status = dict(line.split(":\t", 1) for line in read("/proc/self/status").splitlines() if ":\t" in line)
    effective = int(status["CapEff"], 16)
    names = [name for bit, name in CAPABILITIES.items() if effective >> bit & 1]
    engine.fact("capabilities", f"0x{effective:x} ({' '.join(names) or 'none of those that matter'})")
    engine.fact("seccomp", status.get("Seccomp", "?"))
    engine.fact("no_new_privs", status.get("NoNewPrivs", "?"))
    engine.fact("container", "yes" if os.path.exists("/.dockerenv") or os.environ.get("KUBERNETES_SERVICE_HOST") else
                "not to be seen")
    engine.fact("pid_namespace", "own" if len(status.get("NSpid", "0").split()) > 1 else "as seen from here the first")
    return f"{' '.join(names) or 'no capability that matters'}, seccomp {status.get('Seccomp')}"


def ptrace(engine):
    """Seize a child of our own: nothing works where this does not."""
    libc = ctypes.CDLL(None, use_errno=True)
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    try:
        libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
        if libc.ptrace(0x4206, child, None, None) != 0:  # PTRACE_SEIZE
            raise AssertionError(f"PTRACE_SEIZE: {os.strerror(ctypes.get_errno())}; the container needs "
                                 "SYS_PTRACE and a seccomp profile that allows ptrace")
        return "PTRACE_SEIZE works"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def driver(engine):
    """NVIDIA's part: kernel module, libraries, nvidia-smi."""
    engine.fact("driver", (read("/proc/driver/nvidia/version").splitlines() or ["(empty)"])[0])
    for name in ("libcuda.so.1", "libcudadebugger.so.1"):
        path = find_library(engine, name)
        engine.fact(name, f"{path} -> {os.path.basename(os.path.realpath(path))}" if path else "not found")
    engine.fact("devices", " ".join(sorted(glob.glob("/dev/nvidia*"))))
    lacking = []
    if not os.path.exists("/dev/nvidiactl"):
        lacking.append("/dev/nvidiactl (no NVIDIA kernel module, or not given to this container)")
    if engine.facts["libcuda.so.1"] == "not found":
        lacking.append("libcuda.so.1 (the driver's user-space part)")
    if lacking:
        raise AssertionError("missing: " + "; ".join(lacking))
    return re.sub(r"\s+", " ", engine.facts["driver"])[:90]


def debug_engine(engine):
    if engine.facts["libcudadebugger.so.1"] == "not found":
        raise AssertionError("missing: libcudadebugger.so.1; containers often lack it: mount it beside libcuda.so.1")
    return engine.facts["libcudadebugger.so.1"]


def smi(engine):
    """nvidia-smi, MPS."""
    mps = os.path.exists(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps") + "/control")
    engine.fact("mps", "a control daemon is there" if mps else "no control daemon")
    if not shutil.which("nvidia-smi"):
        raise Skipped("no nvidia-smi")
    # Serial numbers are nobody's business.
    done = engine.run("nvidia-smi", "--query-gpu=name,driver_version,compute_cap,compute_mode,mig.mode.current,"
                      "display_active,memory.total", "--format=csv,noheader", seconds=30)
    engine.fact("gpus", done.out.strip().replace("\n", "; "))
    return engine.facts["gpus"]


def compiler(engine):
    nvcc = find_nvcc()
    if not nvcc:
        raise Skipped("no nvcc by $NVCC, PATH or /usr/local/cuda/bin: carried kernels are used")
    engine.fact("nvcc", engine.run(nvcc, "--version").out.strip().splitlines()[-1])
    return engine.facts["nvcc"]


def find_debugger():
    for path in (os.environ.get("CUDA_GDB"), shutil.which("cuda-gdb"), "/usr/local/cuda/bin/cuda-gdb"):
        if path and os.access(path, os.X_OK):
            return path
    return None


def debugger(engine):
    path = find_debugger()
    if not path:
        raise Skipped("cuda-gdb is not installed: the rows that compare with it are left out")
    engine.fact("cuda-gdb", (engine.run(path, "--version").out.splitlines() or ["(says nothing)"])[0])
    return engine.facts["cuda-gdb"]


def others(engine):
    """Somebody else's work on the GPUs: it takes part in every time that is measured."""
    if not shutil.which("nvidia-smi"):
        raise Skipped("no nvidia-smi")
    done = engine.run("nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader", seconds=20)
    n = len(done.out.strip().splitlines())
    engine.fact("other processes on the GPUs", n)
    return f"{n} other processes use a GPU" if n else "nobody else uses a GPU"


def kernel_log(engine):
    """What the kernel and its NVIDIA module said meanwhile: faults, resets, refused system calls."""
    done = engine.run("dmesg", codes=None)
    if done.code != 0:
        raise Skipped(f"dmesg: {(done.err.strip() or 'nothing').splitlines()[-1]}"[:120])
    lines = [line for line in done.out.splitlines() if re.search(r"NVRM|Xid|seccomp|type=1326|gpu-agent|gpu_check", line)]
    # Serial numbers are nobody's business.
    lines = [re.sub(r"GPU-[0-9a-f-]{36}", "GPU-...", line) for line in lines if "erial" not in line][-60:]
    engine.section("messages of the kernel", "\n".join(lines))
    return f"{sum('Xid' in line for line in lines)} Xid, {len(lines)} lines that have to do with this"
