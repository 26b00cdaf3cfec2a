#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Healthy programs, chosen by seed: two samples of `why` accuse nobody, and the exit status is 0."""
import os
import random
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from waitscene import BACK, SLEEP, WaitScene, block, kernel

GPUS = ["gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"]


def late_wave(r, gpu):
    """One wave of each workgroup is late for its barrier, and moves, be it a little."""
    loop = r.choice([8, 16, 64, 128])
    # Where the wave comes round to the same place soon, its code has the branch that takes it there.
    code = kernel(gpu, **{f"at_{0x80 + loop - 4:#x}": (BACK[gpu] & 0xFFFF0000) + 0x10000 - loop // 4}) if loop < 128 else None
    return block(gpu, f"late-loop={loop}", r.randint(1, 40), r.choice([2, 4, 8])), code


def idle_poller(r, gpu):
    """One wave of a persistent kernel polls an empty queue, and the others wait for it."""
    code = kernel(gpu, at_0x8c=BACK[gpu], at_0x80=r.choice([SLEEP[gpu], 0xBF800000]))
    return block(gpu, f"late-loop={r.choice([0, 4, 16])}", r.randint(1, 9)), code


def tile_loop(r, gpu):
    """Waves that compute and wait for nobody."""
    return f"runtime ttmp; queues {r.randint(1, 4)}; load CODE; waves 0 progress {r.randint(1, 200)} gemm+0x4; spin", None


def busy_producer(r, gpu):
    """A queue waits for a kernel of another one, which runs."""
    kind = r.choice(["and done", "or done", "value done eq=0"])
    return ("runtime ttmp; idle; queues 2; load CODE; signal done 1; dispatch 0 gemm 256 256; "
            f"packet 0 0 kernel completion=done; packet 1 0 {kind}; waves 0 spin {r.randint(1, 30)} gemm+0x40; "
            "pending 0 1; pending 1 2; spin"), None


def many_packets(r, gpu):
    """Packets that wait for what packets of another queue give, and do not wait for long."""
    n = r.randint(2, 9)
    text = f"runtime ttmp; idle; queues 2; signal a {n}; "
    text += "".join(f"packet 0 {i} kernel completion=a; " for i in range(n)) + "packet 1 0 and a; "
    return text + f"pending 0 {n}; pending 1 3; spin", None


def nothing(r, gpu):
    """A program that has queues and nothing to do."""
    return "runtime ttmp; idle; queues 3; spin", None


@pytest.mark.parametrize("seed", range(18))
def test_nobody_is_accused(seed):
    r = random.Random(seed)
    make = [late_wave, idle_poller, tile_loop, busy_producer, many_packets, nothing][seed % 6]
    gpu = r.choice(GPUS)
    script, words = make(r, gpu)
    with WaitScene(gpu, script, words) as s:
        shown = s.ctl("why", s.app.pid, f"--twice={r.choice([10, 100, 1050])}")
        print(f"{make.__name__} on {gpu}: {shown.stdout}{shown.stderr}")
        assert shown.returncode == 0 and "CAUSE" not in shown.stdout, script
