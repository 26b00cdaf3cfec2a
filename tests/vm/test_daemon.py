#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The real daemon on the real driver: the main job, and a target that waits in RUNTIME_ENABLE on every way out."""
import json
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from vmlib import OTHER, USER, WCHAN, Agent, Target, need_kfd, status, stop, wait_until  # noqa: E402
from harness import kill_agent, main, test  # noqa: E402


def output(ctl):
    assert ctl.returncode == 0, (ctl.returncode, ctl.stdout, ctl.stderr)
    return ctl.stdout


@test
def owner_looks_at_own_process():
    """list, doctor, attach, snapshot, detach by an ordinary user through a root daemon."""
    need_kfd()
    with Agent() as agent, Target("open", "on") as target:
        doc = json.loads(output(agent.ctl("list", "-j", user=USER)))
        row = next(p for p in doc["processes"] if p["pid"] == target.pid)
        assert row["uid"] == USER and row["vendor"] == "amd" and row["queues"] == 0 and row["debuggable"], row
        # The machine has no GPU, and only that is wrong.
        doctor = agent.ctl("doctor", target.pid, "-j", user=USER)
        assert [c["name"] for c in json.loads(doctor.stdout)["checks"] if c["verdict"] == "fail"] == ["gpus"], doctor
        doc = json.loads(output(agent.ctl("snapshot", target.pid, "-j", user=USER)))
        assert doc["runtime"]["state"] == "enabled" and int(doc["runtime"]["r_debug"], 16) == target.r_debug, doc
        assert doc["runtime"]["r_version"] == 9 and not doc["runtime"]["ttmp_setup"], doc
        assert doc["queues"] == [] and doc["devices"] == [] and doc["complete"], doc
        assert doc["interface_version"] == "1.17" and doc["stopped_us"] == 0, doc
        assert "queue" in output(agent.ctl("snapshot", target.pid, user=USER))
        assert target.free()


@test
def stranger_is_refused():
    need_kfd()
    with Agent() as agent, Target("open", "on") as target:
        done = agent.ctl("snapshot", target.pid, user=OTHER)
        assert done.returncode == 4, (done.returncode, done.stderr)
        assert status(target.pid)["TracerPid"] == "0"


@test
def not_a_gpu_process():
    need_kfd()
    with Agent() as agent, Target() as target:
        done = agent.ctl("snapshot", target.pid, user=USER)
        assert done.returncode == 5, (done.returncode, done.stderr)
        assert target.ask("open") == 0


@test
def per_user_daemon():
    """No privilege at all: own programs while Yama lets everybody trace his own, and a reason when it does not."""
    need_kfd()
    scope = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
    before = scope.read_text(encoding="ascii")
    try:
        scope.write_text("0", encoding="ascii")
        with Agent(user=USER) as agent, Target("open", "on") as target:
            assert "enabled" in output(agent.ctl("snapshot", target.pid, "-j", user=USER))
            assert target.free()
            scope.write_text("1", encoding="ascii")
            done = agent.ctl("snapshot", target.pid, user=USER)
            assert done.returncode == 4 and "ptrace_scope" in done.stderr, (done.returncode, done.stderr)
            assert target.free()
    finally:
        scope.write_text(before, encoding="ascii")


@test
def attached_before_the_runtime():
    """The agent answers each handshake by itself: on, off and on again do not hang."""
    need_kfd()
    with Agent() as agent, Target("open") as target:
        rpc = agent.connect()
        reply = rpc.call("session.attach", pid=target.pid)
        assert reply["runtime"]["state"] == "disabled", reply
        assert target.ask("on") == 0
        note = rpc.notification("runtime.changed")
        assert note["runtime"]["state"] == "enabled" and int(note["runtime"]["r_debug"], 16) == target.r_debug, note
        assert target.ask("off") == 0
        assert rpc.notification("runtime.changed")["runtime"]["state"] == "disabled"
        assert target.ask("on") == 0
        assert rpc.notification("runtime.changed")["runtime"]["state"] == "enabled"
        assert rpc.call("session.detach", session=reply["session"]) == {"ended": True}
        assert target.free()


@test
def hardware_calls_without_gpu():
    """No device, no queue: every control call answers, none breaks the session."""
    need_kfd()
    with Agent() as agent, Target("open", "on") as target:
        rpc = agent.connect()
        session = rpc.call("session.attach", pid=target.pid, control=True)["session"]
        assert rpc.call("gpu.devices", session=session)["devices"] == []
        assert rpc.call("gpu.queues", session=session)["queues"] == []
        assert rpc.call("gpu.suspend", session=session)["suspended"] == 0
        assert rpc.call("gpu.resume", session=session)["resumed"] == 0
        rpc.call("launch.mode", session=session, mode="normal")
        assert rpc.call("gpu.snapshot", session=session)["complete"]
        rpc.call("session.detach", session=session)
        assert target.free()


def blocked(agent, target):
    """A session whose worker is too slow to answer: the target waits in RUNTIME_ENABLE."""
    rpc = agent.connect()
    session = rpc.call("session.attach", pid=target.pid)["session"]
    worker = agent.worker()
    stop(worker)
    target.say_and_block("on")
    return rpc, session, worker


def assert_released(target):
    assert target.read("on") == "0"
    assert target.free()


@test
def released_by_detach():
    need_kfd()
    with Agent() as agent, Target("open") as target:
        rpc, session, worker = blocked(agent, target)
        rpc.send_raw(json.dumps({"jsonrpc": "2.0", "id": 99, "method": "session.detach",
                                 "params": {"session": session}}).encode() + b"\n")
        os.kill(worker, signal.SIGCONT)
        assert_released(target)


@test
def released_by_lost_client():
    need_kfd()
    with Agent() as agent, Target("open") as target:
        rpc, _, worker = blocked(agent, target)
        rpc.close()
        os.kill(worker, signal.SIGCONT)
        assert_released(target)


@test
def released_when_worker_is_killed():
    need_kfd()
    with Agent() as agent, Target("open") as target:
        rpc, _, worker = blocked(agent, target)
        os.kill(worker, signal.SIGKILL)
        assert_released(target)
        assert rpc.notification("session.ended")["reason"] == "worker_died"


@test
def released_when_front_is_killed():
    need_kfd()
    with Agent() as agent, Target("open") as target:
        _, _, worker = blocked(agent, target)
        os.kill(agent.front(), signal.SIGKILL)
        os.kill(worker, signal.SIGCONT)
        assert_released(target)


@test
def released_when_daemon_is_killed():
    need_kfd()
    with Agent() as agent, Target("open") as target:
        _, _, worker = blocked(agent, target)
        os.kill(agent.pid, signal.SIGKILL)
        os.kill(worker, signal.SIGCONT)
        assert_released(target)


@test
def released_by_sigterm():
    need_kfd()
    with Agent() as agent, Target("open") as target:
        _, _, worker = blocked(agent, target)
        os.kill(agent.pid, signal.SIGTERM)
        os.kill(worker, signal.SIGCONT)
        assert_released(target)
        wait_until(lambda: agent.process.popen.poll() is not None, "the daemon ends")
        assert agent.process.popen.returncode == 0


@test
def released_by_the_next_daemon():
    """Everything of ours died at once: the kernel leaves the target waiting, the next start finds it."""
    need_kfd()
    with Target("open") as target:
        die_with_everything(target)
        with Agent():
            assert_released(target)


@test
def released_by_the_next_session():
    """The same, by a daemon that was there all the time."""
    need_kfd()
    with Target("open") as target, Agent() as agent:
        die_with_everything(target)
        reply = agent.connect().call("session.attach", pid=target.pid)
        assert reply["runtime"]["state"] == "enabled", reply
        assert target.read("on") == "0"


def die_with_everything(target):
    with Agent() as agent:
        blocked(agent, target)
        kill_agent(agent.pid)
        wait_until(lambda: status(target.pid).get("TracerPid") == "0", "ptrace dropped")
    assert target.where() == WCHAN


@test
def target_ends_while_attached():
    need_kfd()
    with Agent() as agent, Target("open", "on") as target:
        rpc = agent.connect()
        rpc.call("session.attach", pid=target.pid)
        target.say("exit")
        note = rpc.notification("session.ended")
        assert note["reason"] == "exited", note


@test
def target_execs_while_attached():
    """exec ends the kernel's session; the program goes on and can be attached again."""
    need_kfd()
    with Agent() as agent, Target("open", "on") as target:
        rpc = agent.connect()
        rpc.call("session.attach", pid=target.pid)
        target.say("exec")
        note = rpc.notification("session.ended")
        assert note["reason"] == "exec", note
        target.read("ready")
        assert target.ask("open") == 0 and target.ask("on") == 0
        assert rpc.call("session.attach", pid=target.pid)["runtime"]["state"] == "enabled"


if __name__ == "__main__":
    main(__file__)
