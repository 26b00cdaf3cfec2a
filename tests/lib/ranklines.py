# SPDX-License-Identifier: MIT
"""What `job` says of ranks in its first line, and what the graph of waits has of them."""
from __future__ import annotations

from typing import Any


def first_line(shown: str) -> str:
    """Without the breaks that make it fit the page."""
    words = []
    for i, line in enumerate(shown.splitlines()):
        if i and not line.startswith("       "):
            break
        words.append(line.strip())
    return " ".join(words).replace("  [", " [")


def job_says(s: Any, line: str) -> str:
    """What it shows, when its first line is that."""
    shown: str = s.job()
    assert first_line(shown) == line, shown
    return shown


def without_missing(shown: str) -> str:
    """What is said of ranks: not what is missing, which a busy machine makes more."""
    lines = shown.splitlines(keepends=True)
    return "".join(line for line in lines if not line.lstrip().startswith("missing"))


def graph_of(document: dict[str, Any]) -> tuple[dict[str, list[str]], list[tuple[str, str, int]]]:
    """Who waits for whom in a merged document, and where that ends: what, where, and how many wait for it.  Nobody is accused."""
    graph = document["rank_graph"]
    names = [document["ranks"][node["process"]]["name"] for node in graph["nodes"]]
    assert [node["text"] for node in graph["nodes"]] == names and {node["kind"] for node in graph["nodes"]} == {"rank"}, graph
    edges: dict[str, list[str]] = {name: [] for name in names}
    for edge in graph["edges"]:
        assert edge["confidence"] == "inferred" and "any" not in edge, edge
        edges[names[edge["from"]]].append(names[edge["to"]])
    for node in graph["nodes"]:
        assert (node.get("end") == "unknown") is not bool(edges[node["text"]]), node
    assert all(not cause["culprit"] and cause["confidence"] == "inferred" for cause in graph["causes"]), graph["causes"]
    return edges, [(cause["end"], names[cause["node"]], cause["waits"]) for cause in graph["causes"]]


def awaited_ranks(doc: dict[str, Any]) -> list[int]:
    """Ranks to which chains of waits lead in the answer of one process: what they do is not known, and none is accused."""
    nodes, found = doc["nodes"], set()
    ways = [(e["from"], e["to"]) for e in doc["edges"] if not e.get("any")]
    reached = {i for i, node in enumerate(nodes) if "wait" in node}
    for _ in nodes:
        reached |= {to for start, to in ways if start in reached}
    for i, node in enumerate(nodes):
        if node["kind"] != "rank":
            continue
        assert node["text"] == f"rank {node['rank']} of communicator {node['communicator']}", node
        assert node["end"] == "unknown" and "wait" not in node, node
        assert all(e["confidence"] == "inferred" for e in doc["edges"] if e["to"] == i), doc["edges"]
        assert not [c for c in doc["causes"] if c["node"] == i and c["culprit"]], doc["causes"]
        found |= {node["rank"]} if i in reached else set()
    return sorted(found)


def waits_in_collectives(doc: dict[str, Any]) -> list[dict[str, Any]]:
    """Those that are told as such."""
    return [w for w in doc["waits"] if w["kind"] == "collective"]
