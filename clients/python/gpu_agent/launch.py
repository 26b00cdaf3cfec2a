# SPDX-License-Identifier: MIT
"""python3 -m gpu_agent.watchdog: a script under the watchdog, without a change of the script.

There is progress when the main thread comes back to the interpreter: nobody calls beat().  So a stall is a call into C,
as of a collective operation or a lock, that does not return in time.  The script runs in this very process: its exit status,
signals and standard streams are its own.
"""
from __future__ import annotations

import _thread
import argparse
import builtins
import ctypes
import importlib.machinery
import io
import os
import pkgutil
import runpy
import sys
import types
from typing import Any, Dict, List, Optional

from . import watchdog
from .job import DEADLINE_S
from .watchdog import Watchdog

#: In how many parts of the timeout it is asked whether the main thread runs Python.
_PARTS = 16
#: Options of ours that have a value, which may be the next word.
_VALUES = ("--timeout", "--job", "--out", "--deadline")
#: More than any C library's sem_t has, in words of 64 bits.
_SEMAPHORE = ctypes.c_uint64 * 16
_forever: List[Interpreter] = []
#: How long the end of the script waits for that of the thread that asks.
_END_S = 5.0


class Interpreter:
    """Asks the interpreter to raise a semaphore between two instructions of Python of the main thread, and beats for it then.

    What the main thread calls is sem_post() itself, which has the type of a pending call: it takes a pointer and returns 0.
    Were it Python, a signal's handler could raise its exception there, where nobody passes it on to the script.
    """

    def __init__(self, watched: Watchdog, seconds: float) -> None:
        self.watched, self.seconds = watched, seconds
        libc = ctypes.CDLL(None)
        self.semaphore = _SEMAPHORE()
        self.at = ctypes.c_void_p(ctypes.addressof(self.semaphore))
        self.post = ctypes.cast(libc.sem_post, ctypes.c_void_p)
        self.was_posted = libc.sem_trywait
        self.add = ctypes.pythonapi.Py_AddPendingCall
        self.add.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        libc.sem_init(self.at, 0, 0)
        self.pid = os.getpid()
        self.over, self.has_ended = _thread.allocate_lock(), _thread.allocate_lock()
        self.over.acquire()
        self.has_ended.acquire()
        # The main thread may raise the semaphore after the end of this thread.
        _forever.append(self)

    def start(self) -> None:
        # No Thread of `threading`: a script that counts or joins them finds its own.
        _thread.start_new_thread(self.run, ())

    def stop(self) -> None:
        """An interpreter that ends frees what it has of its threads, also of one that has not begun yet, which crashes then."""
        self.over.release()
        # A child that the script has forked has no such thread.
        if os.getpid() == self.pid:
            self.has_ended.acquire(timeout=_END_S)

    def run(self) -> None:
        """In a thread that needs the interpreter's lock: while a call into C keeps it, nobody is asked, and there is no progress.

        One call is pending at most: the interpreter has few places, which are for the script.
        """
        pending = False
        while self.watched.watching:
            if pending and self.was_posted(self.at) == 0:
                self.watched.beat()
                pending = False
            pending = pending or self.add(self.post, self.at) == 0
            if self.over.acquire(timeout=self.seconds):
                break
        self.has_ended.release()


def ours(words: List[str]) -> int:
    """How many of the words are for us: SCRIPT is the last.  argparse would take a -- behind it away."""
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        at += 2 if words[at] in _VALUES else 1
    return at + (2 if words[at:at + 1] == ["--"] else 1)


def parse(words: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m gpu_agent.watchdog", allow_abbrev=False, description="Run a script under the "
                                     "watchdog: when its main thread does not come back to Python in time, a report is written.")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="default: GPU_AGENT_WATCH, or 120")
    parser.add_argument("--job", default="auto", help="whom the report is about: auto, this, node, slurm or hosts:FILE")
    parser.add_argument("--out", default=watchdog.OUT, metavar="STEM", help="where reports go (default: %(default)s)")
    parser.add_argument("--deadline", type=float, default=DEADLINE_S, metavar="SECONDS", help="most that a report takes")
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module")
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="for the script")
    words = sys.argv[1:] if words is None else words
    end = ours(words)
    found = parser.parse_args(words[:end])
    found.words = words[end:]
    return found


def main_module() -> Dict[str, Any]:
    """The members of a new __main__, which stays: what runs after the script, as of atexit, looks for the script's names there."""
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    return module.__dict__


def absolute(script: str) -> str:
    """Not normal: a .. behind a link is not the place that the words tell."""
    try:
        return os.path.join(os.getcwd(), script)
    except OSError:  # The directory was removed.
        return script


def run_file(path: str) -> None:
    with io.open_code(path) as file:
        code = pkgutil.read_code(file)
    if code is None:
        with io.open_code(path) as file:
            # Without what this file has from __future__.
            code = compile(file.read(), path, "exec", dont_inherit=True)
    members = main_module()
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    members.update(__file__=path, __cached__=None, __loader__=loader)
    exec(code, members)


def run(found: argparse.Namespace) -> None:
    """As python3 itself runs SCRIPT."""
    sys.argv = [found.script, *found.words]
    # The interpreter itself has python3 -m, and a directory or an archive, run by this function of runpy, in the members of __main__.
    run_main: Any = getattr(runpy, "_run_module_as_main")
    if found.module:
        main_module()
        run_main(found.script)
        return
    path = absolute(found.script)
    is_container = pkgutil.get_importer(path) is not None
    place = path if is_container else os.path.dirname(os.path.realpath(found.script))
    if not getattr(sys.flags, "safe_path", sys.flags.isolated):
        # What -m has put there is of no concern to a script.
        sys.path[0] = place
    elif is_container:
        sys.path.insert(0, place)
    if is_container:
        main_module()
        run_main("__main__", False)
    else:
        run_file(path)


def main(words: Optional[List[str]] = None) -> int:
    """@return 0, when the script has come to its end; how else it ends is its own."""
    found = parse(words)
    try:
        watched = watchdog.start(found.timeout, job=found.job, out=found.out, deadline=found.deadline)
    except ValueError as error:
        print(f"gpu_agent.watchdog: {error}", file=sys.stderr)
        return 2
    interpreter = None
    if watched.watching:
        watchdog.give_way(watched)
        interpreter = Interpreter(watched, watched.timeout / _PARTS)
        interpreter.start()
    try:
        run(found)
    finally:
        # Threads that go on after the script may take as long as they like.
        watched.stop()
        if interpreter:
            interpreter.stop()
    return 0
