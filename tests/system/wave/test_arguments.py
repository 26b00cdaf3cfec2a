#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The arguments of running kernels: what a program says that it has passed is what everybody is shown."""
import ctypes
import json
import os
import re
import struct
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from amdnote import rewritten, stripped
from corereader import CoreRpc
from harness import LONG_STOP, ROOT, STOP_MS, CudaScene, Scene

sys.path.insert(0, str(ROOT / "tests/dap"))
from dapclient import Adapter  # noqa: E402

CODE, CUBINS = ROOT / "tests/data/codeobj", ROOT / "tests/data/cubin"
SIZES = {"p": 8, "l": 8, "i": 4, "s": 2, "c": 1, "f": 4, "d": 8}
TYPES = ("p:0x7f1234567000,i:4294967295,f:1.5,c:65,s:65535,d:0.1,l:-5,i:0x400,x:"
         + (struct.pack("<fffi", 1, 2, 3, 7) + b"name".ljust(64, b".")).hex() + ",p:0x7f7654321000")
SCALE = "p:0x7f00deadb000,i:-160"
NAMES = ["table", "n", "f", "c", "s", "d", "l", "tile", "whole", "weights"]


def passed(s):
    """[(kernel, [(letter, text), ...])] as the program says itself."""
    found = []
    for line in s.app.out().splitlines():
        if line.startswith("passed "):
            *_, kernel, text = line.split(" ")
            found.append((kernel.split("=")[1], [tuple(w.split(":", 1)) for w in text.split(",")]))
    return found


def layout(words):
    """[(offset, size)] where a compiler puts them."""
    at, places = 0, []
    for letter, text in words:
        size = len(text) // 2 if letter == "x" else SIZES[letter]
        alignment = 4 if letter == "x" else size
        at = (at + alignment - 1) // alignment * alignment
        places.append((at, size))
        at += size
    return places


def value(letter, text, kind=None):
    """As it is to be shown; the kind is what only the code object knows."""
    if letter == "x":
        return None
    if letter in "fd":
        number = float(text)
        return f"{ctypes.c_float(number).value:.9g}" if letter == "f" else f"{number:.17g}"
    number = int(text, 0)
    if letter == "p":
        return hex(number)
    if kind == "lds":
        return f"@lds {number:#x}"
    if kind == "char":
        return f"{number} '{chr(number)}'"
    bits = 8 * SIZES[letter]
    return str(number % (1 << bits) if kind == "unsigned" or number < 1 << (bits - 1) and number >= 0
               else (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1))


def amd(objects, commands, waves=None):
    load = "; ".join(f"load {o}" for o in objects)
    return Scene(app=f"runtime ttmp; {load}; queues 2; {commands}; {waves or ''}; spin", gpus="gfx90a")


def snapshot(s, **params):
    return s.rpc.call("gpu.snapshot", session=s.session, max_stop_ms=STOP_MS, **params)


def group_of(doc, kernel):
    return next(g for g in doc["groups"] if g.get("kernel", {}).get("name", "").startswith(kernel))


def as_shown(arguments):
    return [(a["name"], a.get("value"), a["offset"], a["size"], a["state"], a["at"]) for a in arguments]


KINDS = {"n": "unsigned", "c": "char", "s": "unsigned", "tile": "lds"}


def expected_types(s):
    (kernel, words), = [p for p in passed(s) if p[0] == "types"]
    rows = []
    for name, (letter, text), (offset, size) in zip(NAMES, words, layout(words)):
        rows.append((name, value(letter, text, KINDS.get(name)), offset, size,
                     "partial" if size > 64 else "ok", "launch"))
    return rows


def is_right(shown, expected):
    """All but the text of bytes, which is told apart."""
    assert len(shown) == len(expected)
    for a, b in zip(shown, expected):
        assert a[0] == b[0] and a[2:] == b[2:], (a, b)
        assert b[1] is None or a[1] == b[1], (a, b)


@pytest.mark.parametrize("change", ["whole", "stripped"])
def test_amd(tmp_path, change):
    code = CODE / "types-gfx90a.co"
    if change == "stripped":
        code = stripped(code, tmp_path / "stripped.co")
    os.chmod(tmp_path, 0o755)
    with amd([code, CODE / "spin-gfx90a.co"], f"dispatch 0 types 4096 64 args={TYPES}; dispatch 1 scale 4096 64 args={SCALE}",
             "waves 0 memory 2 types+16; waves 1 halted 3 scale+16") as s:
        s.session = s.attach()
        doc = snapshot(s)
        assert doc["complete"], doc["missing"]
        arguments = group_of(doc, "types")["arguments"]
        is_right(as_shown(arguments), expected_types(s))
        # Of the debug information; without that, of the note.
        assert [a["type"] for a in arguments][1:3] == ["uint" if change == "stripped" else "unsigned int", "float"]
        whole = arguments[8]
        words = dict(passed(s))["types"]
        assert whole["raw"] == words[8][1][:128] and whole["size"] == 80
        assert not any("raw" in a for a in arguments if a["name"] != "whole")
        scale = group_of(doc, "scale")["arguments"]
        is_right(as_shown(scale), [("data", "0x7f00deadb000", 0, 8, "ok", "launch"), ("n", "-160", 8, 4, "ok", "launch")])
        check_text(s)
        check_editor(s)
        check_core(s, doc, tmp_path)


def check_text(s):
    run = s.ctl("snapshot", s.app.pid, LONG_STOP)
    head = run.stdout.splitlines()[0]
    assert head.startswith("FAULT  memory violation: 2 waves of types(table=0x7f1234567000, n=4294967295, f=1.5, c=65 'A', "
                           "s=65535, d=0.10000000000000001, l=-5, tile=@lds 0x400, whole="), head
    assert ", weights=0x7f7654321000), " in head
    page = re.sub(r"\s+", " ", run.stdout)
    assert "scale (" not in page
    page = re.sub(r"\s+", " ", s.ctl("snapshot", s.app.pid, LONG_STOP, "--arguments").stdout)
    assert "scale (data=0x7f00deadb000, n=-160" in page


def check_editor(s):
    with Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        a.event("stopped")
        a.pause()
        thread = a.call("threads")["threads"][0]
        frames = a.call("stackTrace", threadId=thread["id"])["stackFrames"]
        assert frames[-1]["name"].startswith("types(table=0x7f1234567000, n=4294967295, f=1.5, ")
        assert not any("(" in f["name"] for f in frames[:-1])
        scopes = a.call("scopes", frameId=frames[0]["id"])["scopes"]
        assert scopes[1]["name"] == "Arguments" and not scopes[1]["expensive"]
        rows = a.variables(scopes[1]["variablesReference"])
        # The kernel keeps them nowhere: they are those of its launch, as debuggers write that.
        assert [r["name"] for r in rows] == [f"{name}@entry" for name in NAMES]
        assert rows[2]["value"] == "1.5"
        assert all(r["presentationHint"] == {"attributes": ["readOnly"]} and not r["variablesReference"] for r in rows)


def check_core(s, live, tmp_path):
    """A core of the same moment says the same, whoever asks."""
    core = tmp_path / "core"
    run = s.ctl("dump", s.app.pid, LONG_STOP, "-o", core)
    assert run.returncode == 0, run
    with CoreRpc(core) as rpc:
        doc = rpc.call("gpu.snapshot", session="core")
    key = lambda d: sorted(json.dumps([g["kernel"], g["arguments"]]) for g in d["groups"])  # noqa: E731
    assert key(doc) == key(live)
    assert "types(table=0x7f1234567000" in s.ctl("analyze", core).stdout


def test_hidden_arguments_are_for_who_asks(tmp_path):
    def add(note):
        for kernel in note["amdhsa.kernels"]:
            if kernel[".name"] == "types":
                kernel[".args"] += [{".offset": 136, ".size": 4, ".value_kind": "hidden_block_count_x"},
                                    {".offset": 144, ".size": 8, ".value_kind": "hidden_hostcall_buffer"}]
                kernel[".kernarg_segment_size"] = 152

    os.chmod(tmp_path, 0o755)
    code = rewritten(CODE / "types-gfx90a.co", tmp_path / "hidden.co", add)
    with amd([code], f"dispatch 0 types 4096 64 args={TYPES},i:64,p:0x7f0000004000", "waves 0 halted 1 types+16") as s:
        s.session = s.attach()
        assert [a["name"] for a in snapshot(s)["groups"][0]["arguments"]] == NAMES
        shown = snapshot(s, arguments=True)["groups"][0]["arguments"]
        assert as_shown(shown)[10:] == [("hidden_block_count_x", "64", 136, 4, "ok", "launch"),
                                        ("hidden_hostcall_buffer", "0x7f0000004000", 144, 8, "ok", "launch")]
        # Names and types of the source stay with those that have them.
        assert [a["name"] for a in shown[:10]] == NAMES and shown[1]["type"] == "unsigned int"
        assert [a.get("hidden") for a in shown] == [None] * 10 + [True] * 2


def test_memory_that_is_not_there():
    with amd([CODE / "types-gfx90a.co"], "dispatch 0 types 4096 64 args-at=0x1000", "waves 0 halted 1 types+16") as s:
        s.session = s.attach()
        doc = snapshot(s)
        arguments = doc["groups"][0]["arguments"]
        assert [(a["name"], a["state"]) for a in arguments] == [(n, "unreadable") for n in NAMES]
        assert not any("value" in a or "raw" in a for a in arguments)
        assert doc["missing"] == ["arguments of types: their memory is not readable"] and not doc["complete"]
        assert "types (table=<unreadable>, n=<unreadable>" in re.sub(r"\s+", " ", s.ctl("snapshot", s.app.pid, "-v", LONG_STOP).stdout)


def test_hostile_notes(tmp_path):
    """Offsets beyond the segment, names that are none, ten thousand arguments, and notes that end too early."""
    def beyond(note):
        note["amdhsa.kernels"][0][".args"][1][".offset"] = 0xfffffff0
        note["amdhsa.kernels"][0][".args"][2][".size"] = 0xfffffff0

    def names(note):
        for a, name in zip(note["amdhsa.kernels"][0][".args"], ("\x1b[2Jx", "a\nb", "\xff", "x" * 500)):
            a[".name"], a[".type_name"] = name, name

    def many(note):
        note["amdhsa.kernels"][0][".args"] = [{".offset": 0, ".size": 1, ".value_kind": "by_value"}] * 10000

    def none(note):
        note["amdhsa.kernels"][0][".args"] = [7]

    os.chmod(tmp_path, 0o755)
    base = stripped(CODE / "types-gfx90a.co", tmp_path / "base.co")

    def look(change):
        code = rewritten(base, tmp_path / f"{change.__name__}.co", change)
        with amd([code], f"dispatch 0 types 4096 64 args={TYPES}", "waves 0 halted 1 types+16") as s:
            s.session = s.attach()
            doc = snapshot(s)
            return doc["groups"][0].get("arguments"), doc["missing"], s.ctl("snapshot", s.app.pid, "-v", LONG_STOP).stdout

    arguments, missing, _ = look(beyond)
    assert [a["state"] for a in arguments] == ["ok", "unavailable", "unavailable"] + ["ok"] * 5 + ["partial", "ok"]
    assert missing == ["arguments of types: what its code object says of them is broken"]
    arguments, missing, text = look(names)
    assert [a["name"] for a in arguments[:3]] == ["?[2Jx", "a?b", "?"] and len(arguments[3]["name"]) == 127
    assert missing == [] and "\x1b" not in text
    arguments, missing, _ = look(many)
    assert len(arguments) == 256
    assert missing == ["arguments of types: it has 10000, of which 256 are shown"]
    arguments, missing, _ = look(none)
    assert arguments is None and missing == ["arguments of types: what its code object says of them is broken"]


def test_long_arguments(tmp_path):
    """What the stop does not copy is read when the queues run again."""
    def far(note):
        note["amdhsa.kernels"][0][".args"][1][".offset"] = 2000
        note["amdhsa.kernels"][0][".kernarg_segment_size"] = 2004

    os.chmod(tmp_path, 0o755)
    code = rewritten(CODE / "types-gfx90a.co", tmp_path / "far.co", far)
    with amd([code], f"dispatch 0 types 4096 64 args={TYPES},x:{'00' * 400},x:{'00' * 400},x:{'00' * 400},x:{'00' * 400},"
                     f"x:{'00' * 264},i:77", "waves 0 halted 1 types+16") as s:
        s.session = s.attach()
        doc = snapshot(s)
        assert [(a["value"], a["state"]) for a in doc["groups"][0]["arguments"][:2]] == [("0x7f1234567000", "ok"), ("77", "ok")]
        assert doc["complete"], doc["missing"]


def test_an_editor_that_looks_at_another_dispatch():
    """Waves of one place may be of two launches: those of one are not shown for the other."""
    commands = "; ".join(f"dispatch {q} scale 4096 64 args=p:{0x1000 * q:#x},i:{q}" for q in range(2))
    with amd([CODE / "spin-gfx90a.co"], commands, "waves 0 halted 2 scale+16; waves 1 halted 1 scale+16") as s, \
            Adapter(s.socket) as a:
        def shown():
            return a.frame()["name"], a.values("Arguments")

        a.start(pid=s.app.pid)
        a.pause()
        assert shown() == ("scale(data=0x0, n=0)", {"data@entry": "0x0", "n@entry": "0"})
        other = next(w for w in a.call("gpuAgent/waves", threadId=1)["waves"] if w["ref"]["queue_id"] == 1)
        a.call("gpuAgent/focus", threadId=1, wave=other["ref"])
        assert shown() == ("scale", {"data": "<optimised out>", "n": "<optimised out>"})


def test_at_most_eight_dispatches(tmp_path):
    os.chmod(tmp_path, 0o755)
    code = stripped(CODE / "spin-gfx90a.co", tmp_path / "spin.co")
    commands = "; ".join(f"dispatch {q} scale 4096 64 args=p:{0x1000 * q:#x},i:{q}" for q in range(12))
    waves = "; ".join(f"waves {q} halted 1 scale+{16 + 4 * q}" for q in range(12))
    with Scene(app=f"runtime ttmp; load {code}; queues 12; {commands}; {waves}; spin", gpus="gfx90a") as s:
        s.session = s.attach()
        doc = snapshot(s)
        assert sum("arguments" in g for g in doc["groups"]) == 8 and doc["complete"], doc["missing"]
        doc = snapshot(s, arguments=True)
        assert {g["arguments"][1]["value"] for g in doc["groups"]} == {str(q) for q in range(12)} and doc["complete"]


# -- NVIDIA ------------------------------------------------------------------------------------------

def cuda(cubin, launch, release="12.4"):
    return CudaScene(app=f"init; context 0; module {cubin}; {launch}; spin", release=release, sim="devices 1 sms=4 warps=8")


@pytest.mark.parametrize("cubin,names,types", [
    ("spin-sm_90-g", ["out", "rounds"], ["float *", "int"]),
    ("spin-sm_90", ["arg0", "arg1"], ["float*", "int"]),
    ("spin-sm_80", ["arg0", "arg1"], ["float*", "int"]),
])
@pytest.mark.parametrize("release", ["12.4", "13.4"])
def test_cuda(cubin, names, types, release, tmp_path):
    launch = ("gpu launch _Z7divergeIfEvPT_i grid=2 block=64 args=p:0x7f1000002000,i:-7; "
              "gpu launch fault grid=1 block=32 at=2 args=p:0x0; gpu raise 0 2 0 14")
    with cuda(CUBINS / f"{cubin}.cubin", launch, release) as s:
        s.session = s.attach()
        doc = snapshot(s)
        assert doc["complete"], doc["missing"]
        (_, words), _ = passed(s)
        arguments = group_of(doc, "void diverge")["arguments"]
        assert as_shown(arguments) == [
            (name, value(*word), offset, size, "ok", "launch")
            for name, word, (offset, size) in zip(names, words, layout(words))]
        assert [a["type"] for a in arguments] == types
        fault = group_of(doc, "fault")
        assert fault["arguments"][0]["value"] == "0x0"
        head = s.ctl("snapshot", s.app.pid, LONG_STOP).stdout.splitlines()[0]
        assert f"of fault({fault['arguments'][0]['name']}=0x0)" in head, head
        core = tmp_path / "core"
        run = s.ctl("dump", s.app.pid, LONG_STOP, "-o", core)
        assert run.returncode in (0, 8), run
        with CoreRpc(core) as rpc:
            saved = rpc.call("gpu.snapshot", session="core")
        key = lambda d: sorted(json.dumps([g["kernel"], g["arguments"]]) for g in d["groups"])  # noqa: E731
        assert key(saved) == key(doc)


def test_cuda_editor():
    with cuda(CUBINS / "spin-sm_90-g.cubin", "gpu launch spin grid=2 block=64 args=p:0x7f1000002000,p:0x7f1000003000") as s:
        with Adapter(s.socket) as a:
            a.start(pid=s.app.pid)
            a.pause()
            thread = a.call("threads")["threads"][0]
            frame = a.call("stackTrace", threadId=thread["id"])["stackFrames"][-1]
            assert frame["name"] == "spin(stop=0x7f1000002000, out=0x7f1000003000)"


def test_cuda_without_parameters_in_the_driver():
    """A driver that does not show them: constant bank 0 has them, too; or nobody has."""
    with cuda(CUBINS / "spin-sm_90.cubin", "gpu launch fault grid=1 block=32") as s:
        s.session = s.attach()
        assert snapshot(s)["groups"][0]["arguments"][0]["value"] == "0x0"
        s.cuda.command("fail readParamMemory 10")
        doc = snapshot(s)
        assert [a["state"] for a in doc["groups"][0]["arguments"]] == ["unreadable"]
        assert doc["missing"] == ["arguments of fault: their memory is not readable"]
        bank = bytes(0x210) + struct.pack("<Q", 0x7f00c0ffee00)
        s.cuda.command(f"memory const 0 0x7f2000000000 hex={bank.hex()}")
        doc = snapshot(s)
        assert doc["groups"][0]["arguments"][0]["value"] == "0x7f00c0ffee00" and doc["complete"], doc
