#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a CUDA worker that runs somebody else's code can do with sockets: reach its target, and nobody else."""
import errno
import os
import re
import signal
import subprocess
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import stuckfiles
from harness import BIN, PATIENCE, children, need_root, status, wait_until

PROBE, BROKER = BIN.parent / "tests/connect_probe", BIN / "gpu-agent-connect"
PATHS = {"bus", "manager", "path"}
NAMES = {"abstract", "other_label", "suffix", "other_session", "cut", "padded"}
OTHERS = PATHS | NAMES
# What NVIDIA's library does with a GPU, and cannot do without.
LIBRARY = {"engine", "engine_again", "watched", "memory", "own_memory", "datagrams", "internet"}
UNLISTED = {"getsid", "getsid_again", "ptrace", "unshare"}
NETWORK = {"inet6", "netlink", "packet"}


def answers(*argv):
    """[(attempt, errno)] in their order, and what was logged."""
    need_root()
    run = subprocess.run([PROBE, *argv], text=True, capture_output=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
    assert run.returncode == 0, (argv, run)
    return [(name, int(error)) for name, error in (line.split() for line in run.stdout.splitlines())], run.stderr


def test_what_is_tried_succeeds_where_nothing_forbids_it():
    """The control: where this fails, the next one proves nothing."""
    got = dict(answers("none")[0])
    assert {got[name] for name in (OTHERS | NETWORK | {"bind", "listen", "engine"}) - {"bus", "manager", "cut", "padded"}} == {0}, got
    assert errno.EPERM not in got.values(), got


def test_a_fallen_worker_reaches_its_target_and_nobody_else():
    rows, log = answers(BROKER)
    got = dict(rows)
    assert len(rows) == 24 + 13 + 1 and got["claim"] == 0 and {name: got[name] for name in LIBRARY if got[name]} == {}, rows
    assert {got[name] for name in PATHS} == {errno.ENOENT} and {got[name] for name in NAMES} == {errno.ECONNREFUSED}, rows
    assert got["bind"] == got["listen"] == errno.EACCES and got["accept"] == got["accept4"] == errno.EPERM, rows
    assert {got[name] for name in NETWORK} == {errno.EAFNOSUPPORT} and got["inet"] == 0, rows
    assert (got["internet_connect"], got["internet_fast"]) == (errno.ECONNREFUSED, errno.EPERM), rows
    assert got["unmapped"] == errno.EFAULT and got["foreign_memory"] == errno.ECONNREFUSED and not log, (rows, log)
    assert got["other_datagrams"] == errno.EACCES, rows
    assert {got[name] for name in UNLISTED} == {errno.EPERM}, rows


def test_a_fallen_worker_unlinks_nothing_and_makes_no_links():
    got = dict(answers(BROKER)[0])
    assert (got["unlink"], got["unlink_nothing"], got["symlink"]) == (errno.EACCES, errno.ENOENT, errno.EACCES), got
    assert got["not_unlinked"] == 0, got


def test_a_permissive_worker_s_other_calls_are_made_and_logged():
    """Each of them once.  What has to do with sockets is judged as ever, and what changes the machine is refused."""
    rows, log = answers(BROKER, "permissive")
    got = dict(rows)
    assert {name: got[name] for name in LIBRARY if got[name]} == {}, rows
    assert {got[name] for name in PATHS} == {errno.ENOENT} and {got[name] for name in NAMES} == {errno.ECONNREFUSED}, rows
    assert {got[name] for name in NETWORK} == {errno.EAFNOSUPPORT}, rows
    assert (got["getsid"], got["getsid_again"], got["ptrace"], got["unshare"]) == (0, 0, errno.ESRCH, errno.EPERM), rows
    named = re.findall(r"not on its list: (\w+) \((\d+)\)", log)
    assert named.count(("getsid", "124")) == 1 and ("ptrace", "101") in named and "accept" in dict(named), log
    assert not {"unshare", "connect", "socket", "bind", "listen", "unlink", "symlink"} & set(dict(named)), log


def test_a_name_that_somebody_holds_cannot_be_claimed():
    rows, log = answers(BROKER, "held")
    assert rows == [("claim", errno.EADDRINUSE), ("engine", errno.ECONNREFUSED)] and not log, (rows, log)


def test_a_listener_that_is_not_the_target_is_refused():
    rows, log = answers(BROKER, "squatted")
    assert rows == [("claim", 0), ("engine", errno.EPERM), ("failed", errno.EADDRINUSE)], rows
    assert "another process listens on a name of its debug engine" in log, log


def test_labels_are_claimed_five_times_at_most():
    rows, _ = answers(BROKER, "claims")
    assert rows == [("claim", 0)] * 5 + [("claim", errno.EPIPE), ("engine", errno.ENOSYS)], rows


def test_without_its_broker_a_worker_connects_to_nobody_and_waits_for_nobody():
    rows, _ = answers(BROKER, "dead")
    assert rows == [("claim", 0), ("engine", errno.ENOSYS)], rows


def test_a_broker_that_waits_for_a_worker_s_memory_ends(tmp_path):
    """When its time is over; where the kernel lets no signal end the wait, as for such a file, at the end of that."""
    need_root()
    with stuckfiles.stuck_files(tmp_path / "stuck") as directory:
        with subprocess.Popen([PROBE, BROKER, "stuck", directory / "read"], text=True, stdout=subprocess.PIPE) as probe:
            assert probe.stdout.readline() == "claim 0\n"
            broker = [pid for pid in children(probe.pid) if status(pid)["Name"].startswith("gpu-agent-conn")]
            wait_until(lambda: int(status(broker[0])["SigPnd"], 16) & 1 << (signal.SIGKILL - 1), "it is to end")
            # Whoever waits for the files is told that they are gone; who still has them open keeps the mount.
            subprocess.run(["umount", "-f", directory], check=False, stderr=subprocess.DEVNULL)
            assert probe.stdout.read() == f"stuck {errno.ENOSYS}\nengine {errno.ENOSYS}\n"
