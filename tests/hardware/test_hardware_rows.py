#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The judge judged: rows of scripts/gpu-check on programs, debuggers and machines that are not as they should be.

Each row is first seen to pass on the simulator, and then to fail, or to be skipped with its reason, for what is wrong.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN, LONG_STOP, ROOT, status, wait_until

sys.dont_write_bytecode = True
import facts
import nvgdb
import programs
import rows
import rows_core
import rows_look
import rows_measure
import rows_values
from engine import Engine
from programs import CARRIED, HARDWARE_KINDS, KERNELS, Lab, SimulatedProgram, planted_values

# A bundle has it beside the others.
rows_measure.BIN = BIN.parent / "tests"


class Here:
    """A bench as rows.py makes one, with the daemon of the build."""

    def __init__(self, release="12.4"):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="hardware-rows."))
        self.engine = Engine(300, self.directory / "rows.log")
        self.lab = Lab(self.engine, release)
        self.b = rows.Bench(self.engine, self.lab, True)

    def __enter__(self):
        self.lab.prepare()
        self.b.start_agent()
        return self

    def __exit__(self, *_):
        self.b.stop_agent()
        self.lab.end()
        self.engine.retire()
        shutil.rmtree(self.directory, ignore_errors=True)

    def row(self, function, p, seconds=30):
        """(result, detail) of one row."""
        self.b.start_agent()
        self.engine.step("row", p.name if p else "", function, self.b, *([p] if p else []), seconds=seconds)
        return self.engine.rows[-1][2], self.engine.rows[-1][4]

    def whole(self, name, *only):
        """name -> (result, detail) of the rows of a program, after a list of them is cut to some."""
        n = len(self.engine.rows)
        rows_look.rows_of_program(self.b, name, list(only))
        return {r[0]: (r[2], r[4]) for r in self.engine.rows[n:]}


@pytest.fixture(scope="module")
def here():
    with Here() as h:
        yield h


@pytest.fixture
def program(here):
    started = []

    def start(name):
        started.append(here.lab.start(name))
        return started[-1]

    yield start
    for p in started:
        p.stop()
    here.b.no_session = ""


def fails(here, function, p, words):
    result, detail = here.row(function, p)
    assert result == "FAIL" and words in detail, (result, detail)


def passes(here, function, p):
    result, detail = here.row(function, p)
    assert result == "PASS", (result, detail)
    return detail


# -- the simulated program is not what it should be -----------------------------------------------------


def test_a_wrong_value_fails_its_row(here, program):
    p = program("values")
    for row in (rows_values.one_lane, rows_values.expressions, rows_values.lanes):
        passes(here, row, p)
    with rows_values.Held(here.b, p) as h:
        where = {v["name"]: v.get("location", "") for v in h.variables(lane=rows_values.LANE)["variables"]}
        register = where["index"]
        assert register.startswith("R"), where
        here.lab.scene.control(f"register 0 {h.ref['unit']} {h.ref['index']} {rows_values.LANE} {register[1:]} 7", p.app)
    fails(here, rows_values.one_lane, p, "14 right, 1 wrong, 0 unknown, 0 not listed; the first: index is 7, not 165")
    fails(here, rows_values.expressions, p, "wrong")


def test_a_value_that_is_not_told_fails_its_row(here, program):
    """The stack is nowhere: those on it are unreadable, and counted."""
    p = program("values")
    with rows_values.Held(here.b, p) as h:
        here.lab.scene.control(f"register 0 {h.ref['unit']} {h.ref['index']} {rows_values.LANE} 1 0x800000", p.app)
    fails(here, rows_values.one_lane, p, "12 right, 0 wrong, 3 unknown, 0 not listed; the first: both (unreadable)")


def test_a_warp_elsewhere_fails_the_snapshot(here, program):
    p = program("spin")
    passes(here, rows_look.snapped, p)
    here.lab.scene.control("warp 0 2 1 pc=0x0", p.app)
    fails(here, rows_look.snapped, p, "1 warps are at ")


def test_fewer_warps_than_the_kernel_has_fail_the_snapshot(here, program):
    p = program("spin")
    p.kind = types.SimpleNamespace(**{**vars(p.kind), "warps": 33})
    fails(here, rows_look.snapped, p, "32 warps are listed, the kernel has 33")


def document(**frame):
    """A snapshot of one warp, as complete as it can be."""
    return {"complete": True, "missing": [], "waves": [{"group": 0}], "groups": [
        {"kernel": {"name": "spin"}, "frames": [frame] if frame else [], "pc": "0x10", "waves": 1, "lanes_max": 32}]}


def of_kind(**changes):
    kind = {"kernel": "spin", "source": "spin.cu", "places": [{5}], "lines": {5}, "warps": 1, "lanes": 32, "faults": {6}}
    return types.SimpleNamespace(kind=types.SimpleNamespace(**{**kind, **changes}))


def test_no_line_is_no_success():
    assert rows_look.check_snapshot(document(line=5, file="/src/spin.cu"), of_kind()) == {5}
    for doc, p, words in ((document(), of_kind(), "are at 0x10"), (document(file="spin.cu"), of_kind(), "are at 0x10"),
                          (document(line=5, file="other.cu"), of_kind(), "are at 0x10"),
                          (document(line=5, file="spin.cu"), of_kind(places=[{5}, {8}], lines={5, 8}), "no warp is at [8]"),
                          (document(line=5, file="spin.cu"), of_kind(kernel="diverge"), "no group is in kernel diverge")):
        with pytest.raises(AssertionError) as raised:
            rows_look.check_snapshot(doc, p)
        assert words in str(raised.value), raised.value
    with pytest.raises(AssertionError):
        rows_look.check_fault({"exception": "illegal address", "frames": [], "pc": "0x10"}, of_kind())
    with pytest.raises(AssertionError):
        rows_look.check_fault({"frames": [{"line": 6, "file": "spin.cu"}], "pc": "0x10"}, of_kind())


def test_a_warp_that_has_not_diverged_fails_its_row(here, program):
    p = program("diverge")
    passes(here, rows_look.diverged, p)
    for unit in range(4):
        for warp in range(2):
            here.lab.scene.control(f"warp 0 {unit} {warp} pc=0x160 idle=0x160 active=0xffffffff", p.app)
    fails(here, rows_look.diverged, p, "has not diverged")


def test_parts_of_warps_must_be_all_lanes_and_both_places(here):
    """On documents: a daemon that tells parts, one that forgets some, and one that tells none."""
    kind = of_kind(kernel="diverge", places=[{5}, {8}], lines={5, 8}, lanes=16)
    groups = [{"kernel": {"name": "diverge"}, "frames": [{"line": n, "file": "spin.cu"}], "pc": "0x10"} for n in (5, 8)]
    ref = {"unit": 0, "index": 0}

    def judged(parts, n_diverged=1, seen_high=frozenset({"0x20"})):
        wave = {"group": 0, "pc": "0x10", "ref": ref, **({"parts": parts} if parts else {})}
        here.b.diverged = ({"groups": groups, "waves": [wave], "diverged_waves": n_diverged}, ref, {"0x10"}, seen_high)
        return here.row(lambda b, p: rows_look.parted(b, p), kind_program)

    kind_program = types.SimpleNamespace(name="diverge", kind=kind.kind)
    low = {"pc": "0x10", "exec": "0xffff", "lanes": 16, "group": 0}
    high = {"pc": "0x20", "exec": "0xffff0000", "lanes": 16, "group": 1}
    try:
        assert judged([low, high])[0] == "PASS"
        assert judged(None) == ("SKIP", "this daemon tells no parts of warps")
        for parts, n in (([low, {**high, "exec": "0xff0000"}], 1), ([low, {**high, "group": 0}], 1), ([high, low], 1), ([low, high], 0),
                         ([{**low, "exec": "0x1ffff"}, {**high, "exec": "0xfffe0000"}], 1), ([low], 1)):
            assert judged(parts, n)[0] == "FAIL", parts
        assert judged([low, high], seen_high={"0x30"})[0] == "FAIL"
    finally:
        here.b.diverged = None


def test_a_fault_of_another_thread_fails_its_row(here, program):
    passes(here, rows_look.fault, program("fault"))
    p = program("fault")
    p.fault = lambda: here.lab.scene.control("raise 0 1 0 14 lanes=0x40 errorpc=0x50", p.app)
    fails(here, rows_look.fault, p, "expected 5 alone")
    p = program("fault")
    p.fault = lambda: here.lab.scene.control("raise 0 0 0 14 lanes=0x20 errorpc=0x50", p.app)
    fails(here, rows_look.fault, p, "is in block [0, 0, 0]")


# -- no session -----------------------------------------------------------------------------------------


def test_without_a_session_rows_say_so_and_the_fault_is_still_made(here):
    """The driver refuses: one row fails, those that need a session are skipped, those that need none are not."""
    original = here.lab.start

    def start(name, **kwargs):
        p = original(name, **kwargs)
        here.lab.scene.control("attach 10", p.app)
        return p

    here.lab.start = start
    try:
        result = here.whole("fault", ("attach", rows_look.attached), *rows_look.ROWS["fault"])
        values = here.whole("values", ("attach", rows_look.attached), ("variables", rows_values.one_lane), ("core", rows_core.ours_dumped))
    finally:
        here.lab.start = original
        here.b.no_session = ""
    assert result["attach"][0] == "FAIL" and result["the fault reaches the program"][0] == "PASS", result
    for told in (result["snapshot: kernel and lines"], result["events and snapshot on a fault"], values["variables"], values["core"]):
        assert told[0] == "SKIP" and told[1].startswith("no session: ") and "refuses" in told[1], (result, values)
    assert here.whole("spin", ("attach", rows_look.attached), ("again", rows_look.snapped))["again"][0] == "PASS"


def test_a_second_debugger_is_no_failure_of_the_rows_behind_it(here, program):
    p = program("spin")
    m = rows_measure.Held(here.b, "first debugger", p, "attach")
    try:
        assert m.all("holding"), m.lines
        result, detail = here.row(rows_look.attached, p)
        assert result == "FAIL" and "another debugger" in detail, (result, detail)
        assert here.row(rows_look.snapped, p) == ("SKIP", f"no session: {here.b.no_session}")
        assert "another debugger" in here.b.no_session
    finally:
        m.kill()


@pytest.mark.parametrize(("release", "wanted"), [("12.4", "SKIP"), ("12.9", "PASS")])
def test_convergence_barriers_are_a_fact(release, wanted):
    """Whatever they are; an older release does not tell them."""
    with Here(release) as h:
        h.b.stop_agent()
        p = h.lab.start("diverge")
        h.engine.step("row", p.name, rows_measure.convergence, h.b, p, seconds=30)
        result, detail = h.engine.rows[-1][2], h.engine.rows[-1][4]
        p.stop()
    assert result == wanted, (result, detail)
    assert not wanted == "PASS" or detail.startswith("of 1 GPU, "), detail


def test_system_calls_of_a_session_are_told(here, program):
    result, detail = here.row(rows_measure.system_calls, program("spin"))
    if result == "SKIP":
        pytest.skip(detail)
    assert result == "PASS", detail
    text = next(text for title, text in here.engine.sections if title == "system calls of a session")
    for words in ("ptrace:", "libcuda.so.1 flags", "listen:", "socket 1, ", "ioctl 0x"):
        assert words in text, (words, text)


def test_a_call_that_the_sandbox_would_refuse_is_named(here, program):
    """The engine makes a device file, as the vendor's does; the daemon that is not permissive refuses it that."""
    p, conf = program("spin"), here.lab.scene.libraries / "cudasim.conf"
    passes(here, rows_measure.unlisted_calls, p)
    before, made = conf.read_text(), here.directory / "nvidiactl"
    try:
        conf.write_text(f"{before}mknod {made}\n")
        fails(here, rows_measure.unlisted_calls, p, "not on the worker's list: mknod")
        assert here.engine.facts["system calls that are not on the worker's list"].startswith("mknod")
        made.unlink(missing_ok=True)
        passes(here, rows_look.attached, p)
        assert not made.exists() and not here.b.options
    finally:
        conf.write_text(before)


def test_rows_go_on_where_the_sandbox_keeps_the_driver_from_a_session(here, program, monkeypatch):
    p, conf = program("spin"), here.lab.scene.libraries / "cudasim.conf"
    before, look = conf.read_text(), rows_measure.whole_look
    monkeypatch.setattr(rows_measure, "whole_look", lambda agent, p: "error 999" if agent is here.b.agent else look(agent, p))
    try:
        conf.write_text(f"{before}mknod {here.directory / 'nvidiactl'}\n")
        fails(here, rows_measure.unlisted_calls, p, "a session fails for it (error 999): the rows below are of a daemon that is")
        passes(here, rows_look.attached, p)
        assert "not on its list: mknod" in here.b.agent.log()
    finally:
        conf.write_text(before)
        here.b.stop_agent()
        here.b.options = []
        here.b.start_agent()


def test_a_row_that_ruins_its_program_is_the_only_one_to_fail(here):
    def ruin(_b, p):
        os.kill(p.pid, signal.SIGKILL)
        wait_until(lambda: not p.alive, "it is gone")
        raise AssertionError("ruined")

    told = here.whole("spin", ("attach", rows_look.attached), ("ruin", ruin), ("behind it", rows_look.snapped))
    assert told["ruin"] == ("FAIL", "ruined") and told["behind it"][0] == "PASS", told


# -- the other debugger ---------------------------------------------------------------------------------


FAKE = """#!/bin/sh
case " $* " in *" --version "*) echo "a debugger"; exit;; esac
{behaviour}
"""


def fake_debugger(here, monkeypatch, behaviour):
    path = here.directory / "cuda-gdb"
    path.write_text(FAKE.format(behaviour=behaviour))
    path.chmod(0o755)
    monkeypatch.setenv("CUDA_GDB", str(path))


def test_without_cuda_gdb_rows_are_skipped_with_that_reason(here, program, monkeypatch):
    monkeypatch.setattr(facts, "find_debugger", lambda: None)
    monkeypatch.setattr(nvgdb, "find_debugger", lambda: None)
    p = program("values")
    here.b.our_core = pathlib.Path("/nonexistent")
    for row in (rows_values.values_of_both, rows_values.lines_of_both, rows_core.ours_in_cuda_gdb):
        assert here.row(row, p) == ("SKIP", "cuda-gdb is not installed")
    assert here.row(rows_core.fault_core_in_both, None) == ("SKIP", "cuda-gdb is not installed")
    monkeypatch.undo()
    fake_debugger(here, monkeypatch, "exit 0")
    here.b.our_core = None
    assert here.row(rows_core.ours_in_cuda_gdb, p) == ("SKIP", "there is no core of ours")


def test_a_debugger_that_says_nothing_or_hangs_fails_the_row(here, program, monkeypatch):
    p = program("values")
    passes(here, rows_core.ours_dumped, p)
    fake_debugger(here, monkeypatch, "echo 'cannot open it' >&2; exit 1")
    fails(here, rows_core.ours_in_cuda_gdb, p, "cuda-gdb answers 0 of 2 questions, exit 1: cannot open it")
    fake_debugger(here, monkeypatch, f"echo $$ >{here.directory}/pid; exec sleep 1000")
    result, detail = here.row(rows_core.ours_in_cuda_gdb, p, seconds=1.5)
    assert (result, detail) == ("FAIL", "not within 2 s"), (result, detail)
    pid = int((here.directory / "pid").read_text())
    wait_until(lambda: status(pid).get("State", "Z")[0] in "ZX", "the debugger is gone", 3)


# A debugger that has attached: it answers from a file, question by question.
LIVE = """#!{python}
import json, sys
known = json.load(open({answers!r}))
argv = sys.argv[1:]
if "--version" in argv:
    sys.exit(print("a debugger"))
assert "-p" in argv
print("attached")
thread = ""
for flag, command in zip(argv, argv[1:]):
    if flag == "-ex":
        if command.startswith("echo "):
            sys.stdout.write(command[5:].replace("\\\\n", "\\n"))
        else:
            thread = command if command.startswith("cuda block") else thread
            print(known.get(thread + command, known.get(command, "It does not know " + command)))
"""


def live_debugger(here, monkeypatch, answers):
    path, file = here.directory / "cuda-gdb", here.directory / "answers"
    file.write_text(json.dumps(answers))
    path.write_text(LIVE.format(python=sys.executable, answers=str(file)))
    path.chmod(0o755)
    monkeypatch.setenv("CUDA_GDB", str(path))
    monkeypatch.setattr(rows_values, "live_judge", nvgdb.CudaGdb)


def answers_of_thread(p, block, thread):
    """As cuda-gdb gives them where all is well."""
    v, listed = planted_values(block, thread), []
    for name, address in p.pointers().items():
        listed.append((name, f"(@generic void *) {address:#x}"))
    listed += [(name, text) for name, text in v.items() if name not in rows_values.BUILT_IN]
    mi = ",".join(f'{{name="{name}",value="{text}"}}' for name, text in listed)
    return {nvgdb.ask_thread(block, thread) + nvgdb.ASK_VARIABLES: f"^done,variables=[{mi}]",
            **{f"print {name}": f"$1 = {v[name]}" for name in rows_values.BUILT_IN},
            **{f"print {e}": f"$7 = {want(v, thread)}" for e, want in rows_values.EXPRESSIONS.items()}}


def test_values_beside_a_debugger_that_has_attached(here, program, monkeypatch):
    p = program("values")
    answers = {}
    for lane in (*rows_values.OTHER_LANES, rows_values.LANE):
        answers.update(answers_of_thread(p, 1, 32 + lane))
    variables, other = (nvgdb.ask_thread(1, 32 + lane) + nvgdb.ASK_VARIABLES for lane in (rows_values.LANE, 31))
    live_debugger(here, monkeypatch, answers)
    assert passes(here, rows_values.values_of_both, p).startswith("65 the same, 0 different, 0 unavailable here")
    for question, answer, words in (("print index % 128", "$7 = 38", "1 different"), ("print number", "No symbol", "1 known here only"),
                                    (variables, "No frame selected.", "lists no variables"),
                                    (other, "No frame selected.", "lists no variables"),
                                    (other, answers[variables], "8 different"),
                                    (variables, '^done,variables=[{name="w",value="0x7e1000"}]', "14 not listed by both")):
        live_debugger(here, monkeypatch, {**answers, question: answer})
        result, detail = here.row(rows_values.values_of_both, p)
        assert result == ("PASS" if "only" in words else "FAIL") and words in detail, (question, result, detail)
    # A value that only the other one has is a difference of its own.
    with rows_values.Held(here.b, p) as h:
        here.lab.scene.control(f"register 0 {h.ref['unit']} {h.ref['index']} {rows_values.LANE} 1 0x800000", p.app)
    live_debugger(here, monkeypatch, answers)
    fails(here, rows_values.values_of_both, p, "unavailable here but known there")


def test_lines_beside_a_debugger_that_has_attached(here, program, monkeypatch):
    p = program("spin")
    line = min(p.kind.lines)

    def row(file, number):
        return f'ThreadsRow={{kernel="0",filename="{file}",line="{number}"}}'

    question = nvgdb.ask_table("threads")
    live_debugger(here, monkeypatch, {question: "^done,T={body=[" + row("/src/spin.cu", line) + "]}"})
    assert passes(here, rows_values.lines_of_both, p).startswith(f"there [{line}], here [{line}]")
    for answer, words in (("^done,T={body=[]}", "no line of 0 rows"), ("nothing", "no line of 0 rows"),
                          (row("/src/other.cu", line), "no line of 1 rows"), (row("spin.cu", line + 1), f"there [{line + 1}]")):
        live_debugger(here, monkeypatch, {question: answer})
        fails(here, rows_values.lines_of_both, p, words)


def variable(name, value=None, state="ok", scope="local"):
    return {"name": name, "scope": scope, "state": state, **({"value": value} if value is not None else {})}


ANSWER = '^done,variables=[{name="a",arg="1",value="1"},{name="p",arg="1",value="(@generic int *) 0x10"},{name="s",value="\\"x\\""},' \
         '{name="gone",value="<optimized out>"}]\n'
OURS = [variable("a", "1", scope="argument"), variable("p", "0x10", scope="argument"), variable("s", '"x"'),
        variable("gone", state="optimised_out")]


def compared(ours, *answers):
    return rows_values.compare_thread(ours, [ANSWER, *answers])


def test_comparing_values_counts_every_one():
    c = compared(OURS)
    assert (c.same, c.known_to_nobody) == (3, 1) and c.check(3), str(c)
    for ours, words in (
            ([variable("a", "2", scope="argument"), *OURS[1:]], "1 different"),
            ([variable("a", state="unavailable", scope="argument"), *OURS[1:]], "1 unavailable here but known there"),
            (OURS[1:], "1 not listed by both: a: 0 here, 1 there"),
            ([*OURS, variable("more", "1")], "1 not listed by both: more: 1 here, 0 there"),
            ([*OURS, variable("a", "1")], "a: 2 here, 1 there")):
        c = compared(ours)
        assert words in str(c), (words, str(c))
        with pytest.raises(AssertionError):
            c.check(1)
    # What is known here only is told, and no fault; what is kept nowhere need not be listed by both.
    c = compared([*OURS[:3], variable("gone", "5"), variable("lost", state="optimised_out")])
    assert c.check(3) and c.known_here_only == ["gone"], str(c)
    with pytest.raises(AssertionError):
        compared(OURS).check(at_least=4)
    total = rows_values.Comparison()
    for ours in (OURS, [variable("a", "2", scope="argument"), *OURS[1:]], OURS[1:]):
        total.take(compared(ours), "there")
    assert (total.same, len(total.different), len(total.unlisted)) == (7, 1, 1) and "there: a: 2 here, 1 there" in str(total), str(total)
    with pytest.raises(AssertionError):
        rows_values.compare_thread([], ["^done,variables=[]"])


def test_what_is_built_in_is_compared_without_the_number_of_the_answer():
    mine = [variable(n, planted_values(1, 37)[n], scope="built_in") for n in rows_values.BUILT_IN]
    answers = [f"${i} = {planted_values(1, 37)[n]}\n" for i, n in enumerate(rows_values.BUILT_IN, 3)]
    assert compared(OURS + mine, *answers).same == 3 + len(rows_values.BUILT_IN)
    assert len(rows_values.known(OURS + mine)) == 3 + len(rows_values.BUILT_IN)
    assert len(compared(OURS + mine, "$3 = {x = 38, y = 0, z = 0}", *answers[1:]).different) == 1
    assert len(compared(OURS + mine[1:], *answers).unavailable_here) == 1
    with pytest.raises(AssertionError):
        compared(OURS + mine, *answers[1:])
    assert nvgdb.printed("$12 = 5\n") == "5" and nvgdb.printed("warning: x\n$1 = {a = 1}") == "{a = 1}"
    assert nvgdb.printed('No symbol "x" in current context.') is None and nvgdb.printed("$1 = <optimized out>") is None


def test_every_lane_is_told_once():
    def value(*lanes):
        return {"name": "x", "lanes": [{"lanes": text} for text in lanes]}

    assert len(rows_values.per_lane(value("0-15", "16,18-31,17"))) == 32
    for lanes in (("0-30",), ("0-31", "5"), ("0-32",), ()):
        with pytest.raises(AssertionError):
            rows_values.per_lane(value(*lanes))


class Told:
    """Stands for Held: a daemon that tells every lane and what is built in, but for what a test changes."""

    block = 1

    def __init__(self, change):
        self.change = change

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def thread(self, lane):
        return 32 + lane

    def planted(self, lane):
        return planted_values(1, 32 + lane)

    def variables(self, lane=rows_values.LANE, lanes=None):
        listed = []
        for name, text in self.planted(lane).items():
            listed.append(variable(name, text, scope="built_in" if name in rows_values.BUILT_IN else "local"))
            if lanes:
                listed[-1]["lanes"] = [{"lanes": str(n), **variable("", self.planted(n)[name])} for n in range(32)]
        self.change({v["name"]: v for v in listed}, listed)
        return {"variables": listed}


def drop(name):
    return lambda by_name, listed: listed.remove(by_name[name])


@pytest.mark.parametrize("row, change, result, words", [
    (rows_values.all_lanes, lambda v, _: None, "PASS", "416 right, 0 wrong"),
    (rows_values.all_lanes, lambda v, _: v["far"]["lanes"][31].update(value="7"), "FAIL", "415 right, 1 wrong"),
    (rows_values.all_lanes, lambda v, _: v["far"]["lanes"][31].update(state="inactive"), "FAIL", "1 unknown"),
    (rows_values.all_lanes, lambda v, _: v["far"]["lanes"].pop(), "FAIL", "far: told of lanes"),
    (rows_values.all_lanes, lambda v, _: v["far"]["lanes"][0].update(lanes="0-1"), "FAIL", "far: told of lanes"),
    (rows_values.all_lanes, drop("tag"), "FAIL", "32 not listed"),
    (rows_values.all_lanes, lambda _, listed: [v.pop("lanes") for v in listed], "SKIP", "one lane at a time"),
    (rows_values.built_in, lambda v, _: None, "PASS", "5 right, 0 wrong, 0 unknown, 0 not listed; 18 of 18 of all scopes are known"),
    (rows_values.built_in, lambda v, _: v["blockIdx"].update(value="{x = 0, y = 0, z = 0}"), "FAIL", "1 wrong"),
    (rows_values.built_in, drop("warpSize"), "FAIL", "1 not listed"),
    (rows_values.built_in, lambda _, listed: listed.clear(), "SKIP", "nothing that is built in"),
])
def test_all_lanes_and_what_is_built_in(here, monkeypatch, row, change, result, words):
    monkeypatch.setattr(rows_values, "Held", lambda b, p: Told(change))
    told = here.row(row, types.SimpleNamespace(name="values"))
    assert told[0] == result and words in told[1], told


def places(**changes):
    p = rows_core.Places()
    p.kernels, p.warps, p.lines = {"spin"}, {(0, 0, 0): ("(0,0,0)", 1)}, {(0, 0, 0, 0): 5}
    for name, value in changes.items():
        setattr(p, name, value)
    return p


def test_readers_of_a_core_differ_where_one_has_nothing():
    assert not places().differences(places())
    for changes in ({"kernels": {"other"}}, {"warps": {}}, {"warps": {(0, 0, 1): ("(0,0,0)", 1)}}, {"warps": {(0, 0, 0): ("(1,0,0)", 1)}},
                    {"lines": {}}, {"lines": {(0, 0, 0, 0): 6}}):
        assert places().differences(places(**changes)), changes
    assert places(lines={}).differences(places(lines={})), "no line seen by either is no success"


class FaultOfOurs(SimulatedProgram):
    """The kernel of fault.cu at its faulting instruction, with all debug information."""

    SCRIPTS = {"fault": "gpu launch fault grid=2 block=64 pc=0x20 args=p:0x7e1000,p:0x10"}


def test_a_core_of_a_fault_is_read_as_the_drivers_would_be(here, monkeypatch):
    """Ours stands for the driver's.  Where there is a cuda-gdb it reads the same in it."""
    cubin = shutil.copy(CARRIED / "fault-sm_90-g.cubin", here.lab.scene.directory)
    monkeypatch.setattr(FaultOfOurs, "BEGIN", f"init; context 0; module {cubin}; ")
    p = FaultOfOurs(here.lab, "fault")
    kind = HARDWARE_KINDS["fault"]
    try:
        here.lab.scene.control("warp 0 1 1 pc=0xa80 active=0xffffffff", p.app)
        here.lab.scene.control("raise 0 1 1 14 lanes=0x20 errorpc=0xa80", p.app)
        path = here.directory / "fault.core"
        here.b.agent.ctl("dump", p.pid, "--full", "-o", path)
    finally:
        p.stop()
    assert "block 1, thread 37" in rows_core.read_fault(here.b, path, kind, {"nowhere": "0x10"})
    for wrong, planted in ((kind, {"nowhere": "0x11"}), (kind, {}), (kind, {"nothing": "1"}),
                           (types.SimpleNamespace(**{**vars(kind), "thread": (1, 38)}), {"nowhere": "0x10"}),
                           (types.SimpleNamespace(**{**vars(kind), "thread": (0, 37)}), {"nowhere": "0x10"}),
                           (types.SimpleNamespace(**{**vars(kind), "faults": {9}}), {"nowhere": "0x10"})):
        with pytest.raises(AssertionError):
            rows_core.read_fault(here.b, path, wrong, planted)
    if not facts.find_debugger():
        print("  not compared with cuda-gdb: there is none")
        return
    text, opening = rows_core.both_read(here.b, path, rows_core.analyzed(here.b, path), 1, [37], at_least=2)
    rows_core.check_opening(opening, 1, 37)
    with pytest.raises(AssertionError):
        rows_core.check_opening(opening, 1, 36)
    print(f"  {text}")


# -- the run as a whole ---------------------------------------------------------------------------------


def begin(directory, log, seconds):
    """gpu-check on the build as if it were a bundle."""
    bundle = directory / "bundle"
    bundle.mkdir()
    (bundle / "bin").mkdir()
    for program in [*BIN.iterdir(), BIN.parent / "tests/gpu_check_measure", BIN.parent / "tests/gpu_check_program"]:
        (bundle / "bin" / program.name).symlink_to(program)
    (bundle / "cudasim").symlink_to(BIN.parent / "cudasim")
    for name in ("tests", "protocol", "scripts"):
        (bundle / name).symlink_to(ROOT / name)
    with open(directory / "out", "wb") as out:
        return subprocess.Popen([sys.executable, ROOT / "scripts/gpu-check", "run", "--bundle", bundle, "--simulated", "--log", log,
                                 "--seconds", str(seconds)], stdout=out, stderr=out, start_new_session=True,
                                env={**os.environ, "TMPDIR": str(directory)})


def ended(popen, directory, log, seconds):
    """(log, output), once it has ended and nothing of it is left."""
    code = popen.wait(seconds)
    left = [p for p in pathlib.Path("/proc").glob("[0-9]*/cmdline") if str(directory).encode() in read_bytes(p)]
    assert not left, [read_bytes(p) for p in left]
    return code, log.read_text(), (directory / "out").read_text()


def read_bytes(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.fixture
def directory():
    path = pathlib.Path(tempfile.mkdtemp(prefix="hardware-run."))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_in_the_middle_leaves_the_table(directory, number):
    log = directory / "run.log"
    popen = begin(directory, log, 200)
    wait_until(lambda: log.exists() and "suspend and resume" in log.read_text(), "some rows are there", 40)
    popen.send_signal(number)
    code, text, out = ended(popen, directory, log, 25)
    name = signal.Signals(number).name
    assert code == 1 and f"NOT COMPLETE: ended by {name}" in text and "snapshot: kernel and lines" in text, (code, text)
    last = out.splitlines()[-1]
    assert last.endswith(" skipped") and " passed, " in last and last in text.splitlines(), (last, text[-2000:])
    assert "=== measured" in text and "=== snapshot spin" in text and "kill worker" not in text, text


def test_a_run_that_is_killed_has_left_the_rows_it_had(directory):
    log = directory / "run.log"
    popen = begin(directory, log, 200)
    try:
        wait_until(lambda: log.exists() and "attach, devices" in log.read_text(), "some rows are there", 40)
    finally:
        popen.kill()
        popen.wait(5)
        # What a SIGKILL leaves is not ours to end, but for here.
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            if str(directory).encode() in read_bytes(path):
                os.kill(int(path.parent.name), signal.SIGKILL)
    text = log.read_text()
    assert "NOT COMPLETE: this was written after " in text and "=== measured" in text, text
    assert " passed, 0 failed, " in text, text


def test_rows_that_no_longer_fit_are_counted(directory):
    log = directory / "run.log"
    began = time.monotonic()
    code, text, out = ended(begin(directory, log, 4), directory, log, 30)
    assert time.monotonic() - began < 4 + 6, "the end of the time is not kept"
    rows_told = [line for line in text.splitlines() if " | SKIP | " in line and "out of time: " in line]
    assert len(rows_told) > 10 and "NOT COMPLETE" not in text, text
    assert "measure: a whole session" in text and code in (0, 1), (code, text)
    assert int(out.splitlines()[-1].split(", ")[2].split()[0]) >= len(rows_told), out.splitlines()[-1]


# -- the program that needs no compiler -----------------------------------------------------------------


@pytest.fixture
def stub(directory, monkeypatch):
    """A driver without a GPU is what the loader finds."""
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("there is no cc")
    subprocess.run([compiler, "-shared", "-fPIC", "-I", ROOT, "-o", directory / "libcuda.so.1", ROOT / "tests/hardware/libcuda_stub.c",
                    "-lpthread"], check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(directory))
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")
    engine = Engine(100, directory / "log")
    yield Lab(engine, None)
    engine.retire()


def run_each(lab):
    for name in KERNELS:
        p = lab.start(name, debug=name == "fault")
        try:
            ready = p.ready
            assert set(ready) >= {"global", "shared", "local", "words", "out", "blocks", "threads"}, ready
            assert p.wait_gpu_runs(10) < 10 and p.beats
            if name == "fault":
                assert ready["out"] == "0x10"
                p.fault()
                assert p.fault_reaches_it() == "CUDA_ERROR_ILLEGAL_ADDRESS"
                assert p.alive
        finally:
            p.stop()
        assert p.popen.returncode == 0, (name, p.popen.returncode)


def test_programs_of_the_driver_count_end_and_fault(stub, monkeypatch):
    """Without nvcc: what is carried is used, and only for the GPUs it is for."""
    monkeypatch.setenv("NVCC", "/nonexistent")
    monkeypatch.setattr(programs, "find_nvcc", lambda: None)
    assert stub.prepare() == "3 kernels for sm_90, carried (no nvcc)"
    run_each(stub)
    stub.arch = "80"
    with pytest.raises(AssertionError, match="no nvcc, and the kernels carried are for sm_90, not sm_80"):
        stub.prepare()


def test_kernels_are_compiled_where_nvcc_is(stub, directory, monkeypatch):
    if not facts.find_nvcc():
        pytest.skip("nvcc is not installed")
    assert stub.prepare() == "3 kernels for sm_90, compiled here"
    assert stub.image("spin", True).stat().st_size > stub.image("spin", False).stat().st_size
    run_each(stub)
    # One that cannot compile is as good as none.
    broken = directory / "nvcc"
    broken.write_text("#!/bin/sh\necho 'nvcc fatal : no host compiler'; exit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(programs, "find_nvcc", lambda: str(broken))
    assert stub.prepare() == "3 kernels for sm_90, carried (nvcc: nvcc fatal : no host compiler)"


# -- cores of a driver that can be told to write them ---------------------------------------------------


class Driver:
    """Stands for one that writes cores: ours."""

    def __init__(self, here, p, env):
        self.here, self.p = here, p
        self.path, self.pipe = env["CUDA_COREDUMP_FILE"], env.get("CUDA_COREDUMP_PIPE")
        if self.pipe:
            os.mkfifo(self.pipe)
        self.thread = threading.Thread(target=self.write, daemon=True)

    def write(self):
        if self.pipe:
            with open(self.pipe, "rb", buffering=0) as pipe:
                assert pipe.read(1)
        subprocess.run([BIN / "gpu-agentctl", "dump", str(self.p.pid), "--full", LONG_STOP, "-o", self.path, "--socket",
                        self.here.b.agent.socket], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("both", [False, True])
def test_cores_that_the_driver_writes(here, monkeypatch, both):
    """The rows as they are on hardware, but for who writes the file."""
    if both and not facts.find_debugger():
        pytest.skip("there is no cuda-gdb")
    cubin = shutil.copy(CARRIED / "fault-sm_90-g.cubin", here.lab.scene.directory)
    monkeypatch.setattr(FaultOfOurs, "BEGIN", f"init; context 0; module {cubin}; ")
    monkeypatch.setitem(here.lab.kinds, "fault", HARDWARE_KINDS["fault"])
    original = here.lab.start

    def start(name, env=None, **_):
        here.b.simulated = True  # for what is planted from here on
        p = FaultOfOurs(here.lab, "fault") if name == "fault" else original(name)
        driver = Driver(here, p, env)

        def spoil(index):
            with rows_values.Held(here.b, p) as h:
                where = {v["name"]: v["location"] for v in h.variables(lane=rows_values.LANE)["variables"] if "location" in v}
                here.lab.scene.control(f"register 0 {h.ref['unit']} {h.ref['index']} {rows_values.LANE} {where['index'][1:]} {index}",
                                       p.app)

        def fault():
            here.lab.scene.control("warp 0 1 1 pc=0xa80 active=0xffffffff", p.app)
            here.lab.scene.control("raise 0 1 1 14 lanes=0x20 errorpc=0xa80", p.app)
            spoil(wrong or 1037)
            driver.thread.start()

        if name == "fault":
            p.planted["variables"] = True  # by fault()
            p.fault = fault
        else:
            spoil(wrong or 165)
            driver.thread.start()
        return p

    monkeypatch.setattr(here.lab, "start", start)
    for wrong in (0, 5):
        for function, judged in ((rows_core.fault_core, rows_core.fault_core_in_both),
                                 (rows_core.triggered_core, rows_core.triggered_core_in_both)):
            here.b.simulated = False
            try:
                result, detail = here.row(function, None)
            finally:
                here.b.simulated = True
            assert result == ("FAIL" if wrong else "PASS") and (not wrong or "1 wrong" in detail), (function.__name__, result, detail)
            if both and not wrong:
                result, detail = here.row(judged, None)
                assert result == "PASS", detail
                print(f"  {detail}")
            for path in here.engine.directory.glob("driver-*"):
                path.unlink()
