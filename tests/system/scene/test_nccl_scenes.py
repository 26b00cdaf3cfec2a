#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Kernels of NCCL's on NVIDIA's devices: communicator and rank, whose data has not come, and the circle of two communicators."""
import itertools
import json
import os
import re
import struct
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN, ROOT, CudaScene, wait_until
from ranklines import awaited_ranks, graph_of, job_says, waits_in_collectives, without_missing

CUBIN = ROOT / "sim/scenes/cuda/nccl/collectives-sm_90.cubin"
KERNEL = "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE"
LL, LL128 = "_Z37ncclDevFunc_AllReduce_Sum_f32_RING_LLv", "_Z40ncclDevFunc_AllReduce_Sum_f32_RING_LL128v"
GATHER_LL = "_Z29ncclDevFunc_AllGather_RING_LLv"
REDUCE, GATHER = "_Z41ncclDevFunc_AllReduce_Sum_f32_RING_SIMPLEv", "_Z33ncclDevFunc_AllGather_RING_SIMPLEv"
N = 4
CIRCLE = ("MAYBE  a circle: rank0,rank2 wait in AllReduce for rank1,rank3, which are not in it; "
          "rank1,rank3 wait in AllGather for rank0,rank2, which are not in it [inferred]")


def word(value):
    return struct.pack("<I", value).hex()


class Ranks(CudaScene):
    """Processes that run the scene, each with values and a rank of its own."""

    def __init__(self):
        super().__init__(app=None)
        self.ranks = {}

    def start_rank(self, rank, /, **values):
        values = {"rank": word(rank), "previous": word((rank - 1) % N), "next": word((rank + 1) % N),
                  "in": GATHER if rank % 2 else REDUCE, **values}
        app = self.start("app", [BIN / "gpu-agent-cuda-simapp", "--scene", "crossed-collectives", "--set",
                                 ",".join(f"{name}={value}" for name, value in values.items())],
                         env={"LD_LIBRARY_PATH": str(self.libraries), "RANK": str(rank), "WORLD_SIZE": str(N)})
        app.wait_line()
        self.ranks[rank] = app
        return app

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


@pytest.mark.parametrize("functions", [(REDUCE, GATHER), (LL, GATHER_LL), (LL128, "_Z32ncclDevFunc_AllGather_RING_LL128v"),
                                       (KERNEL, GATHER_LL)])
def test_job_names_the_circle(functions):
    with Ranks() as s:
        for rank in range(N):
            s.start_rank(rank, **{"in": functions[rank % 2]})
        job_says(s, CIRCLE)
        document = json.loads(s.job("-j"))
        found = document["ranks"]
        assert [rank["collectives"][0].get("waits_for") for rank in found] == [[3], [0], [1], [2]], found
        assert graph_of(document) == ({f"rank{rank}": [f"rank{(rank - 1) % N}"] for rank in range(N)}, [("circle", "rank0", N)])
        for rank, of in enumerate(found):
            told = of["collectives"][0]
            # The name of the function that its waves are in, of which KERNEL has the one that it is named after inside it.
            words = [told["operation"], *(told[k] for k in ("reduction", "type") if k in told), told["algorithm"], told["protocol"]]
            assert re.search(f"_{'_'.join(words)}(v|24.*)$", functions[rank % 2]), (functions, told)


def test_a_rank_says_of_whom_it_has_received_nothing():
    with Ranks() as s:
        shown = s.ctl("why", s.start_rank(0).pid)
        print(shown.stdout, shown.stderr)
        assert shown.returncode == 0 and "CAUSE" not in shown.stdout and "MAYBE" not in shown.stdout
        assert ("RANK 0 of a communicator of 4: in AllReduce (ring, simple, f32 sum), "
                "operations that are not told apart (16 warps of context 0), "
                "waits for rank 3 (not seen) [inferred]") in " ".join(shown.stdout.split()), shown.stdout


# What keeps ranks from being known to wait for each other.
HEALTHY = {"data_has_come": {0: {"posted": "65"}, 2: {"posted": "65"}}, "one_operation": {rank: {"in": REDUCE} for rank in range(N)},
           "other_ranks": {0: {"ranks": word(5)}}}


@pytest.mark.parametrize("name", HEALTHY)
def test_nobody_is_named_where_it_is_not_known(name):
    with Ranks() as s:
        for rank in range(N):
            s.start_rank(rank, **HEALTHY[name].get(rank, {}))
        shown = s.job()
        assert "MAYBE" not in shown and "CAUSE" not in shown and "circle" not in without_missing(shown), shown


# What kernels before this one have taken of a connection, and as much has come: there are fewer turns than that.
TAKEN = 1 << 40


def count(value):
    return struct.pack("<Q", value).hex()


def test_a_rank_that_moves_is_in_no_circle():
    """Between any two samples another step has come, and has been taken.  No count comes round, however long they take."""
    with Ranks() as s:
        for rank in range(N):
            s.start_rank(rank, **({"last": "listen"} if rank < 2 else {}))
        for app in s.ranks[0], s.ranks[1]:
            for taken in 0x7F5C00004198, 0x7F5C00005198:
                s.tell(app, f"gpu memory global {taken:#x} hex={count(TAKEN)}")
        job = s.start("job", [BIN / "gpu-agentctl", "job", "--pids", s.pids, "--why", "-j", "--deadline", "30s"],
                      env={"GPU_AGENT_SOCKET": str(s.socket)})
        deadline = time.monotonic() + 60
        for step in itertools.count():
            for app in s.ranks[0], s.ranks[1]:
                s.tell(app, f"gpu memory global 0x7f5c00006000 hex={count(TAKEN - step)}")
                s.tell(app, f"gpu memory global 0x7f5c00006008 hex={count(TAKEN - step)}")
            if job.popen.poll() is not None or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        assert job.popen.wait(1) in (0, 8), job.err()
        found = json.loads(job.out())["ranks"]
        for rank in found[:2]:
            assert rank["collectives"][0]["waits_for"] and "unchanged_since_us" not in rank["collectives"][0], found
        (s.directory / "job.json").write_text(job.out())
        assert "MAYBE" not in s.ctl("merge", s.directory / "job.json").stdout


def test_one_sample_accuses_nobody(tmp_path):
    """And two of each rank, of which no time is that of all."""
    with Ranks() as s:
        for rank in range(N):
            s.start_rank(rank)
        for more in (), ("--twice=1000",):
            for rank, app in s.ranks.items():
                s.ctl("snapshot", app.pid, "--why", *more, "--host", "-j", "-o", tmp_path / f"rank{rank}.json")
            shown = s.ctl("merge", *(tmp_path / f"rank{rank}.json" for rank in range(N))).stdout
            assert "4 ranks" in shown and "MAYBE" not in shown, (more, shown)


# ------------------------------------------------------------------ one process ----------------

COMM = 0x7F5C00000000
# Pointer to the channels, where they are, their distance, the connection of a rank, its count.
LAYOUTS = {"2.19": (48, 64, 240, 304, 104), "2.20": (64, 80, 272, 288, 96), "2.21": (64, 80, 368, 304, 104),
           "2.22": (56, 64, 368, 304, 104), "2.25": (64, 80, 352, 304, 104), "2.26": (64, 96, 368, 304, 104),
           "2.30": (56, 96, 368, 304, 104)}
PEERS, ORDER, CONNECTIONS, COUNTS, RANKS = COMM + 0x8000, COMM + 0xA000, COMM + 0xB000, COMM + 0xF000, 8
# Each channel has a buffer of LL and one of LL128, of 8 slots each.
BUFFERS, SLOT, SLOTS = COMM + 0x10000, 256, 8


def flag_at(channel, slot, protocol=LL):
    """Where the flag of a slot's first line is: of LL the first one of two."""
    return BUFFERS + (2 * channel + (protocol == LL128)) * SLOTS * SLOT + slot * SLOT + (120 if protocol == LL128 else 4)


def memory(layout, channels=2, rank=3, arrived=100, taken=100):
    """A communicator of 8 ranks, as one region, and what a test may change in it: the places of its parts."""
    pointer, first, stride, receive, step = LAYOUTS[layout]
    image = bytearray(0x14000)

    def put(form, address, *values):
        struct.pack_into("<" + form, image, address - COMM, *values)

    put("II", COMM, rank, RANKS)
    put("Q", COMM + pointer, COMM + first)
    before, after = (rank - 1) % RANKS, (rank + 1) % RANKS
    put(f"{RANKS}I", ORDER, *((rank + i) % RANKS for i in range(RANKS)))
    for i in range(channels):
        put("QIIQ", COMM + first + i * stride, PEERS + 64 * i, before, after, ORDER)
        peer = CONNECTIONS + 0x200 * i
        put(f"{RANKS}Q", PEERS + 64 * i, *([peer] * RANKS))
        put("Q", peer + receive + 48, COUNTS + 8 * i)
        put("Q", peer + receive + step, taken)
        put("Q", COUNTS + 8 * i, arrived)
        put("QQ", peer + receive, flag_at(i, 0) - 4, flag_at(i, 0, LL128) - 120)
        # What came last by each slot was taken.
        for old in range(taken - SLOTS, taken):
            put("IxxxxI", flag_at(i, old % SLOTS), old + 1, old + 1)
            put("Q", flag_at(i, old % SLOTS, LL128), old + 1)
    put("II", COMM + (8 if layout == "2.19" else 16), SLOTS * SLOT, SLOTS * SLOT)
    return image


class One(CudaScene):
    def __init__(self, image, function=REDUCE, mask=3, more=(), grid=2, more_warps=()):
        super().__init__(app=None)
        self.script = [f"gpu memory global {COMM:#x} size={len(image)}", *plants(image), *more,
                       f"gpu launch {KERNEL} grid={grid} block=64 args=p:{COMM:#x},l:{mask}",
                       f"gpu warp 0 0 0 sms={grid} warps=2 in={function} pc=0x10", *more_warps]

    def __enter__(self):
        super().__enter__()
        lines = [f"init; gpu devices 1 sms=132 warps=64; context 0; module {CUBIN}", *self.script]
        self.app = self.start_app("; ".join(lines) + "; listen")
        self.session = self.attach()
        return self

    def why(self, **more):
        doc = self.rpc.call("why.get", session=self.session, **more)
        print(json.dumps(doc))
        return doc


def plants(image):
    """Commands for what is not zero, in lines that are not too long."""
    return [f"gpu memory global {COMM + at:#x} hex={image[at:at + 64].hex()}" for at in range(0, len(image), 64) if any(image[at:at + 64])]


@pytest.mark.parametrize("layout, function", [*((layout, REDUCE) for layout in LAYOUTS), *((layout, LL) for layout in LAYOUTS),
                                              ("2.30", LL128), ("2.30", KERNEL)])
def test_every_release_is_told_apart(layout, function):
    """The kernel has the function for few elements inside it."""
    with One(memory(layout), function) as s:
        doc = s.why()
    found, = doc["collectives"]
    assert (found["rank"], found["ranks"], found["previous"], found["next"]) == (3, RANKS, 2, 4), found
    assert found["communicator"] == hex(COMM) and found["operation"] == "AllReduce" and found["waves"] == 4, found
    assert found["waits_for"] == [2] and found["confidence"] == "inferred" and "unchanged_since_us" not in found, found
    wait, = waits_in_collectives(doc)
    assert wait["who"] == f"4 warps of {wait['kernel']} (rank 3 of communicator {COMM:#x})" and "stuck" not in wait, wait
    assert wait["missing"] == [{"what": f"rank 2 of communicator {COMM:#x}", "state": "unknown"}] and wait["missing_count"] == 1, wait
    assert wait["text"] == f"{wait['who']} wait in a collective operation; missing: {wait['missing'][0]['what']}", wait
    assert (wait["waves"], wait["alike"], wait["workgroup"], wait["confidence"]) == (4, 0, [], "inferred"), wait
    assert awaited_ranks(doc) == [2] and "stuck" not in doc, doc
    assert doc["complete"] and not [c for c in doc["causes"] if c["culprit"]], doc


def test_a_block_has_the_channel_of_its_bit():
    """The second block has the fourth channel, by which data has come; the second channel is nobody's."""
    image = memory("2.30", channels=4)
    struct.pack_into("<Q", image, COUNTS - COMM, 101)
    for count, waits_for in ((100, [2]), (101, None)):
        struct.pack_into("<Q", image, COUNTS - COMM + 24, count)
        with One(image, mask=0b1001) as s:
            assert s.why()["collectives"][0].get("waits_for") == waits_for


@pytest.mark.parametrize("protocol, function", [(LL, LL), (LL, KERNEL), (LL, GATHER_LL), (LL128, LL128),
                                                (LL128, "_Z32ncclDevFunc_AllGather_RING_LL128v")])
def test_a_flag_says_that_data_has_come(protocol, function):
    """By the first channel it has; the other one is read when that has, too."""
    image = memory("2.30")
    for channel, waits_for in ((0, [2]), (1, None)):
        struct.pack_into("<I", image, flag_at(channel, 100 % SLOTS, protocol) - COMM, 101)
        with One(image, function) as s:
            doc = s.why()
        assert doc["complete"] and doc["collectives"][0].get("waits_for") == waits_for, doc


@pytest.mark.parametrize("function, waits_for", [(LL, None), (GATHER_LL, [2])])
def test_first_steps_of_few_elements_may_be_empty(function, waits_for):
    """By the slot of step 102 data has come, and by those of 100 and 101 none: only an all-reduce may leave these out."""
    image = memory("2.30")
    for channel in 0, 1:
        struct.pack_into("<I", image, flag_at(channel, 102 % SLOTS) - COMM, 103)
    with One(image, function) as s:
        doc = s.why()
    assert doc["complete"] and doc["collectives"][0].get("waits_for") == waits_for, doc


@pytest.mark.parametrize("second", ["_Z20ncclDevFunc_SendRecvv", LL, "_Z41ncclDevFunc_AllReduce_Sum_f32_TREE_SIMPLEv"])
def test_a_kernel_may_wait_for_its_other_warps(second):
    """Its first warps stand in the kernel itself, but the others in a function."""
    with One(memory("2.30"), KERNEL, more_warps=[f"gpu warp 0 0 1 sms=2 in={second} pc=0x10"]) as s:
        found, = s.why()["collectives"]
    assert "waits_for" not in found and found["operation"] == ("SendRecv" if "SendRecv" in second else "AllReduce"), found


def test_a_rank_is_late_for_a_small_operation():
    """The scene, as who replays it sees it, and without its fault."""
    for more, late in (("", True), ("in=" + LL128, True), ("flag=65", False), ("flag=65,in=" + LL128, False)):
        with CudaScene(app=None) as s:
            app = s.start("app", [BIN / "gpu-agent-cuda-simapp", "--scene", "late-rank", *(["--set", more] if more else [])],
                          env={"LD_LIBRARY_PATH": str(s.libraries)})
            app.wait_line()
            shown = s.ctl("why", app.pid)
        text = " ".join(shown.stdout.split())
        print(shown.stdout, shown.stderr)
        said = (f"RANK 2 of a communicator of 8: in AllReduce (ring, {'LL128' if LL128 in more else 'LL'}, f32 sum), "
                "operations that are not told apart (16 warps of context 0)")
        assert said + (", waits for rank 1 (not seen) [inferred]" if late else " [inferred]") in text, (more, text)
        assert shown.returncode == 0 and "CAUSE" not in text and ("waits for" in text) == late, (more, text)


# Functions that count otherwise, or in which a rank need not receive: rank and communicator are told.
@pytest.mark.parametrize("function, operation", [
    ("_Z41ncclDevFunc_AllReduce_Sum_f32_TREE_SIMPLEv", "AllReduce"),
    ("_Z33ncclDevFunc_Broadcast_RING_SIMPLEv", "Broadcast"), ("_Z20ncclDevFunc_SendRecvv", "SendRecv")])
def test_nothing_is_claimed_of_other_functions(function, operation):
    with One(memory("2.30"), function) as s:
        doc = s.why()
    found, = doc["collectives"]
    assert found.get("operation") == operation and "waits_for" not in found and found["rank"] == 3, found
    assert not waits_in_collectives(doc) and not [n for n in doc["nodes"] if n["kind"] == "rank"], doc


def test_two_samples_that_are_alike_say_since_when():
    with One(memory("2.30")) as s:
        began = time.time()
        first = s.why()
        time.sleep(1.1)
        second = s.why(since=first["sample"])
        found, = second["collectives"]
        # It may be the other rank's turn: nothing is known to be stuck.
        assert awaited_ranks(second) == [2] and waits_in_collectives(first)[0]["id"] == waits_in_collectives(second)[0]["id"], second
        assert "stuck" not in second and "stuck" not in waits_in_collectives(second)[0], second
        assert began <= found["unchanged_since_us"] / 1e6 <= found["seen_us"] / 1e6 - 1 <= time.time() - 1, found
        s.control(f"memory global {COUNTS:#x} hex=63")
        time.sleep(1.1)
        assert "unchanged_since_us" not in s.why(since=second["sample"])["collectives"][0]


def test_a_small_operation_that_moves_was_never_unchanged():
    """Between two samples eight steps have come and have been taken, so that in both the next one has not come."""
    with One(memory("2.30"), LL) as s:
        first = s.why()
        for channel in 0, 1:
            for old in range(100, 108):
                for half in 0, 8:
                    s.control(f"memory global {flag_at(channel, old % SLOTS) + half:#x} hex={old + 1:02x}")
            s.control(f"memory global {CONNECTIONS + 0x200 * channel + 304 + 104:#x} hex={108:02x}")
        time.sleep(1.1)
        doc = s.why(since=first["sample"])
        assert doc["complete"] and doc["collectives"][0]["waits_for"] == [2], doc
        assert "unchanged_since_us" not in doc["collectives"][0], doc
        wait, = waits_in_collectives(doc)
        assert wait["stuck"] is False and doc["stuck"] is False and awaited_ranks(doc) == [], doc


def test_a_count_may_be_in_memory_of_the_host():
    """As of a rank on another host: a proxy writes it."""
    image, pinned = memory("2.30"), 0x7F5D00000000
    for i in range(2):
        struct.pack_into("<Q", image, CONNECTIONS + 0x200 * i + 304 + 48 - COMM, pinned)
    for count, waits_for in ((100, [2]), (101, None)):
        with One(image, more=[f"gpu memory pinned {pinned:#x} hex={struct.pack('<Q', count).hex()}"]) as s:
            doc = s.why()
            assert doc["complete"] and doc["collectives"][0].get("waits_for") == waits_for, doc


# What leads to a connection, each part as somebody may make it who wants to do harm: place, and what is there.
FIRST, STRIDE = 96, 368
OTHER_LAYOUT = {
    "rank_out_of_range": (COMM, "I", 8), "no_ranks": (COMM + 4, "I", 0), "many_ranks": (COMM + 4, "I", 0xFFFFFFFF),
    "more_ranks": (COMM + 4, "I", 65536), "channels_elsewhere": (COMM + 56, "Q", COMM + 0x1000), "no_channel": (COMM + FIRST, "Q", 0),
    "order_nowhere": (COMM + FIRST + 16, "Q", 0xFFFFFFFFFFFFFFFC), "other_order": (ORDER, "I", 5),
    "previous_out_of_range": (COMM + FIRST + 8, "I", 8),
}
UNREAD = {
    "second_channel": (COMM + FIRST + STRIDE, "Q", 0), "peers_nowhere": (COMM + FIRST + STRIDE, "Q", 0xFFFFFFFFFFFFFFF8),
    "peer_nowhere": (PEERS + 64 + 16, "Q", 0x1000), "peer_at_the_end": (PEERS + 64 + 16, "Q", 0xFFFFFFFFFFFFFFF8),
    "count_nowhere": (CONNECTIONS + 0x200 + 304 + 48, "Q", 0x1000), "count_odd": (CONNECTIONS + 0x200 + 304 + 48, "Q", COUNTS + 1),
    "not_connected": (CONNECTIONS + 0x200 + 304 + 48, "Q", 0),
}


# What leads to the flags of the second channel, and what is in its slots.
BUFFER = CONNECTIONS + 0x200 + 304
UNREAD_LL = {
    "no_buffer": (BUFFER, "Q", 0), "buffer_nowhere": (BUFFER, "Q", 0x1000), "buffer_at_the_end": (BUFFER, "Q", 0xFFFFFFFFFFFFFFF0),
    "buffer_odd": (BUFFER, "Q", flag_at(1, 0) + 4), "count_odd": (BUFFER + 48, "Q", COUNTS + 1),
    "flag_of_another_slot": (flag_at(1, 4), "I", 102), "half_a_line": (flag_at(1, 5), "I", 86),
    "second_of_another_slot": (flag_at(1, 3) + 8, "I", 3),
}


def changed(place):
    image = memory("2.30")
    address, form, value = place
    struct.pack_into("<" + form, image, address - COMM, value)
    return image


@pytest.mark.parametrize("name", OTHER_LAYOUT)
def test_a_communicator_that_does_not_fit_is_not_told(name):
    with One(changed(OTHER_LAYOUT[name])) as s:
        began = time.monotonic()
        doc = s.why()
        assert time.monotonic() - began < 5
    assert not doc.get("collectives") and not [c for c in doc["causes"] if c["culprit"]], doc
    assert [u["waves"] for u in doc["undecoded"] if "NCCL whose communicator is not laid out as known" in u["reason"]] == [4], doc


@pytest.mark.parametrize("name", UNREAD)
def test_a_channel_that_does_not_fit_says_nothing(name):
    with One(changed(UNREAD[name])) as s:
        doc = s.why()
    # The other one does.
    assert doc["collectives"][0]["waits_for"] == [2], doc
    assert [m for m in doc["missing"] if m.startswith("collective operations: what some blocks receive is not readable")], doc


@pytest.mark.parametrize("name", UNREAD_LL)
def test_a_buffer_that_does_not_fit_says_nothing(name):
    with One(changed(UNREAD_LL[name]), LL) as s:
        doc = s.why()
    assert doc["collectives"][0]["waits_for"] == [2], doc
    assert [m for m in doc["missing"] if m.startswith("collective operations: what some blocks receive is not readable")], doc


@pytest.mark.parametrize("size", [0, 1016, 0xFFFFFFFF])
def test_a_buffer_of_no_size_says_nothing(size):
    with One(changed((COMM + 16, "I", size)), LL) as s:
        doc = s.why()
    assert "waits_for" not in doc["collectives"][0] and not doc["complete"], doc


def test_arguments_that_lead_nowhere_are_told_so():
    scene = One(memory("2.30"))
    scene.script = [f"gpu launch {KERNEL} grid=2 block=64 args=p:0x10,l:3"]
    with scene as s:
        doc = s.why()
    assert not doc.get("collectives"), doc
    assert "collective operations: what their kernels were given is not readable" in doc["missing"], doc


def test_a_core_without_that_memory_says_so(tmp_path):
    """The agent's own have none of the device's."""
    core = tmp_path / "core"
    with One(memory("2.30")) as s:
        dumped = s.ctl("dump", s.app.pid, "-o", core, "--max-stop=60s")
        assert dumped.returncode in (0, 8), dumped.stderr
        doc = json.loads(s.ctl("why", "--core", core, "-j").stdout)
    assert "collectives" not in doc, doc
    assert "collective operations: what their kernels were given is not readable" in doc["missing"], doc
