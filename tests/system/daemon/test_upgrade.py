#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that are replaced under a running agent, as an upgrade does before it restarts the service."""
import os
import pathlib
import shutil
import signal
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
import harness
from harness import LIBEXEC, Scene, children_named, wait_until
from rulescene import RuleScene


@pytest.fixture(name="installed")
def _installed(tmp_path, monkeypatch):
    """A directory with programs of its own, from which scenes start."""
    monkeypatch.setattr(harness, "BIN", harness.copy_programs(tmp_path))
    return tmp_path


def unpack(program: pathlib.Path) -> None:
    """As dpkg does: a new file takes the name of the old one."""
    new = program.with_suffix(".dpkg-new")
    shutil.copy2(program, new)
    new.rename(program)


@pytest.mark.parametrize("name", LIBEXEC[1:])
def test_nothing_of_another_build_is_started(installed, name):
    with Scene() as s:
        assert s.ctl("snapshot", s.app.pid).returncode == 0
        unpack(installed / name)
        for verb in (("snapshot", s.app.pid), ("list",), ("cores", "list")):
            done = s.ctl(*verb)
            assert done.returncode == 1 and "systemctl restart gpu-agentd" in done.stderr, (verb, done)
        s.agentd.stop()
        assert s.agentd.err().count("restart gpu-agentd") == 1, s.agentd.err()
        s.clients.clear()
        s.start_agentd()
        assert s.ctl("snapshot", s.app.pid).returncode == 0


def end_rules(s, installed):
    """The rules process dies after an upgrade."""
    rules, = children_named(s.agentd.pid, "gpu-agent-rules")
    unpack(installed / "gpu-agent-rules")
    os.kill(rules, signal.SIGKILL)
    wait_until(lambda: "the rules process is not started again" in s.agentd.err(), "it stays ended")
    assert not children_named(s.agentd.pid, "gpu-agent-rules")


def test_a_rules_process_of_another_build_is_not_started(installed):
    """Nobody waits for it either, neither who reloads nor who asks for hooks; sessions of its rules go on."""
    with RuleScene("[rule all]\ndevice = amd\nhook = /bin/true\n") as s:
        s.wait_watched()
        end_rules(s, installed)
        s.agentd.popen.send_signal(signal.SIGHUP)
        wait_until(lambda: "configuration not changed" in s.agentd.err(), "the reload is answered")
        refused = s.rpc.error("hooks.list")
        assert "upgraded" in refused.message and "systemctl restart gpu-agentd" in refused.hint, vars(refused)
        s.fault()
        wait_until(lambda: "its hook is not run" in s.agentd.err(), "what is missed is told")
        assert s.watched() == {s.app.pid: "all"}
        assert not children_named(s.agentd.pid, "gpu-agent-rules")
        s.agentd.stop()
        assert s.agentd.err().count("the rules process is not started again") == 1, s.agentd.err()
        s.clients.clear()
        s.start_agentd()
        s.wait_watched()


def test_an_idle_agent_goes_without_its_rules_process(installed):
    with Scene(agentd=["--idle-exit", "500ms"], start_agent=True) as s:
        client = s.connect()
        client.call("agent.hello")
        end_rules(s, installed)
        client.close()
        assert s.agentd.popen.wait(harness.PATIENCE) == 0 and "idle: exiting" in s.agentd.err()


@pytest.mark.parametrize("rules", (False, True), ids=("idle", "rules"))
def test_the_status_tells_it_before_anything_fails(installed, rules):
    """And whether the agent ends by itself, so that the next client starts the new one."""
    with Scene(start_agent=False) as s:
        (s.directory / "agentd.conf").write_text("[agent]\n" + ("[rule all]\nexe = *\nuser = 12345\n" if rules else ""))
        s.start_agentd("--config", s.directory / "agentd.conf", "--idle-exit", "3600s")
        before = s.rpc.call("agent.status")
        assert before["replaced"] is False and before["stays"] is rules, before
        assert "upgraded" not in s.ctl("status").stdout
        (installed / "notes").write_text("not one of them\n")
        unpack(installed / "gpu-agent-store")
        wait_until(lambda: s.rpc.call("agent.status")["replaced"], "replaced")
        shown = s.ctl("status")
        line = next(line for line in shown.stdout.splitlines() if line.startswith("upgraded "))
        assert shown.returncode == 0 and "starts nothing new" in line and "restart it" in line, shown
        assert ("does not end by itself" if rules else "ends by itself when nobody is connected") in line, line
        doctor = s.ctl("doctor", s.app.pid)
        assert doctor.returncode == 1 and "was upgraded while it ran" in doctor.stderr, doctor
        assert s.agentd.err().count("restart gpu-agentd") == 1, s.agentd.err()


def test_what_was_open_goes_on(installed):
    with Scene() as s:
        session = s.attach()
        unpack(installed / "gpu-agent-worker")
        assert len(s.rpc.call("gpu.queues", session=session)["queues"]) == 4
        # Another client joins the session, for which nothing is started.
        other = s.connect()
        assert s.attach(rpc=other) == session
        s.rpc.call("session.detach", session=session)
