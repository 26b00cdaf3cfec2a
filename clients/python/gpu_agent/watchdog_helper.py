# SPDX-License-Identifier: MIT
"""The process that watches, for gpu_agent.watchdog: a program without any other module of this package.

usage: watchdog_helper.py MEMORY PIDFD PIPE TRACEBACK WHAT       four descriptors, the last may be -1, and JSON

It forks at once, so that it is no child of the process that it watches.  It ends when that process ends, executes another
program, or closes its end of the pipe.  A report is made by a child of its own, which is killed at the deadline: whatever
a file system, a terminal or an agent does, the watching goes on.
"""
from __future__ import annotations

import collections
import fcntl
import json
import mmap
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import time
from typing import Any, Deque, Dict, List, NoReturn, Optional, Tuple

#: Cells of eight bytes: what the process says, and what is said to it.
COUNTER, TIMEOUT_MS, STALLS, REPORTS = range(4)
CELLS = 8
#: The name of the section that the process is in.
NAME_AT, NAME_BYTES = 8 * CELLS, 64
MEMORY_BYTES = NAME_AT + NAME_BYTES
REPORTS_PER_HOUR = 3
#: Bytes of a text of somebody else that are kept.
TEXT_MAX = 1 << 18
#: Bytes that are printed where no file can be written.
PRINTED_MAX = 1 << 14
THREADS_MAX = 4096
STATES = {"R": "runs", "S": "waits", "D": "waits in the kernel and cannot be killed", "T": "is stopped by a signal",
          "t": "is stopped by a debugger", "Z": "has ended", "X": "has ended", "I": "is idle"}


def name_of(memory: Any) -> str:
    return bytes(memory[NAME_AT:]).split(b"\0")[0].decode(errors="replace")


def printable(text: str) -> str:
    """What a program says may not reach a terminal as it is."""
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)


# ---------------------------------------------------------------------- when

class Judge:
    """Is this a stall?  Knows nothing but what it is asked with."""

    def __init__(self, now: float, counter: int) -> None:
        self.counter, self.since, self.last = counter, now, now
        self.told = False
        self.reports: Deque[float] = collections.deque(maxlen=REPORTS_PER_HOUR)

    def is_new_stall(self, now: float, interval: float, counter: int, timeout: float) -> bool:
        """Once for each stall.  `interval` is what the last wait was to take."""
        lost, self.last = now - self.last - interval, now
        if lost > max(interval, 0.5):
            # Nobody has watched, as while the machine stood still: then the process had no time either.
            self.since += lost
        if counter != self.counter or timeout <= 0:
            self.counter, self.since, self.told = counter, now, False
            return False
        if self.told or now - self.since < timeout:
            return False
        self.told = True
        return True

    def may_report(self, now: float) -> bool:
        if len(self.reports) == REPORTS_PER_HOUR and now - self.reports[0] < 3600:
            return False
        self.reports.append(now)
        return True


# ---------------------------------------------------------------------- what the kernel tells

def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(4096).decode(errors="replace").strip()
    except OSError:
        return ""


def _thread(pid: int, tid: str) -> Optional[Tuple[str, str, str, int]]:
    """Its name, state, place in the kernel, and ticks of the processor."""
    name, _, rest = _read(f"/proc/{pid}/task/{tid}/stat").rpartition(")")
    words = rest.split()
    if len(words) < 13:
        return None
    return name.partition("(")[2], words[0], _read(f"/proc/{pid}/task/{tid}/wchan"), int(words[11]) + int(words[12])


def threads(pid: int, seconds: float = 0.2) -> str:
    """Equal ones in one line."""
    try:
        tids = os.listdir(f"/proc/{pid}/task")[:THREADS_MAX]
    except OSError as error:
        return f"  process {pid}: {error.strerror}\n"
    before = {tid: _thread(pid, tid) for tid in tids}
    time.sleep(seconds)
    found: Dict[Tuple[str, str, str, bool], int] = collections.Counter()
    for tid in tids:
        now, old = _thread(pid, tid), before[tid]
        if now:
            place = now[2] if now[1] in "SD" and now[2] != "0" else ""
            found[now[0], now[1], place, bool(old and now[3] > old[3])] += 1
    lines = []
    for (name, state, place, has_run), n in sorted(found.items(), key=lambda item: (-item[1], item[0])):
        what = STATES.get(state, f"is in state {state}")
        lines.append(f"  {n:5} {name}: {what}{f' in {place}' if place else ''}"
                     f"{f', has used the processor within {seconds:g} s' if has_run else ''}\n")
    return printable("".join(lines))


# ---------------------------------------------------------------------- the report

class Report:
    """One report, in a process of its own."""

    def __init__(self, what: Dict[str, Any], cells: Any, memory: Any, traceback: int, why: str) -> None:
        self.what, self.cells, self.memory, self.traceback = what, cells, memory, traceback
        self.pid = int(what["pid"])
        self.begun, self.end = time.monotonic(), time.monotonic() + float(what["deadline"])
        self.counter = int(cells[COUNTER])
        self.lock = -1
        self.host = socket.gethostname()
        who = f"rank {what['rank']}, " if what["rank"] else ""
        self.title = printable(f"{who}process {self.pid} on {self.host}, {why}")
        self.stem = self._stem()

    def _stem(self) -> str:
        stem = str(self.what["out"])
        values = {"%r": f"rank{self.what['rank']}" if self.what["rank"] else f"process{self.pid}", "%h": self.host,
                  "%p": str(self.pid), "%t": time.strftime("%Y%m%dT%H%M%S", time.gmtime())}
        for mark, value in values.items():
            stem = stem.replace(mark, value.replace("/", "_"))
        return stem

    def say(self, text: str) -> None:
        try:
            os.write(2, f"gpu-agent watchdog: {text}\n".encode(errors="replace"))
        except OSError:
            pass

    def is_mine(self) -> bool:
        """Of all that see the same hang, one asks the job.  The lock is the kernel's, and ends with whoever has it."""
        if self.what["words"][0] == "--pids":
            return True
        job = "".join(c if c.isalnum() or c in "-_" else "_" for c in str(self.what["job"]))[:100]
        where = f"-{self.host}" if self.what["words"][0] == "--all" else ""
        try:
            os.makedirs(os.path.dirname(self.stem), exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self.lock = os.open(f"{os.path.dirname(self.stem)}/.gpu-agent-watchdog-{job}{where}", flags, 0o600)
        except OSError:
            return True  # The files will tell why.
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.say(f"{self.title}; another process of the job writes a report now")
            return False
        age = time.time() - os.fstat(self.lock).st_mtime
        last = os.read(self.lock, 4096).decode(errors="replace")
        if last and age < int(self.cells[TIMEOUT_MS]) / 1000:
            self.say(printable(f"{self.title}; the report of the job is {last}"))
            return False
        return True

    def note_done(self) -> None:
        """For those that come later."""
        if self.lock >= 0:
            os.ftruncate(self.lock, 0)
            os.pwrite(self.lock, f"{self.stem}.txt".encode(errors="replace"), 0)

    def ask(self, words: List[str], seconds: float) -> Tuple[int, str]:
        """Run gpu-agentctl, in a session of its own: what a launcher sends to a group is not meant for it.
        @return its exit status, or -1 at the end of its time, and what it said."""
        text = os.memfd_create("text", os.MFD_CLOEXEC)
        try:
            child = subprocess.Popen([str(self.what["ctl"]), *words, "--socket", str(self.what["socket"]), "--no-pager",
                                      "--color=never"], stdin=subprocess.DEVNULL, stdout=text, stderr=text, start_new_session=True)
            try:
                status = child.wait(max(seconds, 0.1))
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                # Nobody waits for one that the kernel holds.
                child.poll()
                status = -1
            said = os.pread(text, TEXT_MAX, 0).decode(errors="replace")
        except OSError as error:
            status, said = -1, f"{self.what['ctl']}: {error.strerror or error}\n"
        finally:
            os.close(text)
        return status, said

    def left(self) -> float:
        return self.end - time.monotonic()

    def has_agent(self) -> bool:
        """One that is not there yet, as while it is updated, has half of the time to come."""
        half = self.begun + float(self.what["deadline"]) / 2
        while True:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.setblocking(False)
                try:
                    probe.connect(str(self.what["socket"]))
                    return True
                except BlockingIOError:
                    return True
                except OSError:
                    if time.monotonic() > half:
                        return False
            time.sleep(0.1)

    def agent_text(self) -> str:
        if not self.what["ctl"]:
            return "No agent was asked: gpu-agentctl was not on PATH when the program began.\n"
        if not self.has_agent():
            return f"There is no agent at {self.what['socket']}.\n"
        ms = max(int(self.left() * 700), 100)
        status, said = self.ask(["job", *self.what["words"], f"--deadline={ms}ms", "--report", f"{self.stem}.html"], self.left() * 0.8)
        text = f"gpu-agentctl job {' '.join(self.what['words'])}" + self._end(status) + f"\n{said}"
        if status >= 0:
            # Its threads in full; also of a process that uses no GPU.
            status, said = self.ask(["stacks", str(self.pid)], self.left() * 0.9)
            text += f"\ngpu-agentctl stacks {self.pid}" + self._end(status) + f"\n{said}"
        return printable(text)

    @staticmethod
    def _end(status: int) -> str:
        return " did not end in time:" if status < 0 else f", exit status {status}:"

    def python_text(self) -> str:
        text = b"" if self.traceback < 0 else os.pread(self.traceback, TEXT_MAX, 0)
        return f"\nPython, as faulthandler has seen it:\n{printable(text.decode(errors='replace'))}" if text else ""

    def write(self, text: str) -> str:
        """Whole, or not at all.  @return "", or why it could not be written."""
        path, mine = f"{self.stem}.txt", f"{self.stem}.txt.{os.getpid()}"
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            fd = os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            try:
                data = text.encode(errors="replace")
                while data:
                    data = data[os.write(fd, data):]
            finally:
                os.close(fd)
            os.replace(mine, path)
        except OSError as error:
            try:
                os.unlink(mine)
            except OSError:
                pass
            return f"{path}: {error.strerror or error}"
        return ""

    def run(self) -> None:
        if not self.is_mine():
            return
        section = name_of(self.memory)
        head = self.title + (printable(f", in section {section}") if section else "") + "\n"
        own = f"\nThreads of process {self.pid}, as the kernel tells them:\n{threads(self.pid)}" + self.python_text()
        # What is known by now stays, should somebody kill all of us before the agent answers.
        self.write(f"{head}The agent has not answered yet.\n{own}")
        said = self.agent_text()
        gone = "" if self.counter == self.cells[COUNTER] else "It has gone on while this was written.\n"
        text = f"{head}{gone}\n{said}{own}"
        failed = self.write(text)
        if failed:
            self.say(f"{head.strip()}; {failed}; what it would have said:\n{text[:PRINTED_MAX]}")
        else:
            page = f" and {self.stem}.html" if is_file(f"{self.stem}.html") else ""
            self.say(f"{head.strip()}; the report is {self.stem}.txt{page}")
            self.note_done()


def is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


class Child:
    """The process that makes a report."""

    def __init__(self, report: Report) -> None:
        seconds = float(report.what["deadline"]) + 1
        self.end = time.monotonic() + seconds
        self.pid = os.fork()
        if self.pid == 0:
            run_child(report, seconds)

    def is_over(self) -> bool:
        """Kill it at its deadline; one that the kernel holds then is left behind."""
        if os.waitpid(self.pid, os.WNOHANG)[0]:
            return True
        if time.monotonic() < self.end:
            return False
        for kill in (os.killpg, os.kill):
            try:
                kill(self.pid, signal.SIGKILL)
            except OSError:
                pass
        time.sleep(0.05)
        os.waitpid(self.pid, os.WNOHANG)
        return True


def run_child(report: Report, seconds: float) -> NoReturn:
    status = 1
    try:
        os.setsid()
        # Should nobody be there to kill it.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds + 1)
        report.run()
        status = 0
    except Exception as error:
        report.say(f"{report.title}; the report has failed: {type(error).__name__}: {error}")
    finally:
        os._exit(status)


# ---------------------------------------------------------------------- watching

class Watcher:
    def __init__(self, memory: mmap.mmap, fds: List[int], what: Dict[str, Any]) -> None:
        self.memory, self.what = memory, what
        self.pidfd, self.pipe, self.traceback = fds
        self.cells = memoryview(memory)[:NAME_AT].cast("q")
        self.judge = Judge(time.monotonic(), int(self.cells[COUNTER]))
        self.child: Optional[Child] = None
        self.poller = select.poll()
        self.poller.register(self.pidfd, select.POLLIN)
        self.poller.register(self.pipe, select.POLLIN)
        self.is_over = False

    def wait(self, seconds: float) -> bool:
        """@return whether a report was asked for."""
        for fd, _ in self.poller.poll(seconds * 1000):
            if fd == self.pipe and os.read(self.pipe, 4096):
                return True
            self.is_over = True
        if self.is_over:
            for fd in (self.pidfd, self.pipe):
                try:
                    self.poller.unregister(fd)
                except KeyError:
                    pass
        return False

    def begin(self, why: str) -> None:
        if not self.child:
            self.child = Child(Report(self.what, self.cells, self.memory, self.traceback, why))

    def step(self) -> None:
        timeout = int(self.cells[TIMEOUT_MS]) / 1000
        interval = min(max(timeout / 20, 0.02), 1.0) if timeout else 1.0
        if self.child:
            interval = min(interval, 0.05)
        is_asked = self.wait(interval)
        now = time.monotonic()
        if self.judge.is_new_stall(now, interval, int(self.cells[COUNTER]), timeout) and not self.is_over:
            self.cells[STALLS] += 1
            if self.judge.may_report(now):
                self.begin(f"has reported no progress for {timeout:g} s")
        elif is_asked:
            self.begin("was asked for a report")
        if self.child and self.child.is_over():
            self.child = None
            self.cells[REPORTS] += 1

    def run(self) -> None:
        """A report that has begun is finished, also when the process is killed meanwhile."""
        while not self.is_over or self.child:
            self.step()


def main() -> int:
    fds, what = [int(word) for word in sys.argv[1:5]], json.loads(sys.argv[5])
    # What is sent to the group of the process is for the process: this ends with it, by its pidfd.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM,
                   signal.SIGTSTP, signal.SIGTTOU):
        signal.signal(number, signal.SIG_IGN)
    # Where the program ignores the ends of children, or blocks signals, that is not for the children of this one.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    watcher = Watcher(mmap.mmap(fds[0], MEMORY_BYTES), fds[1:], what)
    os.chdir("/")
    # An import that came later could wait for the very file system that the program waits for.
    sys.path.clear()
    if os.fork() == 0:
        watcher.run()
    # The interpreter's own end would look at modules once more.
    os._exit(0)


if __name__ == "__main__":
    main()
