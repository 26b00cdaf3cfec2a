# SPDX-License-Identifier: MIT
"""gpu-agentctl mcp behind HTTP, for a suite that speaks nothing else: each POST is a line to it, and its answer the body.

Names of tools and addresses of resources that the suite asks for are exchanged for ours; what the server says is not touched.
"""
from __future__ import annotations

import contextlib
import http.server
import json
import queue
import subprocess
import sys
import threading
from typing import Any, Dict, Iterator, Optional, Tuple

from harness import BIN, PATIENCE
from mcpclient import MODERN

NO_METHOD = -32601
REVISION = MODERN["io.modelcontextprotocol/protocolVersion"]


class Server:
    """One server, for all connections; ids are those of the clients, who ask one thing after another."""

    def __init__(self, socket: Any, *options: str) -> None:
        self.process = subprocess.Popen([BIN / "gpu-agentctl", "mcp", "--socket", socket, *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.lock = threading.Lock()
        self.waiting: Dict[str, queue.Queue[bytes]] = {}
        # What the suite asks for, and what is asked instead.
        self.tools: Dict[str, Tuple[str, Dict[str, Any]]] = {}
        self.resources: Dict[str, str] = {}
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        """What has no id is of the call that runs: there is one at a time that asks for its progress."""
        assert self.process.stdout
        for line in self.process.stdout:
            message = json.loads(line)
            with self.lock:
                key = json.dumps(message["id"]) if "id" in message else "progress"
                waiting = self.waiting.get(key) if key == "progress" else self.waiting.pop(key, None)
            if waiting:
                waiting.put(line)

    def exchange(self, request: Dict[str, Any]) -> None:
        params = request.get("params", {})
        if request["method"] == "tools/call" and params.get("name") in self.tools:
            params["name"], params["arguments"] = self.tools[params["name"]]
        if request["method"] == "resources/read" and params.get("uri") in self.resources:
            params["uri"] = self.resources[params["uri"]]

    def send(self, request: Dict[str, Any], answers: Optional[queue.Queue[bytes]]) -> None:
        assert self.process.stdin
        self.exchange(request)
        with self.lock:
            if answers:
                self.waiting[json.dumps(request["id"])] = self.waiting["progress"] = answers
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()

    def ask(self, method: str, **params: Any) -> Any:
        """The result of a request of ours."""
        answers: queue.Queue[bytes] = queue.Queue()
        self.send({"jsonrpc": "2.0", "id": "ours", "method": method, "params": {**params, "_meta": MODERN}}, answers)
        return json.loads(answers.get(timeout=PATIENCE))["result"]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    mcp: Server

    def reply(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:  # pylint: disable=invalid-name
        """There is no stream of what nobody has asked for, and no session that could end."""
        self.reply(405)

    do_DELETE = do_GET

    def stream(self, answers: queue.Queue[bytes]) -> None:
        """Progress and then the answer, as events."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        while True:
            line = answers.get(timeout=PATIENCE)
            self.wfile.write(b"event: message\ndata: " + line + b"\n")
            self.wfile.flush()
            if "id" in json.loads(line):
                return

    def do_POST(self) -> None:  # pylint: disable=invalid-name
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answers: Optional[queue.Queue[bytes]] = queue.Queue() if "id" in request else None
        self.mcp.send(request, answers)
        if not answers:
            self.reply(202)
            return
        if "progressToken" in request.get("params", {}).get("_meta", {}):
            self.stream(answers)
            return
        line = answers.get(timeout=PATIENCE)
        error = json.loads(line).get("error")
        # From 2026-07-28 on, the status tells of errors, too.
        refused = error and self.headers.get("MCP-Protocol-Version", "") >= REVISION
        self.reply(200 if not refused else 404 if error["code"] == NO_METHOD else 400, line)

    def log_message(self, format: str, *args: Any) -> None:  # pylint: disable=redefined-builtin
        pass


class Front(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client may leave at any moment."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextlib.contextmanager
def served(socket: Any, *options: str) -> Iterator[Tuple[str, Server]]:
    """@return an address, and the server behind it"""
    mcp = Server(socket, *options)
    handler = type("Bound", (Handler,), {"mcp": mcp})
    with Front(("127.0.0.1", 0), handler) as front:
        thread = threading.Thread(target=front.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{front.server_address[1]}/mcp", mcp
        finally:
            front.shutdown()
            thread.join()
            mcp.process.kill()
            mcp.process.communicate()
