# SPDX-License-Identifier: MIT
"""JSON-RPC 2.0 on the agent's socket, one message a line; the calls themselves are in protocol.py."""

import asyncio
import collections
import itertools
import json
import os
import socket
import time

__all__ = ["AgentError", "AsyncConnection", "Connection", "default_socket"]

# A snapshot of a whole node has tens of thousands of waves.
LINE_LIMIT = 1 << 30


def default_socket():
    """$GPU_AGENT_SOCKET; or else the agent of the system, or of this user, as gpu-agentctl chooses."""
    system = "/run/gpu-agent/agentd.sock"
    own = os.path.join(os.environ.get("XDG_RUNTIME_DIR") or "/nonexistent", "gpu-agent/agentd.sock")
    named = os.environ.get("GPU_AGENT_SOCKET")
    return named or (own if not os.path.exists(system) and os.path.exists(own) else system)


class AgentError(Exception):
    """An error reply.

    code     number, as in the schema
    message  for people
    name     of the code, such as "no_such_process"; None for a code this client does not know
    data     {"errno", "op", "hint", "vendor", "resumed"}, each of them optional
    """

    def __init__(self, method, error):
        self.method = method
        self.code = error.get("code")
        self.message = error.get("message", "")
        self.data = error.get("data") or {}
        self.name = self.data.get("name")
        self.hint = self.data.get("hint")
        super().__init__(f"{method}: {self.message}" + (f" ({self.hint})" if self.hint else ""))


class _Messages:
    """What both kinds of connection do with messages."""

    errors = {}

    def __init__(self):
        self._numbers = itertools.count(1)

    def _request(self, method, params):
        """(id, bytes); parameters that are None are left out."""
        number = next(self._numbers)
        message = {"jsonrpc": "2.0", "id": number, "method": method}
        message["params"] = {key: value for key, value in params.items() if value is not None}
        return number, json.dumps(message).encode() + b"\n"

    def _result(self, method, reply):
        if "error" in reply:
            error = reply["error"]
            raise self.errors.get(error.get("code"), AgentError)(method, error)
        return reply["result"]


class Connection(_Messages):
    """A connection that waits for each answer.  One thread at a time.

    path     socket; None: default_socket()
    timeout  seconds until an answer is given up with TimeoutError; None: never
    """

    def __init__(self, path=None, timeout=60.0):
        super().__init__()
        self.timeout = timeout
        self._buffer = bytearray()
        self._searched = 0
        self._heard = collections.deque()
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._sock.settimeout(timeout)
            self._sock.connect(os.fspath(path or default_socket()))
        except BaseException:
            self._sock.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Sessions that only this connection holds end."""
        self._sock.close()

    def fileno(self):
        """For select(): readable when a notification may have come."""
        return self._sock.fileno()

    def call(self, method, params=None, descriptor=None):
        """The result of a method; `descriptor` goes along with the request."""
        number, data = self._request(method, params or {})
        deadline = self._deadline(self.timeout)
        self._sock.settimeout(self.timeout)
        if descriptor is not None:
            data = data[socket.send_fds(self._sock, [data], [descriptor]):]
        self._sock.sendall(data)
        while True:
            message = self._read(deadline)
            if "method" in message:
                self._heard.append((message["method"], message.get("params", {})))
            elif message.get("id") == number:
                return self._result(method, message)
            elif message.get("id") is None and "error" in message:
                return self._result(method, message)  # the agent could not read the request

    def notification(self, timeout=None):
        """The next (method, params).

        timeout  seconds until TimeoutError; 0: only one that has arrived; None: wait for ever
        """
        deadline = self._deadline(timeout)
        while not self._heard:
            message = self._read(deadline)
            if "method" in message:
                self._heard.append((message["method"], message.get("params", {})))
        return self._heard.popleft()

    @staticmethod
    def _deadline(timeout):
        return None if timeout is None else time.monotonic() + timeout

    def _read(self, deadline):
        while (end := self._buffer.find(b"\n", self._searched)) < 0:
            self._searched = len(self._buffer)
            if deadline is None:
                self._sock.settimeout(None)
            else:
                # Not blocking at all would raise something else than TimeoutError.
                self._sock.settimeout(max(deadline - time.monotonic(), 1e-6))
            data = self._sock.recv(1 << 18)
            if not data:
                raise ConnectionResetError("the agent closed the connection")
            self._buffer += data
        line = bytes(self._buffer[:end])
        del self._buffer[:end + 1]
        self._searched = 0
        return json.loads(line)


class AsyncConnection(_Messages):
    """The same for asyncio: any number of calls may be under way.

        async with await AsyncClient.connect() as agent: ...
    """

    def __init__(self, reader, writer, timeout):
        super().__init__()
        self.timeout = timeout
        self._reader, self._writer = reader, writer
        self._waiting = {}
        self._heard = asyncio.Queue()
        self._lost = None
        self._task = asyncio.ensure_future(self._read_all())

    @classmethod
    async def connect(cls, path=None, timeout=60.0):
        return cls(*await asyncio.open_unix_connection(path or default_socket(), limit=LINE_LIMIT), timeout)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.close()

    async def close(self):
        """Sessions that only this connection holds end; calls under way fail."""
        self._task.cancel()
        self._writer.close()
        await asyncio.gather(self._task, self._writer.wait_closed(), return_exceptions=True)

    async def call(self, method, params=None, descriptor=None):
        """The result of a method."""
        if descriptor is not None:
            raise ValueError("a connection of asyncio passes no descriptors: use Client")
        if self._lost:
            raise ConnectionResetError(str(self._lost)) from self._lost
        number, data = self._request(method, params or {})
        self._waiting[number] = answer = asyncio.get_running_loop().create_future()
        try:
            self._writer.write(data)
            await self._writer.drain()
            reply = await asyncio.wait_for(answer, self.timeout)
        except asyncio.TimeoutError:
            raise TimeoutError(f"{method}: no answer within {self.timeout} s") from None
        finally:
            del self._waiting[number]
        return self._result(method, reply)

    async def notification(self):
        """The next (method, params)."""
        if self._lost and self._heard.empty():
            raise ConnectionResetError(str(self._lost)) from self._lost
        item = await self._heard.get()
        if item is None:
            raise ConnectionResetError(str(self._lost)) from self._lost
        return item

    async def _read_all(self):
        try:
            while line := await self._reader.readline():
                self._take(json.loads(line))
            self._end(ConnectionResetError("the agent closed the connection"))
        except (OSError, ValueError) as error:
            self._end(error)
        except asyncio.CancelledError:
            self._end(ConnectionResetError("the connection was closed"))
            raise

    def _take(self, message):
        if "method" in message:
            self._heard.put_nowait((message["method"], message.get("params", {})))
        elif (answer := self._waiting.get(message.get("id"))) and not answer.done():
            answer.set_result(message)

    def _end(self, error):
        self._lost = error
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(ConnectionResetError(str(error)))
        self._heard.put_nowait(None)
