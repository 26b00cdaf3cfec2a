#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The tables of gpu-agentd(8), "Who may do what": each cell of them over the socket of an agent that root started.

The manual page is what says what is expected: a row or column that is not known here fails, and so does one that is
tested here and not told there.
"""
import grp
import json
import os
import re
import signal
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import ROOT, Rpc, RpcError, Scene, children, need_root, status, unsanitized, wait_until
from people import (NEWPID, NEWUSER, PR_SET_PDEATHSIG, USER, become, drop_capabilities, in_pid_namespace, libc, mapped_root,
                    own_namespace, run, set_capabilities, unshare)

OTHER, OBSERVER, ADMIN, STRANGER, NOBODY = range(USER + 1, USER + 6)
NET_ADMIN = 12
PR_SET_SECUREBITS, PR_CAP_AMBIENT, NO_ROOT = 28, 47, 1


def tables():
    """Of the manual page: {row: {column: cell}}, of all of them."""
    text = (ROOT / "docs/man/gpu-agentd.8").read_text().partition(".Ss Who may do what")[2].partition(".Ss ")[0]
    found, columns = {}, []
    for line in re.findall(r"^\.It (.*)$", text, re.MULTILINE):
        first, *cells = line.split(" Ta ")
        if first.startswith("Sy "):
            columns = [cell.removeprefix("Sy ") for cell in cells]
        elif cells:
            assert first not in found and len(cells) == len(columns), line
            found[first] = dict(zip(columns, cells))
    return found


# -- targets: what each does before it executes the program, and what that does then ------------------


def user():
    become(USER)


def mapped_by_root():
    """A user namespace that root made, without the capabilities that its root user gets there."""
    me, (read, write) = os.getpid(), os.pipe()
    if os.fork() == 0:
        os.read(read, 1)
        for kind in ("uid", "gid"):
            with open(f"/proc/{me}/{kind}_map", "w", encoding="ascii") as f:
                f.write(f"0 {USER} 1")
        os._exit(0)
    unshare(NEWUSER)
    os.write(write, b"1")
    os.wait()
    assert libc.prctl(PR_SET_SECUREBITS, NO_ROOT, 0, 0, 0) == 0
    mapped_root()
    drop_capabilities()


def with_capability():
    """The program gets it, too, and is dumpable."""
    libc.prctl(8, 1, 0, 0, 0)  # PR_SET_KEEPCAPS
    become(USER)
    set_capabilities(1 << NET_ADMIN)
    assert libc.prctl(PR_CAP_AMBIENT, 2, NET_ADMIN, 0, 0) == 0


def pid_namespace():
    unshare(NEWPID)
    pid = os.fork()
    if pid:
        os.closerange(3, 1024)  # one of them tells whether the program could be executed
        os.waitpid(pid, 0)
        os._exit(0)
    become(USER)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


# What it is called in the table: how it begins, what the program does first, mode of the program.
TARGETS = {
    "ordinary": (user, "", 0o755),
    "not dumpable": (user, "nodump; ", 0o755),
    "set-user-ID": (user, "", 0o4755),
    "more capabilities": (with_capability, "", 0o755),
    "root-made container": (mapped_by_root, "", 0o755),
    "own container": (own_namespace, "", 0o755),
    "pid namespace below": (pid_namespace, "", 0o755),
    "root's": (lambda: None, "", 0o755),
}


def start_target(s, name):
    """Its pid."""
    begin, script, mode = TARGETS[name]
    word = re.sub(r"\W", "-", name)
    program = s.directory / f"app-{word}"
    program.write_bytes(unsanitized("gpu-agent-simapp").read_bytes())
    os.chmod(program, mode)
    status_file = s.directory / f"status-{word}"
    status_file.touch()
    os.chmod(status_file, 0o666)
    process = s.start(word, [program, "--kfd", s.mount / "kfd", "--status-file", status_file, "-e",
                             f"{script}runtime on; queues 1; spin"], preexec_fn=begin)
    process.wait_line()
    return children(process.pid)[0] if begin is pid_namespace else process.pid


def check_targets(targets):
    """They are what they are called."""
    facts = {name: status(pid) for name, pid in targets.items()}
    assert facts["set-user-ID"]["Uid"].split() == [str(USER), "0", "0", "0"]
    assert os.stat(f"/proc/{targets['not dumpable']}/status").st_uid == 0
    for name in set(targets) - {"set-user-ID", "root's"}:
        assert set(facts[name]["Uid"].split()) == {str(USER)}, (name, facts[name])
    assert int(facts["more capabilities"]["CapPrm"], 16) == 1 << NET_ADMIN
    assert os.stat(f"/proc/{targets['more capabilities']}/status").st_uid == USER
    assert int(facts["root-made container"]["CapPrm"], 16) == 0 and int(facts["own container"]["CapPrm"], 16)
    for name, kind in (("root-made container", "user"), ("own container", "user"), ("pid namespace below", "pid")):
        assert os.readlink(f"/proc/{targets[name]}/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}"), name


# -- rights ---------------------------------------------------------------------------------------


def may_attach(rpc, pid):
    """no, read, or all."""
    for told, control in (("all", True), ("read", False)):
        try:
            session = rpc.call("session.attach", pid=pid, control=control)["session"]
        except RpcError as error:
            assert error.name == "not_permitted", error
            continue
        rpc.call("session.detach", session=session)
        return told
    return "no"


def may_use_record(rpc, uid):
    """The same of a record of that user's process."""
    found = [r["record"] for r in rpc.call("cores.list")["records"] if r["uid"] == uid]
    if not found:
        return "no"
    try:
        rpc.call("cores.pin", record=found[0])
    except RpcError as error:
        assert error.name == "not_permitted", error
        return "read"
    rpc.call("cores.pin", record=found[0], pinned=False)
    return "all"


def rights_without_target(rpc, ordinary):
    listed = [p["pid"] for p in rpc.call("process.list")["processes"]]
    # A rule of that name is not there: who is told so has the right to test it.
    hooks = [rpc.error("hooks.test", rule="none", **params).name for params in ({}, {"uid": OTHER})]
    return {"connect": "yes", "list all GPU processes": "yes" if ordinary in listed else "no",
            "others' records": may_use_record(rpc, NOBODY), "root's records": may_use_record(rpc, 0),
            "test a hook as oneself": "no" if hooks[0] == "not_permitted" else "yes",
            "test a hook as others": "no" if hooks[1] == "not_permitted" else "yes"}


def ask(s, targets):
    """All cells of one column."""
    try:
        rpc = Rpc(s.socket)
    except PermissionError:
        return dict.fromkeys([*rights_rows(), *targets], "no")
    cells = rights_without_target(rpc, targets["ordinary"])
    assert set(cells) == set(rights_rows())
    return cells | {name: may_attach(rpc, pid) for name, pid in targets.items()}


def rights_rows():
    return [row for row in tables() if row not in TARGETS]


def columns(groups):
    """How each kind of client comes to be who it is, by its name in the table."""
    def member(uid, *more):
        def begin():
            os.setgroups([groups[name] for name in more])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        return begin

    return {"stranger": member(STRANGER), "owner": member(USER, "socket"), "other": member(OTHER, "socket"),
            "observer": member(OBSERVER, "socket", "observer"), "admin": member(ADMIN, "socket", "admin"),
            "root": lambda: None, "container": None}


def start_agent(s):
    """With groups of this machine for each right.  Their numbers."""
    kinds = ("socket", "admin", "observer")
    names = dict(zip(kinds, [g for g in grp.getgrall() if g.gr_gid not in (0, USER)]))
    config = "[agent]\nuser = nobody\n" + "".join(f"{kind}_group = {g.gr_name}\n" for kind, g in names.items())
    (s.directory / "agentd.conf").write_text(config)
    s.start_agentd(user_mode=False)
    # As gpu-agentd.socket has it.
    os.chown(s.socket, 0, names["socket"].gr_gid)
    os.chmod(s.socket, 0o660)
    return {kind: g.gr_gid for kind, g in names.items()}


def put_record(s, pid):
    rpc = s.connect()
    session = rpc.call("session.attach", pid=pid)["session"]
    assert rpc.call("gpu.snapshot", session=session, record=True, max_stop_ms=5000)["record"]
    rpc.call("session.detach", session=session)


def test_each_cell_of_the_manual_page():
    need_root()
    want = tables()
    with Scene(app=None, user_mode=False, start_agent=False) as s:
        groups = start_agent(s)
        targets = {name: start_target(s, name) for name in TARGETS}
        check_targets(targets)
        wait_until(lambda: len(s.state()["processes"]) >= len(targets), "all use the GPU")
        put_record(s, targets["root's"])
        put_record(s, s.start_app("runtime on; queues 1; spin", user=NOBODY).pid)
        for name, begin in columns(groups).items():
            def column(begin=begin):
                if begin is None:
                    return in_pid_namespace(contained(lambda: json.dumps(ask(s, targets))))
                begin()
                return json.dumps(ask(s, targets))

            got = json.loads(run(column))
            told = {row: cells[name] for row, cells in want.items()}
            assert got == told, (name, {row: (got.get(row), told.get(row)) for row in told if got.get(row) != told.get(row)})
        assert {column for cells in want.values() for column in cells} == set(columns(groups))


# What root of a container has by default, and what else it needs to trace.
CONTAINED, PTRACE = 0xa80425fb, 1 << 19


def contained(function, capabilities=CONTAINED):
    """As root of a container has it."""
    def inside():
        set_capabilities(capabilities)
        return function()
    return inside


def test_a_client_in_a_container_debugs_what_is_in_there():
    """The control of the column of refusals: its user, and its root, if that may trace there at all."""
    need_root()
    with Scene(app=None, user_mode=False) as s:
        program = s.directory / "app"
        program.write_bytes(unsanitized("gpu-agent-simapp").read_bytes())
        program.chmod(0o755)
        (s.directory / f"status-of-{USER}").touch()
        (s.directory / f"status-of-{USER}").chmod(0o666)

        def as_user():
            become(USER)
            return attached_inside(s, program)

        assert run(lambda: in_pid_namespace(as_user)) == "all"
        assert run(lambda: in_pid_namespace(contained(lambda: attached_inside(s, program), CONTAINED | PTRACE))) == "all"


def attached_inside(s, program):
    """What may be done with a program that was started below this process."""
    status_file = s.directory / f"status-of-{os.getuid()}"
    if os.getuid() == 0:
        status_file.touch()
    numbers, number = os.pipe()
    lines, line = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(number, os.readlink("/proc/self").encode())
        os.dup2(line, 1)
        os.execv(program, [program, "--kfd", s.mount / "kfd", "--status-file", status_file, "-e", "runtime on; queues 1; spin"])
    # /proc is from outside, and so are the numbers that the agent is told.
    outside = int(os.read(numbers, 20))
    assert os.read(lines, 100), "it never began"
    try:
        return may_attach(Rpc(s.socket), outside)
    finally:
        os.kill(pid, 9)
