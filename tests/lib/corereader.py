# SPDX-License-Identifier: MIT
"""The program that reads a core, asked without gpu-agentctl."""
from __future__ import annotations

import pathlib
import socket
import subprocess

from harness import BIN, Rpc


class CoreRpc(Rpc):
    """Methods of the reader of one core; its session is called "core"."""

    def __init__(self, path: pathlib.Path) -> None:
        self.sock, theirs = socket.socketpair()
        self.sock.settimeout(60)
        self.buffer, self.next_id = b"", 0
        self.notifications = []
        with open(path, "rb") as core:
            self.program = subprocess.Popen([BIN / "gpu-agent-worker", "--core", str(path)], stdin=core,
                                            stdout=theirs.fileno(), stderr=subprocess.PIPE)
        theirs.close()

    def __enter__(self) -> CoreRpc:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        assert self.program.stderr
        assert self.program.wait(60) == 0, self.program.stderr.read()
        self.program.stderr.close()
