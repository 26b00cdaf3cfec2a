#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The simulated CUDA stack by itself: what a debugger may rely on in the tests of other parts."""
import contextlib
import ctypes
import errno
import os
import pathlib
import random
import signal
import socket
import struct
import subprocess
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import CudaScene, CudaSim, PATIENCE, need_root, wait_until
import debugger
from debugger import (COMMUNICATION, Debugger, INVALID_ARGS, NO_EVENT, SUCCESS, UNINITIALIZED, get,
                      in_child, kinds, network_sockets, say, scene, small, u32, u64)

SLOTS = {"8.0": 120, "11.8": 121, "12.0": 125, "12.2": 126, "12.4": 133, "12.5": 136, "12.9": 146, "13.0": 148,
         "13.1": 149, "13.2": 159, "13.4": 164}


# -- the table ----------------------------------------------------------------------------------


def test_every_release_has_its_number_of_slots():
    for release, slots in SLOTS.items():
        with scene(release, app=None) as s:
            def look():
                d = Debugger(s)
                assert d.version[:2] == tuple(map(int, release.split("."))), d.version
                addresses = [d.table[i] for i in range(slots + 3)]
                assert len(set(addresses[:slots])) == slots
                assert addresses[slots] == addresses[slots + 1] and addresses[slots] not in addresses[:slots]
            in_child(look)


def test_the_engine_listens_to_the_network_where_it_can():
    """As the vendor's does, on any port of every address, in the debugger's process."""
    with small() as s:
        def look():
            d = Debugger(s)
            assert not network_sockets(os.getpid())
            d.attach()
            (line,) = network_sockets(os.getpid())["tcp"]
            assert line.split()[1].startswith("00000000:") and line.split()[3] == "0A", line  # TCP_LISTEN
            d.detach()
            assert not network_sockets(os.getpid())
        in_child(look)


def test_call_behind_the_table_aborts_loudly():
    with scene("12.4", app=None) as s:
        code = ("import sys; sys.path[:0] = sys.argv[2:]\n"
                "import debugger, types, pathlib\n"
                "debugger.Debugger(types.SimpleNamespace(libcuda=pathlib.Path(sys.argv[1]))).call(133)\n")
        here = pathlib.Path(__file__).resolve().parent
        done = subprocess.run([sys.executable, "-c", code, s.libcuda, here, here.parents[1] / "tests/lib"],
                              capture_output=True, text=True, check=False)
        assert done.returncode == -signal.SIGABRT and "behind the end of the table" in done.stderr, done


def test_newer_revision_is_refused_or_granted_with_the_short_table():
    for release, expected in (("12.2", SUCCESS), ("12.4", SUCCESS), ("12.5", 19), ("8.0", 19), ("13.4", 19)):
        with scene(release, app=None) as s:
            def ask():
                d = Debugger(s)
                table = ctypes.POINTER(ctypes.c_void_p)()
                assert d.lib.cudbgGetAPI(13, 9, 999, ctypes.byref(table)) == expected
                assert d.lib.cudbgGetAPI(0, 0, 0, ctypes.byref(table)) == SUCCESS
                assert ctypes.addressof(table.contents) == ctypes.addressof(d.table.contents)
                assert d.lib.cudbgGetAPI(0, 0, 0, None) == INVALID_ARGS
                assert d.lib.cudbgGetAPIVersion(None, None, None) == INVALID_ARGS
            in_child(ask)


def test_before_initialize_almost_everything_is_uninitialized():
    with scene("13.4", app=None) as s:
        def ask():
            d = Debugger(s)
            for slot in range(2, 164):
                if slot in (44, 62, 73, 147, 82, 134):
                    continue
                assert d.call(slot, *[0] * 10) == UNINITIALIZED, slot
            for slot in (44, 62, 73, 147, 82):
                d.ok(slot, None, None)
            assert d.number(134) == 0xff
            assert d.call(0) == 20  # neither label nor revision
        in_child(ask)


def test_forced_answers_of_the_two_doors():
    with scene(app=None, conf=["get-version 10"]) as s:
        n = [u32(), u32(), u32()]
        in_child(lambda: assert_equal(ctypes.CDLL(str(s.libcuda)).cudbgGetAPIVersion(*map(ctypes.byref, n)), 10))
    with scene(app=None, conf=["get-api 19"]) as s:
        in_child(lambda: assert_equal(ctypes.CDLL(str(s.libcuda)).cudbgGetAPI(0, 0, 0, ctypes.byref(u64())), 19))
    with scene(app=None) as s:
        (s.libraries / "libcudadebugger.so.1").unlink()
        in_child(lambda: assert_equal(ctypes.CDLL(str(s.libcuda)).cudbgGetAPI(0, 0, 0, ctypes.byref(u64())), 10))


def assert_equal(got, want):
    assert got == want, (got, want)


# -- attach and detach ---------------------------------------------------------------------------


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def wait_threads(pid, n):
    """The thread that attached is still listed when others know that it has ended."""
    wait_until(lambda: threads(pid) == n, f"{n} threads")


def test_attach_replays_and_detach_completes_in_every_release():
    for release in list(SLOTS)[1:]:
        with scene(release) as s:
            def session():
                before = threads(s.app.pid)
                d = Debugger(s)
                assert kinds(d.attach()) == [7, 5, 1, 13, 2, 10]
                wait_threads(s.app.pid, before + 1)
                wait_until(lambda: d.callbacks >= 2, "callbacks")
                assert get(s, "cudbgDebuggerInitialized") == 1 and get(s, "cudbgResumeForAttachDetach") == 1
                d.ok(2, 0)
                assert s.state()["devices"][0]["suspended"]
                d.detach()
                state = s.state()
                assert not state["devices"][0]["suspended"] and state["phase"] == "engine", state
                assert get(s, "cudbgUseExternalDebugger") == 0
                assert kinds(d.attach(capabilities=9)) == [7, 1, 13, 2, 10]  # again, without push events
                d.detach()
                wait_threads(s.app.pid, before + 1)
            in_child(session)


def test_attach_through_the_descriptor():
    with scene("13.1") as s:
        def session():
            d = Debugger(s)
            assert kinds(d.attach(how="fd"))[-1] == 10
            d.detach()
        in_child(session)


def test_attach_before_the_driver_is_started():
    with scene("12.4", app="listen") as s:
        def session():
            d = Debugger(s)
            assert d.attach() == []
            say(s, "init")
            say(s, "context 0", wait=False)
            d.events_until(7)
        in_child(session)
    with scene("13.4", app="listen") as s:
        assert get(s, "cudbgInitiateDebuggerAttachProcedureFd") == 0xffffffff


def test_launch_with_the_session_in_the_environment():
    environment = {"CUDBG_GET_SESSION_FROM_ENV": "1", "CUDBG_IPC_FLAG_NAME": "1", "CUDBG_APICLIENT_PID": str(debugger.LABEL),
                   "CUDBG_APICLIENT_REVISION": "142", "CUDBG_SESSION_ID": "7"}
    os.environ.update(environment)
    try:
        with scene(app="init; listen") as s:
            def session():
                assert get(s, "cudbgUseExternalDebugger") == 1 and get(s, "cudbgIpcFlag") == 1
                d = Debugger(s, session=7)
                assert d.initialize() == SUCCESS
                say(s, "context 0", wait=False)
                d.events_until(7)
            in_child(session)
    finally:
        for name in environment:
            del os.environ[name]


def test_sync_events_hold_the_thread_that_caused_them():
    with scene() as s:
        def session():
            d = Debugger(s)
            d.attach(capabilities=9)
            say(s, "context 0", wait=False)
            event = wait_until(d.event, "CTX_CREATE")
            assert event[0] == 7
            lines = len(s.app.out().splitlines())
            beats = s.app_status().beats
            wait_until(lambda: s.app_status().beats > beats + 20, "other threads run")
            assert len(s.app.out().splitlines()) == lines
            d.ok(79)
            wait_until(lambda: len(s.app.out().splitlines()) > lines, "the thread goes on")
        in_child(session)


def test_refusals_of_attach():
    def refused(release, before, expected, capabilities=1):
        with scene(release) as s:
            def session():
                d = Debugger(s)
                before(s)
                assert d.engage(capabilities) & 0xffffffff == expected
            in_child(session)
            assert get(s, "cudbgUseExternalDebugger") == 0

    refused("12.4", lambda s: None, 46, capabilities=2)
    refused("12.4", lambda s: s.control("mps on"), 40)
    refused("12.4", lambda s: say(s, "set cudbgRpcEnabled 1"), 37)
    refused("12.4", lambda s: s.control("attach 23"), 23)
    refused("12.4", lambda s: say(s, "set cudbgEnablePreemptionDebugging 1"), 40)
    refused("12.4", lambda s: (s.libraries / "libcudadebugger.so.1").unlink(), 20)


def test_attach_possible_at_the_third_try():
    with scene() as s:
        def session():
            s.control("attach 40 times=2")
            d = Debugger(s)
            assert [d.engage() & 0xffffffff for _ in range(3)] == [40, 40, 0]
        in_child(session)


def test_second_debugger_and_second_attach():
    with scene() as s:
        def session():
            d = Debugger(s)
            d.attach()
            assert d.engage() & 0xffffffff == 20
            assert "other developer tools" in s.app.err()
            d.detach()
            s.control("second inactive")
            assert d.engage() == 0
            assert get(s, "cudbgUseExternalDebugger") == 0 and get(s, "cudbgResumeForAttachDetach") == 3
            s.control("second refused")
            assert d.engage() & 0xffffffff == 20
        in_child(session)


def test_revision_zero_does_nothing_silently():
    with scene() as s:
        say(s, "set cudbgDebuggerCapabilities 1")
        say(s, "set cudbgApiClientPid 5")
        say(s, "call cudbgApiAttach")
        assert get(s, "cudbgReportedDriverInternalErrorCode") == 0 and get(s, "cudbgUseExternalDebugger") == 0


def test_nothing_moves_without_the_ipc_flag_or_a_running_debuggee():
    with scene() as s:
        def session():
            d = Debugger(s)
            d.engage()
            assert d.initialize() == SUCCESS
            time.sleep(0.05)
            assert d.event() is None
            say(s, "set cudbgIpcFlag 1")
            os.kill(s.app.pid, signal.SIGSTOP)
            wait_until(lambda: debugger_stopped(s.app.pid), "stop")
            d.ok(2, 0)  # the GPU answers all the same
            d.ok(3, 0)
            while d.event():
                pass
            d.ok(79)
            time.sleep(0.05)
            assert s.state()["phase"] == "replay"
            os.kill(s.app.pid, signal.SIGCONT)
            assert kinds(d.events_until(10))[-1] == 10
        in_child(session)


def debugger_stopped(pid):
    return "T (stopped)" in pathlib.Path(f"/proc/{pid}/status").read_text()


def test_replay_in_other_orders():
    with scene() as s:
        def session(wish, check):
            s.control(wish)
            d = Debugger(s)
            d.engage()
            assert d.initialize() == SUCCESS
            say(s, "set cudbgIpcFlag 1")
            check(d)
            say(s, "call cudbgApiDetach")
            say(s, "set cudbgUseExternalDebugger 0")
        in_child(lambda: session("replay auto batch=1 reverse=1 extra=3", lambda d: assert_equal(
            kinds(d.events_until(10)), [2, 13, 1, 5, 7, 6, 5, 6, 5, 6, 5, 10])))

        def endless(d):
            seen = 0
            while seen < 500:
                seen += d.event() is not None
                d.ok(79)
        in_child(lambda: session("heal; replay endless", endless))
    with scene() as s:
        def none():
            s.control("replay none")
            d = Debugger(s)
            assert d.attach() == [] and d.event() is None
        in_child(none)


# -- what initialize() and single calls may answer ---------------------------------------------


def test_initialize_with_every_known_failure():
    for result in (39, 40, 20, 24, 11, 19, 5):
        with scene() as s:
            def session():
                s.control(f"fail initialize {result} count=2")
                d = Debugger(s)
                d.engage()
                assert [d.initialize() for _ in range(3)] == [result, result, SUCCESS]
            in_child(session)
    with scene() as s:
        def watchdog():
            s.control("fail initialize 23 count=1")
            d = Debugger(s)
            d.engage()
            assert d.initialize() == 23
            assert d.number(35) == 1  # usable
        in_child(watchdog)


def test_without_a_gpu_the_engine_comes_up_and_initialize_says_so():
    with scene(app=None) as s:
        s.gpu.unlink()
        s.app = s.start_app("try-init; listen")
        assert "cuInit 100" in s.app.out()

        def session():
            d = Debugger(s)
            assert d.engage() == 0 and get(s, "cudbgUseExternalDebugger") == 1
            assert d.initialize() == 39
        in_child(session)


def test_initialize_may_make_a_device_file():
    need_root()
    with scene() as s:
        made = s.directory / "nvidiactl"
        with open(s.libraries / "cudasim.conf", "a", encoding="ascii") as f:
            f.write(f"mknod {made}\n")

        def session():
            d = Debugger(s)
            d.engage()
            assert not made.exists() and d.initialize() == SUCCESS
        in_child(session)
        assert os.major(os.stat(made).st_rdev) == 195


def test_scripted_faults_of_single_calls():
    with small() as s:
        def session():
            d = Debugger(s)
            d.attach()
            s.control("fail getNumSMs 28 nth=2 count=1; fail 37 10")
            assert [d.call(36, 0, ctypes.byref(u32())) for _ in range(3)] == [0, 28, 0]
            assert d.call(37, 0, ctypes.byref(u32())) == 10
            s.control("heal; delay getNumSMs 80 count=1")
            start = time.monotonic()
            assert d.number(36, 0) == 3 and time.monotonic() - start >= 0.08
            s.control("event internal-error hex=1c000000")
            event = d.event()
            assert event[0] == 4 and struct.unpack_from("<I", event[1], 4)[0] == 28
            assert d.call(36, 0, ctypes.byref(u32())) == COMMUNICATION
        in_child(session)


def test_a_call_that_never_returns():
    with small() as s:
        def session():
            d = Debugger(s)
            d.attach()
            s.control("hang getNumSMs")
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            d.call(36, 0, ctypes.byref(u32()))
        try:
            in_child(session)
            raise AssertionError("it returned")
        except AssertionError as error:
            assert "status 0xe" in str(error), error
        wait_until(lambda: s.state()["phase"] == "engine", "the simulator notices")


def test_the_target_dies_in_a_call():
    with small() as s:
        def session():
            d = Debugger(s)
            d.attach()
            s.control("kill-target suspendDevice")
            d.call(2, 0)
            assert wait_until(lambda: d.call(36, 0, ctypes.byref(u32())) == COMMUNICATION, "28")
            assert d.call(94, 0, ctypes.create_string_buffer(92)) == COMMUNICATION
            d.call(1)
        in_child(session)
        assert s.app.popen.wait(PATIENCE) == -signal.SIGKILL


def test_the_engine_dies_in_a_call():
    with small() as s:
        def session():
            before = threads(s.app.pid)
            d = Debugger(s)
            d.attach()
            wait_threads(s.app.pid, before + 1)
            s.control("kill-engine suspendDevice")
            d.call(2, 0)
            assert d.call(36, 0, ctypes.byref(u32())) == COMMUNICATION
            wait_threads(s.app.pid, before)
        in_child(session)


def test_the_debugger_dies():
    for wish, suspended in (("let-go on", False), ("heal", True)):
        with small() as s:
            def session():
                d = Debugger(s)
                d.attach()
                s.control(wish)
                d.ok(2, 0)
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                in_child(session)
            except AssertionError as error:
                assert "status 0x9" in str(error), error
            wait_until(lambda: s.state()["phase"] == "engine", "notice")
            assert s.state()["devices"][0]["suspended"] == suspended
            get(s, "cudbgIpcFlag")  # the program lives


def test_after_a_dead_debugger_the_flags_stay_and_can_be_taken_back():
    with small() as s:
        def first():
            Debugger(s).attach()
            os._exit(0)

        def second():
            d = Debugger(s, session=1)
            assert d.engage() & 0xffffffff == 20
            say(s, "call cudbgApiDetach")
            say(s, "set cudbgDebuggerInitialized 0")
            say(s, "set cudbgIpcFlag 0")
            say(s, "set cudbgUseExternalDebugger 0")
            assert kinds(d.attach())[-1] == 10
            d.detach()
        in_child(first)
        in_child(second)


def test_slow_locked_and_deadly_attach():
    with scene() as s:
        def slow():
            s.control("attach 0 delay=150")
            d, start = Debugger(s), time.monotonic()
            assert d.engage() == 0 and time.monotonic() - start > 0.15
        in_child(slow)
    with scene(app=CudaScene.APP.replace("listen", "lock-holder; listen")) as s:
        in_child(lambda: assert_equal(Debugger(s).engage(), 0))  # while all threads run it works
    with scene() as s:
        s.control("attach 0 kill=1")

        def deadly():
            d = Debugger(s)
            try:
                d.engage()
            except (AssertionError, OSError):
                return
            raise AssertionError("it lives")
        in_child(deadly)
        assert s.app.popen.wait(PATIENCE) == -signal.SIGKILL


def test_descriptors_are_given_back():
    with small() as s:
        def count():
            return len(os.listdir(f"/proc/{s.app.pid}/fd"))

        def session():
            before = count()
            d = Debugger(s)
            d.attach()
            d.detach()
            wait_until(lambda: count() == before + 3, "listener, epoll and GPU stay")
            d.attach()
            d.detach()
            wait_until(lambda: count() == before + 3, "the same")
        in_child(session)


def test_storms_floods_and_calls_from_the_callback():
    with small() as s:
        def session():
            d = Debugger(s)
            d.attach()
            before = d.callbacks
            s.control("storm 5000")
            wait_until(lambda: d.callbacks >= before + 5000, "callbacks")
            s.control("event ctx-push count=20000")
            seen = 0
            while d.event():
                seen += 1
            assert seen == 20000
            answers = []

            def nosy(data):
                answers.append(d.call(36, 0, ctypes.byref(u32())))
                answers.append(d.call(94, 0, ctypes.create_string_buffer(92)))
            keep = debugger.CALLBACK(nosy)
            d.ok(44, keep, None)
            s.control("storm 1")
            wait_until(lambda: len(answers) >= 2, "callback")
            assert answers[:2] == [44, NO_EVENT], answers
        in_child(session)


# -- the rest -------------------------------------------------------------------------------------


def test_a_program_execs_or_dies():
    with scene() as s:
        say(s, "exec sleep 60", wait=False)
        wait_until(lambda: s.state() is None, "the GPU is left")
    with scene() as s:
        s.app.popen.kill()
        wait_until(lambda: s.state() is None, "the GPU is left")


def test_garbage_on_the_socket_harms_nobody():
    with scene() as s:
        rng = random.Random(1)
        hello = struct.Struct("<QIIII")
        for role in list(range(7)) * 40:
            with socket.socket(socket.AF_UNIX) as c:
                c.connect(str(s.gpu))
                data = hello.pack(CudaSim.MAGIC if role else 7, role, debugger.LABEL, 0, rng.choice([1, 1304]))
                for _ in range(rng.randrange(4)):
                    body = rng.randbytes(rng.randrange(60))
                    size = rng.choice([len(body) + 8, len(body) + 8, len(body), 3, 0xffffffff])
                    data += struct.pack("<II", size, rng.randrange(200)) + body
                with contextlib.suppress(OSError):
                    c.sendall(data[:rng.randrange(len(data) + 1)] if role % 2 else data)
        assert s.control("count") == "1" and say(s, "context 0") == []


def test_mistakes_in_scripts_are_named():
    with scene() as s:
        for line, number in (("nonsense", errno.EINVAL), ("launch none", errno.ENOENT), ("devices 1", errno.EBUSY),
                             ("warp 0 999 0", errno.ENOENT), ("fail nosuchslot 3", errno.EINVAL)):
            try:
                s.control(line)
                raise AssertionError(line)
            except OSError as error:
                assert error.errno == number and line in str(error), error
