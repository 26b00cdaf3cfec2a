#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A core on its way to a client: whole or told not to be, and whatever the client does harms only himself."""
import contextlib
import ctypes
import json
import mmap
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE)]
from dumps import (END, STOP_MS, answers_fds, begin, dump, fetch, received, records, scene, start_dump,  # noqa: E402
                   write_core)
from harness import BIN, LONG_STOP, Rpc, Skip, main, need_root, status, test, wait_until  # noqa: E402
from hungfs import HungFs, Late  # noqa: E402

# Their registers are more than any socket holds.
WAVES = 800


def plant(s, n=WAVES):
    s.control(f"waves {s.app.pid} 0 spin {n} 0x7f0000001000 group=4 vgprs=64")


def begin_large(s, rpc=None):
    """The core of so many waves is begun; they have ended since."""
    plant(s)
    begun = (rpc or s.rpc).call("core.begin", session=s.session, max_stop_ms=STOP_MS)
    assert begun["bytes"] > 10 << 20, begun
    s.control(f"waves {s.app.pid} 0 clear")
    return begun


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def packets(s):
    return {q["id"]: q["packets"] for q in s.target_state()["queues"]}


def runs(s):
    """Its queues work at this moment."""
    s.control(f"waves {s.app.pid} 0 clear")
    state = s.target_state()
    assert all(q["running"] and not q["suspended"] for q in state["queues"]), state
    before = packets(s)
    wait_until(lambda: all(n > before[i] for i, n in packets(s).items()), "queues run")


def serves(s, looker):
    """Another client of the same session, and one that begins."""
    rpc, session = looker
    assert rpc.call("gpu.queues", session=session)["queues"]
    with contextlib.closing(Rpc(s.socket)) as new:
        assert new.call("gpu.queues", session=s.attach(rpc=new))["queues"]


def other_client(s):
    assert s.rpc  # the first one is its own
    rpc = s.connect()
    return rpc, s.attach(rpc=rpc)


def is_gone(pid):
    return status(pid).get("State", "Z")[0] in "ZX"


@test
def the_file_comes_through_the_descriptor():
    """The same bytes that core.read gives, as often as asked, and it is closed when they are there."""
    with scene() as s:
        s.session = s.attach()
        begun, data = fetch(s)
        worker, = s.worker_pids()
        before = descriptors(worker), descriptors(s.front_pid())
        for _ in range(2):
            core, lost, told = received(write_core(s))
            assert core == data and lost == 0 and told < len(core) == begun["bytes"], (lost, told)
            wait_until(lambda: (descriptors(worker), descriptors(s.front_pid())) == before, "both have closed their ends")
        runs(s)


@test
def a_core_is_sent_while_others_are_served():
    with scene() as s:
        s.session = s.attach()
        looker = other_client(s)
        begun = begin_large(s)
        with contextlib.closing(write_core(s)) as stream:
            stream.recv(1 << 16, socket.MSG_PEEK)
            serves(s, looker)
            runs(s)
            assert looker[0].error("core.write", session=looker[1]).name == "busy"
            size = sent = 0
            for kind, n, data in records(stream):
                size += n if kind != END else 0
                sent += len(data)
            assert kind == END and sent <= size == begun["bytes"], (size, sent)
        serves(s, looker)
        runs(s)


@test
def what_cannot_be_answered_with_a_descriptor_is_refused():
    """Before core.begin, in a batch, without an answer: nothing is left open anywhere."""
    with scene() as s:
        s.session = s.attach()
        error = s.rpc.error("core.write", session=s.session)
        assert error.name == "failed" and "core.begin" in error.hint, error
        begin(s)
        front, (worker,) = s.front_pid(), s.worker_pids()
        before = descriptors(front), descriptors(worker)
        call = {"jsonrpc": "2.0", "id": 77, "method": "core.write", "params": {"session": s.session}}
        s.rpc.send_raw(json.dumps([call]).encode() + b"\n")
        (reply,), fds = s.rpc.read_message(), []
        assert reply["error"]["data"]["name"] == "invalid_request" and not fds, reply
        del call["id"]
        s.rpc.send_raw(json.dumps(call).encode() + b"\n")
        s.rpc.call("agent.hello")  # the next request is read by itself
        wait_until(lambda: (descriptors(front), descriptors(worker)) == before, "nothing is open")
        assert len(received(write_core(s))[0]) == s.rpc.call("core.write", session=s.session)["bytes"]
        runs(s)


@test
def one_descriptor_is_on_its_way_at_a_time():
    """Whoever pipelines, and whoever does not read his answers, piles up none."""
    with scene() as s:
        s.session = s.attach()
        begin(s)
        front, (worker,) = s.front_pid(), s.worker_pids()
        before = descriptors(front), descriptors(worker)
        first = s.rpc.next_id + 1
        for _ in range(50):
            s.rpc.send("core.write", session=s.session)
        replies, fds = answers_fds(s.rpc, range(first, s.rpc.next_id + 1))
        for reply in replies:
            assert "result" in reply or reply["error"]["data"]["name"] == "busy", reply
        assert 0 < len(fds) == sum("result" in reply for reply in replies), (fds, replies)
        # Only the last one goes on; those before it have ended, with or without all of it.
        got = [socket.socket(fileno=fd) for fd in fds]
        for stream in got[:-1]:
            with contextlib.closing(stream), contextlib.suppress(EOFError):
                list(records(stream))
        received(got[-1])
        wait_until(lambda: (descriptors(front), descriptors(worker)) == before, "nothing is open")
        # Answers that nobody reads: one descriptor waits among them, whatever is asked for.
        quiet = descriptors(front)
        s.rpc.sock.settimeout(1)
        with contextlib.suppress(TimeoutError):
            for _ in range(3000):
                s.rpc.send("rpc.discover")
                s.rpc.send("core.write", session=s.session)
        assert descriptors(front) <= quiet + 2, (descriptors(front), quiet)
        runs(s)


@test
def few_descriptors_are_left_unread():
    """Sent to connections that the agent closes and whose client keeps them: the kernel lets front have so many only."""
    with scene() as s:
        kept = []
        try:
            for i in range(12):
                c = Rpc(s.socket)
                kept.append(c)
                session = wait_until(lambda c=c: c.call_raw("session.attach", {"pid": s.app.pid, "control": True}).get("result"),
                                     "the lease")["session"]
                c.call("core.begin", session=session, max_stop_ms=STOP_MS)
                c.send("core.write", session=session)
                wait_until(lambda c=c: c.sock.recv(1, socket.MSG_PEEK), "the answer")
                if b"error" in c.sock.recv(1 << 16, socket.MSG_PEEK):
                    reply = c.read_message()
                    assert reply["error"]["data"]["name"] == "busy" and "core.read" in reply["error"]["data"]["hint"], reply
                    break
                # Its own descriptor is still on its way.
                c.send("core.write", session=session)
                c.send_raw(b"Content-Length: x\r\n\r\n" if i % 2 else b"}\n" * 3 + b"\x00" * 10)
                c.sock.shutdown(socket.SHUT_WR)
                wait_until(lambda: not s.worker_pids(), "the agent has closed the connection")
            assert 2 <= i < 8, i
            c.close()
            wait_until(lambda: not s.worker_pids(), "the lease is free")
            assert dump(s, "-o", s.directory / "core").returncode == 0, "it is read instead"
        finally:
            for c in kept:
                c.close()
        runs(s)


@test
def a_reader_that_stops_is_waited_for_so_long():
    """In the middle: others, the session and the queues go on; then it gets no more, and may ask again."""
    with scene() as s:
        s.session = s.attach()
        looker = other_client(s)
        begun = begin_large(s)
        worker, = s.worker_pids()
        before = descriptors(worker)
        start = time.monotonic()
        with contextlib.closing(write_core(s, stall_ms=2000)) as stream:
            next(records(stream))
            serves(s, looker)
            runs(s)
            assert descriptors(worker) == before + 1, "it waits"
            wait_until(lambda: descriptors(worker) == before, "the worker waits no longer")
            assert 1.9 < time.monotonic() - start < 20
            with contextlib.suppress(EOFError):
                assert all(kind != END for kind, _, _ in records(stream)), "it looks whole"
        serves(s, looker)
        runs(s)
        assert s.worker_pids() == [worker]
        size = 0
        with contextlib.closing(write_core(s)) as stream:
            for kind, n, _ in records(stream):
                size += n if kind != END else 0
        assert kind == END and size == begun["bytes"]


@test
def a_stopped_program_is_waited_for_so_long():
    """Ctrl-Z in the middle of a dump: when it goes on, it says what has become of it."""
    with scene() as s:
        out = s.directory / "out"
        out.mkdir()
        looker = other_client(s)
        worker, = s.worker_pids()
        before = descriptors(worker)
        env = {**os.environ, "GPU_AGENT_SOCKET": str(s.socket)}
        for _ in range(20):
            plant(s, 5000)
            with subprocess.Popen([BIN / "gpu-agentctl", "dump", str(s.app.pid), LONG_STOP, "--timeout=5s", "-o", out / "core"],
                                  env=env, stderr=subprocess.PIPE, text=True) as run:
                while descriptors(worker) == before and run.poll() is None:
                    pass
                run.send_signal(signal.SIGSTOP)
                in_the_middle = descriptors(worker) > before
                serves(s, looker)
                wait_until(lambda: descriptors(worker) == before, "the worker waits no longer")
                runs(s)
                run.send_signal(signal.SIGCONT)
                text = run.communicate(timeout=60)[1]
            left = [p.name for p in out.iterdir()]
            assert left == (["core"] if run.returncode == 0 else []), (run.returncode, left, text)
            for p in out.iterdir():
                p.unlink()
            if in_the_middle and run.returncode:
                assert run.returncode == 1 and "in the middle" in text, text
                return
        raise Skip("it was never stopped in the middle")


@test
def a_reader_that_goes_ends_it():
    """By closing the descriptor, by core.end, with his connection, or killed."""
    with scene() as s:
        looker = other_client(s)
        worker, = s.worker_pids()
        before = descriptors(worker)

        def ended(how):
            wait_until(lambda: descriptors(worker) == before, f"the worker has closed its end: {how}")
            serves(s, looker)
            runs(s)

        s.session = s.attach()
        begin_large(s)
        stream = write_core(s)
        stream.close()
        ended("the descriptor is closed")
        with contextlib.closing(write_core(s)) as stream:
            assert descriptors(worker) == before + 1
            s.rpc.call("core.end", session=s.session)
            ended("core.end")
            with contextlib.suppress(EOFError):
                assert all(kind != END for kind, _, _ in records(stream))
        own = Rpc(s.socket)
        s.rpc.call("session.detach", session=s.session)
        s.session = s.attach(rpc=own)
        begin_large(s, own)
        with contextlib.closing(write_core(s, own)) as stream:
            assert descriptors(worker) == before + 1
            own.close()
            ended("the connection is closed")
            with contextlib.suppress(EOFError):
                assert all(kind != END for kind, _, _ in records(stream))
        for delay in (0.05, 0.1, 0.2):
            plant(s)
            run = start_dump(s, "-o", s.directory / "core")
            time.sleep(delay)
            run.kill()
            run.wait(60)
            ended("killed")


@test
def a_reader_sends_nothing_back():
    """Bytes, descriptors, urgent ones: the way to the worker is shut, before anybody could use it."""
    with scene() as s:
        s.session = s.attach()
        begin_large(s)
        worker, = s.worker_pids()
        with contextlib.closing(write_core(s)) as stream, tempfile.TemporaryFile() as file:
            held = descriptors(worker)
            for send in (lambda: stream.send(b"x"), lambda: socket.send_fds(stream, [b"x"], [file.fileno()]),
                         lambda: stream.send(b"x", socket.MSG_OOB),
                         lambda: socket.send_fds(stream, [b"x"], [file.fileno()], socket.MSG_OOB)):
                try:
                    send()
                except (BrokenPipeError, PermissionError):
                    continue
                raise AssertionError("it was taken")
            assert descriptors(worker) == held
        runs(s)


USERFAULTFD, UFFDIO_API, UFFDIO_REGISTER = 323, 0xC018AA3F, 0xC020AA00


def stuck_reader(fd):
    """A process that receives into memory whose pages nobody brings, as that of a hung file may be."""
    libc = ctypes.CDLL(None, use_errno=True)
    ready, write_end = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write_end)
        answer = os.read(ready, 1)
        os.close(ready)
        return pid, answer == b"y"
    try:
        uffd = libc.syscall(USERFAULTFD, os.O_CLOEXEC)
        memory = mmap.mmap(-1, 1 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        api = (ctypes.c_uint64 * 3)(0xAA, 0, 0)
        register = (ctypes.c_uint64 * 4)(at, 1 << 20, 1, 0)
        fine = uffd >= 0 and libc.ioctl(uffd, ctypes.c_ulong(UFFDIO_API), api) == 0
        fine = fine and libc.ioctl(uffd, ctypes.c_ulong(UFFDIO_REGISTER), register) == 0
        os.write(write_end, b"y" if fine else b"n")
        select.select([fd], [], [], 60)  # with nothing to receive it would not even touch the memory
        libc.read(fd, ctypes.c_void_p(at), 1 << 20)
    finally:
        os._exit(0)


def is_receiving(pid):
    """Whether the process waits in read(2), whose number is 0."""
    return pathlib.Path(f"/proc/{pid}/syscall").read_text().split()[0] == "0"


@test
def a_reader_that_hangs_in_the_kernel_holds_nobody():
    """In the middle of receiving: a pipe's reader would hold the lock that its writer needs, dead or alive."""
    need_root()
    if os.uname().machine != "x86_64":
        raise Skip("numbers of system calls of x86-64")
    with scene() as s:
        s.session = s.attach()
        looker = other_client(s)
        begin_large(s)
        worker, = s.worker_pids()
        before = descriptors(worker)
        stream = write_core(s, stall_ms=2000)
        reader, fine = stuck_reader(stream.fileno())
        try:
            if not fine:
                raise Skip("no userfaultfd")
            wait_until(lambda: is_receiving(reader), "the reader is in its read")
            assert not is_gone(reader), "it hangs"
            serves(s, looker)
            runs(s)
            wait_until(lambda: descriptors(worker) == before, "the worker waits no longer")
            again = write_core(s)
            other, _ = stuck_reader(again.fileno())
            wait_until(lambda: is_receiving(other), "the reader is in its read")
            os.kill(worker, signal.SIGKILL)
            wait_until(lambda: is_gone(worker), "the worker is dead", 2)
            os.kill(other, signal.SIGKILL)
            os.waitpid(other, 0)
            again.close()
            s.rpc.notification("session.ended")
            runs(s)
            assert not is_gone(reader), "it hangs still"
        finally:
            os.kill(reader, signal.SIGKILL)
            os.waitpid(reader, 0)
            stream.close()


@test
def bytes_on_disk_are_those_after_they_are_there():
    """File systems over a network, and some others, know the room of a file only when it is written back."""
    need_root()
    with scene() as s, HungFs(s.directory / "late", Late()) as late:
        plant(s)
        run = dump(s, "-o", late.path / "core", "--compress=zstd", "-j")
        told = json.loads(run.stdout)
        assert told["disk_bytes"] == (late.path / "core").stat().st_blocks * 512 > 0, told


@test
def a_file_that_hangs_harms_only_its_owner():
    """A file system that never answers a write: the worker holds nothing of it, can be killed, and others go on."""
    need_root()
    with scene() as s, HungFs(s.directory / "hung") as hung:
        looker = other_client(s)
        worker, = s.worker_pids()
        before = descriptors(worker)
        plant(s)
        run = subprocess.Popen([BIN / "gpu-agentctl", "dump", str(s.app.pid), LONG_STOP, "--timeout=3s", "-o",
                                hung.path / "core"], env={**os.environ, "GPU_AGENT_SOCKET": str(s.socket)},
                               stderr=subprocess.PIPE, text=True)
        try:
            wait_until(hung.wrote, "it writes")
            assert run.poll() is None
            serves(s, looker)
            runs(s)
            for pid in (worker, s.front_pid()):
                links = [os.readlink(f"/proc/{pid}/fd/{n}") for n in os.listdir(f"/proc/{pid}/fd")]
                assert not any(str(hung.path) in link for link in links), links
            wait_until(lambda: descriptors(worker) == before, "the worker waits no longer")
            serves(s, looker)
            os.kill(worker, signal.SIGKILL)
            wait_until(lambda: is_gone(worker), "the worker is dead", 2)
            wait_until(lambda: not s.target_state()["enabled"], "the target is free")
            runs(s)
            assert s.ctl("snapshot", s.app.pid, LONG_STOP).returncode == 0
            assert run.poll() is None, "it hangs still"
        finally:
            run.kill()
            hung.close()
            run.communicate(timeout=60)


class Forwarder:
    """Passes bytes on in both directions, as ssh -L does with a Unix socket, and no descriptor."""

    def __init__(self, path, to):
        self.to = str(to)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(path))
        self.listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                agent = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                agent.connect(self.to)
                for a, b in ((client, agent), (agent, client)):
                    threading.Thread(target=self._pump, args=(a, b), daemon=True).start()

    @staticmethod
    def _pump(a, b):
        with contextlib.suppress(OSError):
            while data := a.recv(1 << 16):
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)

    def close(self):
        self.listener.close()


@test
def where_no_descriptor_comes_it_is_read():
    with scene() as s, contextlib.closing(Forwarder(s.directory / "forwarded.sock", s.socket)):
        straight = dump(s, "-o", s.directory / "straight", "-j")
        assert straight.returncode == 0, straight.stderr
        path = s.directory / "core"
        env = {**os.environ, "GPU_AGENT_SOCKET": str(s.directory / "forwarded.sock")}
        for more in ([], ["--compress=zstd"]):
            run = subprocess.run([BIN / "gpu-agentctl", "dump", str(s.app.pid), LONG_STOP, "-j", "-o", path, *more],
                                 env=env, capture_output=True, text=True, timeout=60, check=False)
            assert run.returncode == 0, run.stderr
            told = json.loads(run.stdout)
            if not more:
                assert path.stat().st_size == told["core"]["bytes"] == json.loads(straight.stdout)["core"]["bytes"], told
        wait_until(lambda: not s.worker_pids(), "its session is over")
        runs(s)


if __name__ == "__main__":
    main(__file__)
