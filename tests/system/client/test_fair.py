#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What one user asks for, or begins to ask for, or has mapped, costs others little."""
import contextlib
import ctypes
import mmap
import os
import select
import signal
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import PATIENCE, Scene, as_user, need_root, status, wait_until

OWNER, STORMER, BYSTANDER = 54501, 54502, 54503
PART = 900 << 10
ALL_PARTS = 16 << 20


@contextlib.contextmanager
def scene():
    need_root()
    with Scene(user_mode=False, app_user=OWNER, start_agent=False) as s:
        (s.directory / "agentd.conf").write_text("[agent]\nuser = nobody\nsocket_group =\n")
        s.start_agentd(user_mode=False)
        yield s


def connect(s, uid):
    os.setegid(uid)
    os.seteuid(uid)
    try:
        return s.connect()
    finally:
        os.seteuid(0)
        os.setegid(0)


def inspectors(s):
    """Processes that list for somebody."""
    found = set()
    for pid in s.worker_pids():
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if b"inspect" in f.read().split(b"\0"):
                    found.add(pid)
        except OSError:
            pass
    return found


def answer_to(rpc, number):
    while True:
        message = rpc.read_message()
        if message.get("id") == number:
            assert "result" in message, message
            return message["result"]


def stop_a_list(s, rpc):
    """Have a list made, and stop who makes it; returns the processes and the number of the request."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        rpc.send("process.list")
        found = set()
        while not select.select([rpc.sock], [], [], 0)[0] and time.monotonic() < deadline:
            found = inspectors(s)
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            # One that was stopped after it had answered makes no list any more.
            if found and inspectors(s) == found and all(status(pid).get("State", "Z")[0] == "T" for pid in found) \
                    and not select.select([rpc.sock], [], [], 0.3)[0]:
                return found, rpc.next_id
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        answer_to(rpc, rpc.next_id)
    raise AssertionError("no list is made")


def test_lists_of_one_user_are_made_one_at_a_time():
    """One is made, and all that are asked for meanwhile get the next one; others wait for none of them."""
    with scene() as s:
        clients = [connect(s, STORMER) for _ in range(5)]
        first, number = stop_a_list(s, clients[0])
        try:
            app = s.start_app("runtime on; queues 1; spin", user=OWNER)
            for rpc in clients[1:]:
                for _ in range(10):
                    rpc.send("process.list")
            # The agent has read all of them, as it answers what came later.
            for rpc in clients[1:]:
                rpc.call("session.list")
            assert inspectors(s) == first
            got = connect(s, BYSTANDER).call("process.list")
            assert app.pid in [p["pid"] for p in got["processes"]]
            # Other params are another list.
            assert connect(s, STORMER).call("process.list", mine=True)["processes"] == []
            wait_until(lambda: inspectors(s) == first, "those that are through leave")
        finally:
            for pid in first:
                os.kill(pid, signal.SIGCONT)
        seen = set()
        answers = []
        for rpc in clients[1:]:
            numbers = set()
            while len(numbers) < 10:
                seen |= inspectors(s)
                message = rpc.read_message()
                numbers.add(message["id"])
                answers.append(message["result"])
            assert numbers == set(range(1, 11)), numbers
        assert len(seen - first) <= 1, seen
        assert all(a == answers[0] for a in answers) and len(answers) == 40
        # Who asked when the program was there is told of it, whatever the list before had seen.
        assert app.pid in [p["pid"] for p in answers[0]["processes"]]
        assert "processes" in answer_to(clients[0], number)


def test_who_has_asked_may_leave():
    with scene() as s:
        clients = [connect(s, STORMER) for _ in range(3)]
        first, _ = stop_a_list(s, clients[0])
        for rpc in clients[1:]:
            rpc.send("process.list")
            rpc.call("session.list")
        for rpc in clients[:2]:
            rpc.close()
            s.clients.remove(rpc)
        for pid in first:
            os.kill(pid, signal.SIGCONT)
        assert answer_to(clients[2], 1)["processes"]
        assert connect(s, STORMER).call("process.list")["processes"]


def test_parts_of_requests_have_a_limit_for_each_user():
    with scene() as s:
        most = ALL_PARTS // PART
        held, refused = [], 0
        for _ in range(2 * most):
            rpc = connect(s, STORMER)
            try:
                rpc.send_raw(b'{"' + b"x" * PART)
                rpc.sock.settimeout(0.2)
                answer = rpc.read_message()
                assert answer["error"]["data"]["name"] == "limit", answer
                refused += 1
            except TimeoutError:
                held.append(rpc)
            except (EOFError, OSError):
                refused += 1
        print(f"  {len(held)} of {2 * most} requests of {PART} bytes are kept in part, {refused} were refused")
        assert most // 2 <= len(held) <= most and refused >= most, (len(held), refused)
        # Small requests of the same user, and large ones of others, have their room.
        assert connect(s, STORMER).call("agent.hello")["uid"] == STORMER
        other = connect(s, BYSTANDER)
        error = other.error("agent.hello", client="x" * PART)
        assert error.name == "invalid_params", error
        # A part that is finished, or whose client has gone, makes room.
        for rpc in held:
            rpc.sock.settimeout(PATIENCE)
            rpc.close()
            s.clients.remove(rpc)
        late = connect(s, STORMER)
        wait_until(lambda: late.error("agent.hello", client="x" * PART).name == "invalid_params", "there is room")


def map_much(areas, dumpable):
    """A process with so many mappings, which ends with this one; returns its pid when it has them."""
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            libc.prctl(1, signal.SIGKILL)
            libc.mmap.restype = ctypes.c_void_p
            base = libc.mmap(None, ctypes.c_size_t(areas * mmap.PAGESIZE), 1, 0x22, -1, 0)
            for i in range(1, areas, 2):
                libc.mprotect(ctypes.c_void_p(base + i * mmap.PAGESIZE), ctypes.c_size_t(mmap.PAGESIZE), 0)
            os.setresgid(STORMER, STORMER, STORMER)
            os.setresuid(STORMER, STORMER, STORMER)
            libc.prctl(1, signal.SIGKILL)
            libc.prctl(4, int(dumpable))
            os.write(tell, b"x")
            signal.pause()
        finally:
            os._exit(1)
    os.close(tell)
    assert os.read(ready, 1) == b"x", "it could not map so much"
    os.close(ready)
    return child


def read_bytes(pid):
    with open(f"/proc/{pid}/io") as f:
        return int(next(line for line in f if line.startswith("rchar")).split()[1])


def test_what_strangers_have_mapped_is_read_once_and_in_part():
    with scene() as s:
        children = [map_much(60000, i % 2) for i in range(4)]
        try:
            root, costs = s.connect(), []
            for _ in range(3):
                begun = time.monotonic()
                got = root.call("process.list")
                costs.append(time.monotonic() - begun)
                assert s.app.pid in [p["pid"] for p in got["processes"]]
                assert got["complete"] is False and "4 of other users" in got["missing"][0], got
            print("  " + ", ".join(f"{c * 1000:.0f} ms" for c in costs))

            def stormer():
                # Of one's own processes all is read.
                mine = s.connect().call("process.list", mine=True)
                assert "complete" not in mine and mine["processes"] == [], mine

            as_user(STORMER, stormer)
            # Who may not look into them is not told.
            assert "complete" not in connect(s, BYSTANDER).call("process.list")
        finally:
            for child in children:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
        assert "complete" not in root.call("process.list")


def test_rules_say_whom_they_have_not_seen():
    """Once for each, whatever makes them look again."""
    need_root()
    with Scene(user_mode=False, app_user=OWNER, start_agent=False) as s:
        (s.directory / "agentd.conf").write_text("[agent]\nuser = nobody\nsocket_group =\n[rule all]\ndevice = amd\n")
        child = map_much(60000, True)
        words = f"process {child} has mapped so much that it was not read to the end: if it uses a GPU, no rule watches it"
        try:
            s.start_agentd(user_mode=False)
            wait_until(lambda: words in s.agentd.err(), "it is told")
            for _ in range(2):
                app = s.start_app("runtime on; spin", user=OWNER)
                wait_until(lambda pid=app.pid: f"watches process {pid}" in s.agentd.err(), "another look")
            assert s.agentd.err().count(words) == 1, s.agentd.err()
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
