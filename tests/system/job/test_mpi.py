#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A job that mpirun has started: each rank has the name that Open MPI gave it, and the odd ones are named.

Needs Debian's openmpi-bin.  JOB_RANKS=64 makes the job as large as that.
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
import time

from harness import BIN, Scene, need_root, wait_until
from test_job import document, missing
from test_slurm import all_have_waves, scenes_of

RANKS, PARTIAL = int(os.environ.get("JOB_RANKS", "8")), 8
ODD = (2, RANKS - 2)


def odd_ones(found):
    return "; ".join(f"{r['name']}: {r['odd']}" for r in found["ranks"] if "odd" in r), found["missing"]


def test_job_of_mpirun():
    need_root()
    if not shutil.which("mpirun"):
        raise SkipTest("not installed: mpirun")
    with Scene(app=None, gpus="gfx90a,gfx90a") as s:
        waits, odd = scenes_of(s)
        program = f"exec {BIN}/gpu-agent-simapp --kfd {s.mount}/kfd --scene"
        # orted would listen on all addresses.
        s.start("mpirun", ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "oob_tcp_if_include", "lo", "-np", RANKS,
                           "sh", "-c", f"case $OMPI_COMM_WORLD_RANK in {ODD[0]}|{ODD[1]}) {program} {odd};; esac; {program} {waits}"],
                env={"OMPI_MCA_btl": "self,vader"})

        def all_ranks():
            found = json.loads(s.ctl("list", "-j").stdout)["processes"]
            return found if len(found) == RANKS and all(p.get("queues") for p in found) and all_have_waves(s) else None
        processes = wait_until(all_ranks, "ranks", 40 + RANKS)
        for whom in (("--all",), ("--pids", ",".join(str(p["pid"]) for p in processes))):
            found = document(s.ctl("job", *whom, "--deadline", "40s", "-j"))
            # Their order is that in which they have answered, or of their names.
            assert sorted(r["name"] for r in found["ranks"]) == sorted(f"rank{n}" for n in range(RANKS)), found["missing"]
            assert {r["name"] for r in found["ranks"] if "odd" in r} == {f"rank{n}" for n in ODD}, odd_ones(found)
        # One that is not asked is missing: the others know how many there are.  One that is gone is missing as well, with the reason.
        begun = time.monotonic()
        found = document(s.ctl("job", "--pids", ",".join(str(p["pid"]) for p in processes[1:]) + ",4194303", "-j"), PARTIAL)
        print(f"{RANKS} ranks: {time.monotonic() - begun:.2f} s")
        assert missing(found, f"{RANKS - 1} of {RANKS} ranks were seen; rank") and missing(found, "not seen: process 4194303 of ")
        names = [r["name"] for r in found["ranks"]]
        assert {r["name"] for r in found["ranks"] if "odd" in r} == {f"rank{n}" for n in ODD} & {*names}, odd_ones(found)
