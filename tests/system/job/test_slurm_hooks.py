#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The programs of deploy/slurm: as Slurm calls them, without an agent and with one that hangs, and by a real Slurm with a process
that no signal ends."""
import contextlib
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

if __name__ == "__main__":
    # Processes of other tests are none of the machine that is looked at as a whole.
    alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--"] if os.geteuid() == 0 else []
    os.execvp((alone + ["pytest-3"])[0], [*alone, "pytest-3", "--lines", *sys.argv])

import pytest

import test_slurm
from harness import BIN, ROOT, Scene, need_root, wait_until
from stuckfiles import stuck_files

HOOKS = ROOT / "deploy/slurm"
SIMAPP = BIN / "gpu-agent-simapp"


def run(directory, hook, ctl=BIN / "gpu-agentctl", socket=None, **environment):
    """What it has left, and how long it took; its environment has no PATH."""
    env = {"PWD": "/", "GPU_AGENT_SLURM_DIR": str(directory), "GPU_AGENTCTL": str(ctl), "GPU_AGENT_SOCKET": str(socket), **environment}
    begun = time.monotonic()
    done = subprocess.run([HOOKS / hook], env=env, cwd="/", capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and not done.stdout, done
    return {p.name: p.read_text() for p in sorted(directory.glob("*"))}, time.monotonic() - begun, done.stderr


def test_step_that_cannot_be_killed(tmp_path):
    with Scene(app=None, gpus="gfx90a,gfx90a") as s:
        for n in (4711, 47110):
            app = s.start("rank", [SIMAPP, "--kfd", s.mount / "kfd", "--scene", "hang"], env={"SLURM_JOB_ID": str(n), "RANK": "0"})
            app.wait_line()
            s.ranks = [app] if n == 4711 else s.ranks
        files, _, _ = run(tmp_path, "unkillable-step", socket=s.socket, SLURM_JOB_ID="4711", SLURM_STEP_ID="0")
        text = next(t for name, t in files.items() if re.fullmatch(r"4711\.0\..*\.txt", name))
        assert re.findall(r"^process (\d+)", text, re.M) == [str(s.ranks[0].pid)], text
        assert "1 rank on 1 host" in text and "gpu-agentctl job: exit status" in text, text
        assert any(re.fullmatch(r"4711\.0\..*\.html", name) and "<h1>" in t for name, t in files.items()), [*files]


def test_nothing_keeps_a_node_from_going_on(tmp_path):
    """No job, no agent, one that hangs, a directory that cannot be made: the status is 0, in time."""
    ctl = tmp_path / "hung"
    ctl.write_text("#!/bin/sh\ntrap '' TERM\nsleep 1000\n")
    ctl.chmod(0o755)
    with subprocess.Popen(["/bin/sleep", "1000"], env={"SLURM_JOB_ID": "4711"}) as process:
        try:
            for hook, limit in (("unkillable-step", 10), ("epilog", 6)):
                job = {"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "SLURM_JOB_UID": "0"}
                files, took, _ = run(tmp_path / hook, hook, ctl=ctl, **job)
                # Twice the time is for a machine that does other things as well.
                assert took < 2 * limit, took
                assert hook == "epilog" or f"process {process.pid} sleep" in "".join(files.values()), files
                run(tmp_path / "none", hook, ctl="/nonexistent", **job)
                run(pathlib.Path("/proc/none"), hook, **job)
                for bad in ({}, {**job, "SLURM_JOB_ID": "../x"}, {**job, "SLURM_JOB_ID": ""}, {**job, "SLURM_JOB_ID": "$(reboot)"}):
                    assert run(tmp_path / "bad", hook, **bad)[0] == {}, bad
        finally:
            process.kill()


@pytest.mark.parametrize("stuck", ["SLURM_JOB_ID=4711", "SLURM_JOB_ID=none"])
def test_environment_that_cannot_be_read(tmp_path, stuck):
    """Whoever reads it does not come back: the others of the job are told, that some may be missing as well, and nobody is left."""
    reader = tmp_path / "reader"
    reader.write_text(f"""#!/bin/sh
for file; do
  case $file in /proc/*) ! grep -qsxz {stuck} "$file" || exec sleep 1000 ;; esac
done
exec grep "$@"
""")
    reader.chmod(0o755)
    hook = tmp_path / "hook"
    hook.write_text((HOOKS / "unkillable-step").read_text().replace(" grep -lsxz ", f" {reader} -lsxz "))
    hook.chmod(0o755)
    with contextlib.ExitStack() as stack:
        for name in ("4711", "none"):
            process = stack.enter_context(subprocess.Popen(["/bin/sleep", "1001"], env={"SLURM_JOB_ID": name, "OF": str(tmp_path)}))
            stack.callback(process.kill)
        files, took, _ = run(tmp_path / "out", hook, ctl="/nonexistent", SLURM_JOB_ID="4711", SLURM_STEP_ID="0")
        text = "".join(files.values())
        assert took < 20 and "processes of the job may be missing" in text, (took, text)
        assert ("sleep: S" in text) == (stuck == "SLURM_JOB_ID=none"), text
        wait_until(lambda: not [p for p in glob.glob("/proc/[0-9]*/cmdline") if is_reader(p, reader)], "the end of the readers")


# Whoever puts another mapping in the place of one holds the lock of its memory, and waits for the pages of the first, which a file
# system does not take.
BLOCKED = """import ctypes, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
fd = os.open(sys.argv[1], os.O_RDWR)
at = libc.mmap(None, 4096, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
ctypes.memset(at, 1, 4096)
print("begun", flush=True)
MAP_FIXED = 0x10
libc.mmap(at, 4096, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_FIXED, -1, 0)
print("over", flush=True)
"""


def can_be_read(pid):
    with subprocess.Popen(["cat", f"/proc/{pid}/environ"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as reader:
        try:
            reader.wait(1)
            return True
        except subprocess.TimeoutExpired:
            reader.kill()
            return False


def test_memory_that_is_locked(tmp_path):
    """What the kernel keeps nobody can read: the program ends in time all the same, says so, and tells of the others."""
    need_root()
    job = {"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0"}
    place = pathlib.Path("/run") / f"gpu-agent-test-locked-{os.getpid()}"
    with contextlib.ExitStack() as stack:
        # It ends when nobody serves its file any more.
        stack.callback(place.rmdir)
        started = []
        stack.callback(lambda: [process.communicate() for process in started])
        stack.enter_context(stuck_files(place))
        for words in (["/usr/bin/python3", "-c", BLOCKED, place / "write"], ["/bin/sleep", "1001"]):
            started.append(subprocess.Popen(words, env=job, stdout=subprocess.PIPE, text=True))
            stack.callback(started[-1].kill)
        process, other = started
        assert process.stdout.readline() == "begun\n"
        wait_until(lambda: not can_be_read(process.pid), "memory that is locked")
        files, took, _ = run(tmp_path / "out", "unkillable-step", ctl="/nonexistent", **job)
        text = "".join(files.values())
        # Twice the time is for a machine that does other things as well.
        assert took < 20 and f"process {other.pid} sleep" in text and "processes of the job may be missing" in text, (took, text)


def is_reader(path, reader):
    with contextlib.suppress(OSError):
        words = pathlib.Path(path).read_bytes()
        return str(reader).encode() in words or words == b"sleep\x001000\0"
    return False


def test_epilog_lists_records_of_the_job(tmp_path):
    with Scene() as s:
        job = {"SLURM_JOB_ID": "4711", "SLURM_JOB_UID": str(os.getuid()), "SLURMD_NODENAME": "n1"}
        assert run(tmp_path / "out", "epilog", socket=s.socket, **job)[0] == {}, "there is none"
        begun = int(time.time())
        done = s.ctl("snapshot", s.app.pid, "--record")
        assert done.returncode == 0, done
        files = run(tmp_path / "out", "epilog", socket=s.socket, SLURM_JOB_START_TIME=str(begun), **job)[0]
        assert [*files] == ["4711.records.n1.txt"] and str(s.app.pid) in files["4711.records.n1.txt"], files
        shutil.rmtree(tmp_path / "out")
        # Neither those of somebody else, nor older ones.
        assert run(tmp_path / "out", "epilog", socket=s.socket, **{**job, "SLURM_JOB_UID": "4242"})[0] == {}
        assert run(tmp_path / "out", "epilog", socket=s.socket, SLURM_JOB_START_TIME=str(begun + 3600), **job)[0] == {}


@contextlib.contextmanager
def with_hooks(monkeypatch, place):
    """Slurm with both programs; what it does not hand on to them stands in front of them."""
    for hook in ("unkillable-step", "epilog"):
        program = place / hook
        program.write_text("#!/bin/sh\n"
                           f"export GPU_AGENT_SLURM_DIR={place}/out GPU_AGENTCTL={BIN}/gpu-agentctl GPU_AGENT_SOCKET={place}/socket\n"
                           f"env | cut -d= -f1 | sort >{place}/{hook}.environment\nexec {HOOKS / hook}\n")
        program.chmod(0o755)
    (place / "out").mkdir()
    lines = f"UnkillableStepTimeout=2\nKillWait=1\nUnkillableStepProgram={place}/unkillable-step\nEpilog={place}/epilog\n"
    monkeypatch.setattr(test_slurm, "CONF", test_slurm.CONF.replace("UnkillableStepTimeout=5\n", lines))
    yield place / "out"


def test_slurm_itself(monkeypatch):
    """A task closes a file whose file system does not answer: it stays, whatever is sent to it."""
    need_root()
    place = pathlib.Path("/run") / f"gpu-agent-test-hooks-{os.getpid()}"
    place.mkdir()
    try:
        with with_hooks(monkeypatch, place) as out, test_slurm.cluster() as (s, slurm):
            (place / "socket").symlink_to(s.socket)
            script = place / "job.sh"
            script.write_text("#!/bin/sh\nexec srun -N1 -n1 /usr/bin/python3 -c 'import os\n"
                              f"kfd = os.open(\"{s.mount}/kfd\", os.O_RDWR)\n"
                              f"fd = os.open(\"{place}/stuck/flush\", os.O_RDWR)\nprint(1, flush=True)\nos.close(fd)'\n")
            script.chmod(0o755)
            with stuck_files(place / "stuck"):
                said = slurm.ask("sbatch", "-N1", "-n1", "--no-requeue", f"--output={place}/job.out", str(script))
                number = re.search(r"\d+", said).group()
                wait_until(lambda: (place / "job.out").exists() and "1" in (place / "job.out").read_text(), "the task", 40)
                pids = [int(p.split("/")[2]) for p in glob.glob("/proc/[0-9]*/cmdline")
                        if b"stuck/flush" in pathlib.Path(p).read_bytes() and b"srun" not in pathlib.Path(p).read_bytes()]
                slurm.ask("scancel", number)
                texts = wait_until(lambda: [p for p in out.glob(f"{number}.0.*.txt") if "exit status" in p.read_text()],
                                   "the program for unkillable steps", 60)
                text = texts[0].read_text()
                assert [p for p in pids if f"process {p} " in text] and re.search(r"thread \d+ python3: D .*, in \w+\n", text), (pids, text)
            # What they need is what Slurm tells them.
            assert {"SLURM_JOB_ID", "SLURM_STEP_ID"} <= {*(place / "unkillable-step.environment").read_text().split()}
            ended = place / "epilog.environment"
            wait_until(lambda: ended.exists() and {"SLURM_JOB_ID", "SLURM_JOB_UID"} <= {*ended.read_text().split()}, "the epilog", 60)
    finally:
        shutil.rmtree(place, ignore_errors=True)
