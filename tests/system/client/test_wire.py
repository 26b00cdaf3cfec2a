#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The socket as strangers use it: framing, limits, slow readers, quotas, activation."""
import json
import os
import socket
import subprocess
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import BIN, Scene, rss_kib, wait_until

PARSE_ERROR, INVALID_REQUEST, NOT_FOUND, INVALID_PARAMS, TOO_LARGE = -32700, -32600, -32601, -32602, -32009


def hello(i=1):
    return json.dumps({"jsonrpc": "2.0", "id": i, "method": "agent.hello"}).encode()


def headers(body):
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def read_framed(sock):
    """One message; reads not a byte more than it."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = sock.recv(1)
        assert byte, head
        head += byte
    size = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    body = b""
    while len(body) < size:
        body += sock.recv(size - len(body))
    return json.loads(body)


def daemon_only():
    return Scene(app=None)


def connect(s):
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(20)
    sock.connect(str(s.socket))
    return sock


def test_broken_json_is_answered_and_the_connection_lives():
    cases = [
        (b"{", PARSE_ERROR), (b"{\"jsonrpc\":\"2.0\"", PARSE_ERROR), (b"[1,]", PARSE_ERROR), (b"{}", INVALID_REQUEST),
        (b"[]", INVALID_REQUEST), (b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"agent.hello\"}", INVALID_REQUEST),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}", INVALID_REQUEST),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no.such\"}", NOT_FOUND),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"agent.hello\",\"params\":{\"x\":1}}", INVALID_PARAMS),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"agent.hello\",\"params\":{\"client\":5}}", INVALID_PARAMS),
        (b"{\"a\":\"\xff\"}", PARSE_ERROR), (b"{\"a\":" * 40 + b"1" + b"}" * 40, PARSE_ERROR),
    ]
    with daemon_only() as s:
        for text, code in cases:
            s.rpc.send_raw(text + b"\n")
            reply = s.rpc.read_message()
            assert reply["error"]["code"] == code, (text, reply)
            assert reply["error"]["message"], reply
        assert s.rpc.call("agent.hello")["protocol"]


def test_both_framings_are_answered_in_kind():
    with daemon_only() as s:
        sock = connect(s)
        sock.sendall(headers(hello(7)) + b"content-length: %d\r\nContent-Type: x\r\n\r\n" % len(hello(8)) + hello(8))
        data = b""
        while data.count(b"jsonrpc") < 2:
            data += sock.recv(65536)
        assert data.startswith(b"Content-Length: ") and b'"id":7' in data and b'"id":8' in data, data
        sock.close()
        sock = connect(s)
        for byte in headers(hello(9)):
            sock.sendall(bytes([byte]))
        assert read_framed(sock)["id"] == 9
        sock.close()


def test_half_a_header_waits_and_a_bad_one_is_refused():
    with daemon_only() as s:
        sock = connect(s)
        sock.sendall(b"Content-Le")
        time.sleep(0.05)
        assert s.rpc.call("agent.status")["connections"] == 2
        sock.shutdown(socket.SHUT_WR)
        assert read_framed(sock)["error"]["code"] == PARSE_ERROR
        assert sock.recv(10) == b""
        for bad in (b"Content-Length: -5\r\n\r\n", b"Content-Length: x\r\n\r\n", b"Content-Type: a\r\n\r\n{}",
                    b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", b"C" * 5000):
            sock = connect(s)
            sock.sendall(bad)
            assert read_framed(sock)["error"]["code"] == PARSE_ERROR, bad
            assert sock.recv(10) == b"", bad
        wait_until(lambda: s.rpc.call("agent.status")["connections"] == 1, "bad connections are closed")


def test_two_mebibyte_requests_are_refused():
    big = b'{"jsonrpc":"2.0","id":1,"method":"agent.hello","params":{"client":"' + b"x" * (2 << 20) + b'"}}'
    with daemon_only() as s:
        s.rpc.send_raw(big + b"\n")
        reply = s.rpc.read_message()
        assert reply["error"]["code"] == TOO_LARGE and reply["error"]["data"]["hint"], reply
        assert s.rpc.call("agent.hello")
        sock = connect(s)
        sock.sendall(headers(big) + headers(hello(3)))
        assert read_framed(sock)["error"]["code"] == TOO_LARGE
        assert read_framed(sock)["id"] == 3
        assert rss_kib(s.front_pid()) < (400 << 10)


def test_batches_are_answered_together():
    with Scene() as s:
        session = s.attach()
        batch = [{"jsonrpc": "2.0", "id": "a", "method": "agent.hello"},
                 {"jsonrpc": "2.0", "method": "agent.status"},
                 {"jsonrpc": "2.0", "id": 2, "method": "gpu.queues", "params": {"session": session}},
                 {"jsonrpc": "2.0", "id": 3, "method": "no.such"}, 5]
        s.rpc.send_raw(json.dumps(batch).encode() + b"\n")
        reply = s.rpc.read_message()
        by_id = {r["id"]: r for r in reply}
        assert len(reply) == 4 and "result" in by_id["a"] and len(by_id[2]["result"]["queues"]) == 4, reply
        assert by_id[3]["error"]["code"] == NOT_FOUND and by_id[None]["error"]["code"] == INVALID_REQUEST
        s.rpc.send_raw(json.dumps([{"jsonrpc": "2.0", "method": "agent.hello"}] * 3).encode() + b"\n")
        assert s.rpc.call("agent.hello")
        s.rpc.send_raw(json.dumps([batch[0]] * 65).encode() + b"\n")
        assert s.rpc.read_message()["error"]["code"] == INVALID_REQUEST


def test_ids_come_back_as_they_were():
    with daemon_only() as s:
        for text in (b"1", b"-7", b'"x\\u00e9"', b"null", b"1.5", b'""'):
            s.rpc.send_raw(b'{"jsonrpc":"2.0","id":' + text + b',"method":"agent.hello"}\n')
            assert s.rpc.read_message()["id"] == json.loads(text)
        s.rpc.send_raw(b'{"jsonrpc":"2.0","id":{},"method":"agent.hello"}\n')
        assert s.rpc.read_message()["error"]["code"] == INVALID_REQUEST


def test_discover_serves_the_schema():
    with daemon_only() as s:
        doc = s.rpc.call("rpc.discover")
        names = {m["name"] for m in doc["methods"]}
        assert doc["openrpc"].startswith("1."), doc["openrpc"]
        assert "session.attach" in names and len(names) == len(s.rpc.schema.methods), names


def test_slow_readers_cost_a_bounded_amount_of_memory():
    """A client asks for megabytes and never reads: others are served, memory stays bounded, nobody waits."""
    with daemon_only() as s:
        assert s.rpc.call("agent.hello")
        slow = connect(s)
        slow.setblocking(False)
        request = b'{"jsonrpc":"2.0","id":1,"method":"rpc.discover"}\n'
        sent = 0
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and sent < 20000:
            try:
                sent += slow.send(request) // len(request)
            except BlockingIOError:
                break
        start = time.monotonic()
        assert s.rpc.call("agent.hello")
        assert time.monotonic() - start < 10
        assert rss_kib(s.front_pid()) < (256 << 10)
        # What the agent took in, it answers as soon as the client reads.
        slow.setblocking(True)
        slow.settimeout(20)
        assert slow.recv(100).startswith(b'{"jsonrpc":"2.0"')
        slow.close()


def has_a_place(s):
    with connect(s) as client:
        client.sendall(b'{"jsonrpc":"2.0","id":1,"method":"agent.hello"}\n')
        return "result" in json.loads(client.recv(65536))


def test_connections_per_user_are_limited():
    with Scene(app=None, start_agent=False) as s:
        config = s.directory / "agentd.conf"
        config.write_text("[limits]\nconnections_per_user = 5\n")
        s.start_agentd("--config", str(config))
        clients = [s.connect() for _ in range(5)]
        assert all(c.call("agent.hello") for c in clients)
        sixth = connect(s)
        reply = json.loads(sixth.recv(4096))
        assert reply["id"] is None and reply["error"]["data"]["name"] == "limit", reply
        assert sixth.recv(10) == b""
        clients[0].close()
        wait_until(lambda: clients[1].call("agent.status")["connections"] == 4, "place is free again")
        # Who accepts is told after that.
        wait_until(lambda: has_a_place(s), "a place for another")


def test_sessions_per_user_are_limited():
    with Scene(app=None, start_agent=False) as s:
        config = s.directory / "agentd.conf"
        config.write_text("[limits]\nsessions_per_user = 2\n")
        s.start_agentd("--config", str(config))
        assert s.rpc.call("agent.hello")["limits"]["sessions"] == 2
        apps = [s.start_app("runtime on; queues 1; spin", name=f"app{i}") for i in range(3)]
        sessions = [s.attach(app.pid) for app in apps[:2]]
        error = s.rpc.error("session.attach", pid=apps[2].pid)
        assert error.name == "limit" and error.hint, error
        s.rpc.call("session.detach", session=sessions[0])
        s.attach(apps[2].pid)


def test_inherited_sockets_are_served_and_idle_daemons_leave():
    with Scene(app=None, start_agent=False) as s:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(s.socket))
        listener.listen()
        code = ("import os, sys; os.dup2(int(sys.argv[1]), 3); os.set_inheritable(3, True); "
                "os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid())); "
                "os.execv(sys.argv[2], sys.argv[2:])")
        waiting = s.connect()  # before there is an agent, which could leave again before somebody comes
        s.agentd = s.start("agentd", [sys.executable, "-c", code, listener.fileno(), BIN / "gpu-agentd", "--user",
                                      "--socket", s.socket, "--idle-exit", "300ms"], pass_fds=[listener.fileno()])
        assert waiting.call("agent.hello")
        time.sleep(0.6)
        assert s.agentd.popen.poll() is None, "left although a client is connected"
        waiting.close()
        assert s.agentd.popen.wait(20) == 0
        assert os.path.exists(s.socket), "the socket is the manager's"


def test_stale_sockets_are_replaced_and_live_ones_are_not():
    with Scene(app=None, start_agent=False) as s:
        dead = socket.socket(socket.AF_UNIX)
        dead.bind(str(s.socket))
        dead.close()
        s.start_agentd()
        assert s.rpc.call("agent.hello")
        argv = [str(BIN / "gpu-agentd"), "--user", "--socket", str(s.socket)]
        run = subprocess.run(argv, text=True, capture_output=True, timeout=20)
        assert run.returncode == 1 and "another gpu-agentd" in run.stderr, run
        assert s.rpc.call("agent.hello")
        assert s.agentd.stop() == 0 and not os.path.exists(s.socket)
        for bad in ("relative.sock", "/" + "x" * 120):
            run = subprocess.run([*argv[:3], bad], text=True, capture_output=True, timeout=20)
            assert run.returncode == 1 and bad[:20] in run.stderr, run
        run = subprocess.run([str(BIN / "gpu-agentd"), "--config", "/nonexistent", "--check-config"], text=True,
                             capture_output=True, timeout=20)
        assert run.returncode == 1 and "/nonexistent" in run.stderr, run
