#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tables as people see them, on terminals of 80 and 120 columns: pages of tests/data/pages, compared word for word."""
import os
import re
import subprocess
import sys
import tempfile
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import golden
import pytest
from harness import BIN, LONG_STOP, ROOT, CudaScene, Scene

CODE = ROOT / "tests/data/codeobj"
# Three queues with waves that go nowhere, so that packets are counted the same each time: one has faulted.
AMD = (f"runtime ttmp; queues 3; load {CODE}/spin-gfx1030-z.co; dispatch 1 scale 4096 64; waves 1 memory 3 scale+0x80; "
       f"load {CODE}/shapes-gfx90a.co; dispatch 0 _ZN3app5shapeIiEEvNS_3vecIT_EEi 65536 256; "
       "dispatch 2 _ZN3app5shapeImEEvNS_3vecIT_EEi 4096 64; waves 0 halted 8 _ZN3app5shapeIiEEvNS_3vecIT_EEi+0x84 group=4; "
       "waves 2 halted 2 _ZN3app5shapeImEEvNS_3vecIT_EEi+0x9c; spin")
NVIDIA = "devices 2 sms=3 warps=8"


def run(s, width, argv):
    """One command with the process's id in place of PID."""
    words = [str(s.app.pid) if word == "PID" else word for word in argv]
    env = {**os.environ, **golden.environment(width), "GPU_AGENT_SOCKET": str(s.socket)}
    done = subprocess.run([BIN / "gpu-agentctl", *words], env=env, text=True, capture_output=True, timeout=120,
                          stdin=subprocess.DEVNULL)
    # Registers and addresses may have the same digits.
    return re.sub(rf"\b{s.app.pid}\b", "PID", golden.show(argv, done, width))


def digits(match):
    """Numbers that depend on how far the program was, of the same length."""
    return match.group(1) + re.sub(r"\d", "N", match.group(2))


# Packets that a queue took before its waves stood still: READ and WAITING, and the DISPATCH that those waves are of.
COUNTS = ((r"(compute\s+\w+)(\s+\d+\s+\d+\s+\d+)", digits), (r"( \d+/\d+  \d+,\d+,\d+/\d+ )( +\d+)\b", digits))


def page(s, name, commands):
    for width in golden.WIDTHS:
        text = "\n".join(run(s, width, command.split()) for command in commands)
        golden.compare(f"verbs/{name}-{width}", golden.masked(text, COUNTS))


def test_amd():
    with Scene(app=AMD, gpus="gfx90a,gfx1030") as s:
        page(s, "amd", ["devices PID", "queues PID", "queues PID --gpu 1", "queues PID --gpu 2", f"waves PID {LONG_STOP}",
                        f"waves PID --state memory-violation {LONG_STOP}", f"waves PID --group 9 {LONG_STOP}",
                        f"registers PID 1:0:0 --bank=special,vector --range=0-1 {LONG_STOP}", "registers PID 9:0:0",
                        "watchpoint PID list"])


def test_nvidia():
    with CudaScene(release="12.4", sim=NVIDIA) as s:
        page(s, "nvidia", ["devices PID", "contexts PID", "contexts PID --gpu 1", f"warps PID --limit 3 {LONG_STOP}",
                           f"warps PID --state halted {LONG_STOP}", f"registers PID 0:0:0 --bank=special,scalar {LONG_STOP}",
                           "watchpoint PID list"])


# -- replies that no simulator makes in the same way twice ------------------------------------------

def load_bench():
    """The scripted agent of ctl/check-client."""
    spec = spec_from_loader("check_client", SourceFileLoader("check_client", str(ROOT / "ctl/check-client")))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PROCESSES = [
    {"pid": 4242, "uid": 0, "comm": "python3", "exe": "/usr/bin/python3", "vendor": "amd", "gpu_ids": [7, 9], "queues": 12,
     "session": "s1", "debuggable": True},
    {"pid": 977, "ns_pid": 12, "uid": 4000001, "comm": "pytorch-worker", "vendor": "amd", "gpu_ids": [7], "queues": 4,
     "container": "docker-0123456789abcdef.scope", "debuggable": False,
     "reason": "its GPU gfx1010 cannot be debugged with firmware 144: 147 is needed; process.doctor tells more"},
    {"pid": 31337, "uid": 4000001, "comm": "train", "vendor": "nvidia", "gpu_ids": [], "queues": 0, "debuggable": False,
     "reason": "process 991 (cuda-gdb) debugs it"},
]
SUSPENSION = {"holder_pid": 77, "holder_uid": 0, "queues": [0, 1, 2], "lease_left_ms": 3200, "suspended_us": 1500, "renewals": 2}
SESSIONS = [
    {"session": "s1", "pid": 4242, "uid": 0, "comm": "python3", "vendor": "amd", "readers": 2, "writer_pid": 77, "writer_uid": 0,
     "writer_idle_ms": 4000, "suspension": SUSPENSION, "suspends": 3, "suspended_us": 2500000, "age_ms": 65000, "rule": "all-faults"},
    {"session": "s2", "pid": 31337, "uid": 4000001, "comm": "train", "readers": 1, "suspends": 0, "suspended_us": 0, "age_ms": 900},
]
RULES = [{"name": "all-faults", "watching": 2, "matched": 12, "exceptions": 1234, "recorded": 7, "duplicates": 1200, "limited": 27,
          "lost": 0}]
HOOKS = [
    {"rule": "all-faults", "path": "/etc/gpu-agent/hooks/tell-the-operator", "user": "nobody", "timeout_ms": 1000, "acceptable": True,
     "checked_uid": 0, "running": 0, "waiting": 1, "runs": 7, "failures": 1, "timeouts": 0, "dropped": 0, "last_end": "exit",
     "last_status": 3, "last_time_us": 1795252653000000, "last_duration_us": 1000},
    {"rule": "nightly", "path": "/etc/gpu-agent/hooks/x", "timeout_ms": 1000, "acceptable": False,
     "problem": "/etc/gpu-agent/hooks/x: its group may write it; see hooks.list", "checked_uid": 0, "running": 0, "waiting": 0,
     "runs": 0, "failures": 0, "timeouts": 0, "dropped": 0},
]
RECORDS = [
    {"record": "20261121T091733-0123abcd", "time_us": 1795252653000000, "count": 12, "pid": 4242, "uid": 0, "comm": "python3",
     "exe": "/usr/bin/python3", "vendor": "amd", "reason": "exception", "rule": "all-faults", "exception": "wave_memory_violation",
     "kernel": "void app::shape<int>(app::vec<int>, int)", "location": "/src/shapes.hip:15", "body": "present", "body_bytes": 5 << 20,
     "zstd": True, "disk_bytes": 5400000, "pinned": True},
    {"record": "20261121T101733-89abcdef", "time_us": 1795256253000000, "count": 1, "pid": 31337, "uid": 4000001, "comm": "train",
     "vendor": "nvidia", "reason": "requested", "kernel": "spin", "body": "gone", "body_bytes": 0, "zstd": False, "disk_bytes": 4096,
     "pinned": False},
]
USAGE = {"disk_bytes": 5404096, "body_bytes": 5 << 20, "unfinished_bytes": 0, "pinned_bytes": 5400000, "free_bytes": 90 << 30, "records": 2,
         "bodies": 1, "pinned": 1, "foreign": 3, "max_use_bytes": 16 << 30, "keep_free_bytes": 4 << 30, "max_body_bytes": 8 << 30,
         "max_age_s": 0, "max_record_age_s": 0, "max_records": 10000}
CHECKS = [
    {"name": "process", "verdict": "pass", "detail": "pytorch-worker, uid 4000001, state S"},
    {"name": "gpu_51187", "verdict": "pass", "detail": "AMD Instinct MI300X (gfx942), firmware 177"},
    {"name": "gpu_7", "verdict": "fail", "detail": "AMD Radeon RX 5700 (gfx1010), firmware 144: exceptions of its waves would stop "
     "every other process, too", "fix": "install firmware 147 or newer, from linux-firmware 20230919 on, and load the module amdgpu "
     "again; gpu.devices shows what is there"},
    {"name": "runtime", "verdict": "unknown", "detail": "only attaching tells"},
]
ANSWERS = {
    "process.list": {"processes": PROCESSES}, "session.list": {"sessions": SESSIONS}, "hooks.list": {"hooks": HOOKS},
    "cores.list": {"records": RECORDS}, "cores.usage": USAGE,
    "process.doctor": {"pid": 977, "ok": False, "checks": CHECKS},
    "agent.status": {"agent": "0.1.0", "pid": 9, "uptime_ms": 90061000, "connections": 3, "sessions": 2, "requests": 3456, "owed": 0,
                     "suspended": [{"pid": 4242, "uid": 0, "comm": "python3", "suspended": True, "suspends": 3,
                                    "suspended_us": 2500000}],
                     "user_mode": False, "rules": RULES},
}
NOTHING = {"process.list": {"processes": []}, "session.list": {"sessions": []}, "hooks.list": {"hooks": []}, "cores.list": {"records": []},
           "cores.usage": {**USAGE, "disk_bytes": 0, "body_bytes": 0, "pinned_bytes": 0, "records": 0, "bodies": 0, "pinned": 0,
                           "foreign": 0},
           "watchpoint.list": {"watchpoints": []}, "gpu.devices": {"devices": []}, "gpu.queues": {"queues": []}}


@pytest.mark.parametrize("name,answers,commands", [
    ("agent", ANSWERS, ["list", "doctor 977", "status", "hooks list", "cores list", "cores list -F KERNEL", "cores du"]),
    ("nothing", NOTHING, ["list", "devices 42", "queues 42", "watchpoint 42 list", "hooks list", "cores list", "cores list 2026",
                          "cores info 2026", "cores list -F RULE", "cores du"]),
])
def test_replies(name, answers, commands):
    module = load_bench()
    with tempfile.TemporaryDirectory() as directory:
        bench = module.Bench(directory)
        for width in golden.WIDTHS:
            parts = []
            for command in commands:
                argv = command.split()
                r = bench.run(*argv, answers=answers, env=golden.environment(width))
                done = subprocess.CompletedProcess(argv, r.status, r.text, r.err)
                parts.append(re.sub(r"^(socket\s+).*", r"\1PATH", golden.show(argv, done, width), flags=re.M))
            golden.compare(f"verbs/{name}-{width}", "\n".join(parts))
