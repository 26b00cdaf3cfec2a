#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ranks of one communicator, a process for each: the first line of `merge` names who executes another operation."""
import json
import os
import subprocess
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN, ROOT, Scene

GATHER = "_Z45ncclFunction_AllGather_RING_SIMPLE_Sum_int8_tv"
REDUCE = "_Z44ncclFunction_AllReduce_RING_SIMPLE_Sum_floatv"
WRONG = "MAYBE  communicator of 4 ranks, operation 0x28c: "
N = 4


class Ranks(Scene):
    """Processes that run the scene, each with values of its own."""

    def __init__(self):
        super().__init__(app=None, gpus="gfx90a")

    def start_rank(self, rank, /, scene="other-collective", **values):
        values = {"rank": rank, "previous": (rank - 1) % N, "next": (rank + 1) % N, "in": GATHER if rank == 2 else REDUCE, **values}
        app = self.start("app", [BIN / "gpu-agent-simapp", "--kfd", self.mount / "kfd", "--scene", scene, "--set",
                                 ",".join(f"{name}={value}" for name, value in values.items())])
        app.wait_line()
        return app

    def look(self, app, name, directory):
        run = self.ctl("snapshot", app.pid, "--why", "-j", "-o", directory / f"{name}.json")
        assert run.returncode == 0, run.stderr
        return directory / f"{name}.json"

    def merge(self, directory, changes, ranks=range(N)):
        """What is said of ranks that differ from the scene so."""
        files = [self.look(self.start_rank(rank, **changes.get(rank, {})), f"rank{rank}", directory) for rank in ranks]
        run = self.ctl("merge", *files)
        print(run.stdout, run.stderr)
        assert run.returncode == 0, run.stderr
        return files, run.stdout


@pytest.mark.parametrize("runtime", ["ttmp", "on"])
def test_each_rank_says_its_operation_and_number(runtime):
    """Also where waves do not say which packet they are of."""
    with Ranks() as s:
        app = s.start_rank(2, runtime=runtime)
        shown = s.ctl("why", app.pid)
        print(shown.stdout, shown.stderr)
        assert shown.returncode == 0 and "CAUSE" not in shown.stdout and "MAYBE" not in shown.stdout
        assert ("RANK   2 of a communicator of 4: in AllGather (ring, simple), operation 0x28c (8 waves of queue " in shown.stdout
                and shown.stdout.rstrip().endswith("[inferred]")), shown.stdout


def test_merge_names_who_is_in_another_operation(tmp_path):
    with Ranks() as s:
        files, shown = s.merge(tmp_path, {})
        # The kernel is the same in all four.
        assert shown.splitlines()[0].startswith(WRONG + "rank2 is in AllGather,"), shown
        text = " ".join(shown.split())
        assert WRONG.replace("  ", " ") + "rank2 is in AllGather, rank0,rank1,rank3 are in AllReduce [inferred]" in text, shown
        # Merged in steps it is the same.
        for name, part in (("a", files[:2]), ("b", files[2:])):
            assert s.ctl("merge", "-j", *part, "-o", tmp_path / name).returncode == 0
        again = s.ctl("merge", tmp_path / "a", tmp_path / "b").stdout
        assert again.splitlines()[0] == shown.splitlines()[0], again
        (member,) = json.loads(s.ctl("merge", "-j", *files).stdout)["ranks"][2]["collectives"]
        assert (member["operation"], member["number"], member["rank"], member["ranks"]) == ("AllGather", "0x28c", 2, N), member
        # The function of the scene is ncclFunction_AllGather_RING_SIMPLE_Sum_int8_t, and nothing is summed up.
        assert (member["algorithm"], member["protocol"]) == ("RING", "SIMPLE") and not {"reduction", "type"} & member.keys(), member


ALIKE = {2: {"in": REDUCE}}
# What ranks change, of which it is not known that they are of one communicator, or that they differ.
HEALTHY = {
    "the_same": (ALIKE, range(N)),
    "behind_in_another": ({2: {"number": "0x28b"}}, range(N)),
    "behind": ({2: {"in": REDUCE, "number": "0x28b"}}, range(N)),
    "not_looked_at": ({}, [0, 1, 2]),
    "the_same_rank": ({2: {"rank": 1}}, range(N)),
    "neighbours": ({2: {"previous": 3, "next": 1}}, range(N)),
    "other_size": ({2: {"ranks": 5}}, range(N)),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_nobody_is_named_where_it_is_not_known(name, tmp_path):
    changes, ranks = HEALTHY[name]
    with Ranks() as s:
        _, shown = s.merge(tmp_path, changes, ranks)
        assert "MAYBE" not in shown and "CAUSE" not in shown and "communicator" not in shown, shown


@pytest.mark.parametrize("values", [{"rank": 4}, {"ranks": 0}, {"ranks": 65537}, {"next": 4}])
def test_a_communicator_that_does_not_fit_is_not_told(values):
    """What a process writes there is data: it is refused, and that is said."""
    with Ranks() as s:
        shown = s.ctl("why", s.start_rank(2, **values).pid)
        print(shown.stdout, shown.stderr)
        assert shown.returncode == 8 and "RANK" not in shown.stdout, shown.stdout
        assert "8 waves: they execute a collective operation of RCCL whose communicator is not laid out as known" in " ".join(
            shown.stderr.split()), shown.stderr


@pytest.mark.parametrize("runtime", ["ttmp", "on"])
@pytest.mark.parametrize("values", [{}, {"ranks": 65537}])
def test_who_sleeps_in_a_collective_operation_waits_for_ranks(values, runtime, tmp_path):
    """Whether it can be told for which or not, it is not said to wait for nobody."""
    directory = ROOT / "sim/scenes/amd"
    code = bytearray((directory / "collectives-gfx90a.co").read_bytes())
    symbols = subprocess.run(["readelf", "-sW", directory / "collectives-gfx90a.co"], capture_output=True, text=True, check=True)
    at = next(int(line.split()[1], 16) for line in symbols.stdout.splitlines() if line.endswith(" " + GATHER))
    text = next(line.replace("[ ", "[").split() for line in subprocess.run(
        ["readelf", "-SW", directory / "collectives-gfx90a.co"], capture_output=True, text=True, check=True).stdout.splitlines()
        if " .text " in line)
    at += int(text[4], 16) - int(text[3], 16)
    # s_sleep 1, wherever in its loop a wave is.
    code[at:at + 16] = (0xBF8E0001).to_bytes(4, "little") * 4
    (tmp_path / "collectives-gfx90a.co").write_bytes(code)
    (tmp_path / "sleeps.scene").write_text((directory / "other-collective.scene").read_text())
    with Ranks() as s:
        shown = s.ctl("why", s.start_rank(2, scene=tmp_path / "sleeps.scene", runtime=runtime, **values).pid)
        print(shown.stdout, shown.stderr)
        assert "sleep" not in shown.stdout and ("RANK" in shown.stdout) == (not values), shown.stdout
