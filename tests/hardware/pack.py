# SPDX-License-Identifier: MIT
"""Build the product and bundle it with its libraries, for a machine that has nothing of them."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAMS = ("gpu-agentd", "gpu-agent-monitor", "gpu-agent-heir", "gpu-agent-front", "gpu-agent-judge", "gpu-agent-worker",
            "gpu-agent-store", "gpu-agent-rules", "gpu-agent-hook", "gpu-agent-adapter", "gpu-agent-tracer", "gpu-agent-connect",
            "gpu-agentctl", "gpu-agent-cuda-sim", "gpu-agent-cuda-simapp")
# Of the machine that the bundle runs on: the C library and what belongs to the GPU's driver.
NOT_OURS = re.compile(r"^(linux-vdso|ld-linux.*|lib(c|m|dl|rt|pthread|util|resolv|nsl|anl|BrokenLocale|thread_db)"
                      r"|libcuda|libcudadebugger|libnvidia.*)\.so")
FILES = ("scripts/gpu-check", "tests/hardware", "tests/data/cubin", "tests/lib/harness.py",
         "tests/lib/schema.py", "protocol/gpu-agent.json", "LICENSE")
LIMIT = 56 << 20


def output(*argv):
    return subprocess.run([str(a) for a in argv], check=True, capture_output=True, text=True).stdout


def libraries(program):
    """name -> path of what the loader gives to a program, except what is not ours."""
    found = {}
    for line in output("ldd", program).splitlines():
        match = re.match(r"\s*(\S+) => (\S+)", line)
        if match and not NOT_OURS.match(match.group(1)):
            if match.group(2) == "not":
                sys.exit(f"gpu-check: {program} needs {match.group(1)}, which is not installed")
            found[match.group(1)] = match.group(2)
    return found


def place(source, target, strip=True):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(os.path.realpath(source), target)
    target.chmod(0o755)
    if strip:
        subprocess.run(["strip", "--strip-unneeded", target], check=True)


def pack(directory, build, is_built):
    for tool in ("patchelf", "strip", "ldd"):
        if not shutil.which(tool):
            sys.exit(f"gpu-check: pack needs {tool}")
    directory, build = pathlib.Path(directory).resolve(), pathlib.Path(build).resolve()
    extras = [build / "tests" / name for name in ("gpu_check_measure", "gpu_check_program")]
    if not is_built:
        subprocess.run(["make", "-s", f"-j{os.cpu_count()}", f"O={build}", "all", *map(str, extras)], check=True, cwd=ROOT)
    if (directory / "bin").exists():
        shutil.rmtree(directory)
    needed = {}
    for program in [build / "bin" / p for p in PROGRAMS] + extras:
        target = directory / "bin" / program.name
        needed.update(libraries(program))
        place(program, target)
        # RPATH, not RUNPATH: it also holds for what the libraries need.
        subprocess.run(["patchelf", "--force-rpath", "--set-rpath", "$ORIGIN/../lib", target], check=True)
    for name, path in needed.items():
        place(path, directory / "lib" / name)
    # As tests/lib/harness.py looks for them: beside bin.
    shutil.copytree(build / "cudasim", directory / "cudasim")
    for name in FILES:
        target = directory / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, target)
    (directory / "VERSION").write_text(version() + "\n")
    size = sum(f.stat().st_size for f in directory.rglob("*") if f.is_file())
    if size > LIMIT:
        sys.exit(f"gpu-check: the bundle is larger than {LIMIT >> 20} MiB")
    archive = shutil.make_archive(str(directory), "gztar", directory.parent, directory.name)
    print(f"{directory}: {size / (1 << 20):.1f} MiB, {len(needed)} libraries; the same as {archive}, "
          f"{os.path.getsize(archive) / (1 << 20):.1f} MiB; there: scripts/gpu-check run")


def version():
    """What was packed, for the log."""
    done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True,
                          check=False)
    return done.stdout.strip() or "unknown"
