#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CUDA processes on simulated GPUs: who can be debugged, what stands in the way, who holds what, kill -9."""
import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from harness import BIN, LIBEXEC, Rpc, agent_children, children, kill_agent, need_root, status, wait_until
from cudascene import assert_alive, assert_untouched, scene
from debugger import get, network_sockets, say

USER = 1000


def refused(s, name, exit_code, *words, pid=None):
    pid = pid or s.app.pid
    error = s.rpc.error("session.attach", pid=pid)
    assert error.name == name, (error, error.data)
    assert error.hint, error.data
    for word in words:
        assert word in f"{error.message} {error.hint}", (word, error.message, error.hint)
    run = s.ctl("snapshot", pid)
    assert run.returncode == exit_code and run.stdout == "" and error.hint in run.stderr, run


def assert_silent(stranger):
    """Nobody has accepted it, so nobody answers or ends it."""
    try:
        said = stranger.recv(1)
    except TimeoutError:
        return
    raise AssertionError(f"the engine says {said}")


def test_nobody_reaches_an_engine_from_the_network():
    """In the debugger's process it would take whoever connects (test_cudasim.py); here it does not come that far."""
    for user_mode in (False, True):
        with scene(user_mode=user_mode) as s:
            session = s.attach()
            s.rpc.call("gpu.snapshot", session=session)
            agent = [s.agentd.pid, *agent_children(s.agentd.pid)]
            assert len(s.worker_pids()) == 1 and set(s.worker_pids()) < set(agent), agent
            found = [line for p in agent for lines in network_sockets(p).values() for line in lines]
            places = {line.split()[1] for line in found}
            # One, of the worker and its broker, on the loopback address (connect/sockets.h).
            assert len(places) == 1 and places.pop().startswith("0100007F:"), found
            port = int(found[0].split()[1].split(":")[1], 16)
            with socket.socket() as stranger:
                stranger.settimeout(0.3)
                with contextlib.suppress(TimeoutError):
                    stranger.connect(("127.0.0.1", port))
                    stranger.send(b"\0" * 8)
                    assert_silent(stranger)
            s.rpc.call("session.detach", session=session)
            assert_untouched(s)


# -- who uses CUDA, and what stands in the way ----------------------------------------------------


def test_list_and_doctor():
    with scene() as s:
        (process,) = [p for p in s.rpc.call("process.list")["processes"] if p["pid"] == s.app.pid]
        assert process["vendor"] == "nvidia" and process["debuggable"], process
        doctor = s.rpc.call("process.doctor", pid=s.app.pid)
        checks = {c["name"]: c["verdict"] for c in doctor["checks"]}
        assert doctor["ok"] and checks["cuda_driver"] == "pass" and "kfd_device" not in checks, checks
        session = s.attach()
        doctor = s.rpc.call("process.doctor", pid=s.app.pid)
        checks = {c["name"]: (c["verdict"], c["detail"]) for c in doctor["checks"]}
        assert doctor["ok"] and all(checks[name][0] == "pass" and f"session {session} " in checks[name][1]
                                    for name in ("cuda_debugger", "tracer")), checks
        # The worker has the library too, but is nobody's process to debug.
        listed = {p["pid"]: p for p in s.rpc.call("process.list")["processes"]}
        assert listed[s.app.pid]["session"] == session and not set(s.worker_pids()) & set(listed), listed
        s.rpc.call("session.detach", session=session)
        assert_untouched(s)
        say(s, "set cudbgDebuggerInitialized 1")
        checks = {c["name"]: c["verdict"] for c in s.rpc.call("process.doctor", pid=s.app.pid)["checks"]}
        assert checks["cuda_debugger"] == "fail", checks


def test_workers_of_other_agents_are_nobodys_targets():
    """They have the library, too; one whose file was replaced since is still one."""
    with scene() as s:
        other = s.directory / "other"
        other.mkdir()
        for name in LIBEXEC:
            shutil.copy(BIN / name, other / name)
        second = s.start("other", [other / "gpu-agentd", "--user", "--socket", s.directory / "other.sock", "--cuda-library",
                                   s.libcuda, "--store", s.directory / "others"],
                         env={"LD_LIBRARY_PATH": str(s.libraries)})
        second.wait_line("err", "ready on")
        rpc = Rpc(s.directory / "other.sock")
        s.clients.append(rpc)
        session = rpc.call("session.attach", pid=s.app.pid)["session"]
        workers = {p for p in agent_children(second.pid) if status(p).get("Name") == "gpu-agent-worke"}
        assert workers
        for _ in range(2):
            listed = {p["pid"] for p in s.connect().call("process.list")["processes"]}
            assert s.app.pid in listed and not workers & listed, (workers, listed)
            (other / "gpu-agent-worker").unlink(missing_ok=True)
        rpc.call("session.detach", session=session)
        # A name is no file: who only calls himself so is shown.
        with python_process(s, "ctypes.CDLL(None).prctl(15, b'gpu-agent-worker', 0, 0, 0)") as pid:
            assert status(pid)["Name"] == "gpu-agent-worke"
            assert pid in [p["pid"] for p in s.connect().call("process.list")["processes"]]


@contextlib.contextmanager
def python_process(s, code):
    """An interpreter that has loaded libcuda, then does this."""
    head = f"import ctypes, os, time\nctypes.CDLL({str(s.libcuda)!r})\n"
    process = subprocess.Popen([sys.executable, "-c", f"{head}{code}\nprint(flush=True)\ntime.sleep(600)"],
                               stdout=subprocess.PIPE, env={**os.environ, "LD_LIBRARY_PATH": str(s.libraries)})
    try:
        assert process.stdout.readline() == b"\n", process.poll()
        yield process.pid
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


MANY = """
c = ctypes.CDLL(None)
c.mmap.restype = ctypes.c_void_p
c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
fd = os.open(PATH, os.O_RDONLY)
for i in range(40000):
    assert c.mmap(None, 4096, 1 + i % 2 * 2, 2, fd, 0) != 2 ** 64 - 1"""


def test_process_with_many_mappings():
    """Frameworks have tens of thousands, of files with long names."""
    if int(pathlib.Path("/proc/sys/vm/max_map_count").read_text()) < 50000:
        raise SkipTest("vm.max_map_count is below its default")
    with scene(app=None) as s:
        path = s.directory / ("m" * 240)
        path.write_bytes(bytes(4096))
        with python_process(s, MANY.replace("PATH", repr(str(path)))) as pid:
            assert len(pathlib.Path(f"/proc/{pid}/maps").read_bytes()) > 10 << 20
            assert pid in [p["pid"] for p in s.rpc.call("process.list")["processes"]]
            checks = {c["name"]: c["verdict"] for c in s.rpc.call("process.doctor", pid=pid)["checks"]}
            assert checks["cuda_driver"] == "pass", checks
            run = s.ctl("snapshot", pid)
            assert run.returncode == 0, run


def test_library_of_stubs_beside_the_driver():
    """Attaching takes the copy that is the driver; the doctor speaks of the same."""
    with scene(app=None) as s:
        stubs = s.directory / "libcuda.so"
        # Any library that is not the driver's.
        shutil.copy(re.search(r" (/\S*/libm\S*\.so\S*)", pathlib.Path("/proc/self/maps").read_text()).group(1), stubs)
        with python_process(s, f"ctypes.CDLL({str(stubs)!r})") as pid:
            checks = {c["name"]: (c["verdict"], c["detail"]) for c in s.rpc.call("process.doctor", pid=pid)["checks"]}
            assert checks["cuda_driver"][0] == "pass" and checks["cuda_engine"][0] == "pass", checks
            run = s.ctl("snapshot", pid)
            assert run.returncode == 0, run


def test_process_without_libcuda():
    with scene(app=None) as s:
        idle = subprocess.Popen(["sleep", "60"])
        try:
            refused(s, "not_debuggable", 5, "has not loaded libcuda", pid=idle.pid)
            # What AMD's driver would need is no advice on a machine without its GPUs.
            error = s.rpc.error("session.attach", pid=idle.pid)
            assert error.message == f"process {idle.pid} (sleep) has not loaded libcuda", error.message
            assert error.hint.startswith("gpu-agentctl list"), error.hint
            checks = {c["name"] for c in s.rpc.call("process.doctor", pid=idle.pid)["checks"]}
            assert "cuda_library" in checks and not {c for c in checks if c.startswith("kfd")} and "gpus" not in checks, checks
        finally:
            idle.kill()
            idle.wait()


def test_libcuda_without_context():
    for release in ("12.4", "13.4"):
        with scene(release, app="listen") as s:
            doc = json.loads(s.ctl("snapshot", "--json", s.app.pid).stdout)
            assert doc["wave_count"] == 0 and doc["queues"] == [] and doc["complete"], doc
            assert_untouched(s)


def test_session_begins_with_cuinit():
    with scene("13.4", app="listen") as s:
        session = s.attach()
        assert s.rpc.call("runtime.info", session=session)["runtime"]["state"] == "disabled"
        say(s, "init")
        s.rpc.notification("runtime.changed")
        assert s.rpc.call("runtime.info", session=session)["runtime"]["state"] == "enabled"
        assert len(s.rpc.call("gpu.devices", session=session)["devices"]) == 2
        s.rpc.call("session.detach", session=session)
        assert_untouched(s)


def test_under_mps():
    with scene() as s:
        s.control("mps on")
        before = time.monotonic()
        error = s.rpc.error("session.attach", pid=s.app.pid)
        assert error.name == "not_debuggable" and "MPS" in error.hint, (error, error.data)
        assert time.monotonic() - before < 15
        run = s.ctl("snapshot", s.app.pid)
        assert run.returncode == 5 and run.stdout == "" and error.hint in run.stderr, run
        s.control("mps off")
        assert s.ctl("snapshot", s.app.pid).returncode == 0
        assert_untouched(s)
    with scene(app=None) as s:
        # Where its daemon can be seen, the driver is not asked for four seconds, twice.
        s.directory.joinpath("mps").mkdir()
        s.directory.joinpath("mps/control").touch()
        s.app = start_through(s, f"CUDA_MPS_PIPE_DIRECTORY={s.directory}/mps exec")
        s.control("mps on")
        before = time.monotonic()
        refused(s, "not_debuggable", 5, "it is a client of MPS")
        assert time.monotonic() - before < 8
        (check,) = [c for c in s.rpc.call("process.doctor", pid=s.app.pid)["checks"] if c["name"] == "cuda_mps"]
        assert check["verdict"] == "unknown" and f"{s.directory}/mps/control" in check["detail"], check
        assert_untouched(s)


def test_device_nodes_that_the_agent_lacks():
    """As a container has them and the agent does not."""
    need_root()
    if os.path.exists("/dev/nvidiactl"):
        raise SkipTest("this machine has an NVIDIA driver")
    with scene(app=None) as s:
        s.app = start_through(s, "exec unshare --mount sh -c 'mount -t tmpfs none /dev && "
                              "mknod -m 666 /dev/null c 1 3 && touch /dev/nvidiactl && exec \"$@\" 9</dev/nvidiactl' sh")
        refused(s, "not_debuggable", 5, "/dev/nvidiactl, which is not there for the agent", "pass the devices in")
        (check,) = [c for c in s.rpc.call("process.doctor", pid=s.app.pid)["checks"] if c["name"] == "cuda_device"]
        assert check["verdict"] == "fail", check
        assert_alive(s)
    assert not os.path.exists("/dev/nvidiactl")


def test_driver_without_unified_debugger():
    with scene("8.0") as s:
        refused(s, "not_debuggable", 5, "no unified debugger", "520")
        assert_alive(s)


def test_already_debugged():
    with scene() as s:
        say(s, "set cudbgDebuggerInitialized 1")
        refused(s, "busy", 6, "another debugger")
        say(s, "set cudbgDebuggerInitialized 0")
        tracer = subprocess.Popen([sys.executable, "-c", "import ctypes, sys, time\n"
                                   "c = ctypes.CDLL(None)\n"
                                   f"assert c.ptrace(0x4206, {s.app.pid}, None, None) == 0\n"
                                   "print(flush=True); time.sleep(60)"], stdout=subprocess.PIPE)
        try:
            tracer.stdout.readline()
            refused(s, "busy", 6, "traced by")
        finally:
            tracer.kill()
            tracer.wait()
        assert s.ctl("snapshot", s.app.pid).returncode == 0
        assert_untouched(s)


def test_our_own_driver_is_missing():
    with scene() as s:
        s.libcuda.rename(s.libraries / "elsewhere")
        refused(s, "not_debuggable", 5, "libcuda")
        assert_alive(s)


def test_engine_missing_in_the_target():
    with scene() as s:
        s.libraries.joinpath("libcudadebugger.so.1").unlink()
        refused(s, "not_debuggable", 5, "libcudadebugger")
        assert_alive(s)


def test_target_dies_during_a_call():
    for slot in ("getDeviceInfo", "getGridInfo120", "suspendDevice", "initialize"):
        with scene() as s:
            s.control(f"kill-target {slot}")
            run = s.ctl("snapshot", s.app.pid)
            # The simulated GPU outlives the process by a moment: what was read may be all (0) or lack a part (8).
            assert run.returncode in ((3, 8) if slot == "initialize" else (0, 3, 8)), (slot, run)
            assert (", complete, " in run.stdout) == (run.returncode == 0), (slot, run)
            wait_until(lambda: not s.worker_pids(), "the worker leaves")


def test_long_budget_ends_before_the_guard_does():
    """Whatever is asked for, a look returns what it has after seven seconds: at ten the worker would be killed."""
    with scene() as s:
        session = s.attach()
        for i in range(24):
            s.control(f"warp 0 {i // 8} {i % 8} pc={16 * i:#x}")
        s.control("delay readCallDepth 310")  # of 24 groups: more than seven seconds, and seen soon after these
        doc = s.rpc.call("gpu.snapshot", session=session, max_stop_ms=60000)
        assert doc["missing"] == ["call stacks: the stop budget was used up",
                                  "arguments of spin: they were not copied during the stop"], doc["missing"]
        assert doc["stopped_us"] >= 7_000_000, doc["stopped_us"]
        assert doc["wave_count"] == 24 and not doc["complete"], doc
        assert_alive(s)


def test_driver_that_hangs_is_given_up():
    with scene() as s:
        session = s.attach()
        s.control("hang getDeviceInfo")
        # Not less: what stops the devices must come to this call before.
        error = s.rpc.error("gpu.snapshot", session=session, max_stop_ms=3000)
        assert error.name in ("session_ended", "timeout"), error
        wait_until(lambda: not s.worker_pids(), "the worker is gone")
        assert_untouched(s)


def test_processes_of_others():
    need_root()
    with scene(app_user=USER) as s:
        assert s.ctl("snapshot", s.app.pid).returncode == 0
        session = s.attach()
        (worker,) = s.worker_pids()
        assert status(worker)["Uid"].split()[0] == str(USER), status(worker)["Uid"]
        s.rpc.call("session.detach", session=session)
        assert_untouched(s)


def test_target_in_other_namespaces():
    need_root()
    with scene(app=None) as s:
        s.app = start_unshared(s, "--mount")
        assert s.ctl("snapshot", s.app.pid).returncode == 0
        assert_untouched(s)
    with scene(app=None) as s:
        # The process that is debugged is a child of unshare(1), and pid 1 of its own namespace.
        app = start_unshared(s, "--pid", "--fork", "--kill-child")
        (pid,) = children(app.pid)
        doc = json.loads(s.ctl("snapshot", "--json", pid).stdout)
        assert doc["complete"] and doc["wave_count"] == 24 and doc["process"]["pid"] == pid, doc
        assert doc["process"]["ns_pid"] == 1, doc["process"]
        wait_until(lambda: status(pid)["TracerPid"] == "0" and not s.worker_pids(), "the worker leaves")
        assert app.popen.poll() is None
        os.kill(pid, signal.SIGKILL)  # unshare(1) itself does not listen
    with scene(app=None) as s:
        s.app = start_unshared(s, "--net")
        refused(s, "not_debuggable", 5, "network namespace")
        assert_alive(s)


def start_through(s, words):
    """The program, executed by a line of shell."""
    program = s.directory / "program"
    program.write_text(f"#!/bin/sh\n{words} {BIN}/gpu-agent-cuda-simapp \"$@\"\n")
    program.chmod(0o755)
    return s.start_app(s.APP, program=program)


def start_unshared(s, *flags):
    """The program in namespaces of its own; unshare(1) executes it."""
    return start_through(s, f"exec unshare {' '.join(flags)}")


# -- who holds what -------------------------------------------------------------------------------


def maps_vendor(pid):
    """One that has ended meanwhile maps nothing."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return any(name in pathlib.Path(f"/proc/{pid}/maps").read_text() for name in ("libcuda.so", "libcudadebugger"))
    return False


def test_vendor_code_is_in_the_worker_alone():
    with scene() as s:
        s.attach()
        (worker,) = s.worker_pids()
        assert maps_vendor(worker)
        assert not maps_vendor(s.front_pid()) and not maps_vendor(s.agentd.pid)
        assert status(worker)["NoNewPrivs"] == "1" and status(worker)["Seccomp"] == "2"
        assert int(status(worker)["CapEff"], 16) & 1 << 27 == 0, "CAP_MKNOD"
        assert status(worker)["TracerPid"] == "0"
        assert status(s.app.pid)["TracerPid"] == "0", "no thread is held"
        # An inspect worker reads, and loads nothing.
        s.rpc.call("process.doctor", pid=s.app.pid)
        assert all(not maps_vendor(p) for p in s.worker_pids() if p != worker)
    assert not os.path.exists("/dev/nvidiactl")


def test_worker_does_not_have_the_environment_of_a_shell():
    """What somebody has set for programs would hide devices, or choose another engine, from here."""
    shell = {"CUDA_VISIBLE_DEVICES": "", "CUDBG_USE_LEGACY_DEBUGGER": "1", "CUDA_MPS_PIPE_DIRECTORY": "/nowhere",
             "NVLOG_CONFIG_FILE": "/nowhere"}
    kept = {"TMPDIR": "/tmp", "HOME": "/nowhere", "OF_A_PRELOADED_EMULATOR": "1"}
    for user_mode in (False, True):
        with scene(user_mode=user_mode, start_agent=False) as s:
            s.start_agentd(user_mode=user_mode, env={**shell, **kept})
            s.attach()
            (worker,) = s.worker_pids()
            words = pathlib.Path(f"/proc/{worker}/environ").read_text().split("\0")
            found = dict(w.split("=", 1) for w in words if w)
            assert not set(found) & set(shell) and kept.items() <= found.items(), found
            assert found["LD_LIBRARY_PATH"] == str(s.libraries), found


def test_a_permissive_agent_names_what_the_library_may_not_call():
    """Started so; every other agent refuses it in silence, as the next test sees."""
    need_root()
    with scene(start_agent=False) as s:
        s.start_agentd("--permissive")
        with open(s.libraries / "cudasim.conf", "a", encoding="ascii") as f:
            f.write(f"mknod {s.directory / 'nvidiactl'}\n")
        assert s.ctl("snapshot", s.app.pid).returncode == 0
        log = s.agentd.err()
        assert "not refused" in log and re.search(r"not on its list: mknod(at)? \(\d+\) with", log), log
        assert_untouched(s)


def test_driver_makes_no_device_file():
    """On a machine without the kernel module, initialize() as root would make /dev/nvidiactl and leave it there."""
    need_root()
    for user_mode in (False, True):
        with scene(user_mode=user_mode) as s:
            made = s.directory / "nvidiactl"
            with open(s.libraries / "cudasim.conf", "a", encoding="ascii") as f:
                f.write(f"mknod {made}\n")
            assert s.ctl("snapshot", s.app.pid).returncode == 0
            assert not made.exists()
            assert_untouched(s)


# -- kill -9 --------------------------------------------------------------------------------------


def attached(s):
    s.session = s.attach(control=True)


def looked(s):
    attached(s)
    s.rpc.call("gpu.snapshot", session=s.session)


def suspended(s):
    attached(s)
    s.rpc.call("gpu.suspend", session=s.session, lease_ms=60000)


def looking(s):
    attached(s)
    s.control("hang getDeviceInfo")
    s.rpc.send("gpu.snapshot", session=s.session)
    wait_until(lambda: s.state()["devices"][0]["suspended"], "the devices stop")


def looking_at_registers(s):
    attached(s)
    s.control("hang readRegisterRange60")
    s.rpc.send("core.begin", session=s.session)
    wait_until(lambda: s.state()["devices"][0]["suspended"], "the devices stop")


def of_threads(s, name):
    """That file of each thread, of those that do not end meanwhile."""
    for thread in pathlib.Path(f"/proc/{s.app.pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            yield (thread / name).read_text()


def is_traced(s):
    return any("TracerPid:\t0\n" not in text for text in of_threads(s, "status"))


def calling(s):
    """A thread of the program is in cudbgApiAttach() for the debugger."""
    s.control("attach 0 delay=600000")
    s.rpc.send("session.attach", pid=s.app.pid)
    wait_until(lambda: s.state()["engagements"], "the driver was called")
    assert is_traced(s), "a thread is borrowed"


def detaching(slot):
    def step(s):
        attached(s)
        s.control(f"hang {slot}")
        s.rpc.send("session.detach", session=s.session)
        wait_until(lambda: get(s, "cudbgResumeForAttachDetach") & 2, "cudbgApiDetach was called")
    step.__name__ = f"out_{slot}"
    return step


def of_13_4(step):
    """Of a driver that is asked through a descriptor."""
    def newer(s):
        step(s)
    newer.release = "13.4"
    newer.__name__ = f"{step.__name__}_of_13_4"
    return newer


def attaching(slot):
    def step(s):
        s.control(f"hang {slot}")
        s.rpc.send("session.attach", pid=s.app.pid)
        wait_until(s.worker_pids, "a worker")
        wait_until(lambda: get(s, "cudbgUseExternalDebugger") == 1, "the engine runs")
    step.__name__ = f"in_{slot}"
    return step


STEPS = (attached, looked, suspended, looking, looking_at_registers, calling, attaching("initialize"),
         attaching("getNextEvent"), detaching("requestCleanupOnDetach"), detaching("getNextEvent"),
         detaching("finalize"), of_13_4(suspended), of_13_4(attaching("initialize")),
         of_13_4(detaching("requestCleanupOnDetach")))


def has_engine(s):
    return "cuda-engine\n" in of_threads(s, "comm")


def start_again(s):
    """The heir ends a worker that has suspended a GPU; only a session resumes it, which the next agent opens."""
    wait_until(lambda: s.agentd.popen.poll() is not None and not get(s, "cudbgUseExternalDebugger"), "the heir is through")
    s.control("heal")
    assert s.state()["devices"][0]["suspended"]
    s.start_agentd(user_mode=False)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
@pytest.mark.parametrize("victim", ("worker", "front", "monitor", "manager"))
def test_killed(step, victim):
    with scene(getattr(step, "release", "12.4")) as s:
        step(s)
        pid = {"worker": s.worker_pids()[0], "front": s.front_pid(), "monitor": s.monitor_pid(),
               "manager": s.agentd.pid}[victim]
        os.kill(pid, signal.SIGKILL)
        if step is calling:
            time.sleep(0.5)  # what undoes finds the call under way
            s.control("attach 0")
            wait_until(lambda: has_engine(s), "the call goes on and does what it was made for")
        elif victim != "monitor":  # without the monitor, its heir ends a worker that hangs on
            s.control("heal")
        elif step in (looking, looking_at_registers):
            start_again(s)
        try:
            assert_untouched(s)
        except Exception:
            print(f"  {victim} killed when {step.__name__}")
            raise


def given_up(s):
    """The client's time ends when the driver has been asked for its engine, and before that is there."""
    s.control("attach 0 delay=600000")
    for timeout in (1000, 4000, 16000):
        error = s.rpc.error("session.attach", pid=s.app.pid, timeout_ms=timeout)
        assert error.name in ("timeout", "session_ended", "busy"), error
        wait_until(lambda: s.state()["engagements"] or not s.worker_pids(), "the worker is gone")
        if s.state()["engagements"]:
            return
    raise AssertionError("the driver was never asked")


def test_engine_that_comes_after_all_the_same():
    """Nobody is killed; the driver takes longer than the client wants to wait, then the process counts as debugged."""
    for release in ("12.4", "13.4"):
        with scene(release) as s:
            given_up(s)
            s.control("attach 0")
            wait_until(lambda: has_engine(s), "the driver does what it was asked for")
            assert_untouched(s)
            wait_until(lambda: s.ctl("snapshot", s.app.pid).returncode == 0, "the next session")
            assert_untouched(s)


def test_attach_behind_another_session_keeps_its_time():
    with scene("13.4") as s:
        session, other = s.attach(), s.connect()
        (worker,) = s.worker_pids()
        s.control("attach 0 delay=5500")
        os.kill(worker, signal.SIGSTOP)
        try:
            s.rpc.send("session.detach", session=session)
            other.send("session.attach", pid=s.app.pid, timeout_ms=18000)
            wait_until(lambda: "joins the open session" in s.agentd.err(), "it waits for the session's end")
        finally:
            os.kill(worker, signal.SIGCONT)
        reply = other.read_message()
        assert "result" in reply and reply["result"]["session"] != session, reply
        other.call("session.detach", session=reply["result"]["session"])
        assert_untouched(s)


def test_killed_altogether_the_next_start_undoes():
    for step in (suspended, attaching("initialize")):
        with scene() as s:
            step(s)
            kill_agent(s.agentd.pid)
            assert get(s, "cudbgUseExternalDebugger") == 1
            s.control("heal")
            s.start_agentd(user_mode=False)
            assert_untouched(s)
            # The repair of a GPU that was left suspended may be under way.
            wait_until(lambda: s.ctl("snapshot", s.app.pid).returncode == 0, "a session is had")
            wait_until(lambda: not list(s.directory.glob("*.undo/*")), "no record stays")


def records(s):
    return list(s.directory.glob("*.undo/*"))


def killed_suspended(s, *wishes):
    suspended(s)
    for wish in wishes:
        s.control(wish)
    os.kill(s.worker_pids()[0], signal.SIGKILL)


def test_a_gpu_that_a_dead_worker_left_suspended_runs_again():
    """A worker opens a session for that; meanwhile nobody else may attach."""
    with scene() as s:
        killed_suspended(s, "attach 0 delay=600000")
        wait_until(lambda: s.state()["engagements"] == 2, "the repair has called the driver")
        assert s.state()["devices"][0]["suspended"]
        error = s.connect().error("session.attach", pid=s.app.pid)
        assert error.name == "busy", error
        s.control("attach 0")
        assert_untouched(s)
        wait_until(lambda: "left suspended runs again" in s.agentd.err(), "it says so")
        wait_until(lambda: not s.worker_pids() and not records(s), "nothing stays")
        assert s.ctl("snapshot", s.app.pid).returncode == 0
        assert_untouched(s)


def test_a_program_that_replaces_a_suspended_one_is_left_alone():
    """It has the same pid and start time, and its GPU was suspended by nobody."""
    with scene() as s:
        killed_suspended(s, "attach 10 times=99")
        wait_until(lambda: f"the GPU of process {s.app.pid} is left stopped" in s.agentd.err(), "it is told")
        s.agentd.stop()
        assert len(records(s)) == 1
        s.control("attach 0")
        argv = pathlib.Path(f"/proc/{s.app.pid}/cmdline").read_bytes().decode().split("\0")[:-1]
        again = s.directory / "again"
        again.write_text(f"exec {shlex.join(argv)}\n")
        s.app.popen.stdin.write(f"exec /bin/sh {again}\n".encode())
        s.app.popen.stdin.flush()
        wait_until(lambda: (s.state() or {}).get("engagements") == 0, "it is another program")
        s.start_agentd(user_mode=False)
        wait_until(lambda: "it runs another program" in s.agentd.err(), "it says so")
        wait_until(lambda: not s.worker_pids() and not records(s), "nothing stays")
        assert s.state()["engagements"] == 0


def test_a_gpu_that_cannot_be_resumed_is_told_and_the_next_session_does_it():
    for again in (False, True):
        with scene() as s:
            killed_suspended(s, "attach 10 times=99")
            wait_until(lambda: f"the GPU of process {s.app.pid} is left stopped" in s.agentd.err(), "it is told")
            assert s.state()["devices"][0]["suspended"] and len(records(s)) == 1
            s.control("attach 0")
            if again:  # the next agent does it by itself
                s.agentd.stop()
                s.start_agentd(user_mode=False)
            else:
                assert s.ctl("snapshot", s.app.pid).returncode == 0
            assert_untouched(s)
            wait_until(lambda: not records(s), "no record stays")


def test_worker_killed_at_any_moment():
    """The steps that are too short to aim at."""
    with scene() as s:
        for delay in range(0, 24, 2):
            run = subprocess.Popen([BIN / "gpu-agentctl", "snapshot", str(s.app.pid)], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env={**os.environ, "GPU_AGENT_SOCKET": str(s.socket)})
            wait_until(lambda: s.worker_pids() or run.poll() is not None, "a worker")
            time.sleep(delay / 1000)
            for pid in s.worker_pids():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            run.wait(60)
            assert_untouched(s)
