#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A job of a real Slurm with several nodes on this machine: the odd rank is named, and a node that is gone is told as such.

Needs Debian's slurmctld, slurmd, slurm-client and munge.  JOB_RANKS=64 makes the larger job as large as that, on 16 nodes, and
wants the answer within ten seconds: for a machine that does nothing else.
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
import tempfile
import time
from unittest import SkipTest

if __name__ == "__main__":
    # Processes of other tests are none of the machine that is looked at as a whole.
    alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--"] if os.geteuid() == 0 else []
    os.execvp((alone + ["pytest-3"])[0], [*alone, "pytest-3", "--lines", *sys.argv])

from harness import BIN, ROOT, Scene, need_root, wait_until
from test_job import document, missing

SCENES = ROOT / "sim/scenes/amd"
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol", "squeue", "sinfo")
NODES, RANKS, ODD = 4, 8, (5,)
# Of the larger one, with four ranks a node.
LARGE = int(os.environ.get("JOB_RANKS", "16"))
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
    def __init__(self, place, nodes):
        self.place, self.started, self.nodes = place, [], {}
        for name in ("state", "spool"):
            (place / name).mkdir()
        first = free_port() % 20000 + 20000
        (place / "plugstack.conf").touch()
        conf = place / "slurm.conf"
        conf.write_text(CONF.format(host=socket.gethostname().partition(".")[0], place=place, port=free_port(), nodes=nodes, first=first,
                                    last=first + nodes - 1))
        key = place / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        self.env = {**os.environ, "SLURM_CONF": str(conf)}
        self.start("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={place}/munge.sock",
                   f"--pid-file={place}/munge.pid", f"--log-file={place}/munge.log", f"--seed-file={place}/munge.seed")
        wait_until((place / "munge.sock").exists, "munged")
        self.start("slurmctld", "-D", "-c", "-f", conf)
        for n in range(1, nodes + 1):
            (place / f"spool/n{n}").mkdir()
            self.start_node(f"n{n}")
        wait_until(lambda: self.ask("sinfo", "-h", "-N", "-o", "%T").split() == ["idle"] * nodes, "nodes", 40)

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
def cluster(nodes=NODES):
    need_root()
    lacks = [p for p in PROGRAMS if not shutil.which(p)]
    if lacks:
        raise SkipTest(f"not installed: {', '.join(lacks)}")
    with Scene(app=None, gpus="gfx90a,gfx90a") as s:
        # munged wants a way to its files that nobody else can change, and the directory of a test is the user's.
        # Programs of tests run side by side, each as the first process of its machine.
        place = pathlib.Path(tempfile.mkdtemp(prefix="gpu-agent-test-slurm-", dir="/run"))
        place.chmod(0o755)
        slurm = None
        try:
            slurm = Slurm(place, nodes)
            slurm.env["PATH"] = f"{BIN}:{slurm.env['PATH']}"
            slurm.env["GPU_AGENT_SOCKET"] = str(s.socket)
            yield s, slurm
        finally:
            if slurm:
                slurm.stop()
            shutil.rmtree(place, ignore_errors=True)


def all_have_waves(s):
    """Before that, each process may be the odd one."""
    return all(any(q["waves"] for q in p["queues"]) for p in s.state()["processes"])


def run_job(s, slurm, nodes=NODES, ranks=RANKS, odd=ODD):
    """Ranks on all nodes, of which some do not wait with the others; its number."""
    scenes = scenes_of(s)
    script = s.directory / "job.sh"
    program = f"exec {BIN}/gpu-agent-simapp --kfd {s.mount}/kfd --scene"
    script.write_text(f"#!/bin/sh\nsrun -N{nodes} -n{ranks} --overcommit sh -c 'case $SLURM_PROCID in {'|'.join(map(str, odd))}) "
                      f"{program} {scenes[1]};; esac; {program} {scenes[0]}'\n")
    script.chmod(0o755)
    number = re.search(r"\d+", slurm.ask("sbatch", f"-N{nodes}", f"-n{nodes}", f"--output={s.directory}/job.out", str(script))).group()
    wait_until(lambda: f"{number}.0" in slurm.ask("squeue", "-h", "-s", "-j", number, "-o", "%i"), "the step", 40)

    def all_ranks():
        found = json.loads(s.ctl("list", "-j").stdout).get("processes", [])
        return len(found) >= ranks and all(p.get("queues") for p in found) and all_have_waves(s)
    wait_until(all_ranks, "the ranks", 40 + ranks)
    return number


def ask(slurm, number, *argv, deadline="20s"):
    return subprocess.run([BIN / "gpu-agentctl", "job", "--slurm", number, "--deadline", deadline, "-j", *argv], env=slurm.env, text=True,
                          capture_output=True, timeout=120, stdin=subprocess.DEVNULL)


def test_job_of_slurm():
    with cluster() as (s, slurm):
        number = run_job(s, slurm)
        found = document(ask(slurm, number))
        assert [r["name"] for r in found["ranks"]] == [f"rank{n}" for n in range(RANKS)], (found["ranks"], found["missing"])
        assert [r["name"] for r in found["ranks"] if "odd" in r] == [f"rank{ODD[0]}"], found["ranks"]

        # A node whose daemon is gone does not answer; the others do, and nothing is waited for.
        slurm.nodes["n1"].kill()
        slurm.nodes["n1"].wait()
        begun = time.monotonic()
        found = document(ask(slurm, number, deadline="15s"), PARTIAL)
        # Slurm itself waits longer for a node that is gone; twice the deadline is for a machine that does other things as well.
        assert time.monotonic() - begun < 30
        assert len(found["ranks"]) < RANKS and [r["name"] for r in found["ranks"] if "odd" in r] == [f"rank{ODD[0]}"], found["ranks"]
        assert missing(found, "not seen: n1: ") and missing(found, f" of {RANKS} ranks were seen; rank")
        # The job runs on.
        assert f"{number}.0" in slurm.ask("squeue", "-h", "-s", "-j", number, "-o", "%i")

        run = ask(slurm, "999999")
        assert run.returncode == FAILURE and not run.stderr.startswith("{"), run


# No rank of these takes packets: a job of many is light, and each is seen as it stands.
STANDS = """name train
gpus gfx90a gfx90a
runtime ttmp
queues 1
load {objects}/train-gfx90a.co
dispatch 0 {kernel} 24576 256
waves 0 spin 384 {kernel}+{offset} loop=0
spin
"""


def scenes_of(s):
    # Else some take their packet before its waves are there, and some never.
    s.control("progress off")
    for name, kernel, offset in (("waits", "all_reduce", "0xc4"), ("odd", "gemm", "0x70")):
        (s.directory / f"{name}.scene").write_text(STANDS.format(objects=SCENES, kernel=kernel, offset=offset))
    return [s.directory / "waits.scene", s.directory / "odd.scene"]


def agent_of_its_own(s, slurm, node):
    """That node asks another agent than the others, which is killed."""
    own, socket_path = s.socket, s.directory / "killed.sock"
    s.socket = socket_path
    try:
        killed = s.start_agentd()
    finally:
        s.socket = own
    killed.stop(signal.SIGKILL)
    programs = s.directory / "programs"
    programs.mkdir()
    program = programs / "gpu-agentctl"
    program.write_text(f"#!/bin/sh\n[ \"$SLURMD_NODENAME\" != {node} ] || export GPU_AGENT_SOCKET={socket_path}\n"
                       f"exec {BIN}/gpu-agentctl \"$@\"\n")
    program.chmod(0o755)
    slurm.env["PATH"] = f"{programs}:{slurm.env['PATH']}"


def test_two_ranks_elsewhere_a_dead_agent_and_a_dead_node():
    """What was not seen is told with its reason, and does not hide the two."""
    nodes, odd = LARGE // 4, (LARGE // 2 + 1, LARGE - 2)
    with cluster(nodes) as (s, slurm):
        number = run_job(s, slurm, nodes, LARGE, odd)
        agent_of_its_own(s, slurm, "n2")
        slurm.nodes["n1"].kill()
        slurm.nodes["n1"].wait()
        page = s.directory / "page.html"
        begun = time.monotonic()
        run = ask(slurm, number, "--report", page, deadline="9s" if "JOB_RANKS" in os.environ else "40s")
        took = time.monotonic() - begun
        print(f"{LARGE} ranks on {nodes} nodes: {took:.2f} s")
        found = document(run, PARTIAL)
        lost = {n for n in range(LARGE) if f"rank{n}" not in [r["name"] for r in found["ranks"]]}
        assert lost == set(range(8)), (lost, found["missing"])
        assert [r["name"] for r in found["ranks"] if "odd" in r] == [f"rank{n}" for n in odd], found["ranks"]
        assert missing(found, "not seen: n1: ")
        assert "killed.sock" in missing(found, "not seen: n2: ")
        assert missing(found, f"{LARGE - 8} of {LARGE} ranks were seen; ranks 0-7 were not")
        # Both are named before all else.
        top = re.sub("<[^>]*>", "", page.read_text().partition("<h1>")[2].partition("<dl>")[0])
        assert re.match(rf"ODD rank{odd[0]} .*\n+ODD rank{odd[1]} ", top), top
        # Twice the time is for a machine that does other things as well.
        assert took < (10 if "JOB_RANKS" in os.environ else 80), took
        assert f"{number}.0" in slurm.ask("squeue", "-h", "-s", "-j", number, "-o", "%i"), "the job runs on"
