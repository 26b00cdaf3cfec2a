# SPDX-License-Identifier: MIT
"""Arguments, variables, what is built in, and expressions: against what was planted, and against NVIDIA's debugger."""
import collections

from harness import STOP_MS, RpcError

import nvgdb
import rows_look
from engine import Skipped
from programs import planted_values, real

LANE = 5
OTHER_LANES = (0, 31)
BUILT_IN = ("threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize")
# Expressions over variables of spin(), and what they are in a thread.
EXPRESSIONS = {
    "number": lambda v, t: "-12345",
    "number * 2 + 1": lambda v, t: "-24689",
    "index": lambda v, t: v["index"],
    "index % 128": lambda v, t: str(t),
    "wide >> 32": lambda v, t: str(0x12345678),
    "(int)wide": lambda v, t: str(0x9abcdef0 - (1 << 32)),
    "ratio + 1": lambda v, t: "2.5",
    "half * 2 == index": lambda v, t: "true",
    "quarter": lambda v, t: v["quarter"],
    "both": lambda v, t: v["both"],
    "mine.first": lambda v, t: str(int(v["index"]) + 1000),
    "own[3]": lambda v, t: str((t << 16) + 3),
    "*own": lambda v, t: str(t << 16),
    "pattern[63]": lambda v, t: str(0x5eed0000 + 63),
    "far == 4294967296LL * index + 7": lambda v, t: "true",
}


def lane_numbers(text):
    """[0, 1, 2, 8] of 0-2,8."""
    found = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def known(variables):
    """Those whose whole value is told, whatever their scope: what is built in counts as well."""
    return {v["name"]: v["value"] for v in variables if v["state"] == "ok" and "value" in v}


class Tally:
    """What became of values that are known from elsewhere."""

    def __init__(self):
        self.right, self.wrong, self.unknown, self.unlisted = 0, [], [], []

    def add(self, where, want, variable):
        """variable: with state and perhaps a value; None: it is not listed."""
        if variable is None:
            self.unlisted.append(where)
        elif variable["state"] != "ok" or "value" not in variable:
            self.unknown.append(f"{where} ({variable['state']})")
        elif nvgdb.normal(variable["value"]) != nvgdb.normal(want):
            self.wrong.append(f"{where} is {variable['value']}, not {want}")
        else:
            self.right += 1

    def __str__(self):
        return f"{self.right} right, {len(self.wrong)} wrong, {len(self.unknown)} unknown, {len(self.unlisted)} not listed"

    def check(self, at_least):
        """Nothing seen is no success; what is planted has a place at every instruction of the loop."""
        first = (self.wrong + self.unknown + self.unlisted + ["-"])[0]
        assert not self.wrong and not self.unknown and not self.unlisted, f"{self}; the first: {first}"
        assert self.right >= at_least > 0, f"only {self.right} values were seen, of {at_least}"


class Held:
    """A session whose GPU stands still, and one warp of it."""

    def __init__(self, b, p, block=1, warp=1):
        self.b, self.p = b, p
        b.need_session()
        self.rpc = b.agent.rpc()
        try:
            self.session = self.rpc.call("session.attach", pid=p.pid, control=True)["session"]
            self.rpc.call("gpu.suspend", session=self.session, lease_ms=25000)
            waves = self.rpc.call("gpu.snapshot", session=self.session, waves=True)["waves"]
            found = [w["ref"] for w in waves if w["ref"]["workgroup"][:1] == [block] and w["ref"].get("wave_in_group") == warp]
            assert len(found) == 1, f"{len(found)} warps are warp {warp} of block {block}, of {len(waves)}"
            self.ref, self.block = found[0], block
            if b.simulated:
                self._plant()
        except BaseException:
            self.rpc.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.rpc.close()
        if kind is None:
            rows_look.check_runs(self.p)

    def _plant(self):
        """Where the variables are said to be there they are put: the simulator runs no code."""
        if "variables" not in self.p.planted:
            self.p.plant_stack(self.ref)
            listed = self.variables(lane=0)["variables"]
            self.p.plant_variables(self.ref, {v["name"]: v.get("location", "") for v in listed})
            self.p.planted["variables"] = True

    def thread(self, lane):
        return 32 * self.ref["wave_in_group"] + lane

    def planted(self, lane):
        return planted_values(self.block, self.thread(lane))

    def variables(self, **params):
        return self.rpc.call("wave.variables", session=self.session, wave=self.ref, max_stop_ms=STOP_MS, **params)

    def evaluate(self, expression, **params):
        return self.rpc.call("wave.evaluate", session=self.session, wave=self.ref, expression=expression,
                             max_stop_ms=STOP_MS, **params)


def names(variables, scopes):
    return {v["name"]: v for v in reversed(variables) if v["scope"] in scopes}


def one_lane(b, p):
    """Arguments and variables of one thread."""
    with Held(b, p) as h:
        listed = h.variables(lane=LANE)["variables"]
    b.engine.section("variables of a thread", "\n".join(
        f"{v['scope']:<9} {v['name']:<9} {v['state']:<12} {v.get('location', ''):<18} {v.get('value', '')[:60]}" for v in listed))
    tally, found = Tally(), names(listed, ("argument", "local", "static"))
    want = {name: text for name, text in h.planted(LANE).items() if name not in BUILT_IN}
    for name, text in want.items():
        tally.add(name, text, found.get(name))
    for name, address in p.pointers().items():
        tally.add(name, hex(address), found.get(name))
    tally.check(len(want) + 2)
    return f"{tally}, of thread {h.thread(LANE)} of block {h.block}"


def built_in(b, p):
    with Held(b, p) as h:
        listed = h.variables(lane=LANE)["variables"]
    tally, found = Tally(), names(listed, ("built_in",))
    if not found:
        raise Skipped("this daemon lists nothing that is built in")
    for name in BUILT_IN:
        tally.add(name, h.planted(LANE)[name], found.get(name))
    tally.check(len(BUILT_IN))
    return f"{tally}; {len(known(listed))} of {len(listed)} of all scopes are known"


def per_lane(value, lane_count=32):
    """lane -> what is told of it; every lane is told once."""
    told = [(lane, entry) for entry in value["lanes"] for lane in lane_numbers(entry["lanes"])]
    assert sorted(lane for lane, _ in told) == list(range(lane_count)), f"{value['name']}: told of lanes {[n for n, _ in told]}"
    return dict(told)


def all_lanes(b, p):
    """The same of every thread of a warp, in one answer."""
    with Held(b, p) as h:
        try:
            listed = h.variables(lanes="all")["variables"]
        except RpcError as error:
            if error.name != "invalid_params":
                raise
            raise Skipped(f"this daemon tells of one lane at a time: {error}") from None
    found = names(listed, ("argument", "local", "static"))
    if not any("lanes" in v for v in found.values()):
        raise Skipped("this daemon tells of one lane at a time")
    tally = Tally()
    want = [h.planted(lane) for lane in range(32)]
    for name in (n for n in want[0] if n not in BUILT_IN):
        told = per_lane(found[name]) if name in found else {}
        for lane in range(32):
            tally.add(f"{name} of lane {lane}", want[lane][name], told.get(lane))
    tally.check(32 * (len(want[0]) - len(BUILT_IN)))
    return f"{tally}, of 32 threads of block {h.block}"


def expressions(b, p):
    tally = Tally()
    with Held(b, p) as h:
        for expression, value in EXPRESSIONS.items():
            try:
                told = h.evaluate(expression, lane=LANE)
            except RpcError as error:
                told = {"state": str(error)}
            tally.add(expression, value(h.planted(LANE), h.thread(LANE)), told)
    tally.check(len(EXPRESSIONS))
    return str(tally)


def expression_of_all(b, p):
    """One expression in every thread of a warp."""
    expression = "index * 2 + own[1]"
    with Held(b, p) as h:
        told = h.evaluate(expression, lane=LANE, lanes="all")
    if "lanes" not in told:
        raise Skipped("this daemon tells of one lane at a time")
    each, tally = per_lane({"name": expression, **told}), Tally()
    for lane in range(32):
        # own is unsigned, and so the sum.
        want = int(h.planted(lane)["index"]) * 2 + (h.thread(lane) << 16) + 1
        tally.add(f"lane {lane}", str(want), each[lane])
    tally.check(32)
    return str(tally)


MEMBERS = {
    "mine": lambda v, t: {"first": str(int(v["index"]) + 1000), "second": real(-int(v["index"]) * 0.5)},
    "own": lambda v, t: {f"[{i}]": str((t << 16) + i) for i in range(16)},
}


def members(b, p):
    """Members of a structure, elements of an array, and each by the expression that is said to mean it."""
    tally, again = Tally(), Tally()
    with Held(b, p) as h:
        for name, wanted in MEMBERS.items():
            told, want = h.evaluate(name, lane=LANE, max_members=100), wanted(h.planted(LANE), h.thread(LANE))
            if "list" not in told:
                raise Skipped("this daemon lists no members")
            found = {m["name"]: m for m in told["list"]}
            assert len(found) == len(told["list"]) == told.get("members") == len(want), (
                f"{name}: {told.get('members')} members, {sorted(found)}, expected {sorted(want)}")
            for member, text in want.items():
                tally.add(f"{name} {member}", text, found.get(member))
                expression = found[member].get("expression")
                again.add(f"{expression} for {name} {member}", text, h.evaluate(expression, lane=LANE) if expression else None)
    tally.check(18)
    again.check(18)
    return f"listed: {tally}; by their expressions: {again}"


def lanes(b, p):
    """What each lane works on."""
    with Held(b, p) as h:
        items = h.rpc.call("wave.registers", session=h.session, wave=h.ref, work_items=True,
                           max_stop_ms=STOP_MS)["registers"].get("work_items", [])
    want = [[h.thread(lane), 0, 0] for lane in range(32)]
    got = [item["in_group"] for item in sorted(items, key=lambda i: i["lane"])]
    assert got == want, f"{len(got)} lanes: {got[:4]}, expected {want[:4]}"
    pcs = {item.get("pc") for item in items}
    assert None not in pcs, "no pc of a lane is told"
    return f"32 lanes are threads {want[0][0]} to {want[-1][0]} of block {h.block}, at {len(pcs)} addresses"


def planted(b):
    rows_look.rows_of_program(b, "values", [
        ("variables of a thread, as planted", one_lane), ("variables of 32 threads, as planted", all_lanes),
        ("built-in variables, as planted", built_in),
        ("expressions, as planted", expressions),
        ("an expression in 32 threads, as planted", expression_of_all), ("members, as planted", members), ("threads of a warp", lanes)],
        attaches=True)


# -- against NVIDIA's debugger ------------------------------------------------------------------------


class Comparison:
    """Two lists of variables of one thread, ours and the judge's."""

    def __init__(self):
        self.same, self.known_to_nobody, self.known_here_only = 0, 0, []
        self.different, self.unavailable_here, self.unlisted = [], [], []

    def add(self, name, ours, theirs):
        """Texts, or None where there is no value."""
        if theirs is None:
            self.known_to_nobody += ours is None
            self.known_here_only += [name] if ours is not None else []
        elif ours is None:
            self.unavailable_here.append(f"{name}, which is {theirs} there")
        elif nvgdb.normal(ours) != nvgdb.normal(theirs):
            self.different.append(f"{name}: {ours} here, {theirs} there")
        else:
            self.same += 1

    def add_variables(self, ours, theirs):
        """ours: of wave.variables; theirs: nvgdb.Variable.  Those of one name are compared in their order."""
        by_name = collections.defaultdict(lambda: ([], []))
        for v in ours:
            if v["scope"] != "built_in":
                by_name[v["name"]][0].append(v)
        for v in theirs:
            by_name[v.name][1].append(v)
        for name, (mine, yours) in sorted(by_name.items()):
            # The judge leaves out what the compiler has kept nowhere.
            if len(mine) > len(yours):
                mine = [v for v in mine if v["state"] != "optimised_out"]
            if len(mine) != len(yours):
                self.unlisted.append(f"{name}: {len(mine)} here, {len(yours)} there")
                continue
            for i in range(len(mine)):
                self.add(name, mine[i].get("value") if mine[i]["state"] == "ok" else None,
                         yours[i].value if yours[i].is_known else None)

    def take(self, other, where):
        """Add what another comparison has found."""
        self.same += other.same
        self.known_to_nobody += other.known_to_nobody
        for name in ("known_here_only", "different", "unavailable_here", "unlisted"):
            getattr(self, name).extend(f"{where}: {text}" for text in getattr(other, name))

    def __str__(self):
        text = (f"{self.same} the same, {len(self.different)} different, {len(self.unavailable_here)} unavailable here but "
                f"known there, {len(self.known_here_only)} known here only, {len(self.unlisted)} not listed by both")
        first = (self.different + self.unavailable_here + self.unlisted)[:2]
        return text + (f": {'; '.join(first)}" if first else "")

    def check(self, at_least=1):
        assert not self.different and not self.unavailable_here and not self.unlisted, str(self)
        assert self.same >= at_least, f"{self}; {at_least} at least were to be compared"
        return str(self)


def compare_thread(h_variables, answers, built_in_too=True):
    """answers: of ASK_VARIABLES, then of `print` of each built-in variable."""
    c = Comparison()
    c.add_variables(h_variables, nvgdb.variables(answers[0]))
    mine = known([v for v in h_variables if v["scope"] == "built_in"])
    if built_in_too and mine:
        assert len(answers) == 1 + len(BUILT_IN), f"{len(answers)} answers to {1 + len(BUILT_IN)} questions"
        for name, answer in zip(BUILT_IN, answers[1:]):
            c.add(name, mine.get(name), nvgdb.printed(answer))
    return c


QUESTIONS = [nvgdb.ASK_VARIABLES, *(f"print {name}" for name in BUILT_IN)]


def live_judge(b):
    judge = nvgdb.CudaGdb(b)
    if b.simulated:
        raise Skipped("cuda-gdb cannot attach to the simulator")
    return judge


def values_of_both(b, p):
    """Variables of some threads, live, and expressions; the loop goes on between the two, its variables do not change."""
    judge = live_judge(b)
    with Held(b, p) as h:
        ours = h.variables(lane=LANE)["variables"]
        others = {lane: h.variables(lane=lane)["variables"] for lane in OTHER_LANES}
        printed = []
        for expression in EXPRESSIONS:
            try:
                told = h.evaluate(expression, lane=LANE)
            except RpcError as error:
                told = {"state": str(error)}
            printed.append(told["value"] if told["state"] == "ok" and "value" in told else None)
    answers = judge.live(p, [nvgdb.ask_thread(h.block, h.thread(LANE)), *QUESTIONS,
                             *(f"print {expression}" for expression in EXPRESSIONS),
                             *(q for lane in others for q in (nvgdb.ask_thread(h.block, h.thread(lane)), nvgdb.ASK_VARIABLES))])
    b.engine.fact("cuda-gdb --batch, attach, variables, detach", f"{judge.ms} ms")
    rows_look.check_runs(p)
    theirs, of_others = answers[1 + len(QUESTIONS):][:len(printed)], answers[1 + len(QUESTIONS) + len(printed):][1::2]
    assert len(theirs) == len(printed) and len(of_others) == len(others), f"{len(answers)} answers"
    c = compare_thread(ours, answers[1:1 + len(QUESTIONS)])
    for expression, mine, answer in zip(EXPRESSIONS, printed, theirs):
        c.add(expression, mine, nvgdb.printed(answer))
    for (lane, mine), answer in zip(others.items(), of_others):
        c.take(compare_thread(mine, [answer], built_in_too=False), f"lane {lane}")
    b.engine.fact("values beside cuda-gdb, live", str(c))
    return c.check(at_least=45)


def lines_of_both(b, p):
    """The same places in NVIDIA's debugger, which says what it finds also where we cannot attach."""
    judge = live_judge(b)
    theirs = set()
    rows = nvgdb.table(judge.live(p, [nvgdb.ask_table("threads")])[0])
    for row in rows:
        if row.get("filename", "").endswith(p.kind.source):
            theirs.add(int(row["line"]))
    b.engine.fact(f"cuda-gdb alone, {p.name}", f"{len(rows)} rows of threads, lines {sorted(theirs)}, {judge.ms} ms")
    rows_look.check_runs(p)
    b.need_session()
    groups = rows_look.of_gpu(rows_look.snapshot(b, p), p)
    ours = set().union(*(rows_look.lines_of(g, p.kind.source) for g in groups))
    b.engine.fact(f"lines beside cuda-gdb, {p.name}", f"there {sorted(theirs)}, here {sorted(ours)}, {judge.ms} ms")
    assert theirs, f"cuda-gdb tells no line of {len(rows)} rows of threads"
    for place in p.kind.places:
        assert theirs & place and ours & place, f"there {sorted(theirs)}, here {sorted(ours)}, expected of {sorted(place)}"
    return f"there {sorted(theirs)}, here {sorted(ours)}, {judge.ms} ms"


def beside_cuda_gdb(b):
    rows_look.rows_of_program(b, "values", [("values beside cuda-gdb", values_of_both)], attaches=True, seconds=75, needs=20)
    for name in ("diverge", "spin"):
        rows_look.rows_of_program(b, name, [("lines beside cuda-gdb", lines_of_both)], attaches=True, seconds=75, needs=20)
