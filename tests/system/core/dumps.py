# SPDX-License-Identifier: MIT
"""What tests of core files of both vendors do alike."""
import base64
import json
import os
import socket
import struct
import subprocess

from harness import BIN, LONG_STOP, ROOT, STOP_MS, Scene

CODE = ROOT / "tests/data/codeobj"
LOAD = f"load {CODE / 'spin-gfx90a.co'}"
APP = f"runtime ttmp; {LOAD}; queues 2; spin"
FAILURE, BUDGET, PARTIAL = 1, 7, 8


def scene(gpus="gfx942", app=APP, **kwargs):
    return Scene(app=app, gpus=gpus, **kwargs)


def dump(s, *argv, **kwargs):
    return s.ctl("dump", s.app.pid, LONG_STOP, *argv, **kwargs)


def start_dump(s, *argv):
    """In the background, saying nothing."""
    return subprocess.Popen([BIN / "gpu-agentctl", "dump", str(s.app.pid), LONG_STOP, *map(str, argv)],
                            env={**os.environ, "GPU_AGENT_SOCKET": str(s.socket)}, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)


def begin(s, **params):
    return s.rpc.call("core.begin", session=s.session, max_stop_ms=STOP_MS, **params)


def fetch(s, size=1 << 20):
    """The file, through the socket."""
    begun = begin(s)
    return begun, read_begun(s, begun, size)


def read_begun(s, begun, size=1 << 20):
    data, at = b"", 0
    while at < begun["bytes"]:
        piece = s.rpc.call("core.read", session=s.session, offset=at, size=size)
        bytes_ = base64.b64decode(piece["data"]) or bytes(piece["size"])
        assert len(bytes_) == piece["size"] and piece["lost_bytes"] == 0
        data += bytes_
        at += piece["size"]
    assert s.rpc.call("core.read", session=s.session, offset=at, size=1)["size"] == 0
    return data


# -- core.write: the core through a descriptor ------------------------------------------------------

RECORD = struct.Struct("=IIQ")
DATA, HOLE, END, ERROR = 1, 2, 3, 4


def answers_fds(rpc, numbers):
    """(the replies to those requests as they come, the descriptors that came with them)"""
    wanted, replies, fds = set(numbers), [], []
    while wanted:
        while b"\n" not in rpc.buffer:
            data, got, _, _ = socket.recv_fds(rpc.sock, 65536, 8)
            fds += got
            if not data:
                raise EOFError("the agent closed the connection")
            rpc.buffer += data
        reply = rpc.read_message()
        if reply.get("id") in wanted:
            wanted.remove(reply["id"])
            replies.append(reply)
    return replies, fds


def answer_fds(rpc, number):
    (reply,), fds = answers_fds(rpc, [number])
    return reply, fds


def write_core(s, rpc=None, **params):
    """The reading end of a core on its way."""
    rpc = rpc or s.rpc
    rpc.send("core.write", session=s.session, **params)
    reply, fds = answer_fds(rpc, rpc.next_id)
    assert "result" in reply and len(fds) == 1, (reply, fds)
    rpc.schema.check_result("core.write", reply["result"])
    stream = socket.socket(fileno=fds[0])
    stream.settimeout(60)
    return stream


def exactly(stream, size):
    data = b""
    while len(data) < size:
        piece = stream.recv(size - len(data))
        if not piece:
            raise EOFError(f"the stream ends {size - len(data)} bytes too early")
        data += piece
    return data


def records(stream):
    """Each (kind, size, bytes) to the end of the stream."""
    while True:
        try:
            kind, zero, size = RECORD.unpack(exactly(stream, RECORD.size))
        except EOFError:
            return
        assert zero == 0, zero
        yield kind, size, exactly(stream, size) if kind in (DATA, ERROR) else b""


def received(stream):
    """(the core, bytes of it that are lost, bytes that were told instead of sent)"""
    core, told = [], 0
    for kind, size, data in records(stream):
        assert kind != ERROR, json.loads(data)
        if kind == END:
            assert not stream.recv(1), "nothing comes behind the end"
            stream.close()
            return b"".join(core), size, told
        core.append(data if kind == DATA else bytes(size))
        told += size if kind == HOLE else 0
    raise EOFError("the core is not whole")
