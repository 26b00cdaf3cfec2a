#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Who may debug whom: what the agent allows, the kernel allows the same user; and who a client is."""
import contextlib
import ctypes
import errno
import json
import os
import pathlib
import re
import shutil
import socket
import struct
import sys
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import BIN, LIBEXEC, PATIENCE, ROOT, Rpc, Scene, children_named, need_root, status, unsanitized, wait_until
from people import (DUMP, MAPPED, MS_PRIVATE, MS_REC, NEWNS, NEWUSER, NOCAPS, NODUMP, PR_SET_DUMPABLE, SEIZE, USER, become,
                    child, drop_capabilities, execute, go_on, in_pid_namespace, libc, mapped_root, own_namespace, python, run, talk,
                    target, unshare, yama_scope)

# What is there, how it is started, the user namespace that root makes for it.
TARGETS = (
    ("plain", target, dict(code=""), None),
    ("not dumpable", target, dict(code=NODUMP), None),
    ("other group", target, dict(code="", gid=USER + 1), None),
    ("other user", target, dict(code="", uid=USER + 1), None),
    ("root", target, dict(code="", uid=0), None),
    ("mapped root", target, dict(code=NOCAPS + DUMP, uid=None, before=mapped_root), MAPPED),
    ("mapped root, not dumpable", target, dict(code=NOCAPS + NODUMP, uid=None, before=mapped_root), MAPPED),
    ("mapped root with capabilities", target, dict(code="", uid=None, before=mapped_root), MAPPED),
    ("rootless", target, dict(code="", uid=None, before=own_namespace), None),
    ("rootless, no capabilities, not dumpable", target, dict(code=NOCAPS + NODUMP, uid=None, before=own_namespace), None),
)


def kernel_allows(pid):
    def seize():
        become(USER)
        return "yes" if libc.ptrace(SEIZE, pid, 0, 0) == 0 else errno.errorcode[ctypes.get_errno()]
    answer = run(seize)
    assert answer in ("yes", "EPERM"), answer
    return answer == "yes"


def agent_says(s, pid):
    """allowed, or the reason of the refusal."""
    error = Rpc(s.socket).error("session.attach", pid=pid)
    # What is allowed ends with the next question: none of these has opened a GPU.
    assert error.name in ("not_permitted", "not_debuggable"), error
    return "allowed" if error.name == "not_debuggable" else error.message


def as_client(s, pid, uid=USER):
    def ask():
        become(uid)
        return agent_says(s, pid)
    return ask


@contextlib.contextmanager
def agent():
    with Scene(app=None, user_mode=False) as s:
        yield s


def test_owners_may_what_the_kernel_lets_them():
    """The kernel's own answer to the same user is the witness, for each kind of target."""
    need_root()
    if yama_scope() > 0:
        raise SkipTest("the witness asks for more than reading, which Yama restricts")
    program = python()
    with agent() as s:
        told = {}
        for name, make, how, maps in TARGETS:
            with child(make(program, **how), maps) as (_, answer):
                pid = int(answer)
                told[name] = kernel_allows(pid), run(as_client(s, pid))
        wrong = {name: both for name, both in told.items() if both[0] != (both[1] == "allowed")}
        assert not wrong, wrong
        assert {name for name, (allowed, _) in told.items() if allowed} == {
            "plain", "rootless", "rootless, no capabilities, not dumpable"}, told
        assert "dumpable" in told["not dumpable"][1] and "group" in told["other group"][1], told


def test_a_rootless_container_is_attached_to_by_its_owner():
    """Not only judged: with the capabilities that the program has in there."""
    need_root()
    with Scene(app=None, user_mode=False) as s:
        program = shutil.copy(unsanitized("gpu-agent-simapp"), s.directory)
        status_file = s.directory / "status-rootless"
        status_file.touch()
        status_file.chmod(0o666)
        s.app = s.start("app", [program, "--kfd", s.mount / "kfd", "--status-file", status_file, "-e",
                                "runtime on; queues 1; spin"], preexec_fn=own_namespace)
        s.app.wait_line()
        assert status(s.app.pid)["CapEff"] != "0" * 16, status(s.app.pid)

        def attach():
            become(USER)
            rpc = Rpc(s.socket)
            session = rpc.call("session.attach", pid=s.app.pid)["session"]
            return str(len(rpc.call("gpu.queues", session=session)["queues"]))
        assert run(attach) == "1"


# -- targets that change after the verdict --------------------------------------------------------


def slow_topology(s):
    """A copy of the simulated topology, with a file in it that is read when somebody writes it."""
    copy = s.directory / "topology"
    shutil.copytree(s.mount / "topology", copy / "topology")
    slow = copy / "topology" / "nodes" / "0" / "name"
    text = slow.read_bytes()
    slow.unlink()
    os.mkfifo(slow)
    return copy, slow, text


def attached_after(change, app, rights):
    """
    What a client with these rights is told who asks for a process that changes between the verdict and the
    attach: change(s) is called when the worker, started by then, waits for its topology.
    """
    with Scene(app=None, user_mode=False, start_agent=False) as s:
        program = shutil.copy(shutil.which("sleep"), s.directory / "set-user-id")
        os.chmod(program, 0o4755)
        s.app = s.start_app(app.replace("SETUID", str(program)), user=USER)
        topology, slow, text = slow_topology(s)
        s.start_agentd("--kfd-sysfs", topology, user_mode=False)

        def ask(tell, wait):
            rights()
            rpc = Rpc(s.socket)
            tell(b"connected")
            reply = rpc.call_raw("session.attach", {"pid": s.app.pid, "timeout_ms": 60000})
            tell((reply["error"]["data"]["name"] if "error" in reply else "attached").encode())
            wait()

        with talk(ask) as (_, listen):
            assert listen() == b"connected"
            with open(slow, "wb") as fifo:  # returns when the worker has opened it, too
                change(s)
                fifo.write(text)
            return listen().decode()


def test_a_target_that_changes_after_the_verdict_is_not_handed_out():
    """With the rights of its user, who could trace it a moment ago."""
    need_root()

    def step(s):
        s.app.popen.stdin.write(b"\n")
        s.app.popen.stdin.flush()

    def protects_itself(s):
        step(s)
        wait_until(lambda: os.stat(f"/proc/{s.app.pid}/status").st_uid == 0, "not dumpable")

    def becomes_root(s):
        step(s)
        wait_until(lambda: status(s.app.pid)["Uid"].split()[1] == "0", "a set-user-id program")

    script = "runtime on; queues 1; wait-line; "
    owner, root = lambda: become(USER), lambda: None
    assert attached_after(lambda s: None, script + "spin", owner) == "attached"
    assert attached_after(protects_itself, script + "nodump; spin", owner) == "not_permitted"
    assert attached_after(becomes_root, script + "exec SETUID 60", owner) == "not_permitted"
    # Who may attach to it as it is may also not be handed something else than what was asked for.
    assert attached_after(becomes_root, script + "exec SETUID 60", root) == "not_permitted"


# -- clients in namespaces of their own -----------------------------------------------------------


def number_outside():
    return int(os.readlink("/proc/self"))


def test_root_without_its_rights_is_no_administrator():
    """Who became root in a container, or gave up what makes root root, has the rights of that user id."""
    need_root()
    with agent() as s, child(target(sys.executable, "", uid=None)) as (_, mine):
        pid = int(mine)

        def bare():
            drop_capabilities()
            return agent_says(s, pid)

        # The control, and the same process as each of them sees it.
        assert run(lambda: agent_says(s, pid)) == "allowed"
        assert run(bare) != "allowed"
        assert "pid namespace" in run(lambda: in_pid_namespace(lambda: agent_says(s, pid)))
        assert run(lambda: agent_says(s, pid), maps="0 0 4294967295\n") != "allowed"
        assert run(lambda: hooks_of_others(s)) != "not_permitted"
        assert run(lambda: in_pid_namespace(lambda: hooks_of_others(s))) == "not_permitted"


def hooks_of_others(s):
    return Rpc(s.socket).error("hooks.test", rule="none", uid=USER).name


def test_a_client_sees_no_more_than_his_pid_namespace():
    need_root()
    program = python()
    with agent() as s, child(target(program, "")) as (_, outside):
        def look_out():
            become(USER)
            return agent_says(s, int(outside))

        def look_around():
            become(USER)
            read, write = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.write(write, str(number_outside()).encode())
                execute(program, "import time; time.sleep(60)")
            number = int(os.read(read, 20))
            wait_until(lambda: status(number).get("Name", "").startswith("python"), "the child")
            return agent_says(s, number)

        assert "pid namespace" in run(lambda: in_pid_namespace(look_out))
        assert run(lambda: in_pid_namespace(look_around)) == "allowed"
        # From outside into it: whoever sees both.
        assert run(as_client(s, int(outside))) == "allowed"


def test_groups_of_a_container_give_nothing():
    """Which number a group has there, its image says."""
    need_root()
    with Scene(app=None, user_mode=False, start_agent=False) as s, child(target(sys.executable, "", uid=None)) as (_, mine):
        import grp
        group = next(g for g in grp.getgrall() if g.gr_gid != 0)
        (s.directory / "agentd.conf").write_text(f"[agent]\nuser = nobody\nsocket_group =\nadmin_group = {group.gr_name}\n")
        s.start_agentd(user_mode=False)

        def member():
            os.setgroups([group.gr_gid])
            os.setresgid(USER, USER, USER)
            os.setresuid(USER, USER, USER)
            return agent_says(s, int(mine))
        assert run(member) == "allowed"
        assert run(lambda: in_pid_namespace(member)) != "allowed"
        assert run(member, maps="0 0 4294967295\n") != "allowed"


# -- who a client is ------------------------------------------------------------------------------


def test_a_client_that_has_gone_has_no_rights():
    """Somebody else holds its connection; its number may be anybody's by now."""
    need_root()
    with agent() as s, child(target(sys.executable, "", uid=None)) as (_, mine):
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            own = Rpc(s.socket)
            own.call("agent.status")  # It was alive when the daemon first looked.
            socket.send_fds(theirs, [b"x"], [own.sock.fileno()])
            os._exit(0)
        rpc = Rpc(s.socket)
        rpc.sock = socket.socket(fileno=socket.recv_fds(ours, 1, 1)[1][0])
        rpc.sock.settimeout(PATIENCE)
        os.waitpid(pid, 0)
        error = rpc.error("session.attach", pid=int(mine))
        assert error.name == "not_permitted" and "not known" in error.message and error.hint, error


class Filter(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]


class Program(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint16), ("filter", ctypes.POINTER(Filter))]


def without_peer_pidfd(error):
    """From now on SO_PEERPIDFD fails so, here and in what is executed; of an older kernel, or one that knows no peer."""
    getsockopt, option, load, equal, leave = 55, 77, 0x20, 0x15, 0x06
    code = (Filter * 6)(Filter(load, 0, 0, 0), Filter(equal, 0, 3, getsockopt), Filter(load, 0, 0, 32),
                        Filter(equal, 0, 1, option), Filter(leave, 0, 0, 0x00050000 | error),
                        Filter(leave, 0, 0, 0x7fff0000))
    assert libc.prctl(22, 2, ctypes.byref(Program(6, code)), 0, 0) == 0, ctypes.get_errno()


def test_without_a_proof_of_the_peer_nobody_is_trusted():
    """By what kernels say when SO_PEERPIDFD does not name the peer; the oldest have no such option."""
    if os.uname().machine != "x86_64":
        raise SkipTest("numbers of system calls are those of x86-64")
    need_root()
    program = python()
    for error, want in ((errno.ENOPROTOOPT, True), (errno.EINVAL, False), (errno.ESRCH, False), (errno.ENODATA, False)):
        with Scene(app=None, user_mode=False, start_agent=False) as s, child(target(program, "")) as (_, mine):
            config = s.directory / "agentd.conf"
            config.write_text("[agent]\nuser = nobody\nsocket_group =\n")
            s.agentd = s.start("agentd", [BIN / "gpu-agentd", "--socket", s.socket, "--kfd", s.mount / "kfd", "--kfd-sysfs",
                                          s.mount, "--config", config], preexec_fn=lambda e=error: without_peer_pidfd(e))
            s.agentd.wait_line("err", "ready on")
            os.chmod(s.socket, 0o666)
            told = run(as_client(s, int(mine))), run(lambda: agent_says(s, int(mine)))
            assert [text == "allowed" for text in told] == [want, want], (errno.errorcode[error], told)


# -- whose places a client takes ------------------------------------------------------------------


def answer_of(path):
    """"", or why the connection was refused."""
    keep = Rpc(path)
    kept.append(keep)
    with contextlib.suppress(BrokenPipeError):  # refused, and told so already
        keep.send("agent.status")
    return keep.read_message().get("error", {}).get("message", "")


kept = []


@contextlib.contextmanager
def agent_with(limits):
    with Scene(app=None, user_mode=False, start_agent=False) as s:
        (s.directory / "agentd.conf").write_text(f"[agent]\nuser = nobody\nsocket_group =\n[limits]\n{limits}")
        s.start_agentd(user_mode=False)
        yield s


def test_administrators_get_in_when_everything_is_taken():
    """Four users take all connections there are for them; then root comes, and asks for a worker, too."""
    need_root()
    with agent_with("connections = 32\nconnections_per_user = 16\n") as s, contextlib.ExitStack() as stack:
        def crowd(uid):
            def take(tell, wait):
                become(uid)
                tell(" ".join("refused" if answer_of(s.socket) else "served" for _ in range(16)).encode())
                wait()
            return take
        told = [stack.enter_context(child(crowd(USER + i)))[1].decode().split() for i in range(4)]
        assert sum(words.count("served") for words in told) == 30, told
        assert "too many" in run(lambda: (become(USER + 9), answer_of(s.socket))[1])
        for _ in range(2):
            assert answer_of(s.socket) == ""
            assert "processes" in kept[-1].call("process.list")
        assert "too many" in answer_of(s.socket)
        while kept:
            kept.pop().close()


def test_a_container_is_no_second_user():
    """All ids in a user namespace count for the user who has made it, however deep inside they are."""
    need_root()

    def inside(uid, deeper=False):
        def ask(tell, wait):
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            if deeper:
                libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
                unshare(NEWUSER)
            tell(answer_of(path).encode() or b"served")
            wait()
        return ask

    @contextlib.contextmanager
    def container(uid, deeper=False):
        """A process of that id in a user namespace that USER has made, with ids of its own in there."""
        def make(tell, wait):
            become(USER)
            libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
            unshare(NEWUSER)
            tell(b"made")
            wait()
            inside(uid, deeper)(tell, wait)
        with talk(make) as (pid, listen):
            assert listen() == b"made"
            for kind in ("uid", "gid"):
                pathlib.Path(f"/proc/{pid}/{kind}_map").write_text(f"0 {USER} 1\n1 100000 1000\n")
            go_on[pid]()
            yield listen().decode()

    with agent_with("connections_per_user = 3\n") as s, contextlib.ExitStack() as stack:
        path = s.socket
        for uid, deeper in ((0, False), (5, False), (7, True)):
            assert stack.enter_context(container(uid, deeper)) == "served", uid
        assert "too many" in stack.enter_context(container(9))
        assert "too many" in run(lambda: (become(USER), answer_of(path))[1])
        assert run(lambda: (become(USER + 1), answer_of(path) or "served")[1]) == "served"


# -- a front that is somebody else's by now -------------------------------------------------------

FRONT = """#!{python}
import os, socket, struct, sys
IPC = {types}
monitor = socket.socket(fileno=4)
report = open(os.environ["FALLEN_REPORT"], "w", buffering=1)
what, pid, path = os.environ["FALLEN_TRIES"], int(os.environ["FALLEN_PID"]), os.environ["FALLEN_SOCKET"]
monitor.setblocking(True)
monitor.send(struct.pack("<IIII", IPC["NOTE"], 1, 0, 0))

def start(client, kind=1, fds=(), of=pid):
    socket.send_fds(monitor, [struct.pack("<IIQIIIIII", IPC["START"], 1, client, kind, of, 5000, 0, 0, 0)], fds)

def hooks(client, uid=0xffffffff, rule=b"rule", fds=()):
    socket.send_fds(monitor, [struct.pack("<IIQI64sI", IPC["HOOKS"], 1, client, uid, rule, 0)], fds)

def told(taken=0, closed=()):
    monitor.send(struct.pack("<IHH14Q", IPC["CLIENTS"], taken, len(closed), *closed, *[0] * (14 - len(closed))))

def memory():
    fd = os.memfd_create("sample", os.MFD_ALLOW_SEALING)
    os.write(fd, b"text")
    return fd

def colluder():
    gift = socket.socket(socket.AF_UNIX)
    gift.connect(os.environ["FALLEN_GIFT"])
    fd = socket.recv_fds(gift, 1, 1)[1][0]
    assert socket.fromfd(fd, socket.AF_UNIX, socket.SOCK_STREAM).getsockname() == path
    return fd

def after_closing(client):
    told(0, [client])
    start(client)

def control(client, whose):
    "Has a session for that client, and then the queues suspended for another one."
    start(client)
    kind, channel = 0, []
    while kind != IPC["STARTED"]:
        told, channel, _, _ = socket.recv_fds(monitor, 4096, 4)
        kind, = struct.unpack_from("<I", told)
    worker = socket.socket(fileno=channel[0])
    worker.setblocking(True)

    def call(method, of, params=b""):
        worker.send(struct.pack("<IIQIIQQII", IPC["CALL"], method, 1, 2 | 8, 0, of, len(params), 0, 0) + params)
        kind = 0
        while kind not in (IPC["REPLY"], IPC["ERROR"], IPC["OVER"]):
            answer = worker.recv(65536)
            kind = struct.unpack_from("<I", answer)[0] if answer else IPC["OVER"]
        return kind
    session = struct.unpack_from("<IIII", told)[3]
    assert call(IPC["session.attach"], client) == IPC["REPLY"]
    done = call(IPC["gpu.suspend"], whose, b'{"session":"s%d"}' % session)
    print("answer", struct.pack("<I", done).hex(), file=report)

def control_two(client, *how):
    "Has the queues suspended for that client, and then lets the next one have control, quietly."
    other = 0
    while not other:
        told, gift, _, _ = socket.recv_fds(monitor, 4096, 4)
        if struct.unpack_from("<I", told)[0] == IPC["CLIENT"]:
            other = struct.unpack_from("<IIQ", told)[2]

    def started(client):
        start(client)
        kind, channel = 0, []
        while kind != IPC["STARTED"]:
            told, channel, _, _ = socket.recv_fds(monitor, 4096, 4)
            kind, = struct.unpack_from("<I", told)
        return struct.unpack_from("<IIII", told)[2:] + (channel,)
    number, session, channel = started(client)
    started(other)
    worker = socket.socket(fileno=channel[0])
    worker.setblocking(True)

    def say(kind, method, of, params=b"", flags=2):
        worker.send(struct.pack("<IIQIIQQII", IPC[kind], method, 1, flags, 0, of, len(params), 0, 0) + params)

    def call(method, of, params=b""):
        say("CALL", IPC[method], of, params)
        kind = 0
        while kind not in (IPC["REPLY"], IPC["ERROR"], IPC["OVER"]):
            answer = worker.recv(65536)
            kind = struct.unpack_from("<I", answer)[0] if answer else IPC["OVER"]
        return kind
    params = b'{"session":"s%d"}' % session
    for of in (client, other):
        assert call("session.attach", of) == IPC["REPLY"]
    assert call("gpu.suspend", client, params) == IPC["REPLY"]
    if "left" in how:
        say("CLIENT_LEFT", 0, client)
    assert call("gpu.resume", other, params) == IPC["REPLY"]
    if "release" in how:
        monitor.send(struct.pack("<IIQ", IPC["RELEASE"], number, other))
    print("answer", b"done".hex(), file=report)

def release(client):
    monitor.send(struct.pack("<IIQ", IPC["RELEASE"], 1, client))

def lie_of_control(client):
    "Of a session that neither of the two is in."
    monitor.send(struct.pack("<IIQQIIQ", IPC["TAKEN"], 1, client, client + 1, 1, 0, 5))
    print("answer", b"done".hex(), file=report)

def flood(client):
    for i in range(10000):
        start(client, of=0x7ffffff0)
        if i % 16 == 15:
            report.write(".")

TRIES = dict(
    client=lambda c: start(c),
    never=lambda c: start(c + 1),
    zero=lambda c: start(0),
    closed=after_closing,
    closed_twice=lambda c: told(0, [c, c]),
    closed_never=lambda c: told(0, [c + 1]),
    taken=lambda c: told(2),
    hooks_never=lambda c: hooks(c + 1),
    hooks_closed=lambda c: (told(0, [c]), hooks(c)),
    store_never=lambda c: start(c + 1, kind=4),
    short=lambda c: monitor.send(struct.pack("<IIQIIIII", IPC["START"], 1, c, 1, pid, 5000, 0, 0)),
    long=lambda c: monitor.send(struct.pack("<IIQIIIIIII", IPC["START"], 1, c, 1, pid, 5000, 0, 0, 0, 0)),
    socket=lambda c: start(c, fds=[own]),
    colluder=lambda c: start(c, fds=[colluder()]),
    adapter_colluder=lambda c: start(c, kind=6, fds=[colluder(), memory()]),
    adapter_pair=lambda c: start(c, kind=6, fds=[socket.socketpair()[0].detach(), memory()]),
    adapter_file=lambda c: start(c, kind=6, fds=[os.open("/dev/null", os.O_RDWR), memory()]),
    adapter_text=lambda c: start(c, kind=6, fds=[own, os.open("/dev/null", os.O_RDWR)]),
    hooks_file=lambda c: hooks(c, fds=[os.open("/dev/null", os.O_RDWR)]),
    drop_file=lambda c: socket.send_fds(monitor, [struct.pack("<II", IPC["DROP"], 0)], [os.open("/dev/null", os.O_RDWR)]),
    hooks_root=lambda c: hooks(c, uid=0, rule=b"none", fds=[memory()]),
    store=lambda c: start(c, kind=4),
    adapter=lambda c: start(c, kind=6, fds=[own, memory()]),
    flood=flood,
    control=lambda c: control(c, c),
    control_nobody=lambda c: control(c, 0),
    control_never=lambda c: control(c, c + 1),
    control_taken=lambda c: control_two(c),
    control_left=lambda c: control_two(c, "left"),
    release_other=lambda c: control_two(c, "release"),
    release_never=lambda c: release(c + 1),
    release_stranger=lambda c: (release(c), print("answer", b"done".hex(), file=report)),
    release_note=lambda c: monitor.send(struct.pack("<IIII", IPC["NOTE"], 5, 1, 0)),
    lie_of_control=lie_of_control,
)
answer = b""
while answer[:4] != struct.pack("<I", IPC["CLIENT"]):
    answer, fds, _, _ = socket.recv_fds(monitor, 4096, 4)
own = fds[0]
_, _, client, _, uid, charge, admin, _, _ = struct.unpack("<IIQIIIIII", answer)
print("tries", uid, charge, admin, file=report)
TRIES[what](client)
while answer and struct.unpack_from("<I", answer)[0] not in (IPC["STARTED"], IPC["HOOKED"]):
    answer, channel, _, _ = socket.recv_fds(monitor, 4096, 4)
print("answer", answer.hex(), file=report)
monitor.recv(1)
"""


def ipc_types():
    """{name without IPC_: its number} on the links of the frontend to the monitor and to workers; and of methods."""
    found = {m["name"]: i for i, m in enumerate(json.loads((ROOT / "protocol/gpu-agent.json").read_text())["methods"])}
    for header, enum, first in (("monitor_frontend", "frontend_type", 0x101), ("frontend_worker", "worker_type", 0x201)):
        text = (ROOT / f"agentd/ipc/{header}.h").read_text().partition(f"{enum} {{")[2].partition("};")[0]
        found.update({name: first + i for i, name in enumerate(re.findall(r"^\tIPC_(\w+)", text, re.MULTILINE))})
    return found


def fallen_agent(s, what, pid):
    """The agent with a front that tries that as soon as it has a client."""
    directory = s.directory / "fallen"
    directory.mkdir(exist_ok=True)
    shutil.copy(BIN / "gpu-agentd", directory)
    for name in LIBEXEC[1:]:
        with contextlib.suppress(FileExistsError):
            (directory / name).symlink_to(BIN / name)
    front = directory / "gpu-agent-front"
    front.unlink()
    front.write_text(FRONT.replace("{python}", sys.executable).replace("{types}", repr(ipc_types())))
    front.chmod(0o755)
    report, config, sockets = s.directory / "report", s.directory / "agentd.conf", s.directory / "run"
    config.write_text("[agent]\nuser = nobody\nsocket_group =\n")
    report.write_text("")
    sockets.mkdir(exist_ok=True)
    s.cores.mkdir(mode=0o700, exist_ok=True)
    shutil.chown(s.cores, "nobody")
    s.socket = sockets / "agentd.sock"
    env = {"FALLEN_REPORT": str(report), "FALLEN_TRIES": what, "FALLEN_PID": str(pid), "FALLEN_SOCKET": str(s.socket),
           "FALLEN_GIFT": str(s.directory / "gift")}
    s.agentd = s.start("agentd", [directory / "gpu-agentd", "--socket", s.socket, "--kfd", s.mount / "kfd", "--kfd-sysfs",
                                  s.mount, "--store", s.cores, "--config", config], env=env)
    wait_until(lambda: "ready on" in s.agentd.err(), "that front serves")
    os.chmod(s.socket, 0o666)
    return report


def colluder(s):
    """Gives away the server's end of a connection of root, to a socket with the agent's own name but elsewhere."""
    def give(tell, wait):
        gift = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(s.directory / "gift")
        gift.bind(str(s.directory / "gift"))
        gift.listen()
        unshare(NEWNS)
        assert libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) == 0
        assert libc.mount(b"none", str(s.socket.parent).encode(), b"tmpfs", 0, None) == 0
        with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
            listener.bind(str(s.socket))
            listener.listen()
            client.connect(str(s.socket))
            tell(b"listens")
            given = listener.accept()[0]
            socket.send_fds(gift.accept()[0], [b"x"], [given.fileno()])
            wait()
    return give


def connected(s, uid):
    def connect(tell, wait):
        if uid:
            become(uid)
        keep = Rpc(s.socket)
        tell(b"connected")
        wait()
        keep.close()
    return connect


def connected_later(s):
    """Connects again and again until somebody is there, behind the first client."""
    def connect(tell, wait):
        tell(b"begins")
        report = s.directory / "report"
        wait_until(lambda: report.exists() and "tries" in report.read_text(), "that front has a client")
        keep = Rpc(s.directory / "run/agentd.sock")
        wait()
        keep.close()
    return connect


@contextlib.contextmanager
def fallen_front(s, what, pid, uid=0):
    """What that front was told, having tried it with the id of a client of that user; None: the agent has ended."""
    report = fallen_agent(s, what, pid)

    def told():
        # Without text that front has seen the end of file.
        answers = [line.split()[1] for line in report.read_text().splitlines() if line.startswith("answer ") and line[7:]]
        return (bytes.fromhex(answers[0]),) if answers else s.agentd.popen.poll() is not None
    with child(colluder(s)), child(connected(s, uid)):
        wait_until(told, "the end of that front, or its answer")
        assert report.read_text().startswith(f"tries {uid} {uid} {int(uid == 0)}\n"), "it never came to it"
        answer = told()
        yield answer[0] if answer is not True else None


LIES = ("never", "zero", "closed", "closed_twice", "closed_never", "taken", "hooks_never", "hooks_closed", "store_never",
        "release_never", "socket", "colluder", "adapter_colluder", "adapter_pair", "adapter_file", "adapter_text")
NONSENSE = ("short", "long", "hooks_file", "drop_file", "release_note")


def test_a_fallen_front_invents_no_client():
    """Neither by a number nor by a socket, for whatever it asks: it is killed, and that is written down."""
    need_root()
    with Scene(app=None, user_mode=False, start_agent=False) as s, child(target(sys.executable, "", uid=None)) as (_, mine):
        for what in LIES + NONSENSE:
            with fallen_front(s, what, int(mine)) as answer:
                wait_until(lambda: s.agentd.popen.poll() is not None, f"{what}: the agent ends, to be started anew")
            assert answer is None, (what, answer)
            assert s.agentd.popen.returncode == 1 and "front breaks the protocol" in s.agentd.err(), (what, s.agentd.err())
            assert ("front speaks for a client that it has not" in s.agentd.err()) == (what in LIES), (what, s.agentd.err())
            assert "allowed" not in s.agentd.err(), (what, s.agentd.err())


def verdict_of(answer):
    kind, request, worker, _, _, verdict, status = struct.unpack_from("<IIIIIIi", answer)
    assert (kind, request) == (ipc_types()["STARTED"], 1), answer
    return verdict, worker, status


def test_a_front_that_speaks_for_a_client_is_answered():
    """The control of the one above, of everything that it asks for."""
    need_root()
    with Scene(app=None, user_mode=False, start_agent=False) as s, child(target(sys.executable, "", uid=None)) as (_, mine):
        for what in ("client", "store", "adapter"):
            with fallen_front(s, what, int(mine)) as answer:
                assert answer, what
                verdict, worker, _ = verdict_of(answer)
                assert verdict == 0 and worker, (what, verdict, worker)
            s.agentd.stop()
        with fallen_front(s, "hooks_root", int(mine)) as answer:
            assert struct.unpack("<IIi", answer)[2] == -errno.ENOENT, answer
        s.agentd.stop()


def test_a_fallen_front_has_the_rights_of_its_clients_only():
    """It has a member's connection, and wants what others may."""
    need_root()
    other_user = 3
    with Scene(app=None, user_mode=False, start_agent=False) as s, child(target(sys.executable, "", uid=None)) as (_, mine):
        with fallen_front(s, "client", int(mine), USER) as answer:
            assert verdict_of(answer)[0] == other_user, answer
        s.agentd.stop()
        with fallen_front(s, "hooks_root", int(mine), USER) as answer:
            assert struct.unpack("<IIi", answer)[2] == -errno.EACCES, answer
        s.agentd.stop()
        with fallen_front(s, "store", int(mine), USER) as answer:
            assert verdict_of(answer)[:2] == (0, 1), answer
            (store,) = wait_until(lambda: children_named(s.agentd.pid, "gpu-agent-store"), "the store runs")
            argv = pathlib.Path(f"/proc/{store}/cmdline").read_text().split("\0")
            assert argv[argv.index("--client-uid") + 1] == str(USER) and "--admin" not in argv, argv
        s.agentd.stop()


def test_a_fallen_front_controls_nothing_unseen():
    """What it has done for a client is written down as the client's; for nobody, nothing is done."""
    need_root()
    for what in ("control", "control_nobody", "control_never"):
        with Scene(user_mode=False, start_agent=False) as s, fallen_front(s, what, s.app.pid) as answer:
            seen = what == "control"
            assert answer == struct.pack("<I", ipc_types()["REPLY" if seen else "OVER"]), (what, answer)
            named = f"gpu.suspend on process {s.app.pid} by uid 0 (pid "
            if seen:
                wait_until(lambda: named in s.agentd.err(), "it is written down")
            else:
                assert s.target_state()["suspended_queues"] == 0 and s.app.popen.poll() is None, what
            assert (named in s.agentd.err()) == seen, s.agentd.err()
            assert ("front speaks for a client that the monitor has not let in" in s.agentd.err()) != seen, s.agentd.err()


def test_a_fallen_front_changes_hands_in_no_silence():
    """Who gets control from whom is written down as the judge knows them, also when that front says that one has left."""
    need_root()
    for what, reason in (("control_taken", "silent"), ("control_left", "left")):
        with Scene(user_mode=False, start_agent=False) as s, child(connected_later(s)) as _, \
                fallen_front(s, what, s.app.pid) as answer:
            assert answer == b"done", (what, answer)
            line = wait_until(lambda: next((x for x in s.agentd.err().splitlines() if "taken from" in x), None), what)
            pids = re.findall(r"uid 0 \(pid (\d+)\)", line)
            assert len(set(pids)) == 2 and line.endswith(f": {reason}"), line


def test_a_fallen_front_releases_nobody_in_silence():
    """The judge names who did it; where nobody may, nothing is released or written."""
    need_root()
    with Scene(user_mode=False, start_agent=False) as s, child(connected_later(s)) as _, \
            fallen_front(s, "release_other", s.app.pid) as answer:
        assert answer == b"done", answer
        wait_until(lambda: f"session.detach on process {s.app.pid} by uid 0 (pid " in s.agentd.err(), "it is written down")
    for what in ("release_stranger", "lie_of_control"):
        with Scene(user_mode=False, start_agent=False) as s, fallen_front(s, what, s.app.pid) as answer:
            assert answer == b"done", answer
            # What it says next is taken behind that.
            s.agentd.popen.terminate()
            s.agentd.popen.wait(PATIENCE)
            assert "session.detach" not in s.agentd.err() and "taken from" not in s.agentd.err(), s.agentd.err()


def test_a_fallen_front_that_floods_is_killed():
    """Its client is refused all the time: the log tells that in few lines, and the front does not go on."""
    need_root()
    with Scene(app=None, user_mode=False, start_agent=False) as s:
        with fallen_front(s, "flood", 1, USER):
            wait_until(lambda: s.agentd.popen.poll() is not None, "the agent ends, to be started anew")
        text = s.agentd.err()
        assert "front breaks the protocol" in text and "uid 1000: " in text and "more attaches refused in" in text, text
        assert 20 <= text.count("attach to 2147483632") <= 40, text
