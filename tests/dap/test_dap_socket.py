#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Editors on the agent's own socket: a first message of the Debug Adapter Protocol makes a connection an adapter."""
import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import sys
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from dapclient import SocketSession, runs_on, scene
from harness import BIN, PATIENCE, CudaScene, Rpc, Scene, as_user, at_once, children_named, need_root, status, wait_until

USER, OTHER = 54101, 54102
CHANNEL = 5  # of an adapter to the agent: IPC_FD_FRONT
# Sanitizer builds report leaks and unmap shadow memory at exit; the promise is about the product.  Less than the
# seven seconds after which front has a worker killed that does not leave.
SLACK_S = 5.0 if "asan" in str(BIN) else 0.0


def adapters(s):
    return children_named(s.agentd.pid, "gpu-agent-adapter")


def nothing_is_left(s):
    wait_until(lambda: not adapters(s), "the adapter ends")
    runs_on(s)


def framed(**message):
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def request(seq, command, **arguments):
    return framed(seq=seq, type="request", command=command, arguments=arguments)


def test_a_session():
    with scene() as s, SocketSession(s.socket) as a:
        assert a.start(pid=s.app.pid)["supportsReadMemoryRequest"]
        assert a.pause()["reason"] == "pause" and s.target_state()["suspended_queues"] == 2
        pc = a.frame()["instructionPointerReference"]
        assert int(a.values("Wave")["pc"], 16) == int(pc, 16) and a.values("Group statistics")["waves"] == "4"
        lines = a.call("disassemble", memoryReference=pc, instructionOffset=-200, instructionCount=400)["instructions"]
        # A child of the adapter has found LLVM, behind the filter.
        assert len(lines) == 400 and lines[200]["instruction"].startswith("global_load"), lines[200]
        listed, = s.rpc.call("session.list")["sessions"]
        assert listed["writer_pid"] == os.getpid(), "the editor is the client, not its adapter"
        assert s.rpc.call("agent.status")["connections"] == 2
        a.call("continue", threadId=1)
        assert s.target_state()["suspended_queues"] == 0
        assert "coreFile" not in str(a.messages)
        assert a.finish()
        nothing_is_left(s)
        assert s.rpc.call("agent.status")["connections"] == 1


def test_cuda():
    with CudaScene(release="12.4", sim="devices 2 sms=3 warps=8") as s, SocketSession(s.socket) as a:
        a.start(pid=s.app.pid)
        assert a.pause()["allThreadsStopped"] and "spin" in a.frame()["name"]
        a.finish()
        wait_until(lambda: not adapters(s) and s.worker_pids() == [], "all leave")
        assert not any(d["suspended"] for d in s.state()["devices"])


def test_the_first_body_decides():
    """Byte by byte, all at once, or not at all."""
    with scene() as s:
        with SocketSession(s.socket) as a:
            a.conversation.is_deaf = True
            for byte in request(1, "initialize", adapterID="x"):
                a.write(bytes([byte]))
            assert a.response(1)["success"]
        with SocketSession(s.socket) as a:
            sent = [("initialize", {"adapterID": "x"}), ("attach", {"pid": s.app.pid}), ("threads", {}), ("configurationDone", {}),
                    ("stackTrace", {"threadId": 1}), ("evaluate", {"expression": "pc", "pad": "x" * 200000}), ("disconnect", {})]
            a.conversation.is_deaf = True
            a.write(b"".join(request(i + 1, command, **arguments) for i, (command, arguments) in enumerate(sent)))
            answers = [a.response(i + 1) for i in range(len(sent))]
            assert [r["command"] for r in answers] == [command for command, _ in sent]
            assert all(r["success"] for r in answers if r["command"] not in ("attach", "threads", "stackTrace", "evaluate")), answers
            assert a.is_over()
        with SocketSession(s.socket) as a:  # any request of the protocol is one
            assert "first" in a.error("threads")
            assert a.call("initialize", adapterID="x")
        for part in (b"Content-Length: 40\r\n\r\n{\"seq\":1,", request(1, "initialize")[:-1], b"C"):
            with SocketSession(s.socket) as a:
                a.write(part)
        nothing_is_left(s)
        # What is neither of the two protocols, and what is JSON-RPC, front answers itself.
        for message in ({"seq": 1, "type": "request"}, {"seq": 1, "type": "event", "event": "x"}, {"type": "request", "command": "x"},
                        {"seq": "1", "type": "request", "command": "x"}, {"seq": 1, "type": "request", "command": {}},
                        {"seq": 1, "type": "request", "command": "initialize", "jsonrpc": "2.0"}, [], {"a": {"type": "request"}}):
            with SocketSession(s.socket) as a:
                body = json.dumps(message).encode()
                a.conversation = None
                a.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
                assert a.read()["error"]["code"] in (-32600, -32601), message
        with SocketSession(s.socket) as a:
            a.conversation = None
            a.write(framed(jsonrpc="2.0", id=1, method="agent.hello"))
            assert "debug_adapter" in a.read()["result"]["features"]
            a.write(request(2, "initialize"))
            assert a.read()["error"]["code"] == -32600, "decided for the life of the connection"
        assert not adapters(s)
        rpc = Rpc(s.socket)
        rpc.send_raw(b'{"seq":1,"type":"request","command":"initialize"}\n')
        assert rpc.read_message()["error"]["code"] == -32600, "the protocol has headers"
        rpc.close()


def test_rights_are_those_of_the_editor():
    need_root()
    with Scene(app="runtime ttmp; queues 2; spin", gpus="gfx90a", user_mode=False, app_user=USER) as s:
        s.control(f"waves {s.app.pid} 0 halted 4 0x7f0000001000")

        def owner():
            with SocketSession(s.socket) as a:
                a.start(pid=s.app.pid)
                assert a.pause()["reason"] == "pause"
                uid = lambda p: status(p)["Uid"].split()  # noqa: E731
                adapter, = adapters(s)
                shown = status(adapter)
                assert uid(adapter) == [str(USER)] * 4 and shown["Gid"].split() == [str(USER)] * 4, shown
                assert shown["Groups"] == "7 9" and shown["NoNewPrivs"] == "1", shown
                for kind in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
                    assert int(shown[kind], 16) == 0, shown
                assert shown["Seccomp"] == "2", shown
                with contextlib.suppress(PermissionError):  # a sanitizer's leak check wants to be traced
                    assert SLACK_S or not os.listdir(f"/proc/{adapter}/fd"), "who owns it may not look into it"
                a.finish()

        def stranger():
            with SocketSession(s.socket) as a:
                a.call("initialize", adapterID="x")
                assert "belongs to another user" in a.error("attach", pid=s.app.pid)
                a.event("terminated")
                a.finish()

        as_user(USER, owner, groups=(7, 9))
        wait_until(lambda: not adapters(s), "the adapter ends")
        as_user(OTHER, stranger)
        wait_until(lambda: not adapters(s), "the adapter ends")
        with SocketSession(s.socket) as a:
            a.start(pid=s.app.pid)
            a.pause()
            adapter, = adapters(s)
            assert int(status(adapter)["CapEff"], 16) == 0, "root's adapter has no capabilities either"
            a.finish()
        nothing_is_left(s)


def asked_in_place_of(adapter, method):
    """What the agent answers a request on the channel of an adapter, which is stopped meanwhile."""
    libc = ctypes.CDLL(None, use_errno=True)
    os.kill(adapter, signal.SIGSTOP)
    try:
        wait_until(lambda: status(adapter)["State"][0] == "T", "the adapter is stopped")
        pidfd = os.pidfd_open(adapter)
        fd = libc.syscall(438, pidfd, CHANNEL, 0)  # pidfd_getfd
        os.close(pidfd)
        assert fd >= 0, os.strerror(ctypes.get_errno())
        answer = b""
        with socket.socket(fileno=fd) as channel:
            channel.sendall(json.dumps({"jsonrpc": "2.0", "id": "here", "method": method}).encode() + b"\n")
            while not answer.endswith(b"\n"):
                # The adapter does not wait on it, and these are its flags.
                assert select.select([channel], [], [], PATIENCE)[0], answer
                answer += channel.recv(65536, socket.MSG_DONTWAIT)
        return json.loads(answer)["result"]
    finally:
        os.kill(adapter, signal.SIGCONT)


def test_a_reload_makes_nobody_an_administrator():
    """The channel between the agent and the adapter is root's; the editor on the other side is not."""
    need_root()
    with Scene(user_mode=False, app=None) as s:
        ready, done = os.pipe(), os.pipe()

        def editor():
            with SocketSession(s.socket) as a:
                a.call("initialize", adapterID="x")
                os.write(ready[1], b"x")
                os.read(done[0], 1)

        child = os.fork()
        if child == 0:
            with contextlib.suppress(AssertionError):  # said already
                as_user(USER, editor)
            os._exit(0)
        try:
            os.close(ready[1])
            assert os.read(ready[0], 1), "the editor has its adapter"
            adapter, = adapters(s)
            assert not asked_in_place_of(adapter, "agent.hello")["admin"]
            with open(s.directory / "agentd.conf", "a", encoding="ascii") as f:
                f.write("[limits]\nconnections_per_user = 33\n")
            os.kill(s.agentd.pid, signal.SIGHUP)
            wait_until(lambda: s.rpc.call("agent.hello")["limits"]["connections"] == 33, "the reload")
            hello = asked_in_place_of(adapter, "agent.hello")
            assert hello["uid"] == USER and not hello["admin"], hello
        finally:
            os.write(done[1], b"x")
            os.waitpid(child, 0)
            for fd in (ready[0], *done):
                os.close(fd)


def test_not_from_another_user_namespace():
    """There an editor is less than the same user is out here."""
    need_root()
    libc = ctypes.CDLL(None, use_errno=True)
    with scene() as s:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                if libc.unshare(0x10000000) < 0:
                    os._exit(77)
                with SocketSession(s.socket) as a:
                    assert "user namespace" in a.error("initialize", adapterID="x")
                    assert a.is_over()
                code = 0
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code == 77:
            raise SkipTest("no user namespaces here")
        assert code == 0 and not adapters(s)


def test_death_of_either_side():
    for kill in ("adapter", "editor", "front", "worker"):
        with scene() as s, SocketSession(s.socket) as a:
            a.start(pid=s.app.pid)
            a.pause()
            assert s.target_state()["suspended_queues"] == 2
            adapter, = adapters(s)
            if kill == "editor":
                a.socket.close()
            else:
                os.kill({"adapter": adapter, "front": s.front_pid(), "worker": s.worker_pids()[0]}[kill], signal.SIGKILL)
            at_once(lambda: not s.target_state()["enabled"], f"released by the death of the {kill}", slack=SLACK_S)
            if kill == "worker":
                a.event("terminated")
                a.finish()
            elif kill != "editor":
                assert a.is_over()
            wait_until(lambda: status(adapter).get("State", "Z")[0] == "Z", "the adapter ends")
            if kill != "front":
                nothing_is_left(s)
                # front hears of the end of a worker after it.
                rpc = s.connect()
                wait_until(lambda: rpc.call("agent.status")["sessions"] == 0, "session over")


def test_the_agent_that_stops():
    with scene() as s, SocketSession(s.socket) as a:
        a.start(pid=s.app.pid)
        adapter, = adapters(s)
        assert s.agentd.stop() == 0
        assert a.is_over() and status(adapter).get("State", "Z")[0] == "Z"
        assert not s.target_state()["enabled"]


def test_the_agent_that_is_killed():
    with scene() as s, SocketSession(s.socket) as a:
        a.start(pid=s.app.pid)
        adapter, = adapters(s)
        os.kill(s.agentd.pid, signal.SIGKILL)
        assert a.is_over()
        wait_until(lambda: status(adapter).get("State", "Z")[0] == "Z", "the adapter ends")
        wait_until(lambda: not s.target_state()["enabled"], "released")


def test_editors_of_a_user_are_bounded():
    need_root()
    with Scene(app=None, gpus="gfx90a", user_mode=False, start_agent=False) as s, contextlib.ExitStack() as stack:
        (s.directory / "agentd.conf").write_text("[agent]\nuser = nobody\nsocket_group =\n[limits]\nsessions_per_user = 3\n")
        s.start_agentd(user_mode=False)
        open_ones = [stack.enter_context(SocketSession(s.socket)) for _ in range(3)]
        for a in open_ones:
            a.call("initialize", adapterID="x")
        assert len(adapters(s)) == 3
        with SocketSession(s.socket) as a:
            assert "too many debug adapters" in a.error("initialize", adapterID="x")
            assert a.is_over()

        def other():
            with SocketSession(s.socket) as b:
                assert b.call("initialize", adapterID="x")["supportsCancelRequest"]

        as_user(OTHER, other)
        open_ones[0].socket.close()
        wait_until(lambda: len(adapters(s)) == 2, "the adapter ends")
        with SocketSession(s.socket) as a:
            assert a.call("initialize", adapterID="x")["supportsCancelRequest"]


def test_an_editor_that_never_reads_stops_nothing():
    with scene() as s, SocketSession(s.socket) as a:
        a.start(pid=s.app.pid)
        a.pause()
        a.socket.settimeout(0.2)
        with contextlib.suppress(TimeoutError):
            for i in range(20000):
                a.write(request(100 + i, "evaluate", expression="registers", context="repl"))
        wait_until(lambda: not s.target_state()["suspended_queues"], "queues run again")
        assert s.connect().call("agent.status")["sessions"] == 1


def test_no_core_files():
    """They are files of the editor's, which the agent has no business with."""
    with scene() as s, SocketSession(s.socket) as a:
        a.call("initialize", adapterID="x")
        assert "gpu-agentctl dap" in a.error("attach", coreFile="/tmp/core")
        a.call("attach", pid=s.app.pid)
        a.finish()
        nothing_is_left(s)
