#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the daemon costs when nobody uses it."""
import contextlib
import os
import pathlib
import socket
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
import harness
from harness import ROOT, Scene, agent_children, children_named, rss_kib, status, wait_settled, wait_until, wakeups


@pytest.fixture(autouse=True)
def product(monkeypatch):
    """Costs are those of the product, not of a sanitizer build."""
    monkeypatch.setattr(harness, "BIN", pathlib.Path(os.environ.get("PRODUCT_BIN", ROOT / "build/bin")))


def processes(s):
    return [s.agentd.pid, *agent_children(s.agentd.pid)]


RULES = "".join(f"[rule r{i}]\nexe = /nowhere/{i}/*\nkeep = light\nhook = /usr/bin/true\n" for i in range(64))


def agents(**kwargs):
    """One that is used by hand, and one with as many rules as there may be, of which none matches."""
    with Scene(**kwargs) as s:
        yield s
    with Scene(start_agent=False, **kwargs) as s:
        config = s.directory / "rules.conf"
        config.write_text(RULES)
        s.start_agentd("--config", config)
        assert len(s.rpc.call("agent.status")["rules"]) == 64
        yield s


def is_settled(s):
    """The manager, the monitor, its heir, the judge, the rules process and front are there, and no look for processes is under way."""
    return sorted(status(p).get("Name", "") for p in processes(s)) == ["gpu-agent-front", "gpu-agent-heir", "gpu-agent-judge",
                                                                       "gpu-agent-monit", "gpu-agent-rules", "gpu-agentd"]


def test_no_wakeups():
    """Neither with nobody connected nor with an idle session."""
    for s in agents():
        wait_until(lambda: is_settled(s), "rules have looked")
        for _ in range(2):
            before = wait_settled(lambda: wakeups(processes(s)), "the agent", still=1)
            time.sleep(2)
            assert wakeups(processes(s)) == before
            s.attach()


def pss_kib(pid):
    """What it takes of memory, with its part of pages that it shares with others."""
    rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))


def test_memory_below_4_5_mib():
    for s in agents(app=None):
        s.rpc.call("agent.hello")
        wait_until(lambda: is_settled(s), "rules have looked")
        total = sum(map(pss_kib, processes(s)))
        assert total < 4.5 * 1024, total
        print(f"  {total} KiB")


def test_descriptors_do_not_leak():
    with Scene() as s:
        def count():
            with contextlib.suppress(FileNotFoundError):  # One has just ended.
                return descriptors()
            return None

        def descriptors():
            return {p: len(os.listdir(f"/proc/{p}/fd")) for p in processes(s)}

        def round_trip():
            client = s.connect()
            session = client.call("session.attach", pid=s.app.pid)["session"]
            client.call("process.list")
            client.call("session.detach", session=session)
            s.clients.remove(client)
            client.close()

        def settled():
            """Only the manager, the monitor, its heir, the judge, the rules process and front are left, and they know it."""
            return len(processes(s)) == 6 and s.rpc.call("agent.status")["connections"] == 1

        round_trip()
        wait_until(settled, "workers leave")
        before = wait_settled(count, "the agent")
        for _ in range(10):
            round_trip()
        wait_until(settled, "workers leave")
        # That a worker has gone is told to front a moment later.
        wait_until(lambda: count() == before, f"descriptors are {before} again")


def test_ten_thousand_connections_leave_nothing():
    """In the judge, which knows each of them for as long as it is there, in front, and in the monitor."""
    with Scene(app=None) as s:
        def connect(n):
            for _ in range(n):
                with socket.socket(socket.AF_UNIX) as client:
                    client.connect(str(s.socket))
                    client.sendall(b'{"jsonrpc":"2.0","id":1,"method":"agent.hello"}\n')
                    assert client.recv(65536)

        (judge,) = children_named(s.agentd.pid, "gpu-agent-judge")

        def held():
            own = (s.agentd.pid, s.monitor_pid(), s.front_pid(), judge)
            return {p: (len(os.listdir(f"/proc/{p}/fd")), rss_kib(p)) for p in own}

        connect(2000)
        before = wait_settled(held, "the agent")
        connect(10000)
        after = wait_settled(held, "the agent")
        for pid, (fds, kib) in after.items():
            assert fds == before[pid][0] and kib <= before[pid][1] + 64, (before, after)
        print(f"  {before[s.agentd.pid]} -> {after[s.agentd.pid]}")
