# SPDX-License-Identifier: MIT
"""AMD's runtime, HIP and RCCL of Debian 13, unmodified, on the simulated device."""
import os
import pathlib
import subprocess
from unittest import SkipTest

from harness import ROOT, Scene, need_root, wait_until
from peers import PEERS, clang, fetch, linker

# How much a program copies; an emulated processor would take a minute for that.
MIB = int(os.environ.get("TEST_ROCM_MIB", "64"))
HERE = pathlib.Path(__file__).resolve().parent


def trees(*more):
    """The trees of packages, or SkipTest."""
    need_root()
    if os.uname().machine != "x86_64":
        raise SkipTest("the libraries are fetched for x86-64 only")
    return [fetch(what) for what in ("rocm", *more)]


def run_by(roots, program):
    """The command line that runs a program with the libraries of these trees."""
    loader, option, path = linker(roots[0])
    return [loader, option, ":".join([str(path), *(f"{r}/usr/lib/x86_64-linux-gnu" for r in roots[1:])]), program]


def build(name, roots, *libraries):
    """A program of this directory, linked with libraries of the trees."""
    source, program = HERE / f"{name}.c", PEERS / name
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        new = program.with_suffix(f".{os.getpid()}")
        subprocess.run(["cc", "-Wall", "-O1", "-g", "-isystem", f"{roots[0]}/usr/include", "-o", new, source,
                        *(f"-L{r}/usr/lib/x86_64-linux-gnu" for r in roots),
                        *(f"-l:{library}" for library in libraries), "-Wl,--unresolved-symbols=ignore-in-shared-libs"],
                       check=True, timeout=120)
        new.rename(program)
    return run_by(roots, program)


def object_of(gfx):
    """A code object for it, with a kernel `scale`."""
    return ROOT / "tests/data/codeobj" / {"gfx90a": "spin-gfx90a.co", "gfx1030": "spin-gfx1030-z.co"}[gfx]


def compiled_for(gfx):
    """The same kernels for any GPU that clang 19 knows."""
    source, path = ROOT / "tests/data/codeobj/spin.cl", PEERS / f"spin-{gfx}.co"
    if not path.exists() or path.stat().st_mtime < source.stat().st_mtime:
        llvm, environment = clang()
        new = path.with_suffix(f".{os.getpid()}")
        subprocess.run([llvm / "bin/clang", "-x", "cl", "-target", "amdgcn-amd-amdhsa", f"-mcpu={gfx}", "-nogpulib",
                        "-mcode-object-version=5", "-O1", "-gdwarf-5", source, "-o", new],
                       check=True, timeout=120, env=environment)
        new.rename(path)
    return path


def hip_command(gfx, roots, code=None):
    return [*build("rocm_hip", roots, "libamdhip64.so.5"), code or object_of(gfx), "scale", MIB]


def hip(s, gfx, code=None, **kwargs):
    """The HIP program, once it has its GPU."""
    program = s.run("hip", hip_command(gfx, trees(), code), **kwargs)
    program.wait_line(words="ready")
    return program


def hsa(s, gfx, **kwargs):
    """The program on the runtime library alone, once it has loaded its kernel."""
    command = build("rocm_hsa", trees(), "libhsa-runtime64.so.1")
    program = s.run("hsa", [*command, compiled_for(gfx), "scale"], **kwargs)
    program.wait_line(words="ready")
    return program


def rccl(s, roots, **kwargs):
    program = s.run("rccl", build("rocm_rccl", roots, "librccl.so.1", "libamdhip64.so.5"), **kwargs)
    program.wait_line(words="ready")
    return program


class RocmScene(Scene):
    """A simulated GPU whose memory can be mapped, and programs of AMD's runtime on it."""

    def __init__(self, gpus, **kwargs):
        super().__init__(app=None, gpus=gpus, **kwargs)

    def __enter__(self):
        super().__enter__()
        if not self.state()["memory"]:
            self.__exit__(None, None, None)
            raise SkipTest("this kernel has no FUSE passthrough (Linux 6.9), or it is not for us: the device has no memory")
        return self

    def run(self, name, argv, **kwargs):
        """Start a program; its process id is that of the program itself."""
        return self.start(name, [ROOT / "scripts/with-sim-gpu", self.mount, *argv], **kwargs)

    def run_beside(self, program, name, argv, **kwargs):
        """Start another one, which shares /dev and all of it with the first."""
        return self.start(name, ["nsenter", "--mount", "--target", program.pid, *argv], **kwargs)

    def step(self, program, words, expected):
        """Tell a program to go on, and wait for what it prints."""
        seen = program.out().count("\n")
        program.popen.stdin.write(words.encode() + b"\n")
        program.popen.stdin.flush()

        def found():
            lines = program.out().split("\n")[seen:-1]
            assert program.popen.poll() is None, f"it ended with {program.popen.returncode}: {program.err()}"
            assert not any(line.startswith("error") for line in lines), lines
            return [line for line in lines if line.startswith(expected)]

        return wait_until(found, expected)[0]

    def queues(self, program):
        return next(p for p in self.state()["processes"] if p["pid"] == program.pid)["queues"]
