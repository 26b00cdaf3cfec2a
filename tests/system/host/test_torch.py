#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A job of PyTorch that hangs: two ranks in a collective operation of gloo, on the CPU, beside a simulated GPU that both
have open. One command for each rank names its line of Python and what waits; one more names the rank that is late."""
import json
import os
import subprocess
import sys
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import Scene, wait_until

PYTHON = "/usr/bin/python3"
JOB = """import os, sys, time
import torch
import torch.distributed as dist

def load_batch():
    time.sleep(100000)

def train_step(step):
    if dist.get_rank() == 1 and step == 3:
        load_batch()
    dist.all_reduce(torch.ones(4))

if __name__ == "__main__":
    kfd = os.open(sys.argv[2], os.O_RDWR)
    dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=int(os.environ["RANK"]), world_size=2)
    for step in range(100):
        train_step(step)
        print(os.getpid(), flush=True)
"""


def need_torch():
    found = subprocess.run([PYTHON, "-c", "import torch.distributed as d, sys; sys.exit(not d.is_available())"],
                           stderr=subprocess.DEVNULL, timeout=120)
    if found.returncode:
        raise SkipTest(f"no PyTorch with torch.distributed for {PYTHON}: apt-get install python3-torch (about 600 MB)")


def start_ranks(s, tmp_path):
    source = tmp_path / "hang.py"
    source.write_text(JOB)
    ranks = []
    for rank in range(2):
        env = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "nightly",
               "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        ranks.append(s.start(f"rank{rank}", [PYTHON, source, tmp_path / "store", s.mount / "kfd"], env=env))
    return ranks


def places(group):
    return [f"{f['file'].rpartition('/')[2]}:{f.get('line')} {f['function']}" for f in group["frames"]]


def main_group(doc):
    return next(g for g in doc["host"]["groups"] if doc["process"]["pid"] in g["tids"])


def test_hung_job_is_named(tmp_path):
    need_torch()
    with Scene(app=None) as s:
        ranks = start_ranks(s, tmp_path)
        for process in ranks:
            process.wait_line()
        documents, files = [], []

        def both_hang():
            documents.clear()
            for rank, process in enumerate(ranks):
                done = s.ctl("snapshot", process.pid, "--host", "-j")
                assert done.returncode in (0, 8), done
                documents.append(json.loads(done.stdout))
                files.append(tmp_path / f"rank{rank}.json")
                files[-1].write_text(done.stdout)
            return all(main_group(d)["frames"] for d in documents) and "load_batch" in places(main_group(documents[1]))[0]

        wait_until(both_hang, "rank 1 does not come")
        waits, late = (main_group(d) for d in documents)
        # Both halves are there: the process has the simulated GPU open, and no queue on it.
        assert all(d["process"]["vendor"] == "amd" and d["queues"] == [] for d in documents), documents
        assert [d["host"]["rank"]["rank"] for d in documents] == [0, 1] and documents[0]["host"]["rank"]["world_size"] == 2
        assert waits["role"] == "collective" and waits["state"] == "blocked", waits
        assert "hang.py:11 train_step" in places(waits), places(waits)
        assert any(p.endswith(" all_reduce") for p in places(waits)), places(waits)
        assert places(late)[:2] == ["hang.py:6 load_batch", "hang.py:10 train_step"], places(late)
        print(f"  rank 0: {len(documents[0]['host']['groups'])} groups of {documents[0]['host']['threads']} threads in "
              f"{documents[0]['host']['duration_us'] / 1000:.1f} ms")
        text = " ".join(s.ctl("snapshot", ranks[0].pid, "--host").stdout.split())
        assert "blocked in futex, collective" in text and "all_reduce" in text, text
        assert "rank 0 of 2" in s.ctl("stacks", ranks[0].pid).stdout
        text = " ".join(s.ctl("merge", *files[-2:]).stdout.split())
        assert "ODD rank1" in text and "hang.py:6 load_batch" in text, text
