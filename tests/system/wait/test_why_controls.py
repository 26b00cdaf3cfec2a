#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Healthy programs, and slow ones: the scenes in controls/ with values chosen by seed, of which two samples accuse nobody."""
import os
import random
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN, ROOT, CudaScene, Scene
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


def late_named(r, gpu):
    values = workgroups(r, gpu)
    # Others may be members that have not come and are nowhere, and those that wait need not be all that have come.
    members = values["group"] + r.choice([0, 0, 3])
    return {**values, "number": r.randint(1, 16), "members": members, "signals": values["group"] - 1,
            **r.choice([{"late": "0x38", "loop": 16}, {"late": "0xb8", "loop": 64}])}


def open_cluster(r, gpu):
    members = r.randint(2, 16)
    return {"members": members, "waves": 4 * (members - 1), "last": members - 1, "signals": members - 1, "items": 128 * members,
            "loop": r.choice([0, 16])}


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


def busy_lock(r, gpu):
    return {"waves": r.randint(1, 15), "lock": r.randint(1, 3), "next": r.choice([0, 4])}


def many_packets(r, gpu):
    return {"kind": r.choice(["and", "or"]), "ms": r.choice([0, 100, 500])}


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


MAKERS = [late_wave, late_named, open_cluster, idle_poller, persistent, given_flag, tile_loop, asleep, busy_lock, busy_producer,
          many_packets, late_host, late_answer, late_phase, tiny_kernels, nothing]


def word(value, size=4):
    return value.to_bytes(size, "little").hex()


def mbarrier(phase, expected, pending, tx=0):
    """A barrier object: arrivals as what lacks to 2^20."""
    return word(phase << 63 | (-pending & 0xFFFFF) << 43 | tx << 21 | (-expected & 0xFFFFF) << 1, 8)


def grid(r):
    """How many have come, the first block among them, and what they have added."""
    come = r.randint(1, 7)
    return {"come": come, "added": word(0x80000000 - 8 + come), "step": r.choice([1, 7])}


# Values of the scenes of NVIDIA's devices.
CUDA = {
    "tile-loop": lambda r: {"blocks": r.randint(1, 132), "loop": r.choice(["0x20", "0x100"]), "step": r.choice([1, 5]),
                            "ms": r.choice([0, 3, 250])},
    "tiny-kernels": lambda r: {"blocks": r.randint(1, 8), "ms": r.choice([1, 2])},
    "nothing": lambda r: {"module": r.choice(["train", "waits", "grid"])},
    "given-flag": lambda r: {"blocks": r.randint(1, 40), "first": word(r.choice([0, 5])), "next": word(r.choice([6, 7])),
                             "ms": r.choice([0, 300, 600])},
    "back-off": lambda r: {"blocks": r.randint(1, 40), "pc": r.choice(["0xc0", "0xe0"]), "next": word(r.choice([4, 5]), 8)},
    "busy-lock": lambda r: {"blocks": r.randint(2, 40), "first": word(r.randint(1, 3)), "next": word(r.choice([0, 4]))},
    "stop-flag": lambda r: {"blocks": r.randint(1, 40), "next": word(r.choice([5, 6, 7]))},
    # The numbers agree with a barrier of all blocks before and from then on, which is between the samples.
    "late-block": lambda r: {"first": word(4), "next": word(4), "ms": r.choice([800, 950])},
    "late-warp": lambda r: {"blocks": r.randint(1, 40), "late": r.randint(0, 7), "step": r.choice([1, 3])},
    "counted-barrier": lambda r: {"blocks": r.randint(1, 40), "step": r.choice([1, 5]), "first": r.randint(8, 11), "come": 1},
    "late-cluster": lambda r: {"late": r.randint(0, 7), "step": r.choice([1, 4])},
    # More places than those of 24 blocks are not read, which would be said in missing.
    "pipeline": lambda r: {"blocks": 2 * r.randint(1, 12), "ring": mbarrier(1, 12, r.randint(5, 12)),
                           "next": mbarrier(r.randint(0, 1), 1, 1), "step": r.choice([1, 3])},
    "copy-pipeline": lambda r: {"blocks": 2 * r.randint(1, 8), "word": mbarrier(0, 32, 0, 2048),
                                "next": mbarrier(0, 32, 0, r.choice([2048, 512]))},
    "before-grid": grid,
    "ring-step": lambda r: {"next": r.choice(["5d", "65"]), "ms": r.choice([300, 600])},
    "diverged": lambda r: {"blocks": r.randint(1, 16), "rest": r.choice(["0x100", "0x110"])},
}
# What is seen of those who wait, so that it is known that somebody does.
WAITS = {"late-wave": "wait at a barrier, at late_", "late-named": "wait at a named barrier, at stages+0x48",
         "open-cluster": "wait at a barrier of the cluster, at halo+0x48:", "idle-poller": "wait at a barrier, at idle_",
         "persistent": "polls the word at",
         "given-flag": "wait at a barrier, at polling+0x40", "busy-producer": "packet 0 of queue 1",
         "late-answer": "of the host (printf) by check", "late-phase": "of the host (printf) by check", "asleep": "sleep (s_sleep"}
CUDA_WAITS = {"back-off": "of consume", "stop-flag": "of drain", "late-warp": "wait at a barrier, at gemm",
              "counted-barrier": "a named barrier", "late-cluster": "a barrier of the cluster", "pipeline": "mbarrier 0x760",
              "copy-pipeline": "mbarrier 0x730", "before-grid": "a barrier of the grid", "ring-step": "in AllReduce (ring, LL",
              "diverged": "lane 0 of warp 0", "given-flag": "wait at a barrier, at forward", "late-block": "wait at a barrier, at forward",
              "busy-lock": "tries to take the lock"}


def name(make):
    return make.__name__.replace("_", "-")


def barrier(values):
    kind = values.split(",")[0].removeprefix("kind=")
    return {"and": "AND", "or": "OR"}.get(kind, kind)


def waits_of(scene, values):
    """What one sample says while the host has not yet done what is waited for."""
    with Scene(app=None) as s:
        s.app = s.start("app", [BIN / "gpu-agent-simapp", "--kfd", s.mount / "kfd", "--scene", scene, "--set", f"{values},ms=600000"])
        s.app.wait_line()
        shown = s.ctl("why", s.app.pid)
    print(f"{scene}, {values}: {shown.stdout}{shown.stderr}")
    assert shown.returncode == 0 and "CAUSE" not in shown.stdout
    return " ".join(shown.stdout.split())


def test_each_scene_has_its_values():
    for vendor, names in ("amd", [name(make) for make in MAKERS]), ("cuda", CUDA):
        assert set(names) == {p.stem for p in (SCENES / vendor / "controls").glob("*.scene")}


@pytest.mark.parametrize("seed", range(80))
def test_nobody_is_accused(seed):
    r = random.Random(seed)
    make = MAKERS[seed % len(MAKERS)]
    text = (SCENES / "amd/controls" / f"{name(make)}.scene").read_text()
    # Those that call the host, or have barriers of gfx12.5, have code of one device, others that of any, and some have none.
    gpu = next((gpu for gpu in GPUS if f"\ngpus {gpu}\n" in text), None) or r.choice(GPUS)
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


@pytest.mark.parametrize("values", ["kind=and,more=barrier", "kind=or,more=barrier", "kind=value,more=eq=0"])
def test_who_waits_for_a_late_host_is_seen(values):
    """The second of two samples has nothing of it, as the signal has come by then."""
    assert f"packet 0 of queue 0 (a barrier-{barrier(values)}) waits: 0 of 1 signal given" in waits_of("late-host", values)


@pytest.mark.parametrize("values", ["kind=and", "kind=or"])
def test_who_waits_for_packets_that_come_later_is_seen(values):
    assert f"packet 0 of queue 1 (a barrier-{barrier(values)}) waits: 0 of 1 signal given" in waits_of("many-packets", values)


@pytest.mark.parametrize("seed", range(2 * len(CUDA)))
def test_nobody_is_accused_on_devices_of_nvidia(seed):
    r = random.Random(seed)
    scene = sorted(CUDA)[seed % len(CUDA)]
    values = CUDA[scene](r)
    with CudaScene(app=None) as s:
        s.app = s.start("app", [BIN / "gpu-agent-cuda-simapp", "--scene", scene, "--set",
                                ",".join(f"{key}={value}" for key, value in values.items())], env={"LD_LIBRARY_PATH": str(s.libraries)})
        s.app.wait_line()
        shown = s.ctl("why", s.app.pid, "--twice=1050")
        print(f"{scene}, {values}: {shown.stdout}{shown.stderr}")
        assert shown.returncode == 0 and "CAUSE" not in shown.stdout and "STUCK" not in shown.stdout
        # What came meanwhile may have ended the wait.
        if values.get("next") not in (word(7), word(0), word(5, 8)):
            assert CUDA_WAITS.get(scene, "") in " ".join(shown.stdout.split())
