#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Variables in an editor: of which lane, what is in them, and what it costs the agent to show them.

Code for AMD is compiled here, with private memory that is planted; that for NVIDIA is a fixture.
"""
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from dapclient import Adapter, Between, scene
from harness import LONG_STOP, ROOT, STOP_MS, CudaScene, Scene

sys.path.insert(0, str(ROOT / "tests/system/wave"))
import test_variables as planting

KINDS = {"Arguments": "argument", "Locals": "local", "Statics": "static", "Built-ins": "built_in"}
DEBUG = ROOT / "tests/data/cubin/spin-sm_90-g.cubin"
NO_AGENT = "/nonexistent/socket"


class Counted(list):
    """Methods that an adapter asks for; what keeps its stop going does not count."""

    def __call__(self, request):
        if request["method"] not in ("gpu.suspend", "session.list"):
            self.append(request["method"])

    def take(self):
        taken, self[:] = self[:], []
        return sorted(taken)


@contextlib.contextmanager
def planted_wave():
    """A wave in unoptimised code, behind the prologue of its first function."""
    with tempfile.TemporaryDirectory() as directory:
        path = planting.compiled(directory, 3, 0)
        with Scene(app=f"runtime ttmp; load {path}; queues 1; spin", gpus="gfx90a") as s:
            wave = planting.Planted(s, path)
            wave.plant(wave.file.body(wave.file.functions[0]))
            yield s, wave


SHAPES = """
struct point { int x, y; };
struct shape { struct point corner[2]; float weight; short kind; };
kernel void draw(global int *out, int n)
{
    struct shape shape;
    short many[1200];
    global int *inside;
    void *nowhere;
    if (n) {
        long n = 7;
        out[1] = n;
    }
    out[0] = shape.corner[1].y + many[7] + *inside + (nowhere != 0);
}
"""


class Shapes(planting.Planted):
    """A wave of draw(), whose pointer `inside` leads to memory of the process in lane 0."""

    def __init__(self, s, path):
        super().__init__(s, path)
        queue = s.rpc.call("gpu.queues", session=self.session)["queues"][0]
        base = int(queue["save_area"], 16) + queue["save_area_bytes"] - (1 << 20)
        self.plant(self.file.body(self.file.functions[0]))
        told = s.rpc.call("wave.variables", session=self.session, wave=planting.WAVE)["variables"]
        at = next(int(v["location"].split()[1], 16) for v in told if v["name"] == "inside")
        self.target = self.bias
        with open(f"/proc/{s.app.pid}/mem", "r+b", buffering=0) as mem:
            for half in range(2):
                mem.seek(base + (at // 4 + half) * planting.LANES * 4)
                mem.write((self.target >> 32 * half & 0xffffffff).to_bytes(4, "little"))


def compiled(source):
    for program in ("clang", "ld.lld", "llvm-dwarfdump"):
        if not shutil.which(program):
            raise SkipTest(f"{program} is needed")
    code = source.with_suffix(".co")
    subprocess.run(["clang", "-x", "cl", "-target", "amdgcn-amd-amdhsa", "-nogpulib", "-O0", "-g", "-w", "-mcpu=gfx90a",
                    "-mcode-object-version=4", source, "-o", code], check=True, timeout=120)
    return code


@contextlib.contextmanager
def shapes():
    with tempfile.TemporaryDirectory() as directory:
        source = pathlib.Path(directory) / "shapes.cl"
        source.write_text(SHAPES)
        path = compiled(source)
        with Scene(app=f"runtime ttmp; load {path}; queues 1; spin", gpus="gfx90a") as s:
            yield s, Shapes(s, path)


def cuda(**kwargs):
    app = f"init; context 0; module {DEBUG}; gpu launch spin grid=8 block=128; listen"
    return CudaScene(release="12.4", sim="devices 1 sms=2 warps=8", app=app, **kwargs)


def in_words(v):
    if v["state"] == "ok":
        return v["value"]
    reason = f": {v['reason']}" if "reason" in v else f" at {v['address']}" if "address" in v else ""
    return f"<{v['state'].replace('_', ' ')}{reason}>" + (f" {v['value']}" if "value" in v else "")


def scopes_of(a, frame):
    return {s["name"]: s["variablesReference"] for s in a.call("scopes", frameId=frame)["scopes"]}


def click(a, frame):
    """What an editor asks for when a frame is chosen, and its scopes are open."""
    scopes = scopes_of(a, frame)
    return {name: a.variables(scopes[name]) for name in ("Wave", *KINDS) if name in scopes}


def values(rows):
    return [(row["name"], row["value"]) for row in rows]


def evaluate(a, text, context="watch", **more):
    return a.call("evaluate", expression=text, context=context, **more)


def check_rows(rows, variables):
    """Rows of a scope are what the agent tells of these variables."""
    assert len(rows) == len(variables)
    for row, v in zip(rows, variables):
        assert row["name"].removesuffix(" (outer block)") == v["name"] and row["value"] == in_words(v), (row, v)
        assert row.get("type", "") == v["type"] and row.get("evaluateName") == v.get("expression"), (row, v)
        assert row["presentationHint"] == {"attributes": ["readOnly"]}, row
        leads = v["type"].endswith("*") and not v["type"].endswith("void *") and v["state"] == "ok" and v["value"] != "0x0"
        is_open = (v.get("members", 0) or leads) and "expression" in v
        assert bool(row["variablesReference"]) == bool(is_open), (row, v)
        if is_open and not leads:
            assert row.get("indexedVariables" if v["type"].endswith("]") else "namedVariables") == v["members"], (row, v)


def opened(a, row, **page):
    return {x["name"]: x for x in a.variables(row["variablesReference"], **page)}


def test_what_is_in_a_value():
    """Structures, arrays and pointers open as far as somebody looks, each level with one question."""
    with shapes() as (s, planted), Between(s) as between, Adapter(between.path) as a:
        a.start(pid=s.app.pid)
        a.pause()
        rows = {row["name"]: row for row in click(a, a.frame()["id"])["Locals"]}
        between.look = asked = Counted()
        shape = opened(a, rows["shape"])
        assert asked.take() == ["wave.evaluate"] and list(shape) == ["corner", "weight", "kind"], shape
        corner = opened(a, shape["corner"])
        assert list(corner) == ["[0]", "[1]"] and corner["[1]"]["evaluateName"] == "shape.corner[1]", corner
        y = opened(a, corner["[1]"])["y"]
        assert asked.take() == ["wave.evaluate"] * 2
        told = s.rpc.call("wave.evaluate", session=planted.session, wave=planting.WAVE, expression="shape.corner[1].y")
        assert (y["value"], y["type"], y["evaluateName"]) == (told["value"], "int", "shape.corner[1].y") and not y["variablesReference"], y
        assert opened(a, rows["shape"]) == shape and opened(a, shape["corner"]) == corner and not asked.take()
        # A pointer leads to what is there, and what leads nowhere is not opened.
        assert rows["inside"]["memoryReference"] == hex(planted.target), rows["inside"]
        target, = opened(a, rows["inside"]).values()
        assert target["name"] == target["evaluateName"] == "*inside" and target["memoryReference"] == hex(planted.target), target
        first = s.rpc.call("wave.evaluate", session=planted.session, wave=planting.WAVE, expression="*inside")
        assert target["value"] == first["value"] and not rows["nowhere"]["variablesReference"], target
        # So do results.
        for text, name in (("shape", "corner"), ("shape.corner, x", "[0]"), ("*inside @ 3", "[2]"), ("inside, x", "*(inside), x")):
            got = evaluate(a, text)
            assert name in opened(a, got), (text, got)
        assert opened(a, evaluate(a, "inside, x"))["*(inside), x"]["value"] == hex(int(first["value"]) % (1 << 32))
        assert "out of date" in a.error("variables", variablesReference=10 ** 9)
        assert a.finish() == 0


def test_a_long_array_comes_a_page_at_a_time():
    with shapes() as (s, planted), Between(s) as between, Adapter(between.path) as a:
        a.start(pid=s.app.pid)
        a.pause()
        many = next(row for row in click(a, a.frame()["id"])["Locals"] if row["name"] == "many")
        assert many["indexedVariables"] == 1200 and "namedVariables" not in many, many
        between.look = asked = Counted()
        for start, count in ((0, 100), (700, 100), (1150, 50)):
            page = a.variables(many["variablesReference"], start=start, count=count, filter="indexed")
            assert [x["name"] for x in page] == [f"[{i}]" for i in range(start, start + count)], page
            assert asked.take() == ["wave.evaluate"]
        last = a.variables(many["variablesReference"], start=1190, count=100)
        assert [x["name"] for x in last] == [f"[{i}]" for i in range(1190, 1200)], last
        assert a.variables(many["variablesReference"], start=1200, count=10) == []
        # An editor that knows no pages is told that there is more, and can open that.
        *rows, more = a.variables(many["variablesReference"])
        assert [x["name"] for x in rows] == [f"[{i}]" for i in range(len(rows))] and len(rows) == 1000
        assert (more["name"], more["value"]) == ("(more)", "200 more"), more
        rest = a.variables(more["variablesReference"])
        assert [x["name"] for x in rest] == [f"[{i}]" for i in range(1000, 1200)]
        assert last == rest[190:]
        assert a.finish() == 0


def test_names_of_inner_blocks():
    with shapes() as (s, planted), Adapter(s.socket) as a:
        inner = next(at for at in range(*planted.file.ranges(planted.file.functions[0])[0], 4)
                     if len([v for scope in planted.file.levels(at)[0] for v in scope.children
                             if '"n"' in v.attributes.get("DW_AT_name", "")]) == 2)
        planted.plant(inner)
        a.start(pid=s.app.pid)
        a.pause()
        scopes = click(a, a.frame()["id"])
        own, = [x for x in scopes["Locals"] if x["name"] == "n"]
        hidden, = [x for x in scopes["Arguments"] if x["name"] == "n"]
        assert own["evaluateName"] == "n" and "evaluateName" not in hidden and hidden["value"] != own["value"], (own, hidden)
        assert evaluate(a, "n")["result"] == own["value"]
        assert a.finish() == 0


def test_scopes_have_what_the_agent_tells():
    with planted_wave() as (s, planted), Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        a.pause()
        told = s.rpc.call("wave.variables", session=planted.session, wave=planting.WAVE)["variables"]
        frame = a.frame()["id"]
        scopes = a.call("scopes", frameId=frame)["scopes"]
        wanted = [name for name, kind in KINDS.items() if any(v["scope"] == kind for v in told)]
        assert [x["name"] for x in scopes][:len(wanted) + 1] == ["Wave", *wanted] and "Locals" in wanted, scopes
        assert not any(x["expensive"] for x in scopes[:len(wanted) + 1])
        for name in wanted:
            check_rows(a.variables(scopes_of(a, frame)[name]), [v for v in told if v["scope"] == KINDS[name]])
        pointer = next(v for v in a.variables(scopes_of(a, frame)["Arguments"]) if v["type"].endswith("*"))
        assert pointer["memoryReference"] == pointer["value"], pointer
        assert a.values("Wave")["lane"] == "0"
        page = a.variables(scopes_of(a, frame)["Locals"], start=1, count=2)
        assert page == a.variables(scopes_of(a, frame)["Locals"])[1:3] and len(page) == 2
        assert a.finish() == 0


def test_a_click_is_one_question():
    """Of variables, and one of registers; the same click again is none, until something may have moved."""
    with planted_wave() as (s, planted), Between(s) as between, Adapter(between.path) as a:
        a.start(pid=s.app.pid)
        a.pause()
        between.look = asked = Counted()
        frame = a.frame()["id"]
        first = click(a, frame)
        assert asked.take() == ["wave.registers", "wave.variables"], asked
        assert click(a, frame) == first and not asked.take()
        name = first["Arguments"][1]["name"]
        value = evaluate(a, name, frameId=frame)
        assert asked.take() == ["wave.evaluate"] and value["result"] == first["Arguments"][1]["value"], value
        assert evaluate(a, name, frameId=frame) == evaluate(a, name, "hover", frameId=frame) == value and not asked.take()
        # What cannot be evaluated stays so, too.
        for _ in range(2):
            assert "there is no nowhere here" in a.error("evaluate", expression="nowhere + 1", context="watch", frameId=frame)
        assert asked.take() == ["wave.evaluate"]
        a.call("continue", threadId=1)
        assert asked.take() == ["gpu.resume"]
        click(a, frame)
        assert asked.take() == ["wave.registers", "wave.variables"], "nothing is kept of before"
        a.pause()
        frame = a.frame()["id"]
        asked.take()
        assert values(click(a, frame)["Arguments"]) == values(first["Arguments"])
        assert asked.take() == ["wave.registers", "wave.variables"]
        assert a.finish() == 0


def test_expressions():
    with planted_wave() as (s, planted), Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        a.pause()
        frame, scopes = a.frame()["id"], scopes_of(a, a.frame()["id"])
        number = next(v for v in a.variables(scopes["Arguments"]) if v["type"] == "int")
        name, value = number["name"], int(number["value"])
        for context in ("watch", "hover", "repl", "clipboard"):
            got = evaluate(a, f"{name} + 1", context, frameId=frame)
            assert int(got["result"]) == value + 1 and got["type"] == "int" and not got["variablesReference"], got
        assert evaluate(a, f"{name}, x")["result"] == hex(value % (1 << 32))
        assert evaluate(a, f"({name})", "repl")["result"] == str(value)
        registers = s.rpc.call("wave.registers", session=planted.session, wave=planting.WAVE, max_stop_ms=STOP_MS)["registers"]
        v3 = next(r for r in registers["vector"] if r["name"] == "v3")["lanes"]
        assert int(evaluate(a, "$v3")["result"]) == int(v3[0], 16) and int(evaluate(a, "v3[9]")["result"], 16) == int(v3[9], 16)
        assert evaluate(a, "pc")["result"] == a.values("Wave")["pc"]
        unreadable = evaluate(a, "{int} 0x7000000000000000")
        assert unreadable["result"].startswith("<unreadable"), unreadable
        # What is wrong is said as to a person, who knows no parameters.
        for text, words in (("1 + nowhere", "column 5: there is no nowhere here"), (f"{name} / 0", "zero"), ("nowhere", "no register")):
            message = a.error("evaluate", expression=text, context="repl")
            assert words in message and "params" not in message, message
        for context in ("watch", "hover", "repl"):
            for no_frame in (scopes["Wave"], scopes["Arguments"]):
                assert "not the id of a frame" in a.error("evaluate", expression=name, context=context, frameId=no_frame)
        assert "not the id of a frame" in a.error("scopes", frameId=scopes["Arguments"])
        assert a.finish() == 0


def test_a_console_while_the_gpu_runs():
    """It answers from no registers of before: what stands is read anew, of what has moved it is said that it runs."""
    with scene("waves 0 halted 2 spin+16") as s, Between(s) as between, Adapter(between.path) as a:
        pc = next(int(g["pc"], 16) for g in s.rpc.call("gpu.snapshot", session=s.attach())["groups"])
        a.start(pid=s.app.pid)
        a.pause()
        frame = a.frame()["id"]
        assert int(evaluate(a, "pc", "repl", frameId=frame)["result"], 16) == pc
        a.call("continue", threadId=1)
        between.look = asked = Counted()
        for _ in range(2):
            assert int(evaluate(a, "pc", "repl", frameId=frame)["result"], 16) == pc
            assert asked.take() == ["wave.evaluate", "wave.registers"]
        s.control(f"waves {s.app.pid} 0 clear")
        for text in ("pc", "$pc", "1 + 1"):
            assert "the GPU runs" in a.error("evaluate", expression=text, context="repl", frameId=frame), text
        for word in ("help", "groups", "devices", "queues", "watchpoint"):
            assert evaluate(a, word, "repl", frameId=frame)["result"], word
        s.control(f"waves {s.app.pid} 0 halted 2 {pc:#x}")
        assert a.finish() == 0


def test_a_running_wave_that_has_moved():
    with cuda() as s, Adapter(s.socket) as a:
        s.control("warp 0 1 2 pc=0x150")
        a.start(pid=s.app.pid)
        a.pause()
        thread = next(t["id"] for t in a.call("threads")["threads"] if "1 x" in t["name"])
        frame = a.frame(thread)["id"]
        pc = int(evaluate(a, "pc", "repl", frameId=frame)["result"], 16)
        a.call("continue", threadId=1)
        assert int(evaluate(a, "pc", "repl", frameId=frame)["result"], 16) == pc, "it has not moved"
        s.control("warp 0 1 2 pc=0x40")
        for text in ("pc", "$pc", "R4"):
            assert "no longer where it is shown" in a.error("evaluate", expression=text, context="repl", frameId=frame), text
        assert "groups" in evaluate(a, "groups", "repl", frameId=frame)["result"]
        assert a.finish() == 0


def lanes_of(a, **arguments):
    return a.call("gpuAgent/lanes", **arguments)


def test_lanes_of_a_wave():
    with planted_wave() as (s, planted), Between(s) as between, Adapter(between.path) as a:
        a.start(pid=s.app.pid)
        a.pause()
        frame = a.frame()
        before = click(a, frame["id"])
        between.look = asked = Counted()
        got = lanes_of(a, threadId=1)
        assert (got["threadId"], got["wave"], got["lane"], len(got["lanes"])) == (1, "0:0:0", 0, 64) and not asked.take(), got
        assert [x["lane"] for x in got["lanes"] if x["shown"]] == [0] and all(x["active"] for x in got["lanes"])
        assert got["lanes"][9]["workItem"] == [9, 0, 0] and got["lanes"][9]["pc"] == frame["instructionPointerReference"]
        assert not a.has_event("invalidated")
        assert lanes_of(a, threadId=1, lane=37)["lane"] == 37 and a.event("invalidated")
        told = s.rpc.call("wave.variables", session=planted.session, wave=planting.WAVE, lane=37)["variables"]
        asked.take()
        shown = click(a, frame["id"])
        assert asked.take() == ["wave.variables"] and click(a, frame["id"]) == shown and not asked.take()
        check_rows(shown["Arguments"], [v for v in told if v["scope"] == "argument"])
        assert shown["Arguments"] != before["Arguments"]
        assert {v["name"]: v["value"] for v in shown["Wave"]}["lane"] == "37"
        assert "shown" in a.values("Lanes")["lane 37"] and "shown" not in a.values("Lanes")["lane 36"]
        number = next(v for v in shown["Arguments"] if v["type"] == "int")
        assert evaluate(a, number["name"], frameId=frame["id"])["result"] == number["value"]
        # What was shown for another lane is kept.
        asked.take()
        a.call("gpuAgent/focus", threadId=1, lane=0)
        a.event("invalidated")
        assert click(a, frame["id"])["Arguments"] == before["Arguments"] and not asked.take()
        for bad in (64, -1, "x", [1]):
            assert "lane" in a.error("gpuAgent/lanes", threadId=1, lane=bad), bad
        assert "no thread" in a.error("gpuAgent/lanes", threadId=9)
        assert a.finish() == 0


def check_columns(a, s, session, wave):
    """Of each frame: arguments and locals of its function, as they are in each lane.  @return the names in each"""
    all_names = []
    for level, frame in enumerate(a.call("stackTrace", threadId=1)["stackFrames"]):
        told = s.rpc.call("wave.variables", session=session, wave=wave, frame=level, lanes="all")["variables"]
        told = [v for v in told if v["scope"] in ("argument", "local") and "expression" in v]
        got = lanes_of(a, frameId=frame["id"], variables=True)
        names = [c["expression"] for c in got["columns"]]
        assert names == [v["expression"] for v in told][:16] and names, (names, told)
        assert got["lanes"][5]["values"][0] in [in_words(x) for x in told[0]["lanes"]], (got["lanes"][5], told[0])
        # Those that are named come first; what there is no room for is told.
        beside = lanes_of(a, frameId=frame["id"], columns=["$v0, f", "$v1, h"], variables=True)
        assert [c["expression"] for c in beside["columns"]] == ["$v0, f", "$v1, h", *names][:16], beside
        assert beside.get("more", 0) == max(0, len(told) - 14), beside
        all_names.append(tuple(names))
    return all_names


def test_columns_of_the_variables_of_a_frame():
    """What a table of lanes shows at first."""
    with planted_wave() as (s, planted), Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        a.pause()
        names, = check_columns(a, s, planted.session, planting.WAVE)
        assert len(names) > 14, "more than there is room for"
        assert a.finish() == 0
    with scene("waves 0 halted 2 scale+104") as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        a.pause()
        names = check_columns(a, s, s.attach(), {"queue_id": 0, "unit": 0, "index": 0})
        assert len(names) > 1 and len(set(names)) > 1, "each function has its own"
        old = a.frame()["id"]
        a.call("continue", threadId=1)
        a.pause()
        assert "out of date" in a.error("gpuAgent/lanes", frameId=old)
        assert a.finish() == 0


def lane_rows(v):
    return [("lane" + "s" * any(c in x["lanes"] for c in ",-") + " " + x["lanes"], in_words(x)) for x in v["lanes"]]


def check_all_lanes(a, asked, told, frame):
    """Each variable with what it is in all lanes: one question for all of them."""
    reference = next(v["variablesReference"] for v in click(a, frame)["Wave"] if v["name"] == "variables of all lanes")
    asked.take()
    rows = a.variables(reference)
    assert asked.take() == ["wave.variables"] and a.variables(reference) == rows
    assert [row["name"] for row in rows] == [v["name"] for v in told] and rows
    several = 0
    for row, v in zip(rows, told):
        assert bool(row["variablesReference"]) == (len(v["lanes"]) > 1), (row, v)
        if len(v["lanes"]) == 1:
            assert row["value"] == in_words(v["lanes"][0]), (row, v)
            continue
        several += 1
        assert row["namedVariables"] == len(v["lanes"]) and row["value"].startswith(v["lanes"][0]["lanes"] + ": "), (row, v)
        assert values(a.variables(row["variablesReference"])) == lane_rows(v), (row, v)
        assert values(a.variables(row["variablesReference"], start=1, count=1)) == lane_rows(v)[1:2]
    assert not asked.take()
    return several


def test_variables_of_all_lanes():
    with planted_wave() as (s, planted), Between(s) as between, Adapter(between.path) as a:
        a.start(pid=s.app.pid)
        a.pause()
        between.look = asked = Counted()
        told = s.rpc.call("wave.variables", session=planted.session, wave=planting.WAVE, lanes="all")["variables"]
        assert check_all_lanes(a, asked, told, a.frame()["id"]) > 3
        assert a.finish() == 0
    with cuda() as s, Between(s) as between, Adapter(between.path) as a:
        for lane in range(32):
            s.control(f"register 0 1 2 {lane} 4 {lane // 8}")
        a.start(pid=s.app.pid)
        a.pause()
        between.look = asked = Counted()
        first = a.call("gpuAgent/waves", threadId=1, count=1)["waves"][0]["ref"]
        told = s.rpc.call("wave.variables", session=s.attach(), wave=first, lanes="all")["variables"]
        check_all_lanes(a, asked, told, a.frame()["id"])
        assert a.finish() == 0


def test_what_the_language_gives_each_lane():
    for place, width in ((cuda(), 32), (scene("waves 0 halted 2 spin+16"), 64)):
        with place as s, Between(s) as between, Adapter(between.path) as a:
            a.start(pid=s.app.pid)
            a.pause()
            frame = a.frame()["id"]
            lanes_of(a, threadId=1, lane=5)
            shown = {row["name"]: row for row in click(a, frame)["Built-ins"]}
            assert shown["threadIdx"]["value"] == "{x = 5, y = 0, z = 0}" and shown["warpSize"]["value"] == str(width), shown
            between.look = asked = Counted()
            assert values(a.variables(shown["threadIdx"]["variablesReference"])) == [("x", "5"), ("y", "0"), ("z", "0")]
            assert evaluate(a, "threadIdx.x + blockIdx.x * blockDim.x", frameId=frame)["result"] == "5"
            assert asked.take() == ["wave.evaluate"] * 2
            everywhere = next(v for v in click(a, frame)["Wave"] if v["name"] == "variables of all lanes")
            rows = opened(a, everywhere)
            assert rows["warpSize"]["value"] == str(width) and not rows["warpSize"]["variablesReference"], rows
            assert values(a.variables(rows["threadIdx"]["variablesReference"])) == [
                (f"lane {n}", f"{{x = {n}, y = 0, z = 0}}") for n in range(width)], rows["threadIdx"]
            a.finish()


def test_a_lane_that_is_elsewhere():
    """Its frames are those of its own place; callers are known of one lane only."""
    with cuda() as s, Adapter(s.socket) as a:
        spin = next(f for m in s.state()["modules"] for f in m["functions"] if f["name"] == "spin")
        base = int(spin["address"], 16)
        s.control("warp 0 1 2 active=0xffffffff pc=0x150 apart=16")
        s.control("stack 0 1 2 0xffffffff 0x260")
        a.start(pid=s.app.pid)
        a.pause()
        thread = next(t["id"] for t in a.call("threads")["threads"]
                      if int(a.frame(t["id"])["instructionPointerReference"], 16) == base + 0x150)
        stack = a.call("stackTrace", threadId=thread)
        assert stack["totalFrames"] > 1, stack
        got = lanes_of(a, threadId=thread)
        assert [int(x["pc"], 16) for x in got["lanes"]] == [base + 0x150 + 16 * n for n in range(32)] and got["lane"] == 0, got
        a.call("gpuAgent/focus", threadId=thread, lane=20)
        moved = a.call("stackTrace", threadId=thread)
        place, = s.rpc.call("code.locate", session=s.attach(), addresses=[hex(base + 0x150 + 16 * 20)])["places"]
        assert [(f["name"].partition("(")[0], int(f["source"]["origin"].rpartition(":")[2])) for f in moved["stackFrames"]] == \
            [(f["function"].partition("(")[0], f["line"]) for f in place["frames"]], (moved, place)
        assert {f["instructionPointerReference"] for f in moved["stackFrames"]} == {hex(base + 0x150 + 16 * 20)}, moved
        assert click(a, moved["stackFrames"][0]["id"])["Wave"][1]["value"] == "20"
        a.call("gpuAgent/focus", threadId=thread, lane=0)
        assert a.call("stackTrace", threadId=thread) == stack
        # A thread of lanes that speak for nobody knows no callers, until it shows the lane that does.
        other = next(t["id"] for t in a.call("threads")["threads"]
                     if t["id"] != thread and a.values("Wave", t["id"])["wave"] == got["wave"])
        assert a.call("stackTrace", threadId=other)["totalFrames"] == 1
        a.call("gpuAgent/focus", threadId=other, lane=0)
        again = a.call("stackTrace", threadId=other)
        known = ("name", "line", "instructionPointerReference")
        assert [[f[k] for k in known] for f in again["stackFrames"]] == [[f[k] for k in known] for f in stack["stackFrames"]], again
        assert a.finish() == 0


def test_a_core_shows_what_the_process_showed():
    with cuda() as s:
        s.control("warp 0 1 2 pc=0x150")
        with Adapter(s.socket) as a:
            a.start(pid=s.app.pid)
            a.pause()
            live = [click(a, a.frame(t["id"])["id"]) for t in a.call("threads")["threads"]]
            a.finish()
        core = pathlib.Path(s.directory) / "core"
        run = s.ctl("dump", s.app.pid, LONG_STOP, "-o", core)
        assert run.returncode == 0, run
        with Adapter(NO_AGENT) as a:
            a.start(coreFile=str(core))
            a.event("stopped")
            dead = [click(a, a.frame(t["id"])["id"]) for t in a.call("threads")["threads"]]
            lanes_of(a, threadId=1, lane=3)
            assert a.values("Wave")["lane"] == "3"
            a.finish()
    for was, now in zip(live, dead, strict=True):
        for scope in KINDS:
            assert was.get(scope) == now.get(scope), (was, now)
    assert len(live) == len(dead) == 2 and any("Arguments" in x for x in live), live
