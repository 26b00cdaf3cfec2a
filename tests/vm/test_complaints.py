#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is taken for a complaint of a kernel that watches itself, and which of them are known."""
import os
import pathlib
import subprocess
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from complaints import known, leaks, reports, unexplained

PROGRAM = pathlib.Path(__file__).parent / "complaints.py"

QUIET = """[    0.000000] Linux version 6.12.117
[    0.113092] kasan: KernelAddressSanitizer initialized
[    1.000000] Lock dependency validator: Copyright (c) 2006 Red Hat, Inc., Ingo Molnar
[    1.200000] kmemleak: Kernel memory leak detector initialized (mem pool available: 61234)
[   20.412345] amdgpu: PID 321 is not PTRACED and cannot be debugged
"""
FREED = """[   30.500000] ==================================================================
[   30.500001] BUG: KASAN: slab-use-after-free in kfd_dbg_trap_disable+0x1a2/0x300
[   30.500002] Write of size 4 at addr ffff88800a1b2c3d by task chaos/4711
[   30.500003] CPU: 1 UID: 0 PID: 4711 Comm: chaos Not tainted 6.12.117 #1
"""
CIRCLE = """[   40.100000] ======================================================
[   40.100001] WARNING: possible circular locking dependency detected
[   40.100002] 6.12.117 #1 Not tainted
[   40.100003] ------------------------------------------------------
[   40.100004] chaos/99 is trying to acquire lock:
[   40.100005] ffff888003a4d1c8 (&process->mutex){+.+.}-{4:4}, at: kfd_ioctl_runtime_enable+0x4a/0x200
[   40.100006]
[   40.100007] but task is already holding lock:
[   40.100008] ffffffff83c1e0a0 (kfd_processes_mutex){+.+.}-{4:4}, at: kfd_create_process+0x88/0x500
"""
WARNED = "[    9.000000] WARNING: CPU: 1 PID: 77 at drivers/gpu/drm/amd/amdkfd/kfd_process.c:1276 kfd_process_notifier_release+0x33/0x90\n"
CALLED = """[   89.077370] WARNING: CPU: 1 PID: 84 at kernel/workqueue.c:4241 __flush_work+0x8f6/0xc70
[   89.081028] Call Trace:
[   89.081100]  ? kfd_ioctl+0x810/0x810
[   89.081400]  __cancel_work_sync+0x98/0xd0
[   89.081610]  kfd_dbg_trap_disable+0x99/0x420
[   89.081663]  kfd_ioctl_set_debug_trap+0x8d9/0x13c0
"""
SHIFTED = "[    9.100000] UBSAN: shift-out-of-bounds in drivers/gpu/drm/amd/amdkfd/kfd_events.c:93:2\n"
POISONED = """[   33.000000] =============================================================================
[   33.000001] BUG kmalloc-64 (Tainted: G    B   W         ): Poison overwritten
[   33.000002] -----------------------------------------------------------------------------
[   33.000003] 0xffff888003a4d1c8-0xffff888003a4d1c8 @offset=456. First byte 0x6a instead of 0x6b
"""
UNWATCHED = "[   50.000000] kmemleak: Kernel memory leak detector disabled\n"
UNTAKEN = "[   49.000000] kmemleak: Cannot allocate a kmemleak_object structure\n"
LEAK = """unreferenced object 0xffff888008f2d000 (size 2048):
  comm "chaos", pid 300, jiffies 4294899712
  hex dump (first 32 bytes):
    00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
  backtrace (crc 1a2b3c4d):
    [<ffffffff81234567>] __kmalloc_cache_noprof+0x1c3/0x240
    [<ffffffff82345678>] kfd_create_process+0x1a8/0x600
    kfd_open+0x55/0xc0
"""


@pytest.mark.parametrize("log,title", (
    (FREED, "BUG: KASAN: slab-use-after-free in kfd_dbg_trap_disable"),
    (CIRCLE, "WARNING: possible circular locking dependency detected: &process->mutex, kfd_processes_mutex"),
    (WARNED, "WARNING: at drivers/gpu/drm/amd/amdkfd/kfd_process.c kfd_process_notifier_release"),
    (CALLED, "WARNING: at kernel/workqueue.c __flush_work < kfd_dbg_trap_disable"),
    (CALLED.replace(" kfd_", " my_"), "WARNING: at kernel/workqueue.c __flush_work"),
    (SHIFTED, "UBSAN: shift-out-of-bounds in drivers/gpu/drm/amd/amdkfd/kfd_events.c:2"),
    (POISONED, "BUG kmalloc-64: Poison overwritten"),
    (POISONED.replace("Tainted: G    B   W         ", "Not tainted"), "BUG kmalloc-64: Poison overwritten"),
    (UNWATCHED, "kmemleak: Kernel memory leak detector disabled"),
    (UNTAKEN, "kmemleak: Cannot allocate a kmemleak_object structure")))
def test_titles(log, title):
    """Without what differs from one run to the next."""
    assert [name for name, _ in reports(QUIET + log)] == [title]


def test_quiet_logs_have_no_reports():
    assert reports(QUIET) == [] and leaks("") == []


def test_a_leak_is_named_after_who_allocated():
    assert [name for name, _ in leaks(LEAK * 2)] == ["leak: __kmalloc_cache_noprof < kfd_create_process < kfd_open"] * 2


def test_only_what_is_explained_is_let_pass():
    found = reports(FREED + CIRCLE)
    assert unexplained(found, []) == found
    assert [name for name, _ in unexplained(found, ["in kfd_dbg_trap_disable"])] == [found[1][0]]
    assert isinstance(known(), list)


@pytest.mark.parametrize("kernel,lockdep,leak,failed", (
    (QUIET, "debug_locks: 1", "", []),
    (QUIET + FREED.replace("kfd_dbg_trap_disable", "some_function"), "debug_locks: 1", "", ["kernel_log"]),
    (QUIET + UNWATCHED, "debug_locks: 1", "", ["kernel_log"]),
    (QUIET, "debug_locks: 0", "", ["kernel_locks"]),
    (QUIET, None, "", ["kernel_locks"]),
    (QUIET, "debug_locks: 1", LEAK.replace("kfd_", "some_"), ["kernel_leaks"]),
    (QUIET, "debug_locks: 1", None, ["kernel_leaks"]),
    (None, "debug_locks: 1", "", ["kernel_log"])))
def test_the_program(kernel, lockdep, leak, failed, tmp_path):
    """What a guest that came to no end did not leave is a failure as well."""
    for name, text in (("kernel", kernel), ("lockdep", lockdep), ("leaks", leak)):
        if text is not None:
            (tmp_path / name).write_text(text, encoding="ascii")
    done = subprocess.run([PROGRAM, tmp_path], text=True, capture_output=True, timeout=60, check=False)
    lines = [line.split(":")[0].split() for line in done.stdout.splitlines() if line.startswith(("PASS", "FAIL"))]
    assert [words[1] for words in lines if words[0] == "FAIL"] == failed, done
    assert done.returncode == (1 if failed else 0), done
