#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A job that mpirun has started: each rank has the name that Open MPI gave it, and the odd one is named.

Needs Debian's openmpi-bin.
"""
import os
import shutil
import sys
from unittest import SkipTest

if __name__ == "__main__":
    # Processes of other tests are none of the machine that is looked at as a whole.
    alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--"] if os.geteuid() == 0 else []
    os.execvp((alone + ["pytest-3"])[0], [*alone, "pytest-3", "--lines", *sys.argv])

import json

from harness import BIN, Scene, need_root, wait_until
from test_job import document, missing

RANKS, ODD, PARTIAL = 4, 2, 8


def test_job_of_mpirun():
    need_root()
    if not shutil.which("mpirun"):
        raise SkipTest("not installed: mpirun")
    with Scene(app=None, gpus="gfx90a,gfx90a") as s:
        program = f"exec {BIN}/gpu-agent-simapp --kfd {s.mount}/kfd --scene"
        # orted would listen on all addresses.
        s.start("mpirun", ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "oob_tcp_if_include", "lo", "-np", RANKS,
                           "sh", "-c", f"if [ $OMPI_COMM_WORLD_RANK = {ODD} ]; then {program} progress; else {program} hang; fi"],
                env={"OMPI_MCA_btl": "self,vader"})

        def all_ranks():
            found = json.loads(s.ctl("list", "-j").stdout)["processes"]
            # Before it has set up its queues, each may be the odd one.
            return found if len(found) == RANKS and all(p.get("queues") for p in found) else None
        processes = wait_until(all_ranks, "ranks", 40)
        for whom in (("--all",), ("--pids", ",".join(str(p["pid"]) for p in processes))):
            found = document(s.ctl("job", *whom, "-j"))
            # Their order is that in which they have answered, or of their names.
            assert sorted(r["name"] for r in found["ranks"]) == [f"rank{n}" for n in range(RANKS)], found["ranks"]
            assert f"rank{ODD}" in [r["name"] for r in found["ranks"] if "odd" in r], [(r["name"], r.get("odd")) for r in found["ranks"]]
        # One that is not asked is missing: the others know how many there are.
        found = document(s.ctl("job", "--pids", ",".join(str(p["pid"]) for p in processes[1:]), "-j"), PARTIAL)
        assert missing(found, f"{RANKS - 1} of {RANKS} ranks were seen; rank")
