#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The simulated CUDA stack by itself: what a debugger may rely on in the tests of other parts."""
import ctypes
import errno
import os
import pathlib
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import CudaScene, main, need_root, test, wait_until  # noqa: E402
import debugger  # noqa: E402
from debugger import (ALL_SUSPENDED, COMMUNICATION, Debugger, INVALID_ARGS, INVALID_DEVICE, INVALID_LANE,  # noqa: E402
                      INVALID_SM, INVALID_WARP, NOT_SUPPORTED, NO_EVENT, RUNNING, SUCCESS, UNINITIALIZED, get,
                      in_child, say, u32, u64)

SLOTS = {"8.0": 120, "11.8": 121, "12.0": 125, "12.2": 126, "12.4": 133, "12.5": 136, "12.9": 146, "13.0": 148,
         "13.1": 149, "13.2": 159, "13.4": 164}
DIVERGE = "_Z7divergeIfEvPT_i"
FULL = ("init; context 0; module @CUBIN@; gpu launch spin grid=264 block=1024 spread=5; "
        f"gpu launch {DIVERGE} grid=2 block=40 active=0xffff idle=0x60 pc=0x40 progress=3; listen")


def scene(release="12.4", app=CudaScene.APP, **kwargs):
    return CudaScene(app=app, release=release, start_agent=False, **kwargs)


def small(release="12.4", **kwargs):
    """Two small GPUs; the second has nothing to do."""
    return scene(release, sim="devices 2 sms=3 warps=8", app=FULL.replace("264", "2").replace("1024", "64"), **kwargs)


# -- the table ----------------------------------------------------------------------------------


@test
def every_release_has_its_number_of_slots():
    for release, slots in SLOTS.items():
        with scene(release, app=None) as s:
            def look():
                d = Debugger(s)
                assert d.version[:2] == tuple(map(int, release.split("."))), d.version
                addresses = [d.table[i] for i in range(slots + 3)]
                assert len(set(addresses[:slots])) == slots
                assert addresses[slots] == addresses[slots + 1] and addresses[slots] not in addresses[:slots]
            in_child(look)


@test
def call_behind_the_table_aborts_loudly():
    with scene("12.4", app=None) as s:
        code = ("import sys; sys.path[:0] = sys.argv[2:]\n"
                "import debugger, types, pathlib\n"
                "debugger.Debugger(types.SimpleNamespace(libcuda=pathlib.Path(sys.argv[1]))).call(133)\n")
        here = pathlib.Path(__file__).resolve().parent
        done = subprocess.run([sys.executable, "-c", code, s.libcuda, here, here.parent / "lib"],
                              capture_output=True, text=True, check=False)
        assert done.returncode == -signal.SIGABRT and "behind the end of the table" in done.stderr, done


@test
def newer_revision_is_refused_or_granted_with_the_short_table():
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


@test
def before_initialize_almost_everything_is_uninitialized():
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


@test
def forced_answers_of_the_two_doors():
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


def kinds(events):
    return [kind for kind, _ in events]


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


@test
def attach_replays_and_detach_completes_in_every_release():
    for release in list(SLOTS)[1:]:
        with scene(release) as s:
            def session():
                before = threads(s.app.pid)
                d = Debugger(s)
                assert kinds(d.attach()) == [7, 5, 1, 13, 2, 10]
                assert threads(s.app.pid) == before + 1
                wait_until(lambda: d.callbacks >= 2, "callbacks")
                assert get(s, "cudbgDebuggerInitialized") == 1 and get(s, "cudbgResumeForAttachDetach") == 0
                d.ok(2, 0)
                assert s.state()["devices"][0]["suspended"]
                d.detach()
                state = s.state()
                assert not state["devices"][0]["suspended"] and state["phase"] == "engine", state
                assert get(s, "cudbgUseExternalDebugger") == 0
                assert kinds(d.attach(capabilities=9)) == [7, 1, 13, 2, 10]  # again, without push events
                d.detach()
                assert threads(s.app.pid) == before + 1
            in_child(session)


@test
def attach_through_the_descriptor():
    with scene("13.1") as s:
        def session():
            d = Debugger(s)
            assert kinds(d.attach(how="fd"))[-1] == 10
            d.detach()
        in_child(session)


@test
def attach_before_the_driver_is_started():
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


@test
def launch_with_the_session_in_the_environment():
    environment = {"CUDBG_GET_SESSION_FROM_ENV": "1", "CUDBG_IPC_FLAG_NAME": "1", "CUDBG_APICLIENT_PID": "4242",
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


@test
def sync_events_hold_the_thread_that_caused_them():
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


@test
def refusals_of_attach():
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


@test
def attach_possible_at_the_third_try():
    with scene() as s:
        def session():
            s.control("attach 40 times=2")
            d = Debugger(s)
            assert [d.engage() & 0xffffffff for _ in range(3)] == [40, 40, 0]
        in_child(session)


@test
def second_debugger_and_second_attach():
    with scene() as s:
        def session():
            d = Debugger(s)
            d.attach()
            assert d.engage() & 0xffffffff == 20
            assert "other developer tools" in s.app.err()
            d.detach()
            s.control("second inactive")
            assert d.engage() == 0
            assert get(s, "cudbgUseExternalDebugger") == 0 and get(s, "cudbgResumeForAttachDetach") == 2
            s.control("second refused")
            assert d.engage() & 0xffffffff == 20
        in_child(session)


@test
def revision_zero_does_nothing_silently():
    with scene() as s:
        say(s, "set cudbgDebuggerCapabilities 1")
        say(s, "set cudbgApiClientPid 5")
        say(s, "call cudbgApiAttach")
        assert get(s, "cudbgReportedDriverInternalErrorCode") == 0 and get(s, "cudbgUseExternalDebugger") == 0


@test
def nothing_moves_without_the_ipc_flag_or_a_running_debuggee():
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


@test
def replay_in_other_orders():
    with scene() as s:
        def session(wish, check):
            s.control(wish)
            d = Debugger(s)
            d.engage()
            assert d.initialize() == SUCCESS
            say(s, "set cudbgIpcFlag 1")
            check(d)
            say(s, "call cudbgApiDetach")
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


@test
def initialize_with_every_known_failure():
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


@test
def without_a_gpu_the_engine_comes_up_and_initialize_says_so():
    with scene(app=None) as s:
        s.gpu.unlink()
        s.app = s.start_app("try-init; listen")
        assert "cuInit 100" in s.app.out()

        def session():
            d = Debugger(s)
            assert d.engage() == 0 and get(s, "cudbgUseExternalDebugger") == 1
            assert d.initialize() == 39
        in_child(session)


@test
def initialize_may_make_a_device_file():
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


@test
def scripted_faults_of_single_calls():
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


@test
def a_call_that_never_returns():
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


@test
def the_target_dies_in_a_call():
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
        assert s.app.popen.wait(5) == -signal.SIGKILL


@test
def the_engine_dies_in_a_call():
    with small() as s:
        def session():
            d = Debugger(s)
            d.attach()
            before = threads(s.app.pid)
            s.control("kill-engine suspendDevice")
            d.call(2, 0)
            assert d.call(36, 0, ctypes.byref(u32())) == COMMUNICATION
            wait_until(lambda: threads(s.app.pid) == before - 1, "the thread ends")
        in_child(session)


@test
def the_debugger_dies():
    for wish, suspended in (("heal", False), ("keep-suspended on", True)):
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


@test
def after_a_dead_debugger_the_flags_stay_and_can_be_taken_back():
    with small() as s:
        def first():
            Debugger(s).attach()
            os._exit(0)

        def second():
            d = Debugger(s, label=77)
            assert d.engage() & 0xffffffff == 20
            say(s, "call cudbgApiDetach")
            say(s, "set cudbgDebuggerInitialized 0")
            say(s, "set cudbgIpcFlag 0")
            assert kinds(d.attach())[-1] == 10
            d.detach()
        in_child(first)
        in_child(second)


@test
def slow_locked_and_deadly_attach():
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
        assert s.app.popen.wait(5) == -signal.SIGKILL


@test
def descriptors_are_given_back():
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


@test
def storms_floods_and_calls_from_the_callback():
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
            wait_until(lambda: len(answers) == 2, "callback")
            assert answers == [44, NO_EVENT], answers
        in_child(session)


# -- what the calls say ---------------------------------------------------------------------------


def attached(release, check, **kwargs):
    with small(release, **kwargs) as s:
        def session():
            d = Debugger(s)
            d.attach()
            for dev in range(2):
                d.ok(2, dev)
            check(s, d)
        in_child(session)


@test
def coordinates_are_checked():
    def check(s, d):
        word = ctypes.byref(u64())
        assert d.call(22, 2, 0, 0, 0, word) == INVALID_DEVICE
        assert d.call(22, 0, 3, 0, 0, word) == INVALID_SM
        assert d.call(22, 0, 0, 8, 0, word) == INVALID_WARP
        assert d.call(22, 1, 0, 0, 0, word) == INVALID_WARP  # not resident
        assert d.call(22, 0, 0, 0, 32, word) == INVALID_LANE
        assert d.call(22, 0, 0, 3, 20, word) in (INVALID_LANE, INVALID_WARP, SUCCESS)
        assert d.call(22, 0, 0, 0, 0, None) == INVALID_ARGS
        assert d.call(2, 0) == 15
        d.ok(3, 0)
        assert d.call(3, 0) == RUNNING
        assert d.call(22, 0, 0, 0, 0, word) == RUNNING
    attached("12.4", check)


@test
def registers_memory_and_stacks_as_planted():
    def check(s, d):
        place = (0, 1, 0, 3)
        assert d.number(20, *place, 7) == 1 << 20 | 3 << 8 | 7
        s.control("register 0 1 0 3 7 0xdeadbeef; uniform 0 1 0 5 77; predicate 0 1 0 3 2 1")
        assert struct.unpack("<3I", d.bytes(98, 12, *place, 6, 3)) == (1 << 20 | 3 << 8 | 6, 0xdeadbeef,
                                                                       1 << 20 | 3 << 8 | 8)
        d.ok(28, *place, 8, 99)
        assert d.number(20, *place, 8) == 99
        assert struct.unpack("<I", d.bytes(115, 4, 0, 1, 0, 5, 1))[0] == 77
        assert struct.unpack("<7I", d.bytes(106, 28, *place, 7))[2] == 1
        s.control("memory global 0x700000000000 hex=0123456789abcdef; memory shared 0 1 0 16 size=8 fill=7;"
                  "memory local 0 1 0 3 0 hex=aabb; memory param 0 1 0 0x160 hex=11223344; memory const 0 0x9000 size=4")
        d.ok(101, u64(0x700000000002), (b := ctypes.create_string_buffer(4)), u32(4))
        assert b.raw == bytes.fromhex("456789ab")
        d.ok(102, u64(0x700000000000), ctypes.create_string_buffer(b"\x55", 1), u32(1))
        for slot, args, want in ((18, (0, 1, 0, 16), b"\7" * 8), (19, (*place, 0), b"\xaa\xbb"),
                                 (17, (0, 1, 0, 0x160), b"\x11\x22\x33\x44"), (15, (0, 0x9000), bytes(4)),
                                 (99, (*place, 0x7e0000000010), b"\7\7"), (99, (*place, 0x7d0000000000), b"\xaa"),
                                 (99, (*place, 0x700000000000), b"\x55")):
            assert d.bytes(slot, len(want), *args, after=(u32(len(want)),)) == want, (slot, args)
        assert d.call(101, u64(0x1234), b, u32(4)) == 30
        assert d.call(18, 0, 1, 0, u64(17), ctypes.create_string_buffer(8), u32(8)) == 8
        s.control("stack 0 1 0 0xff 0x30 0x50 syscall=1")
        assert d.number(67, *place) == 2 and d.number(74, *place) == 1
        addresses = {f["name"]: int(f["address"], 16) for m in s.state()["modules"] for f in m["functions"]}
        assert d.number(69, *place, 1, kind=u64) == addresses["spin"] + 0x50
        assert d.call(69, *place, 2, ctypes.byref(u64())) == 27
        assert d.call(69, 0, 1, 0, 9, 0, ctypes.byref(u64())) == 26
    attached("12.4", check)


@test
def images_functions_and_code():
    def check(s, d):
        module = s.state()["modules"][0]
        image = d.bytes(95, module["size"], 0, int(module["handle"], 16) + 0x10, 0, after=(u64(module["size"]),))
        assert image == CudaScene.CUBIN.read_bytes()
        relocated = d.bytes(95, module["size"], 0, int(module["handle"], 16) + 0x10, 1, after=(u64(module["size"]),))
        addresses = {f["name"]: int(f["address"], 16) for f in module["functions"]}
        for name in ("spin", "fault", DIVERGE):
            assert struct.pack("<Q", addresses[name]) in relocated and struct.pack("<Q", addresses[name]) not in image
        functions = d.bytes(126, 64, 0, int(module["handle"], 16), after=(u32(0), u32(4)))
        found = {struct.unpack_from("<QQ", functions, 16 * i)[1] for i in range(4)}
        assert found == set(addresses.values())
        assert d.bytes(14, 16, 0, addresses["spin"], after=(u32(16),)) in image
        assert d.call(14, 0, u64(4), ctypes.create_string_buffer(4), u32(4)) == 8
        assert d.call(95, 0, 1, 1, ctypes.create_string_buffer(4), u64(4)) == 33
    attached("12.4", check)


def plain_state(d, dev, n_sms, slot, size):
    """The same as getDeviceInfo, one warp at a time."""
    found = {}
    for sm in range(n_sms):
        valid = d.number(11, dev, sm, kind=u64)
        broken = d.number(10, dev, sm, kind=u64)
        for warp in range(64):
            if valid >> warp & 1:
                found[sm, warp] = d.bytes(slot, size, dev, sm, warp), broken >> warp & 1
    return found


def compare(batched, plain):
    assert set(batched) == set(plain)
    for key, (fields, more, broken, pcs) in batched.items():
        state, plain_broken = plain[key]
        grid, error_pc, bx, by, bz, valid, active, error_valid = struct.unpack_from("<QQ3IIII", state)
        assert (grid, bx, by, bz, valid, active, plain_broken) == (fields[0], *fields[1:4], *fields[7:9], broken), key
        assert error_valid == (3 in more) and (not error_valid or struct.unpack("<Q", more[3])[0] == error_pc)
        for lane in range(32):
            pc, x, y, z, exception = struct.unpack_from("<Q3II", state, 40 + 24 * lane)
            assert pcs.get(lane, 0) == pc, (key, lane)
            if lane == 0:
                assert fields[4:7] == (x, y, z)
            if valid >> lane & 1:
                assert exception == (struct.unpack("<I", more[2])[0] if 2 in more else 0)


@test
def batched_and_plain_state_agree_full_and_updated():
    for release, slot, size in (("12.4", 123, 820), ("12.7", 139, 848), ("12.9", 143, 852), ("13.4", 143, 852)):
        for grow in ("", "batched device=4 sm=12 warp=8 lane=16 unknown=24"):
            def check(s, d):
                def ask(query, known):
                    sizes = d.bytes(129, 532, 0)
                    room = struct.unpack_from("<I", sizes)[0]
                    buffer, used = ctypes.create_string_buffer(room), u32()
                    d.ok(130, 0, query, buffer, u32(room), ctypes.byref(used))
                    return debugger.decode(sizes, buffer.raw[:used.value], known)
                if grow:
                    s.control(grow)
                s.control("raise 0 0 0 14 errorpc=0x20")
                response, state = ask(1, {})
                assert response == 0  # the first answer is always full
                compare(state, plain_state(d, 0, 3, slot, size))
                d.ok(3, 0)
                d.ok(2, 0)  # the second kernel moved
                s.control("finish 1")
                response, state = ask(1, state)
                assert response == 1
                compare(state, plain_state(d, 0, 3, slot, size))
                response, again = ask(1, state)
                assert response == 1 and again == state
                assert ask(0, {})[0] == 0
                assert d.call(130, 0, 0, ctypes.create_string_buffer(16), u32(16), ctypes.byref(u32())) == 2
            attached(release, check)


@test
def all_fixtures_load_and_go_with_their_context():
    def check(s, d):
        for name in ("spin-sm_80.cubin", "spin-sm_90-g.cubin"):
            s.control(f"module last file={CudaScene.CUBIN.parent / name}")
        modules = s.state()["modules"]
        assert len({f["address"] for m in modules for f in m["functions"]}) == sum(len(m["functions"]) for m in modules)
        for module in modules:
            assert {"spin", "fault", DIVERGE} <= {f["name"] for f in module["functions"]}
        s.control(f"context-destroy {s.state()['contexts'][0]['handle']}")
        assert not s.state()["modules"] and not s.state()["grids"] and s.state()["devices"][0]["warps"] == 0
        d.ok(79)
    attached("12.4", check)


@test
def the_debuggers_process_writes_the_dump():
    def check(s, d):
        path = s.directory / "dump"
        d.ok(127, ctypes.create_string_buffer(str(path).encode()), 1)
        assert path.read_bytes()[:4] == b"\x7fELF" and path.stat().st_mode & 0o777 == 0o600
        assert d.call(127, ctypes.create_string_buffer(str(path).encode()), 1) == 37
        assert d.call(127, ctypes.create_string_buffer(b"/x"), 16) == INVALID_ARGS
    attached("12.5", check)


@test
def grids_and_blocks():
    def check(s, d):
        info = d.bytes(137, 112, 0, 2)
        dev, grid = struct.unpack_from("<IQ", info)
        assert (dev, grid) == (0, 2) and struct.unpack_from("<6I", info, 48) == (2, 1, 1, 40, 1, 1)
        assert d.number(88, 0, 2) == 2 and d.number(88, 0, 1) == 2
        assert d.call(88, 0, 99, ctypes.byref(u32())) == 21
        s.control("finish 2")
        assert d.number(88, 0, 2) == 4
        assert int(s.control("launch spin grid=4 block=8,4,2 cluster=2 at=2")) == 3
        blocks = {}
        for sm in range(3):
            for warp in range(8):
                if d.number(11, 0, sm, kind=u64) >> warp & 1 and d.number(87, 0, sm, warp, kind=u64) == 3:
                    place = (0, sm, warp)
                    block = struct.unpack("<3I", d.bytes(65, 12, *place))
                    assert struct.unpack("<3I", d.bytes(124, 12, *place)) == (block[0] // 2, 0, 0)
                    assert struct.unpack("<3I", d.bytes(138, 12, *place)) == (2, 1, 1)
                    blocks.setdefault(block, set()).add(struct.unpack("<3I", d.bytes(9, 12, *place, 9)))
        assert blocks == {(n, 0, 0): {(1, 1, 0), (1, 1, 1)} for n in range(4)}, blocks
    attached("13.4", check)


@test
def exceptions_stop_everything_with_and_without_the_suspend_event():
    for release, capabilities, expected in (("12.4", 3, None), ("12.5", 1, None), ("12.5", 3, ALL_SUSPENDED)):
        with small(release) as s:
            def session():
                d = Debugger(s)
                d.attach(capabilities)
                before = d.callbacks
                s.control("raise 0 0 1 14 lanes=0x10 errorpc=0x30")
                wait_until(lambda: d.callbacks > before, "callback")
                event = d.event()
                assert (event and event[0]) == expected, event
                if event:
                    assert struct.unpack_from("<QQ", event[1], 4) == (1, 1)
                d.ok(79)
                assert all(x["suspended"] for x in s.state()["devices"])
                assert d.number(10, 0, 0, kind=u64) == 2
                assert [d.number(50, 0, 0, 1, lane) for lane in (3, 4)] == [0, 14]
                assert struct.unpack("<Q", d.bytes(113, 8, 0, after=(u32(1),)))[0] == 1
            in_child(session)


@test
def breakpoints_are_hit_by_what_runs():
    def check(s, d):
        addresses = {f["name"]: int(f["address"], 16) for m in s.state()["modules"] for f in m["functions"]}
        handle = u64()
        assert d.call(150, 0, 4096, ctypes.byref(handle)) == 18
        d.ok(150, 0, addresses[DIVERGE] + 0x80, ctypes.byref(handle))
        before = d.callbacks
        d.ok(158)
        wait_until(lambda: d.callbacks > before, "callback")
        hit = [(sm, w) for sm in range(3) for w in range(8) if d.number(10, 0, sm, kind=u64) >> w & 1]
        assert len(hit) == 4, hit
        assert d.number(155, 0, *hit[0], kind=u64) == handle.value
        assert d.number(22, 0, *hit[0], 0, kind=u64) == addresses[DIVERGE] + 0x80
        d.ok(132, 0, *hit[0], 0, 2, 0, ctypes.byref(u64()))
        assert d.number(22, 0, *hit[0], 0, kind=u64) == addresses[DIVERGE] + 0xa0
        assert d.call(152, handle) == 47
        d.ok(153, handle)
        assert d.number(154, handle) == 0
        d.ok(151, handle)
        assert s.state()["breakpoints"] == 0
    attached("13.2", check)


@test
def every_slot_answers_after_attach():
    def check(s, d):
        for slot in range(2, 164):
            if slot in (44, 62, 73, 147):
                continue
            room = [ctypes.create_string_buffer(65536) for _ in range(10)]
            assert d.call(slot, *room) in range(48), slot  # pointers as numbers: out of every range
            assert d.call(slot, *[0] * 10) in range(48), slot
        assert d.number(35) == 2
        assert d.call(41, 0, 0, None, None, 0) in (INVALID_ARGS, NOT_SUPPORTED)
    attached("13.4", check)


@test
def a_full_gpu_is_read_quickly():
    with scene("12.9", app=FULL) as s:
        def session():
            d = Debugger(s)
            d.attach()
            start = time.monotonic()
            d.ok(2, 0)
            sizes = d.bytes(129, 532, 0)
            room = struct.unpack_from("<I", sizes)[0]
            buffer, used = ctypes.create_string_buffer(room), u32()
            d.ok(130, 0, 0, buffer, u32(room), ctypes.byref(used))
            d.ok(3, 0)
            taken = time.monotonic() - start
            state = debugger.decode(sizes, buffer.raw[:used.value], {})[1]
            assert len(state) == 8448, len(state)
            print(f"  8448 warps, {used.value} bytes: {taken * 1000:.0f} ms")
        in_child(session)


@test
def a_program_execs_or_dies():
    with scene() as s:
        say(s, "exec sleep 60", wait=False)
        wait_until(lambda: s.state() is None, "the GPU is left")
    with scene() as s:
        s.app.popen.kill()
        wait_until(lambda: s.state() is None, "the GPU is left")


@test
def mistakes_in_scripts_are_named():
    with scene() as s:
        for line, number in (("nonsense", errno.EINVAL), ("launch none", errno.ENOENT), ("devices 1", errno.EBUSY),
                             ("warp 0 999 0", errno.ENOENT), ("fail nosuchslot 3", errno.EINVAL)):
            try:
                s.control(line)
                raise AssertionError(line)
            except OSError as error:
                assert error.errno == number and line in str(error), error


if __name__ == "__main__":
    main(__file__)
