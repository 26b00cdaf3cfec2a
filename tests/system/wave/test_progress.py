#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two snapshots of one process, snapshots of many, and the live view."""
import contextlib
import copy
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import BIN, LONG_STOP, PATIENCE, Scene, wait_until

PC = 0x7F0000001000


def plant(s, text):
    for queue in s.target_state()["queues"]:
        s.control(f"waves {s.app.pid} {queue['id']} {text}")


def again(s, *argv):
    return s.ctl("snapshot", s.app.pid, "--again", "500", LONG_STOP, *argv)


def later(path, ms=2000):
    """The same document, saved at another time."""
    document = json.loads(path.read_text())
    document["time_us"] += 1000 * ms
    path.write_text(json.dumps(document))
    return path


def save(s, name, *argv):
    path = s.directory / name
    run = s.ctl("snapshot", s.app.pid, "-j", "-o", path, LONG_STOP, *argv)
    assert run.returncode == 0, run.stderr
    return path


# ------------------------------------------------------------------------------- hung or slow ------------------------

def test_a_hung_kernel_is_called_hung():
    with Scene(gpus="gfx1100", app="runtime on; queues 1; spin") as s:
        plant(s, f"halted 64 {PC:#x} group=4")
        run = again(s)
        assert run.returncode == 10, (run.returncode, run.stdout)
        assert re.search(r"^HUNG   queue \d+: .*64 waves", run.stdout, re.M), run.stdout
        document = json.loads(again(s, "-j").stdout)
        s.rpc.schema._object("comparison", s.rpc.schema.types["comparison"]["members"], document)
        s.rpc.schema.check_result("gpu.snapshot", document["snapshot"])
        assert document["verdict"] == "hung" and [g["change"] for g in document["groups"]] == ["same"], document


def test_waves_that_move_are_slow():
    with Scene(gpus="gfx1100", app="runtime on; queues 1; spin") as s:
        plant(s, f"spin 64 {PC:#x} group=4")
        run = again(s)
        assert run.returncode == 0 and run.stdout.startswith("SLOW   queue 0: 64 waves moving, but within "), run.stdout
        assert "no new workgroup" in run.stdout, run.stdout
        assert "waves" not in json.loads(again(s, "-j").stdout)["snapshot"]
        assert len(json.loads(again(s, "-j", "--waves").stdout)["snapshot"]["waves"]) == 64


def test_packets_are_progress():
    with Scene(gpus="gfx1100") as s:
        plant(s, f"progress 8 {PC:#x}")
        first = save(s, "a.json")
        before = sum(q["packets"] for q in s.target_state()["queues"])
        wait_until(lambda: sum(q["packets"] for q in s.target_state()["queues"]) > before + 8, "packets")
        run = s.ctl("diff", first, later(save(s, "b.json")))
        assert run.returncode == 0 and run.stdout.startswith("Nothing is wrong: 32 waves, all queues moving\n"), run.stdout
        assert re.search(r"  compute +\d+  \d+ of \d+ taken  \d+ packets?$", run.stdout, re.M), run.stdout


def test_each_queue_has_a_verdict():
    """A stream that hangs, and one that has faulted, are not hidden by others that go on."""
    with Scene(gpus="gfx1100", app="runtime on; queues 4; spin") as s:
        queues = sorted(q["id"] for q in s.target_state()["queues"])
        hung, faulted, *moving = queues
        s.control(f"waves {s.app.pid} {hung} halted 64 {PC:#x} group=4")
        s.control(f"waves {s.app.pid} {faulted} memory 6 {PC + 0x1000:#x}")
        for queue in moving:
            s.control(f"waves {s.app.pid} {queue} progress 8 {PC + 0x2000:#x}")
        run = again(s, "-j")
        assert run.returncode == 10, (run.returncode, run.stdout)
        document = json.loads(run.stdout)
        s.rpc.schema._object("comparison", s.rpc.schema.types["comparison"]["members"], document)
        verdicts = {q["queue_id"]: q for q in document["queues"]}
        assert document["verdict"] == "hung" and sorted(verdicts) == queues, document
        assert verdicts[hung]["verdict"] == "hung" and "64 waves at the same " in verdicts[hung]["evidence"], verdicts
        assert verdicts[faulted]["verdict"] == "hung" and verdicts[faulted]["faulting_waves"] == 6, verdicts
        assert "6 waves stopped by memory_violation at " in verdicts[faulted]["evidence"], verdicts
        assert [verdicts[q]["verdict"] for q in moving] == ["progressing"] * 2, verdicts
        evidence = document["evidence"]
        assert verdicts[hung]["evidence"] in evidence and verdicts[faulted]["evidence"] in evidence, evidence
        assert evidence.endswith(f"progressing: queue {moving[0]}, {moving[1]}"), evidence
        run = again(s)
        assert run.returncode == 10, run
        lines = run.stdout.splitlines()
        assert lines[0] == f"FAULT  memory violation: 6 waves at {PC + 0x1000:#x}, GPU 0, queue {faulted}", run.stdout
        assert re.match(rf"HUNG   queue {hung}: no packet for \d.*; \d+ wait behind {PC:#x} \(64 waves\)$", lines[1]), run.stdout
        for queue, verdict in zip(queues, ("none: hung", "faulted: hung", r"\d+ packets?", r"\d+ packets?")):
            assert re.search(rf"^ *{queue}  compute .* taken  +{verdict}  ", run.stdout, re.M), (queue, run.stdout)
        assert re.search(r"^queue \d+ hung: .*6 waves stopped by memory_violation at ", again(s, "-v").stdout, re.M)
        # As before, for who wants to know only whether anything moves.
        run = again(s, "--any-progress", "-v")
        assert run.returncode == 0 and "\nverdict: progressing\n" in run.stdout, run.stdout
        assert re.search(rf"^queue {moving[0]} progressing: queue {moving[0]} took ", run.stdout, re.M), run.stdout
        # Saved snapshots tell as much.
        first, second = save(s, "a.json"), save(s, "b.json")
        wanted = {hung: "hung", faulted: "hung", moving[0]: "progressing", moving[1]: "progressing"}

        def told():
            later(save(s, "b.json"))
            document = json.loads(s.ctl("diff", first, second, "-j").stdout)
            return {q["queue_id"]: q["verdict"] for q in document["queues"]} == wanted
        wait_until(told, "both take packets")
        assert s.ctl("diff", first, second, "--any-progress").returncode == 0
        for argv in (["snapshot", s.app.pid, "--any-progress"],):
            assert s.ctl(*argv).returncode == 2, argv


def test_a_moment_is_too_short_to_tell():
    with Scene(gpus="gfx1100", app="runtime on; queues 1; spin") as s:
        plant(s, f"halted 64 {PC:#x}")
        first = save(s, "a.json")
        (s.directory / "b.json").write_text(first.read_text())
        for ms, status, words in ((30, 8, "UNSURE too short to tell: the snapshots are 30 ms apart, and must be 500"),
                                  (499, 8, "too short to tell"), (500, 10, "HUNG   queue 0: ")):
            run = s.ctl("diff", first, later(s.directory / "b.json", ms))
            assert run.returncode == status and words in run.stdout.splitlines()[0], (ms, run.returncode, run.stdout)
            (s.directory / "b.json").write_text(first.read_text())
        run = s.ctl("snapshot", s.app.pid, "--again", "20", LONG_STOP)
        assert run.returncode == 8 and run.stdout.startswith("UNSURE too short to tell"), run.stdout


def test_faulted_waves_are_named():
    with Scene(gpus="gfx1100", app="runtime on; queues 1; spin") as s:
        plant(s, f"memory 2 {PC:#x}")
        run = again(s)
        assert run.returncode == 10, run.stdout
        assert re.match(rf"FAULT  memory violation: 2 waves at {PC:#x}, GPU 0, queue \d+\n", run.stdout), run.stdout


def test_diff_reads_what_was_saved():
    with Scene(gpus="gfx1100") as s:
        plant(s, f"halted 8 {PC:#x}")
        first, second = save(s, "a.json"), later(save(s, "b.json"))
        run = s.ctl("diff", first, second)
        assert run.returncode == 10, run.stdout
        # In the wrong order, and from a pipe.
        run = s.ctl("diff", second, first)
        assert run.returncode == 10 and "is the earlier one" in run.stderr, run.stderr
        env = {**os.environ, "GPU_AGENT_SOCKET": "/nonexistent"}
        run = subprocess.run([BIN / "gpu-agentctl", "diff", "-", second, "-j"], env=env, input=first.read_bytes(),
                             capture_output=True, timeout=60)
        document = json.loads(run.stdout)
        assert run.returncode == 10 and document["before"]["file"] == "standard input", document
        s.rpc.schema._object("comparison", s.rpc.schema.types["comparison"]["members"], document)


def test_diff_says_what_it_cannot_tell():
    with Scene(gpus="gfx1100") as s:
        plant(s, f"halted 8 {PC:#x}")
        first = save(s, "a.json")
        run = s.ctl("diff", first, later(save(s, "q.json", "--queues-only")))
        assert run.returncode == 8, run.stdout
        assert run.stdout.startswith("UNSURE the later snapshot did not look at the waves of queue "), run.stdout
        session = s.attach(control=True)
        s.rpc.call("gpu.suspend", session=session, lease_ms=60000)
        run = again(s)
        assert run.returncode == 8 and "suspended under a lease" in run.stdout, run.stdout
        s.rpc.call("gpu.resume", session=session)


def test_diff_refuses_what_does_not_belong_together():
    with Scene(gpus="gfx1100") as s:
        first = save(s, "a.json")
        other = json.loads(first.read_text())
        other["process"]["start_ticks"] += 1
        (s.directory / "other.json").write_text(json.dumps(other))
        (s.directory / "broken.json").write_text(first.read_text()[:-20])
        for name, status, words in (("other.json", 2, "process"), ("broken.json", 2, "broken.json: not valid JSON"),
                                    ("none.json", 1, "none.json: No such file"), ("/dev/null", 2, "/dev/null")):
            run = s.ctl("diff", first, s.directory / name)
            assert run.returncode == status and words in run.stderr, (name, run.returncode, run.stderr)
            run = s.ctl("diff", first, s.directory / name, "-j")
            assert run.returncode == status and "error" in json.loads(run.stdout), run.stdout


# ------------------------------------------------------------------------------- many ranks --------------------------

def ranks(s, n):
    """Documents of n processes that are alike: the scene's own, under other numbers."""
    document = json.loads(save(s, "one.json").read_text())
    for i in range(n):
        rank = copy.deepcopy(document)
        rank["process"]["pid"] = 1000 + i
        rank["source"]["host"] = f"node{i // 4}"
        yield rank


def test_the_odd_rank_is_named():
    with Scene(gpus="gfx1100", app="runtime on; queues 1; spin") as s:
        plant(s, f"halted 16 {PC:#x}")
        job = s.directory / "job"
        job.mkdir()
        for i, rank in enumerate(ranks(s, 8)):
            if i == 5:
                rank["groups"][0].update(pc=hex(PC + 0x40), state="stopped", reasons=["memory_violation"], frames=[])
            (job / f"rank{i}.json").write_text(json.dumps(rank))
        run = s.ctl("merge", job)
        assert run.returncode == 0, run.stderr
        odd = [line for line in run.stdout.splitlines() if line.startswith("ODD ")]
        assert len(odd) == 1 and re.match(r"ODD +rank5  is at .*\(memory_violation\).* 1 of 8 are", odd[0]), run.stdout
        assert "node1" in odd[0] and "1005" in odd[0], odd
        # On each node first: the same document.
        flat = s.ctl("merge", job, "-j").stdout
        for node in range(2):
            files = [job / f"rank{i}.json" for i in range(4 * node, 4 * node + 4)]
            assert s.ctl("merge", *files, "-j", "-o", s.directory / f"node{node}").returncode == 0
        assert s.ctl("merge", s.directory / "node1", s.directory / "node0", "-j").stdout == flat
        s.rpc.schema.check_result("gpu.snapshot", json.loads(flat))
        assert json.loads(flat)["source"]["kind"] == "merged"


def test_broken_ranks_are_skipped():
    with Scene(gpus="gfx1100", app="runtime on; queues 1; spin") as s:
        plant(s, f"halted 16 {PC:#x}")
        for i, rank in enumerate(ranks(s, 3)):
            (s.directory / f"rank{i}.json").write_text(json.dumps(rank))
        (s.directory / "rank3.json").write_text("{")
        files = [s.directory / f"rank{i}.json" for i in range(4)]
        run = s.ctl("merge", *files, files[0], "-j")
        document = json.loads(run.stdout)
        assert run.returncode == 8 and len(document["ranks"]) == 3 and not document["complete"], document
        assert len(document["missing"]) == 2 and all(m.startswith("skipped: ") for m in document["missing"]), document
        assert "rank3.json" in run.stderr and "already" in run.stderr, run.stderr
        assert s.ctl("merge", files[3]).returncode == 2
        assert s.ctl("merge", s.mount).returncode == 2
        assert s.ctl("diff", files[0], files[0]).returncode == 8


# ------------------------------------------------------------------------------- live --------------------------------

class Terminal:
    """A pseudo terminal with the little of ECMA-48 that watch uses."""

    def __init__(self, s, *argv, rows=20, cols=100, shell=()):
        self.master, slave = pty.openpty()
        self.before = termios.tcgetattr(slave)
        self.resize(rows, cols)
        env = {**os.environ, "GPU_AGENT_SOCKET": str(s.socket), "TERM": "xterm"}
        # A session and a terminal of its own, so that Ctrl-C means this program.
        self.popen = subprocess.Popen(
            [*shell, BIN / "gpu-agentctl", "watch", LONG_STOP, *map(str, argv)], env=env, stdin=slave, stdout=slave, stderr=slave,
            preexec_fn=None if shell else lambda: (os.setsid(), fcntl.ioctl(0, termios.TIOCSCTTY, 0)))
        self.slave = slave
        self.text = b""
        self.alternate = False

    def resize(self, rows, cols):
        self.rows, self.cols = rows, cols
        self.screen = [""] * rows
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def keys(self, text):
        os.write(self.master, text.encode())

    def read(self):
        while select.select([self.master], [], [], 0)[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                break
            if not data:
                break
            self.text += data
        return self

    def frames(self):
        """Apply what came."""
        self.read()
        text = self.text.decode(errors="replace")
        self.alternate = text.rfind("\x1b[?1049h") > text.rfind("\x1b[?1049l")
        for row, line in re.findall(r"\x1b\[(\d+);1H((?:\x1b\[[0-9;]*m|[^\x1b])*)", text):
            if int(row) <= self.rows:
                self.screen[int(row) - 1] = re.sub(r"\x1b\[[0-9;]*m", "", line)
        return self.screen

    def wait(self, words, absent=False):
        return wait_until(lambda: (words in "\n".join(self.frames())) != absent, f"{words!r} on {self.screen}")

    def is_restored(self):
        attributes = termios.tcgetattr(self.slave)
        return attributes[3] == self.before[3] and not (self.frames() and self.alternate)

    def end(self):
        code = self.popen.wait(PATIENCE)
        # The kernel hands on what was written when it finds the time, but in order.
        self.read()
        os.write(self.slave, b"<end>")
        wait_until(lambda: b"<end>" in self.read().text, "the end of its output")
        assert self.is_restored(), self.text[-300:]
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            self.popen.kill()
        self.popen.wait()
        os.close(self.master)
        os.close(self.slave)


def test_watch_obeys_keys():
    with Scene(gpus="gfx1100", app="runtime on; queues 1; spin") as s:
        plant(s, f"halted 40 {PC:#x}")
        with Terminal(s, s.app.pid, "--interval", 50) as t:
            t.wait("40 waves")
            t.wait("50 ms")  # also where it says that queues would not run long enough then
            plant(s, f"halted 24 {PC:#x}")
            t.wait("24 waves, ")
            t.keys("p")
            t.wait("PAUSED")
            plant(s, f"halted 8 {PC:#x}")
            t.keys("?")
            t.wait("WHAT IT DOES")
            t.keys("?")
            t.wait("WHAT IT DOES", absent=True)
            assert any("24 waves, " in line for line in t.frames()), t.screen
            t.keys(" ")
            t.wait("8 waves, ")
            t.wait("sort: faults first")
            t.keys("s")
            t.wait("sort: waves")
            t.keys("ss")
            t.wait("sort: faults first")
            t.keys("d")
            t.wait("gfx1100")
            t.keys("q")
            assert t.end() == 0
        wait_until(lambda: not s.rpc.call("session.list")["sessions"], "session left")


def test_watch_scrolls_and_resizes():
    with Scene(gpus="gfx1100", app="runtime on; queues 1; spin") as s:
        script = s.directory / "waves"
        script.write_text("".join(f"halted n={40 - i} pc={PC + 0x100 * i:#x}\n" for i in range(30)))
        plant(s, f"script {script}")
        with Terminal(s, s.app.pid, "--interval", 50, rows=10) as t:
            t.wait("rows 1-3 of 31")
            t.keys("\x1b[B\x1b[B")
            t.wait("rows 3-5 of 31")
            t.keys("\x1b[6~" * 9)
            t.wait("rows 29-31 of 31")
            t.keys("\x1b[A")
            t.wait("rows 28-30 of 31")
            t.keys("\x1b[5~" * 9)
            t.wait("rows 1-3 of 31")
            t.resize(20, 80)
            t.wait("rows 1-11 of 31")
            t.resize(60, 100)
            t.wait("? help")
            assert all(len(line) <= 100 for line in t.frames())
            t.resize(2, 10)
            t.wait("q quit")
            t.keys("q")
            assert t.end() == 0


def test_watch_gives_the_terminal_back():
    with Scene(gpus="gfx1100", app="runtime on; queues 1; spin") as s:
        for end, code in (("\x03", 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), ("\x04", 0)):
            with Terminal(s, s.app.pid, "--interval", 50) as t:
                t.wait("0 waves, ")
                assert not t.is_restored()
                if isinstance(end, str):
                    t.keys(end)
                else:
                    t.popen.send_signal(end)
                got = t.end()
                assert got == code, (end, got)
        with Terminal(s, s.app.pid, "--count", 2, "--interval", 10) as t:
            assert t.end() == 0


# What a shell does with a job: it owns the terminal while the job is stopped.
SHELL = """
import fcntl, os, signal, subprocess, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = subprocess.Popen(sys.argv[1:], preexec_fn=lambda: (os.setpgid(0, 0), os.tcsetpgrp(0, os.getpid())))
while True:
    _, status = os.waitpid(job.pid, os.WUNTRACED)
    os.tcsetpgrp(0, os.getpid())
    if not os.WIFSTOPPED(status):
        sys.exit(os.waitstatus_to_exitcode(status))
    assert os.WSTOPSIG(status) == signal.SIGTSTP
    print("<stopped>", end="", file=sys.stderr, flush=True)
    assert sys.stdin.readline() == "fg\\n"
    os.tcsetpgrp(0, job.pid)
    os.killpg(job.pid, signal.SIGCONT)
"""


def test_watch_stops_and_goes_on():
    """Ctrl-Z: the shell finds its terminal as it was; fg: the page is back."""
    with Scene(gpus="gfx1100", app="runtime on; queues 1; spin") as s:
        with Terminal(s, s.app.pid, "--interval", 50, shell=[sys.executable, "-c", SHELL]) as t:
            for waves in (8, 16):
                t.wait("50 ms")
                t.keys("\x1a")
                wait_until(lambda: t.read().text.endswith(b"<stopped>"), "stopped")
                assert t.is_restored()
                plant(s, f"halted {waves} {PC:#x}")
                t.keys("fg\n")
                t.wait(f"{waves} waves, ")
                assert t.alternate
            t.keys("q")
            assert t.end() == 0


def test_watch_ends_with_agent_and_process():
    with Scene(gpus="gfx1100", app="runtime on; queues 1; spin") as s:
        with Terminal(s, s.app.pid, "--interval", 60000) as t:
            t.wait("0 waves, ")
            s.app.stop(signal.SIGKILL)
            assert t.end() == 3, t.text[-500:]
            assert "session ended" in t.text.decode(), t.text[-500:]
        app = s.start_app("runtime on; queues 1; spin", name="second")
        with Terminal(s, app.pid, "--interval", 60000) as t:
            t.wait("0 waves, ")
            s.agentd.stop(signal.SIGKILL)
            assert t.end() in (3, 9), t.text[-500:]


def test_watch_streams_elsewhere():
    with Scene(gpus="gfx1100", app="runtime on; queues 1; spin") as s:
        plant(s, f"halted 8 {PC:#x}")
        run = s.ctl("watch", s.app.pid, "--count", 3, "--interval", 20)
        assert run.returncode == 0 and run.stdout.count("\n8 waves, ") == 3 and "\x1b" not in run.stdout, run.stdout
        run = s.ctl("watch", s.app.pid, "--count", 2, "--interval", 20, "-j")
        documents = [json.loads(line) for line in run.stdout.splitlines()]
        assert run.returncode == 0 and len(documents) == 2, run.stdout
        for document in documents:
            s.rpc.schema.check_result("gpu.snapshot", document)
        assert documents[1]["time_us"] > documents[0]["time_us"]
        for wrong in (["--interval", 0], ["--count", 0], ["--interval", "x"]):
            assert s.ctl("watch", s.app.pid, *wrong).returncode == 2, wrong


def test_watch_notices_that_nobody_reads():
    with Scene(gpus="gfx1100", app="runtime on; queues 1; spin") as s:
        env = {**os.environ, "GPU_AGENT_SOCKET": str(s.socket)}
        with subprocess.Popen([BIN / "gpu-agentctl", "watch", str(s.app.pid), "--interval", "60000"], env=env,
                              stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as popen:
            popen.stdout.read(1)
            popen.stdout.close()
            assert popen.wait(PATIENCE) == 128 + signal.SIGPIPE


def test_watch_keeps_queues_running():
    """A suspend that takes long stretches the interval, so that queues run most of the time."""
    with Scene(gpus="gfx1100", app="runtime on; queues 1; spin") as s:
        plant(s, f"halted 8 {PC:#x}")
        s.control("delay suspend 20")
        with Terminal(s, s.app.pid, "--interval", 10) as t:
            t.wait("instead of 10 ms")
            t.keys("q")
            assert t.end() == 0
