#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The process that parses agentd.conf: it has no rights, and whatever it does or says, the agent goes on as it was."""
import os
import re
import subprocess
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import harness
import pytest
from harness import ROOT, Scene, copy_programs, need_root, status, wait_until

NOBODY = 65534
NAME = int(re.search(r"define IPC_RULE_NAME_SIZE (\d+)", (ROOT / "agentd/ipc/child.h").read_text())[1])
# In place of gpu-agent-rules; the parser is the program of that name beside the one that wants it.
WRAPPER = """#!{python}
import os, socket, struct, subprocess, sys, time
real = {directory!r} + "/rules-real"
plays = open({directory!r} + "/plays").read()
if "--parse" not in sys.argv or not plays:
    os.execv(real, sys.argv)
def put(path, text):
    with open({directory!r} + "/" + path, "a") as f:
        f.write(text)
put("ran", plays + "\\n")
if plays == "hangs":
    time.sleep(600)
if plays == "dies":
    os.kill(os.getpid(), 9)
if plays == "nonsense":
    os.write(4, os.urandom(100000))
    sys.exit(0)
if plays == "huge":
    os.ftruncate(4, 1 << 40)
    sys.exit(0)
# The true one, whose questions pass through here, and whose answer does.
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
names = socket.socket(fileno=os.dup(5))
os.dup2(theirs.fileno(), 5)
theirs.close()
child = subprocess.Popen([real] + sys.argv[1:], pass_fds=[3, 4, 5])
os.close(5)
while True:
    asked = ours.recv(4096)
    if not asked:
        break
    if plays == "looks":
        put("status", open("/proc/%d/status" % child.pid).read())
    names.send(asked)
    ours.send(names.recv(4096))
assert child.wait() == 0
answer = os.pread(4, 1 << 24, 0)
swaps = dict(range=(struct.pack("<II", 77, 78), struct.pack("<II", 1 << 30, 78)),
             text=(b"some" + bytes({NAME} - 4), b"n" * {NAME}))
if plays in swaps:
    old, new = swaps[plays]
    assert old in answer
    os.pwrite(4, answer.replace(old, new, 1), 0)
"""
CONFIG = """[agent]
user = nobody
socket_group =
[limits]
connections = 77
connections_per_user = 78
[rule some]
user = root daemon
device = nvidia
"""


@pytest.fixture(name="programs")
def copied(tmp_path, monkeypatch):
    copy_programs(tmp_path)
    rules = tmp_path / "gpu-agent-rules"
    (tmp_path / "rules-real").write_bytes(rules.read_bytes())
    (tmp_path / "rules-real").chmod(0o755)
    rules.unlink()
    rules.write_text(WRAPPER.replace("{python}", sys.executable).replace("{directory!r}", repr(str(tmp_path)))
                     .replace("{NAME}", str(NAME)))
    rules.chmod(0o755)
    (tmp_path / "agentd.conf").write_text(CONFIG)
    (tmp_path / "agentd.conf").chmod(0o644)
    (tmp_path / "plays").write_text("")
    monkeypatch.setattr(harness, "BIN", tmp_path)
    return tmp_path


def check(programs, plays, *options):
    """What gpu-agentd --check-config says with such a parser; that has to have run."""
    (programs / "plays").write_text(plays)
    (programs / "ran").write_text("")
    done = subprocess.run([programs / "gpu-agentd", "--check-config", "--config", programs / "agentd.conf", *options],
                          capture_output=True, text=True, timeout=60)
    assert (programs / "ran").read_text() == plays + "\n", done
    return done


@pytest.mark.parametrize("options", ((), ("--user", "--socket", "/nowhere")))
def test_it_has_no_rights(programs, options):
    """As the process that wants it to look a user up has it before its eyes."""
    need_root()
    done = check(programs, "looks", *options)
    assert "configuration is valid" in done.stdout, done
    seen = dict(re.findall(r"^(\w+):[ \t]*(.*)$", (programs / "status").read_text(), re.M))
    assert set(seen["Uid"].split()) == set(seen["Gid"].split()) == {str(NOBODY)} and not seen["Groups"].strip(), seen
    assert all(int(seen[name], 16) == 0 for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")), seen
    assert (seen["NoNewPrivs"], seen["Seccomp"]) == ("1", "2"), seen


@pytest.mark.parametrize("plays, told", (("hangs", "it does not answer"), ("dies", "it has died"), ("nonsense", "makes no sense"),
                                         ("huge", "makes no sense"), ("range", "makes no sense"), ("text", "makes no sense")))
def test_one_that_has_fallen_is_not_believed(programs, plays, told):
    need_root()
    done = check(programs, plays)
    assert done.returncode == 1 and told in done.stderr and "valid" not in done.stdout, done


def test_what_it_says_is_what_the_file_says(programs):
    """The control of the one above: the same parser without a lie in its answer."""
    need_root()
    done = check(programs, "nothing")
    assert done.returncode == 0 and "configuration is valid" in done.stdout, done
    (programs / "agentd.conf").write_text(CONFIG.replace("77", "0").replace("daemon", "nosuchuser"))
    done = check(programs, "nothing")
    assert done.returncode == 1, done
    assert [line.split(": ", 1)[1] for line in done.stderr.splitlines()] == [
        f"{programs}/agentd.conf:5: [limits] connections: not a number in the allowed range",
        f"{programs}/agentd.conf:8: [rule some] user: no such user"], done.stderr


@pytest.mark.parametrize("plays", ("dies", "nonsense"))
def test_a_reload_with_a_fallen_one_changes_nothing(programs, plays):
    need_root()
    with Scene(app=None, user_mode=False, start_agent=False) as s:
        (s.directory / "agentd.conf").write_text("[agent]\nuser = nobody\nsocket_group =\n")
        s.start_agentd(user_mode=False)
        (programs / "plays").write_text(plays)
        os.kill(s.agentd.pid, 1)
        wait_until(lambda: "the process that parses agentd.conf" in s.agentd.err(), "that is told")
        assert "processes" in s.connect().call("process.list") and status(s.agentd.pid)
