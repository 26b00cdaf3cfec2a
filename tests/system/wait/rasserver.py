# SPDX-License-Identifier: MIT
"""NCCL's status socket (RAS), by a script: what a process of NCCL would say, and what a stranger might."""
import json
import socket
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Sequence

Json = Dict[str, Any]


def rank(number: int, pid: int, host: str = "127.0.0.1", counts: Optional[Json] = None, **status: Any) -> Json:
    return {"rank": number, "host": host, "pid": pid, "cuda_dev": 0, "nvml_dev": 0,
            "status": {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False,
                       "abort_flag": False, **status},
            "collective_counts": {"Broadcast": 0, "AllReduce": 118, "SendRecv": 0, **(counts or {})}}


def missing(number: int, pid: int, host: str = "10.0.0.9", unresponsive: bool = False, dead: bool = False) -> Json:
    return {"rank": number, "host": host, "pid": pid, "cuda_dev": 0, "nvml_dev": 0,
            "status": {"unresponsive": unresponsive, "considered_dead": dead}}


def communicator(name: int, ranks: Sequence[Json], absent: Sequence[Json] = (), size: Optional[int] = None) -> Json:
    return {"hash": hex(name), "secondary_hash": "0x1:0x2", "size": size or len(ranks) + len(absent),
            "ranks_count": len(ranks), "missing_ranks_count": len(absent), "ranks": list(ranks), "missing_ranks": list(absent)}


def report(*communicators: Json, version: str = "2.28.9") -> bytes:
    return json.dumps({"nccl_version": version, "cuda_runtime_version": 12040, "cuda_driver_version": 12040,
                       "timestamp": "2026-11-29 12:00:00", "communicators_count": len(communicators),
                       "communicators": communicators,
                       "ras": {"collection_time_sec": 0.001, "timeouts_count": 0}}, indent=2).encode() + b"\n"


class Ras:
    """A server that answers line by line; `answers` has what differs from NCCL 2.28.7."""

    def __init__(self, text: bytes = b"", answers: Optional[Json] = None, send: Optional[Callable[[socket.socket], None]] = None,
                 port: int = 0):
        self.answers: Json = {"CLIENT PROTOCOL 2": "SERVER PROTOCOL 2", "SET FORMAT json": "OK", **(answers or {})}
        self.text, self.send = text, send
        self.lines: List[str] = []
        self.listener = socket.create_server(("127.0.0.1", port))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def __enter__(self) -> "Ras":
        return self

    def __exit__(self, *_: Any) -> None:
        self.listener.close()

    def serve(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client:
                try:
                    self.talk(client)
                except OSError:
                    pass  # The client has gone.

    def talk(self, client: socket.socket) -> None:
        for line in client.makefile("r", newline="\n"):
            self.lines.append(line.rstrip("\n"))
            if self.lines[-1] == "VERBOSE STATUS":
                self.status(client)
                return
            answer = self.answers.get(self.lines[-1], "OK" if line.startswith("TIMEOUT ") else "ERROR: Unknown command")
            if answer is None:
                time.sleep(30)
                return
            client.sendall(answer.encode() + b"\n")

    def status(self, client: socket.socket) -> None:
        if self.send:
            self.send(client)
        else:
            client.sendall(self.text)
