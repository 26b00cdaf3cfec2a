#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Other people's JSON-RPC clients, unchanged, on the socket of a real daemon."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import npm
from harness import Scene, wait_until

HERE = pathlib.Path(__file__).resolve().parent


def run_node(s, modules, script, *argv):
    env = {**os.environ, "NODE_PATH": str(modules)}
    run = subprocess.run(["node", HERE / script, s.socket, str(s.app.pid), *argv], env=env, text=True,
                         capture_output=True, timeout=90, stdin=subprocess.DEVNULL)
    assert run.returncode == 0 and run.stdout == "done\n", f"{script}: exit {run.returncode}\n{run.stdout}{run.stderr}"


def node_client(script, *argv):
    modules = npm.install(HERE)
    with Scene() as s:
        run_node(s, modules, script, *argv)
        wait_until(lambda: s.worker_pids() == [], "worker leaves")


def test_vscode_jsonrpc():
    node_client("vscode_client.js")


def test_vscode_jsonrpc_byte_by_byte():
    """Headers and bodies arrive in pieces."""
    node_client("vscode_client.js", "slow")


def test_jayson():
    node_client("jayson_client.js")


def test_socat_and_jq():
    npm.need("socat", "jq")
    with Scene() as s:
        run = subprocess.run([HERE / "pipeline.sh", s.socket, str(s.app.pid)], text=True, capture_output=True,
                             timeout=120, stdin=subprocess.DEVNULL)
        assert run.returncode == 0 and run.stdout == "done\n", f"exit {run.returncode}\n{run.stdout}{run.stderr}"


# -- nothing but the standard library ---------------------------------------------------------------

class Lines:
    """Newline-delimited messages by socket.makefile()."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(str(path))
        self.file = self.sock.makefile("rw", encoding="utf-8", newline="\n")

    def write(self, message):
        print(json.dumps(message), file=self.file, flush=True)

    def read(self):
        return json.loads(self.file.readline())

    def close(self):
        self.file.close()
        self.sock.close()


class Headers(Lines):
    """Content-Length headers; the file object is used for bytes."""

    def __init__(self, path):
        super().__init__(path)
        self.file = self.sock.makefile("rwb")

    def write(self, message):
        body = json.dumps(message, ensure_ascii=False, indent=1).encode()  # line breaks are no frame here
        self.file.write(b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n"
                        b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.file.flush()

    def read(self):
        length = None
        while (line := self.file.readline().strip()):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return json.loads(self.file.read(length))


def stdlib_client(s, client):
    def call(method, **params):
        client.write({"jsonrpc": "2.0", "id": method, "method": method, "params": params})
        reply = client.read()
        assert reply["jsonrpc"] == "2.0" and reply["id"] == method and ("result" in reply) != ("error" in reply), reply
        return reply.get("result") or reply["error"]

    assert call("agent.hello", client="Python \u2713")["limits"]["batch"] >= 3
    assert any(p["pid"] == s.app.pid and p["queues"] == 4 for p in call("process.list")["processes"])
    session = call("session.attach", pid=s.app.pid)["session"]
    snapshot = call("gpu.snapshot", session=session)
    assert snapshot["complete"] and len(snapshot["queues"]) == 4, snapshot
    error = call("gpu.queues", session="nonsense")
    assert error["code"] == -32006 and error["data"]["name"] == "no_such_session" and error["message"], error
    assert call("no.such.method")["code"] == -32601
    client.write([{"jsonrpc": "2.0", "id": 1, "method": "agent.status"},
                  {"jsonrpc": "2.0", "method": "agent.status"},
                  {"jsonrpc": "2.0", "id": 2, "method": "gpu.devices", "params": {"session": session}}])
    replies = {r["id"]: r["result"] for r in client.read()}
    assert set(replies) == {1, 2} and len(replies[2]["devices"]) == 2, replies
    assert call("session.detach", session=session) == {"ended": True}
    session = call("session.attach", pid=s.app.pid)["session"]
    s.app.popen.send_signal(signal.SIGKILL)
    ended = client.read()
    assert "id" not in ended and ended["method"] == "session.ended", ended
    assert ended["params"] == {"session": session, "pid": s.app.pid, "reason": "exited"}, ended
    client.close()


def test_python_lines():
    with Scene() as s:
        stdlib_client(s, Lines(s.socket))


def test_python_headers():
    with Scene() as s:
        stdlib_client(s, Headers(s.socket))
