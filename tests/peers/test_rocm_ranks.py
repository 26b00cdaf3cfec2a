#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A job of RCCL's on simulated GPUs, a process and a GPU for each rank: which of them keeps the others waiting."""
import json
import os
import struct
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import LONG_STOP, wait_until
from rocm import RocmScene, build, trees

KERNEL, LINE = "ncclKernel_", "sendrecv.cpp:"
HELD = 1
APART_S = 0.6  # what a verdict takes, and a little


class Job(RocmScene):
    """Ranks as a launcher starts them; no agent yet."""

    def __init__(self, n, roots):
        super().__init__(",".join(["gfx90a"] * n), start_agent=False)
        self.n, self.roots, self.ranks = n, roots, []

    def __enter__(self):
        super().__enter__()
        try:
            meeting = self.directory / "meeting"
            argv = [*build("rocm_rank", self.roots, "librccl.so.1", "libamdhip64.so.5"), meeting]
            for i in range(self.n):
                # All that they have in common for their data is /dev/shm and loopback.
                env = {"RANK": str(i), "LOCAL_RANK": str(i), "WORLD_SIZE": str(self.n), "NCCL_SOCKET_IFNAME": "lo"}
                self.ranks.append(self.run_beside(self.ranks[0], "rank", argv, env=env) if i else self.run("rank", argv, env=env))
                wait_until(meeting.exists, "rank 0 says where they meet")
            for rank in self.ranks:
                rank.wait_line(words="ready")
            return self
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise

    def start_sum(self):
        for rank in self.ranks:
            self.step(rank, "go", "started")

    def sums(self, rank):
        return [line for line in rank.out().splitlines() if line.startswith("ok ")]

    def wait_sums(self, n, ranks=None):
        for rank in ranks or self.ranks:
            wait_until(lambda rank=rank: len(self.sums(rank)) >= n, "the sum")

    def look(self, name):
        """A snapshot of each rank in a file of its name."""
        directory = self.directory / name
        directory.mkdir()
        for i, rank in enumerate(self.ranks):
            run = self.ctl("snapshot", rank.pid, LONG_STOP, "-j", "-o", directory / f"rank{i}.json", patience=120)
            assert run.returncode == 0, run.stderr
        return directory


def check_numbers(s, held):
    """The communicator and the work as the library itself lays them out: this is the second sum."""
    def told():
        # A first look at so large a library may have no time to look all up.
        run = s.ctl("why", s.ranks[HELD].pid, LONG_STOP, "-j", patience=120)
        return json.loads(run.stdout).get("collectives") if run.returncode in (0, 8) else None

    (found,) = wait_until(told, "what the dispatch was given")
    assert (found["rank"], found["ranks"], found["number"], found["waves"]) == (HELD, s.n, "0x1", held["waves"]), found
    assert (found["previous"], found["next"]) == ((HELD - 1) % s.n, (HELD + 1) % s.n), found
    check_connections(s.ranks[HELD].pid, int(found["communicator"], 16), found)


def check_connections(pid, comm, found):
    """The second channel, its ring, and the connection by which data of the rank in front comes, where lib/waits has them."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        def read(address, form):
            memory.seek(address)
            return struct.unpack(form, memory.read(struct.calcsize(form)))

        ring = [(found["rank"] + i) % found["ranks"] for i in range(found["ranks"])]
        for channel in range(2):
            peers, previous, following, order = read(comm + 80 + 160 * channel, "<QIIQ")
            assert (previous, following) == (ring[-1], ring[1]), (channel, previous, following)
            assert list(read(order, f"<{len(ring)}I")) == ring, channel
            connection = peers + 672 * previous + 336
            (tail,), (step,) = read(connection + 24, "<Q"), read(connection + 80, "<Q")
            # A simulated GPU takes no steps: both are as the library has made them.
            assert (read(tail, "<Q"), step) == ((0,), 0), (channel, tail, step)


@pytest.mark.parametrize("n", [2, 4])
def test_the_rank_whose_dispatch_does_not_end(n):
    roots = trees("rccl")
    with Job(n, roots) as s:
        s.start_sum()
        s.wait_sums(1)
        alone = [s.sums(rank) for rank in s.ranks]
        s.start_agentd()
        s.control(f"dispatch {s.ranks[HELD].pid} hold")
        s.start_sum()
        others = [rank for i, rank in enumerate(s.ranks) if i != HELD]
        s.wait_sums(2, others)
        held, = wait_until(lambda: [q for q in s.queues(s.ranks[HELD]) if q["held"]], "the dispatch is held")
        check_numbers(s, held)
        before = s.look("before")
        time.sleep(APART_S)
        after = s.look("after")

        run = s.ctl("diff", before / f"rank{HELD}.json", after / f"rank{HELD}.json")
        assert run.returncode == 10 and run.stdout.startswith(f"HUNG   queue {held['id']}: no packet for "), run.stdout + run.stderr
        assert KERNEL in run.stdout and LINE in run.stdout, run.stdout
        run = s.ctl("diff", before / "rank0.json", after / "rank0.json")
        assert run.returncode == 0 and run.stdout.startswith("Nothing is wrong: "), run.stdout + run.stderr

        run = s.ctl("merge", after)
        assert run.returncode == 0, run.stderr
        # Its row of the tree, and the line in it.
        rows = [line.split() for line in run.stdout.splitlines() if line.endswith(f"  rank{HELD}")]
        assert [row[:2] for row in rows] == [["1", str(held["waves"])]] * 2, run.stdout
        assert rows[0][2].startswith(KERNEL) and rows[1][2].startswith(LINE), run.stdout
        assert not [line for line in run.stdout.splitlines() if line.endswith("  rank0")], run.stdout
        # Where most are is known from three ranks on.
        first = run.stdout.splitlines()[0]
        assert n == 2 or first.startswith(f"ODD    rank{HELD}  is at {LINE}") and "is at packet" in first, run.stdout
        ranks = json.loads(s.ctl("merge", after, "-j").stdout)["ranks"]
        least = min(rank["packets"] for rank in ranks)
        assert [rank["name"] for rank in ranks if rank["packets"] == least] == [f"rank{HELD}"], ranks

        assert len(s.sums(s.ranks[HELD])) == 1
        s.control(f"dispatch {s.ranks[HELD].pid} complete")
        s.wait_sums(2)
        assert [s.sums(rank) for rank in s.ranks] == [2 * line for line in alone]
        for rank in s.ranks:
            rank.popen.stdin.close()
            assert rank.popen.wait(30) == 0
