#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the daemon costs when nobody uses it."""
import os
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
# Costs are those of the product, not of a sanitizer build.
os.environ["BIN"] = os.environ.get("PRODUCT_BIN", str(HERE.parent.parent / "build/bin"))
sys.path.insert(0, str(HERE.parent / "lib"))
from harness import Scene, children, main, rss_kib, status, test, wait_until  # noqa: E402


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
        def settled():
            """Only spawn, its heir and front are left, and they know that the clients have gone."""
            return len(processes(s)) == 3 and s.rpc.call("agent.status")["connections"] == 1

        round_trip()
        wait_until(settled, "workers leave")
        before = count()
        for _ in range(10):
            round_trip()
        wait_until(settled, "workers leave")
        assert count() == before


if __name__ == "__main__":
    main(__file__)
