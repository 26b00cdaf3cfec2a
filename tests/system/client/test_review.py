#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a hostile, clumsy or unlucky client must not be able to do to the daemon and to other clients."""
import contextlib
import json
import os
import pathlib
import random
import resource
import signal
import socket
import subprocess
import sys
import threading
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import BIN, Rpc, RpcError, Scene, as_user, need_root, rss_kib, status, wait_settled, wait_until


def fds(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def alive(s):
    return s.agentd.popen.poll() is None and s.agentd.err().count("stopping") == 0


def released(s, app=None):
    target = s.target_state(app)
    return (status((app or s.app).pid).get("TracerPid") == "0" and not target["enabled"]
            and target["suspended_queues"] == 0)


def kill_any(pids):
    """SIGKILL to one of them.  False when there was none."""
    if pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pids[-1], signal.SIGKILL)
            return True
    return False


def first_mapping(pid):
    """Address of a readable mapping of at least one MiB."""
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
        ends, mode = line.split()[:2]
        start, end = (int(x, 16) for x in ends.split("-"))
        if mode[0] == "r" and end - start >= 1 << 20 and "[v" not in line:
            return start
    raise AssertionError("no mapping")


def request(number, method, **params):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def test_a_flood_of_starts_does_not_end_the_agent():
    """Every request of a batch asks the monitor for a worker: more than the socket between the two holds."""
    with Scene(gpus="gfx942") as s:
        batch = ("[" + ",".join(request(i, "process.list") for i in range(64)) + "]\n").encode()
        clients = [s.connect() for _ in range(60)]
        session = s.attach(rpc=s.connect())
        for c in clients:
            c.send_raw(batch)
        for c in clients:
            c.sock.settimeout(60)
            replies = c.read_message()
            assert len(replies) == 64, len(replies)
            names = {r["error"]["data"]["name"] for r in replies if "error" in r}
            assert names <= {"limit", "timeout"}, names
        assert alive(s), s.agentd.err()
        assert s.clients[-1].call("gpu.queues", session=session)["queues"]


def test_a_client_that_leaves_while_it_waits_for_another_session_to_end():
    """Its request waits at the session; the session's end must not trip over it."""
    with Scene(gpus="gfx942") as s:
        s.attach()
        worker = s.worker_pids()[0]
        os.kill(worker, signal.SIGSTOP)
        s.clients.pop().close()  # the session is ending, but its worker cannot
        waiting = Rpc(s.socket)
        waiting.send_raw((request(1, "session.attach", pid=s.app.pid) + "\n").encode())
        other = s.connect()
        other.call("process.list")  # goes the same way: the monitor has answered both
        waiting.close()
        other.call("agent.status")
        os.kill(worker, signal.SIGCONT)
        wait_until(lambda: released(s), "target released")
        assert alive(s), s.agentd.err()
        s.attach(rpc=other)
        other.call("session.detach", session=other.call("session.list")["sessions"][0]["session"])


def test_a_client_that_waits_for_another_session_to_end_gets_its_own():
    with Scene(gpus="gfx942") as s:
        s.attach()
        worker = s.worker_pids()[0]
        os.kill(worker, signal.SIGSTOP)
        s.clients.pop().close()
        waiting = s.connect()
        waiting.send_raw((request(1, "session.attach", pid=s.app.pid) + "\n").encode())
        s.connect().call("process.list")
        os.kill(worker, signal.SIGCONT)
        assert waiting.read_message()["result"]["pid"] == s.app.pid


def test_a_client_that_leaves_before_its_worker_is_known():
    """The next client of that target waits for the end of the orphan; it gets a session, no odd error."""
    with Scene(gpus="gfx942") as s:
        gone, stays, other = Rpc(s.socket), s.connect(), s.connect()
        for c in (gone, stays, other):
            c.call("agent.status")
        os.kill(s.agentd.pid, signal.SIGSTOP)
        try:
            for c in (gone, stays):
                c.send_raw((request(1, "session.attach", pid=s.app.pid) + "\n").encode())
            other.call("agent.status")
            gone.close()
            s.clients[-1].call("agent.status")
        finally:
            os.kill(s.agentd.pid, signal.SIGCONT)
        reply = stays.read_message()
        assert reply.get("result", {}).get("pid") == s.app.pid, reply


def test_a_worker_that_does_not_leave_is_killed():
    """Nothing else would free the target when the last client has gone."""
    for clean in (True, False):
        with Scene(gpus="gfx942") as s:
            session = s.attach()
            os.kill(s.worker_pids()[0], signal.SIGSTOP)
            if clean:
                assert s.rpc.call("session.detach", session=session) == {"ended": True}
            else:
                s.clients.pop().close()
            wait_until(lambda: released(s), "target released", patience=15)
            s.attach(rpc=s.connect())


def test_many_calls_to_a_stopped_worker():
    """All of them pass their deadline at once; one of them is enough to have the worker killed."""
    with Scene(gpus="gfx942") as s:
        owner = s.connect()
        s.attach(rpc=owner)
        clients = [s.connect() for _ in range(12)]
        sessions = [s.attach(rpc=c) for c in clients]
        os.kill(s.worker_pids()[0], signal.SIGSTOP)
        for c, session in zip(clients, sessions):
            c.send_raw("".join(request(i, "gpu.queues", session=session) + "\n" for i in range(60)).encode())
        for c in clients:
            c.sock.settimeout(120)
            names = set()
            for _ in range(60):
                message = c.read_message()
                while "id" not in message:
                    message = c.read_message()
                names.add(message["error"]["data"]["name"])
            assert names <= {"timeout", "session_ended"}, names
        wait_until(lambda: released(s), "target released")
        assert alive(s), s.agentd.err()


def test_slow_calls_in_a_row_are_no_reason_to_kill_a_worker():
    """Each takes its time, together they take longer than one may: the worker is busy, not stuck."""
    with Scene(gpus="gfx942") as s:
        session = s.attach()
        s.control("delay devices 1000 20")
        n = 17
        s.rpc.sock.settimeout(60)
        s.rpc.send_raw("".join(request(i, "gpu.devices", session=session) + "\n" for i in range(n)).encode())
        names = []
        while len(names) < n:
            message = s.rpc.read_message()
            assert message.get("method") != "session.ended", message
            if "id" in message:
                names.append(message.get("error", {}).get("data", {}).get("name"))
        assert set(names) <= {None, "timeout"} and names.count(None) >= 5, names
        assert len(s.worker_pids()) == 1
        s.rpc.call("gpu.queues", session=session)


def test_a_heap_of_large_requests_is_refused():
    """Padded requests for a worker that takes none: the front neither keeps them all nor blames the worker."""
    with Scene(gpus="gfx942") as s:
        session = s.attach(rpc=s.connect())
        front, worker = s.front_pid(), s.worker_pids()[0]
        before = fds(front)
        clients = [s.connect() for _ in range(4)]
        for c in clients:
            assert s.attach(rpc=c) == session
        os.kill(worker, signal.SIGSTOP)
        line = request(1, "gpu.queues", session=session)
        line = (line[:-2] + " " * 900_000 + line[-2:] + "\n").encode()
        refused = 0
        for c in clients:
            for _ in range(16):
                c.send_raw(line)
        s.clients[0].call("agent.status")
        used = fds(front) - before
        os.kill(worker, signal.SIGCONT)
        for c in clients:
            for _ in range(16):
                message = c.read_message()
                refused += message.get("error", {}).get("data", {}).get("name") == "failed"
        assert used < 30, used
        assert refused >= 40, refused
        assert s.clients[0].call("gpu.queues", session=session)["queues"]


def test_a_client_that_leaves_with_all_its_requests_open():
    """Nothing more is read from it; that it has gone is noticed all the same."""
    with Scene(gpus="gfx942") as s:
        other = s.connect()
        session = s.attach(rpc=other)
        gone = Rpc(s.socket)
        s.attach(rpc=gone)
        gone.call("gpu.suspend", session=session, lease_ms=60000)
        s.control("delay queues 9000 1")
        gone.send_raw("".join(request(i, "gpu.queues", session=session) + "\n" for i in range(70)).encode())
        other.call("agent.status")
        gone.close()
        # Long before the call that is being served is answered.
        wait_until(lambda: other.call("agent.status")["connections"] == 1, "the end was noticed")
        assert any(c["wait"] == "delay" for c in s.state()["pending"]), s.state()["pending"]
        wait_until(lambda: s.target_state()["suspended_queues"] == 0, "resumed")


def test_open_requests_of_a_connection_are_bounded():
    """While a worker is busy, a client that goes on asking is left to its own socket buffer."""
    with Scene(gpus="gfx942") as s:
        session = s.attach()
        worker = s.worker_pids()[0]
        os.kill(worker, signal.SIGSTOP)
        line = (request(1, "gpu.queues", session=session) + "\n").encode()
        s.rpc.sock.settimeout(1)
        sent = 0
        try:
            while sent < 16 << 20:
                sent += s.rpc.sock.send(line * 100)
        except TimeoutError:
            pass
        assert sent < 2 << 20, f"{sent} bytes taken"
        assert s.connect().call("agent.status")["sessions"] == 1
        os.kill(worker, signal.SIGCONT)


def test_memory_of_a_user_that_does_not_read_is_bounded():
    with Scene(gpus="gfx942") as s:
        rpc = s.connect()
        session = s.attach(rpc=rpc)
        front = s.front_pid()
        address = first_mapping(s.app.pid)
        before = rss_kib(front)
        crowd = []
        for _ in range(24):
            c = s.connect()
            s.attach(rpc=c)
            line = request(1, "memory.read", session=session, address=hex(address), size=1 << 20) + "\n"
            c.send_raw((line * 20).encode())
            crowd.append(c)
        for _ in range(20):
            rpc.call("gpu.queues", session=session)
        grown = (rss_kib(front) - before) >> 10
        assert grown < 500, f"{grown} MiB"


def test_answers_that_wait_for_their_batch_are_bounded():
    """With 32 MiB of them, a large one more is refused; small ones have room, and the connection lives."""
    with Scene(gpus="gfx942") as s:
        session, address, size = s.attach(), hex(first_mapping(s.app.pid)), 1 << 20
        asked = [request(i, "memory.read", session=session, address=address, size=size) for i in range(30)]
        s.rpc.send_raw(f"[{','.join([*asked, request(30, 'gpu.queues', session=session)])}]\n".encode())
        with s.rpc.sock.makefile("rb") as stream:
            answers = {m["id"]: m for m in json.loads(stream.readline())}
        wrong = [m["error"]["data"]["name"] for m in answers.values() if "error" in m]
        assert len(answers) == 31 and set(wrong) == {"too_large"} and len(json.dumps(answers)) < 34 << 20, wrong
        assert answers[30]["result"]["queues"]
        assert s.rpc.call("memory.read", session=session, address=address, size=size)["data"]


def test_descriptors_run_out_in_front():
    """Whatever fails then fails with an answer; sessions that are open stay open."""
    with Scene(gpus="gfx942") as s:
        session = s.attach(rpc=s.connect())
        front = s.front_pid()
        limit = fds(front) + 40
        resource.prlimit(front, resource.RLIMIT_NOFILE, (limit, limit))
        crowd = []
        refused = 0
        for _ in range(60):
            c = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            c.settimeout(0.3)
            c.connect(str(s.socket))
            crowd.append(c)
        for c in crowd:
            try:
                c.sendall(b'{"jsonrpc":"2.0","id":1,"method":"agent.status"}\n')
                data = c.recv(65536)
                refused += b"limit" in data or not data
            except (TimeoutError, ConnectionError, BrokenPipeError):
                refused += 1
        assert refused, "the limit was not reached"
        rpc = s.clients[0]
        assert rpc.call("gpu.queues", session=session)["queues"]
        # A new worker's channel is a descriptor too.
        reply = rpc.call_raw("process.list", {})
        assert "result" in reply or reply["error"]["data"]["name"] in ("limit", "failed"), reply
        for c in crowd:
            c.close()
        wait_until(lambda: "result" in rpc.call_raw("process.list", {}), "the agent recovers")
        assert s.connect().call("agent.status")
        assert alive(s), s.agentd.err()


def test_not_one_descriptor_left():
    """Even without room for a worker's channel, which takes two, the daemon goes on, in front as in the monitor."""
    # poll() of the monitor takes no more entries than the limit: it has five of them.
    for process, limit in (("front", 3), ("monitor", 5)):
        with Scene(gpus="gfx942") as s:
            rpc = s.connect()
            session = s.attach(rpc=rpc)
            pid = s.front_pid() if process == "front" else s.monitor_pid()
            old = resource.prlimit(pid, resource.RLIMIT_NOFILE)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, old[1]))
            error = rpc.error("process.list")
            assert error.name in ("limit", "failed"), error
            error = rpc.error("session.attach", pid=os.getpid())
            assert error.name in ("limit", "failed", "no_such_process"), error
            assert rpc.call("gpu.queues", session=session)["queues"]
            resource.prlimit(pid, resource.RLIMIT_NOFILE, old)
            rpc.call("process.list")
            assert alive(s), s.agentd.err()
            before = fds(pid)
            for _ in range(3):
                rpc.call("process.list")
            wait_until(lambda: fds(pid) <= before, "descriptors are given back")


def test_the_helper_of_a_list_dies():
    """Killed at whatever moment; the error is one of those that the method may give."""
    with Scene(gpus="gfx942") as s:
        deadline = time.monotonic() + 30
        name = None
        while name is None:
            assert time.monotonic() < deadline, "never hit a worker before it had answered"
            s.rpc.send_raw((request(1, "process.list") + "\n").encode())
            aim = time.monotonic() + 0.1
            while time.monotonic() < aim and not kill_any(s.worker_pids()):
                pass
            message = s.rpc.read_message()
            if "error" in message:
                Rpc.schema.check_error(message["error"], "process.list")
                name = message["error"]["data"]["name"]
        assert name == "failed", name
        assert s.rpc.call("process.list")["processes"]


def test_a_file_in_place_of_the_socket_is_not_removed():
    with Scene(app=None, start_agent=False) as s:
        s.socket.write_text("precious")
        agentd = s.start("agentd", [BIN / "gpu-agentd", "--user", "--socket", s.socket,
                                    "--kfd", s.mount / "kfd", "--kfd-sysfs", s.mount])
        assert agentd.popen.wait(20) == 1
        assert s.socket.read_text() == "precious"
        assert str(s.socket) in agentd.err()


def test_a_parent_that_ignores_its_children():
    """SIG_IGN of SIGCHLD survives exec; workers must be reaped all the same."""
    with Scene(gpus="gfx942", start_agent=False) as s:
        s.agentd = s.start("agentd", [BIN / "gpu-agentd", "--user", "--socket", s.socket, "--kfd", s.mount / "kfd",
                                      "--kfd-sysfs", s.mount],
                           preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        s.agentd.wait_line("err")
        session = s.attach()
        assert s.rpc.call("session.detach", session=session) == {"ended": True}


def test_the_log_takes_no_lines_from_clients():
    with Scene(gpus="gfx942", agentd=("--verbose",)) as s:
        s.rpc.call("agent.hello", client="nice\n<0>forged \x1b[31mred\u009b1m")
        wait_until(lambda: "nice" in s.agentd.err(), "the log line")
        text = s.agentd.err()
        assert "\n<0>forged" not in text and "\x1b" not in text and "\u009b" not in text, text


def test_idle_exit_waits_for_the_last_worker():
    """The idle time may pass while a session is still ending."""
    with Scene(gpus="gfx942", start_agent=False) as s:
        config = s.directory / "user.conf"
        config.touch()
        s.start_agentd("--config", config)
        s.attach()
        # Not from the start on: it would not wait longer than that for the first client either.
        config.write_text("[agent]\nidle_exit = 300ms\n")
        os.kill(s.agentd.pid, signal.SIGHUP)
        wait_until(lambda: "read again" in s.agentd.err(), "reload")
        worker = s.worker_pids()[0]
        os.kill(worker, signal.SIGSTOP)
        s.clients.pop().close()
        front = s.front_pid()
        before = int(status(front)["voluntary_ctxt_switches"])
        # Once for the client, then each time that the idle time has passed.
        wait_until(lambda: int(status(front)["voluntary_ctxt_switches"]) >= before + 4, "more than once")
        assert s.agentd.popen.poll() is None, "it does not exit"
        os.kill(worker, signal.SIGCONT)
        assert s.agentd.popen.wait(20) == 0


def test_children_do_not_share_the_terminal():
    """TIOCSTI types into the terminal of whoever started the daemon, if it is the controlling one."""
    with Scene(gpus="gfx942") as s:
        s.attach()
        sid = os.getsid(s.agentd.pid)
        for pid in (s.front_pid(), s.worker_pids()[0]):
            assert os.getsid(pid) != sid, (pid, sid)


def test_a_broken_configuration_changes_nothing_at_reload():
    need_root()
    with Scene(gpus="gfx942", user_mode=False, app_user=1000) as s:
        config = s.directory / "agentd.conf"
        os.kill(s.agentd.pid, signal.SIGHUP)
        wait_until(lambda: "read again" in s.agentd.err(), "reload")
        config.write_text("[agent]\nuser = root\nsocket_group =\nadmin_group = nogroup\n")
        os.kill(s.agentd.pid, signal.SIGHUP)
        wait_until(lambda: "not changed" in s.agentd.err(), "refused reload")

        def stranger():  # uid and gid 65534: nobody, nogroup
            assert Rpc(s.socket).error("session.attach", pid=s.app.pid).name == "not_permitted"

        as_user(65534, stranger)
        s.attach()


def test_fragments_that_cannot_be_read_are_a_mistake():
    """What is in them, rules for example, must not be gone without a word."""
    need_root()
    script = 'mount -t tmpfs none /etc && mkdir /etc/gpu-agent && %s && exec "$0" --check-config'
    for make, code in (("mkdir /etc/gpu-agent/agentd.conf.d", 0), ("touch /etc/gpu-agent/agentd.conf.d", 1)):
        run = subprocess.run(["unshare", "-m", "sh", "-c", script % make, BIN / "gpu-agentd"], text=True, capture_output=True)
        assert run.returncode == code, run
        assert not code or "/etc/gpu-agent/agentd.conf.d: Not a directory" in run.stderr, run


# ---------------------------------------------------------------------- stress


def looping(s, apps, stop, failures, counts, number):
    rng = random.Random(number)
    try:
        while time.monotonic() < stop:
            try:
                rpc = Rpc(s.socket)
            except OSError:
                failures.append("refused")
                return
            try:
                for _ in range(rng.randrange(1, 4)):
                    app = rng.choice(apps)
                    session = rpc.call("session.attach", pid=app.pid, control=rng.random() < 0.5)["session"]
                    if rng.random() < 0.5:
                        rpc.call("gpu.suspend", session=session, lease_ms=2000)
                    if rng.random() < 0.5:
                        rpc.call("gpu.queues", session=session)
                    if rng.random() < 0.7:
                        rpc.call("session.detach", session=session)
                counts.append(1)
            except RpcError as error:
                if error.name not in ("busy", "session_ended", "no_such_session", "timeout", "limit", "failed"):
                    failures.append(str(error))
            finally:
                rpc.close()
    except Exception as error:  # what the thread has to say is told by the test
        failures.append(repr(error))


def test_many_clients_attach_and_detach_while_workers_die():
    seconds = float(os.environ.get("STRESS_SECONDS", "6"))
    with Scene(gpus="gfx942") as s:
        apps = [s.app, s.start_app("runtime on; queues 4; spin", name="second")]
        s.connect().call("process.list")
        front, monitor = s.front_pid(), s.agentd.pid
        before = wait_settled(lambda: (fds(front), fds(monitor)), "the agent")
        stop = time.monotonic() + seconds
        failures, counts, rng = [], [], random.Random(4)
        threads = [threading.Thread(target=looping, args=(s, apps, stop, failures, counts, i)) for i in range(60)]
        for t in threads:
            t.start()
        kills = 0
        while time.monotonic() < stop:
            workers = s.worker_pids()
            rng.shuffle(workers)
            if rng.random() < 0.7:
                kills += kill_any(workers)
            time.sleep(0.05)
        for t in threads:
            t.join(60)
        assert alive(s), s.agentd.err()[-2000:]
        assert not failures, failures[:5]
        assert counts and kills, (len(counts), kills)
        for app in apps:
            wait_until(lambda app=app: released(s, app), "target released")
        wait_until(lambda: fds(front) <= before[0] and fds(monitor) <= before[1], "no descriptor lost")
        wait_until(lambda: not s.worker_pids(), "workers gone")
        wait_until(lambda: s.clients[0].call("agent.status")["sessions"] == 0, "no session is left")


def test_connections_cut_at_any_point():
    cycles = int(os.environ.get("CUT_CYCLES", "1000"))
    with Scene(gpus="gfx942") as s:
        control = s.connect()
        control.call("process.list")
        front, monitor = s.front_pid(), s.agentd.pid
        before = wait_settled(lambda: (fds(front), fds(monitor)), "the agent")
        rng = random.Random(11)
        attach = request(1, "session.attach", pid=s.app.pid) + "\n"
        texts = [
            attach, attach + request(2, "session.attach", pid=s.app.pid, control=True) + "\n",
            request(1, "process.list") + "\n", request(1, "agent.hello") + "\n",
            "[" + ",".join([attach, request(2, "process.doctor", pid=s.app.pid), request(3, "agent.status")]) + "]\n",
            f"Content-Length: {len(attach)}\r\n\r\n{attach}",
            attach + "".join(request(2, m, session="s%d" % n) + "\n" for n in range(1, 4)
                             for m in ("gpu.queues", "gpu.suspend", "session.detach")),
        ]
        for i in range(cycles):
            c = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            c.connect(str(s.socket))
            c.settimeout(20)
            data = rng.choice(texts).encode()
            if rng.random() < 0.5:
                data = data[:rng.randrange(len(data) + 1)]
            try:
                c.sendall(data)
                how = rng.random()
                if how < 0.3:
                    c.shutdown(socket.SHUT_WR)
                if how < 0.15 or 0.3 < how < 0.4:
                    time.sleep(rng.random() * 0.01)
                if how > 0.97 and data.endswith(b"\n"):
                    c.recv(1)
            except OSError:
                pass
            c.close()
            if i % 50 == 0:
                control.call("agent.status")
        wait_until(lambda: released(s), "target released")
        assert alive(s), s.agentd.err()[-2000:]
        wait_until(lambda: not s.worker_pids(), "workers gone")
        wait_until(lambda: fds(front) <= before[0] and fds(monitor) <= before[1], "no descriptor lost")
        wait_until(lambda: control.call("agent.status")["sessions"] == 0, "no session is left")
