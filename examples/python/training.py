#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A training loop with a watchdog, which stands still in its third step.  usage: training.py OUT

OUT is where the report goes, without .txt and .html; %r in it is the rank, %t the time.
"""
import sys
import time

import gpu_agent.watchdog


def train(step: int) -> None:
    time.sleep(6.0 if step == 3 else 0.1)
    print("step", step, flush=True)


def main() -> None:
    # A real job has steps of seconds, and a timeout of minutes.
    with gpu_agent.watchdog.watch(timeout=1, job="this", rank=0, out=sys.argv[1]) as watchdog:
        for step in (1, 2, 3):
            train(step)
            watchdog.beat()


if __name__ == "__main__":
    main()
