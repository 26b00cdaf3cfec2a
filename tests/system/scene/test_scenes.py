#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The scenes that are installed, and scripts/demo: what a person sees who has no GPU and types one command."""
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from demo import Traces
from harness import BIN, LONG_STOP, ROOT, CudaScene, Scene, wait_until

# Positions of both vendors' kernels, each file:line and function of a chain.  Waves of gemm are at two lines.
FAULT = ("train:17", "load_row<float>", "train:22", "lookup<float>", "train:29", "embedding")
BEHIND = ("train:29", "embedding")
HANG = ("train:37", "wait_for_peer", "train:42", "ring_step", "train:51", "all_reduce")
GEMM = [("train:61", "dot", "train:71", "gemm"), ("train:62", "dot", "train:71", "gemm")]
VIOLATION = "memory_violation"
# Of each scene: verdicts of its queues, and waves by position and reason, without those of gemm.
SCENES = {
    ("amd", "fault-and-hang"): (["hung", "progressing"] * 2, {(FAULT, VIOLATION): 3, (BEHIND, None): 125 + 64, (HANG, None): 384}),
    ("amd", "hang"): (["hung", "progressing"], {(HANG, None): 384}),
    ("amd", "fault"): (["hung", "progressing"], {(FAULT, VIOLATION): 3, (BEHIND, None): 125}),
    ("amd", "progress"): (["progressing"] * 2, {(BEHIND, None): 64}),
    ("cuda", "fault-and-hang"): (["hung"] * 2 + ["progressing"] * 2, {(FAULT, VIOLATION): 3, (BEHIND, None): 61, (HANG, None): 192}),
    ("cuda", "hang"): (["hung", "progressing"], {(HANG, None): 192}),
    ("cuda", "fault"): (["hung", "progressing"], {(FAULT, VIOLATION): 3, (BEHIND, None): 61}),
    ("cuda", "progress"): (["progressing"] * 2, {}),
}
# Those about waits are in test_why_scenes.py, other-collective in test_collective_scenes.py, crossed-collectives in test_circle_scenes.py
# and test_nccl_scenes.py, late-rank in the latter, crossed-pairs and late-leaf in test_nccl_work_scenes.py.
WAITS = {"amd": ["absent-from-grid", "behind-a-fault", "crossed-collectives", "fault-at-barrier", "late-at-barrier", "no-answer",
                 "no-answer-phases", "no-packet", "no-signal", "other-collective", "own-stream", "two-streams"],
         "cuda": ["crossed-barriers", "crossed-collectives", "crossed-pairs", "exited-at-barrier", "exited-before-grid",
                  "fault-at-barrier", "fault-before-cluster", "late-leaf", "late-rank", "retired-consumers", "two-places", "unset-flag"]}
# Those in directories of their own: programs in which nothing is wrong (test_why_controls.py), and in which words are polled.
INSIDE = {vendor: {d: sorted(p.name[:-6] for p in (ROOT / "sim/scenes" / vendor / d).glob("*.scene"))
                   for d in ("barriers", "controls", "convergence", "gws", "spin") if (ROOT / "sim/scenes" / vendor / d).is_dir()}
          for vendor in WAITS}
PROGRAM = {"amd": "gpu-agent-simapp", "cuda": "gpu-agent-cuda-simapp"}
NAME = {"amd": "AMD Instinct MI210", "cuda": "NVIDIA H100 80GB HBM3"}
VENDORS = pytest.mark.parametrize("vendor", PROGRAM)


def names(vendor):
    """The first word of each line of a list."""
    found = sorted([*(name for v, name in SCENES if v == vendor), *WAITS[vendor]], key=lambda name: f"{name}.scene")
    shown = found + [word for d, inside in INSIDE[vendor].items() for word in (f"{d}:", *inside)]
    assert len(set(shown)) == len(shown), "a name is of two scenes"
    return shown


@contextlib.contextmanager
def playing(vendor, name):
    """A program that runs a scene instead of a script, and everything around it."""
    with Scene(app=None, gpus="gfx90a,gfx90a") if vendor == "amd" else CudaScene(app=None) as s:
        device = ["--kfd", s.mount / "kfd"] if vendor == "amd" else []
        env = {} if vendor == "amd" else {"LD_LIBRARY_PATH": str(s.libraries)}
        s.app = s.start("app", [BIN / PROGRAM[vendor], *device, "--scene", name], env=env)
        s.app.wait_line()
        yield s


def position(group):
    """file:line and function of each frame, innermost first."""
    words = []
    for frame in group["frames"]:
        file = re.search(r"([^/]*)\.(hip|cu)$", frame["file"])[1]
        words += [f"{file}:{frame['line']}", re.sub(r"^\w+ |\(.*", "", frame["function"])]
    return tuple(words)


@pytest.mark.parametrize(("vendor", "name"), SCENES)
def test_scene(vendor, name):
    """Every wave is at a line of a kernel, and every queue does what the scene says."""
    verdicts, places = SCENES[vendor, name]
    with playing(vendor, name) as s:
        # A grid of gemm takes a quarter of a second, in which its GPU does not stand still.
        run = s.ctl("snapshot", s.app.pid, "--again", "1000", LONG_STOP, "-j")
        assert run.returncode == (10 if "hung" in verdicts else 0), (run.returncode, run.stdout, run.stderr)
        document = json.loads(run.stdout)
        assert [q["verdict"] for q in sorted(document["queues"], key=lambda q: q["queue_id"])] == verdicts, document["queues"]
        snapshot, found, lines = document["snapshot"], {}, set()
        assert snapshot["complete"], snapshot["missing"]
        assert all(q["first_dispatch"] <= q["last_dispatch"] for q in snapshot["queues"] if q["waves"]), snapshot["queues"]
        assert {d["name"] for d in snapshot["devices"]} == {NAME[vendor]}, snapshot["devices"]
        for group in snapshot["groups"]:
            assert group["kernel"]["name"] in ("embedding", "all_reduce", "gemm"), group
            assert group["frames"] and all(f["line"] for f in group["frames"]), group
            reason, = group.get("reasons") or [None]
            if group["kernel"]["name"] == "gemm":
                lines.add(position(group))
            else:
                found[position(group), reason] = found.get((position(group), reason), 0) + group["waves"]
        assert found == places and sorted(lines) == GEMM, (found, lines)


def test_watch_adds_up_how_long_a_queue_stands_still():
    with playing("amd", "hang") as s:
        run = s.ctl("watch", s.app.pid, "--count", 4, "--interval", 1000, LONG_STOP)
    assert run.returncode == 0, run
    stuck = [float(seconds) for seconds in re.findall(r" all_reduce .* stuck for ([0-9.]+) s\n", run.stdout)]
    assert len(stuck) == 3 and stuck[0] >= 1 and stuck[1] - stuck[0] >= 0.9 and stuck[2] - stuck[1] >= 0.9, run.stdout


def test_what_goes_on_is_called_moving():
    """The page for NVIDIA: one context hangs, the other one ends grids, and nobody calls it slow."""
    with playing("cuda", "hang") as s:
        run = s.ctl("snapshot", s.app.pid, "--again", "1000", LONG_STOP)
        assert run.returncode == 10, (run.stdout, run.stderr)
        headline = run.stdout.partition("\ntrain ")[0]
        assert headline.startswith("HUNG ") and "context 0" in headline and "context 1" not in headline, run.stdout
        assert "SLOW" not in run.stdout and re.search(r"gemm .* moving$", run.stdout, re.M), run.stdout
        assert re.search(r"^ *1 +1 +64 +moved on", run.stdout, re.M), run.stdout
        assert re.search(r"^ *0 +0 +192 +none: hung", run.stdout, re.M), run.stdout
    with playing("cuda", "progress") as s:
        run = s.ctl("snapshot", s.app.pid, "--again", "1000", LONG_STOP)
        assert run.returncode == 0 and run.stdout.startswith("Nothing is wrong: 128 warps, all contexts moving\n"), run.stdout


def test_queues_go_on_for_ever():
    """More packets than a ring holds; a hung queue takes none of them, and the program sleeps nearly all the time."""
    with playing("amd", "fault-and-hang") as s:
        def taken():
            return [q["packets"] for q in s.target_state()["queues"]]
        before = taken()
        s.control("progress 1")
        wait_until(lambda: taken()[1] > before[1] + 1024 and taken()[3] > before[3] + 1024, "packets")
        assert (before[0], before[2]) == (taken()[0], taken()[2])


@VENDORS
def test_no_such_scene(vendor):
    """The answer to a wrong name is those there are."""
    for name in ("nosuch", "../amd/hang"):
        run = subprocess.run([BIN / PROGRAM[vendor], "--scene", name], capture_output=True, text=True, timeout=60)
        assert run.returncode == 2 and f"no scene '{name}'" in run.stderr, run
        assert [line.split()[0] for line in run.stderr.splitlines()[1:]] == names(vendor), run.stderr
    run = subprocess.run([BIN / PROGRAM[vendor], "--list-scenes"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and [line.split()[0] for line in run.stdout.splitlines()] == names(vendor), run
    run = subprocess.run([BIN / PROGRAM[vendor], "--scene", "hang", "--scene-dir", "/nonexistent"], capture_output=True,
                         text=True, timeout=60)
    assert run.returncode == 2 and "no directory of scenes" in run.stderr, run


def test_scenes_of_ones_own():
    """A directory of scenes, with files beside them, wherever the program runs; and the list of it."""
    with tempfile.TemporaryDirectory(prefix="gpu-agent-test.") as d, Scene(app=None, gpus="gfx90a,gfx90a", start_agent=False) as s:
        mine = pathlib.Path(d) / "amd"
        mine.mkdir()
        (mine / "mine.scene").write_text("# one of mine; nothing special\nload code.co; # comments; end with the line\ndispatches\n")
        (mine / "code.co").write_bytes((ROOT / "tests/data/codeobj/spin-gfx90a.co").read_bytes())
        argv = [BIN / "gpu-agent-simapp", "--kfd", s.mount / "kfd", "--scene-dir", d]
        run = subprocess.run([*argv, "--list-scenes"], capture_output=True, text=True, timeout=60)
        assert run.returncode == 0 and re.fullmatch(r" +mine +one of mine; nothing special\n", run.stdout), run
        # Only the last line is wrong.
        run = subprocess.run([*argv, "--scene", "mine"], capture_output=True, text=True, timeout=60, cwd="/")
        place = f"simapp: {mine}/mine.scene:3: "
        assert run.returncode == 1 and run.stderr == place + "'dispatches': Invalid argument\n", run
        # Where a scene lies in a directory there, its files are looked for in that one; the list has it below its name.
        (mine / "more").mkdir()
        (mine / "more" / "deep.scene").write_text("# deeper\nload ../code.co\ndispatches\n")
        run = subprocess.run([*argv, "--scene", "deep"], capture_output=True, text=True, timeout=60, cwd="/")
        assert run.returncode == 1 and run.stderr == f"simapp: {mine}/more/deep.scene:3: 'dispatches': Invalid argument\n", run
        run = subprocess.run([*argv, "--list-scenes"], capture_output=True, text=True, timeout=60)
        assert run.returncode == 0 and re.fullmatch(r" +mine .*\nmore:\n +deep +deeper\n", run.stdout), run
        # The same by its path, wherever that lies.
        run = subprocess.run([*argv[:3], "--scene", mine / "mine.scene"], capture_output=True, text=True, timeout=60, cwd="/")
        assert run.returncode == 1 and run.stderr == place + "'dispatches': Invalid argument\n", run


def test_what_cannot_be_read_hides_no_other_scene(tmp_path):
    """A directory may be a link; and where no scene of a name can be read, it is said which file could not."""
    amd = tmp_path / "amd"
    for directory in amd / "a", amd / "b", tmp_path / "elsewhere":
        directory.mkdir(parents=True)
    (amd / "a" / "twice.scene").symlink_to("twice.scene")
    (amd / "a" / "once.scene").symlink_to("once.scene")
    (amd / "b" / "twice.scene").write_text("# of b\nname $x\n")
    (amd / "c").symlink_to("../elsewhere")
    (tmp_path / "elsewhere" / "linked.scene").write_text("# of a link\nname $x\n")
    loop = "Too many levels of symbolic links"
    argv = [BIN / "gpu-agent-simapp", "--kfd", "/nonexistent", "--scene-dir", tmp_path]
    for name, file, why in (("twice", amd / "b" / "twice.scene:2", "'name $x': "), ("once", amd / "a" / "once.scene", loop),
                            ("linked", amd / "c" / "linked.scene:2", "'name $x': ")):
        run = subprocess.run([*argv, "--scene", name], capture_output=True, text=True, timeout=60)
        assert run.returncode == 1 and run.stderr.startswith(f"simapp: {file}: {why}"), run
    run = subprocess.run([*argv, "--list-scenes"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and run.stdout.split("\n") == [
        "a:", f"  once             cannot be read: {loop}", f"  twice            cannot be read: {loop}",
        "b:", "  twice            of b", "c:", "  linked           of a link", ""], run
    # Nor does one beside them.
    (amd / "twice.scene").symlink_to("twice.scene")
    run = subprocess.run([*argv, "--scene", "twice"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1 and run.stderr.startswith(f"simapp: {amd}/b/twice.scene:2: "), run


@pytest.mark.parametrize(("text", "args", "why"), [
    ("name $x", (), "1: 'name $x': it names a parameter that was not let"),
    ("\n\nname a; name $", (), "3: 'name $': the name of a parameter must follow $"),
    ("let x", (), "1: 'let x': must be NAME=VALUE"),
    ("let x=1\nname a\0b", (), "2: 'name a': there is a zero byte in it"),
    ("name " + "a " * 40, (), "1: '" + ("name " + "a " * 40)[:127] + "': it has more than 32 words"),
    ("let x=" + "a" * 200, (), "1: '" + ("let x=" + "a" * 200)[:127] + "': a parameter is too long, or there are more than 32"),
    ("let x=1\nname $x", ("--set", "x=b,y=2"), "--set y: the script has no such parameter"),
    ("let x=1\nname $x", ("--set", "x"), "--set x: must be NAME=VALUE"),
])
def test_mistakes_of_a_script_are_told_before_it_runs(tmp_path, text, args, why):
    path = tmp_path / "a.scene"
    path.write_text(text)
    run = subprocess.run([BIN / "gpu-agent-simapp", "--kfd", "/nonexistent", "--scene", path, *args], capture_output=True, text=True,
                         timeout=60)
    place = "" if why.startswith("--") else f"{path}:"
    assert run.returncode == (1 if place else 2) and run.stderr == f"simapp: {place}{why}\n", run


def test_a_scene_on_other_gpus():
    with Scene(app=None, gpus="gfx942", start_agent=False) as s:
        run = subprocess.run([BIN / "gpu-agent-simapp", "--kfd", s.mount / "kfd", "--scene", "hang"], capture_output=True, text=True,
                             timeout=60)
        assert run.returncode == 1 and "start: gpu-agent-sim --gpus gfx90a,gfx90a\n" in run.stderr, run


# ------------------------------------------------------------------------------- scripts/demo ------------------------

VENDOR_OPTION = {"amd": [], "cuda": ["--cuda"]}


@VENDORS
def test_demo_says_what_is_wrong(vendor):
    """The first command of all."""
    fault, suffix = {"amd": ("memory.violation", "hip"), "cuda": ("illegal address", "cu")}[vendor]
    with Traces() as t:
        run = t.demo(*VENDOR_OPTION[vendor])
        assert run.returncode == 0, (run.returncode, run.stdout, run.stderr)
        for words in ("^train  pid", "hung", fault, "embedding", "all_reduce", "gemm", rf"train\.{suffix}:17",
                      rf"train\.{suffix}:37",
                      r"load_row\S*\s+<- lookup", r"wait_for_peer\s+<- ring_step"):
            assert re.search(words, run.stdout, re.I | re.M), (words, run.stdout)
        t.check()


@VENDORS
def test_demo_runs_any_verb(vendor):
    with Traces() as t:
        run = t.demo(*VENDOR_OPTION[vendor], "--scene", "hang", "queues", "PID", "-j")
        assert run.returncode == 0 and len(json.loads(run.stdout)["queues"]) == 2, run
        run = t.demo(*VENDOR_OPTION[vendor], "snapshot", "1", "PID")
        assert run.returncode == 2, run
        run = t.demo(*VENDOR_OPTION[vendor], "--scene", "nosuch")
        assert run.returncode == 1 and "no scene 'nosuch'" in run.stderr and "fault-and-hang" in run.stderr, run
        t.check()


def test_demo_with_a_shell():
    """Several verbs on one program."""
    with Traces() as t:
        run = t.demo("--shell", input="echo pid $PID\ngpu-agentctl snapshot $PID -j --max-stop 5s\ngpu-agentctl list -j\nexit 7\n")
        assert run.returncode == 7, run
        first, *documents = run.stdout.splitlines()
        pid = int(first.split()[1])
        assert f"process {pid}" in run.stderr, run.stderr
        decoder, text, found = json.JSONDecoder(), "\n".join(documents), []
        while text.strip():
            document, end = decoder.raw_decode(text)
            found.append(document)
            text = text[end:].lstrip()
        assert len(found) == 2 and sum(g["waves"] for g in found[0]["groups"]) == 1088, documents
        assert pid in [p["pid"] for p in found[1]["processes"]], found[1]
        t.check()


@VENDORS
def test_core_of_the_demo(vendor):
    """A core of the scene says the same as the live program."""
    with Traces() as t, tempfile.TemporaryDirectory(prefix="gpu-agent-test.") as d:
        core = pathlib.Path(d) / "core"
        # Some 30,000 calls of CUDA's debugger, one after the other, and two processes wake each other for each: beside
        # many busy ones the longest stop that there is does not last.  What a short one leaves out is tested elsewhere.
        run = t.demo(*VENDOR_OPTION[vendor], "dump", "PID", LONG_STOP, "-o", core, first=True)
        assert run.returncode == 0, run.stderr
        run = subprocess.run([BIN / "gpu-agentctl", "analyze", core, "-j"], capture_output=True, text=True, timeout=60)
        document = json.loads(run.stdout)
        assert run.returncode == 0 and document["complete"], run
        faulted, = (g for g in document["groups"] if g.get("reasons"))
        assert {d["name"] for d in document["devices"]} == {NAME[vendor]}, document["devices"]
        assert position(faulted) == FAULT and faulted["waves"] == 3 and faulted["reasons"] == [VIOLATION], faulted
        t.check()
