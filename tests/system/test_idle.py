#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the daemon costs when nobody uses it."""
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import BIN, Scene, Skip, children, main, rss_kib, status, test  # noqa: E402


def processes(s):
    return [s.agentd.pid, *children(s.agentd.pid)]


def switches(pids):
    return {p: int(status(p)["voluntary_ctxt_switches"]) for p in pids}


@test
def no_wakeups():
    """Neither with nobody connected nor with an idle session."""
    with Scene() as s:
        for _ in range(2):
            time.sleep(0.3)
            before = switches(processes(s))
            time.sleep(2)
            assert switches(processes(s)) == before
            s.attach()


@test
def memory_below_8_mib():
    if "asan" in str(BIN):
        raise Skip("sanitizer build; bench/run measures the product")
    with Scene(app=None) as s:
        s.rpc.call("agent.hello")
        total = sum(map(rss_kib, processes(s)))
        assert total < 8 * 1024, total


@test
def descriptors_do_not_leak():
    with Scene() as s:
        def count():
            return [len(os.listdir(f"/proc/{p}/fd")) for p in processes(s)]

        def round_trip():
            client = s.connect()
            session = client.call("session.attach", pid=s.app.pid)["session"]
            client.call("process.list")
            client.call("session.detach", session=session)
            s.clients.remove(client)
            client.close()
        s.rpc.call("agent.hello")
        round_trip()
        before = count()
        for _ in range(10):
            round_trip()
        time.sleep(0.1)
        assert count() == before


if __name__ == "__main__":
    main(__file__)
