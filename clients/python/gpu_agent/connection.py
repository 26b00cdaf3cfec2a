# SPDX-License-Identifier: MIT
"""JSON-RPC 2.0 on the agent's socket, one message a line; the calls themselves are in protocol.py."""

from __future__ import annotations

import asyncio
import collections
import errno
import itertools
import json
import os
import socket
import struct
import time
from typing import Any, Deque, Dict, Iterable, Optional, Tuple, Type, TypeVar, Union

__all__ = ["AgentError", "AsyncConnection", "Connection", "default_socket"]

# A snapshot of a whole node has tens of thousands of waves.
LINE_LIMIT = 1 << 30

Path = Union[str, "os.PathLike[str]"]
#: A notification: its method and its parameters.
Notification = Tuple[str, Dict[str, Any]]
_Connection = TypeVar("_Connection", bound="Connection")
_AsyncConnection = TypeVar("_AsyncConnection", bound="AsyncConnection")


def default_socket() -> str:
    """$GPU_AGENT_SOCKET; or else the agent of the system, or of this user, as gpu-agentctl chooses."""
    system = "/run/gpu-agent/agentd.sock"
    own = os.path.join(os.environ.get("XDG_RUNTIME_DIR") or "/nonexistent", "gpu-agent/agentd.sock")
    named = os.environ.get("GPU_AGENT_SOCKET")
    return named or (own if not os.path.exists(system) and os.path.exists(own) else system)


def _unreachable(error: OSError, path: str) -> OSError:
    """The same error of the system, of the same class, that says which socket it was and what to do."""
    if error.errno in (errno.EACCES, errno.EPERM):
        hint = "an administrator can let you in with `adduser USER gpu-debug`; log in again afterwards"
    elif error.errno in (errno.ENOENT, errno.ECONNREFUSED, errno.ENOTDIR):
        hint = ("no agent listens there; start it with `systemctl start gpu-agentd.socket`, or `gpu-agentd --user` "
                "for your own processes, or name its socket in GPU_AGENT_SOCKET")
    else:
        return error
    return OSError(error.errno, f"{error.strerror} ({hint})", path)


class AgentError(Exception):
    """An error reply.

    code     number, as in the schema
    message  for people
    name     of the code, such as "no_such_process"; None for a code this client does not know
    data     {"errno", "op", "hint", "vendor", "resumed", "retry_ms"}, each of them optional
    """

    def __init__(self, method: str, error: Dict[str, Any]) -> None:
        self.method = method
        self.code: Optional[int] = error.get("code")
        self.message: str = error.get("message", "")
        self.data: Dict[str, Any] = error.get("data") or {}
        self.name: Optional[str] = self.data.get("name")
        self.hint: Optional[str] = self.data.get("hint")
        super().__init__(f"{method}: {self.message}" + (f" ({self.hint})" if self.hint else ""))


class _Messages:
    """What both kinds of connection do with messages."""

    errors: Dict[int, Type[AgentError]] = {}

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def _request(self, method: str, params: Dict[str, Any]) -> Tuple[int, bytes]:
        """(id, bytes); parameters that are None are left out."""
        number = next(self._numbers)
        message: Dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": method}
        message["params"] = {key: value for key, value in params.items() if value is not None}
        return number, json.dumps(message, allow_nan=False).encode() + b"\n"

    @staticmethod
    def _message(line: bytes) -> Dict[str, Any]:
        message = json.loads(line)
        if not isinstance(message, dict):
            raise ValueError(f"no message of JSON-RPC: {line[:40]!r}")
        return message

    def _result(self, method: str, reply: Dict[str, Any]) -> Any:
        if "error" in reply:
            raise self._error(method, reply["error"])
        return reply["result"]

    def _error(self, method: str, error: Dict[str, Any]) -> AgentError:
        return self.errors.get(error.get("code", 0), AgentError)(method, error)


class Connection(_Messages):
    """A connection that waits for each answer.  One thread at a time.

    path     socket; None: default_socket()
    timeout  seconds until an answer is given up with TimeoutError; None: never
    """

    def __init__(self, path: Optional[Path] = None, timeout: Optional[float] = 60.0) -> None:
        super().__init__()
        self.timeout = timeout
        self._buffer = bytearray()
        self._searched = 0
        self._heard: Deque[Notification] = collections.deque()
        self._cut = False  # half of a request was sent
        self._descriptor: Optional[int] = None
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        where = os.fspath(path or default_socket())
        try:
            self._sock.settimeout(timeout)
            self._sock.connect(where)
        except socket.timeout:  # something else than TimeoutError before Python 3.10
            self._sock.close()
            raise TimeoutError(f"no connection within {timeout} s") from None
        except OSError as error:
            self._sock.close()
            raise _unreachable(error, where) from None
        except BaseException:
            self._sock.close()
            raise

    def __enter__(self: _Connection) -> _Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Sessions that only this connection holds end."""
        self._drop_descriptor()
        self._sock.close()

    def fileno(self) -> int:
        """For select(): readable when a notification may have come."""
        return self._sock.fileno()

    def call(self, method: str, params: Optional[Dict[str, Any]] = None, descriptor: bool = False) -> Any:
        """The result of a method; with `descriptor`, (result, the descriptor that came with it or None)."""
        number, data = self._request(method, params or {})
        deadline = self._deadline(self.timeout)
        late = f"{method}: no answer within {self.timeout} s"
        self._send(data, late)
        while True:
            message = self._read(deadline, late)
            if "method" in message:
                self._heard.append((message["method"], message.get("params", {})))
            elif message.get("id") == number:
                result = self._result(method, message)
                return (result, self._take_descriptor()) if descriptor else result
            elif message.get("id") is None and "error" in message:
                return self._result(method, message)  # the agent could not read the request
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(late)

    def notification(self, timeout: Optional[float] = None) -> Notification:
        """The next (method, params).

        timeout  seconds until TimeoutError; 0: only one that has arrived; None: wait for ever
        """
        deadline = self._deadline(timeout)
        while not self._heard:
            message = self._read(deadline, f"no notification within {timeout} s")
            if "method" in message:
                self._heard.append((message["method"], message.get("params", {})))
        return self._heard.popleft()

    @staticmethod
    def _deadline(timeout: Optional[float]) -> Optional[float]:
        return None if timeout is None else time.monotonic() + timeout

    def _take_descriptor(self) -> Optional[int]:
        descriptor, self._descriptor = self._descriptor, None
        return descriptor

    def _keep_descriptor(self, ancillary: Iterable[Tuple[int, int, bytes]]) -> None:
        """What came last; a call that waits for it takes it."""
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS) and len(data) >= 4:
                self._drop_descriptor()
                self._descriptor, = struct.unpack("i", data[:4])

    def _drop_descriptor(self) -> None:
        descriptor = self._take_descriptor()
        if descriptor is not None:
            os.close(descriptor)

    def _send(self, data: bytes, late: str) -> None:
        if self._cut:
            raise ConnectionResetError("a request before was cut short: the connection is of no use any more")
        self._sock.settimeout(self.timeout)
        self._cut = True
        try:
            self._drop_descriptor()
            self._sock.sendall(data)
        except socket.timeout:
            raise TimeoutError(late) from None
        except (BrokenPipeError, ConnectionResetError):
            return  # an agent that refuses a connection says why before it closes: that is read next
        self._cut = False

    def _read(self, deadline: Optional[float], late: str) -> Dict[str, Any]:
        while (end := self._buffer.find(b"\n", self._searched)) < 0:
            self._searched = len(self._buffer)
            if deadline is None:
                self._sock.settimeout(None)
            else:
                # Not blocking at all would raise something else than TimeoutError.
                self._sock.settimeout(max(deadline - time.monotonic(), 1e-6))
            try:
                data, ancillary, _, _ = self._sock.recvmsg(1 << 18, socket.CMSG_LEN(4), socket.MSG_CMSG_CLOEXEC)
            except socket.timeout:
                raise TimeoutError(late) from None
            self._keep_descriptor(ancillary)
            if not data:
                raise ConnectionResetError("the agent closed the connection")
            self._buffer += data
        line = bytes(self._buffer[:end])
        del self._buffer[:end + 1]
        self._searched = 0
        return self._message(line)


class AsyncConnection(_Messages):
    """The same for asyncio: any number of calls may be under way.

        async with await AsyncClient.connect() as agent: ...
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, timeout: Optional[float]) -> None:
        super().__init__()
        self.timeout = timeout
        self._reader, self._writer = reader, writer
        #: By number of the request: who waits for its answer, and how many bytes it has.
        self._waiting: Dict[int, Tuple[asyncio.Future[Dict[str, Any]], int]] = {}
        self._heard: asyncio.Queue[Optional[Notification]] = asyncio.Queue()
        self._sending = asyncio.Lock()
        self._lost: Optional[Exception] = None
        self._refusal: Optional[Dict[str, Any]] = None
        self._task = asyncio.ensure_future(self._read_all())

    @classmethod
    async def connect(cls: Type[_AsyncConnection], path: Optional[Path] = None,
                      timeout: Optional[float] = 60.0) -> _AsyncConnection:
        where = os.fspath(path or default_socket())
        try:
            return cls(*await asyncio.open_unix_connection(where, limit=LINE_LIMIT), timeout)
        except OSError as error:
            raise _unreachable(error, where) from None

    async def __aenter__(self: _AsyncConnection) -> _AsyncConnection:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Sessions that only this connection holds end; calls under way fail."""
        self._task.cancel()
        self._writer.close()
        await asyncio.gather(self._task, self._writer.wait_closed(), return_exceptions=True)

    async def call(self, method: str, params: Optional[Dict[str, Any]] = None, descriptor: bool = False) -> Any:
        """The result of a method."""
        if descriptor:
            raise ValueError("a connection of asyncio receives no descriptors: use Client")
        if self._lost:
            raise self._gone(method)
        number, data = self._request(method, params or {})
        answer: asyncio.Future[Dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer, len(data)
        try:
            reply = await asyncio.wait_for(self._answered(data, answer), self.timeout)
        except asyncio.TimeoutError:
            raise TimeoutError(f"{method}: no answer within {self.timeout} s") from None
        except ConnectionError as error:
            self._lost = self._lost or error
            raise self._gone(method) from None
        finally:
            del self._waiting[number]
        return self._result(method, reply)

    def _gone(self, method: str) -> Exception:
        """What to raise where there is no connection any more."""
        if self._refusal:
            return self._error(method, self._refusal)
        error = ConnectionResetError(str(self._lost))
        error.__cause__ = self._lost
        return error

    async def _answered(self, data: bytes, answer: asyncio.Future[Dict[str, Any]]) -> Dict[str, Any]:
        async with self._sending:  # before Python 3.10 only one may wait in drain()
            self._writer.write(data)
            await self._writer.drain()
        return await answer

    async def notification(self) -> Notification:
        """The next (method, params)."""
        item = await self._heard.get()
        if item is None:
            self._heard.put_nowait(None)  # for whoever waits as well, or asks again
            raise ConnectionResetError(str(self._lost)) from self._lost
        return item

    async def _read_all(self) -> None:
        try:
            while line := await self._reader.readline():
                self._take(self._message(line))
            self._end(ConnectionResetError("the agent closed the connection"))
        except (OSError, ValueError) as error:
            self._end(error)
        except asyncio.CancelledError:
            self._end(ConnectionResetError("the connection was closed"))
            raise

    def _take(self, message: Dict[str, Any]) -> None:
        if "method" in message:
            self._heard.put_nowait((message["method"], message.get("params", {})))
            return
        answer, _ = self._waiting.get(message.get("id", 0), (None, 0))
        if message.get("id") is None and "error" in message:
            # The agent refuses the connection, or a request that it could not read: one that is too long.
            self._refusal = None if self._waiting else message["error"]
            answer, _ = max(self._waiting.values(), key=lambda waiting: waiting[1], default=(None, 0))
        if answer and not answer.done():
            answer.set_result(message)

    def _end(self, error: Exception) -> None:
        self._lost = error
        for answer, _ in self._waiting.values():
            if not answer.done():
                answer.set_exception(ConnectionResetError(str(error)))
        self._heard.put_nowait(None)
