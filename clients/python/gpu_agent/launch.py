# SPDX-License-Identifier: MIT
"""python3 -m gpu_agent.watchdog: a script under the watchdog, without a change of the script.

There is progress when the main thread comes back to the interpreter: nobody calls beat().  So a stall is a call into C,
as of a collective operation or a lock, that does not return in time.  The script runs in this very process: its exit status,
signals and standard streams are its own.
"""
from __future__ import annotations

import _thread
import argparse
import ctypes
import os
import runpy
import sys
import time
from typing import Any, List, Optional

from . import watchdog
from .watchdog import Watchdog

#: In how many parts of the timeout it is asked whether the main thread runs Python.
_PARTS = 16
_PENDING = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class Interpreter:
    """Beats for the main thread, which the interpreter lets do something now and then between two instructions of Python."""

    def __init__(self, watched: Watchdog, seconds: float) -> None:
        self.watched, self.seconds, self.pid = watched, seconds, os.getpid()
        # Kept: the interpreter calls it later.
        self.call = _PENDING(self.beat)
        self.add = ctypes.pythonapi.Py_AddPendingCall
        self.add.argtypes = [_PENDING, ctypes.c_void_p]

    def beat(self, _: Any) -> int:
        self.watched.beat()
        return 0

    def run(self) -> None:
        """In a thread that needs the interpreter's lock: while a call into C keeps it, nobody is asked, and there is no progress."""
        while self.watched.watching:
            self.add(self.call, None)
            time.sleep(self.seconds)


def parse(words: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m gpu_agent.watchdog", description="Run a script under the watchdog: "
                                     "when its main thread does not come back to Python in time, a report is written.")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="default: GPU_AGENT_WATCH, or 120")
    parser.add_argument("--job", default="auto", help="whom the report is about: auto, this, node, slurm or hosts:FILE")
    parser.add_argument("--out", default=watchdog.OUT, metavar="STEM", help="where reports go (default: %(default)s)")
    parser.add_argument("--deadline", type=float, default=watchdog.DEADLINE_S, metavar="SECONDS", help="most that a report takes")
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module")
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="for the script")
    return parser.parse_args(words)


def run(found: argparse.Namespace) -> None:
    sys.argv = [found.script, *found.words]
    if found.module:
        runpy.run_module(found.script, run_name="__main__", alter_sys=True)
        return
    # What -m has put there is of no concern to a script.
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(os.path.abspath(found.script))
    runpy.run_path(found.script, run_name="__main__")


def main(words: Optional[List[str]] = None) -> int:
    """@return 0, when the script has come to its end; how else it ends is its own."""
    found = parse(words)
    try:
        watched = watchdog.start(found.timeout, job=found.job, out=found.out, deadline=found.deadline)
    except ValueError as error:
        print(f"gpu_agent.watchdog: {error}", file=sys.stderr)
        return 2
    if watched.watching:
        watchdog.give_way(watched)
        # No Thread of `threading`: a script that counts or joins them finds its own.
        _thread.start_new_thread(Interpreter(watched, watched.timeout / _PARTS).run, ())
    try:
        run(found)
    finally:
        # Threads that go on after the script may take as long as they like.
        watched.stop()
    return 0
