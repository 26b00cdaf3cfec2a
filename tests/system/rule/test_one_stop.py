#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A fault stops the queues once, whoever wants to know of it: listening clients, a rule, its core."""
import os
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import PATIENCE, CudaScene, need_root, wait_until
from rulescene import ALL, WAVES, RuleScene, analyzed

FAULT = "wave_memory_violation"
# Who wants to know of it: a client, and a rule that keeps that.
WANTED = ((True, None), (False, "json"), (False, "light"), (True, "json"), (True, "light"))
NEVER_ALIKE = "rate_limit = none\ndeduplicate = none\n"
CUDA_USER = 54109


def stops(s):
    return next(p for p in s.state()["processes"] if p["pid"] == s.app.pid)["suspends"]


def listen(s, look_ms=1000):
    session = s.attach(control=True)
    s.rpc.call("exception.subscribe", session=session, exceptions=[FAULT], look_ms=look_ms)
    return session


def the_record(s):
    record, = [r for r in s.records() if r["pid"] == s.app.pid]
    return record, s.rpc.call("cores.info", record=record["record"])["snapshot"]


def digests(doc):
    return {q["queue_id"]: q["waves_digest"] for q in doc["queues"] if "waves_digest" in q}


def test_each_wish_alone_and_all_together():
    for client, keep in WANTED:
        with RuleScene(f"{ALL}keep = {keep}\n" if keep else "", app=WAVES) as s:
            if keep:
                s.wait_watched()
            if client:
                listen(s)
            before = stops(s)
            s.fault(exception=FAULT, queue=1)
            if client:
                note = s.rpc.notification("exception.raised")
                assert note["waves"] == 2, note
            if keep:
                s.wait_counts(recorded=1)
                record, seen = the_record(s)
                assert record["body"] == ("present" if keep == "light" else "none"), (record, seen["missing"])
                assert seen["groups"][0]["waves"] == 2 and seen["groups"][0]["reasons"] == ["memory_violation"], seen
            assert stops(s) - before == 1, (client, keep, stops(s) - before)
            assert s.target_state()["suspended_queues"] == 0


def test_all_see_the_same_moment():
    """Waves of another queue go on between any two stops: what is told of them is of one."""
    with RuleScene(f"{ALL}keep = light\n", app=WAVES) as s:
        s.wait_watched()
        _, _, other, faulty = [q["id"] for q in s.target_state()["queues"]]
        s.control(f"waves {s.app.pid} {other} progress 8 0x400000")
        s.control(f"waves {s.app.pid} {faulty} memory 1 0x500000")
        listen(s)
        s.fault(exception=FAULT, queue=1)
        note = s.rpc.notification("exception.raised")
        s.wait_counts(recorded=1)
        record, seen = the_record(s)
        core = analyzed(s, record["record"])
        assert note["stopped_us"] == seen["stopped_us"] > 0, (note, seen["stopped_us"])
        told, kept, written = note["groups"][0], seen["groups"][0], core["groups"][0]
        for name in ("pc", "waves", "reasons", "representative"):
            assert told[name] == kept[name] == written[name], (name, told, kept, written)
        # The notification is about the queue that raised it, as it is without a rule.
        assert note["waves"] == 2 and len(note["groups"]) == 1, note
        assert [g["waves"] for g in seen["groups"] if g["reasons"]] == [2, 1], seen["groups"]
        for queue in (other, faulty):
            assert digests(seen)[queue] == digests(core)[queue], (digests(seen), digests(core))


def test_a_burst_stays_within_one_part_in_ten():
    """A client and a rule together, not each of them."""
    stop_s = 0.1
    with RuleScene(ALL, app=WAVES) as s:
        s.wait_watched()
        listen(s)
        s.control(f"delay suspend {stop_s * 1000:.0f} 1000000")
        before, start, rests = stops(s), time.monotonic(), 0
        while time.monotonic() < start + 10:
            s.fault(exception=FAULT, queue=1)
            rests += any("a moment ago" in m for m in s.rpc.notification("exception.raised")["missing"])
            time.sleep(0.03)  # each makes a record, which is written to the disk
        took, n = time.monotonic() - start, stops(s) - before
        s.control("delay suspend 0 1")
        assert 1 <= n <= took / (10 * stop_s) + 1 and rests, (n, took, rests)


def test_who_allows_the_longest_stop_decides():
    """A client with little patience does not cut the rule's waves short: the rule would stop as long for itself."""
    with RuleScene(ALL, app=WAVES) as s:
        s.wait_watched()
        listen(s, look_ms=1)
        s.control("delay suspend 50 1")
        s.fault(exception=FAULT, queue=1)
        note = s.rpc.notification("exception.raised")
        s.wait_counts(recorded=1)
        _, seen = the_record(s)
        assert seen["stopped_us"] == note["stopped_us"] >= 50_000, (seen["stopped_us"], note)
        # A machine that stands still for longer than the rule allows says so.
        late = [m for m in seen["missing"] if "budget" in m]
        assert all("200 ms" in m for m in late), seen["missing"]
        assert late or note["waves"] == 2, note


def test_a_core_leaves_time_for_the_waves():
    """Of a full device it takes much longer to copy; the record is not to lose its waves for that."""
    with RuleScene(f"{ALL}keep = light\n", app=WAVES) as s:
        s.wait_watched()
        delay = "delay suspend 160 1"

        def has_waves(_, seen):
            s.control(delay)
            return seen["wave_count"] == 2

        s.control(delay)
        record, seen = s.fault_until(has_waves, exception=FAULT, queue=1)
        assert record["body"] == "present", record
        assert "core: saved waves of some queues: the stop budget was used up" in seen["missing"], seen["missing"]


def test_a_paused_process_is_not_stopped_again():
    with RuleScene(f"{ALL}keep = light\n", app=WAVES) as s:
        s.wait_watched()
        session = listen(s)
        s.rpc.call("gpu.suspend", session=session, lease_ms=60000)
        before = stops(s)
        s.fault(exception=FAULT, queue=1)
        assert s.rpc.notification("exception.raised")["waves"] == 2
        s.wait_counts(recorded=1)
        record, seen = the_record(s)
        assert record["body"] == "present" and seen["groups"][0]["waves"] == 2, (record, seen["missing"])
        assert stops(s) == before and s.target_state()["suspended_queues"] == 4
        s.rpc.call("gpu.resume", session=session)


def test_why_there_are_no_waves_is_told_to_both():
    for keep in ("json", "light"):
        with RuleScene(f"{ALL}keep = {keep}\n", app=WAVES) as s:
            s.wait_watched()
            listen(s)
            s.control("errno suspend EIO 1")
            s.fault(exception=FAULT, queue=1)
            note = s.rpc.notification("exception.raised")
            s.wait_counts(recorded=1)
            _, seen = the_record(s)
            why, = [m for m in seen["missing"] if "SUSPEND_QUEUES" in m]
            assert why in note["missing"] and stops(s) == 0, (note, seen["missing"], stops(s))


def test_a_clients_own_core_stays():
    with RuleScene(f"{ALL}keep = light\n", app=WAVES) as s:
        s.wait_watched()
        session = listen(s)
        size = s.rpc.call("core.begin", session=session)["bytes"]
        before = stops(s)
        s.fault(exception=FAULT, queue=1)
        s.wait_counts(recorded=1)
        record, seen = the_record(s)
        assert record["body"] == "none" and any("another one is being written" in m for m in seen["missing"]), seen
        assert stops(s) - before == 1 and seen["groups"][0]["waves"] == 2, seen
        assert s.rpc.call("core.read", session=session, offset=size - 16, size=16)["size"] == 16


def test_a_repeat_that_only_waves_show_keeps_no_core():
    """It was copied with them; afterwards it is nobody's."""
    with RuleScene("[rule all]\ndevice = amd\nrate_limit = none\nkeep = light\n", app=WAVES) as s:
        s.wait_watched()
        s.fault(exception=FAULT, queue=1)
        s.wait_counts(recorded=1)
        deadline, looks = time.monotonic() + PATIENCE, 0
        while not looks:
            assert time.monotonic() < deadline
            time.sleep(1)  # until a look is allowed again
            before = stops(s)
            s.fault(exception=FAULT, queue=1)
            looks = stops(s) - before
        assert looks == 1 and s.rule()["recorded"] == 1 and s.rule()["duplicates"], s.rule()
        session = s.attach(control=True)
        assert s.rpc.call("core.begin", session=session)["bytes"] > 0


def test_a_core_that_is_certain_does_not_wait_for_the_next_look():
    """Its stop shows the waves, too; what bounds it is the rule's rate."""
    with RuleScene(f"{ALL}keep = light\n", app=WAVES) as s:
        s.wait_watched()
        s.control("delay suspend 500 1")
        for n in (1, 2):
            before = stops(s)
            s.fault(exception=FAULT, queue=1)
            s.wait_counts(recorded=n)
            assert stops(s) - before == 1, n
        records = s.records()
        assert [r["body"] for r in records] == ["present"] * 2, records
        last = max(records, key=lambda r: r["time_us"])
        assert s.rpc.call("cores.info", record=last["record"])["snapshot"]["groups"], last


def test_a_device_of_nvidia_is_stopped_once():
    need_root()
    for client, keep in WANTED:
        with CudaScene(start_agent=False, user_mode=False, app_user=CUDA_USER) as s:
            # Of this user alone: other tests run CUDA processes at the same time.
            rule = f"[rule cuda]\nuser = {CUDA_USER}\nkeep = {keep}\n{NEVER_ALIKE}" if keep else ""
            (s.directory / "agentd.conf").write_text(f"[agent]\nuser = nobody\nsocket_group =\n{rule}")
            s.start_agentd(user_mode=False)

            def counted(s=s):
                return next(r for r in s.rpc.call("agent.status")["rules"])["recorded"]

            if keep:
                wait_until(lambda s=s: [x.get("rule") for x in s.rpc.call("session.list")["sessions"]
                                        if x["pid"] == s.app.pid] == ["cuda"], "the rule has it")
            session = listen(s) if client else s.attach()
            s.rpc.call("gpu.snapshot", session=session)
            before = s.state()["calls_of"].get("suspendDevice", 0)
            s.control("raise 0 1 2 14 errorpc=0x50")
            if client:
                note = s.rpc.notification("exception.raised")
                assert note["waves"] == 1, note
            if keep:
                wait_until(counted, "recorded")
                record, = [r for r in s.rpc.call("cores.list")["records"] if r["pid"] == s.app.pid]
                seen = s.rpc.call("cores.info", record=record["record"])["snapshot"]
                assert record["body"] == ("present" if keep == "light" else "none"), (record, seen["missing"])
                assert seen["groups"][0]["exception"] == "CUDA_EXCEPTION_14: warp illegal address", seen["groups"]
                assert not client or seen["stopped_us"] == note["stopped_us"], (seen["stopped_us"], note)
            if keep == "light":
                group = analyzed(s, record["record"])["groups"][0]
                assert group["pc"] == seen["groups"][0]["pc"] and group["waves"] == seen["groups"][0]["waves"], group
            wait_until(lambda s=s: not any(d["suspended"] for d in s.state()["devices"]), "the devices run on")
            n = s.state()["calls_of"]["suspendDevice"] - before
            assert n == 1, (client, keep, n)
