#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Suspend leases: renewed, run out, lost; who holds what is told to everybody who may know, and what it cost."""
import json
import os
import signal
import subprocess
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import BIN, PATIENCE, CudaScene, Scene, as_user, need_root, wait_until


def session_of(rpc, session):
    return next((s for s in rpc.call("session.list")["sessions"] if s["session"] == session), None)


def totals(rpc, pid):
    return next((t for t in rpc.call("agent.status")["suspended"] if t["pid"] == pid), None)


def queue_ids(s, session):
    return [q["queue_id"] for q in s.rpc.call("gpu.queues", session=session)["queues"]]


def test_the_holder_is_named():
    with Scene() as s:
        session = s.attach()
        before = session_of(s.rpc, session)
        assert "suspension" not in before and before["suspends"] == before["suspended_us"] == 0, before
        assert s.rpc.call("agent.status")["suspended"] == []
        ids = queue_ids(s, session)[:2]
        s.rpc.call("gpu.suspend", session=session, queues=ids, lease_ms=60000)
        other = s.connect()
        seen = session_of(other, session)
        held = seen["suspension"]
        assert held["holder_pid"] == os.getpid() and held["holder_uid"] == os.getuid(), seen
        assert sorted(held["queues"]) == sorted(ids) and 0 < held["lease_left_ms"] <= 60000, seen
        assert seen["suspends"] == 1 and 0 < held["suspended_us"] <= seen["suspended_us"], seen
        now = totals(other, s.app.pid)
        assert now["suspended"] and now["suspends"] == 1 and now["uid"] == os.getuid(), now
        # One of them less: still the same suspension.
        s.rpc.call("gpu.resume", session=session, queues=ids[:1])
        assert session_of(other, session)["suspension"]["queues"] == ids[1:]
        s.rpc.call("gpu.resume", session=session)
        after = session_of(other, session)
        assert "suspension" not in after and after["suspends"] == 1, after
        assert after["suspended_us"] >= seen["suspended_us"]
        assert session_of(other, session)["suspended_us"] == after["suspended_us"], "it goes on counting"


def test_a_lease_is_renewed_again_and_again():
    with Scene() as s:
        session = s.attach()
        s.rpc.call("gpu.suspend", session=session, lease_ms=3000)
        begun = time.monotonic()
        while time.monotonic() < begun + 4:
            got = s.rpc.call("gpu.renew", session=session, lease_ms=3000)
            assert got == {"suspended": 4, "lease_ms": 3000}, got
            assert s.target_state()["suspended_queues"] == 4
            time.sleep(0.1)
        # The lease can be made shorter, too, and then runs out.
        assert s.rpc.call("gpu.renew", session=session, lease_ms=50)["suspended"] == 4
        note = s.rpc.notification("gpu.resumed")
        assert note["reason"] == "lease_expired" and note["queues"] == 4, note
        assert s.rpc.call("gpu.renew", session=session) == {"suspended": 0, "lease_ms": 0}
        assert s.target_state()["suspended_queues"] == 0
        seen = session_of(s.rpc, session)
        assert seen["suspends"] == 1 and seen["suspended_us"] >= 4_000_000, seen


def test_renewing_races_with_the_end_of_the_lease():
    """Whatever wins: the answer tells which, queues stand still exactly as long as it says."""
    with Scene() as s:
        session = s.attach()
        won = lost = 0
        for i in range(40):
            s.rpc.call("gpu.suspend", session=session, lease_ms=20)
            time.sleep(0.012 + i % 10 / 500)
            got = s.rpc.call("gpu.renew", session=session, lease_ms=60000)
            if got["suspended"]:
                won += 1
                assert got == {"suspended": 4, "lease_ms": 60000}, got
                time.sleep(0.02)
                assert s.target_state()["suspended_queues"] == 4
                assert s.rpc.call("gpu.resume", session=session)["resumed"] == 4
            else:
                lost += 1
                s.rpc.notification("gpu.resumed")
            assert s.target_state()["suspended_queues"] == 0
        assert won + lost == 40
        assert not s.rpc.notifications, s.rpc.notifications


def test_only_the_holder_renews():
    with Scene() as s:
        session = s.attach()
        s.rpc.call("gpu.suspend", session=session, lease_ms=60000)
        other = s.connect()
        s.attach(rpc=other)
        for method in ("gpu.renew", "gpu.suspend", "gpu.resume"):
            error = other.error(method, session=session)
            assert error.name == "busy" and str(os.getpid()) in error.message, error
        # The holder leaves: queues run, and the other one may.
        s.rpc.close()
        s.clients.remove(s.rpc)
        assert other.notification("gpu.resumed")["reason"] == "client_lost"
        assert "suspension" not in session_of(other, session)
        assert other.call("gpu.renew", session=session)["suspended"] == 0
        other.call("gpu.suspend", session=session, lease_ms=60000)
        assert session_of(other, session)["suspends"] == 2


def test_totals_outlive_sessions():
    with Scene() as s:
        for n in (1, 2):
            session = s.attach()
            s.rpc.call("gpu.suspend", session=session, lease_ms=60000)
            time.sleep(0.05)
            s.rpc.call("session.detach", session=session)
            total = totals(s.rpc, s.app.pid)
            assert total["suspends"] == n and total["suspended_us"] >= n * 50_000 and not total["suspended"], total
        # A worker that is killed resumes by the kernel; its time counts all the same.
        session = s.attach()
        s.rpc.call("gpu.suspend", session=session, lease_ms=60000)
        os.kill(s.worker_pids()[0], signal.SIGKILL)
        assert s.rpc.notification("session.ended")["reason"] == "worker_died"
        total = totals(s.rpc, s.app.pid)
        assert total["suspends"] == 3 and not total["suspended"], total
        # A process that is gone stays on the list, until 64 others came.
        s.app.stop()
        assert totals(s.rpc, s.app.pid)["suspends"] == 3


def test_others_learn_nothing():
    need_root()
    with Scene(user_mode=False, app_user=54101) as s:
        session = s.attach()
        s.rpc.call("gpu.suspend", session=session, lease_ms=60000)

        def owner():
            rpc = s.connect()
            assert session_of(rpc, session)["suspension"]["holder_uid"] == 0
            assert totals(rpc, s.app.pid)["suspended"]

        def stranger():
            rpc = s.connect()
            assert rpc.call("session.list")["sessions"] == []
            assert rpc.call("agent.status")["suspended"] == []

        as_user(54101, owner)
        as_user(54102, stranger)


def test_contexts_of_cuda_count_too():
    with CudaScene() as s:
        session = s.attach()
        ids = queue_ids(s, session)
        s.rpc.call("gpu.suspend", session=session, lease_ms=60000)
        assert session_of(s.rpc, session)["suspension"]["queues"] == ids
        s.rpc.call("gpu.resume", session=session)
        assert totals(s.rpc, s.app.pid)["suspends"] == 1


# -- gpu-agentctl ---------------------------------------------------------------------------------

class Suspend:
    """gpu-agentctl suspend on the program of a scene."""

    def __init__(self, s, *options):
        self.s = s
        self.popen = subprocess.Popen([str(BIN / "gpu-agentctl"), "suspend", str(s.app.pid), *options],
                                      env={**os.environ, "GPU_AGENT_SOCKET": str(s.socket)}, text=True,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __enter__(self):
        return self

    def wait_suspended(self):
        wait_until(lambda: self.s.target_state()["suspended_queues"], "queues are suspended")

    def __exit__(self, *_):
        self.popen.kill()
        self.popen.communicate()

    def wait(self):
        out, err = self.popen.communicate(timeout=PATIENCE)
        return self.popen.returncode, out, err


def test_hold_renews_until_it_is_told():
    # Renewed at half its time: what is left is for a machine that stands still.
    with Scene() as s, Suspend(s, "--lease", "4s", "--hold") as held:
        held.wait_suspended()
        time.sleep(5)
        assert held.popen.poll() is None and s.target_state()["suspended_queues"] == 4
        done = s.ctl("status")
        assert "queues " in done.stdout and " left" in done.stdout and f"{held.popen.pid} (" in done.stdout, done
        assert f"process {s.app.pid} (" in done.stdout and "so far, now" in done.stdout, done
        document = json.loads(s.ctl("status", "--json").stdout)
        assert document["sessions"]["sessions"][0]["suspension"]["holder_pid"] == held.popen.pid, document
        assert " left" in s.ctl("list").stdout
        done = s.ctl("queues", s.app.pid)
        assert f"suspended by process {held.popen.pid} (" in done.stderr, done
        assert s.ctl("suspend", s.app.pid).returncode == 6
        held.popen.send_signal(signal.SIGINT)
        code, out, err = held.wait()
        assert code == 130 and "4 queues resumed after" in err, (code, out, err)
        assert s.target_state()["suspended_queues"] == 0
        assert f"process {s.app.pid} (" in s.ctl("status").stdout


def test_hold_ends_with_the_stop_budget():
    with Scene() as s, Suspend(s, "--lease", "200ms", "--hold", "--max-stop", "700ms") as held:
        code, out, err = held.wait()
        assert code == 7, (code, out, err)
        assert s.target_state()["suspended_queues"] == 0


def test_a_killed_holder_resumes():
    with Scene() as s, Suspend(s, "--hold") as held:
        held.wait_suspended()
        held.popen.kill()
        wait_until(lambda: s.target_state()["suspended_queues"] == 0, "queues run again")
