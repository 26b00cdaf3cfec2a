# SPDX-License-Identifier: MIT
"""The installed units, as an administrator and a user of group gpu-debug see them."""
import grp
import subprocess

from vmlib import USER, agent_children, status

SERVICE, SOCKET_UNIT = "gpu-agentd.service", "gpu-agentd.socket"
SOCKET = "/run/gpu-agent/agentd.sock"


def run(*argv, check=True, **kwargs):
    done = subprocess.run(argv, text=True, capture_output=True, timeout=90, stdin=subprocess.DEVNULL, check=False, **kwargs)
    assert not check or done.returncode == 0, (argv, done.returncode, done.stdout, done.stderr)
    return done


def show(name, unit=SERVICE):
    return run("systemctl", "show", "--value", "-p", name, unit).stdout.strip()


def state(unit=SERVICE):
    return show("ActiveState", unit)


def ctl(*argv, user=USER, groups=("gpu-debug",)):
    ids = [grp.getgrnam(g).gr_gid for g in groups]
    return run("/usr/bin/gpu-agentctl", *map(str, argv), check=False, user=user, group=user, extra_groups=ids)


def main_pid():
    return int(show("MainPID"))


def worker_pid():
    return next(p for p in agent_children(main_pid()) if status(p).get("Name") == "gpu-agent-worke")
