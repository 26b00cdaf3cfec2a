#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a kernel that watches itself complains of, less the faults that docs/VM.md explains.

usage: complaints.py DIRECTORY       with kernel (its log), lockdep (of /proc/lockdep_stats) and leaks (of kmemleak)

Prints a PASS or FAIL line for each of the three, and the reports that nobody has explained.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# The first line of a report; what a report is about follows in lines of its own.
HEAD = re.compile(r"BUG: |WARNING: |UBSAN: |ODEBUG: |kernel BUG at|Oops|general protection fault|Kernel panic|unable to handle|"
                  r"list_(?:add|del) corruption|refcount_t: |sysfs: cannot create duplicate|kobject_add_internal failed|"
                  r"INFO: task .* blocked for more|INFO: trying to register non-static key|detected stall|DEBUG_LOCKS_WARN_ON|"
                  r"INFO: lockdep is turned off|"
                  # Of slub_debug; and of a kmemleak that has switched itself off, which finds no leaks any more.
                  r"BUG .* \((?:Not tainted|Tainted\b[^)]*)\): |kmemleak: .*(?:disabled|Cannot allocate)")
STAMP = re.compile(r"^(?:<\d+>)?\[ *\d+\.\d+\](?:\[[^\]]*\])? ?")
# What differs from one run to the next, or from one kernel of the series to the next.
VARIES = ((r"0x[0-9a-f]+|\b[0-9a-f]{16}\b", "ADDRESS"), (r"\+0x[0-9a-f]+/0x[0-9a-f]+|\+ADDRESS/ADDRESS", ""),
          (r"CPU: \d+ ", ""), (r"PID: \d+ ", ""),
          (r"(\.[ch]):\d+", r"\1"), (r" by task \S+|/\d+\b", ""), (r" \[#\d+\]", ""),
          (r" \((?:Not tainted|Tainted\b[^)]*)\)", ""))
# A call that was surely made, of the driver.
CALL = re.compile(r" (?!\? )((?:kfd|amdgpu|svm)_\w+)\+0x")
LOCK = re.compile(r"\(([^(){}]+)\)\{[^}]*\}")
CONTEXT = 60


def plain(line):
    for pattern, word in VARIES:
        line = re.sub(pattern, word, line)
    return " ".join(line.split())


def title(lines):
    """Of a report: its first line; for locks which two it is about, and for a warning of others who of the driver caused it."""
    first = plain(lines[0])
    if first.startswith("WARNING: at ") and "drivers/" not in first:
        ends = [i for i, line in enumerate(lines[1:], 1) if HEAD.search(line)]
        calls = [call.group(1) for call in map(CALL.match, lines[1:ends[0] if ends else None]) if call]
        return " < ".join([first, *calls[:1]])
    if "lock" not in first or not first.startswith(("WARNING: possible", "WARNING: inconsistent", "WARNING: bad")):
        return first
    wanted = []
    for before, line in zip(lines, lines[1:]):
        if re.search(r"trying to (?:acquire|release) lock|already holding lock|but task is already", before):
            wanted += LOCK.findall(line)[:1]
    return f"{first}: {', '.join(wanted)}"


def reports(log):
    """(title, lines) of each, in the order of the log."""
    lines = [STAMP.sub("", line) for line in log.splitlines()]
    starts = [i for i, line in enumerate(lines) if HEAD.search(line)]
    return [(title(lines[i:i + CONTEXT]), lines[i:i + CONTEXT]) for i in starts]


def leaks(text):
    """(who allocated it, lines) of each object that nothing points to."""
    found = []
    for part in re.split(r"(?m)^(?=unreferenced object )", text):
        calls = [plain(re.sub(r"^\s*(?:\[<[0-9a-f]+>\] )?", "", line)) for line in part.partition("backtrace")[2].splitlines()[1:]]
        if calls:
            found.append((f"leak: {' < '.join(calls[:6])}", part.splitlines()))
    return found


def known():
    """The first column of the table in docs/VM.md."""
    text = (ROOT / "docs/VM.md").read_text(encoding="utf-8")
    rows = text.partition("| complaint |")[2].partition("\n\n")[0].splitlines()[2:]
    return [re.match(r"\| `([^`]+)` \|", row).group(1) for row in rows]


def unexplained(found, explained):
    return [(name, lines) for name, lines in found if not any(row in name for row in explained)]


def show(name, found, explained):
    """Each title once, with its first report."""
    bad = dict(reversed(unexplained(found, explained)))
    for lines in bad.values():
        print(*(f"  | {line}" for line in lines), sep="\n")
    for text in bad:
        print(f"FAIL {name}: {text}")
    if not bad:
        print(f"PASS {name} ({len(found)} known)" if found else f"PASS {name}")
    return not bad


def main(directory):
    read = {name: (directory / name).read_text(encoding="utf-8", errors="replace") if (directory / name).exists() else None
            for name in ("kernel", "lockdep", "leaks")}
    if not read["kernel"]:
        print("FAIL kernel_log: the guest left none")
        return 1
    found = reports(read["kernel"])
    is_good = show("kernel_log", found, known())
    stats = re.search(r"debug_locks: *(\d)", read["lockdep"] or "")
    if stats and stats.group(1) == "1":
        print("PASS kernel_locks")
    elif stats:
        print("FAIL kernel_locks: the kernel has ceased to watch its locks")
    else:
        print("FAIL kernel_locks: it is not known whether locks were watched to the end")
    is_good &= bool(stats) and stats.group(1) == "1"
    if read["leaks"] is None:
        print("FAIL kernel_leaks: nobody looked")
        return 1
    return 0 if show("kernel_leaks", leaks(read["leaks"]), known()) and is_good else 1


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
