# SPDX-License-Identifier: MIT
"""What a user sees: every verb on each program, and programs at each stage before a kernel."""
import base64
import json
import os
import signal
import sys
import time

from harness import RpcError, status, wait_until

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
        done = b.agent.ctl("snapshot", p.pid, "-j", codes=(0, 6))
        took = time.monotonic() - began
        if done.code == 0:
            return json.loads(done.out), f"a new session is had {took * 1000:.0f} ms after" + refusal
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
    rpc = b.agent.rpc()
    try:
        info = rpc.call("session.attach", pid=p.pid)
        assert info["vendor"] == "nvidia", info
        devices = rpc.call("gpu.devices", session=info["session"])["devices"]
        queues = rpc.call("gpu.queues", session=info["session"])["queues"]
        rpc.call("session.detach", session=info["session"])
    finally:
        rpc.close()
    check_runs(p)
    gap = p.take_gap_ms()
    b.engine.fact(f"largest heartbeat gap, attach and detach, {p.name}", f"{gap:.1f} ms")
    assert devices and queues, (devices, queues)
    return f"{devices[0]['name']} {devices[0]['arch']}, {len(queues)} contexts, gap {gap:.1f} ms"


def snapped(b, p):
    p.take_gap_ms()
    doc = snapshot(b, p, "--waves")
    check_runs(p)
    gap = p.take_gap_ms()
    b.engine.section(f"snapshot {p.name}", b.agent.ctl("snapshot", p.pid).out)
    groups = of_gpu(doc, p)
    assert doc["complete"], doc["missing"]
    waves = sum(g["waves"] for g in groups)
    at = set()
    for g in groups:
        lines = lines_of(g, p.kind.source)
        assert lines & p.kind.lines, f"{g['waves']} warps are at {lines or g['pc']}, expected one of {sorted(p.kind.lines)}"
        assert g["lanes_max"] <= p.kind.lanes, f"{g['lanes_max']} lanes are active"
        at |= lines & p.kind.lines
    return f"{waves} warps in {len(groups)} groups, {p.kind.source}:{sorted(at)}, stopped {doc['stopped_us']} us, gap {gap:.1f} ms"


def inlined(b, p):
    groups = of_gpu(snapshot(b, p), p)
    chains = [[f.get("function", "?") for f in g["frames"]] for g in groups]
    assert any(len(c) > 1 for c in chains), f"no group has an inline chain: {chains}"
    return " | ".join(" < ".join(c) for c in chains)[:120]


def representative(b, p):
    """(session's client, session, wave_ref) with its GPU suspended, so that nothing moves."""
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
    for _ in range(3):
        doc = snapshot(b, p)
        of_gpu(doc, p)
        check_runs(p)
    return "three sessions one after the other"


def lease_ends(b, p):
    """A client dies with the GPU suspended."""
    popen, _ = b.agent.background("suspend", p.pid, "--lease", "20s")
    try:
        wait_until(lambda: p.gpu_stands(0.1), "the GPU is suspended", 10)
    finally:
        os.kill(popen.pid, signal.SIGKILL)
        popen.wait(5)
    took = check_runs(p)
    return f"went on {took * 1000:.0f} ms after its client died"


def dumped(b, p):
    path = b.engine.directory / f"{p.name}.core"
    done = b.agent.ctl("dump", p.pid, "-o", path, seconds=60, codes=None)
    check_runs(p)
    assert done.code == 0, f"exit {done.code}: {done.err.strip() or done.out.strip()}"
    head = path.read_bytes()[:4]
    size = path.stat().st_size
    path.unlink()
    assert head == b"\x7fELF", head
    return f"{size} bytes"


def fault(b, p):
    """Events on a fault; a snapshot names it."""
    rpc = b.agent.rpc(30)
    try:
        session = rpc.call("session.attach", pid=p.pid, control=True)["session"]
        rpc.call("exception.subscribe", session=session, exceptions=FAULTS)
        began = time.monotonic()
        p.fault()
        event = rpc.notification("exception.raised", 20)
        took = time.monotonic() - began
        doc = rpc.call("gpu.snapshot", session=session)
        rpc.call("session.detach", session=session)
    finally:
        rpc.close()
    b.engine.fact("fault to notification", f"{took * 1000:.1f} ms")
    b.engine.section("event and snapshot of the fault", json.dumps(event) + "\n" + json.dumps(doc["groups"])[:20000])
    top = doc["groups"][0]
    said = top.get("exception", "")
    lines = lines_of(top, p.kind.source)
    assert said, f"no exception on top: {top}"
    assert "illegal address" in said.lower() or "mmu fault" in said.lower(), said
    assert lines & p.kind.faults, f"{said} is at {sorted(lines) or top['pc']}, expected one of {sorted(p.kind.faults)}"
    return f"{said} at {p.kind.source}:{sorted(lines)}, {'/'.join(event['exceptions'])}, told after {took * 1000:.0f} ms"


def fault_arrives(_b, p):
    assert p.alive, "the program has ended"
    return p.fault_reaches_it()


def program(b, name):
    """All rows of one program, which is started here."""
    box = {}

    def start():
        b.start_agent()
        box["p"] = b.lab.start(name)
        if not b.simulated:
            return json.dumps(box["p"].ready)[:100]
        return f"pid {box['p'].pid}"

    if not b.step("start", name, start, seconds=60):
        return
    p = box["p"]
    rows = [("list", listed), ("doctor", doctored), ("attach, devices, contexts, detach", attached),
            ("snapshot: kernel and lines", snapped)]
    if name == "spin":
        rows += [("registers", registers), ("memory: global", lambda b, p: memory(b, p, "global")),
                 ("memory: shared", lambda b, p: memory(b, p, "lds")),
                 ("memory: local", lambda b, p: memory(b, p, "scratch")), ("suspend and resume", suspended),
                 ("client dies while suspended", lease_ends), ("second and third attach", detached_twice), ("dump", dumped)]
    if name == "diverge":
        rows += [("inline chain", inlined)]
    if name == "fault":
        rows += [("events and snapshot on a fault", fault), ("the fault reaches the program", fault_arrives)]
    for title, function in rows:
        if not p.alive:
            b.engine.row(title, name, "FAIL", 0, "the program has ended")
            continue
        b.start_agent()
        b.step(title, name, function, b, p, seconds=60)
    p.stop()


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
    finally:
        rpc.close()
    check_runs(p)
    p.stop()
    return f"groups {took * 1000:.0f} ms after it went on"


def stages(b):
    for stop_at, title in (("none", "process without libcuda"), ("loaded", "libcuda loaded, no cuInit"),
                           ("init", "cuInit, no context"), ("context", "context, no kernel")):
        b.step(title, "spin", at_stage, b, stop_at, seconds=60)
    b.step("attach before cuInit", "spin", launch_path, b, seconds=60)


# -- a daemon with privileges -----------------------------------------------------------------------


def as_nobody(b):
    if os.geteuid() != 0:
        raise Skipped("needs root")
    if sys.version_info < (3, 9):
        raise Skipped("needs Python 3.9 to start a program as somebody else")
    from agent import Agent
    b.stop_agent()
    p = b.lab.start("spin", user=65534)
    b.agent = Agent(b.engine, b.lab, user_mode=False)
    doc = snapshot(b, p)
    of_gpu(doc, p)
    check_runs(p)
    p.stop()
    b.stop_agent()
    return f"{doc['wave_count']} warps of a process of uid 65534"


def other_user(b):
    b.step("system mode, another user's process", "spin", as_nobody, b, seconds=60)
