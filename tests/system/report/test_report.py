#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A page of HTML from every kind of document: it says what is wrong first, has the document in it, and nothing that a process has
chosen becomes a part of the page."""
import collections
import contextlib
import html.parser
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import BIN, ROOT, Scene, need_root

PAGES = ROOT / "tests/data/pages"
PARTIAL = 8
SIZE_MAX = 2 << 20
HOSTILE = ("</title></script><script>alert(1)</script><img src=x onerror=alert(2)>\" onload='alert(3)' &lt; --> ]]> "
           "\u202egnp\u2066 \u2028 \x1b[2J")
VOID = {"meta"}


def ctl(*argv, given=None):
    env = {**os.environ, "GPU_AGENT_SOCKET": "/nonexistent"}
    return subprocess.run([str(BIN / "gpu-agentctl"), *map(str, argv)], env=env, capture_output=True, timeout=120, input=given or b"")


class Page(html.parser.HTMLParser):
    """A page as a strict reader has it: every element is closed in its turn."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.count, self.attributes, self.texts = [], collections.Counter(), set(), collections.defaultdict(list)
        self.ids = []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.count[tag] += 1
        self.attributes |= {name for name, _ in attrs}
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, (tag, self.open)

    def handle_data(self, data):
        if self.open:
            self.texts["h1" if "h1" in self.open else self.open[-1]].append(data)

    def document(self):
        return json.loads("".join(self.texts["script"]))


def page_of(run, want=0):
    assert run.returncode == want, (run.returncode, run.stderr)
    text = run.stdout.decode()
    # Nothing reorders text or steers what shows the source, and nothing is loaded or run.
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]", text)
    page = Page(text)
    assert page.count["script"] == page.count["h1"] == 1 and "default-src 'none'" in text
    assert not {a for a in page.attributes if a.startswith("on")} | page.attributes & {"src", "href", "style", "action"}, page.attributes
    assert len(page.ids) == len(set(page.ids))
    assert not page.count.keys() & {"img", "link", "iframe", "object", "a", "form"}
    return page


def h1(page):
    return "".join(page.texts["h1"])


def saved(directory, name, document):
    path = pathlib.Path(directory) / name
    path.write_text(json.dumps(document))
    return path


def load(name):
    return json.loads((PAGES / name).read_text())


def test_snapshot():
    page = page_of(ctl("report", PAGES / "amd-2.json"))
    assert "memory violation: 3 waves of embedding" in h1(page)
    assert page.document() == json.loads(ctl("analyze", "-j", PAGES / "amd-2.json").stdout)
    cells = page.texts["td"]
    assert "train.hip:61 dot <- gemm (c=0x7f4c00000000, a=0x7f4c40000000, b=0x7f4c80000000, n=1024)" in cells, cells
    assert "gpu-agentctl why 15330 --twice" in page.texts["code"]
    assert "gpu-agentctl waves 15330 --group 1" in page.texts["code"]
    # The same words as everywhere else for NVIDIA's users.
    page = page_of(ctl("report", PAGES / "cuda-2.json"))
    assert "WARPS" in page.texts["th"] and "Contexts" in page.texts["h2"] and "3 warps" in h1(page)
    # Verbs that know nothing of this vendor are not named.
    assert not any("gpu-agentctl why" in t for t in page.texts["code"]), page.texts["code"]
    # The fault of a device has no waves that could be listed, and a process without a GPU has no queues.
    document = load("idle-1.json")
    document["devices"][0]["exceptions"] = ["device_memory_violation"]
    page = page_of(ctl("report", "-", given=json.dumps(document).encode()))
    assert "FAULT" in page.texts["h1"] and not any("gpu-agentctl waves" in t for t in page.texts["code"]), page.texts
    document["process"]["vendor"] = "none"
    page = page_of(ctl("report", "-", given=json.dumps(document).encode()))
    assert [t for t in page.texts["code"] if "15330" in t] == ["gpu-agentctl stacks 15330"], page.texts["code"]


def test_comparison():
    """Both kinds: `diff` has no snapshot in it, and `--again` has."""
    compared = ctl("diff", PAGES / "amd-1.json", PAGES / "amd-2.json", "-j")
    page = page_of(ctl("report", "-", given=compared.stdout))
    assert "hung" in page.texts["dd"] and "340 (-2)" in page.texts["td"] and "55 of 512 taken" in page.texts["td"]
    assert "TYPE" not in page.texts["th"]
    again = {**json.loads(compared.stdout), "snapshot": load("amd-2.json")}
    page = page_of(ctl("report", "-", given=json.dumps(again).encode()))
    assert "aldebaran" in " ".join(page.texts["td"]) and "TYPE" in page.texts["th"]
    assert page.document()["snapshot"]["process"]["pid"] == 15330
    # The other verbs read no comparison.
    codes = page.texts["code"]
    assert "gpu-agentctl report" in codes and not {"gpu-agentctl analyze", "merge"} & set(codes), codes


def test_refusals():
    for given, why in ((b"", "standard input"), (b'{"schema":"gpu-agent.comparison/1","source":{"kind":"live"}}', "standard input"),
                       (b'{"schema":"x/1","source":{"kind":"live","host":"h","agent":"0"}}', "gpu-agent.snapshot/1")):
        run = ctl("report", "-", given=given)
        assert run.returncode == 2 and why in run.stderr.decode() and not run.stdout, (run.returncode, run.stderr)
    assert ctl("report", "-j", PAGES / "amd-2.json").returncode == 2
    run = ctl("report", "/nonexistent")
    assert run.returncode == 1 and b"/nonexistent" in run.stderr and not run.stdout


def ranks(directory, n, odd=17):
    """All but one wait in the collective operation."""
    base = load("amd-2.json")
    for i in range(n):
        rank = json.loads(json.dumps(base))
        rank["process"]["pid"], rank["source"]["host"] = 1000 + i, f"gpu{i // 8:03d}"
        kept = "gemm" if i == odd else "all_reduce"
        rank["groups"] = [g for g in rank["groups"] if g["kernel"]["name"] == kept]
        rank["wave_count"] = sum(g["waves"] for g in rank["groups"])
        saved(directory, f"rank{i}.json", rank)


def test_job():
    with tempfile.TemporaryDirectory() as directory:
        ranks(directory, 64)
        page = page_of(ctl("report", directory))
        assert "ODD" in page.texts["h1"] and "rank17 " in h1(page), h1(page)
        assert page.document()["source"]["kind"] == "merged" and len(page.document()["ranks"]) == 64
        # Odd ranks come first in the table, and the matrix says in words what it shows.
        rows = [name for name, host in zip(page.texts["td"], page.texts["td"][1:]) if re.fullmatch(r"gpu\d{3}", host)]
        assert rows[:2] == ["rank17", "rank0"] and len(rows) == 64, rows
        assert any(t.startswith("rank18 to rank63: all_reduce") for t in page.texts["title"]), page.texts["title"][:9]
        assert any(t.startswith("rank17: gemm") and t.endswith("(odd)") for t in page.texts["title"])
        # A merged document says the same as the files that it is of.
        merged = ctl("merge", directory, "-j").stdout
        assert ctl("report", "-", given=merged).stdout == ctl("report", directory).stdout
        # A file that is none is told in the page, and by the exit status.
        (pathlib.Path(directory) / "rank64.json").write_text("{")
        page = page_of(ctl("report", directory), PARTIAL)
        assert any("rank64.json" in t for t in page.texts["li"]) and "no: see what is missing" in page.texts["dd"]


def test_large_job():
    with tempfile.TemporaryDirectory() as directory:
        ranks(directory, 1024)
        run = ctl("report", directory)
        page_of(run)
        assert len(run.stdout) < SIZE_MAX, len(run.stdout)


def test_large_document():
    """What is too large for a page is not in it, and the page says so."""
    document = load("amd-2.json")
    with tempfile.TemporaryDirectory() as directory:
        document["missing"], document["complete"] = ["x" * 3_000_000], False
        run = ctl("report", saved(directory, "long.json", document))
        page = Page(run.stdout.decode())
        assert len(run.stdout) < SIZE_MAX / 10
        assert run.returncode == PARTIAL and not page.count["script"]
        assert any("too many for a page" in t for t in page.texts["p"]), page.texts["p"]


def test_long_lists():
    """The page has the first of them and counts the others."""
    document = load("amd-2.json")
    document["missing"], document["complete"] = [f"queue {n}: lost" for n in range(1000)], False
    document["process"]["exe"] = "/" + "x" * 5000
    page = page_of(ctl("report", "-", given=json.dumps(document).encode()), PARTIAL)
    assert page.count["li"] < 500 and "600 more rows are in the document." in page.texts["p"], page.texts["p"]
    assert max(map(len, page.texts["dd"])) < 500


def hostile(value, key=None):
    """Every text that a process could have chosen gets the same ending."""
    if isinstance(value, dict):
        return {k: hostile(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [hostile(v, key) for v in value]
    chosen = {"comm", "exe", "name", "raw", "function", "file", "host", "container", "missing", "text", "writer"}
    return value[:8] + HOSTILE if isinstance(value, str) and key in chosen else value


def plain(value):
    """The same document without what would be hostile."""
    return json.loads(json.dumps(value).replace(json.dumps(HOSTILE)[1:-1], "x" * len(HOSTILE)))


def test_hostile():
    """A page of hostile names has the same elements as one of plain names."""
    with tempfile.TemporaryDirectory() as directory:
        bad = hostile(load("amd-2.json"))
        other = {**bad, "process": {**bad["process"], "pid": 7}}
        for n, files in enumerate(([bad], [bad, other])):
            paths = [saved(directory, f"{n}{k}.json", d) for k, d in enumerate(files)]
            harmless = [saved(directory, f"{n}{k}-plain.json", plain(d)) for k, d in enumerate(files)]
            page, want = page_of(ctl("report", *paths)), page_of(ctl("report", *harmless))
            # How names of functions are shortened depends on what is in them, and with that which boxes the picture has, and
            # whether a text is too long for its cell.
            differ = {tag for tag in page.count.keys() | want.count.keys() if page.count[tag] != want.count[tag]}
            assert differ <= {"g", "rect", "title", "text", "details", "summary"}, (page.count, want.count)
            assert page.attributes == want.attributes
            assert page.document() == json.loads(ctl("merge" if n else "analyze", "-j", *paths).stdout)
        page_of(ctl("report", PAGES / "hostile.json"), PARTIAL)


def test_live_and_core():
    """From a process by way of its snapshot with threads, and from its core."""
    need_root()
    with contextlib.ExitStack() as stack:
        s = stack.enter_context(Scene())
        run = s.ctl("snapshot", s.app.pid, "--host", "-j")
        page = page_of(ctl("report", "-", given=run.stdout.encode()), run.returncode)
        assert "Threads on the processors" in page.texts["h2"]
        # From what the agent has stored, as well as other verbs do.
        assert s.ctl("snapshot", s.app.pid, "--record").returncode in (0, PARTIAL)
        record = s.ctl("cores", "info", "-j").stdout
        inside = json.loads(record)["snapshot"]
        page = page_of(ctl("report", "-", given=record.encode()), 0 if inside["complete"] else PARTIAL)
        assert page.document()["time_us"] == inside["time_us"] and page.document()["process"]["pid"] == s.app.pid
        for verb in ("analyze", "merge"):
            assert json.loads(ctl(verb, "-", "-j", given=record.encode()).stdout)["process"]["pid"] == s.app.pid, verb
        core = s.directory / "core"
        s.ctl("dump", s.app.pid, "-o", core)
        page = page_of(ctl("report", core))
        assert any(t.startswith("Core of process") for t in page.texts["p"]), page.texts["p"]
        assert "gpu-agentctl analyze --waves --registers FILE" in page.texts["code"]
