#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gpu-agentctl record and top: true shares at the cost that was allowed; whatever ends it, what was seen stays."""
import contextlib
import json
import math
import os
import pty
import random
import select
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from harness import BIN, PATIENCE, ROOT, CudaScene, Scene, kill_agent, wait_until
from pprof_file import Profile

CODE = ROOT / "sim/scenes/amd/train-gfx90a.co"
SETUP = f"runtime ttmp; queues 2; load {CODE}; dispatch 0 embedding 16384 256; dispatch 1 gemm 1048576 256"
# train.hip:29 in embedding(); train.hip:61 in dot() <- gemm().
EMBEDDING, GEMM = "embedding+0x74", "gemm+0x70"
STILL = f"{SETUP}; waves 0 halted 64 {EMBEDDING}; waves 1 halted 192 {GEMM}; listen"
SVG = "{http://www.w3.org/2000/svg}"
ANY_RATE = ("--rate", 1000)


def record(s, *argv, status=0):
    run = s.ctl("record", s.app.pid, "-j", *argv)
    assert run.returncode == status, (run.returncode, run.stdout, run.stderr)
    return json.loads(run.stdout)


@contextlib.contextmanager
def recording(s, *argv):
    """One that goes on meanwhile; .communicate() is its end."""
    env = {**os.environ, "GPU_AGENT_SOCKET": str(s.socket)}
    argv = [BIN / "gpu-agentctl", "record", s.app.pid, "-j", *argv]
    with subprocess.Popen([str(a) for a in argv], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as popen:
        try:
            yield popen
        finally:
            popen.kill()


def suspensions(s):
    return max(q["suspended_us"] for q in s.target_state()["queues"])


def wait_for_capture(s):
    """One that was answered: the next begins only then."""
    wait_until(lambda: suspensions(s) > 0 and not s.target_state()["suspended_queues"], "a capture")
    first = suspensions(s)
    wait_until(lambda: suspensions(s) > first, "another capture")


def share_of(document, place):
    """(share, low, high) of a place, as parts of 1."""
    found = [e for e in document["shares"] if e["of"] == "waves" and e["frames"][-1]["name"] == place]
    assert len(found) == 1, document
    return tuple(found[0][f"{key}_ppm"] / 1e6 for key in ("share", "low", "high"))


def test_counts_every_wave_of_a_capture():
    """Of a program that stands still, the shares are those of its waves."""
    with Scene(app=STILL, gpus="gfx90a") as s:
        document = record(s, "-d", "2s", "--overhead", "20%")
        assert document["schema"] == "gpu-agent.recording/1" and document["complete"], document
        assert document["ended"] == "duration" and document["missing"] == [], document
        assert document["captures"] > 3 and document["duration_us"] >= 2e6, document
        for place, share in (("train.hip:29", 0.25), ("train.hip:61", 0.75)):
            is_, low, high = share_of(document, place)
            assert is_ == share and low < share < high, document
        frames = document["shares"][0]["frames"]
        assert [f["name"] for f in frames] == ["gemm", "dot(float const*, float const*, int)", "train.hip:61"], frames
        assert frames[2]["line"] == 61 and frames[2]["file"].endswith("train.hip"), frames
        run = s.ctl("record", s.app.pid, "-d", "500ms", "--overhead", "20%")
        assert run.returncode == 0 and "of 20.0 % allowed\n" in run.stdout, run.stdout
        assert "75.0 %" in run.stdout and "train.hip:61 <- dot(" in run.stdout, run.stdout


class Alternating:
    """A program whose waves are now at one place, now at the other, for times that are random; it knows how long."""

    PLACES = {"train.hip:29": (EMBEDDING, 0.021), "train.hip:61": (GEMM, 0.009)}

    def __init__(self, s):
        self.s = s
        self.spent = dict.fromkeys(self.PLACES, 0.0)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.random = random.Random(7)

    def run(self):
        since, last = time.monotonic(), None
        stdin = self.s.app.popen.stdin
        while not self.over.is_set():
            for name, (place, seconds) in self.PLACES.items():
                stdin.write(f"waves 0 halted 64 {place}\n".encode())
                stdin.flush()
                now = time.monotonic()
                if last:
                    self.spent[last] += now - since
                since, last = now, name
                self.over.wait(self.random.expovariate(1 / seconds))

    def share(self, name):
        return self.spent[name] / sum(self.spent.values())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def test_shares_are_those_of_a_program_that_changes():
    """Known shares are in the interval: 95 of 100 recordings have them in it, and so at least one of three."""
    covered, seen = 0, []
    for _ in range(3):
        with Scene(app=f"{SETUP}; listen", gpus="gfx90a") as s, Alternating(s) as alternating:
            wait_until(lambda: all(alternating.spent.values()), "both places were there")
            document = record(s, "-d", "4s", "--overhead", "20%")
            alternating.over.set()
            is_, low, high = share_of(document, "train.hip:29")
            share, n = alternating.share("train.hip:29"), document["captures"]
        seen.append((share, is_, low, high, n))
        assert n >= 20, document
        # Four standard deviations, which a recording that is right misses once in 16000 times.
        assert abs(is_ - share) <= 4 * math.sqrt(share * (1 - share) / n), seen
        covered += low <= share <= high
    assert covered, seen


def test_the_cost_is_what_was_allowed():
    """Within a fifth of it, as agent and device count it, while what a suspend costs changes a hundredfold."""
    over = threading.Event()

    def change(s, slow_ms):
        while not over.is_set():
            # A loaded machine may not manage as many of the others as they would be allowed.
            for ms, seconds in ((0, 0.6), (slow_ms, 1)):
                s.control(f"delay suspend {ms} 100000")
                over.wait(seconds)

    with Scene(app=STILL, gpus="gfx90a") as s:
        usual_us = record(s, "-d", "1s", "--overhead", "20%", *ANY_RATE)["shortest_us"]
        slow_ms = min(300, usual_us * 100 // 1000)
        thread = threading.Thread(target=change, args=(s, slow_ms))
        thread.start()
        try:
            before = suspensions(s)
            # As long as fifteen of the slow ones take.  It is ended from outside: a recording that knows its end could
            # also keep its share by captures in the first part alone.
            with recording(s, "-d", "3600s", "--overhead", "5%", *ANY_RATE) as run:
                time.sleep(max(30, slow_ms * 300 // 1000))
                run.send_signal(signal.SIGINT)
                document = json.loads(run.communicate(timeout=PATIENCE)[0])
            device_us = suspensions(s) - before
        finally:
            over.set()
            thread.join()
        # Ten of the slow ones are two thirds of what may be spent: a loaded machine adds few of the others.
        assert document["captures"] >= 10 and document["longest_us"] > 50 * document["shortest_us"], document
        assert document["overhead_ppm"] == pytest.approx(document["stopped_us"] / document["duration_us"] * 1e6, abs=2)
        assert 40000 <= document["overhead_ppm"] <= 60000, document
        # The device counts from the end of a suspend to the resume, and cannot count more than the agent.  Of a capture
        # that was under way when the recording was ended, nobody has told the agent's count.
        assert 0 < device_us <= document["stopped_us"] + document["unmeasured_us"], (device_us, document)


def test_keeps_its_budget_when_the_first_capture_used_it_up():
    """One suspend that costs more than the whole time allows: it is the only one, and the cost is told as it was."""
    with Scene(app=STILL, gpus="gfx90a") as s:
        s.control("delay suspend 300 1")
        document = record(s, "-d", "2s", "--overhead", "1%")
        assert document["captures"] == 1 and document["overhead_ppm"] > 100000, document


def test_all_files_say_the_same():
    """Four forms, each read by a reader of its own, and a name that would break each of them."""
    with Scene(app=f"name a<b>&\"'; {STILL}", gpus="gfx90a") as s:
        paths = {form: s.directory / f"x.{form}" for form in ("collapsed", "svg", "speedscope", "pprof")}
        paths["svg"].write_text("replaced")
        document = record(s, "-d", "2s", "--overhead", "20%", "--host", *(f"--{f}={p}" for f, p in paths.items()))
        n = document["captures"]
        name = f"a<b>&\"' {s.app.pid}"
        assert document["process"] == name and document["thread_captures"] == n, document
        gemm = ("gemm", "dot(float const*, float const*, int)", "train.hip:61")

        lines = [line.rsplit(" ", 1) for line in paths["collapsed"].read_text().splitlines()]
        stacks = {tuple(stack.split(";")): int(count) for stack, count in lines}
        assert stacks[(name, *gemm)] == 750 * n, stacks
        assert sum(stacks.values()) == pytest.approx(2000 * n, abs=len(stacks)), stacks

        svg = xml.etree.ElementTree.parse(paths["svg"]).getroot()
        assert svg.tag == SVG + "svg" and svg.get("role") == "img" and not list(svg.iter(SVG + "script"))
        title, description = svg.find(SVG + "title").text, svg.find(SVG + "desc").text
        assert name in title and f"{n} captures in" in description and "75.0 % (95 % interval: " in description
        assert svg.get("aria-labelledby").split() == [svg.find(SVG + tag).get("id") for tag in ("title", "desc")]
        widths = {g.find(SVG + "title").text.split(":")[0]: float(g.find(SVG + "rect").get("width"))
                  for g in svg.iter(SVG + "g")}
        assert widths["gemm"] == pytest.approx(3 * widths["embedding"], abs=0.2), widths
        assert widths[name] == pytest.approx(widths[name + ", threads"], abs=0.2), widths

        scope = json.loads(paths["speedscope"].read_text())
        waves, threads = scope["profiles"]
        frames = scope["shared"]["frames"]
        weights = {tuple(frames[i]["name"] for i in stack): weight
                   for stack, weight in zip(waves["samples"], waves["weights"])}
        assert weights[(name, *gemm)] == pytest.approx(0.75 * n), weights
        for profile in (waves, threads):
            assert profile["type"] == "sampled" and profile["endValue"] == pytest.approx(sum(profile["weights"])) == n

        pprof = Profile(paths["pprof"])
        assert pprof.types == [("captures", "thousandths"), ("time", "nanoseconds"), ("thread_captures", "thousandths"),
                               ("thread_time", "nanoseconds")] and pprof.default == "time"
        values = {tuple(f[0] for f in stack): v for stack, v in pprof.samples}
        assert values[(gemm[1], gemm[0], name)][::2] == [750 * n, 0], values
        assert sum(v[1] for v in values.values()) == pytest.approx(pprof.duration_ns, rel=1e-6)
        assert (gemm[1], "/src/train.hip", 61) in [stack[0] for stack, _ in pprof.samples], pprof.samples
        assert f"{n} captures in" in pprof.comment


def test_ends_with_the_process():
    with Scene(app=STILL, gpus="gfx90a") as s, \
            recording(s, "-d", "60s", "--overhead", "20%", f"--collapsed={s.directory}/x") as run:
        wait_for_capture(s)
        time.sleep(0.3)
        s.app.popen.kill()
        out, err = run.communicate(timeout=PATIENCE)
        document = json.loads(out)
        assert document["ended"] == "process ended" and document["captures"], (document, err)
        # A capture while it ends may lack something, which is told.
        assert run.returncode == (0 if document["complete"] else 8), (document, err)
        assert f"process {s.app.pid} has ended" in err, err
        assert "gemm;" in (s.directory / "x").read_text()


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_what_it_has(signo):
    with Scene(app=STILL, gpus="gfx90a") as s, \
            recording(s, "-d", "60s", "--overhead", "20%", f"--svg={s.directory}/x.svg") as run:
        wait_for_capture(s)
        time.sleep(0.3)
        run.send_signal(signo)
        out, err = run.communicate(timeout=PATIENCE)
        document = json.loads(out)
        assert run.returncode == 128 + signo and document["ended"] == "signal", (run.returncode, document, err)
        assert document["captures"], document
        xml.etree.ElementTree.parse(s.directory / "x.svg")
        wait_until(lambda: not s.target_state()["enabled"], "the process is let go")
        assert not s.target_state()["suspended_queues"]


def test_a_signal_is_heard_while_the_agent_does_not_answer():
    """And for how long that capture has stopped queues is not told as if it had been measured."""
    with Scene(app=STILL, gpus="gfx90a") as s, recording(s, "-d", "300s", "--overhead", "20%", "--timeout", "200s") as run:
        wait_for_capture(s)
        os.kill(s.front_pid(), signal.SIGSTOP)
        try:
            time.sleep(2)  # longer than the slot of any capture before it
            begun = time.monotonic()
            run.send_signal(signal.SIGINT)
            document = json.loads(run.communicate(timeout=PATIENCE)[0])
            assert time.monotonic() - begun < 40
        finally:
            os.kill(s.front_pid(), signal.SIGCONT)
        assert run.returncode == 128 + signal.SIGINT and document["ended"] == "signal" and document["captures"], document
        assert document["unmeasured_us"] > 1e6 and document["stopped_us"] < 1e6, document
        assert document["overhead_ppm"] == pytest.approx(document["stopped_us"] / document["duration_us"] * 1e6, abs=2)
        wait_until(lambda: not s.target_state()["enabled"], "the process is let go")
        assert not s.target_state()["suspended_queues"]


def test_the_agent_may_go():
    with Scene(app=STILL, gpus="gfx90a") as s, \
            recording(s, "-d", "60s", "--overhead", "20%", f"--pprof={s.directory}/x.pb") as run:
        wait_for_capture(s)
        time.sleep(0.3)
        kill_agent(s.agentd.pid)
        out, err = run.communicate(timeout=PATIENCE)
        document = json.loads(out)
        assert run.returncode == 9 and document["ended"] == "lost", (run.returncode, document, err)
        assert document["captures"], document
        assert "the recording ends early" in err, err
        assert Profile(s.directory / "x.pb").samples


def test_killed_at_any_moment_it_leaves_nothing_stopped():
    with Scene(app=STILL, gpus="gfx90a") as s:
        s.control("delay suspend 20 100000")
        for i in range(5):
            with recording(s, "-d", "60s", "--overhead", "50%") as run:
                before = suspensions(s)
                wait_until(lambda: suspensions(s) > before, "a capture")  # pylint: disable=cell-var-from-loop
                time.sleep(0.013 * i)
                run.kill()
            wait_until(lambda: not s.target_state()["suspended_queues"], "no queue is suspended")
        wait_until(lambda: all(q["running"] for q in s.target_state()["queues"]), "the queues run")


def test_says_what_is_missing_and_what_is_wrong():
    with Scene(app=STILL, gpus="gfx90a") as s:
        # Each capture's own budget ends before its waves are seen.
        s.control("delay suspend 100 100000")
        document = record(s, "-d", "1s", "--overhead", "50%", "--max-stop", "1ms", status=8)
        assert not document["complete"] and not document["captures"], document
        assert document["cut"] + document["failed"], document
        assert document["missing"] and document["shares"] == [], document
        for wrong, words in ((("--overhead", "0"), "--overhead"), (("--overhead", "60%"), "up to 50%"),
                             (("--rate", "0"), "--rate"), (("-d", "0"), "--duration")):
            run = s.ctl("record", s.app.pid, *wrong)
            assert run.returncode == 2 and words in run.stderr, (wrong, run.stderr)
        run = s.ctl("record", s.app.pid, "--svg", s.directory / "x", "--pprof", s.directory / "x")
        assert run.returncode == 2 and "one file" in run.stderr, run.stderr
        # Before anything is captured, and not after it.
        begun = time.monotonic()
        run = s.ctl("record", s.app.pid, "-d", "50s", "--svg", "/nonexistent/x.svg")
        assert run.returncode == 1 and "/nonexistent/x.svg" in run.stderr and time.monotonic() - begun < 40, run.stderr
        assert s.ctl("record", 1).returncode in (3, 4, 5)


def test_a_recording_without_a_capture_is_not_complete():
    with Scene(app=STILL, gpus="gfx90a") as s:
        run = s.ctl("record", s.app.pid, "-j", "-d", "1ms", "--rate", 1)
        document = json.loads(run.stdout)
        # One in a thousand of them comes within the first millisecond of its second.
        assert run.returncode == (0 if document["captures"] else 8), (run.returncode, document)
        assert document["complete"] == bool(document["captures"]) == (not document["missing"]), document


def test_names_that_xml_refuses():
    with Scene(app=f"name a\ufffe\uffffb; {STILL}", gpus="gfx90a") as s:
        record(s, "-d", "500ms", "--overhead", "20%", f"--svg={s.directory}/x.svg")
        assert "\\ufffe" in xml.etree.ElementTree.parse(s.directory / "x.svg").getroot().find(SVG + "title").text


def test_sees_a_program_without_waves():
    with Scene(app="runtime on; queues 1; idle; listen", gpus="gfx90a") as s:
        document = record(s, "-d", "300ms")
        assert [e["frames"][0]["name"] for e in document["shares"]] == ["(no waves)"], document
        assert document["shares"][0]["share_ppm"] == 1000000, document


def test_records_a_cuda_process():
    with CudaScene() as s:
        document = record(s, "-d", "2s", "--overhead", "30%")
        assert document["complete"] and document["captures"] > 3 and document["stopped_us"], document
        assert [f["name"] for f in document["shares"][0]["frames"]] == ["spin", "spin.cu:15"], document
        assert share_of(document, "spin.cu:15")[0] == 1, document


def test_top_shows_table_after_table():
    with Scene(app=STILL, gpus="gfx90a") as s:
        run = s.ctl("top", s.app.pid, "-n", 2, "--interval", 700, "--overhead", "20%")
        assert run.returncode == 0 and "\x1b" not in run.stdout, (run.returncode, run.stderr)
        assert run.stdout.count("75.0 %") == 2 and run.stdout.count("train.hip:61 <- dot(") == 2, run.stdout
        run = s.ctl("top", s.app.pid, "-n", 3, "--interval", 500, "--overhead", "20%", "-j")
        documents = [json.loads(line) for line in run.stdout.splitlines()]
        assert len(documents) == 3 and run.returncode == 0, run.stdout
        # Each is of its own time.
        for first, second in zip(documents, documents[1:]):
            assert second["time_us"] >= first["time_us"] + first["duration_us"] - 1000, documents
            assert second["captures"] and share_of(second, "train.hip:29")[0] == 0.25, documents
        run = s.ctl("top", s.app.pid, "--once", "--interval", 300)
        assert run.returncode == 0 and " capture" in run.stdout.splitlines()[0], run.stdout
        for wrong in (("--once", "-n", 2), ("-n", 0), ("--interval", 1)):
            assert s.ctl("top", s.app.pid, *wrong).returncode == 2, wrong


@pytest.mark.parametrize("cut", [False, True])
def test_top_draws_a_page_and_quits(cut):
    with Scene(app=STILL, gpus="gfx90a") as s:
        master, slave = pty.openpty()
        env = {**os.environ, "GPU_AGENT_SOCKET": str(s.socket), "TERM": "xterm", "COLUMNS": "100", "LINES": "24"}
        argv = [BIN / "gpu-agentctl", "top", str(s.app.pid), "--interval", "300", "--overhead", "20%"]
        if cut:
            argv += ["--max-stop", "1ms"]
            s.control("delay suspend 100 100000")
        with subprocess.Popen(argv, env=env, stdin=slave, stdout=slave, stderr=subprocess.PIPE) as popen:
            os.close(slave)
            seen = b""
            while seen.count(b"missing: " if cut else b"train.hip:61") < 2 or b"q quit" not in seen:
                assert select.select([master], [], [], PATIENCE)[0], seen
                seen += os.read(master, 65536)
            os.write(master, b"xq")
            while select.select([master], [], [], 0.2)[0]:
                with contextlib.suppress(OSError):
                    if os.read(master, 65536):
                        continue
                break
            assert popen.wait(PATIENCE) in ((0, 8) if cut else (0,))
            # Nothing is written into the page.
            assert popen.stderr.read() == b""
        os.close(master)


def test_top_ends_with_the_process():
    with Scene(app=STILL, gpus="gfx90a") as s:
        env = {**os.environ, "GPU_AGENT_SOCKET": str(s.socket)}
        argv = [BIN / "gpu-agentctl", "top", str(s.app.pid), "--interval", "300"]
        with subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as popen:
            popen.stdout.readline()
            s.app.popen.kill()
            err = popen.communicate(timeout=PATIENCE)[1]
            assert popen.returncode == 0 and "has ended" in err, (popen.returncode, err)
