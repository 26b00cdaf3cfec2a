#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Healthy programs, and slow ones: the scenes in controls/ with values chosen by seed, of which two samples accuse nobody."""
import os
import random
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN, ROOT, Scene
from waitscene import POLL, WIDTH

SCENES = ROOT / "sim/scenes"
GPUS = sorted(POLL)


def workgroups(r, gpu):
    """Some workgroups of some waves."""
    groups, waves = r.randint(1, 40), r.choice([2, 4, 8])
    size = waves * WIDTH[gpu]
    return {"items": size * groups, "size": size, "waves": waves * groups, "group": waves}


def late_wave(r, gpu):
    return {**workgroups(r, gpu), "loop": r.choice([8, 16, 64, 128])}


def idle_poller(r, gpu):
    return {**workgroups(r, gpu), "loop": r.choice([0, 4, 16]), "state": r.choice(["asleep", "awake"])}


def persistent(r, gpu):
    return {**workgroups(r, gpu), "value": r.choice([0, 3, 6])}


def given_flag(r, gpu):
    return {**workgroups(r, gpu), "next": r.choice([4, 7]), "ms": r.choice([0, 100, 500])}


def tile_loop(r, gpu):
    kind, loop = r.choice([("progress", 4096), ("progress", 64), ("spin", 32), ("spin", 4)])
    return {"queues": r.randint(1, 4), "waves": r.randint(1, 200), "kind": kind, "loop": loop}


def asleep(r, gpu):
    return workgroups(r, gpu)


def busy_producer(r, gpu):
    kind, more = r.choice([("and", "barrier"), ("or", "barrier"), ("value", "eq=0"), ("value", "lt=1")])
    return {"kind": kind, "more": more, "waves": r.randint(1, 30)}


def many_packets(r, gpu):
    return {"kind": r.choice(["and", "or"])}


def late_host(r, gpu):
    kind, more = r.choice([("and", "barrier"), ("or", "barrier"), ("value", "eq=0")])
    return {"kind": kind, "more": more, "ms": r.choice([0, 100, 500])}


def late_answer(r, gpu):
    # After the first sample, whose attach takes some 100 ms, and before the second.
    return {"again": r.choice([0, 1]), "ms": r.choice([500, 700, 900])}


def late_phase(r, gpu):
    return {"ms": r.choice([250, 300, 500])}


def tiny_kernels(r, gpu):
    return {"queues": r.randint(1, 4), "waves": r.randint(1, 4)}


def nothing(r, gpu):
    return {"queues": r.randint(1, 8)}


MAKERS = [late_wave, idle_poller, persistent, given_flag, tile_loop, asleep, busy_producer, many_packets, late_host, late_answer,
          late_phase, tiny_kernels, nothing]

# What is seen of those who wait, so that it is known that somebody does.
WAITS = {"late-wave": "wait at a barrier, at late_", "idle-poller": "wait at a barrier, at idle_", "persistent": "polls the word at",
         "given-flag": "wait at a barrier, at polling+0x40", "busy-producer": "packet 0 of queue 1",
         "late-answer": "of the host (printf) by check", "late-phase": "of the host (printf) by check"}


def name(make):
    return make.__name__.replace("_", "-")


def test_each_scene_has_its_values():
    assert {name(make) for make in MAKERS} == {p.stem for p in (SCENES / "amd/controls").glob("*.scene")}


@pytest.mark.parametrize("seed", range(60))
def test_nobody_is_accused(seed):
    r = random.Random(seed)
    make = MAKERS[seed % len(MAKERS)]
    text = (SCENES / "amd/controls" / f"{name(make)}.scene").read_text()
    # Those that call the host have code of one device, others that of any, and some have none.
    gpu = "gfx90a" if "\ngpus gfx90a\n" in text else r.choice(GPUS)
    values = {**make(r, gpu), **({"gpu": gpu} if "\nlet gpu=" in text else {})}
    # What looks the same after less than a second is accused of nothing anyway.
    with Scene(app=None, gpus=gpu) as s:
        s.app = s.start("app", [BIN / "gpu-agent-simapp", "--kfd", s.mount / "kfd", "--scene", name(make), "--set",
                                ",".join(f"{key}={value}" for key, value in values.items())])
        s.app.wait_line()
        shown = s.ctl("why", s.app.pid, "--twice=1050")
        print(f"{name(make)} on {gpu}, {values}: {shown.stdout}{shown.stderr}")
        assert shown.returncode == 0 and "CAUSE" not in shown.stdout and "STUCK" not in shown.stdout
        assert WAITS.get(name(make), "") in " ".join(shown.stdout.split())
