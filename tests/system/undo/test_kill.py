#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kill -9 of each process at each step: queues run, ptrace is released, the target is healthy within a second."""
import contextlib
import os
import pathlib
import signal
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from harness import (STOP_MS, RpcError, Scene, as_user, at_once, children_named, kill_agent, need_root, status,
                     wait_until)


def attached(s):
    s.session = s.attach()


def queried(s):
    attached(s)
    # As long as a stop may be: the agent kills a worker that is late, and that is not what is tested.
    s.rpc.call("gpu.snapshot", session=s.session, max_stop_ms=STOP_MS)


def suspended(s):
    attached(s)
    assert s.rpc.call("gpu.suspend", session=s.session, lease_ms=60000)["suspended"] == 4


def resumed(s):
    suspended(s)
    s.rpc.call("gpu.resume", session=s.session)


def changed(s):
    attached(s)
    s.rpc.call("watchpoint.set", session=s.session, address="0x7f0000001000", size=4096)
    s.rpc.call("launch.mode", session=s.session, mode="halt")
    s.rpc.call("gpu.flags", session=s.session, flags=["single_mem_op"])


def held_fault(s):
    s.session = s.attach(control=True)
    queue = s.rpc.call("gpu.queues", session=s.session)["queues"][0]["queue_id"]
    s.rpc.call("exception.subscribe", session=s.session, exceptions=["wave_trap"], hold=True, look_ms=0)
    s.raise_queue(queue, "wave_trap")
    s.rpc.notification("exception.raised")


def healthy(s):
    target = s.target_state()
    return (status(s.app.pid).get("TracerPid") == "0" and not target["enabled"] and target["suspended_queues"] == 0
            and target["launch_mode"] == 0 and target["flags"] == 0 and target["watchpoints"] == 0
            and status(s.app.pid)["State"][0] in "RSD")


def packets(s):
    return sum(q["packets"] for q in s.target_state()["queues"])


def assert_moving(s):
    before = packets(s)
    wait_until(lambda: packets(s) > before, "queues run on")


def alive(pid):
    """Zombies that nobody has reaped yet do not count."""
    return status(pid).get("State", "Z")[0] != "Z"


def attach_again(s, **params):
    """False while the rescuer of a dead worker is still there."""
    try:
        s.session = s.attach(**params)
    except RpcError as error:
        assert error.name in ("busy", "session_ended"), error
        return False
    return True


@pytest.mark.parametrize("victim", ("worker", "front", "judge", "monitor", "manager"))
@pytest.mark.parametrize("step", (attached, queried, suspended, resumed, changed, held_fault), ids=lambda step: step.__name__)
def test_killed_after(step, victim):
    with Scene(gpus="gfx942") as s:
        step(s)
        front, (judge,) = s.front_pid(), children_named(s.agentd.pid, "gpu-agent-judge")
        pid = {"worker": s.worker_pids()[0], "front": front, "judge": judge, "monitor": s.monitor_pid(),
               "manager": s.agentd.pid}[victim]
        faults = s.app_status().faults
        os.kill(pid, signal.SIGKILL)
        if step is held_fault:
            wait_until(lambda: s.app_status().faults == faults + 1, "the held fault reaches the application")
        at_once(lambda: healthy(s), f"target healthy after the {victim} died")
        assert_moving(s)
        if victim == "worker":
            assert s.rpc.notification("session.ended")["reason"] == "worker_died"
            wait_until(lambda: attach_again(s), "the agent goes on")
            s.rpc.call("gpu.snapshot", session=s.session, max_stop_ms=STOP_MS)
            s.rpc.call("session.detach", session=s.session)
        else:
            wait_until(lambda: s.agentd.popen.poll() is not None and not alive(front) and not alive(judge),
                       "the rest of the agent leaves")
            s.start_agentd()
            s.clients.clear()
            s.attach()


def faults_settle(s, want):
    wait_until(lambda: s.app_status().faults == want, f"the application saw {want} fault(s)")
    time.sleep(0.1)
    assert s.app_status().faults == want


def test_held_faults_outlive_the_worker():
    """The kernel forgets them with the session; the next worker sends them, each once."""
    with Scene(gpus="gfx942") as s:
        session = s.attach(control=True)
        ids = [q["queue_id"] for q in s.rpc.call("gpu.queues", session=session)["queues"]]
        s.rpc.call("exception.subscribe", session=session, exceptions=["wave_trap", "wave_abort"], hold=True, look_ms=0)
        for queue in ids[:3]:
            s.raise_queue(queue, "wave_trap")
            s.rpc.notification("exception.raised")
        s.rpc.call("exception.forward", session=session, exceptions=["wave_trap"], queue_id=ids[1])
        faults_settle(s, 1)
        os.kill(s.worker_pids()[0], signal.SIGKILL)
        faults_settle(s, 3)
        wait_until(lambda: healthy(s), "the rescuer has left")
        assert_moving(s)


def killed_altogether(change_record, sent):
    """How many faults does the next start of the agent send?"""
    with Scene(gpus="gfx942") as s:
        held_fault(s)
        faults = s.app_status().faults
        kill_agent(s.agentd.pid)
        (record,) = s.directory.glob("*.undo/*")
        change_record(record)
        s.start_agentd()
        s.clients.clear()
        wait_until(lambda: not record.exists(), "the record is dealt with")
        wait_until(lambda: healthy(s), "target healthy")
        faults_settle(s, faults + sent)
        assert_moving(s)


def test_held_faults_outlive_the_agent():
    killed_altogether(lambda record: None, sent=1)


def test_held_faults_are_not_for_the_next_process_of_that_pid():
    def of_another(record):
        data = bytearray(record.read_bytes())
        assert int.from_bytes(data[8:16], "little") > 0, "the start of the process"
        data[8] ^= 1
        record.write_bytes(data)
    killed_altogether(of_another, sent=0)


def killed_in(step):
    """A fault is under way and the worker hangs in this operation when it dies."""
    with Scene(gpus="gfx942") as s:
        session = s.attach()
        queue = s.rpc.call("gpu.queues", session=session)["queues"][1]["queue_id"]
        s.rpc.call("exception.subscribe", session=session, exceptions=["wave_trap"])
        worker = s.worker_pids()[0]
        s.control(f"block {step}")
        s.raise_queue(queue, "wave_trap")
        # Its look has a deadline of a second: who comes later finds it killed already, which comes to the same.
        wait_until(lambda: not alive(worker) or any(c["wait"] == "block" for c in s.state()["pending"]),
                   f"the worker hangs in {step}")
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
        s.control("release")
        faults_settle(s, 1)
        wait_until(lambda: healthy(s), "target healthy")
        assert_moving(s)


def test_worker_killed_while_it_looks_at_a_fault():
    for step in ("devices", "queues", "suspend", "resume"):
        killed_in(step)


def test_ten_faults_ten_dead_workers():
    """With clients that come back at once: none of the faults is lost, none comes twice."""
    with Scene(gpus="gfx942") as s:
        for i in range(10):
            wait_until(lambda: attach_again(s, control=True), "a new session")
            queue = s.rpc.call("gpu.queues", session=s.session)["queues"][i % 4]["queue_id"]
            s.rpc.call("exception.subscribe", session=s.session, exceptions=["wave_trap"], hold=True, look_ms=0)
            s.raise_queue(queue, "wave_trap")
            s.rpc.notification("exception.raised")
            os.kill(s.worker_pids()[0], signal.SIGKILL)
            assert s.rpc.notification("session.ended")["reason"] == "worker_died"
            faults_settle(s, i + 1)


def blocked_in_handshake(s):
    """The program waits in RUNTIME_ENABLE and the worker, stopped, cannot answer."""
    attached(s)
    os.kill(s.worker_pids()[0], signal.SIGSTOP)
    s.app.popen.stdin.write(b"\n")
    s.app.popen.stdin.flush()
    wait_until(lambda: s.target_state()["handshake_waiting"], "the program waits")


def handshake_case(victim):
    with Scene(app="wait-line; runtime on; queues 4; spin", gpus="gfx942") as s:
        blocked_in_handshake(s)
        pid = {"worker": lambda: s.worker_pids()[0], "daemon": lambda: s.agentd.pid, "monitor": s.monitor_pid}[victim]()
        if victim != "worker":
            os.kill(s.worker_pids()[0], signal.SIGCONT)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not s.target_state()["handshake_waiting"], "the program goes on")
        wait_until(lambda: len(s.target_state()["queues"]) == 4, "and creates its queues")


def test_worker_killed_with_the_target_in_the_handshake():
    handshake_case("worker")


def test_daemon_killed_with_the_target_in_the_handshake():
    handshake_case("daemon")


def test_monitor_killed_with_the_target_in_the_handshake():
    handshake_case("monitor")


def test_stuck_worker_is_killed_and_the_target_runs():
    """An ioctl of the worker hangs: the client gets its answer, the kernel lets the target run."""
    with Scene(gpus="gfx942") as s:
        attached(s)
        s.control("block queues")
        error = s.rpc.error("gpu.queues", session=s.session)
        assert error.name in ("timeout", "session_ended"), error
        s.control("release")
        wait_until(lambda: healthy(s), "target healthy")
        assert_moving(s)


def test_stuck_worker_ends_without_the_monitor():
    """An ioctl of the worker hangs and nobody is left to kill it: its own timer does."""
    with Scene(gpus="gfx942") as s:
        attached(s)
        worker = s.worker_pids()[0]
        s.control("block queues")
        s.rpc.send_raw(b'{"jsonrpc":"2.0","id":99,"method":"gpu.queues","params":{"session":"%s"}}\n'
                       % s.session.encode())
        wait_until(lambda: any(c["wait"] == "block" for c in s.state()["pending"]), "the worker hangs")
        for pid in (s.monitor_pid(), s.agentd.pid):
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not pathlib.Path(f"/proc/{worker}/exe").exists(), "the worker ends", patience=15)
        s.control("release")
        wait_until(lambda: healthy(s), "target healthy")
        assert_moving(s)


def test_a_worker_that_stands_still_ends_soon_without_the_manager():
    """The monitor is there to kill it, and gives it no more time than the recovery process would."""
    with Scene(gpus="gfx942") as s:
        suspended(s)
        worker, = s.worker_pids()
        os.kill(worker, signal.SIGSTOP)
        wait_until(lambda: status(worker)["State"][0] == "T", "it stands still")
        os.kill(s.agentd.pid, signal.SIGKILL)
        at_once(lambda: healthy(s), "target healthy")
        assert_moving(s)


def test_a_worker_that_hangs_in_its_last_undo_is_killed_in_time():
    """Nobody asks for anything any more: what ends it is the deadline of that undo."""
    with Scene(gpus="gfx942") as s:
        attached(s)
        s.control("block disable")
        s.clients.pop().close()
        at_once(lambda: not s.target_state()["enabled"] and status(s.app.pid)["TracerPid"] == "0", "free")
        s.control("release")
        assert_moving(s)


def test_a_worker_that_hangs_ends_by_its_own_alarm_when_nobody_else_is_left():
    """Neither the monitor nor its heir are there to kill it."""
    with Scene(gpus="gfx942") as s:
        attached(s)
        worker, = s.worker_pids()
        heir, = wait_until(lambda: children_named(s.agentd.pid, "gpu-agent-heir"), "heir")
        os.kill(heir, signal.SIGKILL)
        s.control("block disable")
        s.clients.pop().close()
        wait_until(lambda: any(c["wait"] == "block" for c in s.state()["pending"]), "the worker hangs")
        for pid in (s.monitor_pid(), s.agentd.pid):
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not pathlib.Path(f"/proc/{worker}/exe").exists(), "the worker ends", patience=5)
        s.control("release")
        wait_until(lambda: healthy(s), "target healthy")
        assert_moving(s)


def stopped_in_lease(s, worker):
    s.rpc.call("gpu.suspend", session=s.session, lease_ms=300)
    os.kill(worker, signal.SIGSTOP)
    if s.target_state()["suspended_queues"]:
        return True
    os.kill(worker, signal.SIGCONT)
    return False


def test_stopped_worker_cannot_extend_a_lease():
    with Scene(gpus="gfx942") as s:
        attached(s)
        worker = s.worker_pids()[0]
        wait_until(lambda: stopped_in_lease(s, worker), "the worker is stopped before its lease runs out")
        wait_until(lambda: healthy(s), "target healthy")
        assert s.rpc.notification("session.ended")["reason"] == "stuck"


def test_sigterm_releases_everything():
    for step in (attached, suspended, changed, held_fault):
        with Scene(gpus="gfx942") as s:
            step(s)
            faults = s.app_status().faults
            assert s.agentd.stop() == 0
            assert healthy(s), s.target_state()
            assert_moving(s)
            if step is held_fault:
                wait_until(lambda: s.app_status().faults == faults + 1, "held fault was forwarded")


@pytest.mark.parametrize("signo", (signal.SIGKILL, signal.SIGSTOP))
def test_who_may_have_ended_a_worker_is_told(signo):
    """It runs as the user of its target, who can do that to it; an administrator's session does not end, or hang, in silence."""
    need_root()
    with Scene(user_mode=False, app_user=1000) as s:
        s.session = s.attach()
        (worker,) = s.worker_pids()
        as_user(1000, lambda: os.kill(worker, signo))
        ended = s.rpc.notification("session.ended", patience=60)
        assert ended["reason"] == "worker_died" and ended["signal"] == signo and ended["sender_uid"] == 1000, ended
        wait_until(lambda: healthy(s), "target healthy")
        assert "a process of uid 1000 may have sent it" in s.agentd.err(), s.agentd.err()


def test_a_worker_that_is_stopped_for_a_moment_goes_on():
    with Scene() as s:
        s.session = s.attach()
        (worker,) = s.worker_pids()
        os.kill(worker, signal.SIGSTOP)
        wait_until(lambda: status(worker)["State"][0] == "T", "it stands still")
        os.kill(worker, signal.SIGCONT)
        s.rpc.call("gpu.snapshot", session=s.session, max_stop_ms=STOP_MS)
