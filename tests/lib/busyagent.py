# SPDX-License-Identifier: MIT
"""An agent as its clients see it while others use up all that it reads at a time: one method is refused, the rest is the agent's."""
from __future__ import annotations

import contextlib
import json
import pathlib
import socket
import threading
from typing import Any, Dict, Iterator, List

LIMIT = -32010
MESSAGE = "too many sessions are open"


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _refusal(request: Dict[str, Any]) -> bytes:
    error = {"code": LIMIT, "message": MESSAGE, "data": {"name": "limit"}}
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}).encode() + b"\n"


class BusyAgent:
    """Refuses the method so often; then it is the agent's again."""

    def __init__(self, agent: pathlib.Path, method: str, times: int) -> None:
        self.agent, self.method, self.times = agent, method, times
        self.refused: List[Dict[str, Any]] = []

    def serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as agent:
            agent.connect(str(self.agent))
            threading.Thread(target=_copy, args=(agent, client), daemon=True).start()
            with contextlib.suppress(OSError), client.makefile("rb") as lines:
                for line in lines:
                    request = json.loads(line)
                    if request["method"] == self.method and len(self.refused) < self.times:
                        self.refused.append(request)
                        client.sendall(_refusal(request))
                    else:
                        agent.sendall(line)

    def accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.serve, args=(listener.accept()[0],), daemon=True).start()


@contextlib.contextmanager
def busy(agent: pathlib.Path, path: pathlib.Path, method: str, times: int) -> Iterator[BusyAgent]:
    """Listens at path, for the agent at another one."""
    relay = BusyAgent(agent, method, times)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=relay.accept, args=(listener,), daemon=True)
        thread.start()
        yield relay
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
