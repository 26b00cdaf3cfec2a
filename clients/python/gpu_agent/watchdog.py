# SPDX-License-Identifier: MIT
"""A report of a training job that stands still, written before anybody kills it.

    import gpu_agent.watchdog

    watchdog = gpu_agent.watchdog.start(timeout=120)
    for batch in batches:
        train(batch)
        watchdog.beat()

Or without a change of the script: python3 -m gpu_agent.watchdog train.py

A process of its own watches a counter in shared memory, which beat() raises: it also sees a stall while a call into C keeps
the interpreter's lock, when no thread of Python runs.  That process has imported all that it needs by the end of start(),
does nothing to this process, gives up a report at a deadline, and ends with this process.
"""
from __future__ import annotations

import contextlib
import faulthandler
import json
import logging
import mmap
import os
import select
import shutil
import socket
import subprocess
import sys
import threading
import time
from typing import Any, Dict, Iterator, List, Optional

from . import watchdog_helper as helper
from .connection import default_socket
from .job import DEADLINE_S, absolute, first_set, whom_to_ask

__all__ = ["Watchdog", "start", "watch"]

TIMEOUT_S = 120.0
OUT = "gpu-agent-%r-%t"
#: Most that starting the helper may take; the helper is given up then.
_START_S = 5.0
_FOREVER_S = 1e9
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
#: What makes the same variable mean the same job.
_JOBS = ("SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE", "MASTER_PORT")
_log = logging.getLogger("gpu_agent.watchdog")
_running: List[Watchdog] = []
#: Those that watch until the program does so itself.
_launched: List[Watchdog] = []
#: Of each thread that forks now, the timers that it holds.
_forking: Dict[int, List[_Traceback]] = {}


def _lacks(ctl: Optional[str], path: str) -> str:
    """Why there is no agent now; "" where there is one.  Waits for nothing."""
    if not ctl:
        return "gpu-agentctl is not on PATH"
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.setblocking(False)
            probe.connect(path)
    except BlockingIOError:  # There is one, and many want it.
        return ""
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    return ""


class _Traceback:
    """What faulthandler writes by a thread of C, which needs no lock: the lines of Python where there is no agent to tell them."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("gpu-agent-traceback", os.MFD_CLOEXEC)
        self.seconds = self.since = 0.0
        # One of threads in turn; also within itself, as from a handler of a signal.
        self.lock = threading.RLock()
        self.forking = False

    def beat(self) -> None:
        """Not at each beat: it starts a thread of C.  An eighth of the time earlier is early enough for nobody to be accused."""
        if self.seconds and time.monotonic() >= self.since + self.seconds / 8 and self.lock.acquire(False):
            try:
                if self.seconds:
                    self.arm(self.seconds)
            finally:
                self.lock.release()

    def arm(self, seconds: float) -> None:
        with self.lock:
            self.cancel()
            if seconds and self.fd >= 0:
                self.seconds, self.since = seconds, time.monotonic()
                # A handler of a signal, or another's hook, may beat in the thread that forks.
                if not self.forking:
                    self._begin(seconds)

    def _begin(self, seconds: float) -> None:
        try:
            os.ftruncate(self.fd, 0)
            os.lseek(self.fd, 0, os.SEEK_SET)
            faulthandler.dump_traceback_later(seconds, file=self.fd)
        except (OSError, RuntimeError) as error:  # RuntimeError: there may be no more threads.
            self.seconds = 0.0
            _log.warning("gpu-agent watchdog: a report without an agent has no lines of Python: %s", error)

    def cancel(self) -> None:
        with self.lock:
            if self.seconds:
                faulthandler.cancel_dump_traceback_later()
            self.seconds = 0.0

    def before_fork(self) -> None:
        """The child would wait for ever for the thread of C, which it does not have: at its end, and when it uses the timer."""
        self.lock.acquire()
        self.forking = True
        if self.seconds:
            faulthandler.cancel_dump_traceback_later()

    def after_fork_in_parent(self) -> None:
        self.forking = False
        try:
            if self.seconds:
                self._begin(max(self.since + self.seconds - time.monotonic(), 0.001))
        finally:
            self.lock.release()

    def close(self) -> None:
        with self.lock:
            self.cancel()
            os.close(self.fd)
            self.fd = -1


class Watchdog:
    """What start() returns.

    agent   whether an agent could be reached at the start; without one, a report has what the kernel and faulthandler tell
    reason  why there was none, or why nobody watches
    out     where reports go, as start() was told
    """

    def __init__(self) -> None:
        self.agent = False
        self.reason = self.out = ""
        self._cells: Any = [0] * helper.CELLS
        self._memory: Optional[mmap.mmap] = None
        self._pipe = -1
        self._traceback: Optional[_Traceback] = None
        self._timeout = 0.0
        self._paused = False

    # -------------------------------------------------------------- progress

    def beat(self) -> None:
        """Tell that there is progress: a store into memory, from any thread."""
        self._cells[helper.COUNTER] += 1
        traceback = self._traceback
        if traceback:
            traceback.beat()

    def pause(self) -> None:
        """No progress is expected until resume()."""
        self._paused = True
        self._publish()

    def resume(self) -> None:
        self._paused = False
        self._publish()

    @contextlib.contextmanager
    def section(self, name: str, timeout: float) -> Iterator[None]:
        """Within it, another timeout holds, and a report has its name; also a decorator of a function."""
        before, was = self._timeout, self._name()
        self._timeout = _bounded(timeout)
        self._publish(name)
        try:
            yield
        finally:
            self._timeout = before
            self._publish(was)

    def _name(self) -> str:
        memory = self._memory
        return helper.name_of(memory) if memory else ""

    def _publish(self, name: Optional[str] = None) -> None:
        seconds = 0.0 if self._paused else self._timeout
        memory = self._memory
        if memory and name is not None:
            data = name.encode(errors="replace")[:helper.NAME_BYTES - 1]
            memory[helper.NAME_AT:] = data.ljust(helper.NAME_BYTES, b"\0")
        self._cells[helper.TIMEOUT_MS] = int(seconds * 1000)
        self._cells[helper.COUNTER] += 1
        if self._traceback:
            self._traceback.arm(seconds)

    # -------------------------------------------------------------- what is there

    @property
    def watching(self) -> bool:
        """Whether the process that watches is there."""
        pipe = self._pipe  # Another thread may call stop() meanwhile.
        if pipe < 0:
            return False
        poller = select.poll()
        poller.register(pipe, select.POLLOUT)
        return not any(event & (select.POLLERR | select.POLLHUP) for _, event in poller.poll(0))

    @property
    def timeout(self) -> float:
        """Seconds that hold now."""
        return self._timeout

    @property
    def stalls(self) -> int:
        """How many there were."""
        return int(self._cells[helper.STALLS])

    def report(self, wait: float = 0.0) -> bool:
        """Ask for a report now, as before a restart.  @return whether it was finished within `wait` seconds."""
        before = self._cells[helper.REPORTS]
        try:
            os.write(self._pipe, b"r")
        except OSError:
            return False
        until = time.monotonic() + wait
        while self._cells[helper.REPORTS] == before and time.monotonic() < until and self.watching:
            time.sleep(0.02)
        return bool(self._cells[helper.REPORTS] != before)

    # -------------------------------------------------------------- begin and end

    def stop(self) -> None:
        """Watch no longer."""
        if self in _running:
            _running.remove(self)
        if self._traceback:
            self._traceback.close()
            self._traceback = None
        self._close()

    def __enter__(self) -> Watchdog:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _close(self) -> None:
        # Not closed: a thread that beats at this very moment still writes there.  Both go with the last who uses them.
        self._cells = [int(n) for n in self._cells]
        self._memory = None
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1

    def _after_fork(self) -> None:
        """A child shares the memory: its beats would hide the stall of its parent, and its end of the pipe the parent's end."""
        if self._traceback:
            os.close(self._traceback.fd)
            self._traceback = None
        self._close()

    def _start(self, timeout: float, what: Dict[str, Any]) -> None:
        fds: List[int] = []
        try:
            self._timeout = timeout
            fds.append(os.memfd_create("gpu-agent-watchdog", os.MFD_CLOEXEC))
            os.ftruncate(fds[0], helper.MEMORY_BYTES)
            self._memory = mmap.mmap(fds[0], helper.MEMORY_BYTES)
            self._cells = memoryview(self._memory)[:8 * helper.CELLS].cast("q")
            if not self.agent:
                self._traceback = _Traceback()
            self._publish()
            fds.append(os.pidfd_open(os.getpid()))
            # Its end closes at exec, too, which ends what is watched, but not the process.
            end, self._pipe = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            fds.append(end)
            self._spawn([*fds, self._traceback.fd if self._traceback else -1], what)
        finally:
            for fd in fds:
                os.close(fd)

    def _spawn(self, fds: List[int], what: Dict[str, Any]) -> None:
        """The helper is nobody's child, so that a program that waits for its children never meets it."""
        # What a program preloads is for the program; it may also be what is stuck.
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        words = [*(str(fd) for fd in fds), json.dumps(what)]
        if not sys.executable:
            raise OSError("sys.executable tells no Python, as in a program that embeds it")
        first = subprocess.Popen([sys.executable, "-I", "-S", helper.__file__, *words], env=environment, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, pass_fds=[fd for fd in fds if fd >= 0])
        try:
            status = first.wait(_START_S)
        except subprocess.TimeoutExpired:
            first.kill()
            # Nobody waits for one that the kernel holds.
            with contextlib.suppress(subprocess.TimeoutExpired):
                first.wait(0.5)
            raise OSError(f"{sys.executable} did not start within {_START_S:g} s") from None
        if status:
            raise OSError(f"{sys.executable} {helper.__file__}: exit status {status}")


def _before_fork() -> None:
    held = _forking[threading.get_ident()] = [t for t in (w._traceback for w in _running) if t]
    for traceback in held:
        traceback.before_fork()


def _after_fork_in_parent() -> None:
    for traceback in _forking.pop(threading.get_ident(), []):
        traceback.after_fork_in_parent()


def _after_fork_in_child() -> None:
    for watchdog in _running:
        watchdog._after_fork()
    _running.clear()
    _forking.clear()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)


def _bounded(timeout: float) -> float:
    """Seconds; inf is as good as any number of years."""
    if not timeout >= 0:
        raise ValueError(f"timeout: {timeout} is no number of seconds")
    return min(float(timeout), _FOREVER_S)


def _seconds(timeout: Optional[float]) -> float:
    """GPU_AGENT_WATCH is for whoever starts the job; what the program says itself goes first."""
    if timeout is not None:
        return _bounded(timeout)
    said = os.environ.get("GPU_AGENT_WATCH")
    try:
        return _bounded(float(said)) if said else TIMEOUT_S
    except ValueError:
        _log.warning("GPU_AGENT_WATCH=%s is no number of seconds; it is taken for %g", said, TIMEOUT_S)
        return TIMEOUT_S


def give_way(watchdog: Watchdog) -> None:
    """This one watches until the program calls start() itself."""
    _launched.append(watchdog)


def _take_over() -> None:
    while _launched:
        _launched.pop().stop()


def start(timeout: Optional[float] = None, *, job: str = "auto", out: str = OUT, rank: Optional[int] = None,
          deadline: float = DEADLINE_S) -> Watchdog:
    """Watch this process: when there is no beat() for `timeout` seconds, write a report, once for each stall.

    timeout   seconds; default GPU_AGENT_WATCH, or 120.  0: nobody watches, and all calls do nothing
    job       whom the report is about: "this" process, all of the user's GPU processes of the "node", the job of "slurm",
              "hosts:FILE"; "auto" is slurm in a job of Slurm, node where the launcher tells of several ranks, or else this.
              Of several processes with the same `out` directory one writes the report
    out       where reports go, without the suffixes .txt and .html; %r is the rank, %h the host, %p the process, %t the time
    rank      default: as the launcher says in the environment
    deadline  most seconds that a report takes

    Raises ValueError for what it cannot understand, and nothing else: what is missing is in `reason`, and in the log.
    """
    watchdog = Watchdog()
    seconds = _seconds(timeout)
    if not 0 < deadline < _FOREVER_S:
        raise ValueError(f"deadline: {deadline} is no time in which a report can be written")
    words = whom_to_ask(job)
    if not seconds:
        _take_over()
        watchdog.reason = "it is turned off"
        return watchdog
    ctl, path = shutil.which("gpu-agentctl"), default_socket()
    watchdog.reason = _lacks(ctl, path)
    watchdog.agent, watchdog.out = not watchdog.reason, absolute(out)
    number = str(rank) if rank is not None else first_set(_RANKS)
    what = {"pid": os.getpid(), "rank": number, "ctl": ctl, "socket": path, "words": words, "out": watchdog.out,
            "deadline": deadline, "job": "-".join(os.environ[n] for n in _JOBS if os.environ.get(n)) or str(os.getuid())}
    _running.append(watchdog)
    try:
        watchdog._start(seconds, what)
    except (OSError, AttributeError, ValueError) as error:  # AttributeError: a system without pidfds or memfds
        watchdog.stop()
        watchdog.reason = f"nobody watches: {error}"
        _log.warning("gpu-agent watchdog: %s", watchdog.reason)
        return watchdog
    _take_over()
    if watchdog._traceback:
        # faulthandler has one timer, which the one that gave way has taken with it.
        watchdog._traceback.arm(seconds)
    if not watchdog.agent:
        _log.warning("gpu-agent watchdog: no agent now (%s); without one, a report has only what the kernel and faulthandler tell",
                     watchdog.reason)
    return watchdog


@contextlib.contextmanager
def watch(timeout: Optional[float] = None, **options: Any) -> Iterator[Watchdog]:
    """start() until the end of the block."""
    with start(timeout, **options) as watchdog:
        yield watchdog


if __name__ == "__main__":
    from .launch import main
    sys.exit(main())
