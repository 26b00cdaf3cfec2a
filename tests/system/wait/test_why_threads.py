#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Threads of the process at the end of those who are kept: who waits for which packet, as host.stacks says it, and for what keeps that."""
import json
import os
import pathlib
import re
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import wait_until
from waitscene import WaitScene

FIELDS = ("queue_id", "gpu_id", "ring_base", "ring_bytes", "read_pointer", "write_pointer")
# The kernel in queue 0 gives `done`, for which the packet of queue 1 waits, which gives `last`.
QUEUES = ("runtime ttmp; idle; queues 2 0; load CODE; dispatch 0 gemm 256 256; signal done 1; signal last 1; "
          "packet 0 0 kernel completion=done; packet 1 0 and done completion=last; ")
GO = "; pending 0 1; pending 1 1; "
STUCK = "waves 0 barrier 4 gemm+0x40 last=memory"
RUNS = "waves 0 spin 4 gemm+0x40"


def script(waits, waves=STUCK):
    return QUEUES + waves + GO + waits + "; spin"


def tids(s, event_threads):
    """The threads that host.stacks tells to wait, when there are so many."""
    def settled():
        found = [g for g in stacks(s)["groups"] if g.get("role") == "gpu_wait"]
        return found if sum(g["threads"] for g in found) == event_threads else None
    return wait_until(settled, "the threads wait")


def stacks(s):
    queues = [{k: q[k] for k in FIELDS} for q in s.rpc.call("gpu.queues", session=s.session)["queues"] if q["type"] == "compute_aql"]
    return s.rpc.call("host.stacks", pid=s.app.pid, queues=queues)


def told_by_stacks(s):
    """{thread: queue and packet}, of those that host.stacks tells to wait for a packet."""
    return {g["representative"]["tid"]: (g["waits_for"]["queue_id"], int(g["waits_for"]["dispatch"]))
            for g in stacks(s)["groups"] if "queue_id" in g.get("waits_for", {})}


def by_why(doc):
    return {t["tid"]: (t["queue_id"], int(t["dispatch"])) for t in doc.get("threads", [])}


def way(doc, node):
    """Nodes that follow each other, from one on."""
    while node is not None:
        yield doc["nodes"][node]
        node = next((e["to"] for e in doc["edges"] if e["from"] == node), None)


def without_threads(doc):
    """What the answer says of waits, and no positions of nodes."""
    waits = [{k: v for k, v in w.items() if k != "id"} for w in doc["waits"]]
    return waits, [{k: v for k, v in c.items() if k != "node"} for c in doc["causes"]], doc.get("stuck"), doc["complete"]


def test_threads_and_packets_are_those_of_host_stacks():
    with WaitScene("gfx90a", script("await done; await last")) as s:
        s.attach()
        tids(s, 2)
        doc = s.why()
        assert by_why(doc) == told_by_stacks(s) and sorted(by_why(doc).values()) == [(0, 0), (1, 0)], doc["threads"]
        for t in doc["threads"]:
            node = doc["nodes"][t["node"]]
            assert (node["kind"], node["tid"], t["confidence"]) == ("thread", t["tid"], "proven"), t
            assert t["name"] == pathlib.Path(f"/proc/{s.app.pid}/task/{t['tid']}/comm").read_text(encoding="utf-8").strip()
            edges = [e for e in doc["edges"] if t["node"] in (e["from"], e["to"])]
            assert [(e["from"], e["confidence"]) for e in edges] == [(t["node"], "proven")], edges
            assert "end" not in node and "wait" not in node, node


def test_at_the_end_of_the_chain_is_the_thread():
    """From the wave that has stopped to its workgroup, the dispatch, the signal, the packet, and who waits for that."""
    with WaitScene("gfx90a", script("await last")) as s:
        s.attach()
        (group,) = tids(s, 1)
        tid = group["representative"]["tid"]
        doc = s.why()
        (thread,) = doc["threads"]
        kinds = [n["kind"] for n in way(doc, thread["node"])]
        assert kinds[0] == "thread" and kinds[1:4] == ["packet", "word", "dispatch"] and kinds[-1] == "wave", kinds
        assert thread["text"] == f"thread {tid} ({thread['name']}) waits for packet 0 of queue 1 (a barrier-AND), which waits", thread
        (signal,) = (q for q in told_by_stacks(s).values())
        assert signal == (1, 0)
        shown = s.ctl("why", s.app.pid)
        print(shown.stdout)
        text = " ".join(shown.stdout.split())
        assert shown.returncode == 10 and text.startswith("CAUSE wave 3 of workgroup (0,0,0) of gemm, at gemm+0x80, has stopped")
        assert f"THREAD {tid} ({thread['name']}) waits for packet 0 of queue 1 (a barrier-AND), which waits [proven]" in text, text


def test_the_chain_of_a_kernel_ends_with_the_thread():
    with WaitScene("gfx90a", QUEUES.split("packet 1")[0] + STUCK + "; pending 0 1; await done; spin") as s:
        s.attach()
        (group,) = tids(s, 1)
        tid = group["representative"]["tid"]
        shown = s.ctl("why", s.app.pid)
        print(shown.stdout)
        text = " ".join(shown.stdout.split())
        assert shown.returncode == 10 and f"<- thread {tid} (" in text and ") waits for packet 0 of queue 0 (gemm), which runs" in text


@pytest.mark.parametrize("waves", [STUCK, RUNS])
def test_threads_change_nothing_of_the_rest(waves):
    """They are no waits: causes, their counts, and what is stuck are the same without them."""
    docs = []
    for waits in ("signal none", "await done 3; await last 2"):
        with WaitScene("gfx90a", script(waits, waves)) as s:
            s.attach()
            if "await" in waits:
                tids(s, 5)
            doc = s.why()
            assert len(doc.get("threads", [])) == (5 if "await" in waits else 0), doc.get("threads")
            # Addresses differ from process to process.
            docs.append(json.dumps(without_threads(doc)))
    strip = [re.sub(r"0x[0-9a-f]+", "", d) for d in docs]
    assert strip[0] == strip[1], docs


def test_where_nothing_waits_the_page_is_as_before():
    waits = QUEUES.split("packet 1")[0] + "waves 0 spin 4 gemm+0x80" + "; pending 0 1; await done; spin"
    with WaitScene("gfx90a", waits) as s:
        s.attach()
        tids(s, 1)
        doc = s.why()
        assert not doc["waits"] and not doc["causes"] and len(doc["threads"]) == 1 and doc["complete"], doc
        assert "THREAD" not in s.ctl("why", s.app.pid).stdout and "THREAD" in s.ctl("why", "-v", s.app.pid).stdout


def test_who_serves_the_runtime_waits_for_no_packet():
    with WaitScene("gfx90a", script("await done 1 any; await last 1 all")) as s:
        s.attach()
        tids(s, 1)
        (thread,) = s.why()["threads"]
        assert (thread["queue_id"], thread["confidence"]) == (1, "proven"), thread


def test_a_signal_of_several_packets_is_only_likely():
    with WaitScene("gfx90a", script("packet 0 1 kernel completion=done; pending 0 2; await done")) as s:
        s.attach()
        tids(s, 1)
        doc = s.why()
        (thread,) = doc["threads"]
        assert (thread["queue_id"], thread["dispatch"], thread["confidence"]) == (0, 0, "inferred"), thread


def test_a_packet_that_is_done_keeps_nobody():
    """The thread was not woken, which host.stacks tells."""
    with WaitScene("gfx90a", script("await done; signal done 0")) as s:
        s.attach()
        tids(s, 1)
        assert "not woken although the work is done" in stacks(s)["findings"][0]
        doc = s.why()
        assert "threads" not in doc and not any(n["kind"] == "thread" for n in doc["nodes"]), doc["nodes"]


@pytest.mark.parametrize("waits, n", [("signal nobody 1; await nobody", 1), ("await done 1 hidden", 0)], ids=["event-of-nobody", "hidden"])
def test_what_leads_nowhere_is_no_edge(waits, n):
    """Another one that waits for the same is told all the same."""
    with WaitScene("gfx90a", script(f"{waits}; await last")) as s:
        s.attach()
        tids(s, n + 1)
        doc = s.why()
        assert [t["queue_id"] for t in doc["threads"]] == [1] and doc["complete"], doc
        assert doc["causes"][0]["culprit"] and doc["causes"][0]["waits"] == 2, doc["causes"]


def test_without_packets_threads_are_not_read():
    """There are too many of them, which is then not said either."""
    with WaitScene("gfx90a", QUEUES.replace("packet 0 0 kernel completion=done; packet 1 0 and done completion=last; ", "") +
                   "await done; sleepers 5000; spin") as s:
        s.attach()
        doc = s.why()
        assert doc["complete"] and "threads" not in doc, doc


def test_more_threads_than_are_told():
    with WaitScene("gfx90a", script("await done 300")) as s:
        s.attach()
        tids(s, 300)
        doc = s.why()
        assert doc["threads_missing"] == ["threads: 236 of 300 that wait for packets"] and doc["complete"], doc
        assert len({t["tid"] for t in doc["threads"]}) == 64
        shown = s.ctl("why", s.app.pid)
        assert shown.stdout.count("THREAD") == 16 and "(48 more threads: --verbose)" in shown.stdout, shown.stdout
        assert shown.returncode == 10 and "threads: 236 of 300 that wait for packets" in shown.stdout, shown


def test_thousands_of_threads_take_a_bounded_time():
    with WaitScene("gfx90a", script("sleepers 5000; await done")) as s:
        s.attach()
        begin = time.monotonic()
        doc = s.why()
        assert time.monotonic() - begin < 5, "the reading of threads has a limit of its own"
        assert "threads: more than 4096" in doc["threads_missing"] and doc["complete"] and not doc["missing"], doc
        assert doc["causes"][0]["culprit"] and doc["causes"][0]["waits"] == 2, doc["causes"]


def packets(n):
    """The queue's only signal is that of its last packet."""
    return "".join(f"packet 0 {i} kernel; " for i in range(n - 1)) + f"packet 0 {n - 1} kernel completion=last; "


@pytest.mark.parametrize("waves, status", [(STUCK, 10), (RUNS, 0)], ids=["stuck", "runs"])
def test_packets_behind_those_that_are_looked_at(waves, status):
    """Nothing else of the answer depends on threads: nor does the exit status."""
    with WaitScene("gfx90a", QUEUES.split("packet")[0] + packets(301) + waves + "; pending 0 301; await last 2; spin") as s:
        s.attach()
        tids(s, 2)
        doc = s.why()
        assert doc["threads_missing"] == ["threads: 2 wait for packets behind the first 256 of queue 0"], doc
        assert "threads" not in doc and doc["complete"] and not doc["missing"], doc
        shown = s.ctl("why", "-v", s.app.pid)
        assert shown.returncode == status and "packets behind the first 256 of queue 0" in " ".join(shown.stdout.split()), shown


def test_who_else_may_give_a_signal_makes_it_likely():
    """Packets that were not seen may give the one of the first packet, too."""
    many = packets(301).replace("packet 0 0 kernel;", "packet 0 0 kernel completion=done;")
    for text in (QUEUES.split("packet")[0] + many + STUCK + "; pending 0 301; await done",
                 QUEUES.split("packet 1")[0].replace("signal done 1", "signal done 2") + STUCK + "; pending 0 1; await done"):
        with WaitScene("gfx90a", text + "; spin") as s:
            s.attach()
            tids(s, 1)
            (thread,) = s.why()["threads"]
            assert (thread["dispatch"], thread["confidence"]) == (0, "inferred"), thread


def test_only_what_is_behind_another_packet_has_not_started():
    with WaitScene("gfx90a", QUEUES.split("packet")[0] + "packet 0 0 kernel; packet 0 1 kernel completion=done; " + RUNS +
                   "; pending 0 2; await done; spin") as s:
        s.attach()
        tids(s, 1)
        (thread,) = s.why()["threads"]
        assert thread["text"].endswith("waits for packet 1 of queue 0 (gemm), which has not started"), thread
