#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""List the caller's own GPU processes, and why one cannot be debugged."""
import sys

import gpu_agent


def main() -> int:
    with gpu_agent.Client() as agent:
        # Without mine=True the list has the processes of all users.
        for process in agent.process_list(mine=True)["processes"]:
            why_not = "" if process["debuggable"] else f"cannot be debugged: {process.get('reason', '?')}"
            print(f"{process['pid']} {process['comm']} {process['vendor']}, queues: {process['queues']} {why_not}".rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
