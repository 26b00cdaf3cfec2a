#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Who goes first when memory runs out: a worker, before its target and before the processes that undo what it did."""
import os
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import Scene


def score(pid):
    with open(f"/proc/{pid}/oom_score_adj") as f:
        return int(f.read())


def test_workers_go_first():
    with Scene() as s:
        s.attach()
        own = score(os.getpid())
        assert [score(pid) for pid in s.worker_pids()] == [500]
        assert score(s.agentd.pid) == own and score(s.app.pid) == own
        assert s.rpc.call("process.list")["processes"], "what lists processes begins like that as well"
