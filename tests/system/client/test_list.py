#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a list tells of each process: its rank, its arguments and when it began, to whom, and with processes that never answer."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import BIN, PATIENCE, Scene, ids_of, need_root, wait_until
from stuckfiles import stuck_files

OWNER, BYSTANDER = 54501, 54503
RANK = {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "TORCHELASTIC_RUN_ID": "train-7"}
# What uses a GPU of NVIDIA has mapped a file of that name.  The second mapping locks its memory until its pages are written.
BLOCKED = """import ctypes, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mmap(None, 4096, mmap.PROT_READ, mmap.MAP_PRIVATE, os.open(sys.argv[2], os.O_RDONLY), 0)
at = libc.mmap(None, 4096, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, os.open(sys.argv[1], os.O_RDWR), 0)
ctypes.memset(at, 1, 4096)
print("begun", flush=True)
MAP_FIXED = 0x10
libc.mmap(at, 4096, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_FIXED, -1, 0)
"""


@contextlib.contextmanager
def scene(monkeypatch, user=OWNER):
    need_root()
    with monkeypatch.context() as m:
        for name, value in RANK.items():
            m.setenv(name, value)
        s = Scene(user_mode=False, app_user=user, start_agent=False)
        s.__enter__()
    with contextlib.ExitStack() as stack:
        stack.push(s.__exit__)
        (s.directory / "agentd.conf").write_text("[agent]\nuser = nobody\nsocket_group =\n")
        s.start_agentd(user_mode=False)
        yield s


def list_for(s, uid):
    with ids_of(uid):
        return s.connect().call("process.list")


def find(listed, pid):
    process, = [p for p in listed["processes"] if p["pid"] == pid]
    return process


def arguments(pid):
    return pathlib.Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").replace("\0", " ")


def start_ticks(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def test_rank_and_arguments_are_told(monkeypatch):
    rank = {"rank": 3, "from": "RANK", "local_rank": 1, "world_size": 8, "job": "train-7"}
    for user in (OWNER, 0):
        with scene(monkeypatch, user) as s:
            listed = list_for(s, user)
            found = find(listed, s.app.pid)
            assert found.get("rank") == rank and found["command_line"] == arguments(s.app.pid), found
            assert found["start_ticks"] == start_ticks(s.app.pid) and "command_line_cut" not in found, found
            assert "missing" not in listed, listed
    with scene(monkeypatch, 0) as s:
        text = s.ctl("list", "--command-line").stdout
        assert "RANK" in text and "3 of 8" in text and arguments(s.app.pid) in text, text
        found = find(json.loads(s.ctl("list", "--command-line", "-j").stdout), s.app.pid)
        assert found.get("rank") == rank, found


def test_the_environment_is_not_for_strangers(monkeypatch):
    """Arguments of all processes can be seen by everybody; the environment, only by its own user."""
    with scene(monkeypatch) as s:
        for uid in (BYSTANDER, 0):
            listed = list_for(s, uid)
            found = find(listed, s.app.pid)
            assert found["debuggable"] is (uid == 0) and "rank" not in found, found
            assert found["command_line"] == arguments(s.app.pid) and found["start_ticks"] == start_ticks(s.app.pid), found
            assert "missing" not in listed, listed


def test_in_a_container_nothing_is_told_of_those_outside(monkeypatch):
    with scene(monkeypatch) as s:
        argv = ["unshare", "--pid", "--fork", "--", "setpriv", f"--reuid={OWNER}", f"--regid={OWNER}", "--clear-groups",
                BIN / "gpu-agentctl", "--socket", s.socket, "list", "-j"]
        run = subprocess.run(argv, text=True, capture_output=True, timeout=PATIENCE, check=False)
        assert run.returncode == 0, run
        found = find(json.loads(run.stdout), s.app.pid)
        assert "rank" not in found and "command_line" not in found, found


def test_a_long_command_line_is_cut(monkeypatch):
    with scene(monkeypatch) as s:
        app = s.start_app("runtime on; queues 1; spin", user=OWNER, name="long", extra=["--kfd", s.mount / "kfd"] * 200)
        found = find(list_for(s, OWNER), app.pid)
        assert found["command_line_cut"] is True and len(found["command_line"]) == 4096, found


def inspectors(s):
    found = []
    for pid in s.worker_pids():
        with contextlib.suppress(OSError):
            if "inspect" in arguments(pid):
                found.append(pid)
    return found


def can_be_read(pid):
    with subprocess.Popen(["cat", f"/proc/{pid}/environ"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as reader:
        try:
            reader.wait(1)
            return True
        except subprocess.TimeoutExpired:
            reader.kill()
            return False


@contextlib.contextmanager
def blocked_processes(directory, n):
    """Processes that seem to use a GPU, and whose memory is locked."""
    places = [pathlib.Path("/run") / f"gpu-agent-test-list-{os.getpid()}-{i}" for i in range(n)]
    library = directory / "libcuda.so.1"
    library.write_bytes(bytes(4096))
    with contextlib.ExitStack() as stack:
        started = []
        for place in places:
            stack.callback(place.rmdir)
        # They end when nobody serves their files any more.
        stack.callback(lambda: [process.communicate() for process in started])
        for place in places:
            stack.enter_context(stuck_files(place))
            started.append(subprocess.Popen(["/usr/bin/python3", "-c", BLOCKED, place / "write", library], env={"RANK": "5"},
                                            stdout=subprocess.PIPE, text=True))
            stack.callback(started[-1].kill)
        for process in started:
            assert process.stdout.readline() == "begun\n"
        yield [process.pid for process in started]


def check_told(listed, pid):
    """It is in the list where the kernel tells what it has mapped, and in any case something is missing for it."""
    missing = [m for m in listed["missing"] if m.startswith(f"process {pid}:")]
    assert len(missing) == 1, (pid, listed["missing"])
    row = [p for p in listed["processes"] if p["pid"] == pid]
    if row:
        assert "its command line and rank were not told in time" in missing[0], missing
        assert "command_line" not in row[0] and "rank" not in row[0] and row[0]["start_ticks"] == start_ticks(pid), row
    else:
        assert "it may use a GPU" in missing[0], missing


# A crowd that seems to use a GPU, each of them with the same long argument.
CROWD = """import ctypes, mmap, os, sys
libc = ctypes.CDLL(None)
file = os.open(sys.argv[1], os.O_RDONLY)
place = mmap.mmap(file, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ)
for _ in range(int(sys.argv[2])):
    if not os.fork():
        libc.prctl(1, 9)
        libc.pause()
print("begun", flush=True)
libc.pause()
"""


def test_a_crowd_of_long_command_lines_is_listed_without_them(monkeypatch):
    """Command lines have 4 MiB in a list, so that nobody can make it too long to be told; the client's own come first."""
    with scene(monkeypatch, OWNER) as s:
        library = s.directory / "libcuda.so.1"
        library.write_bytes(bytes(4096))
        os.chmod(s.directory, 0o755)
        crowd = s.start("crowd", [sys.executable, "-c", CROWD, library, 1100, "x" * 4096], user=BYSTANDER, group=BYSTANDER, extra_groups=[])
        crowd.wait_line(words="begun")
        listed = list_for(s, 0)
        others = [p for p in listed["processes"] if p["uid"] == BYSTANDER]
        without = [p for p in others if "command_line" not in p]
        assert len(others) == 1101 and 0 < len(without) < 200, (len(others), len(without))
        left_out, = [m for m in listed["missing"] if "are left out, because there are too many" in m]
        assert f" {len(without)} " in left_out and not listed["complete"], left_out
        assert find(list_for(s, OWNER), s.app.pid)["command_line"] == arguments(s.app.pid)


def check_doctor(s, pid):
    """It says why nobody can look at the process, and goes on with what needs no memory."""
    done = s.ctl("doctor", str(pid), "-j")
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert done.returncode == 5 and checks["memory"]["verdict"] == "fail" and str(pid) in checks["memory"]["fix"], done
    assert {"process", "rights", "tracer"} <= set(checks), checks
    assert "memory" not in s.ctl("doctor", str(s.app.pid)).stdout


def test_processes_that_never_answer_keep_no_list(monkeypatch):
    with scene(monkeypatch, 0) as s:
        s.rpc.call("process.list")
        with blocked_processes(s.directory, 3) as pids:
            wait_until(lambda: not any(can_be_read(pid) for pid in pids), "memory that is locked")
            begun = time.monotonic()
            listed = list_for(s, 0)
            took = time.monotonic() - begun
            print(f"  {took * 1000:.0f} ms with {len(pids)} processes whose memory is locked")
            assert listed["complete"] is False
            for pid in pids:
                check_told(listed, pid)
            found = find(listed, s.app.pid)
            assert found["rank"]["rank"] == 3 and found["command_line"] == arguments(s.app.pid), found
            # Half of what a list may take is for a machine that does other things as well.
            assert took < 5, took
            done = s.ctl("list", "--command-line")
            assert done.returncode == 0 and f"process {pids[0]}:" in done.stderr and "3 of 8" in done.stdout, done
            check_doctor(s, pids[0])
            # What was left behind ends with its process, while the memory is still locked.
            wait_until(lambda: not inspectors(s), "the workers have ended")
            assert not can_be_read(pids[0])
        wait_until(lambda: "missing" not in list_for(s, 0), "nothing is missing any more")
