# SPDX-License-Identifier: MIT
"""What a user sees: every verb on each program, and programs at each stage before a kernel."""
import base64
import json
import os
import signal
import sys
import time

from harness import STOP_MS, RpcError, status, wait_until

from engine import Skipped

FAULTS = ["wave_trap", "wave_math_error", "wave_illegal_instruction", "wave_memory_violation", "wave_address_error"]
RUNS_AGAIN = 10  # seconds, until the kernel must be seen to count after whatever we did


def check_runs(p):
    """The program is well: heartbeat, GPU, no tracer."""
    assert p.alive, "the program has ended"
    wait_until(lambda: status(p.pid).get("TracerPid") == "0", "nobody traces it", RUNS_AGAIN)
    before = p.beats
    wait_until(lambda: p.beats > before, "its heartbeat goes on", RUNS_AGAIN)
    return p.wait_gpu_runs(RUNS_AGAIN)


def of_gpu(doc, p):
    """The groups that are in this program's kernel."""
    groups = [g for g in doc["groups"] if p.kind.kernel in g.get("kernel", {}).get("name", "")]
    assert groups, f"no group is in kernel {p.kind.kernel}: {[(g.get('kernel'), g['pc']) for g in doc['groups']]}"
    return groups


def lines_of(group, source):
    return {f["line"] for f in group["frames"] if "line" in f and os.path.basename(f.get("file", "")) == source}


def snapshot(b, p, *options):
    return b.agent.json("snapshot", p.pid, *options)


def snapshot_soon(b, p, patience=15):
    """(document, what was said before): while somebody cleans up after a dead debugger, others are refused."""
    began, refusal = time.monotonic(), ""
    while True:
        # 1 is for one that shared the session of a worker that had been killed just before: "try again".
        done = b.agent.ctl("snapshot", p.pid, "-j", codes=(0, 1, 6))
        took = time.monotonic() - began
        if done.code == 0:
            return json.loads(done.out), f"a new session is had {took * 1000:.0f} ms after" + refusal
        assert done.code != 1 or "try again" in done.err, done.err
        refusal = f", refused before with exit {done.code}"
        assert took < patience, f"still refused after {took:.0f} s: {done.err.strip() or done.out.strip()}"
        time.sleep(0.02)


def listed(b, p):
    found = [q for q in b.agent.json("list")["processes"] if q["pid"] == p.pid]
    assert found, "it is not in the list"
    assert found[0]["vendor"] == "nvidia", found[0]
    return f"vendor {found[0]['vendor']}, debuggable {found[0].get('debuggable', '?')}"


def doctored(b, p):
    doc = b.agent.json("doctor", p.pid, codes=(0, 5))
    bad = [f"{c['name']}: {c['detail']}" for c in doc["checks"] if c["verdict"] == "fail" and c["name"].startswith("cuda")]
    b.engine.section(f"doctor {p.name}", "\n".join(f"{c['verdict']:<8} {c['name']}: {c['detail']}" for c in doc["checks"]))
    assert not bad, "; ".join(bad)
    return f"{len(doc['checks'])} checks, ok {doc['ok']}"


def attached(b, p):
    p.take_gap_ms()
    b.no_session = ""
    rpc = b.agent.rpc()
    try:
        info = rpc.call("session.attach", pid=p.pid)
        assert info["vendor"] == "nvidia", info
        devices = rpc.call("gpu.devices", session=info["session"])["devices"]
        queues = rpc.call("gpu.queues", session=info["session"])["queues"]
        rpc.call("session.detach", session=info["session"])
    except (RpcError, EOFError, OSError) as error:
        b.no_session = f"{error or type(error).__name__}"[:160]
        raise
    finally:
        rpc.close()
    check_runs(p)
    gap = p.take_gap_ms()
    b.engine.fact(f"largest heartbeat gap, attach and detach, {p.name}", f"{gap:.1f} ms")
    assert devices and queues, (devices, queues)
    return f"{devices[0]['name']} {devices[0]['arch']}, {len(queues)} contexts, gap {gap:.1f} ms"


def snapped(b, p):
    """Every warp, each at a place of the source where it must be, and every such place."""
    b.need_session()
    p.take_gap_ms()
    doc = snapshot(b, p, "--waves")
    check_runs(p)
    gap = p.take_gap_ms()
    b.engine.section(f"snapshot {p.name}", b.agent.ctl("snapshot", p.pid).out)
    at = check_snapshot(doc, p)
    return (f"{p.kind.warps} warps in {len(of_gpu(doc, p))} groups, {p.kind.source}:{sorted(at)}, stopped {doc['stopped_us']} us, "
            f"gap {gap:.1f} ms")


def check_snapshot(doc, p):
    """The lines that were seen."""
    groups = of_gpu(doc, p)
    assert doc["complete"], doc["missing"]
    at = set()
    for g in groups:
        lines = lines_of(g, p.kind.source)
        assert lines & p.kind.lines, f"{g['waves']} warps are at {sorted(lines) or g['pc']}, expected one of {sorted(p.kind.lines)}"
        assert 0 < g["lanes_max"] <= p.kind.lanes, f"{g['lanes_max']} lanes are active, of {p.kind.lanes} that may be"
        at |= lines & p.kind.lines
    mine = [w for w in doc["waves"] if doc["groups"][w["group"]] in groups]
    assert len(mine) == p.kind.warps, f"{len(mine)} warps are listed, the kernel has {p.kind.warps}"
    if p.kind.lanes < 32:
        return at  # which part of a warp is the first is chance: see the row on its lanes
    for place in p.kind.places:
        assert at & place, f"no warp is at {sorted(place)}; they are at {sorted(at)}"
    return at


def lane_mask(items, pcs):
    return sum(1 << i["lane"] for i in items if i["pc"] in pcs)


def diverged(b, p):
    """Lanes of one warp are at two places, sixteen at each: asked lane by lane, so that it is the program that is judged."""
    rpc, session, ref = representative(b, p)
    try:
        items = rpc.call("wave.registers", session=session, wave=ref, work_items=True,
                         max_stop_ms=STOP_MS)["registers"].get("work_items", [])
        doc = rpc.call("gpu.snapshot", session=session, waves=True)
    finally:
        rpc.close()
    check_runs(p)
    low = {i["pc"] for i in items if i["lane"] < 16 and "pc" in i}
    high = {i["pc"] for i in items if i["lane"] >= 16 and "pc" in i}
    assert len(items) == 32 and low and high, f"{len(items)} lanes are told of, {len(low | high)} addresses"
    assert not low & high, f"the warp has not diverged: lanes of both halves are at {sorted(low & high)}"
    b.diverged = (doc, ref, low, high)
    return f"lanes 0-15 at {', '.join(sorted(low))}; lanes 16-31 at {', '.join(sorted(high))}"


def parted(b, p):
    """The snapshot shows both parts of each warp, each in a group at a line of its own."""
    b.need_session()
    if not getattr(b, "diverged", None):
        raise Skipped("no divergence was seen")
    doc, ref, low, high = b.diverged
    groups = of_gpu(doc, p)
    mine = [w for w in doc["waves"] if doc["groups"][w["group"]] in groups]
    if not any("parts" in w for w in mine):
        raise Skipped("this daemon tells no parts of warps")
    assert len(mine) == p.kind.warps and all("parts" in w for w in mine), (
        f"{sum('parts' in w for w in mine)} of {len(mine)} warps have parts, the kernel has {p.kind.warps}")
    assert doc.get("diverged_waves") == p.kind.warps, f"{doc.get('diverged_waves')} warps are counted as diverged"
    at = []
    for w in mine:
        masks = [int(part["exec"], 16) for part in w["parts"]]
        # Lanes of a half may be at two instructions of their loop.
        assert sum(masks) == 0xffffffff and all(not m & 0xffff or not m >> 16 for m in masks), [hex(m) for m in masks]
        assert w["parts"][0]["pc"] == w["pc"], (w["parts"], w["pc"])
        at += [(m, lines_of(doc["groups"][part["group"]], p.kind.source)) for m, part in zip(masks, w["parts"])]
    seen = set().union(*(lines for _, lines in at))
    halves = [set().union(*(lines for m, lines in at if m & bits)) & p.kind.lines for bits in (0xffff, 0xffff0000)]
    for place in p.kind.places:
        assert seen & place, f"no part is at {sorted(place)}; they are at {sorted(seen)}"
    first = next(w for w in mine if w["ref"]["unit"] == ref["unit"] and w["ref"]["index"] == ref["index"])
    told = {part["pc"] for part in first["parts"]}
    assert told == low | high, f"parts are at {sorted(told)}, lanes at {sorted(low | high)}"
    return f"{len(mine)} warps, lanes 0-15 at {sorted(halves[0])}, 16-31 at {sorted(halves[1])}"


def inlined(b, p):
    b.need_session()
    groups = of_gpu(snapshot(b, p), p)
    chains = [[f.get("function", "") for f in g["frames"]] for g in groups]
    assert any(len([f for f in c if f]) > 1 for c in chains), f"no group has an inline chain: {chains}"
    return " | ".join(" < ".join(c) for c in chains)[:120]


def representative(b, p):
    """(session's client, session, wave_ref) with its GPU suspended, so that nothing moves."""
    b.need_session()
    rpc = b.agent.rpc()
    session = rpc.call("session.attach", pid=p.pid, control=True)["session"]
    rpc.call("gpu.suspend", session=session, lease_ms=15000)
    group = of_gpu(rpc.call("gpu.snapshot", session=session), p)[0]
    return rpc, session, group["representative"]


def first_thread(ref):
    """Thread of lane 0 in its block."""
    return 32 * ref.get("wave_in_group", 0)


def registers(b, p):
    rpc, session, ref = representative(b, p)
    try:
        want = p.register_values(ref, first_thread(ref))
        got = rpc.call("wave.registers", session=session, wave=ref)["registers"]
    finally:
        rpc.close()
    found = [r["name"] for r in got["vector"] if [int(v, 16) for v in r["lanes"]][:32] == want]
    check_runs(p)
    assert found, f"no vector register holds {want[0]:#x} + lane; there are {len(got['vector'])}"
    return f"{found[0]} of {len(got['vector'])} vector registers, {len(got['scalar'])} scalar ones"


def memory(b, p, space):
    rpc, session, ref = representative(b, p)
    params, lane = {}, 3
    try:
        if space == "global":
            address, want = p.global_memory()
        elif space == "lds":
            address, want = p.shared_memory(ref)
            params = {"space": space, "wave": ref}
        else:
            address, want = p.local_memory(ref, first_thread(ref), lane)
            params = {"space": space, "wave": ref, "lane": lane}
        reply = rpc.call("memory.read", session=session, address=hex(address), size=len(want), **params)
    finally:
        rpc.close()
    got = base64.b64decode(reply["data"])
    check_runs(p)
    assert got == want, f"at {address:#x}: {got[:16].hex()}, expected {want[:16].hex()}"
    return f"{len(got)} bytes at {address:#x}"


def suspended(b, p):
    """Suspend, see the kernel stand, resume, see it go on; the CPU side never stops."""
    b.need_session()
    rpc = b.agent.rpc()
    try:
        session = rpc.call("session.attach", pid=p.pid, control=True)["session"]
        p.take_gap_ms()
        rpc.call("gpu.suspend", session=session, lease_ms=10000)
        assert p.gpu_stands(), "the kernel goes on although its GPU is suspended"
        before = p.beats
        wait_until(lambda: p.beats > before, "the heartbeat goes on")
        rpc.call("gpu.resume", session=session)
        took = p.wait_gpu_runs(RUNS_AGAIN)
        gap = p.take_gap_ms()
    finally:
        rpc.close()
    check_runs(p)
    return f"went on after {took * 1000:.0f} ms, largest heartbeat gap {gap:.1f} ms"


def detached_twice(b, p):
    b.need_session()
    for _ in range(3):
        doc = snapshot(b, p)
        of_gpu(doc, p)
        check_runs(p)
    return "three sessions one after the other"


def lease_ends(b, p):
    """A client dies with the GPU suspended."""
    b.need_session()
    popen, _ = b.agent.background("suspend", p.pid, "--lease", "20s")
    try:
        wait_until(lambda: p.gpu_stands(0.1), "the GPU is suspended", 10)
    finally:
        os.kill(popen.pid, signal.SIGKILL)
        popen.wait(5)
    took = check_runs(p)
    return f"went on {took * 1000:.0f} ms after its client died"


def fault(b, p):
    """Events on a fault; a snapshot names it, its line, its lane and its thread."""
    b.need_session()
    rpc = b.agent.rpc(30)
    try:
        session = rpc.call("session.attach", pid=p.pid, control=True)["session"]
        rpc.call("exception.subscribe", session=session, exceptions=FAULTS)
        began = time.monotonic()
        p.fault()
        event = rpc.notification("exception.raised", 20)
        took = time.monotonic() - began
        doc = rpc.call("gpu.snapshot", session=session, waves=True)
        top = doc["groups"][0]
        items = rpc.call("wave.registers", session=session, wave=top["representative"], work_items=True,
                         max_stop_ms=STOP_MS)["registers"].get("work_items", [])
        rpc.call("session.detach", session=session)
    finally:
        rpc.close()
    b.engine.fact("fault to notification", f"{took * 1000:.1f} ms")
    b.engine.section("event and snapshot of the fault", json.dumps(event) + "\n" + json.dumps(doc["groups"])[:20000])
    said = check_fault(top, p)
    workgroup, (block, thread) = top["representative"]["workgroup"], p.kind.thread
    assert workgroup == [block, 0, 0], f"{said} is in block {workgroup}, expected {block}"
    faulty = [i["in_group"] for i in items if "exception" in i]
    assert faulty == [[thread, 0, 0]], f"threads with an exception: {faulty}, expected {thread} alone, of {len(items)}"
    return (f"{said} at {p.kind.source}:{sorted(lines_of(top, p.kind.source))}, block {block}, thread {thread}, "
            f"{'/'.join(event['exceptions'])}, told after {took * 1000:.0f} ms")


def check_fault(top, p):
    """What the first group of a document says of the fault, which must be named and on its line."""
    said = top.get("exception", "")
    lines = lines_of(top, p.kind.source)
    assert said, f"no exception on top: {top}"
    assert "illegal address" in said.lower() or "mmu fault" in said.lower(), said
    assert lines & p.kind.faults, f"{said} is at {sorted(lines) or top['pc']}, expected one of {sorted(p.kind.faults)}"
    return said


def fault_arrives(_b, p):
    """Whether anybody could watch or not."""
    if not p.has_faulted:
        p.fault()
    assert p.alive, "the program has ended"
    return p.fault_reaches_it()


ROWS = {
    "spin": [("snapshot: kernel and lines", snapped), ("suspend and resume", suspended), ("registers", registers),
             ("memory: global", lambda b, p: memory(b, p, "global")), ("memory: shared", lambda b, p: memory(b, p, "lds")),
             ("memory: local", lambda b, p: memory(b, p, "scratch")), ("client dies while suspended", lease_ends),
             ("second and third attach", detached_twice)],
    "diverge": [("lanes at two places", diverged), ("snapshot: kernel and lines", snapped), ("parts of warps", parted),
                ("inline chain", inlined)],
    "fault": [("snapshot: kernel and lines", snapped), ("events and snapshot on a fault", fault),
              ("the fault reaches the program", fault_arrives)],
}


def program(b, name):
    """All rows of one program."""
    rows = [("list", listed), ("doctor", doctored)] if name == "spin" else []
    rows_of_program(b, name, [*rows, ("attach, devices, contexts, detach", attached), *ROWS[name]], seconds=30)


def rows_of_program(b, name, rows, attaches=False, seconds=45, needs=3, **kwargs):
    """Rows of one program, which is started here; one that has ended is started again for those that remain.

    attaches: find out first whether it can be attached to.
    """
    box = {"p": None}

    def start():
        b.start_agent()
        box["p"] = b.lab.start(name, **kwargs)
        return f"pid {box['p'].pid}" if b.simulated else json.dumps(box["p"].ready)[:100]

    def stop():
        if box["p"]:
            box["p"].stop()
        box["p"] = None

    try:
        for title, function in ([("attach, devices, contexts, detach", attached)] if attaches else []) + rows:
            if not box["p"] or not box["p"].alive:
                if not b.step("start" if not box["p"] else "start again: it has ended", name, start, seconds=30, needs=needs):
                    b.engine.row(f"{title} and what follows", name, "SKIP", 0, "the program did not start")
                    return

            def run(function=function):
                b.start_agent()
                return function(b, box["p"])

            if not b.step(title, name, run, seconds=seconds, needs=needs):
                heal(b, box)
    finally:
        stop()


def heal(b, box):
    """After a row that failed: those that follow are not to suffer for it."""
    try:
        with b.engine.bounded(12):
            check_runs(box["p"])
    except Exception:  # whatever it was, a new one is well
        with b.engine.final(8):
            box["p"].stop()
        box["p"] = None


# -- before there is a kernel -----------------------------------------------------------------------


def at_stage(b, stop_at):
    """What is said of a process that is not that far; it must not be harmed."""
    b.start_agent()
    p = b.lab.start("spin", stop_at=stop_at)
    try:
        b.agent.ctl("doctor", p.pid, codes=None)
        done = b.agent.ctl("snapshot", p.pid, codes=(0, 5), seconds=20)
        said = (done.err.strip() or done.out.strip()).splitlines()
        assert p.alive and status(p.pid)["TracerPid"] == "0"
        if stop_at != "none" or not b.simulated:  # simulated, it is no CUDA program at all
            p.go()
            p.wait_kernel(30)
    finally:
        p.stop()
    return f"exit {done.code}: {said[0] if said else ''}"[:140]


def launch_path(b):
    """Attach before cuInit; the session sees the kernel that starts later."""
    b.need_session()
    b.start_agent()
    p = b.lab.start("spin", stop_at="loaded")
    rpc = b.agent.rpc(30)
    try:
        session = rpc.call("session.attach", pid=p.pid)["session"]
        began = time.monotonic()
        p.go()

        def seen():
            try:
                doc = rpc.call("gpu.snapshot", session=session)
                return doc["groups"]
            except RpcError:
                return None

        wait_until(seen, "the session sees the kernel", 25)
        took = time.monotonic() - began
        if not b.simulated:
            b.engine.fact("cuInit to first groups, attached before", f"{took * 1000:.0f} ms")
        rpc.call("session.detach", session=session)
        rpc.close()
        check_runs(p)
    finally:
        rpc.close()
        p.stop()
    return f"groups {took * 1000:.0f} ms after it went on"


def stages(b):
    b.step("attach before cuInit", "spin", launch_path, b, seconds=40, needs=5)
    for stop_at, title in (("none", "process without libcuda"), ("loaded", "libcuda loaded, no cuInit"),
                           ("init", "cuInit, no context"), ("context", "context, no kernel")):
        b.step(title, "spin", at_stage, b, stop_at, seconds=40, needs=5)


# -- a daemon with privileges -----------------------------------------------------------------------


def as_nobody(b):
    if os.geteuid() != 0:
        raise Skipped("needs root")
    if sys.version_info < (3, 9):
        raise Skipped("needs Python 3.9 to start a program as somebody else")
    from agent import Agent
    b.need_session()
    b.stop_agent()
    p = b.lab.start("spin", user=65534)
    try:
        b.agent = Agent(b.engine, b.lab, b.options, user_mode=False)
        doc = snapshot(b, p)
        of_gpu(doc, p)
        check_runs(p)
    finally:
        p.stop()
        b.stop_agent()
    return f"{doc['wave_count']} warps of a process of uid 65534"


def other_user(b):
    b.step("system mode, another user's process", "spin", as_nobody, b, seconds=40, needs=5)
