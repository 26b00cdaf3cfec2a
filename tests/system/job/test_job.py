#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""All processes of a job at once: by their numbers, all of a machine, and on hosts over ssh, whatever these answer."""
import contextlib
import json
import os
import pathlib
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time

if __name__ == "__main__":
    # Processes of other tests are none of the machine that is looked at as a whole.
    alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--"] if os.geteuid() == 0 else []
    os.execvp((alone + ["pytest-3"])[0], [*alone, "pytest-3", "--lines", *sys.argv])

from harness import BIN, Scene, need_root, wait_until

USAGE, NO_MATCH, FAILURE, PARTIAL = 2, 3, 1, 8
# In place of ssh: what is asked is kept, and runs here as if on that host; some hosts are not as they should be.
SSH = r"""#!/bin/sh
for word; do host=$command; command=$word; done
printf '%s\n' "$@" >"$RECORDS/$host"
echo "$$ $(cut -d' ' -f6 /proc/$$/stat) $SSH_ASKPASS_REQUIRE" >"$RECORDS/$host.session"
host=${host#*@}
case $host in
good*) sh -c "$command" | sed "s/\"host\":\"[^\"]*\"/\"host\":\"$host\"/g"; : >"$RECORDS/$host.done" ;;
partial*) sh -c "$command" | sed "s/\"host\":\"[^\"]*\"/\"host\":\"$host\"/g"; exit 8 ;;
copy*)
    while [ ! -e "$RECORDS/good1.done" ]; do sleep 0.1; done; sleep 1
    sh -c "$command" | sed "s/\"host\":\"[^\"]*\"/\"host\":\"good1\"/g" ;;
garbage) printf '<html>\033[2J not a document\n' ;;
cut) sh -c "$command" | head -c 300 ;;
huge) yes '{"schema":"gpu-agent.snapshot/1"}' ;;
empty) ;;
refused) echo "Warning: some banner" >&2; printf 'ssh: connect to host refused: \033[31mNo route\n' >&2; exit 255 ;;
failed)
    echo "srun: error: failed: task 0: Exited with exit code 9" >&2
    echo "gpu-agentctl: error: there is no agent" >&2; echo "hint: start it" >&2; exit 9 ;;
noisy) yes noise >&2 ;;
hung*) sleep 1000 & echo $! >"$RECORDS/child"; wait ;;
killed) kill -9 $$ ;;
esac
"""
DEADLINE = "8s"


def is_of_running_threads(text):
    """A thread that happens to run while it is read has no native frames."""
    return ": host: native frames: " in text


def document(run, want=0):
    found = json.loads(run.stdout) if run.stdout else {"missing": []}
    assert "missing" in found, (run.returncode, found)
    found["missing"] = [text for text in found["missing"] if not is_of_running_threads(text)]
    if want == 0 and not found["missing"]:
        want = run.returncode if run.returncode == PARTIAL else 0
    assert run.returncode == want, (run.returncode, found["missing"], run.stderr)
    return found


@contextlib.contextmanager
def job(*scenes):
    """Processes on a simulated GPU, each of a scene."""
    need_root()
    with Scene(app=None, gpus="gfx90a,gfx90a") as s:
        s.ranks = []
        for scene in scenes:
            app = s.start("rank", [BIN / "gpu-agent-simapp", "--kfd", s.mount / "kfd", "--scene", scene])
            app.wait_line()
            s.ranks.append(app)
        s.pids = ",".join(str(app.pid) for app in s.ranks)
        yield s


@contextlib.contextmanager
def cluster(s, hosts):
    """A file of hosts, and the environment in which they are asked."""
    programs, records = s.directory / "programs", s.directory / "asked"
    programs.mkdir(exist_ok=True)
    records.mkdir(exist_ok=True)
    ssh = programs / "ssh"
    ssh.write_text(SSH)
    ssh.chmod(ssh.stat().st_mode | stat.S_IXUSR)
    path = s.directory / "hosts"
    path.write_text(hosts)
    env = {**os.environ, "PATH": f"{programs}:{BIN}:{os.environ['PATH']}", "RECORDS": str(records), "GPU_AGENT_SOCKET": str(s.socket)}

    def ask(*argv, deadline=DEADLINE, **more):
        return subprocess.run([BIN / "gpu-agentctl", "job", "--hosts", path, "--deadline", deadline, *argv], env=env, text=True,
                              capture_output=True, timeout=60, stdin=subprocess.DEVNULL, **more)
    yield ask, records


def missing(found, name):
    said = [m for m in found["missing"] if name in m]
    assert said, (name, found["missing"])
    return said[0]


def test_pids():
    with job("hang", "hang", "progress") as s:
        found = document(s.ctl("job", "--pids", s.pids, "-j"))
        assert found["source"]["kind"] == "merged" and not found["missing"]
        assert sorted(r["pid"] for r in found["ranks"]) == sorted(app.pid for app in s.ranks)
        odd = [r["pid"] for r in found["ranks"] if "odd" in r]
        assert odd == [s.ranks[2].pid], found["ranks"]
        # Threads come along, read when the queues run again.
        assert found["host_groups"]
        text = s.ctl("job", "--pids", s.pids)
        assert text.stdout.startswith("ODD") and f"process {s.ranks[2].pid} of" in text.stdout.partition("ranks on")[0], text.stdout
        # All of the machine are the same ones here, and the page is written beside.
        page = s.directory / "report.html"
        every = document(s.ctl("job", "--all", "-j", "--report", page))
        assert {r["pid"] for r in every["ranks"]} == {app.pid for app in s.ranks}
        assert "<h1>" in page.read_text() and f"process {s.ranks[2].pid} of" in page.read_text()


def test_ranks_have_the_names_of_their_launcher():
    need_root()
    with Scene(app=None, gpus="gfx90a,gfx90a") as s:
        for rank in (3, 11):
            app = s.start("rank", [BIN / "gpu-agent-simapp", "--kfd", s.mount / "kfd", "--scene", "hang"],
                          env={"RANK": str(rank), "WORLD_SIZE": "16", "LOCAL_RANK": "0"})
            app.wait_line()
        found = document(s.ctl("job", "--all", "-j"), PARTIAL)
        assert [r["name"] for r in found["ranks"]] == ["rank3", "rank11"], found["ranks"]
        # One that has died is not there to be odd: those that are there say how many there are.
        assert found["missing"] == ["2 of 16 ranks were seen; ranks 0-2,4-10,12-15 were not"] and not found["complete"]
        for rank in {*range(16)} - {3, 11}:
            s.start("rank", [BIN / "gpu-agent-simapp", "--kfd", s.mount / "kfd", "--scene", "hang"],
                    env={"RANK": str(rank), "WORLD_SIZE": "16", "LOCAL_RANK": "0"}).wait_line()
        found = document(s.ctl("job", "--all", "-j"))
        assert len(found["ranks"]) == 16 and not found["missing"], found["missing"]


def test_more_processes_than_may_be_read_at_once():
    """The agent reads the threads of a few processes at a time: the others have their turn, and nothing is missing."""
    with job(*["hang"] * 32) as s:
        found = document(s.ctl("job", "--pids", s.pids, "-j"))
        assert len(found["ranks"]) == 32 and not found["missing"], found["missing"]


def test_more_processes_than_may_have_sessions():
    """As where two jobs of a machine are looked at together."""
    need_root()
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as config:
        config.write("[limits]\nsessions_per_user = 2\n")
        config.flush()
        with Scene(app=None, gpus="gfx90a,gfx90a", agentd=("--config", config.name)) as s:
            for n in range(8):
                s.start("rank", [BIN / "gpu-agent-simapp", "--kfd", s.mount / "kfd", "--scene", "hang"]).wait_line()
            found = document(s.ctl("job", "--all", "-j", "--deadline", "40s"))
            assert len(found["ranks"]) == 8 and not [m for m in found["missing"] if "sessions" in m], found["missing"]


def test_processes_that_are_not_there():
    with job("hang", "hang") as s:
        gone = subprocess.Popen(["true"])
        gone.wait()
        run = s.ctl("job", "--pids", f"{s.pids},{gone.pid},4194303", "-j")
        found = document(run, PARTIAL)
        assert len(found["ranks"]) == 2 and not found["complete"]
        for pid in (gone.pid, 4194303):
            assert missing(found, f"not seen: process {pid} of ") and f"process {pid} of" in run.stderr
        # Who was not seen may be the odd one.
        text = s.ctl("job", "--pids", f"{s.pids},{gone.pid}", "-q")
        assert text.returncode == PARTIAL and f"not seen: process {gone.pid}" in text.stdout
        assert "No rank is odd" not in text.stdout or "as far as could be seen" in text.stdout
        # Nobody was seen: the reason is the error, and there is no document.
        run = s.ctl("job", "--pids", gone.pid)
        assert run.returncode == FAILURE and f"process {gone.pid} of" in run.stderr and not run.stdout, run


def test_nobody_to_look_at():
    need_root()
    with Scene(app=None) as s:
        assert s.ctl("job", "--all").returncode == NO_MATCH
        for argv in ((), ("--all", "--pids", "1"), ("--pids", "x"), ("--pids", "0"), ("--all", "--deadline", "0"),
                     ("--all", "--deadline", "1ms")):
            assert s.ctl("job", *argv).returncode == USAGE, argv
        (s.directory / "hosts").write_text("n1\n-oProxyCommand=reboot\n")
        run = s.ctl("job", "--hosts", s.directory / "hosts")
        assert run.returncode == USAGE and "line 2" in run.stderr
        (s.directory / "hosts").write_text("# none\n")
        assert s.ctl("job", "--hosts", s.directory / "hosts").returncode == USAGE
        assert s.ctl("job", "--hosts", "/nonexistent").returncode == FAILURE


def test_hosts():
    with job("hang", "progress") as s, cluster(s, "good[1-3] slots=2\nroot@good4:2222\n") as (ask, records):
        found = document(ask("-j"))
        assert len(found["ranks"]) == 8 and {r["host"] for r in found["ranks"]} == {"good1", "good2", "good3", "good4"}, found["ranks"]
        words = (records / "good1").read_text().split("\n")
        assert {"BatchMode=yes", "ControlMaster=no"} <= {*words} and words[-4:-1] == ["--", "good1", words[-2]], words
        assert re.fullmatch(r"gpu-agentctl job --all --json=short --quiet --deadline=\d+ms", words[-2]), words
        words = (records / "root@good4").read_text().split("\n")
        assert words[words.index("-p") + 1] == "2222"
        # None has the terminal of the user to put a question on, or a window.
        pid, session, askpass = (records / "good1.session").read_text().split()
        assert pid == session and askpass == "never"


def test_host_asked_twice():
    """As two users, of whom each sees the same: nothing is missing."""
    with job("hang") as s, cluster(s, "good1\nroot@good1\n") as (ask, _):
        run = ask("-j")
        found = document(run)
        assert len(found["ranks"]) == 1 and "good1 was asked twice" in run.stderr, (found["ranks"], run.stderr)


def test_little_time():
    """Who is asked has what is left, and at least what it accepts; who is not asked is not accused."""
    with job("hang") as s, cluster(s, "\n".join(f"hung{n}" for n in range(33))) as (ask, records):
        run = ask(deadline="2s")
        assert run.returncode == FAILURE and not run.stdout, run
        late, unasked = (re.findall(rf"not seen: (\w+): {why}", run.stderr) for why in ("no answer", "was not asked: no time was left"))
        assert len(late) == 32 and len(unasked) == 1 and not (records / unasked[0]).exists(), run.stderr
        ask(deadline="100ms")
        assert (records / "hung0").read_text().split("\n")[-2].endswith("--deadline=100ms")


def test_page_that_cannot_be_written():
    with job("hang") as s:
        run = s.ctl("job", "--all", "--quiet", "--report", "/nonexistent/page.html")
        assert run.returncode == FAILURE and "the page was not written: /nonexistent" in run.stderr, run
        assert "1 rank on 1 host" in run.stdout, run
        run = s.ctl("job", "--all", "-j", "--report", "/nonexistent/page.html")
        assert run.returncode == FAILURE and "the page was not written" in run.stderr and len(json.loads(run.stdout)["ranks"]) == 1, run


def test_ends_of_children_are_ignored():
    """Whoever starts it may have it so."""
    with job("hang") as s, cluster(s, "good1\nkilled\n") as (ask, _):
        found = document(ask("-j", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)), PARTIAL)
        assert "signal 9" in missing(found, "not seen: killed: "), found["missing"]


def alive(pid):
    """Whether it runs; a zombie does not."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_hostile_hosts():
    """Each is told with its reason, none keeps the others from being seen, and nothing of them runs afterwards."""
    bad = {"garbage": "its answer", "cut": "its answer", "huge": "larger than 8 MiB", "empty": "has said nothing",
           "refused": "connect to host refused: ?[31mNo route", "failed": "there is no agent", "noisy": "noisy: noise",
           "hung": "no answer before the deadline", "killed": "signal 9", "copy1": "already"}
    with job("hang", "hang") as s, cluster(s, "good1\npartial1\n" + "\n".join(bad) + "\n") as (ask, records):
        begun = time.monotonic()
        run = ask("-j")
        took = time.monotonic() - begun
        found = document(run, PARTIAL)
        assert {r["host"] for r in found["ranks"]} == {"good1", "partial1"} and len(found["ranks"]) == 4, found["ranks"]
        assert len(found["missing"]) == len(bad), found["missing"]
        for host, why in bad.items():
            assert missing(found, f"not seen: {host}: ").count(why) == 1, (host, found["missing"])
        assert "\x1b" not in run.stdout + run.stderr
        # Twice the deadline is for a machine that does other things as well.
        assert 8 <= took < 16, took
        child = int((records / "child").read_text())
        wait_until(lambda: not alive(child), "the end of the child of a program that did not answer")


def test_interrupted():
    """Whoever is asked goes with who asks."""
    with job("hang") as s, cluster(s, "hung\n") as (_, records):
        env = {**os.environ, "PATH": f"{s.directory / 'programs'}:{os.environ['PATH']}", "RECORDS": str(records)}
        run = subprocess.Popen([BIN / "gpu-agentctl", "job", "--hosts", s.directory / "hosts", "--deadline", "60s"], env=env,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        wait_until(lambda: (records / "child").exists() and (records / "child").read_text().strip(), "the host is asked")
        shell = int(pathlib.Path(f"/proc/{(records / 'child').read_text().strip()}/stat").read_text().rpartition(")")[2].split()[1])
        run.send_signal(signal.SIGINT)
        assert run.wait(10) in (128 + signal.SIGINT, -signal.SIGINT)
        wait_until(lambda: not alive(shell), "the end of ssh")
        with contextlib.suppress(ProcessLookupError):
            os.kill(int((records / "child").read_text()), signal.SIGKILL)


def test_hosts_are_asked_what_waits():
    """Two samples of each process, which merge compares with those of other hosts."""
    with job("crossed-collectives") as s, cluster(s, "good1\n") as (ask, records):
        found = document(ask("--why", "-j"))
        assert "--why" in (records / "good1").read_text()
        assert "unchanged_since_us" in found["ranks"][0]["collectives"][0], found["ranks"]
        assert "collectives" not in document(ask("-j"))["ranks"][0]
