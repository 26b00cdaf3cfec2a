#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The shipped units under the real systemd: activation, sandbox, idle exit, watchdog, restart, journal."""
import grp
import json
import os
import pathlib
import pwd
import re
import signal
import stat
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from units import SERVICE, SOCKET, SOCKET_UNIT, ctl, main_pid, run, show, state, worker_pid
from vmlib import OTHER, USER, Target, agent_children, status, stop, wait_until
from harness import Rpc

pytestmark = pytest.mark.usefixtures("open_kfd")

SECURITY_MAX = 2.5
ATTACH_ASKED = "6f0d5d8a0c2b4c0f9d4b7c1b8e6a4f21"
DROP_IN = pathlib.Path("/run/systemd/system/gpu-agentd.service.d/test.conf")


def settings(**values):
    """Settings of the service for one test; {} for the shipped ones."""
    run("systemctl", "stop", SERVICE)
    if values:
        DROP_IN.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"{name}={value}" for name, texts in values.items() for value in texts.split("|")]
        DROP_IN.write_text("[Service]\n" + "\n".join(lines) + "\n", encoding="ascii")
    else:
        DROP_IN.unlink(missing_ok=True)
    run("systemctl", "daemon-reload")
    run("systemctl", "reset-failed", SERVICE, check=False)


def process_status(pid, name):
    return status(pid).get(name, "")


def test_verify_is_silent():
    done = run("systemd-analyze", "verify", SERVICE, SOCKET_UNIT, check=False)
    mine = [line for line in (done.stdout + done.stderr).splitlines() if "gpu-agent" in line]
    assert done.returncode == 0 and not mine, (done.returncode, done.stdout, done.stderr)


def test_users_and_directories():
    assert pwd.getpwnam("gpu-agent").pw_uid < 1000
    for group in ("gpu-debug", "gpu-admin"):
        grp.getgrnam(group)
    for path, mode, group in (("/run/gpu-agent", 0o755, "root"), ("/var/lib/gpu-agent", 0o750, "gpu-debug"),
                              ("/var/cache/gpu-agent", 0o755, "root")):
        st = os.stat(path)
        assert stat.S_IMODE(st.st_mode) == mode and grp.getgrgid(st.st_gid).gr_name == group, (path, oct(st.st_mode), st.st_gid)
    st = os.stat(SOCKET)
    assert stat.S_IMODE(st.st_mode) == 0o660 and grp.getgrgid(st.st_gid).gr_name == "gpu-debug", oct(st.st_mode)


def test_first_client_is_answered():
    assert state() == "inactive" and state(SOCKET_UNIT) == "active", (state(), state(SOCKET_UNIT))
    done = ctl("status", "-j")
    assert done.returncode == 0, (done.returncode, done.stderr, run("journalctl", "-u", SERVICE, "-n", "30").stdout)
    assert str(main_pid()) in done.stdout and state() == "active", (main_pid(), done.stdout)
    assert show("StatusText"), "STATUS= is empty"


def test_directories_stay_after_a_start():
    test_users_and_directories()


def test_security_is_tight():
    text = run("systemd-analyze", "security", "--no-pager", SERVICE, check=False).stdout
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", text)
    assert found, text
    print(f"  exposure level {found[1]}")
    assert float(found[1]) <= SECURITY_MAX, text


def test_connect_brokers_are_the_agents_alone():
    """Their socket comes with the service, and only root can use it; nothing runs behind it without CUDA processes."""
    ctl("list")
    assert state("gpu-agent-connect.socket") == "active"
    st = os.stat("/run/gpu-agent/connect.sock")
    assert (st.st_uid, stat.S_IMODE(st.st_mode)) == (0, 0o600), oct(st.st_mode)
    assert not run("systemctl", "list-units", "--all", "--no-legend", "gpu-agent-connect@*").stdout
    text = run("systemd-analyze", "security", "--no-pager", "gpu-agent-connect@x.service").stdout
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", text)
    assert found and float(found[1]) <= 1.5, text


def test_sandbox_is_on():
    ctl("status")
    pid = main_pid()
    front = next(p for p in agent_children(pid) if process_status(p, "Name") == "gpu-agent-front")
    assert process_status(pid, "NoNewPrivs") == "1" and process_status(pid, "Seccomp") == "2"
    # kill 5, setgid 6, setuid 7, dac_read_search 2, sys_ptrace 19
    assert int(process_status(pid, "CapBnd"), 16) == 0x800e4, process_status(pid, "CapBnd")
    assert int(process_status(front, "CapEff"), 16) == 0 and int(process_status(front, "CapPrm"), 16) == 0
    assert process_status(front, "Uid").split()[0] == str(pwd.getpwnam("gpu-agent").pw_uid)


def test_user_without_the_group_is_refused():
    done = ctl("status", user=OTHER, groups=())
    assert done.returncode in (4, 9) and "gpu-debug" in done.stderr, (done.returncode, done.stderr)


def test_job_works_in_the_sandbox():
    with Target("open", "on") as target:
        done = ctl("snapshot", target.pid, "-j")
        assert done.returncode == 0, (done.stderr, run("journalctl", "-u", SERVICE, "-n", "30").stdout)
        doc = json.loads(done.stdout)
        assert doc["complete"] and int(doc["runtime"]["r_debug"], 16) == target.r_debug, doc
        assert doc["runtime"]["r_version"] == 9, doc
        assert target.free()


def test_other_users_process_is_refused_and_recorded():
    with Target("open", "on", user=OTHER) as target:
        done = ctl("snapshot", target.pid)
        assert done.returncode == 4, (done.returncode, done.stderr)
        run("journalctl", "--sync", check=False)
        text = run("journalctl", "-o", "json", f"MESSAGE_ID={ATTACH_ASKED}", f"OBJECT_PID={target.pid}").stdout
        record = json.loads(text.splitlines()[-1])
        assert record["GPU_AGENT_PEER_UID"] == str(USER) and record["GPU_AGENT_VERDICT"].startswith("refused"), record
        assert record["_SYSTEMD_UNIT"] == SERVICE and record["PRIORITY"] == "6", record


def test_handshake_in_the_sandbox():
    """A killed worker's target is released by the daemon, with the capabilities of the unit."""
    with Target("open") as target:
        rpc = Rpc(SOCKET)
        rpc.call("session.attach", pid=target.pid)
        worker = worker_pid()
        # The worker runs as the target's user and keeps nothing.
        assert process_status(worker, "Uid").split()[0] == str(USER), status(worker)
        stop(worker)
        target.say_and_block("on")
        os.kill(worker, signal.SIGKILL)
        assert target.read("on") == "0" and target.free()
        rpc.close()


def test_yama_does_not_hinder():
    scope = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
    before = scope.read_text(encoding="ascii")
    try:
        for level in ("1", "2"):
            scope.write_text(level, encoding="ascii")
            with Target("open", "on") as target:
                done = ctl("snapshot", target.pid, "-j")
                assert done.returncode == 0, (level, done.returncode, done.stderr)
    finally:
        scope.write_text(before, encoding="ascii")


def test_reload_keeps_serving():
    ctl("status")
    pid = main_pid()
    run("systemctl", "reload", SERVICE)
    wait_until(lambda: state() == "active", "active after the reload")
    assert main_pid() == pid and ctl("status").returncode == 0


def test_restart_lets_the_target_run():
    with Target("open") as target:
        rpc = Rpc(SOCKET)
        rpc.call("session.attach", pid=target.pid)
        pid = main_pid()
        run("systemctl", "restart", SERVICE)
        assert main_pid() != pid
        assert target.free() and target.ask("on") == 0
        rpc.close()
        rpc = Rpc(SOCKET)
        assert rpc.call("session.attach", pid=target.pid)["runtime"]["state"] == "enabled"
        rpc.close()
        wait_until(target.free, "released by the lost client")


def test_restart_frees_a_waiting_target():
    with Target("open") as target:
        rpc = Rpc(SOCKET)
        rpc.call("session.attach", pid=target.pid)
        worker = worker_pid()
        stop(worker)
        target.say_and_block("on")
        run("systemctl", "restart", SERVICE)
        assert target.read("on") == "0" and target.free()
        rpc.close()


def test_stop_is_clean():
    ctl("status")
    run("systemctl", "stop", SERVICE)
    assert state() == "inactive" and show("Result") == "success", (state(), show("Result"))
    assert os.path.exists(SOCKET) and ctl("status").returncode == 0


def test_killed_daemon_comes_back():
    ctl("status")
    pid = main_pid()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: main_pid() not in (0, pid) and state() == "active", "restarted")
    assert ctl("status").returncode == 0


def test_idle_exit_and_next_activation():
    settings(ExecStart="|/usr/sbin/gpu-agentd --idle-exit 2s")
    try:
        assert ctl("status").returncode == 0
        wait_until(lambda: state() == "inactive", "left after 2 s without connection")
        assert show("Result") == "success" and show("NRestarts") == "0"
        with Target("open", "on") as target:
            rpc = Rpc(SOCKET)
            rpc.call("session.attach", pid=target.pid)
            # A session is not idle.
            assert not ends_within(4)
            rpc.close()
            assert target.free()
        wait_until(lambda: state() == "inactive", "left again")
    finally:
        settings()


def ends_within(seconds):
    try:
        wait_until(lambda: state() != "active", "", patience=seconds)
        return True
    except AssertionError:
        return False


def test_watchdog_restarts_a_stuck_daemon():
    settings(WatchdogSec="6", TimeoutStopSec="5", TimeoutAbortSec="5")
    try:
        assert ctl("status").returncode == 0
        # Pings come in time while nobody asks anything, and every three seconds: a guest may stand still for as long.
        assert not ends_within(13) and show("NRestarts") == "0"
        pid = main_pid()
        with Target("open") as target:
            rpc = Rpc(SOCKET)
            rpc.call("session.attach", pid=target.pid)
            os.kill(pid, signal.SIGSTOP)
            wait_until(lambda: main_pid() not in (0, pid) and state() == "active", "restarted by the watchdog", 40)
            assert target.ask("on") == 0 and target.free()
            rpc.close()
    finally:
        settings()


def test_yama_3_is_explained():
    """Last: this level cannot be lowered again."""
    pathlib.Path("/proc/sys/kernel/yama/ptrace_scope").write_text("3", encoding="ascii")
    with Target("open", "on") as target:
        done = ctl("snapshot", target.pid)
        assert done.returncode in (4, 5) and "ptrace_scope" in done.stderr, (done.returncode, done.stderr)
        assert target.ask("pid") == target.pid
