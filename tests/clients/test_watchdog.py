#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gpu_agent.watchdog in programs that stand still in different ways, with an agent, without one, and with one that does not answer."""
import contextlib
import glob
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
from unittest import SkipTest

if __name__ == "__main__":
    # Processes of other tests are none of the machine that is looked at as a whole.
    alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--"] if os.geteuid() == 0 else []
    os.execvp((alone + ["pytest-3"])[0], [*alone, "pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN, PATIENCE, Scene, descendants, need_root, wait_until

CLIENT = BIN.parent / "clients/python"
sys.path.insert(0, str(CLIENT))
from gpu_agent import watchdog_helper

PYTHON = "/usr/bin/python3"
# Each program says its lines on standard output; KFD makes it a process of the simulated GPU.
BEGIN = """import ctypes, os, signal, sys, threading, time
import gpu_agent.watchdog
kfd = os.open(os.environ["KFD"], os.O_RDWR) if "KFD" in os.environ else -1
def say(*words): print(*words, flush=True)
"""
STALL = BEGIN + """
watchdog = gpu_agent.watchdog.start(timeout=1, deadline=8, out=os.environ["OUT"])
for _ in range(20):
    watchdog.beat()
    time.sleep(0.01)
say("begun", watchdog.agent)
def train_step():
    {how}
train_step()
while True:
    watchdog.beat()
    time.sleep(0.01)
"""
# The lock of the interpreter is held in the first: no thread of Python runs.
STALLS = {"a C function that keeps the lock": "ctypes.PyDLL(None).sleep(100000)",
          "a system call": "os.read(os.pipe()[0], 1)",
          "two locks": "lock = threading.Lock(); lock.acquire(); lock.acquire()",
          "a loop": "exec('while True: pass')"}


class Job:
    """Programs with a watchdog, and what they write."""

    def __init__(self, directory, scene=None, socket_path=None):
        self.directory, self.scene, self.out = directory, scene, directory / "reports"
        self.socket = socket_path or (scene.socket if scene else directory / "no-agent")
        self.running = []

    def start(self, code, name="rank", python=PYTHON, words=(), flags=("-X", "dev", "-W", "error"), stderr=None, **environment):
        out, err = (open(self.directory / f"{name}.{kind}", "wb") for kind in ("out", "err"))
        env = {**os.environ, "PYTHONPATH": str(CLIENT), "PATH": f"{BIN}:{os.environ['PATH']}", "GPU_AGENT_SOCKET": str(self.socket),
               "OUT": str(self.out / f"{name}-%t"), **environment}
        if self.scene:
            env["KFD"] = str(self.scene.mount / "kfd")
        source = self.directory / f"{name}.py"
        source.write_text(code)
        process = subprocess.Popen([python, *flags, source, *words], env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=stderr or err,
                                   start_new_session=True, cwd=self.directory)
        out.close()
        err.close()
        self.running.append(process)
        process.said, process.complained = self.directory / f"{name}.out", self.directory / f"{name}.err"
        return process

    def wait_line(self, process, words, where="said"):
        path = getattr(process, where)

        def found():
            text = path.read_text()
            assert process.poll() is None or words in text, (process.returncode, text, process.complained.read_text())
            return [line for line in text.split("\n")[:-1] if words in line]
        return wait_until(found, f"{words!r} in {path}", 2 * PATIENCE)[0]

    def report(self, name="rank", n=1):
        """The texts of finished reports."""
        def finished():
            texts = [pathlib.Path(p).read_text() for p in sorted(glob.glob(f"{self.out}/{name}-*.txt"))]
            return len(texts) == n and not any("has not answered yet" in text for text in texts) and texts
        return wait_until(finished, f"{n} reports of {name}", 2 * PATIENCE)

    def stop(self):
        for process in self.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def job(directory, scene=None, socket_path=None):
    found = Job(directory, scene, socket_path)
    try:
        yield found
    finally:
        found.stop()


def helpers(pid):
    """Processes that watch that process, and what they have started."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = pathlib.Path(path).read_bytes().split(b"\0")
            if len(words) > 9 and words[3].endswith(b"watchdog_helper.py") and json.loads(words[8])["pid"] == pid:
                found.append(int(path.split("/")[2]))
    return found


def only_helper(process):
    return wait_until(lambda: helpers(process.pid), "the process that watches")[0]


# ---------------------------------------------------------------------- when


def judge(*steps, timeout=10.0, interval=1.0):
    """What it says at each step (time, counter)."""
    j = watchdog_helper.Judge(0.0, 0)
    return [j.is_new_stall(now, interval, counter, timeout) for now, counter in steps]


def test_a_stall_is_told_once_and_again_after_a_beat():
    still = [(float(t), 0) for t in range(1, 15)]
    assert judge(*still) == [t == 10 for t in range(1, 15)]
    assert judge(*((float(t), 1 if t >= 12 else 0) for t in range(1, 30))) == [t in (10, 22) for t in range(1, 30)]
    assert not any(judge(*((float(t), t) for t in range(1, 100))))
    assert not any(judge(*still, timeout=0.0)), "paused"


def test_time_that_nobody_has_watched_does_not_count():
    """As that of a machine that stood still: its process stood still as well."""
    assert judge((1.0, 0), (100.0, 0), (101.0, 0)) == [False] * 3
    assert judge((1.0, 0), (100.0, 0), *((100.0 + t, 0) for t in range(1, 10))) == [False] * 9 + [True, False]


def test_reports_of_an_hour_are_bounded():
    j = watchdog_helper.Judge(0.0, 0)
    assert [t for t in (1, 2, 3, 4, 3000, 3602, 3603, 3604, 3605, 7000) if j.may_report(float(t))] == [1, 2, 3, 3602, 3603, 3604]


# ---------------------------------------------------------------------- with an agent


@pytest.mark.parametrize("how", STALLS)
def test_report_names_the_line(tmp_path, how):
    with Scene(app=None) as s, job(tmp_path, s) as j:
        process = j.start(STALL.format(how=STALLS[how]), RANK="3", WORLD_SIZE="1")
        assert j.wait_line(process, "begun") == "begun True"
        text = j.report()[0]
        assert text.startswith(f"rank 3, process {process.pid} on ") and "has reported no progress for 1 s" in text, text
        assert "train_step" in text.partition("Threads of process")[0] and "rank.py" in text, text
        # It stands still, and so does nothing else: the page tells the same, and names what was written.
        page = wait_until(lambda: glob.glob(f"{j.out}/rank-*.html"), "page")[0]
        assert "train_step" in pathlib.Path(page).read_text()
        said = j.wait_line(process, "the report is", "complained")
        assert ".txt and " in said and page in said, said
        assert process.poll() is None


def test_process_without_a_gpu_has_its_threads(tmp_path):
    with Scene(app=None) as s, job(tmp_path, socket_path=s.socket) as j:
        j.start(STALL.format(how=STALLS["two locks"]))
        text = j.report()[0]
        assert "train_step" in text.partition("Threads of process")[0], text


def test_one_report_of_all_ranks(tmp_path):
    """Of three that hang one asks, and the others say who."""
    with Scene(app=None) as s, job(tmp_path, s) as j:
        # All of them have begun when the first one's time is over.
        code = STALL.format(how=STALLS["a system call"]).replace("timeout=1", "timeout=4")
        ranks = [j.start(code, f"rank{n}", RANK=str(n), WORLD_SIZE="3", MASTER_PORT="1", OUT=str(j.out / "job-%r")) for n in range(3)]
        for process in ranks:
            j.wait_line(process, "begun")
        text = j.report("job")[0]
        assert "gpu-agentctl job --all" in text and all(f"rank{n}" in text for n in range(3)), text
        for process in ranks:
            j.wait_line(process, "gpu-agent watchdog: ", "complained")
        said = "".join(p.complained.read_text() for p in ranks)
        others = re.findall("another process of the job writes|the report of the job is", said)
        assert said.count("the report is") == 1 and len(others) == 2, said
        assert len(glob.glob(f"{j.out}/job-*.txt")) == len(glob.glob(f"{j.out}/job-*.html")) == 1


def test_agent_that_comes_late_and_a_rank_that_is_killed(tmp_path):
    """There is no agent until three seconds after the stall, and the rank is killed while its report is made."""
    with Scene(app=None) as s, job(tmp_path, s, tmp_path / "late") as j:
        process = j.start(STALL.format(how=STALLS["a C function that keeps the lock"]).replace("deadline=8", "deadline=20"))
        assert j.wait_line(process, "begun") == "begun False"
        helper = only_helper(process)
        wait_until(lambda: glob.glob(f"{j.out}/*.txt"), "a first text")
        first = pathlib.Path(glob.glob(f"{j.out}/*.txt")[0]).read_text()
        assert "has not answered yet" in first and "train_step" in first, "what faulthandler has seen is there at once"
        time.sleep(1)
        (tmp_path / "late").symlink_to(s.socket)
        wait_until(lambda: glob.glob(f"{j.out}/*.html"), "a page")
        process.kill()
        process.wait()
        text = j.report()[0]
        assert "train_step" in text.partition("Threads of process")[0], text
        wait_until(lambda: helper not in helpers(process.pid), "the end of the helper")


# ---------------------------------------------------------------------- without one


def test_without_an_agent(tmp_path):
    with job(tmp_path) as j:
        process = j.start(STALL.format(how=STALLS["a C function that keeps the lock"]))
        assert j.wait_line(process, "begun") == "begun False"
        assert "no agent now (" in process.complained.read_text()
        text = j.report()[0]
        assert "no agent" in text and f'{j.directory}/rank.py", line ' in text and "train_step" in text.partition("faulthandler")[2], text
        assert re.search(r"1 python3: waits in \w+", text), text


def test_without_any_program_of_ours(tmp_path):
    with job(tmp_path) as j:
        j.start(STALL.format(how=STALLS["a loop"]), PATH="/usr/bin:/bin")
        text = j.report()[0]
        assert "gpu-agentctl was not on PATH" in text and "train_step" in text, text
        assert "1 python3: runs, has used the processor within 0.2 s" in text, text


def test_agent_that_does_not_answer(tmp_path):
    """The report is there at its deadline, with what the kernel tells."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "hung"))
        listener.listen(64)
        with job(tmp_path, socket_path=tmp_path / "hung") as j:
            process = j.start(STALL.format(how=STALLS["a system call"]).replace("deadline=8", "deadline=3"))
            begun = time.monotonic()
            text = j.report()[0]
            assert "train_step" not in text and "1 python3: waits in " in text, text
            # Twice the timeout and the deadline is for a machine that does other things as well.
            assert time.monotonic() - begun < 2 * (1 + 3), text
            wait_until(lambda: len(descendants(only_helper(process))) == 0, "the end of what was asked")


def test_program_that_does_not_end(tmp_path):
    """In place of gpu-agentctl, one that hangs and ignores what can be ignored; its children go with it."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "gpu-agentctl").write_text(f"#!/bin/sh\ntrap '' TERM INT\necho $$ >{tmp_path}/asked\n"
                                           "echo half a line\nsleep 1000 & sleep 1000\n")
    (programs / "gpu-agentctl").chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listener, job(tmp_path) as j:
        listener.bind(str(j.socket))
        listener.listen(64)
        process = j.start(STALL.format(how=STALLS["a system call"]).replace("deadline=8", "deadline=2"),
                          PATH=f"{programs}:{os.environ['PATH']}")
        text = j.report()[0]
        assert "did not end in time" in text and "half a line" in text and f"Threads of process {process.pid}" in text, text
        asked = (tmp_path / "asked").read_text().strip()
        wait_until(lambda: not [p for p in glob.glob("/proc/[0-9]*/stat") if is_in_session(p, asked)], "the end of what was asked")


def is_in_session(path, session):
    try:
        words = pathlib.Path(path).read_text().rpartition(")")[2].split()
        return words[3] == session and words[0] != "Z"
    except OSError:
        return False


def test_what_a_program_preloads_is_its_own(tmp_path):
    """It may be what is stuck, or not be there any more."""
    with Scene(app=None) as s, job(tmp_path, s) as j:
        process = j.start(STALL.format(how=STALLS["a system call"]), LD_PRELOAD="/nonexistent.so")
        j.report()
        assert process.complained.read_text().count("cannot be preloaded") == 1, process.complained.read_text()


# ---------------------------------------------------------------------- where nothing can be written


def test_disk_is_full(tmp_path):
    """The text is on standard error then, and no half of it in a file."""
    need_root()
    small = tmp_path / "reports"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "none", small], check=True)
    try:
        with contextlib.suppress(OSError), open(small / "full", "wb") as file:
            file.write(bytes(1 << 16))
        with Scene(app=None) as s, job(tmp_path, s) as j:
            process = j.start(STALL.format(how=STALLS["a system call"]))
            j.wait_line(process, "No space left on device; what it would have said:", "complained")
            wait_until(lambda: "train_step" in process.complained.read_text(), "the text")
            assert sorted(os.listdir(small)) == ["full"]
    finally:
        subprocess.run(["umount", "-l", small], check=True)


def test_directory_that_cannot_be_made(tmp_path):
    with job(tmp_path) as j:
        process = j.start(STALL.format(how=STALLS["a loop"]), OUT="/proc/none/%r")
        j.wait_line(process, "what it would have said:", "complained")
        wait_until(lambda: "train_step" in process.complained.read_text(), "the text")


def test_nobody_reads_what_it_says(tmp_path):
    """Whoever writes is given up at the deadline, the watching goes on, and the program is none the wiser."""
    theirs, ours = os.pipe()
    with job(tmp_path) as j, open(theirs), open(ours, "wb"):
        code = STALL.format(how="time.sleep(4)").replace("deadline=8", "deadline=1").replace("while True:", "say('goes on')\nwhile True:")
        process = j.start(code, OUT="/proc/none/%r", stderr=ours)
        j.wait_line(process, "begun")
        os.set_blocking(ours, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(ours, bytes(4096))
        os.set_blocking(ours, True)
        helper = only_helper(process)
        wait_until(lambda: alive_children(helper), "a report begins")
        j.wait_line(process, "goes on")
        wait_until(lambda: not alive_children(helper), "the end of the report")
        assert helpers(process.pid) == [helper] and process.poll() is None


def alive_children(pid):
    return [c for c in descendants(pid) if pathlib.Path(f"/proc/{c}/stat").read_text().rpartition(")")[2].split()[0] != "Z"]


# ---------------------------------------------------------------------- the program around it

QUIET = BEGIN + """
before = [signal.getsignal(n) for n in range(1, 65)], threading.active_count(), len(os.listdir("/proc/self/fd"))
watchdog = gpu_agent.watchdog.start(timeout=60, job="this")
say("watching", watchdog.watching)
try:
    os.waitpid(-1, os.WNOHANG)
    say("has a child")
except ChildProcessError:
    pass
now = [signal.getsignal(n) for n in range(1, 65)], threading.active_count()
say("same", now == before[:2])
for n in range(30):
    with gpu_agent.watchdog.watch(60) as another:
        another.beat()
    another.beat()
    another.stop()
threads = [threading.Thread(target=lambda: [watchdog.beat() for _ in range(1000)]) for _ in range(64)]
[t.start() for t in threads], [t.join() for t in threads]
watchdog.stop()
watchdog.beat()
say("after", watchdog.watching, len(os.listdir("/proc/self/fd")) == before[2])
sys.stdin.read()
"""


def pythons():
    return [f"3.{minor}" for minor in range(9, 16)]


def interpreter(version):
    places = [f"/usr/bin/python{version}", *glob.glob(f"/root/.pyenv/versions/{version}.*/bin/python3")]
    found = [p for p in places if os.access(p, os.X_OK)]
    if not found:
        raise SkipTest(f"no Python {version}")
    return found[0]


@pytest.mark.parametrize("version", pythons())
def test_leaves_no_trace_in_the_program(tmp_path, version):
    """No child, thread, handler of a signal or descriptor; nothing that -X dev and -W error would tell."""
    with job(tmp_path) as j:
        process = j.start(QUIET, python=interpreter(version), PATH="/usr/bin:/bin")
        assert process.wait(3 * PATIENCE) == 0, process.complained.read_text()
        assert process.said.read_text() == "watching True\nsame True\nafter False True\n", process.said.read_text()
        told = [line for line in process.complained.read_text().split("\n") if line and "no agent now" not in line]
        assert not told, told
        wait_until(lambda: not helpers(process.pid), "the end of all helpers")


@pytest.mark.parametrize("version", pythons())
def test_each_python_sees_a_stall(tmp_path, version):
    with job(tmp_path) as j:
        j.start(STALL.format(how=STALLS["a C function that keeps the lock"]), python=interpreter(version))
        assert "train_step" in j.report()[0]


def test_a_child_does_not_beat_for_its_parent(tmp_path):
    code = STALL.replace("def train_step", """if os.fork() == 0:
    say("child", os.getpid())
    while True:
        watchdog.beat()
        time.sleep(0.01)
def train_step""").format(how=STALLS["a system call"])
    with Scene(app=None) as scene, job(tmp_path, scene) as j:
        process = j.start(code)
        child = int(j.wait_line(process, "child").split()[1])
        helper = only_helper(process)
        text = j.report()[0]
        assert "It has gone on" not in text, text
        # Nor does it keep the helper, as a worker that outlives its program would.
        process.kill()
        process.wait()
        assert os.path.exists(f"/proc/{child}")
        wait_until(lambda: helper not in helpers(process.pid), "the end of the helper")


def test_another_program_is_not_watched(tmp_path):
    """After exec the process is there, and nobody beats."""
    code = STALL.format(how="os.execv('/bin/sleep', ['sleep', '1000'])").replace("timeout=1", "timeout=60")
    with job(tmp_path) as j:
        process = j.start(code)
        j.wait_line(process, "begun")
        wait_until(lambda: os.readlink(f"/proc/{process.pid}/exe").endswith("sleep"), "exec")
        wait_until(lambda: not helpers(process.pid), "the end of the helper")
        assert process.poll() is None


def test_a_killed_program_has_no_helper(tmp_path):
    with job(tmp_path) as j:
        process = j.start(STALL.format(how="pass").replace("timeout=1", "timeout=60"))
        j.wait_line(process, "begun")
        only_helper(process)
        process.kill()
        process.wait()
        wait_until(lambda: not helpers(process.pid), "the end of the helper")
        assert not glob.glob(f"{j.out}/*")


def test_what_is_sent_to_the_group_is_for_the_program(tmp_path):
    """One that keeps running after SIGTERM, as to save its state, is watched on."""
    handlers = "for n in (1, 2, 15): signal.signal(n, lambda *a: None)\n"
    code = STALL.format(how=STALLS["a system call"]).replace("watchdog = ", handlers + "watchdog = ")
    with job(tmp_path) as j:
        process = j.start(code)
        j.wait_line(process, "begun")
        helper = only_helper(process)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.killpg(process.pid, number)
        assert j.report() and helpers(process.pid) == [helper]


def test_nothing_is_imported_at_the_stall(tmp_path):
    """It could wait for the very file system that the program waits for."""
    with Scene(app=None) as s, job(tmp_path, s) as j:
        process = j.start(STALL.format(how="[time.sleep(0.01) for _ in range(100) if not os.path.exists(sys.argv[1])]; "
                                           "exec('while not os.path.exists(sys.argv[1]): watchdog.beat(); time.sleep(0.01)'); "
                                           "time.sleep(1000)"), words=[tmp_path / "go"])
        j.wait_line(process, "begun")
        helper = only_helper(process)
        log = tmp_path / "calls"
        with subprocess.Popen(["strace", "-f", "-qq", "-e", "trace=openat,execve", "-o", log, "-p", str(helper)],
                              stderr=subprocess.PIPE) as strace:
            state = pathlib.Path(f"/proc/{helper}/status")
            wait_until(lambda: re.search(r"TracerPid:\t[1-9]", state.read_text()) or strace.poll() is not None, "strace")
            if strace.poll() is not None:
                raise SkipTest(f"strace: {strace.stderr.read().decode().strip()}")
            (tmp_path / "go").touch()
            j.report()
            strace.terminate()
        calls = log.read_text()
        assert "execve" in calls and not re.findall(r'.*\.pyc?".*|.*lib-dynload.*', calls), calls


def test_beats_after_a_report(tmp_path):
    """The next stall is told as well, up to three in an hour."""
    code = STALL.partition("def train_step")[0] + """
for n in range(5):
    time.sleep(2.5)
    for _ in range(20):
        watchdog.beat()
        time.sleep(0.01)
say("stalls", watchdog.stalls)
time.sleep(1000)
"""
    with job(tmp_path) as j:
        process = j.start(code.replace("deadline=8", "deadline=1").replace("%t", ""), PATH="/usr/bin:/bin")
        # A stall may be two, where the machine gives this program no time in between.
        assert int(j.wait_line(process, "stalls").split()[1]) >= 5
        told = process.complained.read_text().count("the report is ")
        assert told == 3, process.complained.read_text()


def test_sections_and_pauses(tmp_path):
    code = BEGIN + """
watchdog = gpu_agent.watchdog.start(timeout=0.5, deadline=2, out=os.environ["OUT"])
with watchdog.section("eval\\033[31m", timeout=60):
    time.sleep(2)
watchdog.pause()
time.sleep(2)
watchdog.resume()
watchdog.beat()
say("stalls", watchdog.stalls)
@watchdog.section("checkpoint of epoch 3", timeout=1)
def save():
    time.sleep(1000)
save()
"""
    with job(tmp_path) as j:
        process = j.start(code, PATH="/usr/bin:/bin")
        assert j.wait_line(process, "stalls") == "stalls 0"
        text = j.report()[0]
        assert "for 1 s, in section checkpoint of epoch 3\n" in text and "save" in text, text


def test_report_on_request(tmp_path):
    code = BEGIN + """
watchdog = gpu_agent.watchdog.start(timeout=600, deadline=8, out=os.environ["OUT"])
say("asked", watchdog.report(wait=30), watchdog.stalls)
"""
    with Scene(app=None) as s, job(tmp_path, s) as j:
        process = j.start(code)
        assert j.wait_line(process, "asked") == "asked True 0"
        text = j.report()[0]
        assert "was asked for a report" in text and "rank.py" in text, text


@pytest.mark.parametrize("how", ["sys.executable = '/nonexistent'", "sys.executable = '/bin/false'", "sys.executable = None",
                                 "del os.pidfd_open"])
def test_never_keeps_a_program_from_starting(tmp_path, how):
    code = BEGIN + how + """
watchdog = gpu_agent.watchdog.start(timeout=1)
watchdog.beat()
with watchdog.section("x", timeout=3):
    watchdog.pause()
    watchdog.resume()
say(watchdog.watching, watchdog.report(wait=5), watchdog.reason)
watchdog.stop()
"""
    with job(tmp_path) as j:
        process = j.start(code, flags=())
        assert process.wait(2 * PATIENCE) == 0, process.complained.read_text()
        assert process.said.read_text().startswith("False False nobody watches: "), process.said.read_text()
        assert "nobody watches" in process.complained.read_text()


def test_what_the_environment_says(tmp_path):
    code = BEGIN + """
watchdog = gpu_agent.watchdog.start()
say(watchdog.watching, watchdog._timeout, watchdog.reason)
for bad in ({"job": "all"}, {"timeout": -1}, {"deadline": 0}, {"job": "slurm"}):
    try:
        gpu_agent.watchdog.start(**bad)
        say("taken", bad)
    except ValueError:
        pass
"""
    with job(tmp_path) as j:
        for value, want in (("0", "False 0.0 it is turned off\n"), ("77", "True 77.0 "), ("soon", "True 120.0 "), ("-5", "True 120.0 ")):
            process = j.start(code, GPU_AGENT_WATCH=value, PATH="/usr/bin:/bin")
            assert process.wait(2 * PATIENCE) == 0, process.complained.read_text()
            assert process.said.read_text().startswith(want), process.said.read_text()
            assert ("is no number of seconds" in process.complained.read_text()) == (value in ("soon", "-5"))


@pytest.mark.parametrize("version", pythons())
@pytest.mark.parametrize("how", ["pass", "gpu_agent.watchdog.start(timeout=60)", "faulthandler.dump_traceback_later(60)"])
def test_a_child_ends_without_an_agent(tmp_path, version, how):
    """It has no thread of faulthandler to wait for, and its parent's goes on."""
    code = BEGIN + f"""import faulthandler
watchdog = gpu_agent.watchdog.start(timeout=3, deadline=1, out=os.environ["OUT"])
def work(end):
    if os.fork() == 0:
        {how}
        end(0)
children = [threading.Thread(target=work, args=(os._exit,)) for _ in range(4)]
work(sys.exit)
[t.start() for t in children], [t.join() for t in children]
say("ended", [os.wait()[1] for _ in range(5)])
def train_step():
    time.sleep(1000)
train_step()
"""
    with job(tmp_path) as j:
        process = j.start(code, python=interpreter(version), flags=(), PATH="/usr/bin:/bin")
        assert j.wait_line(process, "ended") == "ended [0, 0, 0, 0, 0]"
        assert "train_step" in j.report()[0].partition("faulthandler")[2]


def test_a_beat_while_it_forks(tmp_path):
    """In the thread that forks, as from a handler of a signal: the child has no timer to wait for, and its parent's goes on."""
    code = "import os\nos.register_at_fork(before=lambda: watchdog.beat())\n" + BEGIN + """
watchdog = gpu_agent.watchdog.start(timeout=3, deadline=1, out=os.environ["OUT"])
time.sleep(1)
if os.fork() == 0:
    sys.exit(0)
say("ended", os.wait()[1])
def train_step():
    time.sleep(1000)
train_step()
"""
    with job(tmp_path) as j:
        process = j.start(code, flags=(), PATH="/usr/bin:/bin")
        assert j.wait_line(process, "ended") == "ended 0"
        assert "train_step" in j.report()[0].partition("faulthandler")[2]


def test_a_program_that_ignores_its_children_and_blocks_signals(tmp_path):
    code = STALL.format(how="[(time.sleep(2.5), watchdog.beat()) for _ in range(2)]; time.sleep(1000)").replace("deadline=8", "deadline=1")
    code = code.replace("watchdog = ", "signal.signal(17, signal.SIG_IGN); signal.pthread_sigmask(0, signal.valid_signals())\nwatchdog = ")
    with job(tmp_path) as j:
        process = j.start(code, PATH="/usr/bin:/bin")
        assert len(j.report(n=3)) == 3, "the helper is there after the first"
        masks = re.findall(r"^Sig(?:Blk|Ign):\t(\w+)", pathlib.Path(f"/proc/{only_helper(process)}/status").read_text(), re.M)
        assert not int(masks[0], 16) and not int(masks[1], 16) & 1 << 16, masks
        assert "Traceback" not in process.complained.read_text()


def test_beat_raises_nothing(tmp_path):
    """Where no thread can be started; while another thread stops it; and with times that are longer than any machine runs."""
    code = BEGIN + """
import faulthandler
def no_thread(*_, **__): raise RuntimeError("unable to start watchdog thread")
later, faulthandler.dump_traceback_later = faulthandler.dump_traceback_later, no_thread
with gpu_agent.watchdog.watch(60) as watchdog:
    watchdog.beat()
    say("first", watchdog.watching)
faulthandler.dump_traceback_later = later
sys.setswitchinterval(1e-6)
failed, over = [], []
def beat():
    while not over:
        try:
            current[0].beat()
        except BaseException as error:
            failed.append(error)
current = [watchdog]
threads = [threading.Thread(target=beat) for _ in range(4)]
[t.start() for t in threads]
for _ in range(20):
    current[0] = gpu_agent.watchdog.start(timeout=0.01)
    time.sleep(0.01)
    current[0].stop()
over.append(1)
[t.join() for t in threads]
say("failed", failed)
with gpu_agent.watchdog.watch(float("inf")) as watchdog, watchdog.section("x", float("inf")):
    watchdog.beat()
    say("last", watchdog.watching)
"""
    with job(tmp_path) as j:
        process = j.start(code, flags=(), PATH="/usr/bin:/bin", GPU_AGENT_WATCH="-1")
        assert process.wait(3 * PATIENCE) == 0, process.complained.read_text()
        assert process.said.read_text() == "first True\nfailed []\nlast True\n", process.said.read_text()
        assert "has no lines of Python: unable to start" in process.complained.read_text()


@pytest.mark.parametrize("kind", ["fork", "spawn", "forkserver"])
def test_workers_of_multiprocessing(tmp_path, kind):
    """Each is left alone: none has a helper, and none keeps one."""
    code = BEGIN + f"""
import multiprocessing
def work(n):
    return n + len(gpu_agent.watchdog._running)
if __name__ == "__main__":
    watchdog = gpu_agent.watchdog.start(timeout=60)
    with multiprocessing.get_context("{kind}").Pool(3) as pool:
        say(pool.map(work, range(5)), watchdog.watching)
    watchdog.stop()
"""
    with job(tmp_path) as j:
        process = j.start(code, flags=(), PATH="/usr/bin:/bin")
        assert process.wait(2 * PATIENCE) == 0, process.complained.read_text()
        assert process.said.read_text() == "[0, 1, 2, 3, 4] True\n"
        wait_until(lambda: not helpers(process.pid), "the end of the helper")
