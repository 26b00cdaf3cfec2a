#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One line on each core file: what went wrong, and where.  usage: core_summary.py CORE...

gpu-agentctl reads the cores; no agent has to run.  Exit status 1: one could not be read.
"""
import json
import subprocess
import sys


def summary(path: str) -> str:
    # Exit status 8 says that the core lacks something; what it has is printed all the same.
    done = subprocess.run(["gpu-agentctl", "analyze", path, "--json"], stdout=subprocess.PIPE, text=True, check=False)
    document = json.loads(done.stdout)
    if "error" in document:
        raise ValueError(document["error"]["message"])
    faults = [group for group in document["groups"] if group["reasons"]]
    if not faults:
        return f"{len(document['groups'])} groups of waves, no fault"
    first = faults[0]
    frame = first["frames"][0] if first["frames"] else {}
    where = f"{frame['file'].rpartition('/')[2]}:{frame['line']}" if frame.get("file") else first["pc"]
    kernel = (first.get("kernel") or {}).get("name", "?")
    return f"{', '.join(first['reasons'])} in {kernel} at {where}, waves: {first['waves']}"


def main() -> int:
    failed = 0
    for path in sys.argv[1:]:
        try:
            print(f"{path}: {summary(path)}")
        except ValueError as error:
            print(f"{path}: {error}", file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
