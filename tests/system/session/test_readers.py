#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Who may only look stops other people's queues for a part of the time only, however often and from wherever he asks."""
import os
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import PATIENCE, CudaScene, Scene, ids_of, need_root, wait_until

OWNER, OBSERVER, ANOTHER = 54301, 54302, 54303
# What each stop takes at least: the simulated hardware answers so late.
SWITCH_MS = 20


class Observed(Scene):
    """A process of OWNER, and the group daemon may look at everything."""

    def __init__(self, limits="", **kwargs):
        need_root()
        super().__init__(user_mode=False, app_user=OWNER, start_agent=False, **kwargs)
        self.limits = limits

    def __enter__(self):
        super().__enter__()
        (self.directory / "agentd.conf").write_text(
            f"[agent]\nuser = nobody\nsocket_group =\nobserver_group = daemon\n[limits]\n{self.limits}\n")
        self.start_agentd(user_mode=False)
        return self

    def slow_switch(self):
        self.control(f"delay suspend {SWITCH_MS} 100000")

    def suspended_us(self):
        """For how long a queue of the program stood still, as the device counts it."""
        return max(q["suspended_us"] for q in self.target_state()["queues"])


def observe(s, uid=OBSERVER):
    """(client, session) of one who may look."""
    with ids_of(uid, [1]):
        rpc = s.connect()
        return rpc, s.attach(rpc=rpc)


def test_a_storm_of_snapshots_stops_a_tenth_of_the_time():
    """Over several connections of several users that detach and attach again: all get answers all the time."""
    with Observed() as s:
        s.slow_switch()
        first, session = observe(s)
        looked = first.call("gpu.snapshot", session=session)
        assert "no_stop" not in looked and looked["complete"], looked["missing"]
        first.call("session.detach", session=session)
        before, begun, answers, without = s.suspended_us(), time.monotonic(), 0, 0
        clients = []
        while time.monotonic() < begun + 5:
            if len(clients) == 4:
                rpc, session = clients.pop(0)
                rpc.call("session.detach", session=session)
                rpc.close()
                s.clients.remove(rpc)
            clients.append(observe(s, OBSERVER if answers % 2 else ANOTHER))
            for rpc, session in clients:
                got = rpc.call("gpu.snapshot", session=session, max_stop_ms=7000)
                answers += 1
                without += got.get("no_stop", False)
                assert got["queues"] and got["devices"], got
        seconds = time.monotonic() - begun
        stopped = (s.suspended_us() - before) / 1e6
        print(f"  {answers} answers, {without} without a stop; stopped {stopped:.3f} s of {seconds:.2f} s")
        assert answers >= 50 and without > answers / 2, (answers, without)
        # The bucket, what came in meanwhile, and that the last stop may take longer than it was granted.
        assert 0.1 <= stopped <= 0.25 + 0.05 * seconds + 0.1, (stopped, seconds)


def spend(rpc, session):
    """Use the bucket up; the answer that was given without a stop."""
    for _ in range(200):
        got = rpc.call("gpu.snapshot", session=session, max_stop_ms=7000)
        if "no_stop" in got:
            return got
    raise AssertionError("it never ends")


def test_what_is_known_without_a_stop_is_told():
    with Observed("observer_stop_rate = 1ms") as s:
        s.slow_switch()
        rpc, session = observe(s)
        seen = rpc.call("gpu.snapshot", session=session, max_stop_ms=7000)
        got = spend(rpc, session)
        assert got["no_stop"] is True and not got["complete"] and got["budget_exceeded"], got
        assert any("those who may only look" in m for m in got["missing"]), got["missing"]
        assert got["stopped_us"] == 0 and got["groups"] == [] and got["wave_count"] == 0, got
        assert [q["queue_id"] for q in got["queues"]] == [q["queue_id"] for q in seen["queues"]]
        assert 0 < got["retry_ms"] <= 250_000, got
        last = got["last_look"]
        assert last["wave_count"] == seen["wave_count"] and last["groups"] == seen["groups"], (last, seen)
        assert last["age_ms"] < PATIENCE * 1000
        # What cannot be answered without a stop is refused, and says until when.
        before = s.suspended_us()
        queue = got["queues"][0]["queue_id"]
        wave = {"queue_id": queue, "unit": 0, "index": 0}
        for method, params in (("wave.registers", {"wave": wave}),
                               ("memory.read", {"space": "lds", "wave": wave, "address": "0x0", "size": 4})):
            error = rpc.error(method, session=session, **params)
            assert error.name == "timeout" and 0 < error.data["retry_ms"] <= 250_000, (method, error.data)
        # Without waves nothing is stopped, so that nothing is missing.
        assert "no_stop" not in rpc.call("gpu.snapshot", session=session, queues_only=True)
        assert s.suspended_us() == before


def test_it_is_one_for_all_who_may_only_look():
    """And outlives the session; the owner and administrators have none."""
    with Observed("observer_stop_rate = 0") as s:
        s.slow_switch()
        rpc, session = observe(s)
        got = spend(rpc, session)
        assert "retry_ms" not in got, got
        other, same = observe(s, ANOTHER)
        assert same == session and other.call("gpu.snapshot", session=same)["no_stop"]
        for client in (rpc, other):
            client.call("session.detach", session=session)
        again, later = observe(s, ANOTHER)
        assert later != session
        got = again.call("gpu.snapshot", session=later)
        assert got["no_stop"] and "last_look" not in got, got

        def owner():
            mine = s.connect()
            assert s.attach(rpc=mine) == later
            return mine.call("gpu.snapshot", session=later, max_stop_ms=7000)

        with ids_of(OWNER):
            looks = [owner() for _ in range(15)]
        root = s.connect()
        s.attach(rpc=root)
        looks.append(root.call("gpu.snapshot", session=later, max_stop_ms=7000))
        assert all(g["complete"] and "no_stop" not in g for g in looks), looks
        assert again.call("gpu.snapshot", session=later)["no_stop"], "those of others give nothing"


def test_each_process_has_its_own():
    with Observed("observer_stop_rate = 0") as s:
        s.slow_switch()
        rpc, session = observe(s)
        spend(rpc, session)
        app = s.start_app("runtime on; queues 1; spin", user=OWNER)
        other = rpc.call("session.attach", pid=app.pid)["session"]
        assert "no_stop" not in rpc.call("gpu.snapshot", session=other, max_stop_ms=7000)
        assert rpc.call("gpu.snapshot", session=session)["no_stop"]


def test_it_fills_again():
    with Observed("observer_stop_rate = 100ms") as s:
        s.slow_switch()
        rpc, session = observe(s)
        spend(rpc, session)
        wait_until(lambda: "no_stop" not in rpc.call("gpu.snapshot", session=session, max_stop_ms=7000), "it may again")


def test_none_may_be_allowed_at_all():
    with Observed("observer_stops = 0") as s:
        rpc, session = observe(s)
        got = rpc.call("gpu.snapshot", session=session)
        assert got["no_stop"] and "retry_ms" not in got and "last_look" not in got, got
        assert s.suspended_us() == 0


class ObservedCuda(Observed, CudaScene):
    """The same with a device of the other vendor."""


def test_devices_of_both_vendors_have_it():
    with ObservedCuda("observer_stops = 0") as s:
        rpc, session = observe(s)
        got = rpc.call("gpu.snapshot", session=session)
        assert got["no_stop"] and got["devices"] and got["groups"] == [], got
        wave = {"queue_id": got["queues"][0]["queue_id"], "unit": 0, "index": 0}
        assert rpc.error("wave.registers", session=session, wave=wave).name == "timeout"
        root = s.connect()
        s.attach(rpc=root)
        seen = root.call("gpu.snapshot", session=session, max_stop_ms=7000)
        assert "no_stop" not in seen and seen["wave_count"] > 0, seen
