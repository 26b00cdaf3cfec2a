#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records of rules with what waves waited for when the exception came."""
import os
import shutil
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import ROOT, CudaScene, need_root, wait_until
from rulescene import ALL, WAVES, RuleScene

# Three of four waves wait at a barrier for the one that has faulted.
BARRIER = WAVES.replace("memory 2 spin+16", "barrier 8 spin+16 group=4 last=memory")

# Eight warps of a block: seven wait at a barrier, and warp 3 is on its way.
CUDA_USER = 54108
CUDA_BARRIER = ("init; gpu devices 1 sms=132 warps=64 name=NVIDIA_H100_80GB_HBM3; context 0; module @MODULE@; "
                "gpu launch gemm grid=8 block=256 pc=0xb90 args=p:0x7f4c00000000,p:0x7f4c40000000,p:0x7f4c80000000,i:1024; "
                "gpu warp 0 0 3 sms=8 pc=0x440; listen")


# One warp of each of two blocks waits for one arrival at the object at 0x700.
CUDA_MBARRIER = ("init; gpu devices 1 sms=132 warps=64 name=NVIDIA_H100_80GB_HBM3; context 0; module @MODULE@; "
                 "gpu launch grouped_gemm grid=4 block=384 cluster=2 shared=1024 pc=0x400; "
                 "gpu warp 0 0 0 sms=2 warps=1 pc=0xb40; gpu register 0 0 0 0 9 0x700 sms=2 warps=1; "
                 "gpu register 0 0 0 0 6 0x0 sms=2 warps=1; gpu memory shared 0 0 0 0x700 hex=feff1f0000f8ff7f sms=2; listen")


def only_record(s):
    s.wait_counts(recorded=1)
    (record,) = s.records()
    return record, s.rpc.call("cores.info", record=record["record"])["snapshot"]


def test_a_record_says_who_waits_for_the_wave_that_faulted():
    with RuleScene(ALL + "why = yes\n", app=BARRIER) as s:
        s.wait_watched()
        s.fault(exception="wave_memory_violation", queue=1)
        record, seen = only_record(s)
        cause = seen["why"]["causes"][0]
        assert cause["culprit"] and cause["end"] == "stopped" and "has stopped (memory_violation)" in cause["text"], seen["why"]
        waiting = next(g for g in seen["groups"] if "waiting" in g)
        assert waiting["waiting"] == waiting["waves"] == 6 and "missing: wave 3" in seen["why"]["waits"][waiting["wait"]]["text"]
        text = s.ctl("cores", "info", record["record"]).stdout
        assert "CAUSE  " in text and "wait at a barrier" in " ".join(text.split()), text
        assert s.target_state()["suspended_queues"] == 0


def test_a_core_beside_it_changes_nothing():
    """The waves are those of the stop for the core."""
    with RuleScene(ALL + "why = yes\nkeep = light\n", app=BARRIER) as s:
        s.wait_watched()
        s.fault(exception="wave_memory_violation", queue=1)
        record, seen = only_record(s)
        assert record["body"] == "present" and seen["why"]["causes"][0]["culprit"], seen["why"]


def test_without_the_key_nothing_is_said():
    with RuleScene(ALL, app=BARRIER) as s:
        s.wait_watched()
        s.fault(exception="wave_memory_violation", queue=1)
        _, seen = only_record(s)
        assert "why" not in seen and not any("waiting" in g for g in seen["groups"])


def record_of_cuda(cubin, app, fault):
    """What the record of a CUDA program's exception says of its waits."""
    need_root()
    with CudaScene(app=None, start_agent=False, user_mode=False) as s:
        module = shutil.copy(ROOT / "sim/scenes/cuda" / cubin, s.directory)
        s.app = s.start_app(app.replace("@MODULE@", str(module)), user=CUDA_USER)
        # Of this user alone: other tests run CUDA processes at the same time.
        (s.directory / "agentd.conf").write_text("[agent]\nuser = nobody\nsocket_group =\n"
                                                 f"[rule cuda]\nuser = {CUDA_USER}\nwhy = yes\n")
        s.start_agentd(user_mode=False)
        wait_until(lambda: any(x["pid"] == s.app.pid and x.get("rule") for x in s.rpc.call("session.list")["sessions"]), "watched")
        s.rpc.call("gpu.snapshot", session=s.attach())
        s.control(fault)
        wait_until(lambda: s.rpc.call("agent.status")["rules"][0]["recorded"], "recorded")
        record, = [r for r in s.rpc.call("cores.list")["records"] if r["pid"] == s.app.pid]
        return s.rpc.call("cores.info", record=record["record"])["snapshot"]


def test_a_record_of_cuda_says_who_waits_for_the_warp_that_faulted():
    seen = record_of_cuda("train-sm_90.cubin", CUDA_BARRIER, "raise 0 2 3 14 errorpc=0x440")
    cause = seen["why"]["causes"][0]
    assert cause["culprit"] and cause["text"].startswith("warp 3 of block (2,0,0) of gemm, at gemm+0x440"), seen["why"]
    assert any(g.get("waiting") for g in seen["groups"]), seen["groups"]


def test_a_record_of_cuda_says_who_waits_in_shared_memory():
    seen = record_of_cuda("pipeline-sm_90.cubin", CUDA_MBARRIER, "raise 0 2 3 14 errorpc=0x400")
    waits = [w for w in seen["why"]["waits"] if w["kind"] == "mbarrier"]
    assert waits and waits[0]["object"]["address"] == "0x700" and waits[0]["alike"] == 2, seen["why"]
