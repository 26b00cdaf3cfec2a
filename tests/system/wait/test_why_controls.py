#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Healthy programs, and slow ones, from the scenes in controls/ with values chosen by seed: two samples accuse nobody."""
import os
import pathlib
import random
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import ROOT
from waitscene import BACK, NOP, POLL, SLEEP, WIDTH, WaitScene, kernel, polling

CONTROLS = pathlib.Path(__file__).parent / "controls"
GPUS = sorted(POLL)


def workgroups(r, gpu):
    """Some workgroups of some waves."""
    groups, waves = r.randint(1, 40), r.choice([2, 4, 8])
    size = waves * WIDTH[gpu]
    return {"items": size * groups, "size": size, "waves": waves * groups, "group": waves}


def late_wave(r, gpu):
    loop = r.choice([8, 16, 64, 128])
    # Where the wave comes round to the same place soon, its code has the branch that takes it there.
    words = kernel(gpu, **{f"at_{0x80 + loop - 4:#x}": (BACK[gpu] & 0xFFFF0000) + 0x10000 - loop // 4}) if loop < 128 else kernel(gpu)
    return {**workgroups(r, gpu), "loop": loop}, words


def idle_poller(r, gpu):
    return ({**workgroups(r, gpu), "loop": r.choice([0, 4, 16])},
            kernel(gpu, at_0x8c=BACK[gpu], at_0x80=r.choice([SLEEP[gpu], 0xBF800000])))


def persistent(r, gpu):
    return {**workgroups(r, gpu), "value": r.choice([0, 3, 6])}, polling(gpu)


def given_flag(r, gpu):
    return {**workgroups(r, gpu), "next": r.choice([4, 7]), "ms": r.choice([0, 100, 500])}, polling(gpu)


def tile_loop(r, gpu):
    kind, loop = r.choice([("progress", 4096), ("progress", 64), ("spin", 32), ("spin", 4)])
    # All of the loop is code.
    return {"queues": r.randint(1, 4), "waves": r.randint(1, 200), "kind": kind, "loop": loop}, kernel(gpu) + [NOP] * 1024


def asleep(r, gpu):
    return workgroups(r, gpu), kernel(gpu, at_0x80=SLEEP[gpu])


def busy_producer(r, gpu):
    kind, more = r.choice([("and", "barrier"), ("or", "barrier"), ("value", "eq=0"), ("value", "lt=1")])
    return {"kind": kind, "more": more, "waves": r.randint(1, 30)}, kernel(gpu)


def many_packets(r, gpu):
    return {"kind": r.choice(["and", "or"])}, None


def late_host(r, gpu):
    kind, more = r.choice([("and", "barrier"), ("or", "barrier"), ("value", "eq=0")])
    return {"kind": kind, "more": more, "ms": r.choice([0, 100, 500])}, None


def late_answer(r, gpu):
    # After the first sample, whose attach takes some 100 ms, and before the second.
    return {"code": ROOT / "sim/scenes/amd/hostcall-gfx90a.co", "again": r.choice([0, 1]), "ms": r.choice([500, 700, 900])}, None


def late_phase(r, gpu):
    return {"code": ROOT / "sim/scenes/amd/hostcall-phases-gfx90a.co", "ms": r.choice([250, 300, 500])}, None


def tiny_kernels(r, gpu):
    return {"queues": r.randint(1, 4), "waves": r.randint(1, 4)}, kernel(gpu)


def nothing(r, gpu):
    return {"queues": r.randint(1, 8)}, None


MAKERS = [late_wave, idle_poller, persistent, given_flag, tile_loop, asleep, busy_producer, many_packets, late_host, late_answer,
          late_phase, tiny_kernels, nothing]


def test_each_scene_has_its_values():
    assert {f"{make.__name__.replace('_', '-')}.scene" for make in MAKERS} == {p.name for p in CONTROLS.iterdir()}


@pytest.mark.parametrize("seed", range(60))
def test_nobody_is_accused(seed):
    r = random.Random(seed)
    make = MAKERS[seed % len(MAKERS)]
    gpu = r.choice(GPUS)
    values, words = make(r, gpu)
    # What looks the same after less than a second is accused of nothing anyway.
    with WaitScene(gpu, CONTROLS / f"{make.__name__.replace('_', '-')}.scene", words, values) as s:
        shown = s.ctl("why", s.app.pid, "--twice=1050")
        print(f"{make.__name__} on {gpu}, {values}: {shown.stdout}{shown.stderr}")
        assert shown.returncode == 0 and "CAUSE" not in shown.stdout and "STUCK" not in shown.stdout
