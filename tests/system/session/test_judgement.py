#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whoever may no longer do what he could when he attached loses his place: at his next use, not when he likes."""
import os
import signal
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import Scene, as_user, need_root, wait_until

OWNER, MEMBER = 54401, 54402
# What the agent remembers of a judgement, and what of it counts before control is taken.
MEMORY_S, STRICT_S = 10, 1


class Judged(Scene):
    """A process of OWNER; the group daemon administers, the group bin looks."""

    def __init__(self, **kwargs):
        need_root()
        super().__init__(user_mode=False, app_user=OWNER, start_agent=False, **kwargs)

    def __enter__(self):
        super().__enter__()
        self.configure("admin_group = daemon\nobserver_group = bin\n")
        self.start_agentd(user_mode=False)
        return self

    def configure(self, groups):
        (self.directory / "agentd.conf").write_text(f"[agent]\nuser = nobody\nsocket_group =\n{groups}")

    def take_groups_away(self):
        """No group may do anything any more."""
        self.configure("")
        before = self.agentd.err().count("configuration read again")
        self.agentd.popen.send_signal(signal.SIGHUP)
        wait_until(lambda: self.agentd.err().count("configuration read again") > before, "it is read")

    def suspended(self):
        return self.target_state()["suspended_queues"]


def check_ended(rpc, session, method, **params):
    """The client is refused, told why, and is out of the session."""
    error = rpc.error(method, session=session, **params)
    assert error.name == "not_permitted", error
    ended = rpc.notification("session.ended")
    assert ended["session"] == session and ended["reason"] == "not_permitted", ended
    assert rpc.error("gpu.queues", session=session).name == "no_such_session"


def test_who_only_looks_is_judged_now_and_then():
    with Judged() as s:
        def observer():
            rpc = s.connect()
            session = s.attach(rpc=rpc)
            begun = time.monotonic()
            s.take_groups_away_by_root()
            # He is remembered for some time.
            rpc.call("gpu.queues", session=session)
            time.sleep(max(0, begun + MEMORY_S + 0.2 - time.monotonic()))
            check_ended(rpc, session, "memory.read", address="0x1000", size=8)

        with_helper(s, observer, groups=[2])


def test_what_comes_together_is_answered_in_order():
    """Also when the first of it has to wait for a judgement."""
    with Judged() as s:
        def owner():
            rpc = s.connect()
            session = s.attach(rpc=rpc, control=True)
            time.sleep(MEMORY_S + 0.2)
            for method, params in (("gpu.suspend", {"lease_ms": 60000}), ("gpu.queues", {}), ("gpu.resume", {})):
                rpc.send(method, session=session, **params)
            rpc.send("session.list")
            got = []
            while len(got) < 4:
                message = rpc.read_message()
                if "id" in message:
                    got.append(message)
            # The last needs no worker, and is answered when it is read: not before the first is on its way.
            asked = [m["result"] for m in sorted(got, key=lambda m: m["id"])]
            assert [m["id"] for m in got if m["result"] is not asked[3]] == sorted(m["id"] for m in got)[:3], got
            assert asked[0]["suspended"] == 4 and asked[2]["resumed"] == 4 and len(asked[3]["sessions"]) == 1, asked

        as_user(OWNER, owner)


def test_control_is_judged_anew():
    with Judged() as s:
        def admin():
            rpc = s.connect()
            session = s.attach(rpc=rpc)
            other = s.connect()
            again = s.attach(rpc=other)
            time.sleep(STRICT_S + 0.2)
            s.take_groups_away_by_root()
            check_ended(rpc, session, "gpu.suspend", lease_ms=60000)
            check_ended(other, again, "core.begin")

        with_helper(s, admin, groups=[1])
        assert s.suspended() == 0


def test_a_holder_who_loses_the_right_lets_queues_run():
    with Judged() as s:
        owner = s.connect()
        joined = s.attach(rpc=owner)

        def admin():
            rpc = s.connect()
            session = s.attach(rpc=rpc, control=True)
            assert session == joined
            begun = time.monotonic()
            rpc.call("gpu.suspend", session=session, lease_ms=60000)
            s.take_groups_away_by_root()
            rpc.call("gpu.renew", session=session, lease_ms=60000)
            time.sleep(max(0, begun + MEMORY_S + 0.2 - time.monotonic()))
            check_ended(rpc, session, "gpu.renew", lease_ms=60000)

        with_helper(s, admin, groups=[1])
        wait_until(lambda: s.suspended() == 0, "its queues run")
        assert owner.notification("gpu.resumed")["reason"] == "client_lost"
        assert owner.call("gpu.queues", session=joined)["queues"], "the session goes on for others"


def test_the_kernel_is_asked_again():
    """The owner of a process that has begun to protect itself."""
    with Judged(app=None) as s:
        app = s.start_app("runtime on; queues 2; wait-line; nodump; spin", user=OWNER)

        def owner():
            rpc = s.connect()
            session = s.attach(rpc=rpc, pid=app.pid)
            assert rpc.call("gpu.suspend", session=session)["suspended"] == 2
            rpc.call("gpu.resume", session=session)
            rpc.call("session.control", session=session, take=False)
            time.sleep(STRICT_S + 0.2)
            os.write(app.popen.stdin.fileno(), b"\n")
            time.sleep(0.5)
            check_ended(rpc, session, "gpu.suspend")

        as_user(OWNER, owner)


def test_a_connection_outlives_its_rights():
    """Whoever keeps the socket of a process that has ended: nobody knows any more who that is."""
    with Judged() as s:
        def keeper(rpc, session, connector, begun):
            wait_until(lambda: os.getppid() != connector, "who has connected has ended")
            rpc.call("gpu.queues", session=session)
            time.sleep(max(0, begun + MEMORY_S + 0.2 - time.monotonic()))
            check_ended(rpc, session, "gpu.queues")

        def owner():
            here, there = os.pipe()
            connector = os.fork()
            if connector == 0:
                rpc = s.connect()
                session, begun, me = s.attach(rpc=rpc), time.monotonic(), os.getpid()
                if os.fork():
                    os._exit(0)
                keeper(rpc, session, me, begun)
                os.write(there, b"judged")
                os._exit(0)
            os.close(there)
            os.waitpid(connector, 0)
            assert os.read(here, 10) == b"judged"

        as_user(OWNER, owner)


def with_helper(s, function, groups):
    """Run function() as MEMBER; what only root can do is asked of this process."""
    ask, asked = os.pipe()
    done, tell = os.pipe()

    def take_groups_away_by_root():
        os.write(asked, b"x")
        assert os.read(done, 1) == b"x"

    s.take_groups_away_by_root = take_groups_away_by_root
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(ask)
            as_user(MEMBER, function, groups=groups)
            code = 0
        finally:
            os._exit(code)
    os.close(asked)
    if os.read(ask, 1):
        s.take_groups_away()
        os.write(tell, b"x")
    assert os.waitpid(child, 0)[1] == 0
    for fd in (ask, done, tell):
        os.close(fd)
