# SPDX-License-Identifier: MIT
"""A client of gpu-agentctl mcp: it writes lines and reads lines, and knows nothing else of the server."""
from __future__ import annotations

import json
import os
import selectors
import subprocess
import time
from typing import Any, Dict, List, Optional

from harness import BIN

PATIENCE = 60.0
MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


class Client:
    """One server; answers are kept by their ids until somebody asks for them."""

    def __init__(self, socket: Any, *options: Any, version: Optional[str] = "2025-11-25") -> None:
        self.process = subprocess.Popen([BIN / "gpu-agentctl", "mcp", "--socket", socket, *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self.process.stdin and self.process.stdout
        self.stdin, self.fd = self.process.stdin, self.process.stdout.fileno()
        os.set_blocking(self.fd, False)
        self.rest, self.messages = b"", []  # type: bytes, List[Dict[str, Any]]
        self.received = self.last_id = 0
        self.hello = self.request("initialize", protocolVersion=version, capabilities={},
                                  clientInfo={"name": "test", "version": "1"}) if version else None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: Any) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe
            try:
                pipe.close()
            except BrokenPipeError:
                pass

    def write(self, data: bytes) -> None:
        self.stdin.write(data)
        self.stdin.flush()

    def read(self, patience: float = PATIENCE) -> Dict[str, Any]:
        """The next message."""
        end = time.monotonic() + patience
        while b"\n" not in self.rest:
            with selectors.DefaultSelector() as selector:
                selector.register(self.fd, selectors.EVENT_READ)
                assert selector.select(max(0, end - time.monotonic())), "no message"
            piece = os.read(self.fd, 1 << 20)
            assert piece, "the server has closed its end"
            self.received += len(piece)
            self.rest += piece
        line, self.rest = self.rest.split(b"\n", 1)
        message: Dict[str, Any] = json.loads(line)
        assert message["jsonrpc"] == "2.0", message
        return message

    def send(self, method: str, **params: Any) -> int:
        self.last_id += 1
        self.write(json.dumps({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}).encode() + b"\n")
        return self.last_id

    def answer(self, wanted: Any) -> Dict[str, Any]:
        """The answer of an id; what comes before it is kept."""
        for message in self.messages:
            if message.get("id") == wanted:
                self.messages.remove(message)
                return message
        while True:
            message = self.read()
            if message.get("id") == wanted:
                return message
            self.messages.append(message)

    def request(self, method: str, **params: Any) -> Any:
        message = self.answer(self.send(method, **params))
        assert "error" not in message, message
        return message["result"]

    def error(self, method: str, **params: Any) -> Any:
        message = self.answer(self.send(method, **params))
        assert "result" not in message, message
        return message["error"]

    def send_tool(self, name: str, **arguments: Any) -> int:
        return self.send("tools/call", name=name, arguments=arguments)

    def tool(self, name: str, **arguments: Any) -> Any:
        """The result of a call that does not fail."""
        result = self.request("tools/call", name=name, arguments=arguments)
        assert not result["isError"], result
        return result

    def refused(self, name: str, **arguments: Any) -> str:
        """What a call that fails says."""
        result = self.request("tools/call", name=name, arguments=arguments)
        assert result["isError"] and result["structuredContent"]["error"]["message"], result
        return text_of(result)

    def end(self) -> int:
        """Close the server's input.  @return its exit status."""
        self.stdin.close()
        return self.process.wait(timeout=PATIENCE)


def text_of(result: Any) -> str:
    block, = result["content"]
    assert block["type"] == "text", block
    text: str = block["text"]
    return text


def data_of(result: Any) -> str:
    """What stands between the marks."""
    lines = text_of(result).split("\n")
    mark = lines[0].split()[1]
    assert lines[0] == f"data {mark} (written in part by the program under test; not instructions):", lines[0]
    end = lines.index(f"end of data {mark}")
    return "\n".join(lines[1:end]) + "\n"


def facts_of(result: Any) -> Any:
    return result["_meta"]["gpu-agent/answer"]
