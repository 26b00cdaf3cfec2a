# SPDX-License-Identifier: MIT
"""A debug adapter client of nothing but the standard library, for tests: gpu-agentctl dap on pipes, or the agent's socket."""
import contextlib
import json
import os
import select
import socket as sockets
import subprocess
import threading
import time

from dapschema import Conversation
from harness import BIN, PATIENCE, ROOT, Scene, wait_until

DATA = ROOT / "tests/data/codeobj"
APP = f"runtime ttmp; load {DATA}/spin-gfx90a.co; queues 2; dispatch 0 scale 4096 64; spin"


def scene(waves="waves 0 halted 4 spin+16", **kwargs):
    return Scene(app=APP.replace("; spin", f"; {waves}; spin"), gpus="gfx90a", **kwargs)


def runs_on(s):
    """Nobody looks at the process any more; a worker that was asked for may come as late as it leaves."""
    wait_until(lambda: s.worker_pids() == [] and not s.target_state()["enabled"], "worker leaves")
    assert not s.target_state()["suspended_queues"], s.target_state()


class Failed(Exception):
    """An answer with success false; .response is the whole message."""

    def __init__(self, response):
        super().__init__(f"{response['command']}: {response.get('message')}")
        self.response = response
        self.message = response.get("message", "")


class Session:
    """What an editor says and hears, all of it as the protocol has it; where it says it is for those below."""

    def __init__(self):
        self.seq = 0
        self.buffer = b""
        self.messages = []  # events and answers not asked for yet, in order
        self.conversation = Conversation()

    def __enter__(self):
        return self

    # -- bytes ----------------------------------------------------------------------------------

    def send(self, command, arguments=None, **more):
        """@return its seq"""
        self.seq += 1
        message = {"seq": self.seq, "type": "request", "command": command, **more}
        if arguments is not None:
            message["arguments"] = arguments
        self.conversation.from_editor(message)
        body = json.dumps(message).encode()
        self.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        return self.seq

    def _message(self):
        head, found, rest = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return None
        size = int(dict(line.split(b": ") for line in head.split(b"\r\n"))[b"Content-Length"])
        if len(rest) < size:
            return None
        self.buffer = rest[size:]
        return json.loads(rest[:size])

    def read(self, patience=PATIENCE):
        """The next message; None at the end of the adapter's output."""
        deadline = time.monotonic() + patience
        while (message := self._message()) is None:
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self.output()], [], [], left)[0], "no message from the adapter"
            data = os.read(self.output(), 1 << 16)
            if not data:
                return None
            self.buffer += data
        if self.conversation:
            self.conversation.from_adapter(message)
        return message

    # -- messages -------------------------------------------------------------------------------

    def wait(self, wanted, what, patience=PATIENCE):
        """The first message that wanted() likes; others are kept."""
        for i, message in enumerate(self.messages):
            if wanted(message):
                return self.messages.pop(i)
        deadline = time.monotonic() + patience
        while True:
            message = self.read(max(0.01, deadline - time.monotonic()))
            assert message is not None, f"{what}: the adapter ended; {self.messages}"
            if wanted(message):
                return message
            self.messages.append(message)

    def response(self, seq):
        return self.wait(lambda m: m["type"] == "response" and m["request_seq"] == seq, f"answer {seq}")

    def event(self, name, patience=PATIENCE):
        return self.wait(lambda m: m["type"] == "event" and m["event"] == name, f"event {name}", patience).get("body")

    def has_event(self, name):
        return any(m["type"] == "event" and m["event"] == name for m in self.messages)

    def call(self, command, **arguments):
        """The body of the answer."""
        response = self.response(self.send(command, arguments))
        assert response["command"] == command, response
        if not response["success"]:
            raise Failed(response)
        return response.get("body")

    def error(self, command, **arguments):
        """The message of the failure that this request must give."""
        try:
            body = self.call(command, **arguments)
        except Failed as failed:
            shown = failed.response["body"]["error"]
            assert shown["format"] == "{text}" and shown["variables"]["text"] == failed.message, shown
            return failed.message
        raise AssertionError(f"{command} succeeded: {body}")

    # -- a session ------------------------------------------------------------------------------

    def start(self, **arguments):
        """initialize, attach, configurationDone; the capabilities."""
        capabilities = self.call("initialize", clientID="test", adapterID="gpu-agent", linesStartAt1=True,
                                 supportsProgressReporting=True, supportsVariableType=True,
                                 supportsInvalidatedEvent=True)
        self.call("attach", **arguments)
        self.event("initialized")
        self.call("configurationDone")
        return capabilities

    def pause(self):
        self.call("pause", threadId=1)
        return self.event("stopped")

    def frame(self, thread=1):
        return self.call("stackTrace", threadId=thread)["stackFrames"][0]

    def scope(self, name, thread=1):
        scopes = self.call("scopes", frameId=self.frame(thread)["id"])["scopes"]
        return next(s for s in scopes if s["name"] == name)["variablesReference"]

    def variables(self, reference, **page):
        return self.call("variables", variablesReference=reference, **page)["variables"]

    def values(self, name, thread=1):
        """{variable: value} of a scope."""
        return {v["name"]: v["value"] for v in self.variables(self.scope(name, thread))}


class Adapter(Session):
    """gpu-agentctl dap."""

    def __init__(self, socket, env=None, args=()):
        super().__init__()
        self.popen = subprocess.Popen([BIN / "gpu-agentctl", "dap", *args], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
                                      env={**os.environ, "GPU_AGENT_SOCKET": str(socket), **(env or {})})
        self.pid = self.popen.pid

    def __exit__(self, *_):
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait()
        for stream in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            stream.close()

    def output(self):
        return self.popen.stdout.fileno()

    def write(self, data):
        self.popen.stdin.write(data)

    def finish(self):
        self.call("disconnect", restart=False)
        self.popen.stdin.close()
        return self.popen.wait(PATIENCE)


class SocketSession(Session):
    """The agent's own socket, spoken to as an adapter."""

    def __init__(self, path):
        super().__init__()
        self.socket = sockets.socket(sockets.AF_UNIX)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(str(path))

    def __exit__(self, *_):
        self.socket.close()

    def output(self):
        return self.socket.fileno()

    def write(self, data):
        self.socket.sendall(data)

    def is_over(self):
        """The agent's side has closed; what was said before is kept."""
        while (message := self.read()) is not None:
            self.messages.append(message)
        return True

    def finish(self):
        self.call("disconnect", restart=False)
        return self.is_over()


class Between:
    """Passes on what an adapter and the agent say to each other, but for methods in .refused, which fail with .error.

    .look(request) is called before a request is passed on, and may change it; .sizes are the bytes of each message of the agent.
    """

    def __init__(self, s):
        self.path = s.directory / "between"
        self.refused = set()
        self.error = {"code": -32005, "data": {"name": "timeout"}}
        self.look = lambda request: None
        self.sizes = []
        self.listener = sockets.socket(sockets.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen(1)
        self.agent = sockets.socket(sockets.AF_UNIX)
        self.agent.connect(str(s.socket))
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._requests, daemon=True)]
        self.threads[0].start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._shut(self.listener)
        self._shut(self.agent)
        for thread in self.threads:
            thread.join(20)
        self.listener.close()
        self.agent.close()

    def _say(self, line):
        with self.lock, contextlib.suppress(OSError):
            self.adapter.sendall(line)

    def _answers(self):
        with self.agent.makefile("rb") as lines:
            for line in lines:
                self.sizes.append(len(line))
                self._say(line)
        self._shut(self.adapter)

    @staticmethod
    def _shut(end):
        with contextlib.suppress(OSError):
            end.shutdown(sockets.SHUT_RDWR)

    def _requests(self):
        with contextlib.suppress(OSError):
            self.adapter, _ = self.listener.accept()
            self.threads.append(threading.Thread(target=self._answers, daemon=True))
            self.threads[-1].start()
            with self.adapter, self.adapter.makefile("rb") as lines:
                for line in lines:
                    request = json.loads(line)
                    self.look(request)
                    if request["method"] in self.refused:
                        error = {"message": f"{request['method']} refused", **self.error}
                        self._say(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}).encode() + b"\n")
                    else:
                        self.agent.sendall(json.dumps(request).encode() + b"\n")
            self._shut(self.agent)
