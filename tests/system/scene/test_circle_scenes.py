#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ranks that wait for each other in operations of two communicators, a process for each: `job` and `merge` name the circle."""
import itertools
import json
import os
import re
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN, Scene, wait_until
from ranklines import awaited_ranks, first_line, graph_of, job_says, waits_in_collectives, without_missing

REDUCE = {"in": "_Z44ncclFunction_AllReduce_RING_SIMPLE_Sum_floatv", "work": "0x7f5000002000"}
CIRCLE = ("MAYBE  a circle: ranks 0-5 wait in SendRecv for rank6,rank7, which are not in it; "
          "rank6,rank7 wait in AllReduce (operation 0x28c) for rank5, which is not in it [inferred]")
AWAITED = ("WAITS  ranks 0-4,6-7 wait in collective operations, for each other and in the end for rank5, which was in none when seen "
           "[inferred]")
N = 8
ALL = range(N)


class Ranks(Scene):
    """Processes that run the scene, each with values and a rank of its own."""

    def __init__(self):
        super().__init__(app=None, gpus="gfx90a")
        self.ranks = {}

    def start_rank(self, rank, env=None, /, **values):
        values = {"rank": rank, "previous": (rank - 1) % N, "next": (rank + 1) % N, **(REDUCE if rank > 5 else {}), **values}
        app = self.start("app", [BIN / "gpu-agent-simapp", "--kfd", self.mount / "kfd", "--scene", "crossed-collectives", "--set",
                                 ",".join(f"{name}={value}" for name, value in values.items())],
                         env={"RANK": str(rank), "WORLD_SIZE": str(N), **(env or {})})
        app.wait_line()
        self.ranks[rank] = app
        return app

    def start_idle(self, rank):
        self.start("app", [BIN / "gpu-agent-simapp", "--kfd", self.mount / "kfd", "-e", "runtime on; queues 1; spin"],
                   env={"RANK": str(rank), "WORLD_SIZE": str(N)}).wait_line()

    def tell(self, app, command):
        """Run a command of a script in a process that listens."""
        answers = app.out().count("\nok")
        app.popen.stdin.write(command.encode() + b"\n")
        app.popen.stdin.flush()
        wait_until(lambda: app.out().count("\nok") > answers, command)

    def job(self, *more, status=(0, 8)):
        run = self.ctl("job", "--all", "--why", "--deadline", "30s", *more)
        print(run.stdout, run.stderr)
        assert run.returncode in status, run.stderr
        return run.stdout


def start_all(s, ranks=ALL, **changes):
    for rank in ranks:
        s.start_rank(rank, changes.get("env"), **changes.get(f"rank{rank}", {}))


def test_job_names_the_circle(tmp_path):
    with Ranks() as s:
        start_all(s)
        job_says(s, CIRCLE)
        (tmp_path / "job.json").write_text(s.job("-j"))
        found = json.loads((tmp_path / "job.json").read_text())["ranks"]
        assert [rank["collectives"][0].get("waits_for") for rank in found] == 6 * [[6, 7]] + [[5], [6]], found
        # Merged in steps it is the same.
        assert first_line(s.ctl("merge", tmp_path / "job.json").stdout) == CIRCLE
        again = json.loads(s.ctl("merge", tmp_path / "job.json", "-j").stdout)
        # The first line says what the graph does, which also has whom rank 7 waits for in its own operation.
        edges, causes = graph_of(again)
        assert edges == {**{f"rank{rank}": ["rank6", "rank7"] for rank in range(6)}, "rank6": ["rank5"], "rank7": ["rank6"]}, edges
        assert causes == [("circle", "rank5", 8)], causes
        assert CIRCLE == f"MAYBE  {again['rank_graph']['causes'][0]['text']} [inferred]", again["rank_graph"]


def test_for_whom_all_wait_is_told(tmp_path):
    """It may just not have come yet: that is no accusation.  Of whom nothing is known, nothing is said."""
    with Ranks() as s:
        start_all(s, sorted(set(ALL) - {5}))
        s.start_idle(5)
        document = json.loads(s.job("-j"))
        for name, change in {"as it is": {}, "not asked": {"collectives": None}, "at another time": {"time_us": 1}}.items():
            ranks = [*document["ranks"]]
            ranks[5] = {key: value for key, value in {**ranks[5], **change}.items() if value is not None}
            (tmp_path / "job.json").write_text(json.dumps({**document, "ranks": ranks}))
            shown = s.ctl("merge", tmp_path / "job.json").stdout
            merged = json.loads(s.ctl("merge", tmp_path / "job.json", "-j").stdout)
            assert ("rank_graph" in merged) is (not change), (name, merged)
            if not change:
                edges, causes = graph_of(merged)
                assert edges == {**{f"rank{rank}": ["rank6", "rank7"] for rank in range(5)}, "rank6": ["rank5"], "rank7": ["rank6"],
                                 "rank5": []}, edges
                assert causes == [("unknown", "rank5", 7)], causes
            assert (first_line(shown) == AWAITED) is (not change) and "MAYBE" not in shown, (name, shown)
            assert ("looked for with rank5: ranks" in " ".join(shown.split())) is (name == "at another time"), (name, shown)


def test_who_was_looked_at_at_another_time_is_told(tmp_path):
    """A look lasts a second: those of two jobs share no moment.  That nothing is said of a circle does not mean that there is none."""
    with Ranks() as s:
        start_all(s)
        files = []
        for name, ranks in {"first": range(6), "later": (6, 7)}.items():
            pids = ",".join(str(s.ranks[rank].pid) for rank in ranks)
            run = s.ctl("job", "--pids", pids, "--why", "--deadline", "30s", "-j")
            files.append(tmp_path / f"{name}.json")
            files[-1].write_text(run.stdout)
            assert "not looked for" not in run.stdout, run.stdout
        merged = s.ctl("merge", *files, "-j")
        late = [text for text in json.loads(merged.stdout)["missing"] if "not looked for" in text]
        assert merged.returncode == 8 and len(late) == 1 and re.fullmatch(
            r"circles and causes across ranks were not looked for with rank6,rank7: ranks were looked at [0-9]+[.][0-9] s apart, "
            r"and what one waits for may have come meanwhile", late[0]), (merged.returncode, merged.stdout)
        shown = " ".join(s.ctl("merge", *files).stdout.split())
        assert f"missing {late[0]}" in shown and "MAYBE" not in shown, shown
        # Merged in steps it is the same.
        (tmp_path / "all.json").write_text(merged.stdout)
        assert s.ctl("merge", tmp_path / "all.json", "-j").stdout == merged.stdout


@pytest.mark.parametrize("rank,words", [(0, "SendRecv, operations that are not told apart (8 waves of queue 0), waits for ranks 6, 7 "),
                                        (6, "AllReduce (ring, simple, float sum), operation 0x28c (8 waves of queue 0), "
                                            "waits for rank 5 ")])
def test_a_rank_says_of_whom_it_has_received_nothing(rank, words):
    with Ranks() as s:
        shown = s.ctl("why", s.start_rank(rank).pid)
        print(shown.stdout, shown.stderr)
        assert shown.returncode == 0 and "CAUSE" not in shown.stdout and "MAYBE" not in shown.stdout
        assert f"RANK   {rank} of a communicator of 8: in {words}(not seen) [inferred]" in " ".join(shown.stdout.split()).replace(
            "RANK ", "RANK   "), shown.stdout


def test_a_packet_leads_to_the_ranks():
    """From a packet to its signal, the kernel that gives it, and the ranks whose data that has not; the first line is as ever."""
    with Ranks() as s:
        app = s.start_rank(0, last="listen")
        for command in "signal done 1", "packet 0 0 kernel completion=done", "packet 0 1 and done", "pending 0 2":
            s.tell(app, command)
        shown = s.ctl("why", app.pid, "--twice=1100")
        print(shown.stdout, shown.stderr)
        assert shown.returncode == 0 and shown.stdout.splitlines()[0].strip() == (
            "no culprit found in this process: rank 0 waits for ranks 6, 7, which were not looked at (job and merge compare ranks); "
            "1 wait, and it is not known whether it lasts"), shown.stdout
        assert re.findall("^[A-Z]+", shown.stdout, re.MULTILINE) == ["WAITS", "RANK"], shown.stdout
        run = s.ctl("why", app.pid, "--twice=1100", "-j")
    doc = json.loads(run.stdout)
    assert run.returncode == 0 and awaited_ranks(doc) == [6, 7] and "stuck" not in doc, doc
    kinds = [node["kind"] for node in doc["nodes"]]
    ways = {(kinds[e["from"]], kinds[e["to"]]) for e in doc["edges"]}
    assert ways == {("packet", "word"), ("word", "dispatch"), ("dispatch", "waves"), ("waves", "rank")}, doc
    wait, = waits_in_collectives(doc)
    assert wait["waves"] == 8 and [p["what"].split(" of ")[0] for p in wait["missing"]] == ["rank 6", "rank 7"], wait
    assert {cause["waits"] for cause in doc["causes"]} == {2} and {cause["end"] for cause in doc["causes"]} == {"unknown"}, doc["causes"]


# What keeps ranks from being known to wait for each other, and who is looked at.
HEALTHY = {
    "not_arrived": (set(ALL), {5}, {}),
    "data_has_come": (set(ALL), set(), {"rank5": {"posted": 101}}),
    "one_communicator": (set(ALL), set(), {"rank6": {"posted": 101}, "rank7": {"posted": 101}}),
    "not_seen": (set(ALL) - {5}, set(), {}),
    "others_not_seen": (set(ALL) - {6, 7}, set(), {}),
    "other_ranks": (set(ALL), set(), {"env": {"RANK": "", "PMI_RANK": ""}}),
    "where_waves_are": (set(ALL), set(), {f"rank{rank}": {"runtime": "on"} for rank in ALL}),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_nobody_is_named_where_it_is_not_known(name):
    seen, idle, changes = HEALTHY[name]
    with Ranks() as s:
        start_all(s, sorted(seen - idle), **changes)
        for rank in idle:
            s.start_idle(rank)
        shown = s.job()
        assert "MAYBE" not in shown and "CAUSE" not in shown and "circle" not in without_missing(shown), shown


def test_ranks_of_a_communicator_that_are_not_those_of_the_job():
    with Ranks() as s:
        for rank in ALL:
            s.start_rank(rank, {"RANK": str(N - 1 - rank)})
        assert "MAYBE" not in s.job()


# What kernels before this one have taken of a connection, and as much has come: there are fewer turns than that.
TAKEN = 1 << 40


def test_a_rank_that_moves_is_in_no_circle():
    """Between any two samples another step has come, and has been taken.  No count comes round, however long they take."""
    with Ranks() as s:
        start_all(s, rank5={"last": "listen"})
        for connection in 0x7F5000011180, 0x7F5000021420:
            s.tell(s.ranks[5], f"memory {connection + 80:#x} l:{TAKEN}")
        argv = [BIN / "gpu-agentctl", "job", "--all", "--why", "-j", "--deadline", "30s"]
        job = s.start("job", argv, env={"GPU_AGENT_SOCKET": str(s.socket)})
        deadline = time.monotonic() + 60
        for turn in itertools.count():
            s.tell(s.ranks[5], f"memory 0x7f5000030000 l:{TAKEN - turn}")
            if job.popen.poll() is not None or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        assert job.popen.wait(1) in (0, 8), job.err()
        found = json.loads(job.out())["ranks"][5]["collectives"][0]
        assert found["waits_for"] == [6, 7] and "unchanged_since_us" not in found, found
        (s.directory / "job.json").write_text(job.out())
        shown = s.ctl("merge", s.directory / "job.json").stdout
        assert "MAYBE" not in shown and "rank_graph" not in json.loads(job.out()), shown


@pytest.mark.parametrize("more", [(), ("--twice=1000",)])
def test_what_was_not_so_at_one_time_is_no_circle(more, tmp_path):
    """One sample does not tell; and two of each rank, of which no time is that of all."""
    with Ranks() as s:
        start_all(s)
        for rank in ALL:
            s.ctl("snapshot", s.ranks[rank].pid, "--why", *more, "--host", "-j", "-o", tmp_path / f"rank{rank}.json")
        shown = s.ctl("merge", *(tmp_path / f"rank{rank}.json" for rank in ALL)).stdout
        assert "8 ranks" in shown and "MAYBE" not in shown, shown


# Address, and what is written there: what leads to a connection, each part as somebody may make it who wants to do harm.
HOSTILE = {
    "no_second_channel": "0x7f50000000f0 l:0",
    "channel_without_order": "0x7f5000000060 l:0",
    "other_order": "0x7f5000003000 i:1",
    "order_nowhere": "0x7f5000000060 p:0x7ffffffff000",
    "peers_at_the_end": "0x7f5000000050 p:0xfffffffffffffff8",
    "peer_of_none": "0x7f5000001008 i:0x40000008",
    "peer_itself": "0x7f5000001008 i:0x40000000",
    "connection_of_none": "0x7f5000001008 i:0xc0000006",
    "no_waves": "0x7f500000100c s:0x2002",
    "count_at_the_end": "0x7f5000011198 p:0xfffffffffffffff8",
    "count_nowhere": "0x7f5000011198 l:0",
    "count_not_aligned": "0x7f5000011198 p:0x7f5000030001",
    "sends_only": "0x7f500000100c s:0x2021",
    "another_work": "0x7f5000001006 c:0",
}


def test_hostile_memory_is_refused():
    """Each of these takes only what its channel would have told, and none of them the agent's time."""
    with Ranks() as s:
        for name, words in HOSTILE.items():
            app = s.start_rank(0, last="listen")
            s.tell(app, f"memory {words}")
            began = time.monotonic()
            run = s.ctl("why", app.pid, "-j")
            assert run.returncode in (0, 8) and time.monotonic() - began < 10, (name, run.stderr)
            doc = json.loads(run.stdout)
            assert doc.get("collectives"), (name, doc["missing"], run.stderr)
            waits_for = doc["collectives"][0].get("waits_for")
            assert waits_for == (None if name in ("no_second_channel", "other_order") else [7]), (name, waits_for)
            assert awaited_ranks(doc) == (waits_for or []) and not doc.get("stuck"), (name, doc)
            assert not [cause for cause in doc["causes"] if cause["culprit"]], (name, doc)
            app.popen.kill()
            app.popen.wait()


def test_who_has_received_waits_for_nobody():
    """All four waves of each workgroup receive, and the last one is back in the kernel: there is nothing more to come."""
    with Ranks() as s:
        app = s.start_rank(0, last="listen")
        for work in "0x7f500000100c", "0x7f500000110c":
            s.tell(app, f"memory {work} s:0x1042")
        for kind, last, waits_for in ("spin", "", [6, 7]), ("barrier", "early=512 late-loop=12", None):
            s.tell(app, f"waves 0 {kind} 8 _Z44ncclFunction_SendRecv_RING_SIMPLE_Sum_int8_tv loop=12 group=4 {last}")
            found = json.loads(s.ctl("why", app.pid, "-j").stdout)["collectives"][0]
            assert (found["waves"], found.get("waits_for")) == (8, waits_for), found
