#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The main job: attach, look, suspend, resume, let go; what clients share and what they cannot."""
import base64
import grp
import os
import re
import signal
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import CpuThreads, Rpc, Scene, as_user, need_root, status, wait_until


def counters(s):
    """Packets taken by each queue of the program."""
    return [q["read_index"] for q in s.rpc.call("gpu.queues", session=s.session)["queues"]]


def moving(s):
    before = counters(s)
    return wait_until(lambda: all(b > a for a, b in zip(before, counters(s))), "queues move")


def test_snapshot_shows_devices_and_queues():
    with Scene() as s:
        session = s.attach()
        doc = s.rpc.call("gpu.snapshot", session=session)
        assert doc["complete"] and doc["missing"] == [] and not doc["budget_exceeded"], doc
        assert doc["process"]["pid"] == s.app.pid and doc["process"]["queues"] == 4
        assert [d["arch"] for d in doc["devices"]] == ["gfx942", "gfx1100"], doc["devices"]
        assert len(doc["queues"]) == 4 and len({q["queue_id"] for q in doc["queues"]}) == 4
        assert doc["runtime"]["state"] == "enabled" and doc["runtime"]["r_debug"] != "0x0"
        assert s.rpc.call("gpu.devices", session=session)["devices"] == doc["devices"]
        assert doc["source"]["kind"] == "live" and doc["schema"]


def test_cpu_threads_never_stop():
    """Attach, snapshot and detach 20 times: no CPU thread is stopped, heartbeats go on."""
    need_root()  # real-time heartbeats, so that only a stop can delay them, not other programs
    with Scene(app=None) as s:
        s.app = s.start_app("runtime on; queues 4; spin", extra=["--realtime", "--threads", "2", "--beat-us", "100"])
        threads, beats = CpuThreads(s.app, s.app_status()), s.app_status().beats
        for _ in range(20):
            session = s.attach()
            s.rpc.call("gpu.snapshot", session=session)
            s.rpc.call("session.detach", session=session)
            threads.round_over()
        threads.check()
        assert s.app_status().beats > beats and status(s.app.pid)["TracerPid"] == "0"
        gaps = threads.gaps
        print(f"  largest gap of a round: median {gaps[10] / 1000:.0f} us, worst {gaps[19] / 1000:.0f} us")


def test_detach_leaves_no_trace():
    with Scene() as s:
        session = s.attach()
        assert len(s.worker_pids()) == 1 and status(s.app.pid)["TracerPid"] != "0"
        assert s.rpc.call("session.detach", session=session) == {"ended": True}
        assert status(s.app.pid)["TracerPid"] == "0"
        target = s.target_state()
        assert not target["enabled"], target
        assert s.worker_pids() == []
        assert s.rpc.error("gpu.queues", session=session).name == "no_such_session"
        s.session = s.attach()
        moving(s)


def test_queues_stop_and_run_again():
    with Scene() as s:
        s.session = s.attach()
        moving(s)
        result = s.rpc.call("gpu.suspend", session=s.session, lease_ms=20000)
        assert result["suspended"] == 4 and {q["verdict"] for q in result["queues"]} == {"suspended"}, result
        assert all(q["suspended"] for q in s.rpc.call("gpu.queues", session=s.session)["queues"])
        stopped = counters(s)
        time.sleep(0.1)
        assert counters(s) == stopped
        result = s.rpc.call("gpu.resume", session=s.session)
        assert result["resumed"] == 4 and result["stopped_us"] >= 100_000, result
        moving(s)


def test_some_queues_only():
    with Scene() as s:
        s.session = s.attach()
        ids = [q["queue_id"] for q in s.rpc.call("gpu.queues", session=s.session)["queues"]]
        result = s.rpc.call("gpu.suspend", session=s.session, queues=[ids[1], ids[1], 999], lease_ms=30000)
        assert [q["verdict"] for q in result["queues"]] == ["suspended", "skipped", "skipped"], result
        states = {q["queue_id"]: q["suspended"] for q in s.rpc.call("gpu.queues", session=s.session)["queues"]}
        assert states == {i: i == ids[1] for i in ids}
        assert s.rpc.call("gpu.resume", session=s.session)["resumed"] == 1


def test_lease_expires():
    with Scene() as s:
        s.session = s.attach()
        start = time.monotonic()
        s.rpc.call("gpu.suspend", session=s.session, lease_ms=1000)
        note = s.rpc.notification("gpu.resumed")
        took = time.monotonic() - start
        assert note["reason"] == "lease_expired" and note["queues"] == 4, note
        # The lease begins before the queues stop, which may take its time.
        assert 0.99 < took < 10 and 100_000 < note["stopped_us"] < took * 1e6, (took, note)
        moving(s)


def test_lost_client_resumes():
    """A client that suspended queues dies; another that only looks sees them run again."""
    with Scene() as s:
        s.session = s.attach()
        writer = s.connect()
        session = s.attach(rpc=writer)
        assert session == s.session
        writer.call("gpu.suspend", session=session, lease_ms=60000)
        writer.close()
        note = s.rpc.notification("gpu.resumed")
        assert note["reason"] == "client_lost" and note["queues"] == 4, note
        moving(s)


def test_one_writer_many_readers():
    with Scene() as s:
        s.session = s.attach(control=True)
        other = s.connect()
        joined = other.call("session.attach", pid=s.app.pid)
        assert joined["joined"] and joined["session"] == s.session
        assert len(other.call("gpu.queues", session=s.session)["queues"]) == 4
        error = other.error("gpu.suspend", session=s.session)
        assert error.name == "busy" and str(os.getpid()) in error.message and error.hint, error
        assert other.error("session.attach", pid=s.app.pid, control=True).name == "busy"
        info = other.call("session.list")["sessions"]
        assert len(info) == 1 and info[0]["readers"] == 2 and info[0]["writer_pid"] == os.getpid(), info
        assert s.rpc.call("session.detach", session=s.session) == {"ended": False}
        assert other.call("gpu.suspend", session=joined["session"])["suspended"] == 4
        assert other.call("session.detach", session=joined["session"]) == {"ended": True}


def test_everything_a_writer_changed_is_undone():
    with Scene(gpus="gfx942") as s:
        session = s.attach(control=True)
        reader = s.connect()
        s.attach(rpc=reader)
        s.rpc.call("launch.mode", session=session, mode="halt")
        s.rpc.call("gpu.flags", session=session, flags=["single_mem_op"])
        s.rpc.call("launch.override", session=session, mode="or", enable=["fp_invalid"], request=["fp_invalid"])
        s.rpc.call("watchpoint.set", session=session, address="0x7f0000001000", size=4096, mode="all")
        s.rpc.call("exception.subscribe", session=session, exceptions=["wave_trap"], hold=True)
        target = s.target_state()
        assert target["launch_mode"] == 1 and target["flags"] == 1 and target["watchpoints"] == 1, target
        assert len(reader.call("watchpoint.list", session=session)["watchpoints"]) == 1
        s.rpc.close()
        wait_until(lambda: s.target_state()["launch_mode"] == 0, "undo")
        wait_until(lambda: s.target_state()["watchpoints"] == 0, "undo")
        target = s.target_state()
        assert target["enabled"] and target["flags"] == 0 and target["override"] == 0, target
        assert reader.call("watchpoint.list", session=session)["watchpoints"] == []


def test_watchpoints_have_four_slots():
    with Scene(gpus="gfx942") as s:
        session = s.attach()
        for i in range(4):
            points = s.rpc.call("watchpoint.set", session=session, address=hex(0x7f0000000000 + i * 4096), size=4096,
                                mode="nonread")["watchpoints"]
            assert len(points) == 1 and points[0]["id"] == i, points
        error = s.rpc.error("watchpoint.set", session=session, address="0x7f0000100000", size=4096)
        assert error.name == "limit" and error.hint, error
        assert s.rpc.error("watchpoint.set", session=session, address="0x7f0000000001", size=4096).name == "invalid_params"
        assert s.rpc.error("watchpoint.set", session=session, address="0x7f0000000000", size=4095).name == "invalid_params"
        assert len(s.rpc.call("watchpoint.list", session=session)["watchpoints"]) == 4
        assert s.rpc.call("watchpoint.clear", session=session, id=2)["cleared"] == 1
        assert s.rpc.call("watchpoint.clear", session=session)["cleared"] == 3


def test_overrides_launch_modes_and_flags_answer_the_previous_value():
    with Scene(gpus="gfx942") as s:
        session = s.attach()
        call = s.rpc.call
        asked = call("launch.override", session=session)
        assert "address_watch" in asked["supported"] and asked["previous"] == [], asked
        call("launch.override", session=session, mode="replace", enable=["fp_overflow"], request=["fp_overflow"])
        assert call("launch.override", session=session)["previous"] == ["fp_overflow"]
        assert call("launch.mode", session=session, mode="debug")["previous"] == "normal"
        assert call("launch.mode", session=session, mode="normal")["previous"] == "debug"
        assert call("gpu.flags", session=session, flags=["single_mem_op"])["previous"] == []
        assert call("gpu.flags", session=session, flags=[])["previous"] == ["single_mem_op"]
        assert s.rpc.error("gpu.flags", session=session, flags=["single_alu_op"]).name == "unsupported"


def test_faults_are_reported_and_reach_the_application():
    with Scene(gpus="gfx942") as s:
        session = s.attach()
        call = s.rpc.call
        ids = [q["queue_id"] for q in call("gpu.queues", session=session)["queues"]]
        call("exception.subscribe", session=session, exceptions=["wave_memory_violation", "device_memory_violation"])
        s.raise_queue(ids[1], "wave_memory_violation")
        note = s.rpc.notification("exception.raised")
        assert "wave_memory_violation" in note["exceptions"] and note["queue_id"] == ids[1] and note["forwarded"], note
        wait_until(lambda: s.app_status().faults == 1, "the application saw its fault")
        time.sleep(0.05)
        assert s.app_status().faults == 1


def test_held_faults_are_forwarded_when_the_client_leaves():
    with Scene(gpus="gfx942") as s:
        session = s.attach(control=True)
        ids = [q["queue_id"] for q in s.rpc.call("gpu.queues", session=session)["queues"]]
        s.rpc.call("exception.subscribe", session=session, exceptions=["wave_trap"], hold=True)
        s.raise_queue(ids[0], "wave_trap")
        note = s.rpc.notification("exception.raised")
        assert not note["forwarded"], note
        time.sleep(0.05)
        assert s.app_status().faults == 0
        s.rpc.close()
        wait_until(lambda: s.app_status().faults == 1, "forwarded at the end")


def test_exceptions_can_be_queried_and_sent_by_hand():
    with Scene(gpus="gfx942") as s:
        session = s.attach(control=True)
        call = s.rpc.call
        ids = [q["queue_id"] for q in call("gpu.queues", session=session)["queues"]]
        assert call("exception.query", session=session)["found"] is False
        call("exception.subscribe", session=session, exceptions=["wave_abort"], hold=True)
        s.raise_queue(ids[2], "wave_abort")
        s.rpc.notification("exception.raised")
        info = call("exception.info", session=session, exception="process_runtime")
        assert info["latched"] is False, info
        assert call("exception.forward", session=session, exceptions=["wave_abort"], queue_id=ids[2])["sent"]
        wait_until(lambda: s.app_status().faults == 1, "sent by hand")


def test_memory_is_read_and_short_at_the_end_of_a_mapping():
    with Scene() as s:
        session = s.attach()
        queue = s.rpc.call("gpu.queues", session=session)["queues"][0]
        base = int(queue["ring_base"], 16)
        got = s.rpc.call("memory.read", session=session, address=queue["ring_base"], size=64)
        with open(f"/proc/{s.app.pid}/mem", "rb") as mem:
            mem.seek(base)
            want = mem.read(64)
        assert base64.b64decode(got["data"])[:2] == want[:2] and got["size"] == 64, got
        error = s.rpc.error("memory.read", session=session, address="0x10", size=4)
        assert error.name == "failed" and error.data["errno"], error.data
        with open(f"/proc/{s.app.pid}/maps", encoding="ascii") as maps:
            # Also what is not readable by itself: the agent reads as the GPU does, past page protections.
            areas = [(*(int(n, 16) for n in line.split()[0].split("-")), line.split()[1]) for line in maps]
        end = next(b for (_, b, mode), (a, _, _) in zip(areas, areas[1:]) if a > b and "r" in mode)
        got = s.rpc.call("memory.read", session=session, address=hex(end - 100), size=4096)
        assert got["size"] == 100 and len(base64.b64decode(got["data"])) == 100


def test_target_exit_ends_the_session():
    with Scene() as s:
        session = s.attach()
        s.app.popen.kill()
        s.app.popen.wait()
        note = s.rpc.notification("session.ended")
        assert note == {"session": session, "pid": s.app.pid, "reason": "exited"}, note
        assert s.rpc.error("gpu.queues", session=session).name == "no_such_session"
        wait_until(lambda: s.worker_pids() == [], "worker leaves")


def test_exec_of_the_target_ends_the_session():
    with Scene(app="runtime on; queues 2; wait-line; exec /bin/sleep 30") as s:
        session = s.attach()
        s.app.popen.stdin.write(b"\n")
        s.app.popen.stdin.flush()
        note = s.rpc.notification("session.ended")
        assert note["reason"] == "exec" and note["session"] == session, note
        wait_until(lambda: status(s.app.pid)["TracerPid"] == "0", "ptrace released")
        wait_until(lambda: status(s.app.pid)["State"][0] in "SR", "it runs on")


def test_runtime_handshake_is_answered():
    """Attached before the runtime is enabled: the program's enable and disable both come through at once."""
    with Scene(app="wait-line; runtime on; queues 2; wait-line; destroy 0; destroy 1; runtime off; wait-line") as s:
        session = s.attach()
        assert s.rpc.call("runtime.info", session=session)["runtime"]["state"] == "disabled"
        s.app.popen.stdin.write(b"\n")
        s.app.popen.stdin.flush()
        note = s.rpc.notification("runtime.changed")
        assert note["runtime"]["state"] == "enabled", note
        wait_until(lambda: len(s.rpc.call("gpu.queues", session=session)["queues"]) == 2, "program goes on")
        assert s.rpc.call("gpu.suspend", session=session)["suspended"] == 2
        s.rpc.call("gpu.resume", session=session)
        s.app.popen.stdin.write(b"\n")
        s.app.popen.stdin.flush()
        note = s.rpc.notification("runtime.changed")
        assert note["runtime"]["state"] == "disabled", note
        s.rpc.call("session.detach", session=session)


def test_signals_of_the_target_are_delivered():
    with Scene(app="runtime on; queues 1; ready; signals 1000000 200; spin") as s:
        before = s.app_status().signals
        session = s.attach()
        wait_until(lambda: s.app_status().signals > before + 100, "signals arrive while attached")
        s.app.popen.send_signal(signal.SIGSTOP)
        wait_until(lambda: status(s.app.pid)["State"][0] in "Tt", "stopped by the user")
        s.app.popen.send_signal(signal.SIGCONT)
        wait_until(lambda: status(s.app.pid)["State"][0] in "RS", "continued")
        s.rpc.call("session.detach", session=session)
        before = s.app_status().signals
        wait_until(lambda: s.app_status().signals > before, "signals arrive afterwards")


def test_two_targets_are_independent():
    with Scene() as s:
        other = s.start_app("runtime on; queues 2; spin", name="second")
        a, b = s.attach(), s.attach(pid=other.pid)
        assert a != b
        s.rpc.call("gpu.suspend", session=b, lease_ms=30000)
        s.session = a
        moving(s)
        other.popen.kill()
        assert s.rpc.notification("session.ended")["session"] == b
        assert len(s.rpc.call("gpu.queues", session=a)["queues"]) == 4


def test_list_and_doctor_look_without_touching():
    with Scene() as s:
        found = s.rpc.call("process.list")["processes"]
        mine = [p for p in found if p["pid"] == s.app.pid]
        assert len(mine) == 1 and mine[0]["queues"] == 4 and mine[0]["debuggable"], found
        report = s.rpc.call("process.doctor", pid=s.app.pid)
        assert report["ok"] and all(c["verdict"] != "fail" for c in report["checks"]), report
        assert not s.target_state()["enabled"]
        gpus = [c["name"] for c in report["checks"] if re.fullmatch(r"gpu_\d+", c["name"])]
        devices = s.rpc.call("gpu.devices", session=s.attach())["devices"]
        assert gpus == [f"gpu_{d['gpu_id']}" for d in devices] and len(gpus) == 2, (gpus, devices)
        report = s.rpc.call("process.doctor", pid=os.getpid())
        failed = [c for c in report["checks"] if c["verdict"] == "fail"]
        assert not report["ok"] and failed and all(c.get("fix") for c in failed), report


def test_privileged_daemon_serves_owner_and_drops_rights():
    """As root with an ordinary user's program: the owner attaches, the worker runs as that user."""
    need_root()
    with Scene(user_mode=False, app_user=1000) as s:
        session = s.attach()
        worker = s.worker_pids()[0]
        facts = status(worker)
        assert facts["Uid"].split() == ["1000"] * 4 and facts["CapEff"] == "0" * 16, facts
        assert facts["Seccomp"] == "2" and facts["NoNewPrivs"] == "1", facts
        front = status(s.front_pid())
        assert front["Uid"].split()[0] != "0" and front["CapEff"] == "0" * 16 and front["Seccomp"] == "2", front
        doc = s.rpc.call("gpu.snapshot", session=session)
        assert doc["complete"] and doc["process"]["uid"] == 1000, doc
        assert s.rpc.call("gpu.suspend", session=session)["suspended"] == 4
        s.rpc.call("session.detach", session=session)


def test_a_reload_reaches_who_is_connected():
    """Groups and limits hold at once, for old connections and new ones."""
    need_root()

    def reload(s, text):
        config = s.directory / "agentd.conf"
        config.write_text(f"[agent]\nuser = nobody\nsocket_group =\n{text}")
        before = s.agentd.err().count("read again")
        os.kill(s.agentd.pid, signal.SIGHUP)
        wait_until(lambda: s.agentd.err().count("read again") > before, "reload")

    def member(s):
        os.seteuid(54101)
        rpc = Rpc(s.socket)
        os.seteuid(0)
        assert not rpc.call("agent.hello")["admin"]
        assert rpc.error("session.attach", pid=s.app.pid).name == "not_permitted"
        reload(s, "admin_group = games\n[limits]\nconnections_per_user = 1\nsessions_per_user = 7\n")
        wait_until(lambda: rpc.call("agent.hello")["admin"], "front has heard of it")
        limits = rpc.call("agent.hello")["limits"]
        assert (limits["connections"], limits["sessions"]) == (1, 7), limits
        assert rpc.call("session.attach", pid=s.app.pid)["session"]
        os.seteuid(54101)
        assert Rpc(s.socket).read_message()["error"]["data"]["name"] == "limit"
        os.seteuid(0)
        reload(s, "")
        wait_until(lambda: not rpc.call("agent.hello")["admin"], "front has heard of it")
        rpc.close()

    with Scene(user_mode=False, app_user=1000) as s:
        as_user(0, lambda: member(s), groups=[grp.getgrnam("games").gr_gid])
        s.attach()
