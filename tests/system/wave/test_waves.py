#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Waves: what a snapshot says of them, how long it stops queues for that, and that it lets them go on every path."""
import hashlib
import json
import os
import signal
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from harness import LONG_STOP, PATIENCE, STOP_MS, CpuThreads, Scene, need_root, rss_kib, status, wait_until

PC = 0x7F0000001000
SANITIZED = "asan" in os.environ.get("BIN", "")


def plant(s, queue, text):
    s.control(f"waves {s.app.pid} {queue} {text}")


def queue_ids(s):
    return [q["id"] for q in s.target_state()["queues"]]


def packets(s):
    return {q["id"]: q["packets"] for q in s.target_state()["queues"]}


def all_run(s, clear=True):
    """The kernel calls no queue suspended, and all take packets once no planted waves keep them from that."""
    assert all(q["running"] and not q["suspended"] for q in s.target_state()["queues"]), s.target_state()
    if not clear:
        return
    for i in queue_ids(s):
        plant(s, i, "clear")
    before = packets(s)
    wait_until(lambda: all(packets(s)[i] > before[i] for i in before), "queues run")


def none_suspended(s):
    wait_until(lambda: s.target_state()["suspended_queues"] == 0, "queues resumed")


def snapshot(s, rpc=None, **params):
    return (rpc or s.rpc).call("gpu.snapshot", session=s.session, **{"max_stop_ms": STOP_MS, **params})


class Areas:
    """Save areas of all queues of the program, as they lie in its memory."""

    def __init__(self, s):
        self.pid = s.app.pid
        dies = {d["gpu_id"]: d["units"] for d in s.rpc.call("gpu.devices", session=s.session)["devices"]}
        self.places = [(int(q["save_area"], 16), q["save_area_bytes"] * dies[q["gpu_id"]])
                       for q in s.rpc.call("gpu.queues", session=s.session)["queues"]]
        assert all(address and size for address, size in self.places), self.places

    def checksum(self):
        digest = hashlib.blake2b()
        with open(f"/proc/{self.pid}/mem", "rb") as mem:
            for address, size in self.places:
                mem.seek(address)
                while size > 0:
                    part = mem.read(min(size, 1 << 20))
                    size -= len(part)
                    digest.update(part)
        return digest.digest()

    def write(self, queue_index, offset, data):
        with open(f"/proc/{self.pid}/mem", "r+b", buffering=0) as mem:
            mem.seek(self.places[queue_index][0] + offset)
            assert mem.write(data) == len(data)


def test_groups_say_where_waves_are():
    """Faults first, then the largest; lanes, workgroups and the example belong to the group."""
    with Scene(gpus="gfx1100") as s:
        ids = queue_ids(s)
        plant(s, ids[0], f"halted 40 {PC:#x} group=4")
        plant(s, ids[1], f"halted 8 {PC:#x} group=4 exec=0x7")
        plant(s, ids[2], f"memory 2 {PC + 0x100:#x} group=2")
        plant(s, ids[3], f"breakpoint 5 {PC + 0x200:#x} group=5")
        s.session = s.attach()
        doc = snapshot(s)
        assert doc["complete"] and not doc["missing"] and doc["wave_count"] == 55 and "waves" not in doc, doc
        fault, large, small = doc["groups"]
        assert fault["reasons"] == ["memory_violation"] and fault["state"] == "stopped" and fault["waves"] == 2, fault
        assert fault["pc"] == hex(PC + 0x100) and fault["workgroups"] == 1, fault
        assert fault["representative"]["queue_id"] == ids[2] and fault["representative"]["index"] == 0, fault
        assert fault["representative"]["workgroup"] == [0, 0, 0] and "dispatch" in fault["representative"], fault
        assert large["state"] == "halted" and large["reasons"] == [] and large["waves"] == 48, large
        assert large["pc"] == hex(PC) and large["workgroups"] == 12, large
        assert [large[f"lanes_{k}"] for k in ("min", "median", "max")] == [3, 32, 32], large
        assert small["reasons"] == ["breakpoint"] and small["waves"] == 5, small
        all_run(s)


def test_every_wave_is_listed_when_asked_for():
    with Scene(gpus="gfx942") as s:
        ids = queue_ids(s)
        kinds = {"spin": [], "memory": ["memory_violation"], "address": ["address_error"],
                 "illegal": ["illegal_instruction"], "math": ["math_error"], "breakpoint": ["breakpoint"],
                 "assert": ["assert"], "debugtrap": ["debug_trap"], "stopped": ["debugger"]}
        script = s.directory / "waves"
        script.write_text("".join(f"{kind} n=16 group=4 pc={PC + 0x1000 * i:#x} loop=4 exec=0xff\n"
                                  for i, kind in enumerate(kinds)))
        plant(s, ids[0], f"script {script}")
        s.session = s.attach()
        doc = snapshot(s, waves=True)
        assert doc["complete"] and doc["wave_count"] == len(doc["waves"]) == 16 * len(kinds), doc["missing"]
        by_place = {}
        for w in doc["waves"]:
            by_place.setdefault((int(w["pc"], 16) - PC) // 0x1000, []).append(w)
        for i, (kind, reasons) in enumerate(kinds.items()):
            waves = by_place[i]
            assert len(waves) == 16 and all(w["reasons"] == reasons for w in waves), (kind, waves[0])
            assert {w["state"] for w in waves} == {"running" if kind == "spin" else "stopped"}, (kind, waves[0])
            assert all(w["exec"] == "0xff" and w["lanes"] == 8 and w["width"] == 64 for w in waves), waves[0]
            assert all(sorted(x["ref"]["wave_in_group"] for x in waves if x["ref"]["workgroup"] == w["ref"]["workgroup"])
                       == [0, 1, 2, 3] for w in waves), [w["ref"] for w in waves]
        refs = {(w["ref"]["queue_id"], w["ref"]["unit"], w["ref"]["index"]) for w in doc["waves"]}
        assert len(refs) == len(doc["waves"])
        assert len({w["ref"]["unit"] for w in doc["waves"]}) > 1, "groups go around the dies"
        groups = {(g["gpu_id"], g["pc"], g["state"], *g["reasons"]): g["waves"] for g in doc["groups"]}
        for w in doc["waves"]:
            groups[(w["gpu_id"], w["pc"], w["state"], *w["reasons"])] -= 1
        assert not any(groups.values()), groups


def test_a_page_of_the_waves_is_listed_when_asked_for():
    """Of some groups, so many behind the first ones, in the order of the whole list; all else is as without it."""
    with Scene(gpus="gfx942") as s:
        ids = queue_ids(s)
        plant(s, ids[0], f"halted 40 {PC:#x} group=4")
        plant(s, ids[1], f"memory 6 {PC + 0x100:#x} group=2")
        plant(s, ids[2], f"halted 8 {PC:#x} group=4")
        plant(s, ids[3], f"breakpoint 5 {PC + 0x200:#x} group=5")
        s.session = s.attach(control=True)
        s.rpc.call("gpu.suspend", session=s.session, lease_ms=60000)
        whole = snapshot(s, waves=True)
        assert whole["complete"] and [g["waves"] for g in whole["groups"]] == [6, 48, 5], whole["groups"]
        refs = [w["ref"] for w in whole["waves"] if w["group"] == 1]
        assert {r["queue_id"] for r in refs} == {ids[0], ids[2]} and len(refs) == 48

        for select in ({"groups": [0]}, {"groups": [2, 0]}, {"groups": [1], "first": 30, "max": 12},
                       {"groups": [0, 1, 2], "first": 3, "max": 50}, {"groups": [1], "first": 47},
                       {"groups": [1], "first": 48}, {"groups": [1], "first": 2**32 - 1, "max": 2**32 - 1},
                       {"groups": [1], "max": 0}, {"groups": [3]}, {"groups": [2**32 - 1, 2, 2, 7]}):
            doc = snapshot(s, waves=True, select=select)
            chosen = [w for w in whole["waves"] if w["group"] in select["groups"]]
            first = select.get("first", 0)
            assert doc["waves"] == chosen[first:first + select.get("max", len(chosen))], (select, doc["waves"])
            for name in ("wave_count", "groups", "complete", "missing"):
                assert doc[name] == whole[name], (select, name)
            assert [q["waves"] for q in doc["queues"]] == [q["waves"] for q in whole["queues"]], select
        s.rpc.call("gpu.resume", session=s.session)
        all_run(s)


def test_one_wave_is_listed_by_its_name():
    """As wave.registers finds it: by what it works on, wherever it is, or by its position."""
    with Scene(app="runtime ttmp; queues 1; spin", gpus="gfx942") as s:
        script = s.directory / "waves"
        script.write_text(f"halted n=8 group=4 pc={PC:#x} xcc=1 workgroup=3,0,0\n"
                          f"memory n=4 group=4 pc={PC + 64:#x} workgroup=7,0,0\n")
        plant(s, 0, f"script {script}")
        s.session = s.attach()

        def find(wave, *groups):
            return snapshot(s, waves=True, select={"groups": groups, "wave": wave})["waves"]

        whole = snapshot(s, waves=True)
        assert [g["waves"] for g in whole["groups"]] == [4, 8], whole["groups"]
        for w in whole["waves"][1::5]:
            ref = w["ref"]
            position = {k: ref[k] for k in ("queue_id", "unit", "index")}
            lasting = {k: ref[k] for k in ("queue_id", "dispatch", "workgroup", "wave_in_group")}
            for name in (ref, position, lasting, {**lasting, "unit": 7, "index": 9999}, {**position, "workgroup": ref["workgroup"]}):
                assert find(name, w["group"]) == find(name, 0, 1) == [w], (name, w)
                assert find(name, 1 - w["group"]) == [] == find(name, 2), name
                got = s.rpc.call("wave.registers", session=s.session, wave=name, max_stop_ms=STOP_MS)["registers"]["wave"]
                assert got == {k: v for k, v in w.items() if k != "group"}, (name, got)
        for name in ({**position, "index": 99}, {**position, "queue_id": 9}, {**position, "unit": 5},
                     {**position, "workgroup": [9, 0, 0]}, {**position, "dispatch": ref["dispatch"] + 1},
                     {**lasting, "wave_in_group": 4}, {**lasting, "queue_id": 9}):
            assert find(name, 0, 1) == [], name
            assert s.rpc.error("wave.registers", session=s.session, wave=name, max_stop_ms=STOP_MS).name == "no_such_wave", name
        all_run(s)


def test_waves_cannot_be_chosen_where_none_are_listed():
    with Scene() as s:
        plant(s, queue_ids(s)[0], f"halted 4 {PC:#x} group=4")
        s.session = s.attach(control=True)
        page = {"groups": [0], "max": 2}
        for params, why in (({"select": page}, "params.select: only together with waves"),
                            ({"select": page, "waves": False}, "params.select: only together with waves"),
                            ({"select": page, "record": True}, "params.select: only together with waves"),
                            ({"select": page, "waves": True, "queues_only": True}, "params.waves: not together with queues_only"),
                            ({"select": {"groups": []}, "waves": True}, "params.select.groups: must have at least one item"),
                            ({"select": {}, "waves": True}, "params.select"),
                            ({"select": {"groups": [0] * 65537}, "waves": True}, "at most 65536 items"),
                            ({"select": {"groups": [-1]}, "waves": True}, "params.select.groups"),
                            ({"select": {"groups": [0], "wave": {"queue_id": 0}}, "waves": True}, "params.select.wave: needs index")):
            error = s.rpc.error("gpu.snapshot", session=s.session, max_stop_ms=STOP_MS, **params)
            assert error.name == "invalid_params" and why in error.message, (params, error)
        doc = snapshot(s, waves=True, select=page, record=True)
        assert len(doc["waves"]) == 2 and doc["wave_count"] == 4, doc
        kept = s.rpc.call("cores.info", record=doc["record"])["snapshot"]
        assert "waves" not in kept and kept["groups"] == doc["groups"], kept
        all_run(s)


def test_each_generation_is_understood():
    gpus = ["gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1201", "gfx1250"]
    with Scene(app=f"runtime on; queues {len(gpus)}; spin", gpus=",".join(gpus)) as s:
        for i in queue_ids(s):
            plant(s, i, f"illegal 12 {PC:#x} group=3")
        s.session = s.attach()
        doc = snapshot(s)
        names = {d["gpu_id"]: d["arch"] for d in doc["devices"]}
        assert doc["complete"], doc["missing"]
        assert {names[g["gpu_id"]]: (g["waves"], g["workgroups"], g["reasons"], int(g["pc"], 16)) for g in doc["groups"]} == \
            {gpu: (12, 4, ["illegal_instruction"], PC) for gpu in gpus}, doc["groups"]


def test_queues_run_after_every_snapshot():
    with Scene() as s:
        for i in queue_ids(s):
            plant(s, i, f"progress 8 {PC:#x}")
        s.session = s.attach()
        for params in ({}, {"waves": True}, {"queues_only": True}, {"max_stop_ms": 1}, {"max_stop_ms": 60000}):
            s.rpc.call("gpu.snapshot", session=s.session, **params)
            before = packets(s)
            wait_until(lambda: all(packets(s)[i] > before[i] for i in before), "queues go on")
        assert s.rpc.error("gpu.snapshot", session=s.session, queues_only=True, waves=True).name == "invalid_params"
        assert s.rpc.error("gpu.snapshot", session=s.session, max_stop_ms=0).name == "invalid_params"
        all_run(s)


def test_queues_only_stops_nothing():
    with Scene() as s:
        plant(s, queue_ids(s)[0], f"spin 8 {PC:#x}")
        s.session = s.attach()
        s.control("errno suspend EIO")
        doc = snapshot(s, queues_only=True)
        assert doc["stopped_us"] == 0 and doc["wave_count"] == 0 and doc["groups"] == [] and doc["complete"], doc
        assert len(doc["queues"]) == 4
        # The failure is still there: nobody has suspended anything.
        doc = snapshot(s)
        assert not doc["complete"] and "SUSPEND_QUEUES" in doc["missing"][0] and doc["wave_count"] == 0, doc
        assert len(doc["queues"]) == 4
        all_run(s)


def test_cpu_threads_do_not_stop_for_waves():
    """The same promise as without waves: no CPU thread is stopped."""
    need_root()  # real-time heartbeats, so that only a stop can delay them, not other programs
    with Scene(app=None) as s:
        s.app = s.start_app("runtime on; queues 4; spin", extra=["--realtime", "--threads", "2", "--beat-us", "100"])
        for i in queue_ids(s):
            plant(s, i, f"progress 64 {PC:#x}")
        s.session = s.attach()
        threads = CpuThreads(s.app, s.app_status())
        for _ in range(20):
            assert snapshot(s)["wave_count"] == 256
            threads.round_over()
        threads.check()
        assert status(s.app.pid)["State"][0] in "RS"


def test_nothing_is_written_to_the_save_area():
    """Suspended under a lease: two snapshots, one by a reader, and not a bit has changed."""
    with Scene() as s:
        for i in queue_ids(s):
            plant(s, i, f"breakpoint 32 {PC:#x} group=4")
        s.session = s.attach(control=True)
        reader = s.connect()
        assert s.attach(rpc=reader) == s.session
        areas = Areas(s)
        s.rpc.call("gpu.suspend", session=s.session, lease_ms=60000)
        before = areas.checksum()
        doc = snapshot(s, waves=True)
        assert doc["complete"] and doc["wave_count"] == 128 and doc["stopped_us"] == 0, doc["missing"]
        other = snapshot(s, reader, waves=True)
        assert areas.checksum() == before
        assert other["waves"] == doc["waves"] and other["groups"] == doc["groups"]
        assert other["holder_uid"] == os.getuid(), other
        # Those of the lease stay suspended, and only the lease ends that.
        assert s.target_state()["suspended_queues"] == 4
        assert s.rpc.call("gpu.resume", session=s.session)["resumed"] == 4
        all_run(s)


def test_some_are_suspended_under_a_lease():
    """A reader's snapshot stops the two others, and lets exactly those run again."""
    with Scene() as s:
        ids = queue_ids(s)
        for i in ids:
            plant(s, i, f"halted 8 {PC + 0x100 * i:#x}")
        s.session = s.attach(control=True)
        reader = s.connect()
        s.attach(rpc=reader)
        s.rpc.call("gpu.suspend", session=s.session, queues=ids[:2], lease_ms=60000)
        for client in (reader, s.rpc, reader):
            doc = snapshot(s, client)
            assert doc["complete"] and doc["wave_count"] == 32 and doc["stopped_us"] > 0, doc
            assert {q["id"]: q["suspended"] for q in s.target_state()["queues"]} == {i: i in ids[:2] for i in ids}
            assert {q["queue_id"]: q["suspended"] for q in doc["queues"]} == {i: i in ids[:2] for i in ids}
        s.rpc.close()
        assert reader.notification("gpu.resumed")["queues"] == 2
        all_run(s)


def test_a_lease_is_not_extended_by_a_snapshot():
    with Scene() as s:
        ids = queue_ids(s)
        s.session = s.attach()
        for lease_ms in (300, 1500, 5000):
            s.rpc.call("gpu.suspend", session=s.session, queues=ids[:1], lease_ms=lease_ms)
            s.control(f"delay suspend {lease_ms + 100}")
            doc = snapshot(s, max_stop_ms=60000)
            ended_before = bool(s.rpc.notifications)
            assert s.rpc.notification("gpu.resumed")["reason"] == "lease_expired"
            all_run(s)
            # Told before the reply: the lease was over when the snapshot began.  A longer one, then.
            if not ended_before:
                break
        assert not ended_before and doc["budget_exceeded"] and not doc["complete"], doc


def use_up_the_budget(s, *more):
    """Suspending alone takes longer.  A machine that stands still besides ends the session: once more, then."""
    for _ in range(5):
        s.control("delay suspend 200")
        start = time.monotonic()
        run = s.ctl("snapshot", s.app.pid, "--max-stop=100ms", *more)
        took_us = (time.monotonic() - start) * 1e6
        if "stuck" not in run.stderr:
            break
        none_suspended(s)
    assert run.returncode == 7, run
    return run, took_us


def test_budget_used_up():
    """Nothing is copied, the queues run, the status is 7."""
    with Scene() as s:
        ids = queue_ids(s)
        for i in ids:
            plant(s, i, f"halted 8 {PC:#x}")
        run, took_us = use_up_the_budget(s, "-j")
        doc = json.loads(run.stdout)
        assert doc["budget_exceeded"] and not doc["complete"] and doc["wave_count"] == 0, doc
        assert "100 ms" in doc["missing"][0] and 200_000 <= doc["stopped_us"] < took_us, (doc, took_us)
        assert len(doc["queues"]) == 4
        all_run(s, clear=False)
        run, _ = use_up_the_budget(s)
        assert "budget" in run.stderr and "missing" in run.stdout, run
        all_run(s, clear=False)
        run = s.ctl("snapshot", s.app.pid, "--max-stop=20s")
        assert run.returncode == 0, run
        all_run(s)


def test_hardware_that_never_answers_ends_the_session():
    """A suspend that hangs: soon after the budget the worker is killed, and the kernel resumes."""
    with Scene() as s:
        s.session = s.attach()
        s.control("block suspend after")
        start = time.monotonic()
        error = s.rpc.error("gpu.snapshot", session=s.session, max_stop_ms=200)
        took = time.monotonic() - start
        assert error.name in ("timeout", "session_ended") and 1 < took < PATIENCE / 2, (error, took)
        s.control("release")
        none_suspended(s)
        all_run(s)
        s.session = s.attach()
        assert snapshot(s)["complete"]


def begin_snapshot(s):
    """Ask for one, and return when the queues are stopped for it; there is time until the budget is used up."""
    s.rpc.send("gpu.snapshot", session=s.session, max_stop_ms=STOP_MS)
    wait_until(lambda: s.target_state()["suspended_queues"] == 4, "queues stopped")


def snapshot_ends(s):
    """Its error."""
    while "id" not in (message := s.rpc.read_message()):
        pass
    return message["error"]["data"]["name"]


def runs_on(s):
    wait_until(lambda: status(s.app.pid).get("TracerPid") == "0", "ptrace released")
    none_suspended(s)
    wait_until(lambda: not s.target_state()["enabled"], "the session is off")
    all_run(s)


def test_worker_killed_while_queues_are_stopped():
    """The worker dies in a SUSPEND that has stopped everything and does not return."""
    took = []
    with Scene() as s:
        # This machine may stand still as well: within a second at least once.
        while not took or min(took) > 1 and len(took) < 5:
            s.session = s.attach()
            s.control("block suspend after")
            begin_snapshot(s)
            start = time.monotonic()
            os.kill(s.worker_pids()[0], signal.SIGKILL)
            none_suspended(s)
            took.append(time.monotonic() - start)
            assert snapshot_ends(s) == "session_ended"
            s.control("release")
            runs_on(s)
        assert min(took) < 1, took


@pytest.mark.parametrize("victim", ("front", "monitor"))
def test_killed_during_a_snapshot(victim):
    with Scene() as s:
        s.session = s.attach()
        s.control("block suspend after")
        begin_snapshot(s)
        os.kill(s.front_pid() if victim == "front" else s.agentd.pid, signal.SIGKILL)
        s.control("release")
        runs_on(s)


def test_worker_killed_in_a_slow_suspend():
    with Scene() as s:
        s.session = s.attach()
        s.control("delay suspend 60000")
        begin_snapshot(s)
        os.kill(s.worker_pids()[0], signal.SIGKILL)
        assert snapshot_ends(s) == "session_ended"
        none_suspended(s)
        all_run(s)


def test_queues_that_do_not_stop_are_named():
    """One queue's preemption fails: it is missing, the others are shown, all run, the status is 8."""
    with Scene(gpus="gfx1100") as s:
        ids = queue_ids(s)
        for i in ids:
            plant(s, i, f"halted 8 {PC:#x}")
        s.control(f"fail-suspend {s.app.pid} {ids[1]}")
        run = s.ctl("snapshot", s.app.pid, "-j", LONG_STOP)
        assert run.returncode == 8, run
        doc = json.loads(run.stdout)
        assert not doc["complete"] and not doc["budget_exceeded"], doc
        # The first failure ends the walk over a device's queues: later ones are not reached.
        assert any(f"queue {ids[1]}:" in line and "hardware" in line for line in doc["missing"]), doc["missing"]
        assert doc["wave_count"] == 32 - 8 * len(doc["missing"]), doc
        queues = {q["queue_id"]: q for q in doc["queues"]}
        assert queues[ids[1]]["not_stopped"] == "failed", queues
        assert {q.get("not_stopped") for q in queues.values()} <= {None, "failed", "behind_failed"}, queues
        seen = [q for q in queues.values() if "not_stopped" not in q]
        assert len(seen) * 8 == doc["wave_count"] and all(q["stopped_us"] > 0 for q in seen), queues
        all_run(s)


def test_each_queue_says_how_long_it_stood_still():
    """Two devices: the second one's waves are copied after the first one runs again; copy queues are not stopped."""
    with Scene() as s:
        for i in queue_ids(s):
            plant(s, i, f"halted 2000 {PC:#x}")
        s.session = s.attach()
        doc = snapshot(s)
        by_gpu = {}
        for q in doc["queues"]:
            assert "not_stopped" not in q and 0 < q["stopped_us"] <= doc["stopped_us"], q
            by_gpu.setdefault(q["gpu_id"], set()).add(q["stopped_us"])
        first, second = (by_gpu[d["gpu_id"]] for d in doc["devices"])
        assert len(first) == len(second) == 1 and first < second or first.pop() < second.pop(), by_gpu
        assert doc["stopped_us"] == max(q["stopped_us"] for q in doc["queues"]), doc
        assert 0 < doc["agent_us"] < doc["stopped_us"], doc
        before = snapshot(s, queues_only=True)["queues"]
        assert not any("stopped_us" in q for q in before), before
        all_run(s)


def test_a_new_queue_is_named():
    """The kernel does not stop a queue whose creation somebody still waits to hear of."""
    with Scene(app="runtime on; queues 1; spin") as s:
        s.session = s.attach(control=True)
        s.rpc.call("exception.subscribe", session=s.session, exceptions=["queue_new"], hold=True)
        s.raise_queue(queue_ids(s)[0], "queue_new")
        doc = snapshot(s)
        queue, = doc["queues"]
        assert not doc["complete"] and queue["not_stopped"] == "new" and "stopped_us" not in queue, doc
        assert doc["missing"] == [f"queue {queue['queue_id']}: it was just created; its waves are unknown"], doc
        s.rpc.call("exception.subscribe", session=s.session, exceptions=[])
        assert snapshot(s)["complete"]
        all_run(s)


def test_queue_that_failed_under_a_lease_is_not_believed():
    """The kernel calls it suspended, a second suspend says success: its save area is stale all the same."""
    with Scene(gpus="gfx1100") as s:
        ids = queue_ids(s)
        plant(s, ids[3], f"halted 8 {PC:#x}")
        s.session = s.attach()
        s.control(f"fail-suspend {s.app.pid} {ids[3]}")
        stopped = s.rpc.call("gpu.suspend", session=s.session, lease_ms=60000)["queues"]
        verdicts = {q["queue_id"]: q["verdict"] for q in stopped}
        assert verdicts[ids[3]] == "failed", verdicts
        s.rpc.call("gpu.suspend", session=s.session, queues=[ids[3]], lease_ms=60000)
        doc = snapshot(s)
        assert doc["wave_count"] == 0 and doc["missing"][0].startswith(f"queue {ids[3]}:"), doc
        s.rpc.call("gpu.resume", session=s.session)
        all_run(s)


def test_a_resume_that_fails_ends_the_session():
    """Ending the session is the stronger way: the kernel resumes by itself."""
    with Scene(gpus="gfx1100") as s:
        s.session = s.attach()
        s.control("errno resume EIO 1000")
        error = s.rpc.error("gpu.snapshot", session=s.session)
        assert error.data["op"] == "KFD RESUME_QUEUES", error.data
        assert s.rpc.notification("session.ended")["reason"] == "lost"
        none_suspended(s)
        all_run(s)


def test_corrupt_areas_are_named():
    """Each hostile header or stack costs only its own queue."""
    with Scene(gpus="gfx1100") as s:
        ids = queue_ids(s)
        for i in ids:
            plant(s, i, f"halted 8 {PC:#x}")
        s.session = s.attach()
        areas = Areas(s)
        s.rpc.call("gpu.suspend", session=s.session, lease_ms=60000)
        rows = ((0, 0, b"\xff" * 16, "corrupt"), (1, 4, b"\x03\0\0\0", "multiple of 4"),
                (2, 12, b"\0\0\0\0", "do not meet"))
        for index, offset, data, _ in rows:
            areas.write(index, offset, data)
        doc = snapshot(s)
        assert doc["wave_count"] == 8 and len(doc["missing"]) == 3, doc["missing"]
        for (index, _, _, text), line in zip(rows, doc["missing"]):
            assert line.startswith(f"queue {ids[index]}:") and text in line, (text, line)
        s.rpc.call("gpu.resume", session=s.session)
        # The next save repairs them.
        assert snapshot(s)["wave_count"] == 32
        all_run(s)


def test_a_dispatch_that_is_not_in_the_ring_is_told():
    """A wave of a packet that was never published, or is done: the program's counters say so."""
    with Scene(app="runtime ttmp; idle; queues 1; spin", gpus="gfx90a") as s:
        plant(s, 0, f"spin 4 {PC:#x} group=2 packet=5")
        s.session = s.attach()
        want = "queue 0: the dispatch of 4 waves is unknown: packet is not between read and write counter"
        doc = snapshot(s, waves=True)
        assert doc["missing"] == [want] and not doc["complete"], doc["missing"]
        assert len(doc["waves"]) == 4 and not any("dispatch" in w["ref"] for w in doc["waves"]), doc["waves"]
        begun = s.rpc.call("core.begin", session=s.session, max_stop_ms=STOP_MS)
        assert want in begun["missing"] and not begun["complete"], begun
        s.rpc.call("session.detach", session=s.session)
        # The runtime need not be told to let waves say it.
        assert "HSA_ENABLE_DEBUG" not in s.ctl("snapshot", s.app.pid, LONG_STOP).stdout


def test_without_runtime_there_are_no_waves():
    with Scene(app="queues 2; spin") as s:
        run = s.ctl("snapshot", s.app.pid, "-j")
        assert run.returncode == 8, run
        doc = json.loads(run.stdout)
        assert doc["wave_count"] == 0 and doc["groups"] == [] and doc["stopped_us"] == 0, doc
        assert doc["missing"] == ["waves: the program has not enabled its GPU runtime, although it has queues: it uses the GPU "
                                  "without ROCm's runtime library (libhsa-runtime64.so), and has not told the driver that it "
                                  "can be debugged"], doc["missing"]
        assert len(doc["queues"]) == 2


def test_text_shows_groups_and_waves():
    with Scene(gpus="gfx1100") as s:
        ids = queue_ids(s)
        plant(s, ids[0], f"halted 40 {PC:#x} group=4")
        plant(s, ids[1], f"assert 2 {PC + 0x1000:#x} group=2 exec=0x3")
        run = s.ctl("snapshot", s.app.pid, LONG_STOP)
        assert run.returncode == 0 and run.stderr == "", run
        blocks = run.stdout.split("\n\n")
        head = blocks[0].splitlines()
        assert head[0] == f"FAULT  assert: 2 waves at {PC + 0x1004:#x}, GPU 0, queue {ids[1]}", run.stdout
        assert head[-1].startswith("42 waves, stopped ") and len(blocks) == 3, run.stdout
        rows = [line.split() for line in blocks[1].splitlines()]
        assert rows[0] == ["#", "WAVES", "LANES", "WHERE", "STATE"], rows
        assert rows[1:3] == [["1", "2", "2", hex(PC + 0x1004), "assert"], ["2", "40", "32", hex(PC), "halted"]], rows
        assert len(rows) == 4 and blocks[1].splitlines()[3].startswith("all on GPU 0 ("), rows
        # The number of a row is what `waves` takes, and all the rest is there for who asks.
        assert len(s.ctl("waves", s.app.pid, "--group", 2, "--no-legend", LONG_STOP).stdout.splitlines()) == 40
        run = s.ctl("snapshot", s.app.pid, "-v", LONG_STOP)
        rows = [line.split() for line in run.stdout.split("\n\n")[1].splitlines()]
        assert rows[0] == ["#", "WAVES", "LANES", "WHERE", "STATE", "WORKGROUPS", "EXAMPLE"], rows
        assert rows[1][2:] == ["2/2/2", hex(PC + 0x1004), "assert", "1", "(0)", f"{ids[1]}:0:0"], rows
        assert rows[2][2:] == ["32/32/32", hex(PC), "halted", "10", "(0-9)", f"{ids[0]}:0:0"], rows
        run = s.ctl("snapshot", s.app.pid, "--waves", LONG_STOP)
        rows = run.stdout.split("\n\n")[3].splitlines()
        assert run.returncode == 0 and rows[0].startswith("WAVE") and len(rows) == 44, run.stdout
        assert rows[-1].startswith("on GPU 0 ("), run.stdout
        run = s.ctl("snapshot", s.app.pid, "--queues-only")
        assert run.returncode == 0 and len(run.stdout.split("\n\n")) == 2 and "WHERE" not in run.stdout, run.stdout
        assert run.stdout.startswith("No look at the waves, as asked: 4 queues"), run.stdout
        assert s.ctl("snapshot", s.app.pid, "--queues-only", "--waves").returncode == 2
        all_run(s)


def timed_reply(s, **params):
    """Size of the reply and seconds until its last byte; nothing is parsed."""
    s.rpc.send_raw(json.dumps({"jsonrpc": "2.0", "id": 999, "method": "gpu.snapshot",
                               "params": {"session": s.session, **params}}).encode() + b"\n")
    start, size, data = time.monotonic(), 0, b""
    while not data.endswith(b"\n"):
        data = s.rpc.sock.recv(1 << 20)
        assert data, "connection closed"
        size += len(data)
    return size, time.monotonic() - start


def test_a_hundred_thousand_waves():
    """A flat list of more waves than a node holds; the agent's processes stay small."""
    with Scene(app="runtime on; queues 12; spin", gpus="gfx942") as s:
        for i in queue_ids(s):
            plant(s, i, f"progress 8400 {PC + 0x10000 * i:#x} group=4 vgprs=8 acc=0 lds=0")
        s.session = s.attach(control=True)
        # Under a lease, so that the simulator's own time to save waves is not in it.
        s.rpc.call("gpu.suspend", session=s.session, lease_ms=60000)
        doc = snapshot(s)
        assert doc["complete"] and doc["wave_count"] == 100800, (doc["wave_count"], doc["missing"])
        (_, grouped), (size, flat) = timed_reply(s, max_stop_ms=STOP_MS), timed_reply(s, max_stop_ms=STOP_MS, waves=True)
        peaks = [int(status(pid)["VmHWM"].split()[0]) for pid in (s.worker_pids()[0], s.front_pid(), s.agentd.pid)]
        print(f"  grouped {grouped * 1e3:.0f} ms, flat {flat * 1e3:.0f} ms and {size / 1e6:.0f} MB; "
              f"worker {peaks[0]} KiB at most, front {peaks[1]} KiB, monitor {peaks[2]} KiB")
        assert size > 100800 * 100
        page = timed_reply(s, max_stop_ms=STOP_MS, waves=True, select={"groups": [0], "max": 64})[0]
        listed = page - timed_reply(s, max_stop_ms=STOP_MS)[0]
        assert listed < 64 * 1024, (page, listed)
        if not SANITIZED:
            # Peaks that need not come together; the front sends the text from where the worker has left it, and
            # keeps no more of it in memory than it sends.
            assert sum(peaks) < 88 * 1024, peaks
            assert rss_kib(s.worker_pids()[0]) < 16 * 1024
        s.rpc.call("gpu.resume", session=s.session)
        all_run(s)


def test_a_long_list_is_well_formed():
    with Scene(app="runtime on; queues 2; spin", gpus="gfx942") as s:
        for i in queue_ids(s):
            plant(s, i, f"progress 4000 {PC:#x} group=4")
        s.session = s.attach()
        doc = snapshot(s, waves=True)
        assert doc["complete"] and len(doc["waves"]) == doc["wave_count"] == 8000, doc["missing"]
        run = s.ctl("snapshot", s.app.pid, "--waves", "-j", LONG_STOP)
        assert run.returncode == 0 and len(json.loads(run.stdout)["waves"]) == 8000, run.stderr
