#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Kernels of NCCL's that receive of single ranks, or along a tree: whose data has not come, by a process for each rank."""
import json
import os
import struct
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN, CudaScene, wait_until
from ranklines import awaited_ranks, job_says, waits_in_collectives, without_missing

REDUCE, PAIRS = "_Z41ncclDevFunc_AllReduce_Sum_f32_RING_SIMPLEv", "_Z20ncclDevFunc_SendRecvv"
KERNEL = "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE"
CIRCLE = ("MAYBE  a circle: ranks 0-5 wait in SendRecv for rank6,rank7, which are not in it; "
          "rank6 waits in AllReduce for rank5, which is not in it [inferred]")
AWAITED = ("WAITS  rank0,rank1,rank2 wait in collective operations, for each other and in the end for rank3, which was in none when seen "
           "[inferred]")
SHARED, BATCH, WORK = 0x400, 0x600, 0x53B0
UNREADABLE = "collective operations: what some blocks receive is not readable, or does not fit together"


def word(value):
    return struct.pack("<I", value & 0xFFFFFFFF).hex()


class Ranks(CudaScene):
    """Processes that run a scene, each with values and a rank of its own."""

    def __init__(self, scene, n):
        super().__init__(app=None)
        self.scene, self.n, self.ranks = scene, n, {}

    def start_app_of(self, rank, *arguments):
        app = self.start("app", [BIN / "gpu-agent-cuda-simapp", *arguments],
                         env={"LD_LIBRARY_PATH": str(self.libraries), "RANK": str(rank), "WORLD_SIZE": str(self.n)})
        app.wait_line()
        self.ranks[rank] = app
        return app

    def start_rank(self, rank, /, **values):
        values = {"rank": word(rank), "previous": word((rank - 1) % self.n), "next": word((rank + 1) % self.n), **values}
        return self.start_app_of(rank, "--scene", self.scene, "--set", ",".join(f"{name}={value}" for name, value in values.items()))

    def tell(self, app, command):
        """Run a command of a script in a process that listens."""
        answers = app.out().count("\nok")
        app.popen.stdin.write(command.encode() + b"\n")
        app.popen.stdin.flush()
        wait_until(lambda: app.out().count("\nok") > answers, command)

    @property
    def pids(self):
        """Of these ranks: other programs run beside this one, with ranks of their own."""
        return ",".join(str(app.pid) for app in self.ranks.values())

    def job(self, *more):
        run = self.ctl("job", "--pids", self.pids, "--why", "--deadline", "30s", *more)
        print(run.stdout, run.stderr)
        assert run.returncode in (0, 8), run.stderr
        return run.stdout

    def why(self, app):
        run = self.ctl("why", app.pid, "-j")
        print(run.stdout, run.stderr)
        return json.loads(run.stdout)


# ------------------------------------------------------------------ point to point -------------

def test_job_names_the_circle():
    with Ranks("crossed-pairs", 8) as s:
        for rank in range(8):
            s.start_rank(rank, **({"in": REDUCE} if rank > 5 else {}))
        job_says(s, CIRCLE)
        found = json.loads(s.job("-j"))["ranks"]
        assert [rank["collectives"][0].get("waits_for") for rank in found] == [[6, 7]] * 6 + [[5], [6]], found


@pytest.mark.parametrize("values, waits_for", [({}, [6, 7]), ({"from6": "65"}, [7]), ({"from7": "65"}, [6]),
                                               ({"from6": "65", "from7": "65"}, None)])
def test_a_rank_says_of_whom_it_has_received_nothing(values, waits_for):
    with Ranks("crossed-pairs", 8) as s:
        doc = s.why(s.start_rank(0, **values))
    found, = doc["collectives"]
    assert found["operation"] == "SendRecv" and found.get("waits_for") == waits_for and doc["complete"], doc
    assert awaited_ranks(doc) == (waits_for or []) and len(waits_in_collectives(doc)) == bool(waits_for), doc
    assert not [cause for cause in doc["causes"] if cause["culprit"]], doc


def test_ranks_that_move_are_in_no_circle():
    """Between any two samples a step of ranks 6 and 7 comes and goes."""
    with Ranks("crossed-pairs", 8) as s:
        for rank in range(8):
            s.start_rank(rank, **({"in": REDUCE} if rank > 5 else {"last": "listen"}))
        job = s.start("job", [BIN / "gpu-agentctl", "job", "--pids", s.pids, "--why", "-j", "--deadline", "30s"],
                      env={"GPU_AGENT_SOCKET": str(s.socket)})
        for step in range(100):
            for rank in range(6):
                for count in 8, 16:
                    s.tell(s.ranks[rank], f"gpu memory global {0x7f5c00006000 + count:#x} hex={100 - step:02x}")
            if job.popen.poll() is not None:
                break
            time.sleep(0.05)
        assert job.popen.wait(30) in (0, 8), job.err()
        found = json.loads(job.out())["ranks"]
        for rank in found[:6]:
            assert rank["collectives"][0]["waits_for"] and "unchanged_since_us" not in rank["collectives"][0], found
        (s.directory / "job.json").write_text(job.out())
        assert "MAYBE" not in s.ctl("merge", s.directory / "job.json").stdout


def shared(at, form, value):
    return f"gpu memory shared 0 0 0 {at:#x} hex={struct.pack('<' + form, value).hex()}"


# What leads to a work, each part as somebody may make it who wants to do harm, or as it is while a block begins.
UNREAD = {
    "another_communicator": (SHARED, "Q", 0x7F5C00000040), "other_channels": (SHARED + 8, "Q", 3), "another_channel": (SHARED + 32, "I", 1),
    "it_leaves": (SHARED + 36, "I", 1), "another_rank": (SHARED + 48, "I", 1), "more_ranks": (SHARED + 52, "I", 9),
    "other_peers": (SHARED + 144, "Q", 0x7F5C00002008), "another_kind": (BATCH + 8, "B", 1), "an_unknown_kind": (BATCH + 8, "B", 4),
    "no_work": (BATCH + 12, "I", 0), "many_works": (BATCH + 12, "I", 17), "works_without_end": (BATCH + 12, "I", 0xFFFFFFFF),
    "works_without_warps": (BATCH + 12, "I", 5), "small_works": (BATCH + 16, "I", 32), "large_works": (BATCH + 16, "I", 0x80000000),
}
UNREAD_WORK = {
    "of_itself": (36, "I", 0), "of_nobody": (36, "I", 8), "of_less_than_nobody": (36, "I", 0xFFFFFFFF), "no_channels": (40, "B", 0),
    "odd_channels": (40, "B", 3), "many_channels": (40, "B", 128), "a_channel_out_of_range": (41, "B", 64), "many_parts": (43, "B", 2),
}


@pytest.mark.parametrize("name", [*UNREAD, *UNREAD_WORK])
def test_what_does_not_fit_says_nothing(name):
    if name in UNREAD:
        (at, form, value), waits_for = UNREAD[name], None
    else:
        # The other work does.
        (at, form, value), waits_for = UNREAD_WORK[name], [7]
        at += WORK
    with Ranks("crossed-pairs", 8) as s:
        app = s.start_rank(0, last="listen")
        s.tell(app, shared(at, form, value))
        doc = s.why(app)
    found, = doc["collectives"]
    assert found.get("waits_for") == waits_for and UNREADABLE in doc["missing"], doc


@pytest.mark.parametrize("change", [(32, "I", 0), (43, "B", 0)])
def test_a_work_may_receive_nothing(change):
    """It is a copy, or it only sends."""
    at, form, value = change
    with Ranks("crossed-pairs", 8) as s:
        app = s.start_rank(0, last="listen")
        s.tell(app, shared(WORK + at, form, value))
        doc = s.why(app)
    assert doc["complete"] and doc["collectives"][0]["waits_for"] == [7], doc


@pytest.mark.parametrize("gone, waits_for", [((2, 3), [7]), ((6, 7), [6]), ((0, 1, 4, 5), [6, 7]), ((2, 3, 6, 7), None)])
def test_warps_that_have_received_wait_for_nobody(gone, waits_for):
    """They stand in the kernel, where they wait for the others; of theirs, count and steps are alike again."""
    with Ranks("crossed-pairs", 8) as s:
        app = s.start_rank(0, last="listen")
        for warp in gone:
            s.tell(app, f"gpu warp 0 0 {warp} in={KERNEL} pc=0x10")
        doc = s.why(app)
    assert doc["complete"] and doc["collectives"][0].get("waits_for") == waits_for, doc


# ------------------------------------------------------------------ trees ----------------------

# By rank: who is above and who below, and what has come.
TREE = {0: {"up": word(-1), "down": word(1) + 2 * word(-1)}, 1: {},
        2: {"up": word(1), "down": 3 * word(-1)}}


def start_tree(s):
    for rank, values in TREE.items():
        s.start_rank(rank, **values)
    s.start_app_of(3, "-e", "name train; init; gpu devices 1 sms=132 warps=64; context 0; listen")


def test_job_names_the_leaf_that_has_not_come():
    with Ranks("late-leaf", 4) as s:
        start_tree(s)
        assert "circle" not in without_missing(job_says(s, AWAITED))
        found = json.loads(s.job("-j"))["ranks"]
        assert [rank["collectives"][0].get("waits_for") for rank in found[:3]] == [[1], [3], [1]], found


@pytest.mark.parametrize("values, waits_for", [
    ({}, [3]), ({"from2": "64"}, [2, 3]), ({"from3": "65"}, [0]), ({"from3": "65", "from0": "65"}, None), ({"from0": "65"}, [3])])
def test_a_rank_waits_for_those_below_it_first(values, waits_for):
    with Ranks("late-leaf", 4) as s:
        doc = s.why(s.start_rank(1, **values))
    found, = doc["collectives"]
    assert found["operation"] == "AllReduce" and found.get("waits_for") == waits_for and doc["complete"], doc
    assert awaited_ranks(doc) == (waits_for or []), doc
    assert not [cause for cause in doc["causes"] if cause["culprit"]], doc


@pytest.mark.parametrize("gone, values, waits_for", [
    ((0, 1, 2, 3), {}, [0]), ((4, 5, 6, 7), {}, [3]), ((4, 5, 6, 7), {"from3": "65"}, None), ((0, 1, 2, 3), {"from0": "65"}, None)])
def test_half_of_the_warps_may_have_ended(gone, values, waits_for):
    with Ranks("late-leaf", 4) as s:
        app = s.start_rank(1, last="listen", **values)
        for warp in gone:
            s.tell(app, f"gpu warp 0 0 {warp} in={KERNEL} pc=0x10")
        doc = s.why(app)
    assert doc["complete"] and doc["collectives"][0].get("waits_for") == waits_for, doc


TREE_UNREAD = {
    "itself_above": (0x8C, "I", 1), "above_out_of_range": (0x8C, "I", 4), "one_above_and_below": (0x90, "I", 0),
    "one_twice_below": (0x94, "I", 2), "below_out_of_range": (0x98, "I", 4), "nobody_first": (0x90, "I", 0xFFFFFFFF),
    "another_place": (0x80, "I", 3), "no_map": (0x78, "Q", 0),
}


@pytest.mark.parametrize("name", TREE_UNREAD)
def test_a_tree_that_does_not_fit_says_nothing(name):
    at, form, value = TREE_UNREAD[name]
    with Ranks("late-leaf", 4) as s:
        app = s.start_rank(1, last="listen")
        s.tell(app, f"gpu memory global {0x7f5c00000000 + at:#x} hex={struct.pack('<' + form, value).hex()}")
        doc = s.why(app)
    assert "waits_for" not in doc["collectives"][0] and UNREADABLE in doc["missing"], doc


def test_works_of_other_warps_say_nothing():
    """Warps wait for each other between works that not all of them execute."""
    with Ranks("late-leaf", 4) as s:
        app = s.start_rank(1, last="listen")
        for at, form, value in (BATCH + 12, "I", 2), (WORK + 128 + 2, "B", 8):
            s.tell(app, shared(at, form, value))
        assert s.why(app)["collectives"][0]["waits_for"] == [3]
        s.tell(app, shared(WORK + 128 + 2, "B", 4))
        doc = s.why(app)
    assert "waits_for" not in doc["collectives"][0] and UNREADABLE in doc["missing"], doc
