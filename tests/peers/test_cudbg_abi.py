#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Our declaration of the CUDA debugger ABI against every cudadebugger.h that can be had.

Compared are the numbers behind names, sizes and offsets of structs, and number, name and argument
types of each slot.  A release lacks what came later; what it has must agree, and must be known.
"""
import glob
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import ROOT
from peers import fetch

sys.path.insert(0, str(ROOT / "libcudbgshim"))
import slots as description  # noqa: E402

OURS = ROOT / "libcudbgshim/src/cudbg_abi.h"
SYMBOLS = ROOT / "libcudbgshim/src/cudbg_symbols.h"
INSTALLED = ("/usr/local/cuda*/extras/Debugger/include/cudadebugger.h", "/usr/local/cuda*/include/cudadebugger.h",
             "/opt/cuda*/extras/Debugger/include/cudadebugger.h", "/usr/include/cuda-gdb/cudadebugger.h")

# Names that do not follow CUDBGABI_X -> CUDBG_X.
PREFIXES = (("CUDBGABI_CAPABILITY_", "CUDBG_DEBUGGER_CAPABILITY_"), ("CUDBGABI_REG_CLASS_", "REG_CLASS_"),
            ("CUDBGABI_EVENT_QUEUE_", "CUDBG_EVENT_QUEUE_TYPE_"), ("CUDBGABI_DEVICE_INFO_", "CUDBG_RESPONSE_TYPE_"),
            ("CUDBGABI_DEVICE_ATTR_", "CUDBG_DEVICE_ATTRIBUTE_"), ("CUDBGABI_SM_ATTR_", "CUDBG_SM_ATTRIBUTE_"),
            ("CUDBGABI_WARP_ATTR_", "CUDBG_WARP_ATTRIBUTE_"),
            ("CUDBGABI_API_ERROR_SOURCE_", "CUDBG_REPORTED_DRIVER_API_ERROR_SOURCE_"),
            ("CUDBGABI_API_ERROR_", "CUDBG_REPORT_DRIVER_API_ERROR_FLAGS_"), ("CUDBGABI_", "CUDBG_"))
NAMES = {
    "CUDBGABI_CAPABILITY_EXCEPTIONS_IN_EXITED_WARPS": "CUDBG_DEBUGGER_CAPABILITY_REPORT_EXCEPTIONS_IN_EXITED_WARPS",
    "CUDBGABI_CAPABILITY_CUDA_LOGS": "CUDBG_DEBUGGER_CAPABILITY_ENABLE_CUDA_LOGS",
    "CUDBGABI_CAPABILITY_CPU_CALL_STACKS": "CUDBG_DEBUGGER_CAPABILITY_COLLECT_CPU_CALL_STACK_FOR_KERNEL_LAUNCHES",
    "CUDBGABI_WARP_ATTR_ERROR_PC": "CUDBG_WARP_ATTRIBUTE_ERRORPC",
    "CUDBGABI_WARP_ATTR_CLUSTER_IDX": "CUDBG_WARP_ATTRIBUTE_CLUSTERIDX",
    "CUDBGABI_WARP_ATTR_CLUSTER_DIM": "CUDBG_WARP_ATTRIBUTE_CLUSTERDIM",
}
STORAGE = {"UNSPECIFIED": "UNSPECIFIED", "CODE": "Code", "REG": "Reg", "SREG": "Sreg", "CONST": "Const",
           "GLOBAL": "Global", "LOCAL": "Local", "PARAM": "Param", "SHARED": "Shared", "SURF": "Surf", "TEX": "Tex",
           "TEX_SAMPLER": "TexSampler", "GENERIC": "Generic", "IPARAM": "IParam", "OPARAM": "OParam",
           "FRAME": "Frame", "UREG": "UReg"}
# Families of which we claim to know every member, and what ends them.
FAMILIES = re.compile(r"^CUDBG_(ERROR|EXCEPTION|EVENT|DEBUGGER_CAPABILITY|GRID_STATUS|KNL|ADJ|ELF_IMAGE|ATTR|"
                      r"RESPONSE_TYPE|DEVICE_ATTRIBUTE|SM_ATTRIBUTE|WARP_ATTRIBUTE|LANE_ATTRIBUTE|COREDUMP)_")
UNNAMED = re.compile(r"_(RESERVED_\d+|COUNT|NONE|UNKNOWN|LIGHTWEIGHT_FLAGS|DEFAULT_FLAGS)$|_MAX$")

GRID = {"dev": "dev", "grid_id": "gridId64", "tid": "tid", "context": "context", "module": "module",
        "function": "function", "function_entry": "functionEntry", "grid_dim": "gridDim", "block_dim": "blockDim",
        "type": "type", "parent_grid_id": "parentGridId", "origin": "origin", "cluster_dim": "clusterDim",
        "preferred_cluster_dim": "preferredClusterDim"}
WARP = {"grid_id": "gridId", "error_pc": "errorPC", "block_idx": "blockIdx", "valid_lanes": "validLanes",
        "active_lanes": "activeLanes", "error_pc_valid": "errorPCValid", "lane": "lane", "cluster_idx": "clusterIdx",
        "cluster_dim": "clusterDim", "cluster_exception_target_block_idx_valid": "clusterExceptionTargetBlockIdxValid",
        "cluster_exception_target_block_idx": "clusterExceptionTargetBlockIdx", "in_syscall_lanes": "inSyscallLanes"}
CONTEXTS = ("Push", "Pop", "Create", "Destroy")
EVENT = {"kind": "kind", "internal_error": "cases.internalError.errorType",
         **{f"elf_image.{o}": f"cases.elfImage{k}.{o}" for k in ("Loaded", "Unloaded")
            for o in ("dev", "context", "module", "size", "handle")},
         "elf_image.properties": "cases.elfImageLoaded.properties",
         **{f"kernel_ready.{o}": f"cases.kernelReady.{'gridId' if o == 'grid_id' else GRID[o]}"
            for o in list(GRID)[:12]},
         **{f"kernel_finished.{o}": f"cases.kernelFinished.{'gridId' if o == 'grid_id' else GRID[o]}"
            for o in list(GRID)[:7]},
         **{f"functions_loaded.{o}": f"cases.functionsLoaded.{o}" for o in ("dev", "count", "context", "module")},
         "all_devices_suspended.broken_devices_mask": "cases.allDevicesSuspended.brokenDevicesMask",
         "all_devices_suspended.faulted_devices_mask": "cases.allDevicesSuspended.faultedDevicesMask",
         "single_step_complete.original_warp_mask": "cases.singleStepComplete.originalWarpMask",
         "single_step_complete.final_warp_mask": "cases.singleStepComplete.finalWarpMask"}
# ours -> (theirs, {our member: their member}).  Sizes of the versioned ones are looked at by slot.
STRUCTS = {
    "cudbgabi_event": ("CUDBGEvent", EVENT),
    "cudbgabi_dim2": ("CuDim2", {"y": "y"}), "cudbgabi_dim3": ("CuDim3", {"z": "z"}),
    "cudbgabi_notify_40": ("CUDBGEventCallbackData40", {"tid": "tid"}),
    "cudbgabi_lane_state": ("CUDBGLaneState", {"virtual_pc": "virtualPC", "thread_idx": "threadIdx",
                                               "exception": "exception"}),
    "cudbgabi_function_info": ("CUDBGLoadedFunctionInfo", {"section_index": "sectionIndex", "address": "address"}),
    "cudbgabi_memory_info": ("CUDBGMemoryInfo", {"start": "startAddress", "size": "size"}),
    "cudbgabi_warp_resources": ("CUDBGWarpResources", {"num_registers": "numRegisters"}),
    "cudbgabi_cbu_warp_state": ("CUDBGCbuWarpState", {}),
    "cudbgabi_attribute_value": ("CUDBGAttributeValuePair", {"attribute": "attribute", "value": "value"}),
    "cudbgabi_device_info_sizes": ("CUDBGDeviceInfoSizes", {
        "required_buffer_size": "requiredBufferSize", "device_size": "deviceInfoSize",
        "device_attr": "deviceInfoAttributeSizes", "sm_size": "smInfoSize", "sm_attr": "smInfoAttributeSizes",
        "warp_size": "warpInfoSize", "warp_attr": "warpInfoAttributeSizes", "lane_size": "laneInfoSize",
        "lane_attr": "laneInfoAttributeSizes"}),
    "cudbgabi_device_info": ("CUDBGDeviceInfo", {"response_type": "responseType", "attributes": "deviceAttributeFlags"}),
    "cudbgabi_sm_info": ("CUDBGSMInfo", {"warp_valid_mask": "warpValidMask", "warp_broken_mask": "warpBrokenMask",
                                         "attributes": "smAttributeFlags"}),
    "cudbgabi_warp_info": ("CUDBGWarpInfo", {
        "grid_id": "gridId", "block_idx": "blockIdx", "base_thread_idx": "baseThreadIdx", "valid_lanes": "validLanes",
        "active_lanes": "activeLanes", "attributes": "warpAttributeFlags"}),
    "cudbgabi_lane_info": ("CUDBGLaneInfo", {"virtual_pc": "virtualPC"}),
}
# Structs whose size tells the slot's version: (their struct, [(slot of the plain name, our size)]), newest first.
VERSIONED = (
    ("CUDBGGridInfo", "cudbgabi_grid_info", GRID, ((137, "sizeof(struct cudbgabi_grid_info)"),
                                                   (121, "CUDBGABI_GRID_INFO_SIZE_120"),
                                                   (86, "CUDBGABI_GRID_INFO_SIZE_55"))),
    ("CUDBGWarpState", "cudbgabi_warp_state", WARP, ((143, "sizeof(struct cudbgabi_warp_state)"),
                                                     (139, "CUDBGABI_WARP_STATE_SIZE_127"),
                                                     (123, "CUDBGABI_WARP_STATE_SIZE_120"),
                                                     (97, "CUDBGABI_WARP_STATE_SIZE_60"))),
    ("CUDBGCudaLogMessage", "cudbgabi_log_message", {}, ((161, "sizeof(struct cudbgabi_log_message)"),
                                                         (144, "sizeof(struct cudbgabi_log_message_129)"))),
    ("CUDBGEventCallbackData", "cudbgabi_notify", {"tid": "tid"}, ((147, "sizeof(struct cudbgabi_notify)"),)),
)


def strip_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


class Header:
    """One release's header: names it knows, version, members of the table."""

    def __init__(self, path):
        self.path = path
        self.text = strip_comments(path.read_text())
        self.words = set(re.findall(r"\b\w+\b", self.text))
        self.version = tuple(int(re.search(rf"#define CUDBG_API_VERSION_{p}\s+(\d+)", self.text)[1])
                             for p in ("MAJOR", "MINOR", "REVISION"))
        body = re.search(r"struct CUDBGAPI_st \{(.*?)\n\};", self.text, re.S)[1]
        self.slots = re.findall(r"CUDBGResult \(\*(\w+)\)\s*\(([^;]*)\);", body)


def canonical(arg, header):
    """What the calling convention and the pointee's width make of a parameter."""
    arg = re.sub(r"\bconst\b", " ", arg).strip()
    if arg == "void":
        return "none"
    base = arg.split("*")[0].split()
    kind = " ".join(base[:2]) if base[0] == "struct" else base[0]
    if re.match(r"CUDBGNotify|cudbgabi_notify\w*_fn", kind):
        return "function"
    stars = arg.count("*")
    if header and re.search(rf"typedef enum[^;{{]*\{{[^}}]*\}}\s*{kind}\s*;", header.text):
        kind = "uint32_t"
    if kind in ("CUDBGBreakpointHandle", "uintptr_t"):
        kind = "uint64_t"
    if kind.startswith("struct") or kind.startswith(("CUDBG", "CuDim")):
        kind = "void" if kind.startswith("CUDBGEvent") and kind != "CUDBGEvent" else "struct"
    return kind + "*" * stars


def canonical_list(args, header=None):
    return [canonical(a, header) for a in args.split(",")]


def our_constants():
    text = strip_comments(OURS.read_text() + SYMBOLS.read_text())
    names = re.findall(r"^\s*(CUDBGABI_\w+) = ", text, re.M)
    names += re.findall(r"^#define (CUDBGABI_\w+)\s+(?:UINT|\d)", text, re.M)
    return [n for n in names if not n.endswith("_COUNT")]


def vendor_name(ours):
    if ours.startswith("CUDBGABI_STORAGE_"):
        return f"ptx{STORAGE[ours[len('CUDBGABI_STORAGE_'):]]}Storage"
    if ours in NAMES:
        return NAMES[ours]
    return next(theirs + ours[len(prefix):] for prefix, theirs in PREFIXES if ours.startswith(prefix))


def run_program(header, lines):
    """Compile a program that prints `name theirs ours` per line; return what differs and how many agree."""
    with tempfile.TemporaryDirectory() as tmp:
        source = pathlib.Path(tmp, "compare.c")
        # Old releases include this file of the toolkit, which says no more than this.
        pathlib.Path(tmp, "cuda_stdint.h").write_text("#include <stdint.h>\n")
        source.write_text("\n".join([
            "#include <stddef.h>", "#include <stdio.h>", f'#include "{header.path}"', f'#include "{OURS}"',
            "#define SHOW(name, theirs, ours) printf(\"%s %lld %lld\\n\", name, (long long)(theirs), (long long)(ours))",
            "int main(void)", "{", *lines, "return 0;", "}"]))
        subprocess.run([sys.executable, description.__file__, tmp], check=True, timeout=60)
        subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-w", f"-I{tmp}", "-o", f"{tmp}/compare", source], check=True,
                       timeout=60)
        output = subprocess.run([f"{tmp}/compare"], check=True, capture_output=True, text=True, timeout=10).stdout
    rows = [line.split() for line in output.splitlines()]
    return [f"{name}: {theirs} there, {ours} here" for name, theirs, ours in rows if theirs != ours], len(rows)


def compare_constants(header):
    pairs = [(vendor_name(ours), ours) for ours in our_constants()]
    lines = [f'SHOW("{theirs}", (int){theirs}, (int){ours});' for theirs, ours in pairs
             if theirs in header.words and theirs != "CUDBG_MAX_DEVICES" and "BREAKPOINT" not in theirs]
    known = {theirs for theirs, _ in pairs}
    members = set(re.findall(r"^\s*(CUDBG_\w+)\s*(?:=[^,}]*)?[,}]?\s*$", header.text, re.M))
    unknown = sorted(m for m in members if FAMILIES.match(m) and not UNNAMED.search(m) and m not in known)
    wrong, n = run_program(header, lines)
    return wrong + [f"{name}: not known here" for name in unknown], n


def has_member(header, struct, member):
    """Members of nested unions are looked up by their last word."""
    return struct in header.words and all(word in header.words for word in member.split("."))


def compare_structs(header):
    lines = []
    for ours, (theirs, members) in STRUCTS.items():
        if theirs not in header.words:
            continue
        lines.append(f'SHOW("{theirs}", sizeof({theirs}), sizeof(struct {ours}));')
        lines += [f'SHOW("{theirs}.{t}", offsetof({theirs}, {t}), offsetof(struct {ours}, {o}));'
                  for o, t in members.items() if has_member(header, theirs, t)]
    for theirs, ours, members, versions in VERSIONED:
        newest = next((size for slot, size in versions if slot < len(header.slots)), None)
        if theirs not in header.words or not newest:
            continue
        lines.append(f'SHOW("{theirs}", sizeof({theirs}), {newest});')
        body = re.search(rf"typedef struct[^{{}}]*\{{([^{{}}]*)\}}\s*{theirs}\s*;", header.text)[1]
        lines += [f'SHOW("{theirs}.{t}", offsetof({theirs}, {t}), offsetof(struct {ours}, {o}));'
                  for o, t in members.items() if re.search(rf"\b{t}\b", body)]
    return run_program(header, lines)


def compare_slots(header):
    releases, ours = description.read()
    assert header.slots, f"no table found in {header.path}"
    lines = [f'SHOW("slot.{name}", offsetof(struct CUDBGAPI_st, {name}), {8 * nr});'
             for nr, (name, _) in enumerate(header.slots)]
    lines.append(f'SHOW("table", sizeof(struct CUDBGAPI_st), {8 * len(header.slots)});')
    wrong, n = run_program(header, lines)
    for nr, (name, args) in enumerate(header.slots):
        if nr >= len(ours):
            wrong.append(f"slot {nr} {name}: not known here")
            continue
        our_name, our_args = ours[nr].name, description.declaration(ours[nr])
        if name not in (our_name, re.sub(r"\d+$", "", our_name)):
            wrong.append(f"slot {nr}: {name} there, {our_name} here")
        theirs, mine = canonical_list(args, header), canonical_list(our_args)
        if theirs != mine:
            wrong.append(f"slot {nr} {name}: {theirs} there, {mine} here")
    expected = [r.n_slots for r in releases if r[:2] <= header.version[:2]][-1]
    if expected != len(header.slots):
        wrong.append(f"slots of {header.version}: {len(header.slots)} there, {expected} here")
    return wrong, n + len(header.slots)


def compare_symbols(header):
    known = dict(re.findall(r"X\(\w+, (cudbg\w+), (\w+)", SYMBOLS.read_text()))
    macros = dict(re.findall(r"#define (CUDBG_\w+)\s+(cudbg\w+)\s*$", header.text, re.M))
    wrong = [f"{symbol}: not known here" for symbol in macros.values() if symbol not in known]
    externs = re.findall(r"extern\s+(\w+)\s+(CUDBG_\w+)\s*;", header.text)
    lines = [f'SHOW("{macros[m]}", sizeof({t}), {known[macros[m]]});' for t, m in externs
             if macros.get(m) in known]
    differ, n = run_program(header, lines)
    return wrong + differ, n + len(macros)


def compare(path):
    header = Header(path)
    report, total = [], 0
    for part in (compare_constants, compare_structs, compare_slots, compare_symbols):
        wrong, n = part(header)
        report += wrong
        total += n
    release = ".".join(map(str, header.version))
    assert not report, f"{path} ({release}):\n  " + "\n  ".join(report)
    assert total > 400, f"{path} ({release}): only {total} comparisons"
    print(f"  {release}: {total} comparisons, {len(header.slots)} slots")


def test_debian_11_8():
    compare(fetch("cuda-header-11") / "usr/include/cuda-gdb/cudadebugger.h")


def test_debian_12_4():
    compare(fetch("cuda-header") / "usr/include/cuda-gdb/cudadebugger.h")


def test_installed_toolkits():
    found = sorted({pathlib.Path(p).resolve() for pattern in INSTALLED for p in glob.glob(pattern)})
    if not found:
        raise SkipTest("no CUDA toolkit with a cudadebugger.h is installed here")
    for path in found:
        compare(path)
