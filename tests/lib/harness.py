# SPDX-License-Identifier: MIT
"""What every system test starts: simulated GPU, program, daemon, client.

    if __name__ == "__main__":
        os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

    from harness import Scene

    def test_queues_are_listed():
        with Scene(app="runtime on; queues 4; spin") as s:
            session = s.attach()
            assert len(s.rpc.call("gpu.queues", session=session)["queues"]) == 4

Everything started is ended, also when a test fails.  Nothing here needs pytest: bench/run and scripts/gpu-check use it as well.
"""
from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from types import TracebackType
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Type, TypeVar, Union
from unittest import SkipTest

import schema as schema_module

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ.get("BIN", ROOT / "build/bin"))
LIBEXEC = ("gpu-agentd", "gpu-agent-monitor", "gpu-agent-heir", "gpu-agent-front", "gpu-agent-judge", "gpu-agent-worker",
           "gpu-agent-store", "gpu-agent-rules", "gpu-agent-hook", "gpu-agent-adapter", "gpu-agent-tracer", "gpu-agent-connect")
# Sanitizer builds on a loaded machine are slow; a deadline only decides how long a failure takes.
PATIENCE = float(os.environ.get("TEST_PATIENCE", "20"))
# How many times longer a program may run than on usual machines; as test_slow_ms() of testlib.h.
SLOWNESS = max(1.0, PATIENCE / 20)
# What is promised of a target after whoever used it is gone.
AT_ONCE_S = 1.0
# Sanitizer builds report leaks and unmap shadow memory at exit; the promise is about the product.
SLACK_S = float(os.environ.get("TEST_SLACK", "2" if "asan" in os.environ.get("BIN", "") else "0"))
# The longest stop there is: where budgets are not what is tested, a machine that stands still must not use one up.
STOP_MS = 7000
LONG_STOP = f"--max-stop={STOP_MS}ms"


Value = TypeVar("Value")
AnyScene = TypeVar("AnyScene", bound="Scene")
AnyCudaScene = TypeVar("AnyCudaScene", bound="CudaScene")
Path = Union[str, pathlib.Path]
# An object of the protocol.
Json = Dict[str, Any]


class RpcError(Exception):
    """An error reply; .name, .code, .data as in the schema."""

    def __init__(self, error: Json) -> None:
        super().__init__(f"{error.get('data', {}).get('name')}: {error['message']}")
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Json = error.get("data", {})
        self.name: Optional[str] = self.data.get("name")
        self.hint: Optional[str] = self.data.get("hint")


def wait_until(condition: Callable[[], Value], what: str, patience: float = PATIENCE) -> Value:
    """Poll until condition() is true; its value is returned."""
    deadline = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {patience:g} s")
        time.sleep(0.005)


def at_once(condition: Callable[[], Any], what: str, begun: Optional[float] = None, slack: float = SLACK_S) -> None:
    """Within the second that is promised; not counted is what the machine takes from everybody, and so from this look."""
    last = time.monotonic()
    start, taken = begun or last, 0.0
    while not condition():
        time.sleep(0.005)
        now = time.monotonic()
        taken += max(0, now - last - 0.1)
        last = now
        assert now - start - taken < AT_ONCE_S + slack, f"{what}: not within {now - start:g} s, {taken:g} s of them lost"


def wait_settled(measure: Callable[[], Value], what: str, still: float = 0.5) -> Value:
    """Poll until measure() has been the same for so long; its value is returned."""
    seen, since = measure(), time.monotonic()

    def is_settled() -> bool:
        nonlocal seen, since
        now = measure()
        if now != seen:
            seen, since = now, time.monotonic()
        return time.monotonic() - since >= still

    wait_until(is_settled, f"{what} comes to rest")
    return seen


class Rpc:
    """JSON-RPC over newline-delimited frames; every reply is checked against the schema."""

    schema = schema_module.load()

    def __init__(self, path: Path, patience: float = PATIENCE) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # First: with a timeout it would not wait for room among those that are not accepted yet (EAGAIN).
        self.sock.connect(str(path))
        self.sock.settimeout(patience)
        self.buffer = b""
        self.next_id = 0
        self.notifications: List[Tuple[str, Json]] = []

    def close(self) -> None:
        self.sock.close()

    def send_raw(self, data: bytes) -> None:
        self.sock.sendall(data)

    def read_line(self) -> bytes:
        while b"\n" not in self.buffer:
            data = self.sock.recv(65536)
            if not data:
                raise EOFError("the agent closed the connection")
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line

    def read_message(self) -> Any:
        return json.loads(self.read_line())

    def send(self, method: str, **params: Any) -> None:
        """Ask, and do not wait for the answer."""
        self.next_id += 1
        self.send_raw(json.dumps({"jsonrpc": "2.0", "id": self.next_id, "method": method,
                                  "params": params}).encode() + b"\n")

    def call_raw(self, method: str, params: Json) -> Json:
        """The reply object as it came."""
        self.send(method, **params)
        while True:
            message: Json = self.read_message()
            if message.get("id") == self.next_id:
                return message
            self._keep(message)

    def call(self, method: str, **params: Any) -> Any:
        reply = self.call_raw(method, params)
        if "error" in reply:
            self.schema.check_error(reply["error"], method)
            raise RpcError(reply["error"])
        self.schema.check_result(method, reply["result"])
        return reply["result"]

    def error(self, method: str, **params: Any) -> RpcError:
        """The error that this call must give."""
        try:
            result = self.call(method, **params)
        except RpcError as error:
            return error
        raise AssertionError(f"{method} succeeded: {result}")

    def _keep(self, message: Json) -> None:
        assert "method" in message and "id" not in message, message
        self.schema.check_notification(message["method"], message["params"])
        self.notifications.append((message["method"], message["params"]))

    def notification(self, method: str, patience: float = PATIENCE) -> Any:
        """The next notification of that kind; earlier ones of other kinds are kept."""
        deadline = time.monotonic() + patience
        while True:
            for i, (name, params) in enumerate(self.notifications):
                if name == method:
                    del self.notifications[i]
                    return params
            self.sock.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                self._keep(self.read_message())
            except TimeoutError:
                raise AssertionError(f"no {method} within {patience:g} s; had {self.notifications}") from None
            finally:
                self.sock.settimeout(PATIENCE)


class PatientRpc(Rpc):
    """Looks have all the time there is where a test does not say how long."""

    LOOKS = ("gpu.snapshot", "wave.registers", "memory.read", "core.begin")

    def call_raw(self, method: str, params: Json) -> Json:
        return super().call_raw(method, {"max_stop_ms": STOP_MS, **params} if method in self.LOOKS else params)


_EXCEPTIONS = next(e["values"] for e in json.loads((ROOT / "protocol/gpu-agent.json").read_text())["enums"]
                   if e["name"] == "exception")
EXCEPTIONS = {v["name"]: v["value"] for v in _EXCEPTIONS}
EXCEPTION_WORDS = {v["name"]: v["doc"] for v in _EXCEPTIONS}


class Process:
    """A started program with its output in files."""

    status_file: pathlib.Path  # of a program that tells how it is there

    def __init__(self, name: str, argv: Iterable[Any], directory: pathlib.Path, env: Optional[Dict[str, str]] = None,
                 **kwargs: Any) -> None:
        self.name = name
        self.err_path = directory / f"{name}.err"
        self.out_path = directory / f"{name}.out"
        with open(self.err_path, "ab") as err, open(self.out_path, "ab") as out:
            self.popen = subprocess.Popen([str(a) for a in argv], stdin=subprocess.PIPE, stdout=out, stderr=err,
                                          env={**os.environ, **(env or {})}, **kwargs)
        self.pid = self.popen.pid

    def out(self) -> str:
        return self.out_path.read_text(errors="replace")

    def err(self) -> str:
        return self.err_path.read_text(errors="replace")

    def wait_line(self, which: str = "out", words: str = "") -> str:
        """The first line with these words in it."""
        read = self.out if which == "out" else self.err

        def found() -> List[str]:
            assert self.popen.poll() is None, f"{self.name} exited {self.popen.returncode}: {self.err()}"
            return [line for line in read().split("\n")[:-1] if words in line]

        return wait_until(found, f"ready line of {self.name}")[0]

    def stop(self, sig: int = signal.SIGTERM, patience: float = PATIENCE) -> Optional[int]:
        if self.popen.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self.popen.send_signal(sig)
            try:
                self.popen.wait(patience)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                with contextlib.suppress(subprocess.TimeoutExpired):  # a zombie whose tracer lives
                    self.popen.wait(patience)
        return self.popen.returncode


def unsanitized(name: str) -> pathlib.Path:
    """A program as the normal build has it, without a shadow of terabytes; what is tested where there is no such build."""
    program = BIN.parent.parent / "bin" / name
    return program if program.exists() else BIN / name


def copy_programs(directory: pathlib.Path) -> pathlib.Path:
    """The build in a directory where the programs of the agent can be replaced."""
    for program in BIN.iterdir():
        if program.name in LIBEXEC:
            shutil.copy2(program, directory)
        else:
            (directory / program.name).symlink_to(program)
    return directory


def children(pid: int) -> List[int]:
    """Process ids of the direct children."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and status(int(entry)).get("PPid") == str(pid):
            found.append(int(entry))
    return found


def agent_children(pid: int) -> List[int]:
    """What an agent consists of besides gpu-agentd: its children, and those of the monitor among them."""
    found = children(pid)
    return found + [c for p in found if status(p).get("Name") == "gpu-agent-monit" for c in children(p)]


def children_named(pid: int, name: str) -> List[int]:
    """Those of an agent that run that program, or have given themselves that name; the kernel keeps 15 characters of it."""
    return [p for p in agent_children(pid) if status(p).get("Name") == name[:15]]


def monitor_of(pid: int) -> int:
    """The process of that agent that has workers."""
    return children_named(pid, "gpu-agent-monitor")[0]


def descendants(pid: int) -> List[int]:
    found = children(pid)
    return found + [d for child in found for d in descendants(child)]


def kill_agent(pid: int) -> None:
    """Every process of the agent at once, as a service manager does when the monitor dies: nobody is left to undo anything."""
    for p in (pid, monitor_of(pid)):
        os.kill(p, signal.SIGSTOP)
    names = {p: status(p).get("Name", "") for p in descendants(pid)}
    assert "gpu-agent-heir" in names.values(), names
    # It would look after what it sees die before it dies itself.
    for p in (p for p, name in names.items() if name == "gpu-agent-heir"):
        os.kill(p, signal.SIGSTOP)
    # A worker that sees front die would undo what it did.
    for p in [*sorted(names, key=lambda p: names[p] != "gpu-agent-worke"), pid]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(p, signal.SIGKILL)
    wait_until(lambda: all(status(p).get("State", "Z")[0] in "ZX" for p in [*names, pid]), "all are dead")


def status(pid: Union[int, str]) -> Dict[str, str]:
    """/proc/PID/status as a dictionary; empty when the process is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return {}
    return {key: value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())}


def writers(directory: Path) -> List[int]:
    """Processes whose output is a file in it, also when that is deleted."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        for fd in (1, 2):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{entry}/fd/{fd}").startswith(f"{directory}/"):
                    found.append(int(entry))
                    break
    return found


def end_writers(directory: Path) -> None:
    """End what a scene left.  A process that looks for leaks when it exits waits for a child, and on a processor: for
    ever, if a test has killed that child as one of the agent's."""
    deadline = time.monotonic() + 2
    while writers(directory) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in writers(directory):
        sys.stdout.write(f"  left behind, and killed: {pid} {status(pid).get('Name')}\n")
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def wakeups(pids: Iterable[int]) -> Union[float, Dict[int, str]]:
    """How often each began to sleep, for wait_settled(): not before all of them do."""
    found = {p: status(p) for p in pids}
    if not all(f.get("State", "").startswith("S") for f in found.values()):
        return time.monotonic()
    return {p: f["voluntary_ctxt_switches"] for p, f in found.items()}


def rss_kib(pid: int) -> int:
    return int(status(pid).get("VmRSS", "0 kB").split()[0])


class AppStatus:
    """The program's own view, from the file it maps (sim/app/status.h)."""

    HEAD = struct.Struct("<IIiIIIIIQQQQQQ")
    THREAD = struct.Struct("<QQiI")
    QUEUE = struct.Struct("<IIIIQQQQQQIIQ")
    THREADS_MAX = 64

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def _head(self) -> Tuple[Any, ...]:
        with open(self.path, "rb") as f:
            return self.HEAD.unpack(f.read(self.HEAD.size))

    def _threads(self) -> Iterator[Tuple[int, Tuple[Any, ...]]]:
        """(offset, fields) of each CPU thread."""
        with open(self.path, "rb") as f:
            data = f.read(self.HEAD.size + self.THREADS_MAX * self.THREAD.size)
        n = self._head()[3]
        for offset in range(self.HEAD.size, self.HEAD.size + n * self.THREAD.size, self.THREAD.size):
            yield offset, self.THREAD.unpack_from(data, offset)

    @property
    def faults(self) -> int:
        """Errors that the runtime part of the program was told."""
        head = self._head()
        return head[9] + head[10]

    @property
    def interrupted_waits(self) -> int:
        """How often RUNTIME_ENABLE was made to return without an answer, and repeated."""
        return self._head()[7]

    def queue_errors(self) -> Dict[int, int]:
        """Reasons that the runtime part was told last, by queue id; of queues that are alive."""
        with open(self.path, "rb") as f:
            f.seek(self.HEAD.size + self.THREADS_MAX * self.THREAD.size)
            slots = self.QUEUE.iter_unpack(f.read(self._head()[4] * self.QUEUE.size))
            return {queue[1]: queue[12] for queue in slots if queue[0]}

    @property
    def memory_fault_va(self) -> int:
        return self._head()[11]

    @property
    def signals(self) -> int:
        return self._head()[12]

    @property
    def beats(self) -> int:
        return sum(fields[0] for _, fields in self._threads())

    def take_gap_ns(self) -> int:
        """Largest pause of any CPU thread since the last call."""
        largest = 0
        with open(self.path, "r+b") as f:
            for offset, fields in list(self._threads()):
                largest = max(largest, fields[1])
                f.seek(offset + 8)
                f.write(bytes(8))
                f.flush()
        return largest


class Scene:
    """Simulated GPU, one program on it, and the daemon."""

    # None until they are started, which __enter__() does unless it is told otherwise.
    sim: Process
    app: Process
    agentd: Process

    def __init__(self, app: Optional[str] = "runtime on; queues 4; spin", gpus: str = "gfx942,gfx1100", sim: Any = (),
                 agentd: Sequence[Any] = (), user_mode: bool = True, app_user: Union[int, str, None] = None,
                 start_agent: bool = True, app_program: Optional[pathlib.Path] = None) -> None:
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="gpu-agent-test."))
        self.app_program = app_program or BIN / "gpu-agent-simapp"
        self.mount = self.directory / "sys"
        self.socket = self.directory / "agentd.sock"
        self.cores = self.directory / "cores"
        self.processes: List[Process] = []
        self.clients: List[Rpc] = []
        self.options: Tuple[Any, ...] = (app, gpus, sim, agentd, user_mode, app_user, start_agent)
        self.sim = self.app = self.agentd = None  # type: ignore[assignment]

    # -- starting -------------------------------------------------------------------------------

    def __enter__(self: AnyScene) -> AnyScene:
        app, gpus, sim, agentd, user_mode, app_user, start_agent = self.options
        if not os.path.exists("/dev/fuse"):
            raise SkipTest("no /dev/fuse for the simulated GPU")
        try:
            os.chmod(self.directory, 0o755)
            self.mount.mkdir()
            self.sim = self.start("sim", [BIN / "gpu-agent-sim", "--mount", self.mount, "--gpus", gpus, *sim])
            self.sim.wait_line()
            if app is not None:
                self.app = self.start_app(app, user=app_user)
            if start_agent:
                self.start_agentd(*agentd, user_mode=user_mode)
            return self
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def start(self, name: str, argv: Iterable[Any], **kwargs: Any) -> Process:
        process = Process(f"{name}{len(self.processes)}", argv, self.directory, **kwargs)
        self.processes.append(process)
        return process

    def start_app(self, script: str, user: Union[int, str, None] = None, name: str = "app", extra: Sequence[Any] = ()) -> Process:
        """A program on the simulated GPU; returns once it has set itself up."""
        status_file = self.directory / f"status{len(self.processes)}"
        status_file.touch()
        os.chmod(status_file, 0o666)
        program = self.app_program
        kwargs: Dict[str, Any] = {}
        if user is not None:
            # The tree may lie where only root can go; what runs cannot be written anew.
            copied = self.directory / program.name
            program = copied if copied.exists() else pathlib.Path(shutil.copy(program, self.directory))
            kwargs = {"user": user, "group": user, "extra_groups": []}
        process = self.start(name, [program, "--kfd", self.mount / "kfd", "--status-file", status_file,
                                    *extra, "-e", script], **kwargs)
        process.status_file = status_file
        process.wait_line()
        return process

    def start_agentd(self, *options: Any, user_mode: bool = True, env: Optional[Dict[str, str]] = None,
                     **kwargs: Any) -> Process:
        argv: List[Any] = [BIN / "gpu-agentd", "--socket", self.socket, "--kfd", self.mount / "kfd",
                           "--kfd-sysfs", self.mount, "--store", self.cores]
        if user_mode:
            argv.append("--user")
        else:
            if not self.cores.exists():
                self.cores.mkdir(0o700)
                shutil.chown(self.cores, "nobody")
            config = self.directory / "agentd.conf"
            if not config.exists():
                config.write_text("[agent]\nuser = nobody\nsocket_group =\n")
            argv += ["--config", config]
        self.agentd = self.start("agentd", [*argv, *options], env=env, **kwargs)
        self.agentd.wait_line("err", "ready on")  # warnings may come before
        if not user_mode:
            os.chmod(self.socket, 0o666)
        return self.agentd

    # -- using ----------------------------------------------------------------------------------

    def connect(self) -> Rpc:
        client = Rpc(self.socket)
        self.clients.append(client)
        return client

    @property
    def rpc(self) -> Rpc:
        """The first client, made when needed."""
        return self.clients[0] if self.clients else self.connect()

    def attach(self, pid: Optional[int] = None, rpc: Optional[Rpc] = None, **params: Any) -> str:
        session: str = (rpc or self.rpc).call("session.attach", pid=pid or self.app.pid, **params)["session"]
        return session

    def ctl(self, *argv: Any, patience: float = 60, **kwargs: Any) -> subprocess.CompletedProcess[str]:
        """Run gpu-agentctl; .returncode, .stdout, .stderr."""
        env = {**os.environ, "GPU_AGENT_SOCKET": str(self.socket)}
        return subprocess.run([str(BIN / "gpu-agentctl"), *map(str, argv)], env=env, text=True, capture_output=True,
                              timeout=patience, stdin=subprocess.DEVNULL, **kwargs)

    def front_pid(self) -> int:
        return children_named(self.agentd.pid, "gpu-agent-front")[0]

    def monitor_pid(self) -> int:
        return monitor_of(self.agentd.pid)

    def worker_pids(self) -> List[int]:
        return children_named(self.agentd.pid, "gpu-agent-worker")

    def control(self, line: str) -> Optional[str]:
        """One command to the simulator."""
        with open(self.mount / "control", "w", encoding="ascii") as f:
            f.write(line + "\n")
        return None

    def state(self) -> Any:
        """The simulator's own view of everything."""
        return json.loads((self.mount / "control").read_text())

    def target_state(self, app: Optional[Process] = None) -> Json:
        """What the simulator knows about the program, summed up."""
        state = self.state()
        pid = (app or self.app).pid
        process = next(p for p in state["processes"] if p["pid"] == pid)
        devices = process["devices"]
        return {
            "enabled": process["debugged"],
            "subscribed": int(process["enabled_mask"], 16),
            "flags": process["flags"],
            "launch_mode": max((d["launch_mode"] for d in devices), default=0),
            "override": max((int(d["override"], 16) for d in devices), default=0),
            "watchpoints": sum(w["pid"] == pid for g in state["gpus"] for w in g["watch"]),
            "suspended_queues": sum(q["suspended"] for q in process["queues"]),
            "queues": process["queues"],
            "handshake_waiting": any(c["wait"] == "runtime" and c["target"] == pid for c in state["pending"]),
        }

    def raise_queue(self, queue_id: int, exception: str) -> None:
        """Let a queue of the program raise an exception."""
        self.control(f"raise {self.app.pid} queue {queue_id} {EXCEPTIONS[exception]}")

    def app_status(self, app: Optional[Process] = None) -> AppStatus:
        return AppStatus((app or self.app).status_file)

    # -- ending ---------------------------------------------------------------------------------

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        for client in self.clients:
            client.close()
        codes = {}
        for process in reversed(self.processes):
            codes[process.name] = process.stop()
        libc = ctypes.CDLL(None, use_errno=True)
        libc.umount2(str(self.mount).encode(), 2)  # MNT_DETACH; gone already when the simulator ended well
        problem = None
        for process in self.processes:
            text = process.err()
            if "Sanitizer" in text or "runtime error:" in text:
                problem = f"{process.name}: {text}"
            if kind:
                sys.stdout.write(f"  --- {process.name} exit {codes[process.name]}\n" +
                                 "".join(f"  | {line}\n" for line in text.splitlines()[-25:]))
        end_writers(self.directory)
        shutil.rmtree(self.directory, ignore_errors=True)
        if problem and not kind:
            raise AssertionError(problem)


class CudaSim:
    """Control connection of gpu-agent-cuda-sim (sim/cuda/wire/wire.h)."""

    HELLO = struct.Struct("<QIIII")
    HEAD = struct.Struct("<II")
    MAGIC, CONTROL = 0x314D495341445543, 2

    def __init__(self, path: Path) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(str(path))
        self.sock.sendall(self.HELLO.pack(self.MAGIC, self.CONTROL, 0, 0, 0))

    def _take(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.sock.recv(size - len(data))
            if not piece:
                raise EOFError("the simulator closed the connection")
            data += piece
        return data

    def command(self, line: str) -> str:
        """Run a script line ("to PID LINE" names a process; else the newest); its answer."""
        data = line.encode() + b"\0"
        self.sock.sendall(self.HEAD.pack(self.HEAD.size + len(data), 0) + data)
        size, error = self.HEAD.unpack(self._take(self.HEAD.size))
        text = self._take(size - self.HEAD.size).decode()
        if error:
            raise OSError(error, text)
        return text

    def state(self, pid: int) -> Any:
        """What the GPUs know about one process; None when it is gone."""
        processes = json.loads(self.command("state"))["processes"]
        return next((p for p in processes if p["pid"] == pid), None)

    def close(self) -> None:
        self.sock.close()


class CudaScene(Scene):
    """Simulated CUDA GPUs, one program on them, and the daemon.

    release  of the driver, "8.0" to "13.4"; the libraries lie in .libraries, for the program and for
             whoever debugs it; .libcuda is the one to load.
    app      script of gpu-agent-cuda-simapp; @CUBIN@ stands for the fixture of sm_90
    sim      script run for every new program (gpu-agent-cuda-sim --help)
    conf     further lines of cudasim.conf (sim/cuda/driver/conf.h)
    """

    # Generations of exported symbols, by the first release that has them.
    BUILT = {(8, 0): "8.0", (11, 8): "12.4", (12, 6): "12.9", (13, 1): "13.4"}
    CUBIN = ROOT / "tests/data/cubin/spin-sm_90.cubin"
    APP = "init; context 0; module @CUBIN@; gpu launch spin grid=8 block=128; listen"

    cuda: CudaSim

    def __init__(self, app: Optional[str] = APP, release: str = "12.4", sim: str = "", conf: Sequence[str] = (),
                 agentd: Sequence[Any] = (), user_mode: bool = True, app_user: Union[int, str, None] = None,
                 start_agent: bool = True) -> None:
        super().__init__(app=app, sim=sim, agentd=agentd, user_mode=user_mode, app_user=app_user,
                         start_agent=start_agent)
        self.release = release
        self.conf = conf
        self.libraries = self.directory / "cuda"
        self.libcuda = self.libraries / "libcuda.so.1"
        self.gpu = self.directory / "gpu"
        self.cuda = None  # type: ignore[assignment]

    def __enter__(self: AnyCudaScene) -> AnyCudaScene:
        app, _, sim, agentd, user_mode, app_user, start_agent = self.options
        try:
            os.chmod(self.directory, 0o755)
            self._install_libraries()
            script = ["--execute", sim] if sim else []
            self.sim = self.start("cuda-sim", [BIN / "gpu-agent-cuda-sim", "--socket", self.gpu, *script])
            self.sim.wait_line()
            self.cuda = CudaSim(self.gpu)
            if app is not None:
                self.app = self.start_app(app, user=app_user)
            if start_agent:
                self.start_agentd(*agentd, user_mode=user_mode)
            return self
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def start_agentd(self, *options: Any, user_mode: bool = True, env: Optional[Dict[str, str]] = None,
                     **kwargs: Any) -> Process:
        # A sanitizer's dlopen() does not know the library that calls it, nor that one's run path.
        return super().start_agentd("--cuda-library", self.libcuda, *options, user_mode=user_mode,
                                    env={"LD_LIBRARY_PATH": str(self.libraries), **(env or {})}, **kwargs)

    def _install_libraries(self) -> None:
        release = tuple(map(int, self.release.split(".")))
        built = self.BUILT[max(first for first in self.BUILT if first <= release)]
        shutil.copytree(BIN.parent / "cudasim" / built, self.libraries)
        lines = [f"gpu {self.gpu}", f"version {self.release}", *self.conf]
        (self.libraries / "cudasim.conf").write_text("\n".join(lines) + "\n")

    def start_app(self, script: str, user: Union[int, str, None] = None, name: str = "app", extra: Sequence[Any] = (),
                  program: Optional[pathlib.Path] = None) -> Process:
        """A program on the simulated GPUs; returns once it has set itself up."""
        status_file = self.directory / f"status{len(self.processes)}"
        status_file.touch()
        os.chmod(status_file, 0o666)
        program = program or BIN / "gpu-agent-cuda-simapp"
        kwargs: Dict[str, Any] = {}
        if user is not None:
            program = pathlib.Path(shutil.copy(program, self.directory))
            kwargs = {"user": user, "group": user, "extra_groups": []}
        cubin = shutil.copy(self.CUBIN, self.directory)
        process = self.start(name, [program, "--status-file", status_file, *extra, "-e",
                                    script.replace("@CUBIN@", str(cubin))],
                             env={"LD_LIBRARY_PATH": str(self.libraries)}, **kwargs)
        process.status_file = status_file
        process.wait_line()
        return process

    def control(self, line: str, app: Optional[Process] = None) -> str:
        """One script line for the program's GPUs."""
        return self.cuda.command(f"to {(app or self.app).pid} {line}")

    def state(self, app: Optional[Process] = None) -> Any:
        return self.cuda.state((app or self.app).pid)

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if self.cuda:
            self.cuda.close()
        super().__exit__(kind, value, trace)


def as_user(uid: int, function: Callable[[], Any], groups: Sequence[int] = ()) -> None:
    """Run function() in a child process of that user; its exception fails the test."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups(groups)
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            function()
            code = 0
        except BaseException:  # everything must end in _exit
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0, f"as uid {uid}: see above"


@contextlib.contextmanager
def ids_of(uid: int, groups: Sequence[int] = ()) -> Iterator[None]:
    """Until the block ends this process is that user's.  A client is known by what it is when its first call is answered."""
    os.setgroups(groups)
    os.setresgid(uid, uid, 0)
    os.setresuid(uid, uid, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        os.setgroups([])


@contextlib.contextmanager
def hook_directory() -> Iterator[pathlib.Path]:
    """A directory that nobody but root can change, on the whole way to it: where hooks may lie."""
    need_root()
    path = pathlib.Path(tempfile.mkdtemp(prefix="gpu-agent-hooks.", dir="/run"))
    os.chmod(path, 0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


class CpuThreads:
    """Proof that no CPU thread of a program was stopped between rounds, however short.

    A stop wakes a thread that waits in the kernel, and the kernel counts that: the counts of those that wait for
    something that does not come must stay what they were.  The gaps between heartbeats of the others are the
    figure that users know; they also show when a virtual machine lost its processor, so only half of the rounds
    have to be clean, as far as that is more than the machine does by itself: after each round it is looked at for
    as long as the round took.
    """

    def __init__(self, app: Process, app_status: AppStatus) -> None:
        self.app, self.status = app, app_status
        self.gaps: List[int] = []
        self.quiet: List[int] = []
        self.waiting = wait_until(self._find_waiting, "two threads wait")
        self._begin()

    def _begin(self) -> None:
        self.status.take_gap_ns()
        self.began = time.monotonic()

    def _switches(self) -> Dict[str, str]:
        tasks = pathlib.Path(f"/proc/{self.app.pid}/task").iterdir()
        return {t.name: status(f"{self.app.pid}/task/{t.name}")["voluntary_ctxt_switches"] for t in tasks}

    def _find_waiting(self) -> Dict[str, str]:
        before = self._switches()
        time.sleep(0.1)
        same = dict(before.items() & self._switches().items())
        return same if len(same) >= 2 and str(self.app.pid) in same else {}

    def round_over(self) -> None:
        self.gaps.append(self.status.take_gap_ns())
        time.sleep(time.monotonic() - self.began)
        self.quiet.append(self.status.take_gap_ns())
        self._begin()

    def check(self) -> None:
        now = self._switches()
        assert {t: now[t] for t in self.waiting} == self.waiting, (now, self.waiting)
        self.gaps.sort()
        assert statistics.median(self.gaps) < max(1_000_000, 3 * statistics.median(self.quiet)), (self.gaps, self.quiet)


def need_root() -> None:
    if os.geteuid() != 0:
        raise SkipTest("needs root")
