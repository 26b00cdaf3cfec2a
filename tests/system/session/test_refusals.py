#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What cannot be done, and how that is said: error code, exit code and a hint that says what to do."""
import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from harness import BIN, PATIENCE, Rpc, Scene, as_user, need_root, status, wait_until

USER = 1000
OTHER = 1001


def refused(s, pid, name, exit_code, *words):
    """Both ways to ask must be refused alike, with a hint."""
    error = s.rpc.error("session.attach", pid=pid)
    assert error.name == name, error
    assert error.hint, error.data
    text = f"{error.message} {error.hint} {json.dumps(error.data)}"
    for word in words:
        assert word in text, f"{word!r} not in {text}"
    run = s.ctl("snapshot", pid)
    assert run.returncode == exit_code, (run.returncode, run.stderr)
    assert run.stdout == "" and error.hint in run.stderr, run.stderr
    run = s.ctl("snapshot", "--json", pid)
    assert run.returncode == exit_code and json.loads(run.stdout)["error"]["code"] == error.code, run.stdout


@contextlib.contextmanager
def idle_process(*argv, **kwargs):
    process = subprocess.Popen(argv or ["sleep", "60"], **kwargs)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def test_wrong_and_dead_pids():
    with Scene() as s:
        gone = subprocess.Popen(["true"])
        gone.wait()
        refused(s, gone.pid, "no_such_process", 3)
        refused(s, 4194304, "no_such_process", 3)
        zombie = subprocess.Popen(["true"])
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        refused(s, zombie.pid, "no_such_process", 3)
        zombie.wait()
        for bad in (0, -1, 1.5, "7", None, 2**40):
            assert s.rpc.error("session.attach", pid=bad).name == "invalid_params", bad
        assert s.ctl("snapshot", "x").returncode == 2
        assert s.ctl("snapshot", "0").returncode == 2


def test_not_a_gpu_process():
    with Scene() as s, idle_process() as pid:
        refused(s, pid, "not_debuggable", 5, "has not opened the GPU", "hsa_init", "watch rule")
        report = s.rpc.call("process.doctor", pid=pid)
        assert not report["ok"]
        assert s.ctl("doctor", pid).returncode == 5


def test_kernel_threads_and_the_agent_itself():
    need_root()
    with Scene(user_mode=False) as s:
        if os.path.exists("/proc/2/comm") and pathlib.Path("/proc/2/comm").read_text() == "kthreadd\n":
            refused(s, 2, "not_debuggable", 5, "kernel thread")
        refused(s, s.agentd.pid, "not_permitted", 4)
        refused(s, s.front_pid(), "not_permitted", 4)


def test_processes_of_other_users():
    need_root()

    def pids(rpc, mine):
        return [p["pid"] for p in rpc.call("process.list", mine=mine)["processes"]]

    with Scene(user_mode=False, app_user=USER) as s:
        def stranger():
            rpc = Rpc(s.socket)
            error = rpc.error("session.attach", pid=s.app.pid)
            assert error.name == "not_permitted" and error.hint, error.data
            listed = [p for p in rpc.call("process.list")["processes"] if p["pid"] == s.app.pid]
            assert len(listed) == 1 and not listed[0]["debuggable"] and listed[0]["reason"], listed
            assert s.app.pid not in pids(rpc, mine=True)
            report = rpc.call("process.doctor", pid=s.app.pid)
            assert not report["ok"], report
            assert rpc.call("session.list")["sessions"] == []

        def owner():
            rpc = Rpc(s.socket)
            assert rpc.call("session.attach", pid=s.app.pid)["control"]
            assert rpc.call("process.doctor", pid=s.app.pid)["checks"]
            assert len(rpc.call("session.list")["sessions"]) == 1
            assert s.app.pid in pids(rpc, mine=True)

        s.attach()
        assert s.app.pid not in pids(s.rpc, mine=True), "root may debug it, but it is not root's"
        assert s.app.pid in pids(s.rpc, mine=False)
        as_user(OTHER, stranger)
        as_user(USER, owner)


def test_processes_that_are_not_dumpable():
    need_root()
    with Scene(user_mode=False, app="runtime on; queues 1; nodump; spin", app_user=USER) as s:
        def owner():
            error = Rpc(s.socket).error("session.attach", pid=s.app.pid)
            assert error.name == "not_permitted" and "dumpable" in error.message + error.hint, error.data

        as_user(USER, owner)
        s.attach()  # root may


def test_processes_with_more_capabilities_than_their_owner():
    """Ambient capabilities leave a process dumpable; its plain user may still not look into it."""
    need_root()
    if not shutil.which("setpriv"):
        raise SkipTest("no setpriv (util-linux)")
    with Scene(user_mode=False, app=None) as s:
        status_file = s.directory / "status-cap"
        status_file.touch()
        status_file.chmod(0o666)
        program = shutil.copy(BIN / "gpu-agent-simapp", s.directory)
        s.app = s.start("app", ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups", "--inh-caps", "+net_admin",
                                "--ambient-caps", "+net_admin", program, "--kfd", s.mount / "kfd", "--status-file",
                                status_file, "-e", "runtime on; queues 1; spin"])
        s.app.wait_line()

        def owner():
            rpc = Rpc(s.socket)
            error = rpc.error("session.attach", pid=s.app.pid)
            assert error.name == "not_permitted" and "capabilities" in error.message and error.hint, error.data
            assert not rpc.call("process.doctor", pid=s.app.pid)["ok"]

        def owner_in_disguise():
            # Whoever connected is a program of root's by now; somebody else holds the connection, too.
            rpc, (ours, theirs) = Rpc(s.socket), socket.socketpair()
            child = os.fork()
            if child == 0:
                own = Rpc(s.socket)
                socket.send_fds(theirs, [b"x"], [own.sock.fileno()])
                os.execv(disguise, [disguise, "60"])
            try:
                theirs.close()
                rpc.sock = socket.socket(fileno=socket.recv_fds(ours, 1, 1)[1][0])
                rpc.sock.settimeout(PATIENCE)
                wait_until(lambda: status(child)["Uid"].split()[1] == "0", "the child has changed")
                assert rpc.error("session.attach", pid=s.app.pid).name == "not_permitted"
            finally:
                os.kill(child, signal.SIGKILL)  # allowed: its real user is still this one
                os.waitpid(child, 0)

        as_user(USER, owner)
        disguise = s.directory / "disguise"
        shutil.copy(shutil.which("sleep"), disguise)
        disguise.chmod(0o4755)
        as_user(USER, owner_in_disguise)
        s.attach()  # root may


def test_processes_that_somebody_else_traces():
    with Scene() as s:
        libc = ctypes.CDLL(None, use_errno=True)
        tracer = os.fork()
        if tracer == 0:
            libc.ptrace.argtypes = [ctypes.c_long] * 4
            ok = libc.ptrace(0x4206, s.app.pid, 0, 0) == 0  # PTRACE_SEIZE
            os.write(1, b"")
            signal.pause() if ok else os._exit(1)
        try:
            wait_until(lambda: status(s.app.pid)["TracerPid"] == str(tracer), "traced")
            refused(s, s.app.pid, "busy", 6, str(tracer))
            report = s.rpc.call("process.doctor", pid=s.app.pid)
            assert not report["ok"] and any(str(tracer) in c["detail"] for c in report["checks"]), report
        finally:
            os.kill(tracer, signal.SIGKILL)
            os.waitpid(tracer, 0)


def test_kernels_without_the_debug_interface():
    with Scene(sim=["--kernel", "1.11"], app="runtime skip; queues 1; spin") as s:
        refused(s, s.app.pid, "not_debuggable", 5, "1.11", "6.5")
        report = s.rpc.call("process.doctor", pid=s.app.pid)
        assert not report["ok"] and any("1.11" in c["detail"] for c in report["checks"]), report


def test_no_device_at_all():
    with Scene(start_agent=False) as s:
        s.agentd = s.start("agentd", [BIN / "gpu-agentd", "--user", "--socket", s.socket, "--kfd", "/nonexistent/kfd",
                                      "--kfd-sysfs", "/nonexistent"])
        s.agentd.wait_line("err")
        refused(s, s.app.pid, "not_debuggable", 5, "amdgpu")
        assert s.ctl("list").returncode in (0, 5)


def test_targets_with_a_debug_session_already():
    with Scene() as s:
        s.control("errno enable EALREADY 3")
        refused(s, s.app.pid, "busy", 6)


def test_a_session_that_begins_at_the_same_time_is_ended_and_told():
    """The question came before it, and ENABLE behind it."""
    with Scene() as s:
        s.control("errno enable EALREADY 1")
        error = s.rpc.error("session.attach", pid=s.app.pid)
        assert error.name == "busy" and "at the same time" in error.message and "again" in error.hint, error
        s.attach()


@pytest.mark.parametrize("times,name", ((1, None), (3, None), (4, "not_debuggable")))
def test_threads_that_end_while_a_session_begins(times, name):
    """Another one is asked for, but not without end."""
    with Scene(app="queues 1; sleepers 2; spin") as s:
        s.control(f"errno enable ESRCH {times}")
        if name:
            assert s.rpc.error("session.attach", pid=s.app.pid).name == name
        s.attach()


def test_no_agent():
    with Scene(app=None, start_agent=False) as s:
        run = s.ctl("list")
        assert run.returncode == 9 and "gpu-agentd" in run.stderr and run.stdout == "", run
        run = s.ctl("list", "--json")
        assert run.returncode == 9 and "error" in json.loads(run.stdout), run


def test_sessions_belong_to_their_connection():
    with Scene() as s:
        session = s.attach()
        stranger = s.connect()
        for method in ("gpu.queues", "session.detach", "gpu.suspend"):
            assert stranger.error(method, session=session).name == "no_such_session"
        assert s.rpc.error("gpu.queues", session="s999").name == "no_such_session"
        assert s.rpc.error("gpu.queues").name == "invalid_params"


def test_control_with_the_runtime_off():
    with Scene(app="runtime skip; queues 1; spin") as s:
        session = s.attach()
        assert len(s.rpc.call("gpu.queues", session=session)["queues"]) == 1
        error = s.rpc.error("gpu.suspend", session=session)
        assert error.name == "not_debuggable" and "runtime" in error.message and "too old" in error.hint, error


def test_user_errors_of_the_command():
    with Scene(app=None) as s:
        for argv in (["snapshot"], ["frobnicate"], ["snapshot", "1", "2"], ["list", "--nope"], ["--color=sometimes", "list"],
                     ["suspend", str(os.getpid()), "--lease", "soon"], ["rpc"], ["rpc", "agent.status", "{"]):
            run = s.ctl(*argv)
            assert run.returncode == 2 and run.stderr, (argv, run)
            assert not run.stdout or argv[0] == "rpc" and json.loads(run.stdout)["error"], (argv, run)


def without_capabilities(s, names):
    """The command line of a daemon that makes its own socket for group daemon; no capability in `names` is left to it."""
    need_root()
    if not shutil.which("setpriv"):
        raise SkipTest("no setpriv (util-linux)")
    config = s.directory / "agentd.conf"
    config.write_text("[agent]\nuser = nobody\nsocket_group = daemon\n", encoding="ascii")
    return ["setpriv", "--bounding-set", ",".join(f"-{name}" for name in names), BIN / "gpu-agentd",
            "--socket", s.directory / "own.sock", "--config", config]


def test_a_socket_that_cannot_be_given_to_its_group_is_named():
    """As in a container that has neither of the capabilities that giving it takes."""
    with Scene(app=None, start_agent=False) as s:
        argv = without_capabilities(s, ["chown", "setgid"])
        run = subprocess.run(argv, text=True, capture_output=True, timeout=PATIENCE, check=False)
        assert run.returncode == 1 and "own.sock" in run.stderr and "CAP_CHOWN" in run.stderr and "gpu-agentd.socket" in run.stderr, run
        assert not (s.directory / "own.sock").exists()


def test_a_socket_is_given_to_its_group_without_chown():
    """As when the unit of the service, or a container with its capabilities, is started without a socket of systemd's."""
    with Scene(app=None, start_agent=False) as s:
        path = s.directory / "own.sock"
        argv = without_capabilities(s, ["chown"])
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as daemon:
            try:
                wait_until(lambda: daemon.poll() is not None or path.exists() and path.stat().st_mode & 0o77, "socket")
                assert daemon.poll() is None, "the daemon has left"
                assert path.group() == "daemon" and path.stat().st_mode & 0o777 == 0o660, path.stat()
                groups = pathlib.Path(f"/proc/{daemon.pid}/status").read_text(encoding="ascii").split("Gid:")[1].split()[:4]
                assert groups == [str(os.getgid())] * 4, "the daemon is in no other group than before"
            finally:
                daemon.terminate()


def test_a_daemon_that_cannot_drop_privileges_says_what_it_needs():
    """A container without SETUID: the process that serves the socket will not serve as root."""
    with Scene(app=None, start_agent=False) as s:
        argv = without_capabilities(s, ["setuid"])
        run = subprocess.run(argv, text=True, capture_output=True, timeout=PATIENCE, check=False)
        assert run.returncode == 1 and "drop privileges" in run.stderr and "CAP_SETUID" in run.stderr, run


def test_queues_that_no_debugger_sees_are_told():
    """Linux 7.0 and later: a program may have several KFD contexts, of which a debugger sees the first one."""
    hidden = "queues: those of 2 secondary KFD contexts, which no debugger sees"
    with Scene(sim=["--kernel", "1.23"], app="runtime ttmp; queues 1; context; context; listen") as s:
        listed = s.rpc.call("process.list")
        assert listed["complete"] is False and listed["missing"] == [f"process {s.app.pid}: {hidden}"], listed
        assert hidden in s.ctl("list").stderr
        checks = {c["name"]: c for c in s.rpc.call("process.doctor", pid=s.app.pid)["checks"]}
        assert checks["queues"]["verdict"] == "unknown" and checks["queues"]["detail"] == hidden, checks
        session = s.rpc.call("session.attach", pid=s.app.pid)["session"]
        doc = s.rpc.call("gpu.snapshot", session=session)
        assert hidden in doc["missing"] and doc["complete"] is False and len(doc["queues"]) == 1, doc
        assert hidden in s.rpc.call("gpu.snapshot", session=session, waves=False)["missing"]
        core = s.rpc.call("core.begin", session=session)
        assert hidden in core["missing"], core


def test_a_program_with_one_context_is_seen_whole():
    with Scene(sim=["--kernel", "1.23"], app="runtime ttmp; queues 1; spin") as s:
        assert "missing" not in s.rpc.call("process.list")
        session = s.rpc.call("session.attach", pid=s.app.pid)["session"]
        assert not any("context" in m for m in s.rpc.call("gpu.snapshot", session=session)["missing"])
