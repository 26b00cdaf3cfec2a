# SPDX-License-Identifier: MIT
"""SGLang: what its watchdog prints before it kills the server has the report's place in it.

    Watchdog.create(..., dump_info=gpu_agent.adapters.sglang.dump_info(watchdog, dump_info))

Its watchdog (sglang/srt/utils/watchdog.py) calls dump_info, which returns a text, and five seconds later ends the server.
"""
from __future__ import annotations

from typing import Callable, Optional

from ..watchdog import Watchdog

#: Less than the time that is left.
WAIT_S = 4.0


def dump_info(watchdog: Watchdog, before: Optional[Callable[[], str]] = None) -> Callable[[], str]:
    """A function for SGLang, which also says what `before` does.  Start the watchdog with deadline=4."""
    def told() -> str:
        text = before() if before else ""
        if not watchdog.watching:
            return f"{text}\ngpu-agent: no report: {watchdog.reason or 'nobody watches'}"
        is_done = watchdog.report(WAIT_S)
        return f"{text}\ngpu-agent: the report {'is written' if is_done else 'was not written in time'}: {watchdog.out}"

    return told
