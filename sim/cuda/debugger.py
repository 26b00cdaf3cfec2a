# SPDX-License-Identifier: MIT
"""The debugger API through ctypes, for tests of the simulator itself: knows nothing of libcudbgshim."""
import contextlib
import ctypes
import os
import signal
import pathlib
import struct
import time
import traceback

from harness import CudaScene, PATIENCE, status, wait_until

SUCCESS, INVALID_ARGS, UNINITIALIZED, INVALID_DEVICE, INVALID_SM, INVALID_WARP, INVALID_LANE = 0, 4, 5, 11, 12, 13, 14
RUNNING, NO_EVENT, COMMUNICATION, NOT_SUPPORTED = 16, 22, 28, 46
ATTACH_COMPLETE, DETACH_COMPLETE, ALL_SUSPENDED = 10, 11, 14
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
# The engine's socket is named after it, for all on this machine.
LABEL = os.getpid()


def u32(value=0):
    return ctypes.c_uint32(value)


def u64(value=0):
    return ctypes.c_uint64(value)


def network_sockets(pid):
    """Lines of /proc/net that are about sockets of this process, by protocol."""
    fds = pathlib.Path(f"/proc/{pid}/fd")
    inodes = set()
    for fd in fds.iterdir():
        with contextlib.suppress(OSError):
            kind, _, rest = os.readlink(fd).partition(":[")
            if kind == "socket":
                inodes.add(rest.rstrip("]"))
    found = {}
    for table in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6", "icmp", "netlink", "packet"):
        path = pathlib.Path(f"/proc/{pid}/net/{table}")
        lines = [line for line in path.read_text().splitlines()[1:] if inodes & set(line.split())] if path.exists() else []
        if lines:
            found[table] = lines
    return found


def in_child(function):
    """A process holds one session: run function() in one of its own."""
    child = os.fork()
    if child == 0:
        code = 1
        signal.alarm(120)  # an answer that never comes is a failure
        try:
            function()
            code = 0
        except BaseException:  # everything must end in _exit
            traceback.print_exc()
        finally:
            os._exit(code)
    result = os.waitpid(child, 0)[1]
    assert result == 0, f"child: status {result:#x}, see above"


def say(scene, line, app=None, wait=True):
    """One command to the program; its answer lines, or what waits for them."""
    app = app or scene.app
    before = len(app.out().splitlines())
    app.popen.stdin.write(line.encode() + b"\n")
    app.popen.stdin.flush()

    def answered():
        # Not poll(): this may be a child that has not started the program.
        assert status(app.pid).get("State", "Z")[0] != "Z", f"the program ended: {app.err()}"
        lines = app.out().splitlines()[before:]
        return lines if lines and (lines[-1] == "ok" or lines[-1].startswith("error ")) else None

    def answer():
        lines = wait_until(answered, line)
        assert lines[-1] == "ok", (line, lines, app.err())
        return lines[:-1]
    return answer() if wait else answer


def get(scene, name):
    return int(say(scene, f"get {name}")[0].split()[1])


class Debugger:
    """The library loaded into this process."""

    def __init__(self, scene, label=LABEL, session=0):
        self.scene, self.label, self.session = scene, label, session
        self.lib = ctypes.CDLL(str(scene.libcuda))
        numbers = [u32(), u32(), u32()]
        assert self.lib.cudbgGetAPIVersion(*map(ctypes.byref, numbers)) == SUCCESS
        self.version = tuple(n.value for n in numbers)
        self.table = ctypes.POINTER(ctypes.c_void_p)()
        assert self.lib.cudbgGetAPI(*numbers, ctypes.byref(self.table)) == SUCCESS
        self.callbacks = 0
        self.keep = None

    def call(self, slot, *args):
        converted = [a if not isinstance(a, int) else u64(a) for a in args]
        return ctypes.CFUNCTYPE(ctypes.c_uint32)(self.table[slot])(*converted)

    def ok(self, slot, *args):
        result = self.call(slot, *args)
        assert result == SUCCESS, (slot, result)

    def number(self, slot, *args, kind=u32):
        value = kind()
        self.ok(slot, *args, ctypes.byref(value))
        return value.value

    def bytes(self, slot, size, *args, after=()):
        buffer = ctypes.create_string_buffer(size)
        self.ok(slot, *args, buffer, *after)
        return buffer.raw

    # -- the debuggee's side, done by the debuggee itself ---------------------------------------

    def engage(self, capabilities=1, how="call"):
        scene = self.scene
        say(scene, "set cudbgReportedDriverInternalErrorCode 0")
        for name, value in (("cudbgApiClientPid", self.label), ("cudbgApiClientRevision", self.version[2]),
                            ("cudbgSessionId", self.session), ("cudbgDebuggerCapabilities", capabilities)):
            say(scene, f"set {name} {value}")
        if how == "call":
            say(scene, "call cudbgApiAttach")
        else:
            fd = get(scene, "cudbgInitiateDebuggerAttachProcedureFd")
            with open(f"/proc/{scene.app.pid}/fd/{fd}", "wb", buffering=0) as pipe:
                pipe.write(b"\0")
            wait_until(lambda: get(scene, "cudbgUseExternalDebugger"), "attach through the descriptor")
        return get(scene, "cudbgReportedDriverInternalErrorCode")

    def image(self):
        """What our own libcuda must hold."""
        for name, value in (("cudbgApiClientPid", self.label), ("cudbgApiClientRevision", self.version[2]),
                            ("cudbgSessionId", self.session)):
            ctypes.c_uint32.in_dll(self.lib, name).value = value

    def initialize(self):
        self.image()

        def notify(data):
            self.callbacks += 1

        self.keep = CALLBACK(notify)
        self.ok(44, self.keep, None)
        return self.call(0)

    def event(self, queue=0):
        """(kind, bytes) of the next event, or None."""
        buffer = ctypes.create_string_buffer(92)
        result = self.call(94, queue, buffer)
        if result == NO_EVENT:
            return None
        assert result == SUCCESS, result
        return struct.unpack_from("<I", buffer)[0], buffer.raw

    def events_until(self, kind, patience=PATIENCE):
        seen, deadline = [], time.monotonic() + patience
        while True:
            event = self.event()
            if event is None:
                assert time.monotonic() < deadline, f"no event {kind}; had {[k for k, _ in seen]}"
                self.ok(79)
                time.sleep(0.001)
                continue
            seen.append(event)
            if event[0] == kind:
                self.ok(79)
                return seen

    def attach(self, capabilities=1, how="call"):
        """The whole way; the events of the replay."""
        assert self.engage(capabilities, how) == 0
        resume = get(self.scene, "cudbgResumeForAttachDetach")
        assert self.initialize() == SUCCESS
        say(self.scene, "set cudbgIpcFlag 1")
        return self.events_until(ATTACH_COMPLETE) if resume else []

    def detach(self):
        say(self.scene, "call cudbgApiDetach")
        resume = get(self.scene, "cudbgResumeForAttachDetach")
        assert resume == 3
        self.ok(105, resume)
        say(self.scene, "set cudbgDebuggerCapabilities 0")
        say(self.scene, "set cudbgDebuggerInitialized 0")
        self.events_until(DETACH_COMPLETE)
        say(self.scene, "set cudbgIpcFlag 0")
        self.ok(1)


def decode(sizes, data, known):
    """{(sm, warp): (fields, {lane: pc})} of a getDeviceInfo answer; `known` is the state before."""
    words = struct.unpack("<133I", sizes)
    device, sm, warp, lane = (words[i:i + 33] for i in (1, 34, 67, 100))
    at = 0

    def take(size):
        nonlocal at
        piece = data[at:at + size]
        assert len(piece) == size, "the buffer is too short"
        at += size
        return piece

    def attributes(level, flags):
        return {bit: take(level[1 + bit]) for bit in range(32) if flags >> bit & 1}

    def mask(found, bit, default):
        return int.from_bytes(found[bit], "little") if bit in found else default

    head = take(device[0])
    response, flags = struct.unpack_from("<II", head)
    found = attributes(device, flags)
    updated, active = mask(found, 0, (1 << 256) - 1), mask(found, 1, 0)
    state = dict(known) if response else {}
    state = {key: value for key, value in state.items() if not (updated >> key[0] & 1 and not active >> key[0] & 1)}
    for s in range(256):
        if not (updated & active) >> s & 1:
            continue
        head = take(sm[0])
        valid, broken, flags = struct.unpack_from("<QQI", head)
        changed = mask(attributes(sm, flags), 0, (1 << 64) - 1)
        for w in range(64):
            if changed >> w & 1:
                state.pop((s, w), None)
            if not (changed & valid) >> w & 1:
                continue
            fields = struct.unpack_from("<Q3I3IIII", take(warp[0]))
            more = attributes(warp, fields[9])
            pcs = {}
            for n in range(32):
                if (fields[7] & mask(more, 0, 0xffffffff)) >> n & 1:
                    pcs[n] = struct.unpack_from("<Q", take(lane[0]))[0]
                    if fields[9] & 2:
                        attributes(lane, struct.unpack("<I", take(4))[0])
            state[s, w] = fields[:9], more, broken >> w & 1, pcs
    assert at == len(data), (at, len(data))
    return response, state


# -- scenes ----------------------------------------------------------------------------------------

DIVERGE = "_Z7divergeIfEvPT_i"
FULL = ("init; context 0; module @CUBIN@; gpu launch spin grid=264 block=1024 spread=5; "
        f"gpu launch {DIVERGE} grid=2 block=40 active=0xffff idle=0x60 pc=0x40 progress=3; listen")


def scene(release="12.4", app=CudaScene.APP, **kwargs):
    return CudaScene(app=app, release=release, start_agent=False, **kwargs)


def small(release="12.4", **kwargs):
    """Two small GPUs; the second has nothing to do."""
    return scene(release, sim="devices 2 sms=3 warps=8", app=FULL.replace("264", "2").replace("1024", "64"), **kwargs)


def kinds(events):
    return [kind for kind, _ in events]
