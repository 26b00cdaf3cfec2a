#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Waves of a group in an editor: a page at a time, whatever the GPU holds, and never those of another group."""
import os
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from dapclient import Adapter, Between, runs_on, scene
from harness import BIN, Scene, status

PC = 0x7F0000001000
# Two lines of one kernel, on a queue each.
LINES = "waves 0 halted 40 scale+28; waves 1 halted 20 scale+80"


class Asked(list):
    """What an adapter asks of gpu.snapshot."""

    def __call__(self, request):
        if request["method"] == "gpu.snapshot":
            self.append(request["params"])


def page(a, **arguments):
    return a.call("gpuAgent/waves", threadId=1, **arguments)


def say(a, text):
    return a.call("evaluate", expression=text, context="repl")["result"]


def all_pages(a, total, size):
    """The waves of the first thread, so many at a time."""
    waves = []
    for start in range(0, total, size):
        got = page(a, start=start, count=size)
        assert got["total"] == total and len(got["waves"]) == min(size, total - start), got
        waves += got["waves"]
    assert page(a, start=total) == {"waves": [], "total": total}
    assert page(a, count=0) == {"waves": [], "total": total}
    return waves


def shown_waves(a):
    """Names of the waves that the console lists, and how many more there are."""
    *lines, last = say(a, "waves").splitlines()
    more = int(last.split()[0]) if last.endswith(" more") else 0
    return [line.split()[0] for line in (lines if more else [*lines, last])], more


def name_of(ref):
    return f"{ref['queue_id']}:{ref['unit']}:{ref['index']}"


def test_listing_waves_takes_little_memory():
    """108,000 waves in one group: what comes from the agent is what is shown of them, and little besides."""
    queues, each = 12, 9000
    with Scene(app=f"runtime ttmp; queues {queues}; spin", gpus="gfx942") as s, Between(s) as between, \
            Adapter(between.path) as a:
        for queue in s.target_state()["queues"]:
            s.control(f"waves {s.app.pid} {queue['id']} halted {each} {PC:#x} group=4 vgprs=8 acc=0 lds=0")
        a.start(pid=s.app.pid, maxStopMs=60000)
        for paused in (False, True):
            if paused:
                a.pause()
            for start in (0, queues * each - 64):
                got = page(a, start=start, count=64)
                assert got["total"] == queues * each and len(got["waves"]) == 64, got["total"]
            a.call("gpuAgent/focus", threadId=1, wave=got["waves"][-1]["ref"])
            names, more = shown_waves(a)
            assert len(names) == 64 and more == queues * each - 64, (names, more)
        peak = int(status(a.pid)["VmHWM"].split()[0])
        print(f"  {queues * each} waves: the longest answer has {max(between.sizes) / 1e3:.0f} kB, "
              f"the adapter {peak / 1024:.1f} MiB at most")
        assert max(between.sizes) < 100000, max(between.sizes)
        assert peak < 32 * 1024, peak
        assert a.finish() == 0


def test_pages_are_of_all_groups_of_a_thread():
    """With groupBy kernel a thread stands for several groups; paused or running, the pages are the whole."""
    with scene(LINES) as s, Between(s) as between, Adapter(between.path) as a:
        asked = between.look = Asked()
        a.start(pid=s.app.pid, groupBy="kernel")
        runs = all_pages(a, 60, 7)
        assert a.event("invalidated")
        assert {w["group"] for w in runs} == {0, 1} and len({name_of(w["ref"]) for w in runs}) == 60
        names, more = shown_waves(a)
        assert names == [name_of(w["ref"]) for w in runs] and not more
        a.pause()
        assert all_pages(a, 60, 13) == runs == page(a)["waves"]
        assert shown_waves(a) == (names, 0)
        with_waves = [p for p in asked if p.get("waves")]
        assert all(p["select"]["groups"] == [0, 1] and "max" in p["select"] for p in with_waves), with_waves
        assert len(with_waves) > 10 and not any("select" in p for p in asked if p not in with_waves)
        for bad in ({"start": -1}, {"start": 1 << 32}, {"count": -1}, {"count": 4097}):
            assert "start, count" in a.error("gpuAgent/waves", threadId=1, **bad), bad
        assert a.finish() == 0
        runs_on(s)


def test_a_page_changes_nothing_where_nothing_moves():
    """What was handed out stays true, and the wave that was chosen stays chosen."""
    with scene(LINES) as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        a.pause()
        frame = a.frame()["id"]
        chosen = page(a, start=17, count=1)["waves"][0]["ref"]
        a.call("gpuAgent/focus", threadId=1, wave=chosen)
        a.event("invalidated")
        scope = a.scope("Wave")
        assert page(a)["total"] == 40 and say(a, "waves") and a.call("gpuAgent/waves", threadId=2)["total"] == 20
        assert {v["name"]: v["value"] for v in a.variables(scope)}["wave"] == name_of(chosen)
        assert a.values("Wave")["wave"] == name_of(chosen) and a.call("scopes", frameId=frame)["scopes"]
        assert not a.has_event("invalidated")
        assert a.finish() == 0


def test_a_page_of_what_another_client_holds():
    with scene(LINES) as s, Between(s) as between, Adapter(between.path) as a:
        holder = s.connect()
        session = s.attach(rpc=holder, control=True)
        holder.call("gpu.suspend", session=session, lease_ms=60000)
        a.start(pid=s.app.pid)
        a.event("stopped")
        frame = a.frame()["id"]
        got = page(a, start=38)
        assert got["total"] == 40 and len(got["waves"]) == 2, got
        a.call("gpuAgent/focus", threadId=1, wave=got["waves"][1]["ref"])
        a.event("invalidated")
        assert page(a, start=38) == got and a.values("Wave")["wave"] == name_of(got["waves"][1]["ref"])
        assert a.call("scopes", frameId=frame)["scopes"] and not a.has_event("invalidated")
        # It has let them run, and this session does not know yet: what it shows is of before.
        between.refused = {"session.list"}
        holder.call("gpu.resume", session=session)
        s.control(f"waves {s.app.pid} 0 halted 12 {PC:#x}")
        assert page(a)["total"] == 20 and a.call("gpuAgent/waves", threadId=2)["total"] == 12, "what is there now"
        a.event("invalidated")
        assert a.error("scopes", frameId=frame)
        assert len(say(a, "waves").splitlines()) == 20 and not a.has_event("invalidated")
        # They go on changing: from one look to the next, and to the one after that.
        counts = [14, 16, 18]

        def look(request):
            if request["method"] == "gpu.snapshot" and counts:
                s.control(f"waves {s.app.pid} 0 halted {counts.pop(0)} {PC:#x}")

        between.look = look
        assert "the waves move" in a.error("gpuAgent/waves", threadId=2) and not counts
        assert a.call("gpuAgent/waves", threadId=2)["total"] == 18 and page(a)["total"] == 20
        assert a.finish() == 0


def test_a_wave_is_shown_where_it_has_moved_to():
    """While the GPU runs its position is another one at each look; what it works on is not."""
    with scene("waves 0 halted 4 scale+28") as s, Adapter(s.socket) as a:
        s.control(f"waves {s.app.pid} 0 halted 8 {PC:#x} group=4 workgroup=5,0,0")
        a.start(pid=s.app.pid)
        wave = next(w["ref"] for w in page(a)["waves"] if w["ref"]["workgroup"] == [6, 0, 0] and w["ref"]["wave_in_group"] == 2)
        assert name_of(wave) == "0:0:6"
        s.control(f"waves {s.app.pid} 0 halted 12 {PC:#x} group=4 workgroup=4,0,0")
        a.call("gpuAgent/focus", threadId=1, wave=wave)
        assert a.values("Wave")["wave"] == "0:0:10"
        assert "no such wave" in a.error("gpuAgent/focus", threadId=1, wave={**wave, "workgroup": [9, 0, 0]})
        for bad in ({}, {"queue_id": 0}, {"queue_id": 1 << 32, "index": 0}, {"queue_id": 0, "index": -1}, [], 7):
            assert "wave: needs" in a.error("gpuAgent/focus", threadId=1, wave=bad), bad
        assert a.finish() == 0


def test_a_dispatch_has_all_of_its_bits():
    with scene("waves 0 halted 4 scale+28") as s, Between(s) as between, Adapter(between.path) as a:
        a.start(pid=s.app.pid)
        between.look = asked = Asked()
        for dispatch in (1, 1 << 63, (1 << 64) - 1):
            a.error("gpuAgent/focus", threadId=1, wave={"queue_id": 0, "index": 99, "dispatch": dispatch})
            assert asked.pop()["select"]["wave"]["dispatch"] == dispatch


def test_waves_that_move_between_looks():
    """A thread is other groups at the next look: asked for once more, then refused; never the waves of others."""
    with scene(LINES) as s, Between(s) as between, Adapter(between.path) as a:
        plans, positions = [], []

        def look(request):
            if request["method"] == "gpu.snapshot" and plans:
                for queue, text in enumerate(plans.pop(0)):
                    s.control(f"waves {s.app.pid} {queue} {text}")

        a.start(pid=s.app.pid, groupBy="kernel")
        pcs = sorted({w["pc"] for w in page(a)["waves"]})
        one, two = (f"halted 6 {pcs[0]}", "clear"), (f"halted 6 {pcs[0]}", f"halted 3 {pcs[1]}")
        between.look = look
        # Both groups, then one of them: the second look finds it again.
        plans[:] = [one]
        got = page(a)
        assert got["total"] == len(got["waves"]) == 6 and {w["pc"] for w in got["waves"]} == {pcs[0]}, got
        plans[:] = [two]
        got = page(a, start=1)
        assert got["total"] == 9 and len(got["waves"]) == 8 and {w["group"] for w in got["waves"]} == {0, 1}, got
        # As many groups, but others: those of another state come between them.
        for others in (4, 2):
            script = s.directory / f"waves{others}"
            script.write_text(f"halted n=6 pc={pcs[0]}\nstopped n={others} pc={pcs[0]}\nhalted n=3 pc={pcs[1]}\n")
            plans[:] = [(f"script {script}", "clear")]
            got = page(a)
            assert got["total"] == 9 and {w["state"] for w in got["waves"]} == {"halted"} and not plans, got
            positions.append({w["group"] for w in got["waves"]})
        assert positions == [{0, 2}, {0, 1}], positions
        plans[:] = [one, two]
        assert "the waves move" in a.error("gpuAgent/waves", threadId=1) and not plans
        plans[:] = [one, two]
        assert "the waves move" in a.error("evaluate", expression="waves", context="repl") and not plans
        plans[:] = [("clear", "clear")]
        assert "no waves any more" in a.error("gpuAgent/waves", threadId=1) and not plans
        assert "no thread" in a.error("gpuAgent/waves", threadId=1)
        assert a.finish() == 0


def test_an_editor_is_taken_to_a_group():
    """Only to what stands still; the lanes of a wave are told without a change to what is shown."""
    with scene("waves 0 memory 2 scale+104; waves 1 halted 6 spin+16") as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        a.event("stopped")
        told = a.call("gpuAgent/groups")
        assert [g["faulting"] for g in told["groups"]] == [True, False], told
        assert [d["arch"] for d in told["devices"]] == ["gfx90a"] and [q["queue_id"] for q in told["queues"]] == [0, 1], told
        assert a.call("gpuAgent/focus", threadId=2, reveal=True) == {"revealed": False}
        assert a.call("gpuAgent/focus", threadId=1, reveal=True) == {"revealed": True}
        stopped = a.event("stopped")
        assert (stopped["reason"], stopped["threadId"], stopped["allThreadsStopped"]) == ("exception", 1, False), stopped
        a.pause()
        third = a.call("gpuAgent/waves", threadId=2)["waves"][2]["ref"]
        before = a.values("Wave", 2)
        beside = a.call("gpuAgent/lanes", threadId=2, wave=third)
        assert beside["wave"] == "1:0:2" and "lane" not in beside and not any(x["shown"] for x in beside["lanes"]), beside
        assert a.values("Wave", 2) == before
        assert a.call("gpuAgent/focus", threadId=2, wave=third, lane=7, reveal=True) == {"revealed": True}
        stopped = a.event("stopped")
        assert (stopped["reason"], stopped["threadId"], stopped["allThreadsStopped"]) == ("pause", 2, True), stopped
        shown = a.values("Wave", 2)
        assert (shown["wave"], shown["lane"]) == ("1:0:2", "7"), shown
        assert a.call("gpuAgent/lanes", threadId=2, wave=third)["lane"] == 7
        assert a.finish() == 0


def test_why_says_what_waves_wait_for():
    """Asked for when it is opened: three of four waves wait at a barrier for the one that has stopped."""
    with scene("waves 0 barrier 8 spin+16 group=4 last=memory") as s, Adapter(s.socket) as a:
        a.start(processId=s.app.pid)
        a.pause()
        threads = a.call("threads")["threads"]
        waiting = next(t["id"] for t in threads if "6 x" in t["name"])
        why = a.values("Why", waiting)
        assert "has stopped (memory_violation)" in why["cause"] and why["cause"].endswith(("[inferred]", "[proven]")), why
        assert why["waits"].startswith("waves 0-2 of workgroup") and "missing: wave 3 " in why["waits"], why
        assert f"`gpu-agentctl why {s.app.pid} --twice`" in why["samples"], why
        stopped = a.values("Why", next(t["id"] for t in threads if t["id"] != waiting))
        assert stopped["waits"] == "not known of these waves" and stopped["elsewhere"] == why["waits"], stopped
        scope, = [x for x in a.call("scopes", frameId=a.frame(waiting)["id"])["scopes"] if x["name"] == "Why"]
        assert scope["expensive"]


def test_why_says_what_waves_of_a_collective_operation_wait_for():
    """Such a wait is of a dispatch, and of no place in it."""
    with Scene(app=None, gpus="gfx90a") as s, Adapter(s.socket) as a:
        app = s.start("app", [BIN / "gpu-agent-simapp", "--kfd", s.mount / "kfd", "--scene", "crossed-collectives", "--set",
                              "rank=0,previous=7,next=1"])
        app.wait_line()
        a.start(processId=app.pid)
        a.pause()
        for thread in a.call("threads")["threads"]:
            why = a.values("Why", thread["id"])
            assert "missing: rank 6 of communicator" in why["waits"] and "elsewhere" not in why, why
