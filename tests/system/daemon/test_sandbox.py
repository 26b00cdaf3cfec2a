#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What each process of the agent cannot do any more, also when it runs somebody else's code."""
import contextlib
import ctypes
import errno
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from harness import BIN, LONG_STOP, PATIENCE, Scene, children_named, need_root, status, wait_until

PROBE = BIN.parent / "tests/sandbox_probe"
USER = 1000
SYS_PTRACE = 19

# Workers with NVIDIA's library: of a session, of one that a tracer helps, and of a rescue.
DRIVERS = {"driver", "driver_traced", "driver_rescue"}
SESSIONS = {"session", "session_registers"}
READERS = {"look", "host", "core", "adapter", "tracer"} | SESSIONS | DRIVERS
# Those that call functions in a target.
CALLERS = {"driver", "driver_rescue", "tracer"}
TRACERS = SESSIONS | CALLERS

# Call of sandbox_probe.c: the filters that let it through.  Everything else is refused, by all of them.
ALLOWED = {
    "clone_process": {"adapter", "judge"} | DRIVERS,
    "clone3": DRIVERS,
    "open_to_write": {"store"} | DRIVERS,
    "open_to_create": {"store"} | DRIVERS,
    "open": READERS | {"store", "judge"},
    # What one processor has and what another one has for it go together.
    **dict.fromkeys(("access", "faccessat", "faccessat2"), {"look", "host", "adapter"} | SESSIONS | DRIVERS),
    **dict.fromkeys(("dup2", "dup3"), {"adapter"}),
    **dict.fromkeys(("getpgrp", "getpgid"), DRIVERS),
    "rename": DRIVERS,
    **dict.fromkeys(("renameat", "renameat2"), {"store"} | DRIVERS),
    "kill": {"adapter", "judge"} | DRIVERS,
    "pidfd_open": {"judge"} | DRIVERS,
    "setresuid": {"judge"},
    "capset": {"judge"},
    "accept4": {"judge"},
    "pidfd_getfd": {"tracer"} | DRIVERS,
    "pidfd_send_signal": SESSIONS | DRIVERS,
    "process_vm_readv": {"host", "tracer"} | SESSIONS | DRIVERS,
    "process_vm_writev": DRIVERS,
    "socket_unix": {"connect"},
    "socket_unix_packets": {"connect"},
    "socket_unix_datagrams": {"connect"},
    "connect": {"connect"},
    "bind": {"connect"},
    "listen": {"connect"},
    "ioctl": {"look", "host"} | SESSIONS | DRIVERS,
    "ioctl_notify": {"look", "host", "connect"} | SESSIONS | DRIVERS,
    "ptrace_seize": SESSIONS,
    "ptrace_seize_exec": SESSIONS,
    "ptrace_seize_calls": CALLERS,
    "ptrace_interrupt": TRACERS,
    "ptrace_listen": TRACERS,
    "ptrace_cont": TRACERS,
    "ptrace_detach": TRACERS,
    "ptrace_getregset": {"session_registers"} | CALLERS,
    "ptrace_setregset": CALLERS,
    "ptrace_getsiginfo": CALLERS,
    "ptrace_syscall": CALLERS,
}
# The filter of the monitor, which every process inherits, refuses these and no others.
NEVER = {"bpf", "chroot", "finit_module", "init_module", "io_uring_setup", "keyctl", "mount", "open_by_handle_at",
         "perf_event_open", "pivot_root", "setns", "umount2", "unshare", "userfaultfd", "x32_execve", "x32_getpid", "x32_ptrace"}

# How a refusal is put, where somebody has to go on from there.  The broker answers for a driver, and none runs here.
WORDS = {(profile, name): errno.ENOSYS for profile in ("driver", "driver_traced")
         for name in ("socket_inet", "socket_inet6", "socket_netlink", "socket_packet", "socket_high", "socket_unix",
                      "socket_unix_packets", "socket_unix_datagrams", "bind", "connect", "listen", "unlink",
                      "symlink")}
WORDS.update({(profile, "clone3"): errno.ENOSYS
              for profile in ("look", "host", "session", "session_registers", "adapter", "judge")})


def answers(*argv):
    run = subprocess.run([PROBE, *argv], text=True, capture_output=True, timeout=PATIENCE)
    assert run.returncode == 0, (argv, run)
    return dict(line.split(None, 1) for line in run.stdout.splitlines())


def calls_of(profile):
    return {name: int(text) for name, text in answers("calls", profile).items()}


@pytest.mark.parametrize("profile", ("judge", "front", "look", "host", "session", "session_registers", "driver",
                                     "driver_traced", "driver_rescue", "tracer", "core", "parser", "adapter", "store", "connect"))
def test_calls_are_refused(profile):
    """The whole table, each row; and that the calls are ones which only a filter refuses."""
    need_root()
    free, got = calls_of("none"), calls_of(profile)
    assert len(free) > 70 and got.keys() == free.keys(), (free.keys() ^ got.keys())
    # What root is refused without a filter tells nothing about one.
    assert {name for name, error in free.items() if error == errno.EPERM} <= {"keyctl"}, free
    wrong = {}
    for name, error in got.items():
        if profile in ALLOWED.get(name, ()):
            want = free[name]
        else:
            want = WORDS.get((profile, name), errno.EPERM)
        if error != want:
            wrong[name] = (errno.errorcode.get(error, error), errno.errorcode.get(want, want))
    assert not wrong, wrong


def test_the_monitor_and_all_it_starts_leave_the_machine_alone():
    need_root()
    free, got = calls_of("none"), calls_of("agent")
    refused = {name for name, error in got.items() if error == errno.EPERM and free[name] != errno.EPERM}
    assert refused == {name for name in NEVER if free[name] != errno.EPERM}, got


def test_the_agent_has_laid_its_capabilities_down():
    """Also with a session of another user open, and after one that it had to judge, start and kill; who holds it together cannot trace."""
    need_root()
    with Scene(user_mode=False, app_user=USER) as s:
        s.attach()
        pids = {name: children_named(s.agentd.pid, name)[0] for name in ("gpu-agent-monitor", "gpu-agent-heir", "gpu-agent-judge")}
        for name, pid in {"gpu-agentd": s.agentd.pid, **pids}.items():
            facts = status(pid)
            permitted = int(facts["CapPrm"], 16)
            assert int(facts["CapEff"], 16) == 0 and permitted != 0, (name, facts)
            assert facts["NoNewPrivs"] == "1" and facts["Seccomp"] == "2", (name, facts)
            assert permitted >> SYS_PTRACE & 1 == (name != "gpu-agentd"), (name, facts)


# -- files ------------------------------------------------------------------------------------------

PLACES = ("read", "list", "write", "create", "unlink")


def files_of(profile, directory):
    """What @p profile can do with files, as root, whom no file's mode stops."""
    kept, other = directory / "kept", directory / "other"
    for place in (kept, other):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        (place / "there").write_text("x")
    (kept / "out").symlink_to(other / "there")
    return {name: int(text) for name, text in answers("files", profile, kept, other).items()}


def has_landlock():
    create_ruleset, version = 444, 1
    return ctypes.CDLL(None, use_errno=True).syscall(create_ruleset, None, 0, version) >= 1


def test_files_elsewhere_are_out_of_reach(tmp_path):
    """The store keeps to its directory; who reads cores or serves an editor writes nowhere, not even as root."""
    need_root()
    if not has_landlock():
        pytest.skip("this kernel has no Landlock")
    free = files_of("none", tmp_path)
    assert set(free.values()) == {0}, free
    store = files_of("store", tmp_path)
    assert {store[f"kept_{place}"] for place in PLACES} == {0}, store
    outside = {name: error for name, error in store.items() if not name.startswith("kept_")}
    # The directory stays open to its own names; what leads out of it leads nowhere.
    assert set(outside.values()) <= {errno.EACCES, errno.EXDEV, errno.ENOENT} and \
        outside["other_read"] == outside["by_symlink"] == outside["by_dots"] == errno.EACCES, outside
    for profile in ("core", "adapter"):
        got = files_of(profile, tmp_path)
        reads = {"kept_read", "kept_list", "other_read", "other_list", "by_symlink", "by_dots"}
        assert {name for name, error in got.items() if error == 0} == reads, got


# -- set-user-id programs that a target executes --------------------------------------------------


@contextlib.contextmanager
def set_user_id_program():
    directory = pathlib.Path(tempfile.mkdtemp(prefix="gpu-agent-sandbox."))
    os.chmod(directory, 0o755)
    try:
        yield make_set_user_id(directory)
    finally:
        shutil.rmtree(directory)


def make_set_user_id(directory):
    program = directory / "set-user-id"
    shutil.copy(shutil.which("sleep"), program)
    program.chmod(0o4755)
    return program


def looked_into(profile, dump, who="main"):
    with set_user_id_program() as program:
        got = answers("trace", profile, program, dump, who)
        for pid in {got["pid"], got["by"]}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        return got


LOOKS = ("peekuser", "peekdata", "getregset", "setregset", "process_vm_readv", "mem", "pidfd_getfd")


def test_a_tracer_without_filter_sees_into_a_set_user_id_program():
    """The control: where this fails, the other two prove nothing."""
    need_root()
    got = looked_into("none", "nodump")
    assert got["seized_as"] == "tracer" and got["Uid:"].split() == [str(USER), "0", "0", "0"], got
    assert got["getregset"] == "0" and got["peekuser"] == "0", got


def test_a_fallen_worker_gets_nothing_out_of_a_set_user_id_program():
    """One that had to use its capability: the program has its privilege, and the worker no look at it."""
    need_root()
    got = looked_into("session", "nodump")
    assert got["seized_as"] == "tracer" and got["Uid:"].split() == [str(USER), "0", "0", "0"], got
    refused = {name: int(got[name]) for name in LOOKS}
    assert set(refused.values()) <= {errno.EPERM, errno.EACCES}, refused


def test_a_worker_with_the_rights_of_the_user_traces_no_more_than_his():
    """As under every debugger of his: what such a program would have gained, it does not gain."""
    need_root()
    got = looked_into("session_registers", "dump")
    assert got["seized_as"] == "user" and got["Uid:"].split() == [str(USER)] * 4, got
    refused = {name: int(got[name]) for name in LOOKS if name not in ("getregset", "process_vm_readv", "mem")}
    assert set(refused.values()) == {errno.EPERM}, refused


# How a worker seizes whom: the target's user may trace it (dump), or not.
WORKERS = (("session_registers", "dump"), ("session", "nodump"), ("driver", "dump"), ("driver_traced", "nodump"),
           ("driver_traced", "dump"))


@pytest.mark.parametrize("who", ("main", "thread", "child"))
@pytest.mark.parametrize("profile,dump", WORKERS)
def test_whoever_executes_it_a_fallen_worker_gets_nothing(profile, dump, who):
    """The program has no privilege, so that it has nothing of worth; or there is no look at it."""
    need_root()
    got = looked_into(profile, dump, who)
    uids = got["Uid:"].split()
    if who != "main" or got.get("seized_as") != "user":
        assert uids == [str(USER), "0", "0", "0"], got
    if uids != [str(USER)] * 4:
        assert {int(got[name]) for name in LOOKS} <= {errno.EPERM, errno.EACCES, errno.ESRCH}, got
    if who != "child":
        assert int(got["old_mem"]) == errno.ESRCH, got


def test_a_session_never_holds_more_than_its_target_has():
    """The same with the daemon: root's, of a process that its own user might trace."""
    need_root()
    with Scene(user_mode=False, app=None) as s:
        program = make_set_user_id(s.directory)
        s.app = s.start_app(f"runtime on; queues 1; wait-line; exec {program} 60", user=USER)
        s.attach()
        s.app.popen.stdin.write(b"\n")
        s.app.popen.stdin.flush()
        wait_until(lambda: status(s.app.pid)["Name"] == "set-user-id", "the target has executed it")
        assert status(s.app.pid)["Uid"].split() == [str(USER)] * 4, status(s.app.pid)
        assert s.rpc.notification("session.ended")["reason"] == "exec"


def test_threads_of_a_protected_process_are_missing_in_a_core():
    """Nobody is stopped for registers that the worker may not read; the rest of the core is there."""
    need_root()
    with Scene(user_mode=False, app="runtime ttmp; queues 1; threads 3; nodump; spin", app_user=USER, gpus="gfx90a") as s:
        path = s.directory / "core"
        run = s.ctl("dump", s.app.pid, LONG_STOP, "--unified", "-o", path, "-j")
        assert run.returncode == 8 and path.stat().st_size > 0, run
        told = json.loads(run.stdout)["core"]
        threads = len(os.listdir(f"/proc/{s.app.pid}/task"))
        (missing,) = [line for line in told["missing"] if line.startswith("registers of")]
        assert missing.startswith(f"registers of {threads} threads"), (missing, threads)
        assert not told.get("thread_count") and not told.get("thread_stopped_us"), told
