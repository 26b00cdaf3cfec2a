# SPDX-License-Identifier: MIT
"""Cores: ours in NVIDIA's debugger, the driver's in ours, and what both say of each."""
import collections
import os
import re
import struct
import time

from harness import wait_until

import nvgdb
import rows_look
import rows_values
from engine import Skipped
from programs import planted_values

MIB = 1 << 20
CONTEXTS = 0x8000000a  # type of the section of contexts
# Seconds until a driver that writes a core has its file.
BEGINS = 12


def analyzed(b, path):
    """What we say of a core."""
    doc = b.agent.json("analyze", path, "--waves", codes=(0, 8), seconds=60)
    assert doc["waves"], f"no warp is in it: {doc['missing']}"
    return doc


def windows(path):
    """Where shared and local memory lie among generic addresses, as the contexts of a core say."""
    data = path.read_bytes()
    if data[:4] != b"\x7fELF":
        return "it is compressed"
    table, count = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<H", data, 60)[0]
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table)]
    sections += [struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * i) for i in range(1, count or sections[0][5])]
    rows = [struct.unpack_from("<QQ", data, row + 8) for _, kind, _, _, at, size, _, _, _, entry in sections if kind == CONTEXTS
            for row in range(at, at + size, entry)]
    return "; ".join(f"shared {shared:#x} local {local:#x}" for shared, local in rows)


def ours_dumped(b, p):
    """Our dump, read by ourselves: as complete as a snapshot, with the values that were planted."""
    b.need_session()
    if b.simulated:
        with rows_values.Held(b, p):
            pass  # puts values where a GPU would have them
    light, path = b.engine.directory / "light.core", b.engine.directory / "ours.core"
    for option, file in (("--light", light), ("--full", path)):
        done = b.agent.ctl("dump", p.pid, option, "-o", file, seconds=30, codes=None)
        rows_look.check_runs(p)
        assert done.code == 0, f"dump {option}: exit {done.code}: {done.err.strip() or done.out.strip()}"
        assert file.read_bytes()[:4] == b"\x7fELF", file.read_bytes()[:16]
        rows_look.check_snapshot(analyzed(b, file), p)
        b.engine.fact(f"size of dump {option}", file.stat().st_size)
        b.engine.fact(f"windows of generic addresses, dump {option}", windows(file))
        b.our_core = file
    tally = in_core(b, path, analyzed(b, path), 1, 32 + rows_values.LANE)
    tally.check(len(planted_values(0, 0)) - len(rows_values.BUILT_IN))
    return f"light {light.stat().st_size / MIB:.1f} MiB, full {path.stat().st_size / MIB:.1f} MiB, {p.kind.warps} warps; values: {tally}"


def wave_of(doc, block, thread):
    found = [w for w in doc["waves"] if w["ref"]["workgroup"][:1] == [block] and w["ref"].get("wave_in_group") == thread // 32]
    assert len(found) == 1, f"{len(found)} warps have thread {thread} of block {block}"
    return found[0]


def variables_in_core(b, path, doc, block, thread):
    ref = wave_of(doc, block, thread)["ref"]
    name = f"{ref['queue_id']}:{ref['unit']}:{ref['index']}"
    return b.agent.json("variables", "--core", path, name, "--lane", thread % 32, codes=(0, 8))["variables"]


def in_core(b, path, doc, block, thread):
    """Planted values of spin() in a core."""
    tally = rows_values.Tally()
    listed = variables_in_core(b, path, doc, block, thread)
    found = rows_values.names(listed, ("argument", "local", "static"))
    for name, text in planted_values(block, thread).items():
        if name not in rows_values.BUILT_IN:
            tally.add(name, text, found.get(name))
    return tally


# -- both readers of one file ---------------------------------------------------------------------------


class Places:
    """Who is where, as one reader of a core has it: kernels, warps with block and active lanes, lines of active threads."""

    def __init__(self):
        self.kernels, self.warps, self.lines = set(), {}, {}

    def differences(self, other):
        found = []
        for what in ("kernels", "warps", "lines"):
            mine, yours = getattr(self, what), getattr(other, what)
            if not mine or not yours:
                found.append(f"{what}: {len(mine)} here, {len(yours)} there")
            elif mine != yours:
                only = sorted(map(str, (set(mine.items()) ^ set(yours.items())) if isinstance(mine, dict) else mine ^ yours))
                found.append(f"{what}: {len(mine)} here, {len(yours)} there, {len(only)} of only one, as {only[0]}")
        return found

    def __str__(self):
        return f"{len(self.kernels)} kernels, {len(self.warps)} warps, {len(self.lines)} threads"


def plain_kernel(name):
    """Without return type, arguments and what it is launched with."""
    return re.sub(r"<<<.*|\(.*", "", name).split(" ")[-1].strip()


def our_places(doc):
    places = Places()
    devices = {d["gpu_id"]: i for i, d in enumerate(doc["devices"])}
    for w in doc["waves"]:
        ref, exec_mask, group = w["ref"], int(w["exec"], 16), doc["groups"][w["group"]]
        key = devices[w["gpu_id"]], ref["unit"], ref["index"]
        block = f"({','.join(map(str, ref['workgroup']))})"
        places.warps[key] = block, exec_mask
        places.kernels.add(plain_kernel(group.get("kernel", {}).get("name", "?")))
        line = next((f["line"] for f in group["frames"] if "line" in f), None)
        for lane in range(32):
            if exec_mask >> lane & 1 and line:
                places.lines[(*key, lane)] = line
    return places


def their_places(judge, path):
    """In two steps, for the table of warps is asked by multiprocessor."""
    opening, threads, kernels = judge.core(path, [nvgdb.ask_table("threads"), nvgdb.ask_table("kernels")])
    rows = nvgdb.table(threads)
    if not rows:
        raise nvgdb.Failed(f"cuda-gdb finds no thread in it: {opening.strip()[-200:]}")
    sms = sorted({(int(r["device"]), int(r["sm"])) for r in rows})
    places = Places()
    answers = judge.core(path, [nvgdb.ask_table(f"warps device {d} sm {s}") for d, s in sms])[1:]
    assert len(answers) == len(sms), (len(answers), len(sms))
    for (device, sm), answer in zip(sms, answers):
        for r in nvgdb.table(answer):
            if int(r["valid_lanes_mask"], 16) if "valid_lanes_mask" in r else int(r["active_lanes_mask"], 16):
                places.warps[device, sm, int(r["warp"])] = r["blockIdx"].replace(" ", ""), int(r["active_lanes_mask"], 16)
    for r in rows:
        key = int(r["device"]), int(r["sm"]), int(r["warp"])
        lane = int(r["lane"])
        if key in places.warps and places.warps[key][1] >> lane & 1:
            places.lines[(*key, lane)] = int(r["line"])
    # Of the thread with the exception, we tell where that was; it may have gone on a little.
    focus = re.search(r"device (\d+), sm (\d+), warp (\d+), lane (\d+)\]", opening)
    raised = re.search(r"exception was triggered at PC .*\(\S+:(\d+)\)", opening)
    if focus and raised:
        places.lines[tuple(map(int, focus.groups()))] = int(raised.group(1))
    places.kernels = {plain_kernel(r.get("invocation") or r.get("name") or "?") for r in nvgdb.table(kernels)}
    return places, opening


def both_read(b, path, doc, block, threads, at_least):
    """The same kernels, warps and lines, and the same values of some threads of a block: at_least so many of each."""
    judge = nvgdb.CudaGdb(b)
    theirs, opening = their_places(judge, path)
    b.engine.section(f"cuda-gdb opens {os.path.basename(path)}", opening[-4000:])
    ours = our_places(doc)
    different = ours.differences(theirs)
    # What is built in need not be asked of all.
    questions = [[nvgdb.ask_thread(block, thread), *(rows_values.QUESTIONS if i == 0 else [nvgdb.ASK_VARIABLES])]
                 for i, thread in enumerate(threads)]
    answers = iter(judge.core(path, [q for of_thread in questions for q in of_thread])[1:])
    values = rows_values.Comparison()
    for i, (thread, of_thread) in enumerate(zip(threads, questions)):
        _, *told = [next(answers) for _ in of_thread]
        c = rows_values.compare_thread(variables_in_core(b, path, doc, block, thread), told, built_in_too=i == 0)
        assert c.same >= at_least, f"thread {thread}: {c}; {at_least} at least were to be compared"
        values.take(c, f"thread {thread}")
    assert next(answers, None) is None
    assert not different, "; ".join(different) + f"; values: {values}"
    return f"{ours}: the same; values of {len(threads)} threads: {values.check(at_least * len(threads))}", opening


WARP = range(32, 64)


def ours_in_cuda_gdb(b, _p):
    nvgdb.CudaGdb(b)
    path = getattr(b, "our_core", None)
    if not path:
        raise Skipped("there is no core of ours")
    return both_read(b, path, analyzed(b, path), 1, WARP, at_least=12)[0]


# -- the driver's own -----------------------------------------------------------------------------------


def written(path, p, seconds):
    """Wait until a file is there that grows no more, or its program has ended."""
    sizes, began = collections.deque(maxlen=10), time.monotonic()

    def is_done():
        assert path.exists() or time.monotonic() - began < BEGINS, f"the driver has not begun a core within {BEGINS} s"
        assert p.alive or path.exists(), "the program has ended, and the driver has written no core"
        sizes.append(path.stat().st_size if path.exists() else 0)
        return sizes[-1] and (not p.alive or (len(sizes) == sizes.maxlen and sizes[0] == sizes[-1])) or time.sleep(0.2)

    wait_until(is_done, f"the driver writes {path.name}", seconds)
    return path


def fault_core(b):
    """A fault of which the driver writes a core, read by us: exception, thread, line, and the thread's own value."""
    if b.simulated:
        raise Skipped("the simulated driver writes no cores")
    path = b.engine.directory / "driver-fault.core"
    p = b.lab.start("fault", debug=True, env={"CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "1", "CUDA_COREDUMP_FILE": str(path),
                                              "CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION": "0"})
    try:
        p.fault()
        written(path, p, 40)
        b.driver_core = path
        block, thread = p.kind.thread
        return read_fault(b, path, p.kind, {"index": str(block * 1000 + thread), "nowhere": "0x10"})
    finally:
        p.stop()


def read_fault(b, path, kind, planted):
    doc = analyzed(b, path)
    block, thread = kind.thread
    said = rows_look.check_fault(doc["groups"][0], type("P", (), {"kind": kind}))
    assert doc["groups"][0]["representative"]["workgroup"] == [block, 0, 0], doc["groups"][0]["representative"]
    ref = wave_of(doc, block, thread)["ref"]
    name = f"{ref['queue_id']}:{ref['unit']}:{ref['index']}"
    items = b.agent.json("lanes", "--core", path, name)
    faulty = faulty_threads(items)
    assert faulty == [[thread, 0, 0]], f"threads with an exception: {faulty}, expected {thread} alone"
    found = rows_values.names(variables_in_core(b, path, doc, block, thread), ("argument", "local"))
    tally = rows_values.Tally()
    for variable, text in planted.items():
        tally.add(variable, text, found.get(variable))
    b.engine.fact(f"windows of generic addresses, {path.name}", windows(path))
    b.engine.section(f"our reading of {path.name}", b.agent.ctl("analyze", path, codes=(0, 8)).out)
    detail = (f"{path.stat().st_size / MIB:.1f} MiB, {len(doc['waves'])} warps; {said}, block {block}, thread {thread}; "
              f"missing: {doc['missing'] or 'nothing'}; values: {tally}")
    tally.check(len(planted))
    return detail


def faulty_threads(doc):
    return [lane["in_group"] for lane in doc["lanes"] if "exception" in lane]


def fault_core_in_both(b):
    nvgdb.CudaGdb(b)
    path = getattr(b, "driver_core", None)
    if not path:
        raise Skipped("there is no core of the driver")
    doc = analyzed(b, path)
    block, thread = b.lab.kinds["fault"].thread
    text, opening = both_read(b, path, doc, block, [thread], at_least=2)
    check_opening(opening, block, thread)
    return text


def check_opening(opening, block, thread):
    """What cuda-gdb says first of a core with a fault."""
    assert re.search(r"CUDA Exception: (Warp Illegal Address|Warp Out-of-range Address|.*MMU Fault)", opening), opening[-400:]
    assert f"block ({block},0,0), thread ({thread},0,0)" in opening, f"cuda-gdb's focus: {opening[-400:]}"


def triggered_core(b):
    """A core that a user asks the driver for, of a program that runs on; both read it."""
    if b.simulated:
        raise Skipped("the simulated driver writes no cores")
    path, pipe = b.engine.directory / "driver-user.core", b.engine.directory / "driver-user.pipe"
    p = b.lab.start("values", env={"CUDA_ENABLE_USER_TRIGGERED_COREDUMP": "1", "CUDA_COREDUMP_FILE": str(path),
                                   "CUDA_COREDUMP_PIPE": str(pipe), "CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION": "0"})
    try:
        wait_until(pipe.exists, "the driver makes its pipe", 10)
        fd = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
        try:
            os.write(fd, b"1")
            written(path, p, 40)
        finally:
            os.close(fd)
        doc = analyzed(b, path)
        rows_look.check_snapshot({**doc, "complete": True}, p)
        tally = in_core(b, path, doc, 1, 32 + rows_values.LANE)
        b.user_core = path
        b.engine.fact("program after a core that a user asked for", "runs on" if p.alive else "has ended")
        detail = f"{path.stat().st_size / MIB:.1f} MiB, {len(doc['waves'])} warps; missing: {doc['missing'] or 'nothing'}; {tally}"
        tally.check(10)
        return detail
    finally:
        p.stop()


def triggered_core_in_both(b):
    nvgdb.CudaGdb(b)
    path = getattr(b, "user_core", None)
    if not path:
        raise Skipped("there is no core of the driver")
    return both_read(b, path, analyzed(b, path), 1, WARP, at_least=12)[0]


def cores(b):
    def step(title, name, function, needs):
        def run():
            b.start_agent()
            return function(b)

        b.step(title, name, run, seconds=70, needs=needs)

    step("driver's core of a fault, read by us", "fault", fault_core, 10)
    step("driver's core of a fault, read by both", "fault", fault_core_in_both, 8)
    rows_look.rows_of_program(b, "values", [("our core, read by us", ours_dumped), ("our core, read by both", ours_in_cuda_gdb)],
                              attaches=True, seconds=70, needs=10)
    step("driver's core on request, read by us", "values", triggered_core, 10)
    step("driver's core on request, read by both", "values", triggered_core_in_both, 8)
