#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Print exceptions of a process as they happen.  usage: follow_events.py PID [--seconds N]

The application gets each of its faults right after it was told here; nothing is held back.
"""
import argparse
import sys
import time

import gpu_agent

FAULTS = ["wave_memory_violation", "wave_illegal_instruction", "wave_address_error", "wave_math_error", "wave_abort",
          "device_memory_violation"]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("pid", type=int)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    arguments = parser.parse_args()
    end = time.monotonic() + arguments.seconds
    with gpu_agent.Client() as agent:
        session = agent.session_attach(pid=arguments.pid)["session"]
        agent.exception_subscribe(session=session, exceptions=FAULTS)
        while time.monotonic() < end:
            try:
                method, params = agent.notification(timeout=min(1.0, max(0.01, end - time.monotonic())))
            except TimeoutError:
                continue
            if method == "session.ended":
                print(f"the session is over: {params['reason']}")
                break
            if method == "exception.raised":
                print(f"{', '.join(params['exceptions'])}: device {params.get('gpu_id', '?')}, queue {params.get('queue_id', '?')}",
                      flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
