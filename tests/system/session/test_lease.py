#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Control of a process can be taken from who has it, by those who may: nobody keeps queues stopped by being silent or stuck."""
import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import BIN, PATIENCE, RpcError, Scene, as_user, at_once, ids_of, need_root, status, wait_until

OWNER, STRANGER = 54101, 54102
CLONE_NEWUSER, PR_SET_DUMPABLE = 0x10000000, 4
FORCED_S = 1.0
LOCK_S = 10
ASK_S = 10
# The agent drops who has taken no byte for so long (CONN_STALL_S).
STALL_S = 30


@contextlib.contextmanager
def scene(limits="", **kwargs):
    """An agent for everybody, a process of OWNER."""
    need_root()
    with Scene(user_mode=False, app_user=OWNER, start_agent=False, **kwargs) as s:
        (s.directory / "agentd.conf").write_text(f"[agent]\nuser = nobody\nsocket_group =\n[limits]\n{limits}\n")
        s.start_agentd(user_mode=False)
        yield s


def connect(s, uid=OWNER):
    """A client of that user; the process is this one."""
    with ids_of(uid):
        rpc = s.connect()
        rpc.call("agent.status")
        return rpc


def hold(s, uid=OWNER, lease_ms=60000):
    """(client, session) that keeps the queues stopped."""
    rpc = connect(s, uid)
    session = s.attach(rpc=rpc, control=True)
    assert rpc.call("gpu.suspend", session=session, lease_ms=lease_ms)["suspended"] == 4
    return rpc, session


def stopped(s):
    return s.target_state()["suspended_queues"]


def is_gone(pid):
    return status(pid).get("State", "Z")[0] in "ZX"


def test_the_same_user_takes_over_by_force():
    with scene() as s:
        holder, session = hold(s)
        other = connect(s)
        for how in ({"control": True}, {"take": True}):
            error = other.error("session.attach", pid=s.app.pid, **how)
            assert error.name == "busy" and str(os.getpid()) in error.message, error
            assert f"resume --force {s.app.pid}" in error.hint, error.hint
        assert stopped(s) == 4
        got = other.call("session.attach", pid=s.app.pid, force=True)
        assert stopped(s) == 0, "answered before the queues run"
        taken = got["taken"]
        assert taken["pid"] == os.getpid() and taken["uid"] == OWNER and taken["queues"] == 4, taken
        assert taken["reason"] == "forced" and not taken["worker_killed"] and taken["stopped_us"] > 0, taken
        lost = holder.notification("control.lost")
        assert lost == {"session": session, "by_pid": os.getpid(), "by_uid": OWNER, "reason": "forced"}, lost
        # What was undone was told before.
        assert [(n, p["reason"]) for n, p in holder.notifications] == [("gpu.resumed", "control_taken")]
        # Who lost it may look, and for a while no more than that, whatever he says.
        assert holder.call("gpu.queues", session=session)["queues"]
        for method, more in (("gpu.suspend", {}), ("session.control", {"take": True, "force": True}),
                             ("gpu.resume", {"force": True})):
            error = holder.error(method, session=session, **more)
            assert error.name == "busy" and "taken from you" in error.message, error
        assert other.call("gpu.suspend", session=session, lease_ms=60000)["suspended"] == 4
        other.call("session.detach", session=session)
        wait_until(lambda: stopped(s) == 0, "its queues run")  # front has answered before
        assert holder.error("gpu.suspend", session=session).name == "busy"


def test_who_lost_control_gets_it_back_after_a_while():
    with scene() as s:
        holder, session = hold(s)
        other = connect(s)
        other.call("session.attach", pid=s.app.pid, force=True)
        begun = time.monotonic()
        other.call("session.control", session=session, take=False)

        def back():
            try:
                return holder.call("session.control", session=session, take=True)["control"]
            except Exception as error:  # pylint: disable=broad-except
                assert "taken from you" in str(error), error
                return False

        wait_until(back, "the lock ends", LOCK_S + PATIENCE)
        assert time.monotonic() - begun > LOCK_S - 1


def test_nor_on_another_connection():
    """The lock is the process's, unless it took control from itself."""
    with scene() as s:
        def owner():
            rpc = s.connect()
            session = s.attach(rpc=rpc, control=True)
            rpc.call("gpu.suspend", session=session, lease_ms=60000)
            done = s.ctl("resume", "--force", s.app.pid)
            assert done.returncode == 0, done
            error = s.connect().error("session.attach", pid=s.app.pid, control=True)
            assert error.name == "busy" and "taken from you" in error.message, error
            assert s.ctl("suspend", s.app.pid, "--lease", "10ms").returncode == 0

        as_user(OWNER, owner)


def test_others_may_not():
    with scene() as s:
        root, session = hold(s, uid=0)
        stranger = connect(s, STRANGER)
        assert stranger.error("session.attach", pid=s.app.pid, force=True).name == "not_permitted"
        # The owner sees who it is, and that only an administrator can help.
        owner = connect(s)
        error = owner.error("session.attach", pid=s.app.pid, force=True)
        assert error.name == "busy" and "administrator" in error.hint and "--force" not in error.hint, error
        s.attach(rpc=owner)
        assert owner.error("gpu.resume", session=session, force=True).name == "busy"
        assert owner.error("session.control", session=session, take=True, force=True).name == "busy"
        assert stopped(s) == 4
        assert not root.notifications, root.notifications


def test_who_may_look_takes_nothing():
    need_root()
    with Scene(user_mode=False, app_user=OWNER, start_agent=False) as s:
        (s.directory / "agentd.conf").write_text(
            "[agent]\nuser = nobody\nsocket_group =\nobserver_group = daemon\n")
        s.start_agentd(user_mode=False)
        _, session = hold(s)

        def observer():
            rpc = s.connect()
            assert rpc.error("session.attach", pid=s.app.pid, force=True).name == "not_permitted"
            s.attach(rpc=rpc)
            assert rpc.error("session.control", session=session, take=True, force=True).name == "not_permitted"
            assert rpc.error("gpu.resume", session=session, force=True).name == "not_permitted"

        as_user(STRANGER, observer, groups=[1])
        assert stopped(s) == 4


def test_the_same_number_elsewhere_is_another_user():
    """A user in a namespace of his own is less than outside: he takes nothing from there."""
    with scene(app=None) as s:
        holder, outside = connect(s), connect(s)

        def inside():
            libc = ctypes.CDLL(None, use_errno=True)
            libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # changing ids has made its files in /proc root's
            if libc.unshare(CLONE_NEWUSER) < 0:
                print(f"  no user namespaces: {os.strerror(ctypes.get_errno())}")
                return
            for name, text in (("setgroups", "deny"), ("uid_map", f"{OWNER} {OWNER} 1"), ("gid_map", f"{OWNER} {OWNER} 1")):
                pathlib.Path("/proc/self", name).write_text(text)
            app = s.start_app("runtime on; queues 4; spin")
            try:
                session = s.attach(pid=app.pid, rpc=holder, control=True)
                assert holder.call("gpu.suspend", session=session, lease_ms=60000)["suspended"] == 4
                rpc = s.connect()
                error = rpc.error("session.attach", pid=app.pid, force=True)
                assert error.name == "busy" and "administrator" in error.hint, (error, error.hint)
                assert holder.call("session.list")["sessions"][0]["suspension"]["queues"]
                # The same in the holder's own namespace.
                assert outside.call("session.attach", pid=app.pid, force=True)["taken"]["queues"] == 4
            finally:
                app.stop(signal.SIGKILL)

        shutil.copy(s.app_program, s.directory)
        s.app_program = s.directory / s.app_program.name
        os.chmod(s.directory, 0o777)
        as_user(OWNER, inside)


def test_root_resumes_whatever_hangs():
    """Within a second, also when the worker of the session answers nothing any more."""
    for stop in (False, True):
        with scene() as s:
            holder, session = hold(s)
            root = s.connect()
            worker = s.worker_pids()[0]
            if stop:
                os.kill(worker, signal.SIGSTOP)
            root.send("session.attach", pid=s.app.pid, force=True)
            at_once(lambda: stopped(s) == 0, f"queues run, worker stopped: {stop}")
            answer = root.read_message()
            while "id" not in answer:
                answer = root.read_message()
            taken = answer["result"]["taken"]
            assert taken["worker_killed"] == stop and taken["queues"] == 4, taken
            assert is_gone(worker) == stop
            assert holder.notification("control.lost")["by_uid"] == 0
            if stop:
                assert holder.notification("session.ended")["reason"] == "stuck"
                assert answer["result"]["session"] != session and not answer["result"]["joined"]
            # It is a session like any other.
            mine = answer["result"]["session"]
            assert root.call("gpu.suspend", session=mine)["suspended"] == 4
            root.call("gpu.resume", session=mine)


def test_a_stuck_session_ends_for_its_own_clients_too():
    """Those that are in it already and take control, or let the queues run."""
    for method, params in (("gpu.resume", {"force": True}), ("session.control", {"take": True, "force": True})):
        with scene() as s:
            _, session = hold(s)
            other = connect(s)
            s.attach(rpc=other)
            os.kill(s.worker_pids()[0], signal.SIGSTOP)
            begun = time.monotonic()
            got = other.call(method, session=session, **params)
            assert time.monotonic() - begun < FORCED_S + 1
            assert got["taken"]["worker_killed"] and stopped(s) == 0, got
            assert not got.get("control")
            assert other.notification("session.ended")["reason"] == "stuck"


def test_the_command_says_what_it_did():
    with scene() as s:
        holder, _ = hold(s)
        done = s.ctl("resume", s.app.pid)
        assert done.returncode == 6 and f"resume --force {s.app.pid}" in done.stderr, done
        done = s.ctl("resume", "--force", "--json", s.app.pid)
        assert done.returncode == 0, done
        document = json.loads(done.stdout)
        assert document["taken"]["queues"] == 4 and document["taken"]["uid"] == OWNER, document
        assert "4 queues resumed after" in done.stderr and "nothing to resume" not in done.stderr, done
        assert stopped(s) == 0
        assert holder.notification("control.lost")["by_uid"] == 0
        assert s.ctl("attach", "--force", s.app.pid).returncode == 2


def test_a_command_that_holds_learns_that_it_lost():
    with scene() as s:
        env = {**os.environ, "GPU_AGENT_SOCKET": str(s.socket)}
        argv = [str(BIN / "gpu-agentctl"), "suspend", "--hold", "--lease", "4s", str(s.app.pid)]
        with subprocess.Popen(argv, env=env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE) as held:
            wait_until(lambda: stopped(s) == 4, "queues are suspended")
            wait_until(lambda: "renewed 1 time, last request" in s.ctl("status").stdout, "status tells of renewals")
            attach = s.ctl("attach", "--take", "--force", "--for", "10ms", s.app.pid)
            assert attach.returncode == 0 and f"control taken from process {held.pid}" in attach.stderr, attach
            assert held.wait(PATIENCE) == 6, held.stderr.read()
            assert "somebody else took control" in held.stderr.read()
        assert stopped(s) == 0


def test_a_silent_holder_is_taken_over_without_force():
    with scene("silent_holder = 1500ms") as s:
        holder, session = hold(s)
        other = connect(s)
        s.attach(rpc=other)
        begun = time.monotonic()
        while time.monotonic() < begun + 2:
            # Sign of life: it stays.
            holder.call("gpu.queues", session=session)
            assert other.error("session.control", session=session, take=True).name == "busy"
            time.sleep(0.2)
        begun = time.monotonic()
        renewed = 0
        while time.monotonic() < begun + 2:
            # Of a machine; so is a suspend of what is suspended.
            holder.call("gpu.renew" if renewed % 2 else "gpu.suspend", session=session, lease_ms=60000)
            renewed += 1
            time.sleep(0.2)
        seen = next(i for i in other.call("session.list")["sessions"] if i["session"] == session)
        assert seen["suspension"]["renewals"] == renewed and seen["writer_idle_ms"] >= 1500, seen
        # Who does not say that he wants to take it does not.
        error = other.error("gpu.suspend", session=session)
        assert error.name == "busy" and f"attach --take {s.app.pid}" in error.hint, error
        stranger = connect(s, STRANGER)
        assert stranger.error("session.attach", pid=s.app.pid, take=True).name == "not_permitted"
        got = other.call("session.control", session=session, take=True)
        assert got["control"] and got["taken"]["reason"] == "silent" and got["taken"]["queues"] == 4, got
        assert stopped(s) == 0
        assert holder.notification("control.lost")["reason"] == "silent"


def test_a_silent_holder_is_taken_over_by_an_administrator():
    with scene("silent_holder = 300ms") as s:
        holder, session = hold(s)
        time.sleep(0.4)
        got = s.connect().call("session.attach", pid=s.app.pid, take=True)
        assert got["taken"]["reason"] == "silent" and stopped(s) == 0, got
        assert holder.notification("control.lost") == {"session": session, "by_pid": os.getpid(), "by_uid": 0,
                                                       "reason": "silent"}


def test_the_owner_asks_an_administrator_who_is_silent():
    """He is told, and has ten seconds to show that he is there; then the owner gets control."""
    with scene("silent_holder = 300ms") as s:
        root, session = hold(s, uid=0)
        owner = connect(s)

        def take():
            return owner.error("session.attach", pid=s.app.pid, take=True)

        assert "was asked" not in take().hint, "an administrator who is there is not asked"
        time.sleep(0.4)
        error = take()
        assert error.name == "busy" and "was asked" in error.hint and 0 < error.data["retry_ms"] <= ASK_S * 1000, error.data
        asked = root.notification("control.asked")
        assert asked == {"session": session, "by_pid": os.getpid(), "by_uid": OWNER, "left_ms": ASK_S * 1000}, asked
        # More time for the lease is no sign of life; a look is.
        root.call("gpu.renew", session=session, lease_ms=60000)
        assert "was asked" in take().hint
        root.call("gpu.queues", session=session)
        assert "was asked" not in take().hint
        time.sleep(0.4)
        begun = time.monotonic()
        assert "was asked" in take().hint
        assert owner.error("session.attach", pid=s.app.pid, force=True).name == "busy", "no by force"
        stranger = connect(s, STRANGER)
        assert stranger.error("session.attach", pid=s.app.pid, take=True).name == "not_permitted"
        assert stopped(s) == 4

        def taken():
            root.call("gpu.renew", session=session, lease_ms=60000)
            try:
                return owner.call("session.attach", pid=s.app.pid, take=True)
            except RpcError as refused:
                assert "was asked" in refused.hint, refused.hint
                time.sleep(0.2)
                return None

        got = wait_until(taken, "the owner gets control", ASK_S + PATIENCE)
        assert time.monotonic() - begun >= ASK_S - 0.1
        assert got["taken"]["reason"] == "silent" and got["taken"]["uid"] == 0 and stopped(s) == 0, got
        root.notification("control.asked")
        assert root.notification("control.lost")["by_uid"] == OWNER
        assert not any(n == "control.asked" for n, _ in root.notifications), "told once"


def test_root_resumes_while_members_keep_the_agent_busy():
    with scene() as s:
        hold(s)
        members = []
        try:
            for _ in range(6):
                child = os.fork()
                if child == 0:
                    flood(s)
                members.append(child)
            root = s.connect()
            answered = root.call("agent.status")["requests"]
            wait_until(lambda: root.call("agent.status")["requests"] > answered + 500, "the agent is busy")
            root.send("session.attach", pid=s.app.pid, force=True)
            at_once(lambda: stopped(s) == 0, "queues run")
        finally:
            for child in members:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


def flood(s):
    """Ask without end, on several connections; never returns."""
    try:
        os.setgroups([])
        os.setresgid(OWNER, OWNER, OWNER)
        os.setresuid(OWNER, OWNER, OWNER)
        clients = [s.connect() for _ in range(4)]
        sessions = [s.attach(rpc=rpc) for rpc in clients]
        while True:
            for rpc, session in zip(clients, sessions):
                for _ in range(8):
                    rpc.send("gpu.queues", session=session)
                rpc.send("process.list")
            for rpc in clients:
                for _ in range(9):
                    rpc.read_message()
    finally:
        os._exit(1)


def test_the_longest_stop_ends_whoever_renews():
    with scene("max_suspended = 2s") as s:
        holder = connect(s)
        session = s.attach(rpc=holder, control=True)
        begun = time.monotonic()
        got = holder.call("gpu.suspend", session=session, lease_ms=60000)
        assert 0 < got["lease_ms"] <= 2000, got
        while stopped(s):
            assert time.monotonic() < begun + 2 + PATIENCE, "never ends"
            granted = holder.call("gpu.renew", session=session, lease_ms=60000)["lease_ms"]
            assert granted <= 2000, granted
            time.sleep(0.1)
        assert time.monotonic() - begun > 1.9
        assert holder.notification("gpu.resumed")["reason"] == "limit"
        soon = holder.notification("gpu.resume_soon")
        assert 1600 <= soon["suspended_ms"] <= 2000 and soon["left_ms"] <= 400, soon
        # Another stop is another matter.
        assert holder.call("gpu.suspend", session=session, lease_ms=50)["lease_ms"] == 50
        assert holder.notification("gpu.resumed")["reason"] == "lease_expired"


def test_nobody_is_warned_of_a_stop_that_is_over():
    """The timer for the warning outlives the stop, and finds nothing to say."""
    with scene("max_suspended = 1s") as s:
        holder = s.connect()
        session = s.attach(rpc=holder, control=True)
        holder.call("gpu.suspend", session=session, lease_ms=400)
        holder.call("gpu.resume", session=session)
        time.sleep(1)  # the warning was to come at 0.8 s
        assert holder.call("gpu.queues", session=session)["queues"], "the session lives"


def test_the_command_ends_with_the_longest_stop():
    with scene("max_suspended = 1s") as s:
        done = s.ctl("suspend", "--hold", "--lease", "400ms", s.app.pid)
        assert done.returncode == 7 and "longest time that the agent allows" in done.stderr, done


def test_administrators_may_be_exempt():
    with scene("max_suspended = 0") as s:
        root = s.connect()
        session = s.attach(rpc=root, control=True)
        assert root.call("gpu.suspend", session=session, lease_ms=60000)["lease_ms"] == 60000


def test_taking_is_recorded():
    with scene() as s:
        hold(s)
        s.connect().call("session.attach", pid=s.app.pid, force=True)
        words = f"control of process {s.app.pid} taken from uid {OWNER} (pid {os.getpid()}) by uid 0 (pid {os.getpid()})"
        wait_until(lambda: words in s.agentd.err(), "the log tells who took it from whom")


def test_control_is_given_back_without_leaving():
    with scene() as s:
        holder, session = hold(s)
        other = connect(s)
        s.attach(rpc=other)
        assert not other.call("session.control", session=session, take=False)["control"]
        assert stopped(s) == 4, "not the caller's to give back"
        got = holder.call("session.control", session=session, take=False)
        assert got == {"control": False}, got
        assert stopped(s) == 0
        assert other.notification("gpu.resumed")["reason"] == "control_released"
        assert other.call("session.control", session=session, take=True) == {"control": True}
        assert other.call("gpu.suspend", session=session)["suspended"] == 4
        assert holder.error("gpu.resume", session=session).name == "busy"


def test_nothing_is_held_back_without_control():
    """Exceptions that the holder keeps from the program are forwarded, and none is kept any more."""
    with scene() as s:
        holder = connect(s)
        session = s.attach(rpc=holder, control=True)
        holder.call("exception.subscribe", session=session, exceptions=["wave_memory_violation"], hold=True)
        queue = holder.call("gpu.queues", session=session)["queues"][0]["queue_id"]
        s.raise_queue(queue, "wave_memory_violation")
        assert holder.notification("exception.raised")["held"]
        assert s.app_status().faults == 0
        connect(s).call("session.attach", pid=s.app.pid, force=True)
        wait_until(lambda: s.app_status().faults == 1, "the program gets it")
        s.raise_queue(queue, "wave_memory_violation")
        assert holder.notification("exception.raised")["forwarded"]
        wait_until(lambda: s.app_status().faults == 2, "and the next one at once")


def test_a_client_that_stops_reading_loses_control():
    """Nobody can tell it anything: others get control, by force at once, and else when the agent has dropped it."""
    with scene() as s:
        holder = connect(s)
        session = s.attach(rpc=holder, control=True)
        other = connect(s)
        s.attach(rpc=other)

        def fill():
            for _ in range(400):
                holder.send("rpc.discover")

        holder.sock.settimeout(1)
        with contextlib.suppress(TimeoutError):
            fill()
        begun = time.monotonic()
        error = other.error("gpu.suspend", session=session)
        assert error.name == "busy", error

        def free():
            listed = next(i for i in other.call("session.list")["sessions"] if i["session"] == session)
            return "writer_pid" not in listed

        wait_until(free, "the agent drops it", STALL_S + PATIENCE)
        took = time.monotonic() - begun
        assert took < STALL_S + 5, took
        assert other.call("gpu.suspend", session=session, lease_ms=100)["suspended"] == 4
    with scene() as s:
        holder, session = hold(s)
        with contextlib.suppress(TimeoutError):
            holder.sock.settimeout(1)
            fill()
        begun = time.monotonic()
        connect(s).call("session.attach", pid=s.app.pid, force=True)
        assert time.monotonic() - begun < FORCED_S + 1
        assert stopped(s) == 0
