#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Watch rules: found without polling, recorded without anybody there, never in the application's way."""
import contextlib
import ctypes
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import (BIN, EXCEPTIONS, LIBEXEC, CudaScene, Rpc, as_user, agent_children, children_named, hook_directory, need_root,
                     status, wait_settled, wait_until, wakeups)
from rulescene import ALL, LARGE, PLAIN, WAVES, RuleScene, analyzed, body

USER, OTHER = 1000, 1001
IDLE = "[agent]\nidle_exit = 1ms\n"
LIBC = ctypes.CDLL(None, use_errno=True)


def test_a_fault_becomes_a_record():
    with RuleScene(app=WAVES) as s:
        s.wait_watched()
        assert s.watched() == {s.app.pid: "all"}
        record, info = s.fault_until(lambda record, seen: seen["complete"], exception="wave_memory_violation", queue=1)
        n = len(s.records())
        assert record["rule"] == "all" and record["reason"] == "exception" and record["pid"] == s.app.pid, record
        assert record["exception"] == "wave_memory_violation" and record["kernel"] == "spin", record
        assert ":" in record["location"] and record["count"] == 1, record
        assert info["fault"]["rule"] == "all" and info["fault"]["exceptions"] == ["wave_memory_violation"], info["fault"]
        assert info["groups"][0]["kernel"]["name"] == "spin" and info["queues"]
        assert s.rule() == {"name": "all", "watching": 1, "matched": 1, "exceptions": n, "recorded": n, "duplicates": 0,
                            "limited": 0, "lost": 0}
        assert s.target_state()["suspended_queues"] == 0 and s.app_status().faults == n


def test_rules_do_not_poll():
    """Neither with a process that is watched nor with none do we wake up."""
    with RuleScene() as s:
        s.wait_watched()

        def seen():
            return wakeups([s.agentd.pid, *agent_children(s.agentd.pid)])

        s.clients.pop().close()
        before = wait_settled(seen, "the agent", still=1)
        time.sleep(2)
        assert seen() == before


def test_processes_are_found_when_they_come():
    with RuleScene(app=None) as s:
        assert s.watched() == {}
        apps = [s.start_app(PLAIN) for _ in range(3)]
        s.wait_watched(*apps)
        apps[0].stop(signal.SIGKILL)
        wait_until(lambda: set(s.watched()) == {a.pid for a in apps[1:]}, "the dead one is forgotten")
        wait_until(lambda: s.rule()["watching"] == 2, "the dead one is counted")
        assert s.rule()["matched"] == 3


def test_devices_are_found_when_they_come():
    """A driver is loaded after the agent has started."""
    with RuleScene(app=None) as s:
        s.agentd.stop()
        s.clients.clear()
        late = s.directory / "late"
        late.mkdir()
        s.start_agentd("--kfd", late / "kfd")
        assert s.watched() == {}
        app = s.start_app(PLAIN)
        (late / "kfd").symlink_to(s.mount / "kfd")
        s.wait_watched(app)
        s.wait_watched(s.start_app(PLAIN))


def test_the_handshake_is_answered():
    """A process is taken up before its runtime starts: that must not wait for anybody."""
    with RuleScene(app="sleep 500; runtime on; queues 1; spin") as s:
        s.wait_watched()
        wait_until(lambda: s.target_state()["queues"], "the runtime has started")
        s.fault()
        s.wait_counts(exceptions=1)


def stores(s):
    return children_named(s.agentd.pid, "gpu-agent-store")


def is_vast(s):
    """A sanitizer maps more for a program than any store takes."""
    session = s.attach(control=True)
    size = s.rpc.call("core.begin", session=session, full=True, estimate=True)["bytes"]
    s.rpc.call("session.detach", session=session)
    return size > 1 << 30


def test_a_fault_becomes_a_core():
    # A full core has the save areas of all queues, 64 MB each: two are enough.
    for keep in ("light", "full"):
        with RuleScene(ALL + f"keep = {keep}\n", app=WAVES.replace("queues 4", "queues 2")) as s:
            s.wait_watched()
            if keep == "full" and is_vast(s):
                continue
            record, info = s.fault_until(lambda record, seen: seen["complete"], exception="wave_memory_violation", queue=1)
            assert record["body"] == "present" and not info["missing"], (record, info["missing"])
            seen = analyzed(s, record["record"])
            group = seen["groups"][0]
            assert group["kernel"]["name"] == "spin" and group["reasons"] == ["memory_violation"], group
            assert seen["process"]["pid"] == s.app.pid, seen["process"]
            # The next one can be had, and people's own cores too.
            n = s.rule()["recorded"] + 1
            s.fault(exception="wave_trap", queue=0)
            s.wait_counts(recorded=n)
            assert body(s)["record"] != record["record"]
            done = s.ctl("dump", s.app.pid, "-o", s.directory / "own")
            assert done.returncode == 0, done
            assert s.app_status().faults == n and s.target_state()["suspended_queues"] == 0


@contextlib.contextmanager
def watched_cuda():
    """A CUDA process that a rule has, and its only record once there is one."""
    need_root()
    with CudaScene(start_agent=False, user_mode=False, app_user=54107) as s:
        # Of this user alone: other tests run CUDA processes at the same time.
        (s.directory / "agentd.conf").write_text("[agent]\nuser = nobody\nsocket_group =\n"
                                                 "[rule cuda]\nuser = 54107\nkeep = light\n")
        s.start_agentd(user_mode=False)

        def sessions():
            return [x for x in s.rpc.call("session.list")["sessions"] if x["pid"] == s.app.pid]

        def record():
            wait_until(lambda: next(r for r in s.rpc.call("agent.status")["rules"])["recorded"], "recorded")
            found, = [r for r in s.rpc.call("cores.list")["records"] if r["pid"] == s.app.pid]
            return found

        wait_until(lambda: [x.get("rule") for x in sessions()] == ["cuda"], "the rule has it")
        s.rpc.call("gpu.snapshot", session=s.attach())
        yield s, record


def test_a_fault_of_cuda_becomes_a_core():
    with watched_cuda() as (s, wait_for_record):
        s.control("raise 0 1 2 14 errorpc=0x50")
        record = wait_for_record()
        assert record["body"] == "present" and record["vendor"] == "nvidia", record
        group = analyzed(s, record["record"])["groups"][0]
        assert group["exception"] == "CUDA_EXCEPTION_14: warp illegal address", group


def test_a_fault_of_some_lanes_is_recorded_where_they_are():
    """They wait at line 12 of an inlined function, and the warp's own pc is at line 19."""
    with watched_cuda() as (s, wait_for_record):
        s.control("warp 0 1 2 pc=0x10 idle=0xc0 active=0xff")
        s.control("raise 0 1 2 1 lanes=0x30000")
        record = wait_for_record()
        listed = s.rpc.call("cores.info", record=record["record"])["snapshot"]
        for doc in (listed, analyzed(s, record["record"])):
            group = doc["groups"][0]
            assert group["exception"] == "CUDA_EXCEPTION_1: lane illegal address" and group["lane"] == 16, group
            assert group["frames"][0]["line"] == 12 and doc["diverged_waves"] == 1, group
        text = s.ctl("cores", "info", record["record"]).stdout
        assert re.search(r"^FAULT .*spin.cu:12", text, re.M), text


@contextlib.contextmanager
def stalled(s):
    """Whatever is to be stored waits, with its own lock on the directory."""
    s.cores.mkdir(0o700, exist_ok=True)
    fd = os.open(s.cores, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(fd)


def test_faults_wait_for_the_core():
    """The program may be gone as soon as it has one of them; everything else goes on."""
    with RuleScene(ALL + "keep = light\nhold = 5m\n", app=LARGE) as s:
        s.wait_watched()
        with stalled(s):
            s.raise_on(s.app)
            wait_until(lambda: s.rule()["exceptions"] == 1, "the worker has it")
            session = s.attach(control=True)
            assert s.rpc.call("gpu.snapshot", session=session)["queues"]
            error = s.rpc.error("core.begin", session=session)
            assert error.name == "busy" and "rule all" in error.message, error
            # Another one is kept back behind it; it has a record of its own, without a core.
            s.raise_on(s.app, exception="wave_abort", queue=1)
            wait_until(lambda: s.rule()["exceptions"] == 2, "the worker has it")
            time.sleep(0.3)
            assert s.app_status().faults == 0
        wait_until(lambda: s.app_status().faults == 2, "the application gets both")
        wait_until(lambda: s.rule()["recorded"] == 2, "recorded")
        with_core, without = sorted(s.records(), key=lambda r: r["body"] != "present")
        assert with_core["body"] == "present" and without["body"] == "none", (with_core, without)
        missing = s.rpc.call("cores.info", record=without["record"])["snapshot"]["missing"]
        assert any("another one is being written" in m for m in missing), missing
        assert s.rpc.call("core.begin", session=session, estimate=True)["bytes"] > 0


def test_a_core_outlives_a_writer_who_leaves():
    """What he changed is undone with his lease; the core of the rule is not his."""
    with RuleScene(ALL + "keep = light\nhold = 5m\n", app=LARGE) as s:
        s.wait_watched()
        with stalled(s):
            s.raise_on(s.app)
            wait_until(lambda: s.rule()["exceptions"] == 1, "the worker has it")
            with contextlib.closing(s.connect()) as other:
                session = s.attach(rpc=other, control=True)
                other.call("gpu.suspend", session=session, lease_ms=60000)
                other.call("session.detach", session=session)
            wait_until(lambda: s.target_state()["suspended_queues"] == 0, "what he did is undone")
        wait_until(lambda: s.rule()["recorded"] == 1, "recorded")
        seen = analyzed(s, body(s)["record"])
        assert seen["process"]["pid"] == s.app.pid and (seen["groups"] or not seen["complete"]), seen
        wait_until(lambda: s.app_status().faults == 1, "the application has its fault")


def test_faults_wait_whoever_comes_and_goes():
    """Other people's subscriptions begin, change and end; the core is whole, each fault goes on once, as raised."""
    page = 0x7F0000003000
    with RuleScene(ALL + "keep = light\nhold = 5m\n", app=LARGE) as s:
        s.wait_watched()
        s.control("memory-info fixed")
        gpu = s.state()["gpus"][0]["gpu_id"]
        with stalled(s):
            s.control(f"fault {s.app.pid} {gpu} {page:#x} not-present")
            wait_until(lambda: s.rule()["exceptions"] == 1, "the worker has it")
            s.raise_on(s.app, queue=2)
            wait_until(lambda: s.rule()["exceptions"] == 2, "the worker has it")
            with contextlib.closing(s.connect()) as reader, contextlib.closing(s.connect()) as writer:
                session = s.attach(rpc=reader)
                s.attach(rpc=writer, control=True)
                for exceptions in (["wave_trap"], sorted(EXCEPTIONS), ["wave_abort"], []):
                    reader.call("exception.subscribe", session=session, exceptions=exceptions)
                writer.call("exception.subscribe", session=session, exceptions=["wave_trap"], hold=True)
                writer.call("exception.subscribe", session=session, exceptions=["wave_abort"])
                reader.call("exception.subscribe", session=session, exceptions=["queue_new"])
                writer.call("gpu.suspend", session=session, lease_ms=60000)
            wait_until(lambda: s.target_state()["suspended_queues"] == 0, "what the writer did is undone")
            wait_until(lambda: s.rpc.call("session.list")["sessions"][0]["readers"] == 0, "both have left")
            time.sleep(0.3)
            assert s.app_status().faults == 0
        wait_until(lambda: s.rule()["recorded"] == 2, "recorded")
        assert sorted(r["body"] for r in s.records()) == ["none", "present"], s.records()
        wait_until(lambda: s.app_status().faults == 2, "the application gets both")
        assert s.app_status().memory_fault_va == page
        assert EXCEPTIONS["wave_trap"] == 2 and 2 in s.app_status().queue_errors().values()
        time.sleep(0.1)
        assert s.app_status().faults == 2


def test_a_store_that_does_not_answer_is_not_waited_for():
    """The process is gone, the session ends all the same; what nobody has confirmed counts as lost."""
    with RuleScene(ALL + "keep = light\nhold = 5m\n", app=LARGE) as s:
        s.wait_watched()
        with stalled(s):
            s.raise_on(s.app)
            wait_until(lambda: s.rule()["exceptions"] == 1, "the worker has it")
            s.app.stop(signal.SIGKILL)
            wait_until(lambda: s.rule()["lost"] == 1, "it is counted")
        assert s.rule()["recorded"] == 0
        wait_until(lambda: s.rule()["watching"] == 0, "it is not watched any more")


def end_by_itself(s):
    """After `hold`."""


def end_by_release(s):
    session = s.attach()
    s.rpc.call("session.detach", session=session, release=True)


def end_by_reload(s):
    s.reload(ALL.replace("all", "other"))


def end_by_sigterm(s):
    s.clients.clear()
    s.agentd.popen.send_signal(signal.SIGTERM)


def end_by_killed_worker(s):
    killed(tracer(s.app))


def end_by_killed_store(s):
    for pid in wait_until(lambda: stores(s), "the store"):
        killed(pid)


def end_by_killed_agent(s):
    s.clients.clear()
    killed(s.agentd.pid)


def test_faults_do_not_wait_for_ever():
    """Whatever comes first: then they go on, once."""
    for end in (end_by_itself, end_by_release, end_by_reload, end_by_sigterm, end_by_killed_worker, end_by_killed_store,
                end_by_killed_agent):
        hold = "500ms" if end is end_by_itself else "5m"
        with RuleScene(ALL + f"keep = light\nhold = {hold}\n", app=LARGE) as s:
            s.wait_watched()
            with stalled(s):
                s.raise_on(s.app)
                wait_until(lambda: s.rule()["exceptions"] == 1, "the worker has it")
                end(s)
                wait_until(lambda: s.app_status().faults == 1, f"the application gets its fault: {end.__name__}")
            time.sleep(0.3)
            assert s.app_status().faults == 1 and s.target_state()["suspended_queues"] == 0, end.__name__
            if end is end_by_killed_worker:
                s.wait_watched()
                wait_until(lambda: [r["body"] for r in s.records()] == ["gone"], "the record is there, the core is not")
                assert not [p for p in s.cores.iterdir() if p.suffix == ".core"], "half a core"


def test_who_dies_of_its_fault_is_recorded():
    """The usual case: the store answers when the process is gone; its hook runs all the same."""
    need_root()
    with RuleScene(app=None) as s, hook_directory() as place:
        out = s.directory / "out"
        hook = place / "hook"
        hook.write_text(f"#!/bin/sh\necho $GPU_AGENT_RECORD >{out}.new; mv {out}.new {out}\n")
        hook.chmod(0o755)
        s.reload(ALL + f"hook = {hook}\nhook_user = root\n")
        app = s.start_app(PLAIN)
        s.wait_watched(app)
        with stalled(s):
            s.fault(app)
            app.stop(signal.SIGKILL)
            time.sleep(0.3)
        wait_until(out.exists, "the hook has run")
        record, = s.records()
        assert out.read_text().strip() == record["record"], record
        s.wait_counts(recorded=1)


def test_alike_exceptions_make_one_record():
    with RuleScene("[rule all]\ndevice = amd\nrate_limit = none\ndeduplicate = code/1h\n") as s:
        s.wait_watched()
        s.fault(n=4)
        s.fault(exception="wave_abort")
        wait_until(lambda: s.rule()["recorded"] == 2, "recorded")
        rule = s.rule()
        assert rule["exceptions"] == 5 and rule["duplicates"] == 3 and rule["limited"] == rule["lost"] == 0, rule
        s.app.stop()
        wait_until(lambda: len(s.records()) == 3, "what is in no record is told at the end")
        last = s.records()[-1]
        assert last["reason"] == "repeats" and last["count"] == 3, last


def test_the_same_place_makes_one_record():
    with RuleScene("[rule all]\ndevice = amd\nrate_limit = none\n", app=WAVES) as s:
        s.wait_watched()
        s.fault(n=3, exception="wave_memory_violation", queue=1)
        wait_until(lambda: s.rule()["recorded"] == 1, "recorded")
        time.sleep(1)  # a look is allowed again
        s.fault(exception="wave_memory_violation", queue=1)
        s.wait_counts(exceptions=4, recorded=1, duplicates=3)


def test_a_repeat_is_counted_in_the_next_record():
    with RuleScene("[rule all]\ndevice = amd\nrate_limit = none\ndeduplicate = code/5s\n") as s:
        s.wait_watched()
        s.fault(n=3)
        time.sleep(5.1)
        s.fault()
        wait_until(lambda: len(s.records()) == 2, "the time is over")
        assert [r["count"] for r in s.records()] == [1, 3]


def test_rates_are_limited():
    with RuleScene("[rule all]\ndevice = amd\nrate_limit = 2/1h\ndeduplicate = none\n") as s:
        s.wait_watched()
        s.fault(n=5)
        s.wait_counts(exceptions=5, recorded=2, limited=3)
        assert len(s.records()) == 2


def test_rules_may_only_count():
    with RuleScene(ALL + "keep = nothing\nexceptions = wave_trap\n") as s:
        s.wait_watched()
        s.fault(n=3)
        s.fault(exception="wave_abort")
        s.wait_counts(exceptions=3, recorded=3)
        assert s.records() == []


def test_the_first_rule_that_matches_has_the_process():
    rules = ALL.replace("all", "mine").replace("device = amd", "device = amd\nexe = */gpu-agent-simapp") + ALL
    with RuleScene("[rule others]\nexe = /nowhere/*\n" + rules) as s:
        s.wait_watched()
        assert s.watched() == {s.app.pid: "mine"}
        assert s.rule("others")["matched"] == s.rule()["matched"] == 0


def test_a_program_that_was_removed_is_known_by_its_path():
    with RuleScene("", app=None) as s:
        s.app_program = pathlib.Path(shutil.copy(s.app_program, s.directory / "trainer"))
        app = s.start_app(PLAIN)
        s.app_program.unlink()
        path, mark = os.readlink(f"/proc/{app.pid}/exe").rsplit(" ", 1)
        assert path.endswith("/trainer") and mark == "(deleted)"
        s.reload(ALL.replace("device = amd", f"device = amd\nexe = {path}"))
        s.wait_watched(app)


def test_reload_applies_to_what_runs():
    with RuleScene(ALL) as s:
        s.wait_watched()
        s.fault()
        s.reload(ALL.replace("all", "new"))
        wait_until(lambda: s.watched() == {s.app.pid: "new"}, "the new rule has it")
        s.fault()
        wait_until(lambda: s.rule("new")["exceptions"] == 1, "counted")
        assert s.rule("all") is None
        s.reload("[rule broken]\ncolour = red\n")
        assert "[rule broken] colour: unknown key" in s.agentd.err()
        assert s.watched() == {s.app.pid: "new"}, "the old rules stay"
        s.reload("")
        wait_until(lambda: not s.worker_pids(), "without rules nothing is watched")
        s.fault()
        assert s.rpc.call("agent.status")["rules"] == []
        s.reload(ALL)
        s.wait_watched()


def test_people_come_and_go():
    """A client shares the session; when he leaves, the watch stays."""
    with RuleScene() as s:
        s.wait_watched()
        session = s.attach(control=True)
        info = s.rpc.call("session.list")["sessions"][0]
        assert info["rule"] == "all" and info["readers"] == 1 and info["writer_pid"] == os.getpid()
        s.rpc.call("gpu.suspend", session=session, lease_ms=60000)
        s.rpc.call("gpu.resume", session=session)
        assert not s.rpc.call("session.detach", session=session)["ended"]
        s.clients.pop().close()
        wait_until(lambda: s.rpc.call("session.list")["sessions"][0]["readers"] == 0, "nobody is there")
        s.fault()
        wait_until(lambda: s.rule()["recorded"] == 1, "the watch stays")


def test_a_fault_while_the_writer_leaves_is_recorded():
    """What the writer had set is undone; the rule goes on listening meanwhile."""
    with RuleScene() as s:
        s.wait_watched()
        session = s.attach(control=True)
        s.rpc.call("gpu.suspend", session=session, lease_ms=60000)
        s.control("block exceptions after")
        s.clients.pop().close()
        wait_until(lambda: any(c["wait"] == "block" for c in s.state()["pending"]), "it asks for its exceptions")
        s.raise_on(s.app)
        s.control("release exceptions")
        s.wait_counts(exceptions=1, recorded=1)
        wait_until(lambda: s.app_status().faults == 1, "the application has its fault")
        assert s.target_state()["suspended_queues"] == 0


def test_the_watch_joins_people():
    """And when people were first, the rule joins them."""
    with RuleScene("") as s:
        session = s.attach()
        s.rpc.call("exception.subscribe", session=session, exceptions=["wave_abort"], look_ms=0)
        s.reload(ALL)
        s.wait_watched()
        assert [p for p in s.worker_pids() if p == tracer(s.app)]
        s.fault(exception="wave_trap")
        s.fault(exception="wave_abort")
        s.rpc.call("session.detach", session=session)
        s.fault(exception="wave_abort")
        wait_until(lambda: s.rule()["recorded"] == 3, "recorded")


def test_processes_can_be_released():
    with RuleScene() as s:
        s.wait_watched()
        session = s.attach()
        assert s.rpc.call("session.detach", session=session, release=True)["ended"]
        wait_until(lambda: tracer(s.app) == 0, "free")
        s.fault()
        s.wait_watched(s.start_app(PLAIN, name="other"))
        s.rpc.call("process.list")
        time.sleep(0.5)
        assert s.app.pid not in s.watched(), "the rule does not come back by itself"
        s.reload(ALL)
        s.wait_watched()


def test_release_leaves_other_people_their_session():
    with RuleScene() as s:
        s.wait_watched()
        other = s.connect()
        session = s.attach()
        s.attach(rpc=other)
        assert not s.rpc.call("session.detach", session=session, release=True)["ended"]
        wait_until(lambda: s.watched() == {}, "released")
        other.call("gpu.queues", session=session)
        s.fault()
        assert s.rule()["exceptions"] == 0
        other.close()
        s.clients.remove(other)
        wait_until(lambda: not s.worker_pids(), "the session ends with its last client")


def losses_told(s):
    """On a machine that is far too slow a worker that passed its deadline is killed, and another one comes."""
    told = s.agentd.err()
    dead = sum(int(n) for n in re.findall(r": (\d+) exception\(s\) of process", told))
    return dead + told.count("is not recorded: ")


def disk_use(s):
    """What the store takes at this moment, but for its index; with its lock, as it looks itself."""
    total = 0
    with stalled(s):
        for name in os.listdir(s.cores):
            # What cannot be written whole goes without that lock.
            with contextlib.suppress(FileNotFoundError):
                total += (s.cores / name).stat().st_blocks * 512 if "index" not in name else 0
    return total


def test_a_thousand_faults_on_twenty_targets():
    """All counted, each seen by its application, the disk bounded all the while, the newest cores there each time."""
    # Slowed down, so many at a time would miss the deadlines of their stops.
    sanitized = b"__asan_init" in (BIN / "gpu-agent-worker").read_bytes()
    targets, rounds, room = (6, 20, 4 << 20) if sanitized else (20, 50, 8 << 20)
    limits = f"max_use = {room}\nkeep_free = 0\nmax_records = 100"
    with RuleScene(ALL + "keep = light\nhold = 5m\n", app=None, store=limits) as s:
        apps = [s.start_app("runtime on; queues 2; spin", name=f"app{i}") for i in range(targets)]
        s.wait_watched(*apps)
        most = produced = lost = 0
        for round_ in range(rounds):
            for app in apps:
                s.raise_on(app, queue=round_ % 2)
                most = max(most, disk_use(s))
            # One latch for each queue and kind: the next one shall not meet it.
            for app in apps:
                wait_until(lambda app=app: s.app_status(app).faults == round_ + 1, "the application saw its fault")
                most = max(most, disk_use(s))
            wait_until(lambda: s.rule()["recorded"] + s.rule()["lost"] == targets * (round_ + 1), "all are answered for")
            newest = sorted(s.records(), key=lambda r: r["time_us"])[-targets:]
            produced += sum(r["disk_bytes"] for r in newest)
            before, lost = lost, s.rule()["lost"]
            if lost == before:
                assert {r["pid"] for r in newest} == {a.pid for a in apps}, newest
                assert [r["body"] for r in newest] == ["present"] * targets, newest
            else:
                s.wait_watched(*apps)
        rule, usage = s.rule(), s.rpc.call("cores.usage")
        assert rule["exceptions"] == rule["recorded"] + lost == targets * rounds and rule["watching"] == targets, rule
        assert lost == losses_told(s), s.agentd.err()
        assert usage["records"] <= 100 and usage["bodies"] >= targets and usage["unfinished_bytes"] == 0, usage
        # Where holes are, the file system writes down besides: a page or two of each file that is being written.
        assert most <= room + targets * 8192 and produced > room + targets * 8192, (most, room, produced)
        for app in apps:
            assert s.app_status(app).faults == rounds and s.target_state(app)["suspended_queues"] == 0


def test_the_newest_cores_are_kept():
    """Sixty of them, of twenty targets: records of all, bodies of the last, within the limits."""
    with RuleScene(ALL + "keep = light\n", app=None, store="max_use = 1M\nkeep_free = 0") as s:
        apps = [s.start_app(PLAIN, name=f"app{i}") for i in range(20)]
        s.wait_watched(*apps)
        for round_ in range(3):
            for n, app in enumerate(apps, 20 * round_ + 1):
                s.fault(app, queue=round_ % 4)
                wait_until(lambda n=n: s.rule()["recorded"] + s.rule()["lost"] == n, "all are answered for")
                s.wait_watched(app)
        rule, usage = s.rule(), s.rpc.call("cores.usage")
        assert rule["lost"] == losses_told(s), s.agentd.err()
        assert rule["recorded"] <= usage["records"] <= 60 and usage["disk_bytes"] <= 1 << 20, (rule, usage)
        assert usage["unfinished_bytes"] == 0 and usage["bodies"], usage
        bodies = [r["body"] for r in sorted(s.records(), key=lambda r: r["time_us"])]
        if not rule["lost"]:
            assert bodies == ["gone"] * (60 - usage["bodies"]) + ["present"] * usage["bodies"], bodies
        for app in apps:
            assert s.app_status(app).faults == 3 and s.target_state(app)["suspended_queues"] == 0


def tracer(app):
    """The worker on it; 0: none."""
    return int(status(app.pid)["TracerPid"])


def killed(pid):
    """For kill(), no tracer would be ourselves."""
    assert pid
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def test_a_killed_worker_comes_back():
    with RuleScene() as s:
        s.wait_watched()
        for i in range(3):
            old = tracer(s.app)
            killed(old)
            wait_until(lambda: tracer(s.app) not in (0, old), "there is another one")
            s.wait_watched()
            s.fault()
            # One that dies between sending a fault and noting that it was sent has it sent twice.
            wait_until(lambda: sum(s.rule()[k] for k in ("recorded", "duplicates", "limited")) == i + 1, "all is done about it")
        assert s.app_status().faults == 3


def test_a_fault_of_a_killed_worker_is_counted():
    """It goes on to the application, and has no record: that is said."""
    with RuleScene() as s:
        s.wait_watched()
        worker = tracer(s.app)
        s.control("block suspend")
        s.raise_on(s.app)
        # Within its deadline, or else it is killed already, which comes to the same.
        wait_until(lambda: tracer(s.app) != worker or any(c["wait"] == "block" for c in s.state()["pending"]),
                   "the worker looks at it")
        killed(worker)
        wait_until(lambda: s.app_status().faults == 1, "the application has its fault")
        wait_until(lambda: tracer(s.app) not in (0, worker), "there is another worker")
        s.wait_watched()
        rule = s.rule()
        assert (rule["exceptions"], rule["lost"], rule["recorded"]) == (1, 1, 0), rule
        assert "1 exception(s) of process" in s.agentd.err(), s.agentd.err()
        s.fault()
        wait_until(lambda: s.rule()["recorded"] == 1, "the next one is recorded")
        assert s.rule()["exceptions"] == 2 and s.rule()["lost"] == 1


def test_a_worker_killed_among_faults_loses_none_of_them():
    with RuleScene() as s:
        s.wait_watched()
        want = kills = 0
        for i in range(12):
            s.raise_on(s.app, queue=i % 4)
            want += 1
            time.sleep(0.002 * (i % 4))
            worker = tracer(s.app)
            # More in a row, and the rule does not come back by itself.
            if worker and kills < 5:
                killed(worker)
                kills += 1
            wait_until(lambda: s.app_status().faults >= want or latched(s), "the fault has gone somewhere")
            want = s.app_status().faults
            wait_until(lambda: s.app.pid in s.watched(), "watched again")
        wait_until(lambda: s.target_state()["suspended_queues"] == 0, "the last look is over")


def latched(s):
    """Between interrupt and the worker's look the kernel forgets with the debugger; that is documented."""
    return tracer(s.app) == 0


def test_the_daemon_restarts_in_the_middle():
    with RuleScene() as s:
        s.wait_watched()
        s.fault(n=2)
        wait_until(lambda: s.rule()["recorded"] == 2, "recorded")
        s.clients.clear()
        s.agentd.stop(signal.SIGKILL)
        s.socket.unlink(missing_ok=True)
        s.fault()
        s.start_agentd()
        s.wait_watched()
        s.fault(n=2)
        wait_until(lambda: s.rule()["recorded"] == 2, "recorded")
        # The one in between was recorded where those who were still there had the time for it.
        assert len(s.records()) in (4, 5) and s.app_status().faults == 5


def test_without_a_store_faults_go_on():
    """Its place is a file: nothing can be stored, everything is forwarded, counted and logged."""
    with RuleScene(app=None) as s:
        shutil.rmtree(s.cores, ignore_errors=True)
        s.cores.write_text("in the way")
        app = s.start_app(PLAIN)
        s.wait_watched(app)
        s.fault(app, n=3)
        wait_until(lambda: s.rule()["lost"] == 3, "counted")
        assert s.rule()["recorded"] == 0 and "is not recorded" in s.agentd.err()
        s.cores.unlink()
        s.fault(app)
        wait_until(lambda: s.rule()["recorded"] == 1, "as soon as it can, it stores")


def test_on_a_full_disk_faults_go_on():
    need_root()
    with RuleScene(app=None) as s:
        s.cores.mkdir(0o700, exist_ok=True)
        if LIBC.mount(b"tmpfs", str(s.cores).encode(), b"tmpfs", 0, b"size=64k,mode=700"):
            raise SkipTest("cannot mount a tmpfs")
        try:
            with contextlib.suppress(OSError), open(s.cores / "filler", "wb") as f:
                while True:
                    f.write(bytes(4096))
                    f.flush()
            app = s.start_app(PLAIN)
            s.wait_watched(app)
            s.fault(app, n=3)
            wait_until(lambda: s.rule()["lost"] == 3, "counted")
            assert s.app_status(app).faults == 3
        finally:
            s.agentd.stop()
            LIBC.umount2(str(s.cores).encode(), 2)


def test_a_core_without_room_is_left_out():
    """Too long, or the disk is full while it is written: the record says so, the fault goes on."""
    need_root()

    def check(s):
        app = s.start_app(WAVES)
        s.wait_watched(app)
        s.fault(app, exception="wave_memory_violation", queue=1)
        wait_until(lambda: s.rule()["recorded"] == 1, "recorded")
        assert [r["body"] for r in s.records()] == ["gone"] and "its core is not kept" in s.agentd.err()
        assert not [p for p in s.cores.iterdir() if p.suffix == ".core"], "half a core"
        s.fault(app, exception="wave_trap")

    with RuleScene(ALL + "keep = light\n", app=None, store="max_body = 64K") as s:
        check(s)
    with RuleScene(ALL + "keep = light\n", app=None, store="max_use = 1G\nkeep_free = 0") as s:
        s.cores.mkdir(0o700, exist_ok=True)
        if LIBC.mount(b"tmpfs", str(s.cores).encode(), b"tmpfs", 0, b"size=128k,mode=700"):
            raise SkipTest("cannot mount a tmpfs")
        try:
            check(s)
        finally:
            s.agentd.stop()
            LIBC.umount2(str(s.cores).encode(), 2)


def test_records_belong_to_the_owner_of_the_process():
    need_root()
    with RuleScene(app=None, user_mode=False) as s:
        mine = s.start_app(PLAIN, user=USER)
        other = s.start_app(PLAIN, user=OTHER, name="other")
        roots = s.start_app(PLAIN, name="root")
        s.wait_watched(mine, other, roots)
        for app in (mine, other, roots):
            s.fault(app)
        wait_until(lambda: s.rule()["recorded"] == 3, "recorded")
        assert {r["uid"] for r in s.records()} == {0, USER, OTHER}
        for app, uid in ((mine, USER), (other, OTHER)):
            assert set(status(tracer(app))["Uid"].split()) == {str(uid)}, "the worker is the target's user"

        def owner(uid, pid, foreign):
            rpc = Rpc(s.socket)
            assert [r["uid"] for r in rpc.call("cores.list")["records"]] == [uid]
            assert [x["pid"] for x in rpc.call("session.list")["sessions"]] == [pid]
            assert "rules" not in rpc.call("agent.status"), "what others' programs do is not his to know"
            assert rpc.error("session.attach", pid=foreign).name == "not_permitted"
            session = rpc.call("session.attach", pid=pid)["session"]
            assert rpc.call("session.detach", session=session, release=True)["ended"]

        as_user(USER, lambda: owner(USER, mine.pid, other.pid))
        as_user(OTHER, lambda: owner(OTHER, other.pid, roots.pid))
        wait_until(lambda: s.watched() == {roots.pid: "all"}, "both have released theirs")


def refused(s, *options, user=None):
    """The agent's message when it does not start."""
    program = BIN / "gpu-agentd"
    done = subprocess.run([program, "--socket", s.directory / "refused.sock", "--check-config", *options], text=True,
                          capture_output=True, timeout=60, user=user)
    assert done.returncode == 1 and not done.stdout, done
    return done.stderr


def test_only_files_of_root_have_rules():
    need_root()
    with RuleScene(app=None, user_mode=False) as s:
        os.chown(s.config, USER, USER)
        assert "rules must be in a file that belongs to root" in refused(s, "--config", s.config)
        s.agentd.popen.send_signal(signal.SIGHUP)
        wait_until(lambda: "configuration not changed" in s.agentd.err(), "the reload is refused")
        os.chown(s.config, 0, 0)
        s.config.chmod(0o664)
        assert "nobody else may write" in refused(s, "--config", s.config)
        s.config.chmod(0o644)
        s.write_rules("[rule x]\nexe = [\n")
        assert "[rule x] exe:" in refused(s, "--config", s.config)


def test_in_user_mode_rules_reach_own_processes_only():
    need_root()
    with RuleScene(app=None) as s:
        s.agentd.stop()
        s.clients.clear()
        home = s.directory / "home"
        home.mkdir()
        os.chown(home, USER, USER)
        programs = s.directory / "bin"
        programs.mkdir()
        for name in LIBEXEC:
            shutil.copy(BIN / name, programs)
        os.chown(s.config, USER, USER)
        s.socket = home / "agentd.sock"
        s.agentd = s.start("own", [programs / "gpu-agentd", "--user", "--socket", s.socket, "--config", s.config,
                                   "--kfd", s.mount / "kfd", "--kfd-sysfs", s.mount, "--store", home / "cores"],
                           user=USER, group=USER, extra_groups=[])
        s.agentd.wait_line("err")
        foreign = s.start_app(PLAIN, user=OTHER, name="foreign")
        mine = s.start_app(PLAIN, user=USER)
        s.wait_watched(mine)
        s.fault(mine)
        s.fault(foreign)
        wait_until(lambda: s.rule()["recorded"] == 1, "recorded")
        assert set(s.watched()) == {mine.pid} and status(foreign.pid)["TracerPid"] == "0"


def test_a_debugger_is_not_disturbed():
    """Who traces a process already keeps it; the rule takes it when he has gone."""
    need_root()
    with RuleScene("") as s:
        libc_ptrace = LIBC.ptrace
        libc_ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        assert libc_ptrace(0x4206, s.app.pid, None, None) == 0, "PTRACE_SEIZE"
        s.reload(ALL)
        wait_until(lambda: "is not watched" in s.agentd.err(), "refused")
        assert status(s.app.pid)["TracerPid"] == str(os.getpid())
        assert libc_ptrace(0x4207, s.app.pid, None, None) == 0, "PTRACE_INTERRUPT"
        wait_until(lambda: os.waitpid(s.app.pid, os.WNOHANG | 0x40000000)[0] == s.app.pid, "stopped")
        assert libc_ptrace(17, s.app.pid, None, None) == 0, "PTRACE_DETACH"
        s.wait_watched()


def test_hooks_get_the_document():
    need_root()
    with RuleScene(app=None) as s, hook_directory() as place:
        out = s.directory / "out"
        hook = place / "hook"
        hook.write_text(f"#!/bin/sh\n{{ echo $GPU_AGENT_RULE $GPU_AGENT_PID $GPU_AGENT_RECORD; cat; }} >{out}.new\n"
                        f"mv {out}.new {out}\n")
        hook.chmod(0o755)
        s.reload(ALL + f"hook = {hook}\nhook_user = root\n")
        app = s.start_app(WAVES)
        s.wait_watched(app)
        s.fault(app, exception="wave_memory_violation", queue=1)
        wait_until(out.exists, "the hook has run")
        head, document = out.read_text().split("\n", 1)
        record, = s.records()
        assert head.split() == ["all", str(app.pid), record["record"]], head
        assert json.loads(document)["fault"]["exceptions"] == ["wave_memory_violation"]


def test_a_hook_that_runs_keeps_nobody_out():
    """Without rules an agent that nobody uses exits, but not before its hook has ended."""
    with hook_directory() as place, RuleScene(IDLE + ALL, app=None) as s:
        begun, gate = s.directory / "begun", place / "gate"
        os.mkfifo(gate)
        hook = place / "hook"
        hook.write_text(f"#!/bin/sh\n: >{begun}\nread line <{gate}\n")
        hook.chmod(0o755)
        s.reload(f"{IDLE}{ALL}hook = {hook}\nhook_user = root\n")
        app = s.start_app(WAVES)
        s.wait_watched(app)
        s.fault(app)
        wait_until(begun.exists, "the hook runs")
        s.clients.pop().close()
        s.reload(IDLE)
        wait_until(lambda: not s.worker_pids(), "nothing is watched")
        for _ in range(20):
            time.sleep(0.01)  # more than the agent waits
            client = s.connect()
            assert client.call("agent.status")["rules"] == []
            s.clients.remove(client)
            client.close()
        opened = os.open(gate, os.O_RDWR)
        os.write(opened, b"\n")
        wait_until(lambda: s.agentd.popen.poll() is not None, "the agent exits")
        os.close(opened)
        assert s.agentd.popen.returncode == 0 and "idle: exiting" in s.agentd.err()


def test_people_see_the_watch():
    with RuleScene() as s:
        s.wait_watched()
        assert f"{s.rpc.call('session.list')['sessions'][0]['session']} (rule all)" in s.ctl("list").stdout
        text = s.ctl("status").stdout
        assert "WATCHING" in text and "RULE" in text, text
        s.fault()
        wait_until(lambda: s.rule()["recorded"] == 1, "recorded")
        record, = s.records()
        shown = s.ctl("cores", "info", record["record"])
        assert "wave_trap" in shown.stdout and "rule all" in shown.stdout, shown
        assert s.ctl("cores", "list", "RULE=all").stdout.count("wave_trap") == 1
        done = s.ctl("detach", s.app.pid)
        assert done.returncode == 0 and "rule all comes back" in done.stderr, done
        wait_until(lambda: tracer(s.app) == 0, "free")
        s.reload(ALL)
        s.wait_watched()
        done = s.ctl("attach", s.app.pid, "--hand-over")
        assert done.returncode == 0 and done.stdout == f"rocgdb -p {s.app.pid}\n", done
        assert tracer(s.app) == 0, "the vendor's debugger can come"


def test_another_agents_workers_are_left_alone():
    """They open the device, as programs do, and each other's workers the agents would watch without end."""
    with RuleScene() as s:
        s.agentd.stop()
        other = s.start("other", [BIN / "gpu-agentd", "--user", "--socket", s.directory / "other.sock", "--kfd",
                                  s.mount / "kfd", "--kfd-sysfs", s.mount, "--store", s.directory / "others"])
        other.wait_line("err", "ready on")
        rpc = Rpc(s.directory / "other.sock")
        s.clients.append(rpc)
        s.attach(rpc=rpc)
        worker = children_named(other.pid, "gpu-agent-worker")[0]
        s.start_agentd()
        s.clients.clear()
        listed = {p["pid"] for p in s.rpc.call("process.list")["processes"]}
        assert s.app.pid in listed and worker not in listed, (worker, listed)
        second = s.start_app(PLAIN, name="second")
        s.wait_watched(second)
        wait_until(lambda: f"process {s.app.pid} is not watched" in s.agentd.err(), "the other agent has the first one")
        # Everything that was found then has been judged.
        time.sleep(1)
        for words in (f"watches process {worker} ", f"all: process {worker} "):
            assert words not in s.agentd.err(), s.agentd.err()
        assert status(worker)["TracerPid"] == "0"
        # Told once, although it is tried again.
        assert s.agentd.err().count(f"process {s.app.pid} is not watched") == 1, s.agentd.err()
        assert s.agentd.err().count(f"watches process {s.app.pid} ") == 1, s.agentd.err()
        rpc.close()
