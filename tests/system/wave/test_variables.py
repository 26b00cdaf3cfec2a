#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Variables of a wave, from planted registers and private memory to what a client is told; live and from a core.

Code is compiled here, and a second reader (tests/values/dwarftext.py) says what its variables are.
"""
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from corereader import CoreRpc
from harness import LONG_STOP, ROOT, STOP_MS, Scene

sys.path.insert(0, str(ROOT / "tests/values"))
import dwarftext
import kernels

LANES, UNITS = 64, 256
LANE_BYTES = UNITS * 1024 // LANES
WAVE = {"queue_id": 0, "unit": 0, "index": 0}
S33 = 0x4000  # Bytes of the wave, as code for buffer scratch has it.


def compiled(directory, seed, level, text=None):
    for program in ("clang", "ld.lld", "llvm-dwarfdump"):
        if not shutil.which(program):
            raise SkipTest(f"{program} is needed")
    source = pathlib.Path(directory) / "k.cl"
    source.write_text(text or kernels.write("cl", seed))
    subprocess.run(["clang", "-x", "cl", "-target", "amdgcn-amd-amdhsa", "-nogpulib", f"-O{level}", "-g", "-w", "-mcpu=gfx90a",
                    "-mcode-object-version=4", source, "-o", source.with_suffix(".co")], check=True, timeout=120)
    return source.with_suffix(".co")


class Planted:
    """A wave whose private memory has random bytes."""

    def __init__(self, s, path):
        self.scene, self.file = s, dwarftext.File(path, "llvm-dwarfdump")
        self.session = s.attach()
        self.bias = next(int(o["bias"], 16) for o in s.rpc.call("code.list", session=self.session)["objects"]
                         if path.name in o["uri"])
        self.bytes = random.Random(7).randbytes(LANES * LANE_BYTES)
        queue = s.rpc.call("gpu.queues", session=self.session)["queues"][0]
        base = int(queue["save_area"], 16) + queue["save_area_bytes"] - (1 << 20)
        pointer = int(queue["read_pointer"], 16)
        with open(f"/proc/{s.app.pid}/mem", "r+b", buffering=0) as mem:
            for at, data in ((pointer + 12, struct.pack("<I", 96 | UNITS << 12)), (pointer + 32, struct.pack("<QQ", base, 0)),
                             (base, self.bytes)):
                mem.seek(at)
                assert mem.write(data) == len(data)

    def plant(self, pc):
        self.scene.control(f"waves {self.scene.app.pid} 0 clear")
        self.scene.control(f"waves {self.scene.app.pid} 0 halted 1 {self.bias + pc:#x} group=1 scratch=1 s33={S33:#x}")

    def memory(self, space, address, size, lane):
        assert space == "private", space
        words = [self.bytes[(i // 4 * LANES + lane) * 4 + i % 4] if i < LANE_BYTES else None
                 for i in range(address, address + size)]
        return words

    def wave(self, lane, registers):
        scalar = {r["name"]: int(r["value"], 16) for r in registers["scalar"]}
        vector = {r["name"]: [int(v, 16) for v in r["lanes"]] for r in registers["vector"]}

        def register(letter, number, of):
            return scalar[f"s{number}"] if letter == "s" else vector[f"v{number}"][of]
        return dwarftext.Wave(LANES, lane, True, register, self.memory)


def integer(file, die, data):
    """The number that bytes of a variable are; None when they are something else."""
    kind = file.refer(die, "DW_AT_type")
    if kind is None or kind.tag != "DW_TAG_base_type" or "float" in kind.attributes["DW_AT_encoding"]:
        return None
    return int.from_bytes(bytes(data), "little", signed="_signed" in kind.attributes["DW_AT_encoding"])


def compare(planted, answer, registers, pc, lane, level):
    chain, wave = planted.file.chain(pc), planted.wave(lane, registers)
    found = answer["variables"]
    dies = []
    for argument in (True, False):
        for scope in ([level[0]] if argument else level[::-1]):
            tag = "DW_TAG_formal_parameter" if argument else "DW_TAG_variable"
            dies += [c for c in scope.children if c.tag == tag]
    counts = {}
    for die in dies:
        name = re.sub(r'^\("|"\)$', "", planted.file.get(die, "DW_AT_name") or "")
        one = next(v for v in found if v["name"] == name)
        location = planted.file.get(die, "DW_AT_location") or ""
        if "addrx" in location or "lit2" in location:
            continue
        data = dwarftext.value(planted.file, die, chain[0], chain, pc, wave)
        counts[one["state"]] = counts.get(one["state"], 0) + 1
        if None in data:
            assert one["state"] not in ("ok", "inactive"), (one, data)
            continue
        number = integer(planted.file, die, data)
        assert one["state"] == "ok", (one, data)
        if number is not None:
            assert one["value"].split(" ")[0] == str(number), (one, number)
            counts["numbers"] = counts.get("numbers", 0) + 1
    return counts


def addresses(planted):
    for function in planted.file.functions:
        low, high = planted.file.ranges(function)[0]
        body = planted.file.body(function)
        yield from (low, body, body + (high - body) // 8 * 4, (high - 8) & ~3)


def check(level, seed):
    total = {}
    with tempfile.TemporaryDirectory() as directory:
        path = compiled(directory, seed, level)
        with Scene(app=f"runtime ttmp; load {path}; queues 1; spin", gpus="gfx90a") as s:
            planted = Planted(s, path)
            for pc in addresses(planted):
                planted.plant(pc)
                registers = s.rpc.call("wave.registers", session=planted.session, wave=WAVE, max_stop_ms=STOP_MS)["registers"]
                for lane in (0, 37):
                    for frame, scopes in enumerate(planted.file.levels(pc)):
                        answer = s.rpc.call("wave.variables", session=planted.session, wave=WAVE, lane=lane, frame=frame,
                                            max_stop_ms=STOP_MS)
                        assert answer["complete"] and answer["active"] and answer["lane"] == lane, answer
                        assert answer["pc"] == hex(planted.bias + pc), answer
                        for key, n in compare(planted, answer, registers, pc, lane, scopes).items():
                            total[key] = total.get(key, 0) + n
            error = s.rpc.error("wave.variables", session=planted.session, wave=WAVE, frame=50, max_stop_ms=STOP_MS)
            assert error.name == "invalid_params" and "frame" in error.message, error
            error = s.rpc.error("wave.variables", session=planted.session, wave={**WAVE, "index": 9}, max_stop_ms=STOP_MS)
            assert error.name == "no_such_wave", error
            only = s.rpc.call("wave.variables", session=planted.session, wave=WAVE, scopes=["argument"], max_stop_ms=STOP_MS)
            assert {v["scope"] for v in only["variables"]} == {"argument"}, only
    return total


def test_variables_in_private_memory():
    total = check(0, 3)
    assert total["numbers"] > 50 and total["prologue"], total


def test_variables_of_optimised_code():
    total = check(2, 3)
    assert total["numbers"] and total["optimised_out"] and total["unavailable"], total


def both(level, choose):
    """What is said of a wave by the process and by its core."""
    with tempfile.TemporaryDirectory() as directory:
        path = compiled(directory, 3, level)
        with Scene(app=f"runtime ttmp; load {path}; queues 1; spin", gpus="gfx90a") as s:
            planted = Planted(s, path)
            planted.plant(choose(planted.file))
            live = s.rpc.call("wave.variables", session=planted.session, wave=WAVE, lane=5, max_stop_ms=STOP_MS)
            core = pathlib.Path(directory) / "core"
            run = s.ctl("dump", s.app.pid, LONG_STOP, "-o", core)
            assert run.returncode == 0, run.stderr
        with CoreRpc(core) as rpc:
            return live, rpc.call("wave.variables", session="core", wave=WAVE, lane=5)


def test_a_core_says_what_the_process_said():
    def in_a_register(file):
        found = re.findall(r"\[(0x[0-9a-f]+), 0x[0-9a-f]+\): DW_OP_bregx VGPR",
                           " ".join(d.attributes.get("DW_AT_location", "") for d in file.dies.values()))
        return int(found[0], 16)

    live, dead = both(2, in_a_register)
    for answer in (live, dead):
        answer.pop("stopped_us")
    assert live == dead and any(v["state"] == "ok" for v in live["variables"]), json.dumps([live, dead], indent=1)


def test_a_core_without_private_memory_says_so():
    live, dead = both(0, lambda file: file.body(file.functions[0]))
    assert live["complete"] and any(v["state"] == "ok" for v in live["variables"]), live
    assert not dead["complete"] and "could not be read" in dead["missing"][0], dead
    assert not any(v["state"] == "ok" for v in dead["variables"] if "private" in v.get("location", "")), dead
    assert all(v["address"] for v in dead["variables"] if v["state"] == "unreadable"), dead


def test_the_verb():
    with tempfile.TemporaryDirectory() as directory:
        path = compiled(directory, 3, 0)
        with Scene(app=f"runtime ttmp; load {path}; queues 1; spin", gpus="gfx90a") as s:
            planted = Planted(s, path)
            planted.plant(planted.file.body(planted.file.functions[0]))
            answer = s.rpc.call("wave.variables", session=planted.session, wave=WAVE, lane=9, max_stop_ms=STOP_MS)
            ask = ("variables", s.app.pid, "0:0:0", "--lane=9", LONG_STOP)
            shown = s.ctl(*ask)
            assert shown.returncode == 0 and not shown.stderr, shown
            lines = shown.stdout.splitlines()
            assert lines[0].split() == ["VARIABLE", "VALUE", "TYPE", "PLACE", "SCOPE"], lines
            assert len(lines) == len(answer["variables"]) + 1, lines
            for line, v in zip(lines[1:], answer["variables"]):
                assert line.split()[0] == v["name"] and line.split()[-1] == v["scope"], (line, v)
                assert (v["value"] if v["state"] == "ok" else f"<{v['state']}")[:20] in line, (line, v)
            document = json.loads(s.ctl(*ask, "-j").stdout)
            assert document["variables"] == answer["variables"], document
            run = s.ctl("variables", s.app.pid, "0:0:0", "--scope=globals", LONG_STOP)
            assert run.returncode == 2 and "argument, local, static" in run.stderr, run
            run = s.ctl("variables", s.app.pid, "0:0:9", LONG_STOP)
            assert run.returncode == 3, run


def test_the_verbs_of_many_lanes():
    with tempfile.TemporaryDirectory() as directory:
        path = compiled(directory, 3, 0)
        with Scene(app=f"runtime ttmp; load {path}; queues 1; spin", gpus="gfx90a") as s:
            planted = Planted(s, path)
            planted.plant(planted.file.body(planted.file.functions[0]))
            answer = s.rpc.call("wave.variables", session=planted.session, wave=WAVE, lanes="2-40", max_stop_ms=STOP_MS)
            ask = (s.app.pid, "0:0:0")
            shown = s.ctl("variables", *ask, "--lanes=2-40", LONG_STOP)
            assert shown.returncode == 0 and not shown.stderr, shown
            lines = [line.split() for line in shown.stdout.splitlines()]
            assert lines[0] == ["VARIABLE", "LANES", "VALUE", "TYPE", "SCOPE"], lines[0]
            rows = [(v["name"], row["lanes"]) for v in answer["variables"] for row in v["lanes"]]
            assert [(line[0], line[1]) for line in lines[1:]] == rows and ("blockDim", "2-40") in rows, lines
            assert json.loads(s.ctl("variables", *ask, "--lanes=2-40", LONG_STOP, "-j").stdout)["variables"] == answer["variables"]
            shown = s.ctl("print", *ask, "threadIdx.x / 32", "--lanes=all", LONG_STOP)
            assert [line.split() for line in shown.stdout.splitlines()] == [["LANES", "VALUE"], ["0-31", "0"], ["32-63", "1"]], shown
            run = s.ctl("print", *ask, "1", "--lanes=64", LONG_STOP)
            assert run.returncode == 2 and "lanes" in run.stderr, run


def test_generic_addresses_of_global_memory():
    """They are those of the process, whatever wave and lane they were taken from."""
    with tempfile.TemporaryDirectory() as directory:
        path = compiled(directory, 3, 0)
        with Scene(app=f"runtime ttmp; load {path}; queues 1; spin", gpus="gfx90a") as s:
            planted = Planted(s, path)
            planted.plant(planted.file.body(planted.file.functions[0]))
            pointer = s.rpc.call("gpu.queues", session=planted.session)["queues"][0]["read_pointer"]
            what = {"session": planted.session, "address": hex(int(pointer, 16) + 12), "size": 4}
            wanted = s.rpc.call("memory.read", **what)["data"]
            for of in ({}, {"lane": 3}):
                assert s.rpc.call("memory.read", **what, space="generic", wave=WAVE, **of)["data"] == wanted
            assert "wave" in s.rpc.error("memory.read", **what, space="generic").message
            assert "bank" in s.rpc.error("memory.read", **what, space="generic", wave=WAVE, bank=1).message
            shown = s.ctl("memory", s.app.pid, what["address"], "4", "--space=generic", "--wave=0:0:0", "--lane=3", LONG_STOP)
            assert shown.returncode == 0 and shown.stdout, shown


def alone(variables):
    """Those whose name no other one has."""
    names = [v["name"] for v in variables]
    return [v for v in variables if v["name"] and names.count(v["name"]) == 1]


def same(answer, variable):
    """Whether an expression that is the name of a variable is what the variable is."""
    keys = ("type", "state", "value", "location", "address")
    return {k: answer.get(k) for k in keys} == {k: variable.get(k) for k in keys}


HIDES = "kernel void k(global int *out) { int threadIdx = 7; *out = threadIdx; }"


def check_built_in(s, planted, lane):
    """The wave is the first one of a workgroup: its work-items are what wave.registers says."""
    who = {"session": planted.session, "wave": WAVE}
    wave = s.rpc.call("wave.registers", **who, work_items=True, max_stop_ms=STOP_MS)["registers"]
    asked = Asked(s.rpc, planted.session, lane)
    answer = s.rpc.call("wave.variables", **who, lane=lane, lanes="all", scopes=["built_in"])
    found = {v["name"]: v for v in answer["variables"]}
    assert list(found) == ["threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"], answer
    assert found["warpSize"]["value"] == asked.value("warpSize") == "64" and found["warpSize"]["type"] == "int", found
    size, grid = wave["packet"]["workgroup_size"], wave["packet"]["grid_size"]
    three = "{{x = {}, y = {}, z = {}}}".format
    assert found["blockDim"]["value"] == three(*size) and found["blockIdx"]["value"] == three(*wave["wave"]["ref"]["workgroup"])
    assert found["gridDim"]["value"] == three(*(-(-g // n) for g, n in zip(grid, size))), (found, wave["packet"])
    told = by_lane(found["threadIdx"]["lanes"])
    items = {i["lane"]: i["in_group"] for i in wave["work_items"]}
    assert items and set(told) == set(items) and all(told[i]["value"] == three(*items[i]) for i in items), (told, items)
    assert asked.value("threadIdx.x + blockIdx.x * blockDim.x") == str(next(i["global"][0] for i in wave["work_items"]
                                                                            if i["lane"] == lane))
    assert asked.value("$lane(0, threadIdx.x)") == str(items[0][0])
    assert [m["expression"] for m in asked.members("threadIdx", 0, 9)["list"]] == [f"threadIdx.{c}" for c in "xyz"]


def test_what_is_built_in():
    with tempfile.TemporaryDirectory() as directory:
        path = compiled(directory, 3, 0)
        with Scene(app=f"runtime ttmp; load {path}; queues 1; spin", gpus="gfx90a") as s:
            planted = Planted(s, path)
            planted.plant(planted.file.body(planted.file.functions[0]))
            check_built_in(s, planted, 3)
            planted.plant(0)  # No code, and no debug information.
            answer = s.rpc.call("wave.variables", session=planted.session, wave=WAVE)
            assert [v["state"] for v in answer["variables"]] == ["ok"] * 5 and "no debug information" in answer["missing"][0], answer


def test_a_variable_hides_what_is_built_in():
    with tempfile.TemporaryDirectory() as directory:
        path = compiled(directory, 3, 0, HIDES)
        with Scene(app=f"runtime ttmp; load {path}; queues 1; spin", gpus="gfx90a") as s:
            planted = Planted(s, path)
            planted.plant(planted.file.body(planted.file.functions[0]))
            asked = Asked(s.rpc, planted.session, 3)
            own, built_in = (v for v in s.rpc.call("wave.variables", **asked.who)["variables"] if v["name"] == "threadIdx")
            assert own["scope"] == "local" and same(asked("threadIdx"), own), own
            assert built_in["scope"] == "built_in" and "expression" not in built_in, built_in


def wrapped(number, bits=32):
    return (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


class Asked:
    """Expressions over one lane of a planted wave."""

    def __init__(self, rpc, session, lane):
        self.rpc, self.who = rpc, {"session": session, "wave": WAVE, "lane": lane}

    def __call__(self, text):
        return self.rpc.call("wave.evaluate", **self.who, expression=text)

    def members(self, text, first, most):
        return self.rpc.call("wave.evaluate", **self.who, expression=text, first_member=first, max_members=most)

    def value(self, text):
        answer = self(text)
        assert answer["state"] == "ok" and answer["complete"], (text, answer)
        return answer["value"]

    def error(self, text):
        error = self.rpc.error("wave.evaluate", **self.who, expression=text)
        assert error.name == "invalid_params", (text, error)
        return error.message

    def variables(self):
        return alone(self.rpc.call("wave.variables", **self.who)["variables"])


def numbers_of(text):
    """The lanes of a list such as 0-3,8."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def by_lane(rows):
    """{lane: its row}; no lane has two."""
    found = {}
    for row in rows:
        for lane in numbers_of(row["lanes"]):
            assert lane not in found, (lane, rows)
            found[lane] = row
    return found


KEYS = ("state", "reason", "value", "address")


def check_lanes(rpc, who, wanted, of=range(64)):
    """Values of many lanes in one call are those of a call for each lane.  @return rows, and lanes that they are of."""
    answer = rpc.call("wave.variables", **who, lane=wanted[0], lanes=",".join(map(str, wanted)))
    rows = 0
    for lane in sorted({wanted[0], wanted[-1], *list(wanted)[::9]}):
        alone_there = rpc.call("wave.variables", **who, lane=lane)
        for one, many in zip(alone_there["variables"], answer["variables"]):
            told = by_lane(many["lanes"])
            assert set(told) == set(wanted), (many, wanted)
            assert {k: one.get(k) for k in KEYS} == {k: told[lane].get(k) for k in KEYS}, (lane, one, told[lane])
            rows += len(many["lanes"])
            if lane != wanted[0] or not one.get("expression"):
                continue
            evaluated = rpc.call("wave.evaluate", **who, lane=lane, lanes=",".join(map(str, wanted)), expression=one["name"])
            if one["state"] == "ok":
                assert evaluated["lanes"] == many["lanes"], (evaluated, many)
    return rows


def test_values_of_many_lanes():
    """Live and from a core; texts of different values may be equal, and are told apart all the same."""
    with tempfile.TemporaryDirectory() as directory:
        path = compiled(directory, 3, 0)
        with Scene(app=f"runtime ttmp; load {path}; queues 1; spin", gpus="gfx90a") as s:
            planted = Planted(s, path)
            who = {"session": planted.session, "wave": WAVE}
            for function in planted.file.functions:
                planted.plant(planted.file.body(function))
                assert check_lanes(s.rpc, who, range(64)) > 64
            assert check_lanes(s.rpc, who, [3, 9, 10, 63])
            stops = s.rpc.call("wave.variables", **who, lanes="all")
            assert stops["complete"], stops
            assert s.rpc.call("wave.variables", **who, lanes="active")["variables"] == stops["variables"]
            for lanes in ("", "x", "0-64", "5-3"):
                error = s.rpc.error("wave.variables", **who, lanes=lanes)
                assert error.name == "invalid_params" and "lanes" in error.message, error
            asked = Asked(s.rpc, planted.session, 5)
            one = numbers_among(asked.variables())[0]["name"]
            values = by_lane(s.rpc.call("wave.evaluate", **who, expression=one, lanes="all")["lanes"])
            for lane in (0, 17, 63):
                assert asked.value(f"$lane({lane}, {one})") == values[lane]["value"]
            assert asked.value("$lane") == "5" and asked.value("$lane(9, $lane) + $lane(2 + 1, $lane)") == "12"
            assert "no such lane" in asked.error(f"$lane(64, {one})")
            zero = s.rpc.call("wave.evaluate", **who, expression="10 / ($lane - 3)", lanes="0-5")
            told = by_lane(zero["lanes"])
            assert told[3]["state"] == "unavailable" and "zero" in told[3]["reason"] and told[5]["value"] == "5", zero
            same_everywhere = s.rpc.call("wave.evaluate", **who, expression="$s33", lanes="all")
            assert [r["lanes"] for r in same_everywhere["lanes"]] == ["0-63"], same_everywhere


def test_lanes_of_a_core():
    def in_a_register(file):
        return int(re.findall(r"\[(0x[0-9a-f]+), 0x[0-9a-f]+\): DW_OP_bregx VGPR",
                              " ".join(d.attributes.get("DW_AT_location", "") for d in file.dies.values()))[0], 16)

    with tempfile.TemporaryDirectory() as directory:
        path = compiled(directory, 3, 2)
        with Scene(app=f"runtime ttmp; load {path}; queues 1; spin", gpus="gfx90a") as s:
            planted = Planted(s, path)
            planted.plant(in_a_register(planted.file))
            live = s.rpc.call("wave.variables", session=planted.session, wave=WAVE, lane=5, lanes="all")
            core = pathlib.Path(directory) / "core"
            run = s.ctl("dump", s.app.pid, LONG_STOP, "-o", core)
            assert run.returncode == 0, run.stderr
        with CoreRpc(core) as rpc:
            dead = rpc.call("wave.variables", session="core", wave=WAVE, lane=5, lanes="all")
            assert live.pop("stopped_us") >= dead.pop("stopped_us") == 0 and live == dead, (live, dead)
            assert any(len(v["lanes"]) == 64 for v in live["variables"]), live


def check_columns(rpc, session, columns):
    """Each lane has what wave.evaluate says of it.  @return the table."""
    who = {"session": session, "wave": WAVE, "max_stop_ms": STOP_MS}
    table = rpc.call("wave.lanes", **who, columns=columns)
    assert [row["lane"] for row in table["lanes"]] == list(range(64)) and all(row["active"] for row in table["lanes"])
    assert [row["in_group"] for row in table["lanes"]] == [[n, 0, 0] for n in range(64)], table["lanes"][1]
    for i, expression in enumerate(columns):
        asked = rpc.call("wave.evaluate", **who, expression=expression, lanes="all")
        told = by_lane(asked["lanes"])
        assert table["columns"][i] == {"expression": expression, "type": asked["type"]}, table["columns"]
        assert all(row["values"][i] == told[row["lane"]] for row in table["lanes"]), (expression, told)
    some = rpc.call("wave.lanes", **who, columns=columns, lanes="3,60-61")
    assert [[v["value"] for v in row["values"]] for row in some["lanes"]] == [
        [v["value"] for v in table["lanes"][n]["values"]] for n in (3, 60, 61)], some
    return table


def test_columns_of_lanes():
    """Registers, variables and what is built in, of every lane of a wave; of a process, its core, and as a page."""
    with tempfile.TemporaryDirectory() as directory:
        path = compiled(directory, 3, 0)
        with Scene(app=f"runtime ttmp; load {path}; queues 1; spin", gpus="gfx90a") as s:
            planted = Planted(s, path)
            planted.plant(planted.file.body(planted.file.functions[0]))
            known = Asked(s.rpc, planted.session, 5).variables()
            name = next(v["name"] for v in known if v["type"] == "int" and v["state"] == "ok" and "private" in v["location"])
            table = check_columns(s.rpc, planted.session, ["$v0", f"{name} + 1", "threadIdx.x", "$exec, x"])
            assert len({row["values"][1]["value"] for row in table["lanes"]}) > 60 and table["complete"], table["missing"]
            page = s.ctl("lanes", s.app.pid, "0:0:0", "$v0", f"{name} + 1", LONG_STOP).stdout.splitlines()
            head = next(i for i, line in enumerate(page) if line.split()[:1] == ["LANE"])
            assert page[head].split()[-4:] == ["$v0", name, "+", "1"] and "PART" not in page[head], page[head]
            assert [line.split()[-2:] for line in page[head + 1:head + 65]] == [
                [v["value"] for v in row["values"][:2]] for row in table["lanes"]], page
            assert s.rpc.error("wave.lanes", session=planted.session, wave=WAVE, columns=["1"] * 17).name == "invalid_params"
            core = pathlib.Path(directory) / "core"
            assert s.ctl("dump", s.app.pid, LONG_STOP, "-o", core).returncode == 0
        with CoreRpc(core) as rpc:
            dead = check_columns(rpc, "core", ["$v0", "threadIdx.x", "$exec, x"])
            for row, was in zip(dead["lanes"], table["lanes"], strict=True):
                assert [v["value"] for v in row["values"]] == [was["values"][i]["value"] for i in (0, 2, 3)], (row, was)
            private = rpc.call("wave.lanes", session="core", wave=WAVE, columns=[name])
            assert {v["state"] for row in private["lanes"] for v in row["values"]} == {"unreadable"}, private["lanes"][0]


def numbers_among(variables):
    return [v for v in variables if v["type"] == "int" and v["state"] == "ok"]


def check_numbers(asked, variables):
    a, b = numbers_among(variables)[0], numbers_among(variables)[-1]
    x, y = int(a["value"]), int(b["value"])
    assert int(asked.value(f"{a['name']} + 3 * {b['name']}")) == wrapped(x + wrapped(3 * y))
    assert asked.value(f"{a['name']} - {a['name']} == 0 && {b['name']} == {y}") == "true"
    assert asked.value(f"{a['name']}, x") == hex(x % (1 << 32))
    assert int(asked.value(f"(long){a['name']} << 8")) == x << 8
    assert asked.value(f"sizeof {a['name']}") == "4"
    assert asked(f"(short){b['name']}")["type"] == "short"


def check_errors(asked, variables):
    name = numbers_among(variables)[0]["name"]
    for text, column, words in ((f"{name} / 0", len(name) + 2, "zero"), ("1 + nowhere", 5, "there is no nowhere here"),
                                (f"{name} = 3", len(name) + 2, ""), (f"{name} + ", len(name) + 4, "ends too early"),
                                ("$nothing", 1, "there is no register nothing here"), (f"{name}.x", len(name) + 1, "no members"),
                                (f"*{name}", 1, "no pointer"), ("+".join([name] * 200), None, "too much memory"),
                                ("(" * 200 + "1" + ")" * 200, None, "")):
        message = asked.error(text)
        assert "params.expression: column " in message and words in message, (text, message)
        assert column is None or f"column {column}:" in message, (text, message)


def check_registers(asked, registers, lane):
    vector = {r["name"]: [int(v, 16) for v in r["lanes"]] for r in registers["vector"]}
    scalar = {r["name"]: int(r["value"], 16) for r in registers["scalar"]}
    special = {r["name"]: int(r["value"], 16) for r in registers["special"]}
    assert int(asked.value("$v3")) == vector["v3"][lane] and int(asked.value("$v3[9]")) == vector["v3"][9]
    assert int(asked.value("$s33")) == scalar["s33"] == S33
    assert int(asked.value("$exec")) == special["exec"] and int(asked.value("$pc")) == special["pc"]
    assert "no register" in asked.error("$v9999") and "no register" in asked.error("$v3[64]")


def check_hostile(asked, variables):
    """Pointers with random bytes lead nowhere: that is said of the memory, not of the expression."""
    pointer = next(v for v in variables if v["type"].endswith("int *") and v["state"] == "ok")
    answer = asked(f"{pointer['name']}[2] + 1")
    where = (int(pointer["value"].split(" ")[-1], 16) + 8) % (1 << 64)
    assert answer["state"] == "unreadable" and "value" not in answer and not answer["complete"], answer
    assert int(answer["address"], 16) == where and "cannot be read" in answer["reason"], (answer, pointer)
    assert any("could not be read" in m for m in answer["missing"]), answer


def check_members(asked, whole, depth=0):
    """Each member is what its expression means, and those of a page are those of the whole list."""
    if not whole.get("members"):
        return 0
    answer = asked.members(whole["expression"], 0, 1000)
    assert answer["members"] == whole["members"] == len(answer["list"]), (whole, answer)
    assert {k: answer.get(k) for k in ("type", "state", "value")} == {k: whole.get(k) for k in ("type", "state", "value")}
    for member in answer["list"]:
        one = asked(member["expression"])
        # Of what cannot be read an expression has no type, and a member has.
        assert same({**one, "type": one["type"] or member["type"]}, member), (member, one)
    first = len(answer["list"]) // 2
    page = asked.members(whole["expression"], first, 2)
    assert page["list"] == answer["list"][first:first + 2], (page, answer)
    readable = [m for m in answer["list"][:3] if m["state"] == "ok"]
    return len(answer["list"]) + (sum(check_members(asked, m, depth + 1) for m in readable) if depth < 3 else 0)


def check_pages(asked, array):
    answer = asked.members(f"{array['name']}, x", 0, 2)
    assert [m["expression"] for m in answer["list"]] == [f"{array['name']}[{i}],x" for i in range(len(answer["list"]))]
    assert "list" not in asked(array["name"]), asked(array["name"])
    assert not asked.members(array["name"], 1 << 30, 5)["list"]


NESTED = """struct in { int x; char c[3]; }; struct s { struct in in[2]; union { int i; float f; }; struct s *next; };
kernel void k(global int *out) { struct s s; struct s *p = &s; s.in[0].x = 1; *out = s.in[1].x + p->i; }"""


def check_planted_members(text):
    arrays = structs = members = 0
    with tempfile.TemporaryDirectory() as directory:
        path = compiled(directory, 3, 0, text)
        with Scene(app=f"runtime ttmp; load {path}; queues 1; spin", gpus="gfx90a") as s:
            planted = Planted(s, path)
            asked = Asked(s.rpc, planted.session, 37)
            for pc in addresses(planted):
                planted.plant(pc)
                found = s.rpc.call("wave.variables", **asked.who)["variables"]
                assert all(v["expression"] == v["name"] for v in alone(found)), found
                for v in alone(found):
                    if v.get("members"):
                        members += check_members(asked, v)
                        structs += "struct" in v["type"]
                        if "[" in v["type"]:
                            arrays += 1
                            check_pages(asked, v)
    return arrays, structs, members


def test_members_of_planted_variables():
    arrays, structs, members = check_planted_members(None)
    assert arrays and members > 10, (arrays, members)
    arrays, structs, members = check_planted_members(NESTED)
    assert structs and members > 10, (structs, members)


HIDDEN = "kernel void k(global int *out) { int a = 1; { int a = 2; { int b = a; *out = b; } } *out += a; }"


def test_a_hidden_variable_has_no_expression():
    """Of two variables of one name, the name means the inner one."""
    with tempfile.TemporaryDirectory() as directory:
        path = compiled(directory, 3, 0, HIDDEN)
        with Scene(app=f"runtime ttmp; load {path}; queues 1; spin", gpus="gfx90a") as s:
            planted = Planted(s, path)
            function = planted.file.functions[0]
            blocks = [c for b in function.children if b.tag == "DW_TAG_lexical_block" for c in b.children
                      if c.tag == "DW_TAG_lexical_block"]
            planted.plant(planted.file.ranges(blocks[0])[0][0])
            asked = Asked(s.rpc, planted.session, 3)
            found = [v for v in s.rpc.call("wave.variables", **asked.who)["variables"] if v["name"] == "a"]
            assert [v.get("expression") for v in found] == ["a", None] and found[0]["block"] > found[1]["block"], found
            assert same(asked("a"), found[0]) and found[0]["location"] != found[1]["location"], found


def test_expressions_of_planted_variables():
    with tempfile.TemporaryDirectory() as directory:
        path = compiled(directory, 3, 0)
        with Scene(app=f"runtime ttmp; load {path}; queues 1; spin", gpus="gfx90a") as s:
            planted = Planted(s, path)
            for function in planted.file.functions[:2]:
                planted.plant(planted.file.body(function))
                registers = s.rpc.call("wave.registers", session=planted.session, wave=WAVE, max_stop_ms=STOP_MS)["registers"]
                asked = Asked(s.rpc, planted.session, 37)
                variables = asked.variables()
                for v in variables:
                    assert same(asked(v["name"]), v), (asked(v["name"]), v)
                check_numbers(asked, variables)
                check_errors(asked, variables)
                check_registers(asked, registers, 37)
                check_hostile(asked, variables)


def test_expressions_of_a_core():
    def in_a_register(file):
        return int(re.findall(r"\[(0x[0-9a-f]+), 0x[0-9a-f]+\): DW_OP_bregx VGPR",
                              " ".join(d.attributes.get("DW_AT_location", "") for d in file.dies.values()))[0], 16)

    with tempfile.TemporaryDirectory() as directory:
        path = compiled(directory, 3, 2)
        with Scene(app=f"runtime ttmp; load {path}; queues 1; spin", gpus="gfx90a") as s:
            planted = Planted(s, path)
            planted.plant(in_a_register(planted.file))
            registers = s.rpc.call("wave.registers", session=planted.session, wave=WAVE, max_stop_ms=STOP_MS)["registers"]
            variables = Asked(s.rpc, planted.session, 5).variables()
            core = pathlib.Path(directory) / "core"
            run = s.ctl("dump", s.app.pid, LONG_STOP, "-o", core)
            assert run.returncode == 0, run.stderr
            shown = s.ctl("print", "--core", core, "0:0:0", "$v3[9] + 1, d")
        with CoreRpc(core) as rpc:
            asked = Asked(rpc, "core", 5)
            assert any(v["state"] == "ok" for v in variables), variables
            for v in variables:
                assert same(asked(v["name"]), v), (asked(v["name"]), v)
            check_registers(asked, registers, 5)
            assert shown.returncode == 0 and shown.stdout.strip() == asked.value("$v3[9] + 1, d"), shown


def test_print():
    with tempfile.TemporaryDirectory() as directory:
        path = compiled(directory, 3, 0)
        with Scene(app=f"runtime ttmp; load {path}; queues 1; spin", gpus="gfx90a") as s:
            planted = Planted(s, path)
            planted.plant(planted.file.body(planted.file.functions[0]))
            asked = Asked(s.rpc, planted.session, 9)
            one = numbers_among(asked.variables())[0]

            def ask(text, *more):
                return s.ctl("print", s.app.pid, "0:0:0", text, "--lane=9", LONG_STOP, *more)
            shown = ask(one["name"])
            assert shown.returncode == 0 and shown.stdout == one["value"] + "\n" and not shown.stderr, shown
            assert json.loads(ask(one["name"], "-j").stdout)["value"] == one["value"]
            shown = ask("1 + nowhere")
            assert shown.returncode == 2 and "EXPRESSION: column 5: there is no nowhere here" in shown.stderr, shown
            shown = ask("{int} 0x7000000000000000")
            assert shown.returncode == 0 and shown.stdout.startswith("<unreadable: 4 bytes at 0x7000000000000000"), shown
            assert "could not be read" in shown.stderr, shown


def test_expressions_without_debug_information():
    """Numbers and registers need none; names say that there is none."""
    with tempfile.TemporaryDirectory() as directory:
        path = compiled(directory, 3, 0)
        with Scene(app=f"runtime ttmp; load {path}; queues 1; spin", gpus="gfx90a") as s:
            planted = Planted(s, path)
            planted.plant(0)
            asked = Asked(s.rpc, planted.session, 5)
            answer = asked("$s33 + 1")
            assert answer["state"] == "ok" and answer["value"] == str(S33 + 1) and answer["type"] == "unsigned int", answer
            assert not answer["complete"] and "no debug information" in answer["missing"][0], answer
            message = asked.error("1 + n")
            assert "column 5: there is no n here" in message and "no debug information" in message, message
