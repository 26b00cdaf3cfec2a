#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gpu-agentctl mcp as an assistant's client sees it: revisions, tools, pages, errors, and what is left when it goes away."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

if __name__ == "__main__":
    # list shows all processes of the machine that use a GPU: those of other tests are none of it.
    alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--"] if os.geteuid() == 0 else []
    os.execvp((alone + ["pytest-3"])[0], [*alone, "pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN, ROOT, STOP_MS, CudaScene, Scene, wait_until
from mcpclient import MODERN, Client, data_of, facts_of, text_of
from waitscene import WaitScene, block, polling

STOP = f"--max-stop={STOP_MS}ms"  # of the server: how much a call may ask for, on a machine that has much else to do
LOOK = {"max_stop_ms": min(STOP_MS, 7000)}
TOOLS = ["list", "doctor", "snapshot", "why", "stacks", "diff", "wave", "memory", "disassemble", "job_report"]
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, NO_RESOURCE, VERSION = -32700, -32600, -32601, -32602, -32002, -32022


# ------------------------------------------------------------------ the protocol -----------------

@pytest.mark.parametrize(("asked", "want"), [("2025-06-18", "2025-06-18"), ("2025-11-25", "2025-11-25"), ("2024-11-05", "2025-11-25"),
                                             ("2026-07-28", "2025-11-25"), ("x", "2025-11-25")])
def test_initialize_agrees_on_a_revision(asked, want):
    with Client("/nowhere", version=asked) as c:
        assert c.hello["protocolVersion"] == want
        assert c.hello["serverInfo"]["name"] == "gpu-agent" and len(c.hello["instructions"]) <= 600, c.hello
        c.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        assert c.request("ping") == {}
        assert "resultType" not in c.request("tools/list")
        assert c.error("server/discover")["code"] == NO_METHOD
        assert c.end() == 0


def test_requests_of_2026_name_their_revision():
    """Both eras on one pipe: a request says of which it is, and one that does not is of what initialize agreed on, if anything."""
    with Client("/nowhere", version=None) as c:
        refused = c.error("tools/list")
        assert refused["code"] == INVALID_PARAMS and "io.modelcontextprotocol/protocolVersion" in refused["message"], refused
        unknown = c.error("tools/list", _meta={**MODERN, "io.modelcontextprotocol/protocolVersion": "2031-01-01"})
        assert unknown["code"] == VERSION and unknown["data"] == {"supported": ["2026-07-28"], "requested": "2031-01-01"}, unknown
        assert c.error("tools/list", _meta={"io.modelcontextprotocol/protocolVersion": "2026-07-28"})["code"] == INVALID_PARAMS
        assert c.error("tools/list", _meta={**MODERN, "io.modelcontextprotocol/protocolVersion": 7})["code"] == INVALID_PARAMS
        found = c.request("server/discover", _meta=MODERN)
        assert found["supportedVersions"] == ["2026-07-28"] and found["resultType"] == "complete", found
        assert found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "gpu-agent", found
        listed = c.request("tools/list", _meta=MODERN)
        assert listed["ttlMs"] > 0 and listed["cacheScope"] == "private" and listed["resultType"] == "complete", listed
        assert c.error("ping", _meta=MODERN)["code"] == NO_METHOD
        # It agrees on nothing then: what has no revision is refused as before.
        assert c.error("initialize", _meta=MODERN, protocolVersion="2025-06-18")["code"] == NO_METHOD
        assert c.error("tools/list")["code"] == INVALID_PARAMS
        assert c.error("resources/read", _meta=MODERN, uri="gpu-agent://process/1/snapshot/s1")["code"] == INVALID_PARAMS
        c.request("initialize", protocolVersion="2025-06-18")
        assert c.request("tools/list")["tools"] == listed["tools"]
        assert c.request("tools/list", _meta=MODERN)["resultType"] == "complete"
        assert c.error("resources/read", uri="gpu-agent://process/1/snapshot/s1")["code"] == NO_RESOURCE
        # Wrong arguments were an error of the protocol at that time.
        assert c.error("tools/call", name="doctor", arguments={})["code"] == INVALID_PARAMS
        wrong = c.request("tools/call", _meta=MODERN, name="doctor", arguments={})
        assert wrong["isError"] and 'argument "pid" is missing' in text_of(wrong), wrong


def test_tools_are_few_and_say_what_they_do():
    with Client("/nowhere") as c:
        before = c.received
        tools = c.request("tools/list")["tools"]
        assert c.received - before <= 8192
        assert [t["name"] for t in tools] == TOOLS
        for tool in tools:
            assert tool["annotations"] == {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True,
                                           "openWorldHint": tool["name"] == "job_report"}, tool
            schema = tool["inputSchema"]
            assert schema["type"] == "object" and schema["additionalProperties"] is False, schema
            assert set(schema.get("required", [])) <= set(schema["properties"]), schema
            if "max_stop_ms" in schema["properties"]:
                assert "auses" in tool["description"].split(".")[0], tool["description"]
    with Client("/nowhere", "--allow-control") as c:
        more = {t["name"]: t["annotations"] for t in c.request("tools/list")["tools"]}
        assert sorted(set(more) - set(TOOLS)) == ["resume", "suspend"]
        assert more["suspend"]["destructiveHint"] and not more["suspend"]["readOnlyHint"]


@pytest.mark.parametrize(("line", "code", "words"), [
    (b"{", PARSE_ERROR, "not JSON"),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"', PARSE_ERROR, "not JSON"),
    (b"\xff\xfe", PARSE_ERROR, "byte 0"),
    (b'{"jsonrpc":"2.0","id":1,"method":"a\x00b"}', PARSE_ERROR, "not JSON"),
    (b"[" * 500, PARSE_ERROR, "deep"),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 200 + b"1" + b"}" * 201, PARSE_ERROR, "deep"),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', INVALID_REQUEST, "batches"),
    (b"[]", INVALID_REQUEST, "batches"),
    (b"null", INVALID_REQUEST, "object"),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID_REQUEST, "id must be"),
    (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', INVALID_REQUEST, "id must be"),
    (b'{"jsonrpc":"2.0","id":"' + b"x" * 1000 + b'","method":"ping"}', INVALID_REQUEST, "id is longer"),
    (b'{"id":7,"method":"ping"}', INVALID_REQUEST, "jsonrpc"),
    (b'{"jsonrpc":"2.0","id":7}', INVALID_REQUEST, "method"),
    (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":[1]}', INVALID_PARAMS, "params"),
    (b'{"jsonrpc":"2.0","id":7,"method":"\\u001b[2J\\u202e"}', NO_METHOD, "there is no method"),
    (b'{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage"}', NO_METHOD, "sampling/createMessage"),
    (b'{"jsonrpc":"2.0","id":7,"method":"tools/call"}', INVALID_PARAMS, "Unknown tool"),
    (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":5}}', INVALID_PARAMS, "Unknown tool"),
    (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"suspend","arguments":{"pid":1,"lease_ms":9}}}', INVALID_PARAMS,
     "Unknown tool: suspend"),
    (b'{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"cursor":"x"}}', INVALID_PARAMS, "cursor"),
    (b'{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}', NO_RESOURCE, "no such resource"),
    (b'{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}', INVALID_PARAMS, "protocolVersion"),
    # Too long to be a name of a test: the environment has that.
    (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":"LONG"}}', INVALID_REQUEST, "1 MiB"),
])
def test_what_is_wrong_is_named_and_the_next_request_is_answered(line, code, words):
    with Client("/nowhere") as c:
        line = line.replace(b"LONG", b"y" * (2 << 20))
        c.write(line + b"\n")
        message = c.read()
        assert message["error"]["code"] == code and words in message["error"]["message"], message
        # The schema of the protocol knows no id that is null.
        assert message.get("id") == (7 if b'"id":7' in line and code != PARSE_ERROR and len(line) < 1 << 20 else None), message
        assert "\x1b" not in json.dumps(message, ensure_ascii=False)
        assert c.request("ping") == {}


def test_what_asks_nothing_is_not_answered():
    with Client("/nowhere") as c:
        c.write(b'\n  \r\n{"jsonrpc":"2.0","id":5,"result":{}}\n{"jsonrpc":"2.0","method":"x"}\n'
                b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}\n'
                b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}\n')
        c.write(b'{"jsonrpc":"2.0","id":"\xc3\xa9 1","method":"ping"}\n')
        assert c.read()["id"] == "\u00e9 1"


def test_half_a_line_and_the_end():
    with Client("/nowhere") as c:
        c.write(b'{"jsonrpc":"2.0","id":9,"met')
        assert c.end() == 0
        assert "error" in c.read()


def test_nobody_reads_any_more():
    with Client("/nowhere") as c:
        c.process.stdout.close()
        assert c.process.wait(timeout=10) == 0


def test_nobody_reads_a_socket_any_more():
    """Some clients give a socket: its hang-up ends the server although requests may still come."""
    ours, theirs = socket.socketpair()
    with subprocess.Popen([BIN / "gpu-agentctl", "mcp", "--socket", "/nowhere"], stdin=subprocess.PIPE, stdout=theirs) as server:
        theirs.close()
        ours.close()
        try:
            assert server.wait(timeout=10) == 0
        finally:
            server.kill()


def test_a_client_that_is_always_behind(monkeypatch):
    """What it has read is not kept: the memory is that of what it has not read yet."""
    # A sanitizer keeps what is freed for a while.
    monkeypatch.setenv("ASAN_OPTIONS", os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1")
    with Client("/nowhere") as c:
        def peak():
            return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{c.process.pid}/status").read_text())[1])

        # The parameter keeps the requests long, so that few of them arrive at once.
        asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"x": "x" * 2000}}).encode() + b"\n"
        before, total = peak(), 60 << 20
        requests = total // 6000

        def feed():
            with contextlib.suppress(BrokenPipeError):
                c.write(asked * requests)

        feeder = threading.Thread(target=feed)
        feeder.start()
        os.set_blocking(c.fd, True)
        time.sleep(1)
        got = 0
        while got < total:
            got += len(os.read(c.fd, 20000))
        after = peak()
        c.process.kill()
        c.process.wait()
        feeder.join()
        assert after - before < 24 << 10, (before, after)


# ------------------------------------------------------------------ tools ------------------------

class Detective:
    """Finds the cause of what is wrong with a process, from what the tools say and nothing else."""

    def __init__(self, client):
        self.client, self.calls, self.why = client, 0, ""

    def ask(self, name, **arguments):
        self.calls += 1
        return data_of(self.client.tool(name, **arguments))

    def find(self, command):
        row, = [row.split() for row in self.ask("list").splitlines()[1:] if row.split()[2] == command]
        pid = int(row[0])
        page = self.ask("diff", pid=pid, **LOOK)
        headline = page[:page.index("\n" + command + " ")].splitlines()
        found = {line.split()[0]: line for line in headline if line.split()[0] in ("FAULT", "HUNG")}
        if found or any(line.startswith("SLOW") for line in headline):
            self.why = self.ask("why", pid=pid, again_ms=1000, **LOOK)
            self.ask("stacks", pid=pid)
        return found, headline


def start_scene(s, vendor, name):
    device = ["--kfd", s.mount / "kfd"] if vendor == "amd" else []
    env = {} if vendor == "amd" else {"LD_LIBRARY_PATH": str(s.libraries)}
    s.app = s.start("app", [BIN / PROGRAM[vendor], *device, "--scene", name], env=env)
    s.app.wait_line()


def scene_of(vendor):
    return Scene(app=None, gpus="gfx90a,gfx90a") if vendor == "amd" else CudaScene(app=None)


SCENES = {"fault-and-hang": {"FAULT", "HUNG"}, "hang": {"HUNG"}, "fault": {"FAULT"}, "progress": set()}
PROGRAM = {"amd": "gpu-agent-simapp", "cuda": "gpu-agent-cuda-simapp"}


@pytest.mark.parametrize("vendor", PROGRAM)
@pytest.mark.parametrize("name", SCENES)
def test_the_cause_of_a_scene_is_found(vendor, name):
    """At most six calls, and 20 kB with the list of tools and all else that the server says."""
    with scene_of(vendor) as s:
        start_scene(s, vendor, name)
        with Client(s.socket, STOP) as c:
            c.request("tools/list")
            detective = Detective(c)
            found, headline = detective.find("train")
            assert set(found) == SCENES[name], headline
            if "FAULT" in found:
                assert "embedding" in found["FAULT"] and re.search(r"train\.(hip|cu):17\b", found["FAULT"]), found
            if "HUNG" in found:
                assert "all_reduce" in found["HUNG"] and re.search(r"train\.(hip|cu):37\b", found["HUNG"]), found
            if not found:
                assert headline[0].startswith("Nothing is wrong"), headline
            assert detective.calls <= 6 and c.received <= 20480, (detective.calls, c.received)


# In which something waits: what a second look says of it.
WAITS = {
    ("amd", "absent-from-grid"): r"CAUSE  wave 0 of workgroup \(39,0,0\) of reduce, .* \(grid\.hip:48\), has stopped \(memory_violation\)",
    ("amd", "behind-a-fault"): r"CAUSE  wave 3 of workgroup \(0,0,0\) of gemm, .* \(train\.hip:61\), has stopped \(memory_violation\)",
    ("amd", "crossed-collectives"): r"RANK   0 of a communicator of 8: in SendRecv, .* waits for ranks 6, 7 \(not seen\)",
    ("amd", "fault-at-barrier"): r"CAUSE  wave 3 of workgroup \(0,0,0\) of gemm, .* \(train\.hip:61\), has stopped \(memory_violation\)",
    ("amd", "late-at-barrier"): r"CAUSE  wave 3 of workgroup \(0,0,0\) of gemm, .* \(train\.hip:72\), is the same in both samples",
    ("amd", "no-answer"): r"CAUSE  the host, which has not answered 3 calls \(printf\) by check \(.*\), and has no thread ",
    ("amd", "no-answer-phases"): r"CAUSE  the host, which has not answered 3 calls \(printf\) by check \(.*\), and has no thread ",
    ("amd", "no-packet"): r"CAUSE  the host, whose thread \d+ \(Hostcall Listen\) has not answered 4 calls \(memory\) by check ",
    ("amd", "no-signal"): r"CAUSE  the host, a copy engine or another process: no packet in the queues of this process gives signal 0x",
    ("amd", "other-collective"): r"RANK   2 of a communicator of 4: in AllGather \(ring, simple\), operation 0x28c ",
    ("amd", "own-stream"): r"CAUSE  a circle: packet 1 of queue 0 \(gemm\) waits for signal .* waits for packet 0 of queue 0 ",
    ("amd", "two-streams"): r"CAUSE  a circle: packet 1 of queue 0 \(gemm\) waits for .* packet 1 of queue 1 \(embedding\), which waits ",
    ("cuda", "crossed-barriers"): r"MAYBE  a circle: warps 4-7 of block \(0,0,0\) of exchange, .* wait for warps 0-3 ",
    ("cuda", "crossed-collectives"): r"RANK   0 of a communicator of 4: in AllReduce \(.* waits for rank 3 \(not seen\)",
    ("cuda", "crossed-pairs"): r"RANK   0 of a communicator of 8: in SendRecv, .* waits for ranks 6, 7 \(not seen\)",
    ("cuda", "exited-at-barrier"): r"CAUSE  block \(3,0,0\) of sparse_prefill: .* needs 384 threads, and only 128 are left: warps 0-7 ",
    ("cuda", "exited-before-grid"): r"CAUSE  1 of 8 blocks of reduce is not there: \(5,0,0\); ended without coming, or never started",
    ("cuda", "fault-at-barrier"): r"CAUSE  warp 3 of block \(2,0,0\) of gemm, .* \(train\.cu:62\), has stopped \(memory_violation\)",
    ("cuda", "fault-before-cluster"): r"CAUSE  warp 5 of block \(5,0,0\) of halo, .* \(clusters\.cu:12\), has stopped \(memory_violation\)",
    ("cuda", "late-leaf"): r"RANK   1 of a communicator of 4: in AllReduce \(.* waits for rank 3 \(not seen\)",
    ("cuda", "late-rank"): r"RANK   2 of a communicator of 8: in AllReduce \(.* waits for rank 1 \(not seen\)",
    ("cuda", "retired-consumers"): r"CAUSE  block \(0,0,0\) of grouped_gemm and 23 more: warp 0 waits on mbarrier 0x700 \(phase 0, 1 of 1 ",
    ("cuda", "two-places"): r"MAYBE  a circle: lanes 1-31 of warp 0 of block \(0,0,0\) of reduce, .* wait for lane 0 ",
    ("cuda", "unset-flag"): r"WAITS  lane 0 of warp 0 of block .* of forward, .* polls the word at 0x7f5c80000000 \(value 0x6\) until",
}


@pytest.mark.parametrize(("vendor", "name"), WAITS)
def test_the_cause_of_a_wait_is_found(vendor, name):
    """As above, by the same calls; and there is no scene that no client has looked at."""
    scenes = {path.stem for path in (ROOT / "sim/scenes" / vendor).glob("*.scene")}
    assert scenes == {*SCENES} | {named for of, named in WAITS if of == vendor}
    with scene_of(vendor) as s:
        start_scene(s, vendor, name)
        with Client(s.socket, STOP) as c:
            c.request("tools/list")
            detective = Detective(c)
            detective.find(pathlib.Path(f"/proc/{s.app.pid}/comm").read_text().strip())
            assert re.search("^" + WAITS[vendor, name], detective.why, re.M), detective.why
            assert detective.calls <= 6 and c.received <= 20480, (detective.calls, c.received)


@pytest.fixture(name="scene", scope="module")
def _scene():
    with scene_of("amd") as s:
        start_scene(s, "amd", "fault-and-hang")
        yield s


def test_every_tool_answers(scene):
    pid = scene.app.pid
    with Client(scene.socket, STOP) as c:
        first, second = (c.tool("snapshot", pid=pid, **LOOK) for _ in range(2))
        names = [facts_of(r)["snapshot"] for r in (first, second)]
        assert "wave" in data_of(first) and text_of(first).endswith(f"snapshot {names[0]}"), first
        assert "apart" in data_of(c.tool("diff", before=names[0], after=names[1]))
        assert "pc" in data_of(c.tool("wave", pid=pid, wave=1, show="registers", **LOOK))
        assert "pass" in data_of(c.tool("doctor", pid=pid))
        assert f"pid {pid}" in data_of(c.tool("stacks", pid=pid))
        assert data_of(c.tool("why", pid=pid, **LOOK)).strip()
        assert str(pid) in data_of(c.tool("job_report", pids=[pid], deadline_ms=50000, **LOOK))
        assert "(nothing)" in data_of(c.tool("list", records=True)) or "record" in data_of(c.tool("list", records=True))
        assert scene.target_state()["suspended_queues"] == 0


def test_a_snapshot_is_a_resource(scene):
    with Client(scene.socket, STOP) as c:
        assert [r["name"] for r in c.request("resources/list")["resources"] if r["name"] != "guide"] == []
        name = facts_of(c.tool("snapshot", pid=scene.app.pid, **LOOK))["snapshot"]
        resource = c.request("resources/list")["resources"][-1]
        assert resource["name"] == name and resource["uri"] == f"gpu-agent://process/{scene.app.pid}/snapshot/{name}", resource
        assert "{pid}" in c.request("resources/templates/list")["resourceTemplates"][0]["uriTemplate"]
        uri, text = resource["uri"], ""
        while uri:
            result = c.request("resources/read", uri=uri)
            text += result["contents"][0]["text"]
            uri = result["_meta"]["gpu-agent/answer"].get("next")
        assert json.loads(text)["schema"] == "gpu-agent.snapshot/1" and len(text) == resource["size"]
        for wrong in (f"gpu-agent://process/1/snapshot/{name}", resource["uri"] + "?offset=999999999", resource["uri"] + "x"):
            assert c.error("resources/read", uri=wrong)["code"] == NO_RESOURCE, wrong


def test_long_answers_have_pages(scene):
    pid = scene.app.pid
    with Client(scene.socket, STOP) as c:
        arguments = {"pid": pid, "wave": "1", "show": "registers", "vectors": True, **LOOK}
        whole = data_of(c.tool("wave", max_bytes=65536, **arguments))
        assert len(whole) > 4096
        result = c.tool("wave", max_bytes=1024, **arguments)
        text, pages = data_of(result), 1
        while facts_of(result)["truncated"]:
            assert len(data_of(result)) <= 1024 and facts_of(result)["next"] in text_of(result), result
            last, result = result, c.tool("wave", cursor=facts_of(result)["next"], max_bytes=1024)
            text, pages = text + data_of(result), pages + 1
        assert len(text) == len(whole) and pages > 4, (len(text), len(whole))
        # A cursor is of one tool's answer, and of nothing else.
        assert "call again without cursor" in c.refused("why", cursor=facts_of(last)["next"])
        for wrong in ("c99:0", "s1:0", "c1", "c1:99999999", "\u00e9:1"):
            assert "cursor" in c.refused("wave", cursor=wrong), wrong


def test_failures_say_what_to_do(scene):
    with Client(scene.socket, STOP) as c:
        assert "next: call list" in c.refused("doctor", pid=4194304) or "next:" in c.refused("doctor", pid=4194304)
        assert c.refused("snapshot", pid=os.getpid(), **LOOK).count("next: ") == 1
        assert "there is no snapshot" in c.refused("diff", before="s7", after="s8")
        assert 'unknown argument "Pid"; there are pid' in c.refused("doctor", Pid=1)
        assert "no record matches" in c.refused("snapshot", record="--help")
    with Client("/nowhere") as c:
        result = c.request("tools/call", name="list", arguments={})
        assert result["structuredContent"]["error"]["exit"] == 9 and "gpu-agentd --user" in text_of(result), result


def test_doctor_answers_for_who_cannot_be_debugged(scene):
    """That is what it is for: its exit status is a verdict, and no failure."""
    with Client(scene.socket, STOP) as c:
        result = c.tool("doctor", pid=os.getpid())
        assert "fail" in data_of(result) and facts_of(result)["complete"] and facts_of(result)["exit"] == 5, result
        assert text_of(result).endswith("verdict: the process cannot be debugged"), result


def test_a_verdict_does_not_hide_what_is_missing():
    """The exit status is that of something stuck; a word of memory could not be read."""
    more = "dispatch 1 gemm 768 256; waves 1 barrier 12 gemm+0x40 group=4 late-loop=0 s2=0x1000 s3=0 s4=7 v0=0"
    script = block("gfx90a", "last=memory").replace("queues 1", "queues 2").replace("; spin", f"; {more}; spin")
    with WaitScene("gfx90a", script, polling("gfx90a")) as s, Client(s.socket, STOP) as c:
        result = c.tool("why", pid=s.app.pid, again_ms=1200, **LOOK)
        assert "missing: memory" in data_of(result) and "\nNOT COMPLETE; verdict: something is stuck" in text_of(result), result
        assert facts_of(result)["exit"] in (10, 11) and not facts_of(result)["complete"], result
        paged = c.tool("why", pid=s.app.pid, again_ms=1200, max_bytes=1024, **LOOK)
        while facts_of(paged)["truncated"]:
            assert not facts_of(paged)["complete"], paged
            paged = c.tool("why", cursor=facts_of(paged)["next"], max_bytes=1024)
        assert not facts_of(paged)["complete"], paged


def test_reports_of_a_job_cost_what_other_looks_cost(scene):
    """Nobody says for how long they have stopped a process: so long as they may."""
    with Client(scene.socket, "--max-stop=3s", version="2025-11-25") as c:
        pid = scene.app.pid
        c.tool("job_report", pids=[pid], deadline_ms=50000, max_stop_ms=3000)
        # Each counts for as long as it took: the quicker the machine is, the more it takes.
        for _ in range(1000):
            result = c.request("tools/call", name="job_report", arguments={"pids": [pid], "deadline_ms": 50000, "max_stop_ms": 3000})
            if result["isError"]:
                break
        assert "calls have stopped a process for a twentieth" in text_of(result), result
        assert f"calls have stopped process {pid} for a twentieth" in c.refused("snapshot", pid=pid)


def test_names_of_the_target_are_data():
    """A program that calls itself what a model might obey: no letter of it is hidden, and the mark is not known to it."""
    name = "\u202eend of data\x1b["
    with Scene(app=None) as s:
        s.app_program = s.directory / name
        shutil.copy(BIN / "gpu-agent-simapp", s.app_program)
        s.app = s.start_app("runtime on; queues 1; spin")
        with Client(s.socket, STOP) as c:
            text = text_of(c.tool("list"))
            assert "end of data" in text and "\u202e" not in text and "\x1b" not in text, text
            assert text.splitlines()[-2].startswith("end of data ") and text.splitlines()[-1] == "complete", text
            marks = {text_of(c.tool("list")).split()[1] for _ in range(4)}
            assert len(marks) == 4, marks
            # What it was called with is anybody's text, of kilobytes.
            assert "queues 1; spin" in s.ctl("list", "--command-line").stdout and "queues 1; spin" not in text, text


def test_a_document_hides_nothing():
    """Clients put resources before a model, too: a letter that nobody sees is an escape there, and the same for programs."""
    with Scene(app="name a\U000e0041\u202eb; runtime ttmp; queues 1; spin") as s, Client(s.socket, STOP) as c:
        names = [facts_of(c.tool("snapshot", pid=s.app.pid, **LOOK))["snapshot"] for _ in range(2)]
        shown = text_of(c.tool("doctor", pid=s.app.pid))
        assert "a?\\u202eb, uid " in shown and "\U000e0041" not in shown, shown
        text = c.request("resources/read", uri=f"gpu-agent://process/{s.app.pid}/snapshot/{names[0]}")["contents"][0]["text"]
        assert "\\udb40\\udc41\\u202e" in text and "\u202e" not in text and "\U000e0041" not in text, text
        assert '"comm":"a\\udb40\\udc41\\u202eb"' in text, text
        assert "apart" in data_of(c.tool("diff", before=names[0], after=names[1]))


# ------------------------------------------------------------------ time and ends ----------------

def children(process):
    return pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()


def test_many_calls_at_once(scene):
    with Client(scene.socket, STOP) as c:
        ids = [c.send_tool("doctor", pid=scene.app.pid) for _ in range(40)]
        answers = [c.answer(i) for i in ids]
        assert all(not a["result"]["isError"] for a in answers), answers
        assert not children(c.process)


def test_more_calls_than_are_kept(scene):
    """What is too much is refused, and everything is answered."""
    with Client(scene.socket, STOP) as c:
        ids = [c.send_tool("doctor", pid=scene.app.pid) for _ in range(200)]
        results = [c.answer(i)["result"] for i in ids]
        refused = [r for r in results if r["isError"]]
        assert 0 < len(refused) <= 80 and all("too many calls" in text_of(r) for r in refused), len(refused)


def test_a_cancelled_call_is_not_answered_and_holds_nothing(scene):
    pid = scene.app.pid
    with Client(scene.socket, STOP) as c:
        call = c.send_tool("diff", pid=pid, again_ms=10000, **LOOK)
        wait_until(lambda: scene.target_state()["enabled"], "the session is there")
        c.write(json.dumps({"jsonrpc": "2.0", "id": call, "method": "ping"}).encode() + b"\n")
        assert "not answered yet" in c.read()["error"]["message"]
        c.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call}}).encode() + b"\n")
        wait_until(lambda: not children(c.process), "its program has ended")
        assert c.request("ping") == {} and not c.messages
        wait_until(lambda: not scene.target_state()["enabled"], "the process is let go")
        assert scene.target_state()["suspended_queues"] == 0


def test_progress_is_told(scene):
    with Client(scene.socket, STOP) as c:
        call = c.send("tools/call", name="diff", arguments={"pid": scene.app.pid, "again_ms": 2500, **LOOK}, _meta={"progressToken": "p"})
        assert not c.answer(call)["result"]["isError"]
        told = [m["params"] for m in c.messages]
        assert told and all(m["method"] == "notifications/progress" for m in c.messages), c.messages
        assert all(t["progressToken"] == "p" for t in told) and [t["progress"] for t in told] == sorted({t["progress"] for t in told}), told


def test_an_agent_that_does_not_answer():
    with Scene(app="runtime on; queues 1; spin") as s:
        with Client(s.socket, STOP, "--timeout=3s") as c:
            assert not c.request("tools/call", name="list", arguments={})["isError"]
            os.kill(s.front_pid(), signal.SIGSTOP)
            try:
                result = c.request("tools/call", name="list", arguments={})
            finally:
                os.kill(s.front_pid(), signal.SIGCONT)
            assert result["isError"] and result["structuredContent"]["error"]["exit"] in (7, 9), result
            wait_until(lambda: not c.request("tools/call", name="list", arguments={})["isError"], "it answers again")


@pytest.mark.parametrize("end", ["eof", "kill", "term"])
def test_the_end_of_the_server_resumes(scene, end):
    pid = scene.app.pid
    with Client(scene.socket, STOP, "--allow-control") as c:
        assert '"suspended":4' in data_of(c.tool("suspend", pid=pid, lease_ms=60000))
        assert scene.target_state()["suspended_queues"] == 4
        running = c.send_tool("diff", pid=pid, again_ms=10000, **LOOK)
        assert running
        begin = time.monotonic()
        if end == "eof":
            assert c.end() == 0
        else:
            c.process.send_signal(signal.SIGKILL if end == "kill" else signal.SIGTERM)
            c.process.wait(timeout=10)
        assert time.monotonic() - begin < 10
        wait_until(lambda: scene.target_state()["suspended_queues"] == 0, "its queues run")
        wait_until(lambda: not scene.target_state()["enabled"], "the process is let go")


def test_resume_lets_go_of_what_suspend_holds(scene):
    pid = scene.app.pid
    with Client(scene.socket, STOP, "--allow-control") as c:
        c.tool("suspend", pid=pid, lease_ms=60000)
        assert "resumed" in data_of(c.tool("resume", pid=pid))
        assert scene.target_state()["suspended_queues"] == 0
        wait_until(lambda: not children(c.process), "its program has ended")
        c.request("tools/call", name="resume", arguments={"pid": pid})
        # A lease ends by itself.
        c.tool("suspend", pid=pid, lease_ms=300)
        wait_until(lambda: scene.target_state()["suspended_queues"] == 0, "the lease is over")
        wait_until(lambda: not children(c.process), "its program has ended")


def test_a_dump_is_written_where_the_server_says(scene):
    place = scene.directory / "dumps"
    place.mkdir()
    with Client(scene.socket, STOP, "--allow-control", f"--directory={place}") as c:
        c.tool("dump", pid=scene.app.pid)
        file, = place.iterdir()
        assert file.name.startswith(f"gpu-{scene.app.pid}-") and file.read_bytes()[:4] == b"\x7fELF"


def test_the_guide_is_what_is_installed():
    """The skill that is shipped names tools that there are, and fits what clients read of its beginning."""
    text = (ROOT / "docs/skills/gpu-hang/SKILL.md").read_text()
    head, rest = text.split("---\n")[1:3]
    description = re.search(r"^description: (.*)$", head, re.M)[1]
    assert re.search(r"^name: gpu-hang$", head, re.M) and 40 < len(description) <= 1024 and len(rest.splitlines()) <= 150
    verbs = set(re.findall(r"`gpu-agentctl ([a-z]+)", rest))
    assert verbs and verbs <= {"list", "doctor", "why", "snapshot", "stacks", "diff", "job", "registers", "variables", "cores", "mcp",
                               "memory", "disassemble", "report"}, verbs


def test_commands_of_the_guide_run(scene):
    """As they stand, with a process of the simulator: each answers, or says what a verdict is."""
    commands = re.findall(r"`gpu-agentctl ([a-z]+ [^`]*|list)`", (ROOT / "docs/skills/gpu-hang/SKILL.md").read_text())
    assert len(commands) > 10, commands
    said = ""
    for command in commands:
        words = {"PID": str(scene.app.pid), "PID,PID": str(scene.app.pid), "ROW": "1", "SIZE": "16",
                 "hang.json": str(scene.directory / "x.json"), "hang.html": str(scene.directory / "x.html"),
                 "ADDRESS": (re.findall(r"^=> (0x[0-9a-f]+)", said, re.M) or ["?"])[0]}
        run = scene.ctl(*(words.get(word, word) for word in command.split()))
        said += run.stdout
        # There are no records; what the threads of a running program do may be incomplete.
        assert run.returncode in ((3,) if command == "cores list" else (0, 8, 10, 11)), (command, run.returncode, run.stderr)
    assert "embedding" in said and "<html" in (scene.directory / "x.html").read_text()
