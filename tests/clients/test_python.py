#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The Python client on the socket of a real daemon: what it returns is what its types say."""
import asyncio
import base64
import contextlib
import json
import os
import pathlib
import select
import signal
import socket
import struct
import sys
import tempfile
import threading
import typing

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import BIN, ROOT, Scene, as_user, wait_until

sys.path.insert(0, str(BIN.parent / "clients/python"))
import gpu_agent
from gpu_agent import protocol


def fits(value, hint, path="result"):
    """A value of JSON against a type of the client's."""
    origin = typing.get_origin(hint)
    if hint is typing.Any:
        return
    if origin is typing.Literal:
        assert value in typing.get_args(hint), f"{path}: {value!r} is not one of {hint}"
    elif origin is list:
        assert isinstance(value, list), f"{path}: {value!r:.60}"
        for i, item in enumerate(value):
            fits(item, typing.get_args(hint)[0], f"{path}[{i}]")
    elif hasattr(hint, "__required_keys__"):
        hints = typing.get_type_hints(hint)
        assert hint.__required_keys__ <= set(value) <= set(hints), f"{path}: {set(value)} for {hint}"
        for key, item in value.items():
            fits(item, hints[key], f"{path}.{key}")
    else:
        assert type(value) is hint, f"{path}: {value!r:.60} is not {hint}"


class Checked:
    """Calls of a client, each result compared with the type that the call promises."""

    def __init__(self, client):
        self.client = client

    def __getattr__(self, name):
        call = getattr(self.client, name)

        def checked(**params):
            result = call(**params)
            fits(result, typing.get_type_hints(call)["return"], name)
            return result

        return checked


def raises(kind, function, *args, **kwargs):
    try:
        value = function(*args, **kwargs)
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} expected, got {value!r}")


def test_each_method_is_a_call():
    """Names and parameters as in the schema, in both classes."""
    for method in json.loads((ROOT / "protocol/gpu-agent.json").read_text())["methods"]:
        name = method["name"].replace(".", "_")
        for kind in (gpu_agent.Client, gpu_agent.AsyncClient):
            code = getattr(kind, name).__code__
            names = [*code.co_varnames[1:1 + code.co_kwonlyargcount]]
            wanted = {p["name"] for p in method["params"]}
            assert set(names) == wanted, (name, names)


def test_every_kind_of_call():
    with Scene() as s, gpu_agent.Client(s.socket) as client:
        agent = Checked(client)
        hello = agent.agent_hello(client="test \u2713")
        assert hello["protocol"] == gpu_agent.PROTOCOL_VERSION and set(hello["features"]) <= set(gpu_agent.FEATURES)
        assert agent.rpc_discover()["openrpc"], "a result that travels bare"
        assert [p["queues"] for p in agent.process_list()["processes"] if p["pid"] == s.app.pid] == [4]
        assert agent.process_doctor(pid=s.app.pid)["ok"]
        session = agent.session_attach(pid=s.app.pid, control=True)["session"]
        assert agent.session_list()["sessions"][0]["writer_pid"] == os.getpid()
        assert len(agent.gpu_queues(session=session)["queues"]) == 4
        assert len(agent.gpu_devices(session=session)["devices"]) == 2
        assert agent.gpu_snapshot(session=session, waves=True, registers=True)["complete"]
        assert agent.gpu_suspend(session=session, lease_ms=5000)["suspended"] == 4
        assert agent.gpu_resume(session=session)["resumed"] == 4
        gpu_id = agent.gpu_devices(session=session)["devices"][0]["gpu_id"]
        agent.watchpoint_set(session=session, gpu_id=gpu_id, address="0x7f0000001000", size=128, mode="nonread")
        assert agent.watchpoint_list(session=session)["watchpoints"][0]["mode"] == "nonread"
        assert agent.watchpoint_clear(session=session)["cleared"] == 1
        agent.launch_override(session=session, mode="or", enable=["memory_violation"], request=["memory_violation"])
        agent.exception_subscribe(session=session, exceptions=["wave_trap", "queue_new"])
        assert agent.cores_usage()["records"] == 0
        assert agent.session_detach(session=session)["ended"]
        assert not s.target_state()["enabled"]


def test_a_core_comes_with_a_descriptor():
    """The same bytes that core.read gives; one that nobody takes is closed."""
    with Scene() as s, gpu_agent.Client(s.socket) as client, tempfile.TemporaryFile() as file:
        session = client.session_attach(pid=s.app.pid, control=True)["session"]
        size = client.core_begin(session=session)["bytes"]
        result, descriptor = client.core_write(session=session, stall_ms=30000)
        assert result["bytes"] == size and not os.get_inheritable(descriptor)
        file.write(b"mine")
        assert gpu_agent.write_core(descriptor, file) == 0
        assert os.fstat(file.fileno()).st_size == len(b"mine") + size
        core = b""
        while len(core) < size:
            piece = client.core_read(session=session, offset=len(core), size=1 << 20)
            core += base64.b64decode(piece["data"]) or bytes(piece["size"])
        file.seek(0)
        assert file.read() == b"mine" + core
        before = len(os.listdir("/proc/self/fd"))
        client.call("core.write", {"session": session})
        client.agent_hello()
        assert len(os.listdir("/proc/self/fd")) == before
        client.core_end(session=session)


def test_what_is_no_whole_core_is_told():
    head = struct.Struct("=IIQ")
    error = b'{"code":-32010,"message":"no more"}'
    rows = [(b"", ConnectionResetError), (head.pack(1, 0, 5) + b"ab", ConnectionResetError), (head.pack(9, 0, 1), ValueError),
            (head.pack(2, 0, 5), ConnectionResetError), (head.pack(4, 0, len(error)) + error, gpu_agent.AgentError)]
    for data, kind in rows:
        ours, theirs = socket.socketpair()
        with ours, tempfile.TemporaryFile() as file:
            ours.sendall(data)
            ours.shutdown(socket.SHUT_WR)
            raises(kind, gpu_agent.write_core, theirs.detach(), file)
    ours, theirs = socket.socketpair()
    with ours, tempfile.TemporaryFile() as file:
        raises(TimeoutError, gpu_agent.write_core, theirs.detach(), file, timeout=0.1)


def test_errors_are_exceptions():
    with Scene() as s, gpu_agent.Client(s.socket) as agent:
        error = raises(gpu_agent.NoSuchProcessError, agent.session_attach, pid=4194304)
        assert (error.code, error.name, error.method) == (-32001, "no_such_process", "session.attach")
        assert error.hint and error.hint in str(error) and error.message in str(error)
        assert "params.pid" in raises(gpu_agent.InvalidParamsError, agent.session_attach, pid=0).message
        raises(gpu_agent.NoSuchSessionError, agent.gpu_queues, session="x")
        raises(gpu_agent.MethodNotFoundError, agent.call, "no.such_method")
        raises(TypeError, agent.session_attach)
        raises(TypeError, agent.session_attach, pid=1, pit=2)
        assert agent.agent_status()["connections"] == 1, "the connection is as good as before"
    assert len(protocol.ERRORS) == len(set(protocol.ERRORS.values()))


def test_notifications_arrive():
    with Scene() as s, gpu_agent.Client(s.socket) as agent:
        session = agent.session_attach(pid=s.app.pid, control=True)["session"]
        raises(TimeoutError, agent.notification, timeout=0)
        raises(TimeoutError, agent.notification, timeout=0.05)
        agent.gpu_suspend(session=session, lease_ms=100)
        method, params = agent.notification(timeout=20)
        fits(params, protocol.NOTIFICATIONS[method])
        assert method == "gpu.resumed" and params["reason"] == "lease_expired" and params["queues"] == 4
        # One that arrives while a call waits is kept.
        s.app.popen.send_signal(signal.SIGKILL)
        wait_until(lambda: not agent.session_list()["sessions"], "session ends")
        method, params = agent.notification(timeout=20)
        fits(params, protocol.NOTIFICATIONS[method])
        assert (method, params["reason"]) == ("session.ended", "exited")


def test_a_lost_connection_is_told():
    with Scene() as s:
        with gpu_agent.Client(s.socket) as agent:
            agent.agent_hello()
            s.agentd.stop()
            raises(ConnectionError, lambda: [agent.agent_hello() for _ in range(2)])
        raises(OSError, gpu_agent.Client, s.socket)
    raises(FileNotFoundError, gpu_agent.Client, "/nonexistent/socket")


def test_an_agent_that_cannot_be_reached_is_told_with_what_to_do():
    async def connect(path):
        await gpu_agent.AsyncClient.connect(path)

    def refused(kind, path, hint):
        for error in (raises(kind, gpu_agent.Client, path), raises(kind, lambda: asyncio.run(connect(path)))):
            assert error.filename == str(path) and hint in str(error) and str(path) in str(error), error

    refused(FileNotFoundError, "/nonexistent/socket", "gpu-agentd.socket")
    refused(ConnectionRefusedError, "/dev/null", "gpu-agentd.socket")
    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as listener:
        path = os.path.join(directory, "socket")
        listener.bind(path)
        listener.listen(1)
        os.chmod(path, 0o600)
        os.chmod(directory, 0o755)
        if os.getuid() == 0:
            as_user(65534, lambda: refused(PermissionError, path, "adduser USER gpu-debug"))


def test_processes_of_the_caller_only():
    with Scene() as s, gpu_agent.Client(s.socket) as agent:
        agent = Checked(agent)
        mine = agent.process_list(mine=True)["processes"]
        assert s.app.pid in [p["pid"] for p in mine] and {p["uid"] for p in mine} == {os.getuid()}, mine
        if os.getuid() != 0:
            return

        def stranger():
            with gpu_agent.Client(s.socket) as agent:
                assert s.app.pid in [p["pid"] for p in agent.process_list()["processes"]]
                assert s.app.pid not in [p["pid"] for p in agent.process_list(mine=True)["processes"]]

        os.chmod(s.directory, 0o755)
        os.chmod(s.socket, 0o666)
        as_user(65534, stranger)


def test_threads_stand_beside_waves():
    """The same document as of gpu-agentctl snapshot --host, with the packets that threads wait for."""
    with Scene(app="runtime on; queues 2; wait 1; spin") as s, gpu_agent.Client(s.socket) as agent:
        session = agent.session_attach(pid=s.app.pid)["session"]
        snapshot = agent.gpu_snapshot(session=session)
        agent.session_detach(session=session)
        places = gpu_agent.queue_places(snapshot["queues"])
        assert [p["queue_id"] for p in places] == [q["queue_id"] for q in snapshot["queues"]], places
        gpu_agent.add_threads(snapshot, agent.host_stacks(pid=s.app.pid, queues=places))
        waits = [g["waits_for"]["queue_id"] for g in snapshot["host"]["groups"]
                 if "queue_id" in g.get("waits_for", {})]
        assert waits == [snapshot["queues"][1]["queue_id"]], waits
        assert snapshot["complete"] == (not snapshot["missing"]) == snapshot["host"]["complete"], snapshot["missing"]
        shown = json.loads(s.ctl("snapshot", s.app.pid, "--host", "-j").stdout)
        assert set(shown) == set(snapshot), set(shown) ^ set(snapshot)
    assert gpu_agent.queue_places([{"type": "sdma", "queue_id": 1, "gpu_id": 1}, {"type": "compute_aql", "queue_id": 2}]) == []


def test_groups_can_be_sorted_by_kernel():
    """One without a known kernel is among them."""
    groups = [{"pc": "0x1", "kernel": {"name": "scale"}}, {"pc": "0x2"}, {"pc": "0x3", "kernel": {"address": "0x4"}},
              {"pc": "0x5", "kernel": {"name": "add"}}]
    assert [g["pc"] for g in sorted(groups, key=gpu_agent.kernel_name)] == ["0x2", "0x3", "0x5", "0x1"]
    assert gpu_agent.kernel_name({"kernel": "of a record"}) == "of a record"
    with Scene() as s, gpu_agent.Client(s.socket) as agent:
        session = agent.session_attach(pid=s.app.pid)["session"]
        groups = agent.gpu_snapshot(session=session)["groups"]
        names = [gpu_agent.kernel_name(g) for g in sorted(groups, key=gpu_agent.kernel_name)]
        assert names == sorted(names) and all(isinstance(name, str) for name in names), names


@contextlib.contextmanager
def server(talk):
    """The path of a socket; `talk` gets the one connection that is taken there, and may fail on it."""
    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as listener:
        path = os.path.join(directory, "socket")
        listener.bind(path)
        listener.listen(1)

        def serve():
            with contextlib.suppress(OSError), listener.accept()[0] as connection:
                connection.settimeout(20)
                talk(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield path
        thread.join(30)
        assert not thread.is_alive()


def silent_server(answer=b""):
    """Says `answer` to each request, hangs up after the third."""
    def talk(connection):
        for _ in range(3):
            if not connection.recv(4096):
                break
            connection.sendall(answer)

    return server(talk)


def test_no_answer_is_given_up():
    with silent_server() as path, gpu_agent.Client(path, timeout=0.1) as agent:
        assert "agent.hello: no answer within 0.1 s" in str(raises(TimeoutError, agent.agent_hello))
        raises(TimeoutError, agent.notification, timeout=0.1)
    # The late answer to one call is not taken for that to the next.
    late = b'{"jsonrpc":"2.0","id":7,"result":{}}\n{"jsonrpc":"2.0","id":1,"result":{"a":1}}\n'
    with silent_server(late) as path, gpu_agent.Client(path) as agent:
        assert agent.agent_hello() == {"a": 1}
        agent.timeout = 0.5
        raises(TimeoutError, agent.agent_hello)
    for nonsense in (b"nonsense\n", b"[1]\n", b"\xff\n"):
        with silent_server(nonsense) as path, gpu_agent.Client(path) as agent:
            raises(ValueError, agent.agent_hello)


def test_half_a_request_ends_a_connection():
    """Nothing that is said after it would be understood."""
    left = threading.Event()
    with server(lambda connection: left.wait(20)) as path:
        with gpu_agent.Client(path, timeout=0.1) as agent:
            raises(TimeoutError, agent.call, "any", {"long": "x" * (8 << 20)})
            raises(ConnectionError, agent.agent_hello)
        left.set()


def test_notifications_without_end_are_no_answer():
    def talk(connection):
        while True:
            connection.sendall(b'{"jsonrpc":"2.0","method":"x","params":{}}\n' * 100)

    with server(talk) as path, gpu_agent.Client(path, timeout=0.2) as agent:
        raises(TimeoutError, agent.agent_hello)
        assert agent.notification(timeout=20) == ("x", {})


def test_requests_that_are_too_long():
    with Scene(app=None) as s, gpu_agent.Client(s.socket) as agent:
        raises(gpu_agent.TooLargeError, agent.call, "agent.hello", {"client": "x" * (1 << 20)})
        raises(ValueError, agent.call, "agent.hello", {"client": float("nan")})
        assert agent.agent_hello()

        async def beside_others():
            async with await gpu_agent.AsyncClient.connect(s.socket, timeout=30) as agent:
                calls = [agent.call("agent.hello", {"client": "x" * length}) for length in (1, 1 << 20, 2, 3)]
                results = await asyncio.gather(*calls, return_exceptions=True)
                assert [type(r) for r in results] == [dict, gpu_agent.TooLargeError, dict, dict], results

        asyncio.run(beside_others())


def test_a_refused_connection_is_told_why():
    with Scene(app=None) as s, contextlib.ExitStack() as stack:
        limit = stack.enter_context(gpu_agent.Client(s.socket)).agent_hello()["limits"]["connections"]
        for _ in range(limit - 1):
            stack.enter_context(gpu_agent.Client(s.socket))
        with gpu_agent.Client(s.socket) as agent:
            assert select.select([agent], [], [], 20)[0], "it has been closed"
            assert "too many connections" in raises(gpu_agent.LimitError, agent.agent_hello).message

        async def refused():
            async with await gpu_agent.AsyncClient.connect(s.socket) as agent:
                for _ in range(2):
                    try:
                        await asyncio.wait_for(agent.notification(), 20)
                        raise AssertionError("a notification from nobody")
                    except ConnectionError:
                        pass
                try:
                    await agent.agent_hello()
                    raise AssertionError("an answer from nobody")
                except gpu_agent.LimitError as error:
                    assert "too many connections" in error.message

        asyncio.run(refused())


def test_several_at_once_with_asyncio():
    async def session_of(s):
        async with await gpu_agent.AsyncClient.connect(s.socket) as agent:
            session = (await agent.session_attach(pid=s.app.pid, control=True))["session"]
            calls = [agent.gpu_queues(session=session) if i % 2 else agent.agent_status() for i in range(50)]
            for i, result in enumerate(await asyncio.gather(*calls)):
                fits(result, protocol.GpuQueuesResult if i % 2 else protocol.AgentStatusResult)
            await agent.gpu_suspend(session=session, lease_ms=100)
            method, params = await asyncio.wait_for(agent.notification(), 20)
            assert method == "gpu.resumed", (method, params)
            try:
                await agent.session_attach(pid=4194304)
                raise AssertionError("attached to nothing")
            except gpu_agent.NoSuchProcessError as error:
                assert error.hint
            waiting = [asyncio.ensure_future(agent.notification()) for _ in range(3)]
            s.agentd.stop()
            for lost in (*waiting, agent.agent_hello(), agent.notification()):
                # The end of the session may be told before that of the connection.
                try:
                    method, params = await asyncio.wait_for(lost, 20)
                    assert (method, params["reason"]) == ("session.ended", "stopped")
                except ConnectionError:
                    pass
            try:
                await agent.agent_hello()
                raise AssertionError("an answer from nobody")
            except ConnectionError:
                pass

    with Scene() as s:
        asyncio.run(session_of(s))

    async def silence(path):
        async with await gpu_agent.AsyncClient.connect(path, timeout=0.1) as agent:
            try:
                await agent.agent_hello()
                raise AssertionError("an answer from nobody")
            except TimeoutError:
                pass

    with silent_server() as path:
        asyncio.run(silence(path))

    async def nonsense(path):
        async with await gpu_agent.AsyncClient.connect(path) as agent:
            try:
                await agent.agent_hello()
                raise AssertionError("an answer from nobody")
            except ConnectionError:
                pass

    with silent_server(b"[1]\n") as path:
        asyncio.run(nonsense(path))


def test_socket_is_chosen_as_by_the_command():
    kept = {name: os.environ.pop(name, None) for name in ("GPU_AGENT_SOCKET", "XDG_RUNTIME_DIR")}
    system = "/run/gpu-agent/agentd.sock"
    try:
        with tempfile.TemporaryDirectory() as directory:
            assert gpu_agent.default_socket() == system
            os.environ["XDG_RUNTIME_DIR"] = directory
            assert gpu_agent.default_socket() == system
            own = pathlib.Path(directory, "gpu-agent/agentd.sock")
            own.parent.mkdir()
            own.touch()
            assert gpu_agent.default_socket() == (system if os.path.exists(system) else str(own))
            os.environ["GPU_AGENT_SOCKET"] = "/else"
            assert gpu_agent.default_socket() == "/else"
    finally:
        for name, value in kept.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
