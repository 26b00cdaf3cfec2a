# SPDX-License-Identifier: MIT
"""vLLM: its watchdog, where this release has one, also asks for a report when it dumps its stacks.

    gpu_agent.adapters.vllm.install(watchdog)

A change that adds vllm/utils/watch_dog.py, with get_watch_dog(), feed() and dump_stack(), has been proposed; where it is not
there, nothing is changed.
"""
from __future__ import annotations

import functools
import importlib
from typing import Any

from ..watchdog import Watchdog

WAIT_S = 10.0


def install(watchdog: Watchdog) -> bool:
    """@return whether this vLLM has a watchdog, which tells this one of progress and of stalls from now on."""
    try:
        theirs: Any = importlib.import_module("vllm.utils.watch_dog").get_watch_dog()
    except (ImportError, AttributeError):
        return False
    feed: Any = getattr(theirs, "feed", None)
    dump: Any = getattr(theirs, "dump_stack", None)
    if not callable(feed) or not callable(dump):
        return False

    @functools.wraps(feed)
    def feed_both(*args: Any, **kwargs: Any) -> Any:
        watchdog.beat()
        return feed(*args, **kwargs)

    @functools.wraps(dump)
    def dump_both(*args: Any, **kwargs: Any) -> Any:
        try:
            return dump(*args, **kwargs)
        finally:
            watchdog.report(WAIT_S)

    theirs.feed, theirs.dump_stack = feed_both, dump_both
    return True
