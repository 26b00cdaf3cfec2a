#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A job of a real Slurm with several nodes on this machine: the odd rank is named, and a node that is gone is told as such.

Needs Debian's slurmctld, slurmd, slurm-client and munge.
"""
import contextlib
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from unittest import SkipTest

if __name__ == "__main__":
    # Processes of other tests are none of the machine that is looked at as a whole.
    alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--"] if os.geteuid() == 0 else []
    os.execvp((alone + ["pytest-3"])[0], [*alone, "pytest-3", "--lines", *sys.argv])

from harness import BIN, Scene, need_root, wait_until
from test_job import document, missing

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol", "squeue", "sinfo")
NODES, RANKS, ODD = 4, 8, 5
FAILURE, PARTIAL = 1, 8
# CommunicationParameters keeps the daemons off other addresses; SlurmdTimeout keeps a killed one from having its job queued again.
CONF = """\
ClusterName=t
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={place}/munge.sock
CryptoType=crypto/munge
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool/%n
SlurmctldPidFile={place}/ctld.pid
SlurmdPidFile={place}/slurmd-%n.pid
SlurmctldPort={port}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SlurmctldLogFile={place}/ctld.log
SlurmdLogFile={place}/slurmd-%n.log
ReturnToService=2
SlurmdParameters=config_overrides
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdTimeout=300
UnkillableStepTimeout=5
PlugStackConfig={place}/plugstack.conf
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=8 State=UNKNOWN
PartitionName=p Nodes=ALL Default=YES OverSubscribe=FORCE:8 State=UP
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Slurm:
    def __init__(self, place):
        self.place, self.started, self.nodes = place, [], {}
        for name in ("state", "spool"):
            (place / name).mkdir()
        first = free_port() % 20000 + 20000
        (place / "plugstack.conf").touch()
        conf = place / "slurm.conf"
        conf.write_text(CONF.format(host=socket.gethostname().partition(".")[0], place=place, port=free_port(), nodes=NODES, first=first,
                                    last=first + NODES - 1))
        key = place / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        self.env = {**os.environ, "SLURM_CONF": str(conf)}
        self.start("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={place}/munge.sock",
                   f"--pid-file={place}/munge.pid", f"--log-file={place}/munge.log", f"--seed-file={place}/munge.seed")
        wait_until((place / "munge.sock").exists, "munged")
        self.start("slurmctld", "-D", "-c", "-f", conf)
        for n in range(1, NODES + 1):
            (place / f"spool/n{n}").mkdir()
            self.start_node(f"n{n}")
        wait_until(lambda: self.ask("sinfo", "-h", "-N", "-o", "%T").split() == ["idle"] * NODES, "nodes", 40)

    def start(self, *argv):
        self.started.append(subprocess.Popen([str(a) for a in argv], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                             stderr=subprocess.DEVNULL))
        return self.started[-1]

    def start_node(self, name):
        self.nodes[name] = self.start("slurmd", "-D", "-f", self.place / "slurm.conf", "-N", name)

    def ask(self, *argv):
        return subprocess.run(argv, env=self.env, text=True, capture_output=True, timeout=60, stdin=subprocess.DEVNULL).stdout

    def stop(self):
        # The steps of a node outlive its daemon, and only that ends them.
        for name in [name for name, process in self.nodes.items() if process.poll() is not None]:
            self.start_node(name)
        self.ask("scancel", "-u", "root")
        with contextlib.suppress(AssertionError):
            wait_until(lambda: not self.ask("squeue", "-h").strip(), "the end of jobs", 10)
        for process in reversed(self.started):
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self.started:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def cluster():
    need_root()
    lacks = [p for p in PROGRAMS if not shutil.which(p)]
    if lacks:
        raise SkipTest(f"not installed: {', '.join(lacks)}")
    with Scene(app=None, gpus="gfx90a,gfx90a") as s:
        # munged wants a way to its files that nobody else can change, and the directory of a test is the user's.
        place = pathlib.Path("/run") / f"gpu-agent-test-slurm-{os.getpid()}"
        place.mkdir(mode=0o755)
        slurm = None
        try:
            slurm = Slurm(place)
            slurm.env["PATH"] = f"{BIN}:{slurm.env['PATH']}"
            slurm.env["GPU_AGENT_SOCKET"] = str(s.socket)
            yield s, slurm
        finally:
            if slurm:
                slurm.stop()
            shutil.rmtree(place, ignore_errors=True)


def run_job(s, slurm):
    """Ranks on all nodes, of which one does not wait with the others; its number."""
    script = s.directory / "job.sh"
    program = f"exec {BIN}/gpu-agent-simapp --kfd {s.mount}/kfd --scene"
    script.write_text(f"#!/bin/sh\nsrun -N{NODES} -n{RANKS} sh -c 'if [ $SLURM_PROCID = {ODD} ]; then {program} progress; "
                      f"else {program} hang; fi'\n")
    script.chmod(0o755)
    number = re.search(r"\d+", slurm.ask("sbatch", f"-N{NODES}", f"-n{RANKS}", f"--output={s.directory}/job.out", str(script))).group()
    wait_until(lambda: f"{number}.0" in slurm.ask("squeue", "-h", "-s", "-j", number, "-o", "%i"), "the step", 40)
    wait_until(lambda: len(json.loads(s.ctl("list", "-j").stdout)["processes"]) >= RANKS, "the ranks", 40)
    return number


def ask(slurm, number, *argv, deadline="20s"):
    return subprocess.run([BIN / "gpu-agentctl", "job", "--slurm", number, "--deadline", deadline, "-j", *argv], env=slurm.env, text=True,
                          capture_output=True, timeout=120, stdin=subprocess.DEVNULL)


def test_job_of_slurm():
    with cluster() as (s, slurm):
        number = run_job(s, slurm)
        found = document(ask(slurm, number))
        assert [r["name"] for r in found["ranks"]] == [f"rank{n}" for n in range(RANKS)], (found["ranks"], found["missing"])
        assert [r["name"] for r in found["ranks"] if "odd" in r] == [f"rank{ODD}"], found["ranks"]

        # A node whose daemon is gone does not answer; the others do, and nothing is waited for.
        slurm.nodes["n1"].kill()
        slurm.nodes["n1"].wait()
        begun = time.monotonic()
        found = document(ask(slurm, number, deadline="15s"), PARTIAL)
        # Slurm itself waits longer for a node that is gone; twice the deadline is for a machine that does other things as well.
        assert time.monotonic() - begun < 30
        assert len(found["ranks"]) < RANKS and [r["name"] for r in found["ranks"] if "odd" in r] == [f"rank{ODD}"], found["ranks"]
        assert missing(found, "not seen: n1: ") and missing(found, f" of {RANKS} ranks were seen; rank")
        # The job runs on.
        assert f"{number}.0" in slurm.ask("squeue", "-h", "-s", "-j", number, "-o", "%i")

        run = ask(slurm, "999999")
        assert run.returncode == FAILURE and not run.stderr.startswith("{"), run
