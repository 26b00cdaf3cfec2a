#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The process that reads the configuration, watches and runs hooks: what it may do, and what its end changes."""
import os
import signal
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import Scene, children_named, hook_directory, need_root, status, wait_until
from rulescene import ALL, PLAIN, RuleScene

CAP_SYS_PTRACE = 19


def rules_pid(s):
    return next(iter(children_named(s.agentd.pid, "gpu-agent-rules")), None)


def kill_rules(s):
    old = rules_pid(s)
    os.kill(old, signal.SIGKILL)
    wait_until(lambda: rules_pid(s) not in (None, old), "another rules process runs")


def alive(pid):
    return status(pid).get("State", "X")[0] not in "ZX"


def tracer(app):
    return int(status(app.pid)["TracerPid"])


def test_rules_go_on_after_a_kill():
    """Sessions are not touched, faults are recorded meanwhile, and what comes later is found again."""
    with RuleScene() as s:
        s.wait_watched()
        worker = tracer(s.app)
        s.fault()
        kill_rules(s)
        s.fault()
        s.wait_counts(recorded=2)
        assert tracer(s.app) == worker and s.watched() == {s.app.pid: "all"}
        later = s.start_app(PLAIN)
        s.wait_watched(s.app, later)
        s.fault(later)
        s.wait_counts(recorded=3)
        assert tracer(s.app) == worker and "the rules process died (status 0x9)" in s.agentd.err()


def test_a_new_one_lets_go_what_the_old_one_watched():
    with RuleScene() as s:
        s.wait_watched()
        kill_rules(s)
        wait_until(lambda: s.agentd.err().count("rule all watches") == 2, "it has taken the process up")
        s.reload("[rule other]\ndevice = amd\nuser = 4321\n")
        wait_until(lambda: not s.watched() and tracer(s.app) == 0, "it is let go")
        s.reload(ALL)
        s.wait_watched()


def test_what_was_read_holds_until_a_reload():
    """A file that somebody is about to change does not become valid because a process has died."""
    with RuleScene() as s:
        s.wait_watched()
        s.write_rules("what is this\n")
        kill_rules(s)
        s.wait_watched(s.app, s.start_app(PLAIN))
        s.agentd.popen.send_signal(signal.SIGHUP)
        wait_until(lambda: "configuration not changed" in s.agentd.err(), "the mistake is told")
        s.reload(ALL.replace("all", "new"))
        wait_until(lambda: s.watched() == {p: "new" for p in s.watched()} and s.watched(), "the reload holds")


def test_nobody_waits_for_it():
    """While it stands still clients are served, and so is a reload when it goes on."""
    with RuleScene() as s:
        s.wait_watched()
        pid = rules_pid(s)
        os.kill(pid, signal.SIGSTOP)
        s.write_rules(ALL.replace("all", "new"))
        s.agentd.popen.send_signal(signal.SIGHUP)
        other = s.start_app(PLAIN)
        begun = time.monotonic()
        session = s.attach(other.pid)
        assert s.rpc.call("session.detach", session=session)["ended"]
        assert time.monotonic() - begun < 10 and s.watched() == {s.app.pid: "all"}
        os.kill(pid, signal.SIGCONT)
        wait_until(lambda: s.watched() == {s.app.pid: "new", other.pid: "new"}, "the reload holds")
        assert rules_pid(s) == pid


def test_an_agent_stops_although_it_does_not():
    with RuleScene() as s:
        s.wait_watched()
        pid = rules_pid(s)
        os.kill(pid, signal.SIGSTOP)
        s.agentd.popen.send_signal(signal.SIGTERM)
        assert s.agentd.popen.wait(20) == 0
        wait_until(lambda: not alive(pid), "it is gone")


def test_it_ends_with_the_agent():
    with RuleScene() as s:
        pid = rules_pid(s)
        s.agentd.popen.kill()
        s.agentd.popen.wait()
        wait_until(lambda: not alive(pid), "it is gone")


def test_hooks_of_a_dead_one_end_and_are_told():
    """A client who waits hears of it, the hook's processes die, and the next one is asked like the first."""
    need_root()
    with hook_directory() as path:
        hook, note = path / "hook", path / "notes"
        note.mkdir()
        note.chmod(0o777)
        hook.write_text(f"#!/bin/sh\necho $$ >{note}/new; mv {note}/new {note}/pid; exec sleep 600\n")
        hook.chmod(0o755)
        with Scene(app=None, start_agent=False, user_mode=False) as s:
            (s.directory / "agentd.conf").write_text("[agent]\nuser = nobody\nsocket_group =\n[rule slow]\ndevice = amd\n"
                                                     f"hook = {hook}\nhook_user = daemon\nhook_timeout = 5m\n")
            s.start_agentd(user_mode=False)
            client = s.connect()
            client.send("hooks.test", rule="slow")
            wait_until((note / "pid").exists, "the hook runs")
            pid = int((note / "pid").read_text())
            kill_rules(s)
            assert "error" in client.read_message()
            wait_until(lambda: not alive(pid), "the hook has ended")
            assert [h["rule"] for h in s.rpc.call("hooks.list")["hooks"]] == ["slow"]


def test_it_may_trace_nobody():
    need_root()
    with RuleScene(user_mode=False) as s:
        s.wait_watched()
        for _ in range(2):
            wait_until(lambda: not int(status(rules_pid(s))["CapPrm"], 16) >> CAP_SYS_PTRACE & 1, "it has given up rights")
            facts = status(rules_pid(s))
            for name in ("CapPrm", "CapEff", "CapInh", "CapAmb"):
                assert not int(facts[name], 16) >> CAP_SYS_PTRACE & 1, (name, facts)
            kill_rules(s)
