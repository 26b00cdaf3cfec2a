#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The real daemon on the real driver: the main job, and a target that waits in RUNTIME_ENABLE on every way out."""
import errno
import json
import os
import pathlib
import re
import signal
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from vmlib import OTHER, SIDE, TARGET, USER, WCHAN, Agent, Target, need_kfd, status, stop, wait_until
from kfddebugger import Debugger, disable
from harness import RpcError, children, kill_agent


def output(ctl):
    assert ctl.returncode == 0, (ctl.returncode, ctl.stdout, ctl.stderr)
    return ctl.stdout


def test_owner_looks_at_own_process():
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
        page = output(agent.ctl("snapshot", target.pid, "-v", user=USER))
        assert page.startswith("No waves on any GPU: 0 queues\n") and f"  pid {target.pid}  user " in page, page
        assert re.search(rf"^amd  interface 1.17  runtime enabled  r_debug {target.r_debug:#x}  version 9$", page, re.M), page
        assert target.free()


def test_stranger_is_refused():
    need_kfd()
    with Agent() as agent, Target("open", "on") as target:
        done = agent.ctl("snapshot", target.pid, user=OTHER)
        assert done.returncode == 4, (done.returncode, done.stderr)
        assert status(target.pid)["TracerPid"] == "0"


def test_not_a_gpu_process():
    need_kfd()
    with Agent() as agent, Target() as target:
        done = agent.ctl("snapshot", target.pid, user=USER)
        assert done.returncode == 5, (done.returncode, done.stderr)
        assert target.ask("open") == 0


def test_per_user_daemon():
    """No privilege at all: own programs while Yama lets everybody trace his own, and a reason when it does not."""
    need_kfd()
    scope = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
    before = scope.read_text(encoding="ascii")
    try:
        scope.write_text("0", encoding="ascii")
        with Agent(user=USER) as agent, Target("open", "on") as target:
            doc = json.loads(output(agent.ctl("snapshot", target.pid, "-j", user=USER)))
            assert doc["process"]["pid"] == target.pid and doc["runtime"]["state"] == "enabled" and doc["complete"], doc
            assert target.free()
            scope.write_text("1", encoding="ascii")
            done = agent.ctl("snapshot", target.pid, user=USER)
            assert done.returncode == 4 and "ptrace_scope" in done.stderr, (done.returncode, done.stderr)
            assert target.free()
    finally:
        scope.write_text(before, encoding="ascii")


def test_attached_before_the_runtime():
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


def test_hardware_calls_without_gpu():
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


# Of a program with capabilities, or that is not dumpable, a worker cannot see whether it waits.
TARGETS = {"plain": {}, "root": {"user": None}, "not_dumpable": {"before": ("nodump",)}}


def waiting_program(kind):
    options = dict(TARGETS[kind])
    return Target(*options.pop("before", ()), "open", **options)


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


def assert_answered_again(target):
    """Whoever freed it has left nothing behind that the kernel would hold its next call up for."""
    with Agent() as agent:
        rpc = agent.connect()

        def attach():
            try:
                return rpc.call("session.attach", pid=target.pid)
            except RpcError as error:
                assert error.name in ("busy", "timeout"), error
                return None

        wait_until(attach, "attach")
        for word in ("off", "on"):
            assert target.ask(word) == 0, word
        # Had it to be stopped, on a slow machine, the first of them is silent.
        assert rpc.notification("runtime.changed")


def by_detach(target):
    with Agent() as agent:
        rpc, session, worker = blocked(agent, target)
        rpc.send("session.detach", session=session)
        os.kill(worker, signal.SIGCONT)
        assert_released(target)


def by_lost_client(target):
    with Agent() as agent:
        rpc, _, worker = blocked(agent, target)
        rpc.close()
        os.kill(worker, signal.SIGCONT)
        assert_released(target)


def when_worker_is_killed(target):
    with Agent() as agent:
        rpc, _, worker = blocked(agent, target)
        os.kill(worker, signal.SIGKILL)
        assert_released(target)
        assert rpc.notification("session.ended")["reason"] == "worker_died"


def when_front_is_killed(target):
    with Agent() as agent:
        _, _, worker = blocked(agent, target)
        os.kill(agent.front(), signal.SIGKILL)
        os.kill(worker, signal.SIGCONT)
        assert_released(target)


def when_daemon_is_killed(target):
    with Agent() as agent:
        _, _, worker = blocked(agent, target)
        os.kill(agent.pid, signal.SIGKILL)
        os.kill(worker, signal.SIGCONT)
        assert_released(target)


def by_sigterm(target):
    with Agent() as agent:
        _, _, worker = blocked(agent, target)
        os.kill(agent.pid, signal.SIGTERM)
        os.kill(worker, signal.SIGCONT)
        assert_released(target)
        wait_until(lambda: agent.process.popen.poll() is not None, "the daemon ends")
        assert agent.process.popen.returncode == 0


def by_the_next_daemon(target):
    """Everything of ours died at once: the kernel leaves the target waiting, the next start finds it."""
    die_with_everything(target)
    with Agent():
        assert_released(target)


def by_the_next_session(target):
    """The same, by a daemon that was there all the time."""
    with Agent() as agent:
        die_with_everything(target)
        reply = agent.connect().call("session.attach", pid=target.pid)
        assert reply["runtime"]["state"] == "enabled", reply
        assert target.read("on") == "0"


WAYS = (by_detach, by_lost_client, when_worker_is_killed, when_front_is_killed, when_daemon_is_killed, by_sigterm,
        by_the_next_daemon, by_the_next_session)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("kind", TARGETS)
def test_released(way, kind):
    need_kfd()
    with waiting_program(kind) as target:
        way(target)
        # Kinds take turns: a guest is slow.
        if (WAYS.index(way) + list(TARGETS).index(kind)) % len(TARGETS) == 0:
            assert_answered_again(target)


def test_a_session_that_another_debugger_has_stays_its_own():
    """It has left ptrace, so that nothing but a question tells that there is a session."""
    need_kfd()
    with Agent() as agent, Target("open", "on") as target, Debugger(target.pid, "/dev/kfd") as other:
        other.leave_ptrace()
        # The older kernel lets only the tracer ask.
        mine = errno.EPERM if SIDE == "old" else errno.EAGAIN
        assert other.query() == mine
        rpc = agent.connect()
        assert rpc.error("session.attach", pid=target.pid).name == "busy"
        assert other.query() == mine, "its session is its own"
        other.kill()
        wait_until(lambda: attach_works(rpc, target), "its end ends the session")


def attach_works(rpc, target):
    try:
        return rpc.call("session.attach", pid=target.pid)
    except RpcError as error:
        # A guest may be slow; that it comes to nothing is what is tested.
        assert error.name in ("busy", "timeout"), error
        return None


def test_a_stranger_ends_the_session():
    """The older kernel lets everybody who can open the device do that: told as a loss, and the program is let go."""
    need_kfd()
    with Agent() as agent, Target("open", "on") as target:
        rpc = agent.connect()
        session = rpc.call("session.attach", pid=target.pid)["session"]
        if SIDE != "old":
            assert disable(target.pid, "/dev/kfd") == errno.EPERM
            assert rpc.call("gpu.queues", session=session)["queues"] == []
            return
        assert disable(target.pid, "/dev/kfd") == 0
        assert_lost(rpc, session, target)


def test_the_program_ends_the_session_itself():
    need_kfd()
    with Agent() as agent, Target("open", "on") as target:
        rpc = agent.connect()
        session = rpc.call("session.attach", pid=target.pid)["session"]
        assert target.ask("disable") == 0
        assert_lost(rpc, session, target)


def assert_lost(rpc, session, target):
    """Told without being asked, the program is free, and the next session begins."""
    note = rpc.notification("session.ended")
    assert note["session"] == session and note["reason"] == "lost", note
    assert target.free()
    assert wait_until(lambda: attach_works(rpc, target), "the next session")["runtime"]["state"] == "enabled"


def test_a_program_whose_main_thread_has_ended():
    """The kernel finds no memory behind its number: refused with a reason, and nothing is left behind."""
    need_kfd()
    with Agent() as agent, Target("open", "on") as target:
        target.say("leader")
        wait_until(lambda: status(target.pid)["State"].startswith("Z"), "the main thread has ended")
        error = agent.connect().error("session.attach", pid=target.pid)
        assert error.name in ("not_debuggable", "no_such_process"), error
        assert status(target.pid)["TracerPid"] == "0"
        (other,) = (t for t in os.listdir(f"/proc/{target.pid}/task") if int(t) != target.pid)
        wait_until(lambda: status(f"{target.pid}/task/{other}").get("TracerPid") == "0", "the other thread is let go")
        assert status(f"{target.pid}/task/{other}")["State"].startswith("S")


def test_a_program_in_a_pid_namespace():
    """By its number outside, which is not the one that the program knows."""
    need_kfd()
    with Agent() as agent:
        outer = Target(user=None, program=("unshare", "--pid", "--fork", "--kill-child", str(TARGET)))
        with outer as target:
            assert target.ask("pid") == 1 and target.ask("open") == 0 and target.ask("on") == 0
            (pid,) = children(target.pid)
            rpc = agent.connect()
            reply = rpc.call("session.attach", pid=pid)
            assert reply["runtime"]["state"] == "enabled" and int(reply["runtime"]["r_debug"], 16) == target.r_debug, reply
            assert rpc.call("gpu.snapshot", session=reply["session"])["process"]["pid"] == pid
            rpc.call("session.detach", session=reply["session"])
            wait_until(lambda: status(pid)["TracerPid"] == "0", "ptrace dropped")
            assert target.ask("off") == 0


def die_with_everything(target):
    with Agent() as agent:
        blocked(agent, target)
        kill_agent(agent.pid)
        wait_until(lambda: status(target.pid).get("TracerPid") == "0", "ptrace dropped")
    assert target.where() == WCHAN


def test_target_ends_while_attached():
    need_kfd()
    with Agent() as agent, Target("open", "on") as target:
        rpc = agent.connect()
        rpc.call("session.attach", pid=target.pid)
        target.say("exit")
        note = rpc.notification("session.ended")
        assert note["reason"] == "exited", note


def test_target_execs_while_attached():
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
