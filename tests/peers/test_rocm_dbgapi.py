#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A program on AMD's runtime hangs in a kernel: our agent and AMD's debugger library say the same of it."""
import os
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from dbgapi import Probe, compare_devices, compare_queues
from harness import STOP_MS, status, wait_until
from rocm import RocmScene, hip, hsa, trees

FAMILIES = ("gfx906", "gfx90a", "gfx942", "gfx1030", "gfx1100")
WAVE_LANES = {"gfx1030": 32, "gfx1100": 32}
# Packets before the one that hangs: more than the ring has places.
DONE = 70
# As rocm_hsa.c launches it.
WORKGROUP, GROUPS = 64 * 4, (3, 2, 2)
MEMORY_VIOLATION = 1 << 13
# How waves come by their dispatch: by the runtime's wish, or as the device does it by itself.
TOLD = [(gfx, debug) for gfx in FAMILIES for debug in ("0", "1")]


def launch_and_hang(s, program):
    """{name: value} of the program's packet, once the kernel hangs."""
    s.control(f"dispatch {program.pid} hold")
    words = s.step(program, "launch", "launched").split()
    queue, = wait_until(lambda: [q for q in s.queues(program) if q["held"]], "the dispatch is held")
    return {"packet": int(words[1]), "ring": words[3], "kernel": words[5], "arguments": words[7], "queue": queue}


def hang(s, gfx, debug):
    program = hsa(s, gfx, env={"HSA_ENABLE_DEBUG": debug})
    s.step(program, f"run {DONE}", "ok run")
    return program, launch_and_hang(s, program)


def spread(s, program, gfx, entry, faulting):
    """
    Other waves of the same kernel: those of a workgroup at several places with several masks, and, of the second half
    of the workgroups, some that a fault has stopped.
    """
    group = WORKGROUP // WAVE_LANES.get(gfx, 64)
    queue, = [q["id"] for q in s.queues(program) if q["held"]]
    x, y, z = GROUPS
    kind = "memory" if faulting else "divergence"
    s.control(f"waves {program.pid} {queue} divergence {x * y * group} {entry:#x} group={group} grid={x},{y},1 "
              f"and {kind} {x * y * (z - 1) * group} {entry + 8:#x} group={group} workgroup=0,0,1 grid={x},{y},{z - 1}")


def agent_says(s, pid):
    session = s.attach(pid)
    shot = s.rpc.call("gpu.snapshot", session=session, waves=True, max_stop_ms=STOP_MS)
    assert shot["complete"], shot["missing"]
    objects = s.rpc.call("code.list", session=session)["objects"]
    packets = {}
    for w in shot["waves"]:
        if "dispatch" in w["ref"] and w["ref"]["dispatch"] not in packets:
            packets[w["ref"]["dispatch"]] = s.rpc.call("wave.registers", session=session, wave=w["ref"], banks=["special"],
                                                       max_stop_ms=STOP_MS)["registers"]["packet"]
    s.rpc.call("session.detach", session=session)
    wait_until(lambda: status(pid)["TracerPid"] == "0", "ptrace released")
    return {"shot": shot, "waves": sorted(map(agent_wave, shot["waves"])), "packets": packets,
            "objects": sorted(f"object {o['bias']} {o['uri']}" for o in objects)}


def agent_wave(w):
    """A wave in the words of the probe."""
    ref, reasons = w["ref"], {"memory_violation": MEMORY_VIOLATION}
    words = [f"place pc {w['pc']} exec {w['exec']} lanes {w['width']} reasons {sum(reasons[r] for r in w['reasons'])} "
             f"queue {ref['queue_id']}"]
    if "dispatch" in ref:
        words.append(f"dispatch {ref['dispatch']}")
    if ref["workgroup"]:
        words.append("workgroup " + ",".join(map(str, ref["workgroup"])))
    if "wave_in_group" in ref:
        words.append(f"wave_in_group {ref['wave_in_group']}")
    return " ".join(words)


def library_says(s, pid, before=None):
    """What the library prints when it has stopped all waves; before: done once it is attached."""
    probe = Probe(s, pid)
    probe.step("attach")
    if before:
        before()
    said = {"devices": probe.step("devices"), "queues": probe.step("queues"), "objects": sorted(probe.step("objects"))}
    said["running"] = sum(line.endswith(" runs") for line in probe.step("list"))
    probe.step("stop")

    def stopped():
        probe.step("events")
        return not any(line.endswith(" runs") for line in probe.step("list"))

    wait_until(stopped, "all waves are stopped")
    said["waves"] = sorted(probe.step("places"))
    said["dispatches"] = probe.step("dispatches")
    probe.step("detach")
    probe.end()
    wait_until(lambda: status(pid)["TracerPid"] == "0", "ptrace released")
    return said


def compare(ours, theirs):
    compare_devices(theirs["devices"], ours["shot"])
    compare_queues(theirs["queues"], ours["shot"])
    assert len(ours["objects"]) == 2 and ours["objects"] == theirs["objects"], (ours["objects"], theirs["objects"])
    assert ours["waves"] == theirs["waves"], (ours["waves"], theirs["waves"])
    # Rows of a snapshot stand for the same waves.
    members = [w["group"] for w in ours["shot"]["waves"]]
    assert [g["waves"] for g in ours["shot"]["groups"]] == [members.count(i) for i in range(len(ours["shot"]["groups"]))]


def compare_dispatch(ours, theirs, launched):
    """Both have what the program has launched."""
    packet = {"kernel_object": launched["kernel"], "kernarg_address": launched["arguments"], "workgroup_size": [64, 4, 1],
              "grid_size": [192, 8, 2], "private_segment_bytes": 0, "group_segment_bytes": 256}
    assert ours["packets"] == {launched["packet"]: packet}, (ours["packets"], packet)
    entry = min(int(w["pc"], 16) for w in ours["shot"]["waves"])
    assert theirs["dispatches"] == [
        f"dispatch {launched['packet']} workgroup 64,4,1 grid 192,8,2 private 0 lds 256 arguments {launched['arguments']} "
        f"kernel {launched['kernel']} entry {entry:#x} queue {launched['queue']['id']}"], theirs["dispatches"]
    assert launched["ring"] in [q["ring_base"] for q in ours["shot"]["queues"] if q["queue_id"] == launched["queue"]["id"]]
    for g in ours["shot"]["groups"]:
        assert g["kernel"] == {"address": launched["kernel"], "name": "scale", "raw": "scale.kd"}, g
        assert g["frames"][-1]["function"] == "scale", g


def waves_of(gfx):
    x, y, z = GROUPS
    return x * y * z * WORKGROUP // WAVE_LANES.get(gfx, 64)


def is_told(gfx, debug):
    """Whether waves that began without a debugger carry their dispatch."""
    return debug == "1" or gfx != "gfx90a"


def groups_of(said):
    return {w.split(" workgroup ")[1].split(" ")[0] for w in said["waves"] if " workgroup " in w}


@pytest.mark.parametrize("gfx,debug", TOLD)
def test_agent_and_library_say_the_same(gfx, debug):
    trees()
    with RocmScene(gfx) as s:
        program, launched = hang(s, gfx, debug)
        ours, theirs = agent_says(s, program.pid), library_says(s, program.pid)
        compare(ours, theirs)
        assert len(ours["waves"]) == waves_of(gfx) and len({w.split()[2] for w in ours["waves"]}) == 1, ours["waves"]
        every = {f"{x},{y},{z}" for x in range(GROUPS[0]) for y in range(GROUPS[1]) for z in range(GROUPS[2])}
        if is_told(gfx, debug):
            compare_dispatch(ours, theirs, launched)
            assert groups_of(ours) == every, ours["waves"]
        else:
            assert not ours["packets"] and not theirs["dispatches"] and not groups_of(ours), (ours, theirs)
        # Other waves of the same kernel, where faults have been.
        entry = int(ours["shot"]["waves"][0]["pc"], 16)
        spread(s, program, gfx, entry, faulting=is_told(gfx, debug))
        ours, theirs = agent_says(s, program.pid), library_says(s, program.pid)
        compare(ours, theirs)
        assert len(ours["waves"]) == waves_of(gfx) and len({w.split()[2] for w in ours["waves"]}) >= 4, ours["waves"]
        if is_told(gfx, debug):
            compare_dispatch(ours, theirs, launched)
            assert groups_of(ours) == every and theirs["running"] == len(ours["waves"]) // 2, theirs["running"]
        s.control(f"dispatch {program.pid} complete")
        wait_until(lambda: "ok launch" in program.out(), "the kernel ends")


@pytest.mark.parametrize("gfx", ["gfx942", "gfx1100"])
def test_workgroups_at_the_edge_of_a_grid(gfx):
    """Of a grid that is no multiple of its workgroups, the last ones have fewer lanes, and fewer waves."""
    trees()
    with RocmScene(gfx) as s:
        program = hsa(s, gfx)
        s.control(f"dispatch {program.pid} hold")
        s.step(program, "launch cut", "launched")
        wait_until(lambda: [q for q in s.queues(program) if q["held"]], "the dispatch is held")
        ours, theirs = agent_says(s, program.pid), library_says(s, program.pid)
        compare(ours, theirs)
        assert groups_of(ours) == {f"{x},{y},{z}" for x in range(3) for y in range(2) for z in range(2)}, ours["waves"]
        lanes = [bin(int(w["exec"], 16)).count("1") for w in ours["shot"]["waves"]]
        assert sum(lanes) == 150 * 7 * 2, lanes
        width = WAVE_LANES.get(gfx, 64)
        # Of 64, 64 and 22 items along one axis, and 4 and 3 along the other one.
        assert len(lanes) == 2 * sum(-(-x * y // width) for x in (64, 64, 22) for y in (4, 3)), len(lanes)


def test_the_library_first():
    trees()
    with RocmScene("gfx942") as s:
        program, launched = hang(s, "gfx942", "0")
        theirs, ours = library_says(s, program.pid), agent_says(s, program.pid)
        compare(ours, theirs)
        compare_dispatch(ours, theirs, launched)


@pytest.mark.parametrize("debug", ["0", "1"])
def test_a_hip_program(debug):
    """It has queues of two kinds, and its code objects are pieces of its memory."""
    trees()
    with RocmScene("gfx90a") as s:
        program = hip(s, "gfx90a", env={"HSA_ENABLE_DEBUG": debug})
        s.step(program, "copy", "ok copy")
        s.control(f"dispatch {program.pid} hold")
        s.step(program, "launch", "launched")
        wait_until(lambda: [q for q in s.queues(program) if q["held"]], "the dispatch is held")
        ours, theirs = agent_says(s, program.pid), library_says(s, program.pid)
        compare(ours, theirs)
        assert {q["type"] for q in ours["shot"]["queues"]} == {"compute_aql", "sdma"}, ours["shot"]["queues"]
        assert len(ours["waves"]) == 16 and len(theirs["dispatches"]) == len(ours["packets"]) == int(debug), theirs


def test_a_kernel_that_is_launched_under_the_library():
    """It knows the dispatch of a wave that began after its attach, though nothing else tells that this one has it."""
    trees()
    with RocmScene("gfx90a") as s:
        program = hsa(s, "gfx90a", env={"HSA_ENABLE_DEBUG": "0"})
        s.step(program, f"run {DONE}", "ok run")
        launched = []
        theirs = library_says(s, program.pid, lambda: launched.append(launch_and_hang(s, program)))
        assert [line.split()[1] for line in theirs["dispatches"]] == [str(launched[0]["packet"])], theirs["dispatches"]
        assert len(theirs["waves"]) == waves_of("gfx90a") and len(groups_of(theirs)) == 12, theirs["waves"]
        ours = agent_says(s, program.pid)
        assert ours["waves"] == sorted(w.split(" dispatch ")[0] for w in theirs["waves"]), ours["waves"]


def test_the_library_forgets_what_stopped_a_wave():
    """
    Of a wave that was not told its dispatch, it clears the word that says so (docs/reference/saved-waves.md, section 4); our
    agent, asked first, knows.
    """
    trees()
    with RocmScene("gfx90a") as s:
        program, _ = hang(s, "gfx90a", "0")
        entry = int(agent_says(s, program.pid)["shot"]["waves"][0]["pc"], 16)
        spread(s, program, "gfx90a", entry, faulting=True)
        ours = agent_says(s, program.pid)
        assert {(g["state"], *g["reasons"]): g["waves"] for g in ours["shot"]["groups"] if g["reasons"]} == {
            ("stopped", "memory_violation"): 24}, ours["shot"]["groups"]
        theirs = library_says(s, program.pid)
        assert theirs["running"] == len(theirs["waves"]) == waves_of("gfx90a"), theirs["running"]
        # They stand in the trap handler's loop for it.
        places = [{w.split()[2] for w in said["waves"]} for said in (ours, theirs)]
        assert f"{entry + 8:#x}" in places[0] - places[1], places
