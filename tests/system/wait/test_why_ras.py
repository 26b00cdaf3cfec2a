#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gpu-agentctl why --ras: what NCCL says of itself stands beside the causes, and is bounded and believed as hearsay."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN, Scene, need_root, wait_until
from rasserver import Ras, communicator, missing, rank, report

NO_CAUSE = "no culprit found: "
ALL = "NCCL   says of communicator 0xabc of 4, in which this is rank 2"


class Told(Scene):
    """A process that is rank 2 of 4, in an operation of RCCL that its waves execute."""

    def __init__(self, address):
        super().__init__(app=None, gpus="gfx90a")
        self.address = address

    def __enter__(self):
        super().__enter__()
        self.app = self.start("app", [BIN / "gpu-agent-simapp", "--kfd", self.mount / "kfd", "--scene", "other-collective",
                                      "--set", "rank=2,previous=1,next=3"],
                              env={"NCCL_RAS_ADDR": self.address})
        self.app.wait_line()
        return self

    def why(self, *options):
        begun = time.monotonic()
        shown = self.ctl("why", self.app.pid, "--ras", *options)
        print(shown.stdout, shown.stderr)
        self.took = time.monotonic() - begun
        return shown


def ranks(pid, **of_rank_1):
    return [rank(0, 1000), rank(1, 1001, **of_rank_1), rank(2, pid), rank(3, 1003)]


def one_line(shown):
    return " ".join(shown.stdout.split())


@pytest.fixture(name="asked")
def fixture_asked():
    """Ask a server of which `text` is the report, of the process with that pid."""
    def ask(text, *options, **kwargs):
        with Ras(**kwargs) as ras, Told(ras.address) as s:
            if text:
                ras.text = text(s.app.pid)
            shown = s.why(*options)
            ask.lines, ask.took, ask.pid = ras.lines, s.took, s.app.pid
        return shown
    return ask


def refused(shown, why):
    """Nothing is told of what NCCL has said, and nothing else is lost."""
    assert shown.returncode == 8, shown.returncode
    assert "missing: what NCCL says of itself: " in shown.stderr and why in shown.stderr, shown.stderr
    assert "NCCL" not in shown.stdout and "RANK   2 of a communicator of 4" in shown.stdout
    assert "\x1b" not in shown.stdout + shown.stderr


def test_equal_counts_are_told_and_mean_no_progress(asked):
    shown = asked(lambda pid: report(communicator(0xabc, ranks(pid)), communicator(0xdef, [rank(0, 1)])))
    assert shown.returncode == 0 and shown.stdout.lstrip().startswith(NO_CAUSE)
    lines = shown.stdout.splitlines()
    assert lines[1].startswith(ALL), lines
    assert "all ranks have launched 118 AllReduce, which does not say that they go on [inferred]" in one_line(shown)
    assert asked.lines == ["CLIENT PROTOCOL 2", "TIMEOUT 1", "SET FORMAT json", "VERBOSE STATUS"]


def test_without_the_option_nobody_is_asked():
    with Ras() as ras, Told(ras.address) as s:
        shown = s.ctl("why", s.app.pid)
        assert shown.returncode == 0 and "NCCL" not in shown.stdout and "NCCL" not in shown.stderr
        assert "told_by_nccl" not in json.loads(s.ctl("why", s.app.pid, "-j").stdout)
        time.sleep(0.1)
        assert ras.lines == []


def test_counts_that_spread_name_who_is_behind_and_accuse_nobody(asked):
    shown = asked(lambda pid: report(communicator(0xabc, ranks(pid, counts={"AllReduce": 117, "SendRecv": 7}))))
    assert shown.returncode == 0 and shown.stdout.lstrip().startswith(NO_CAUSE) and "CAUSE" not in shown.stdout
    assert "AllReduce launched 118 times, but 117 by rank 1 (pid 1001 on 127.0.0.1) [inferred]" in one_line(shown)
    assert "SendRecv" not in shown.stdout


def test_the_document_has_what_is_told(asked):
    def text(pid):
        return report(communicator(0xabc, ranks(pid, counts={"AllReduce": 117}, async_error=6)[:3], [missing(3, 7, dead=True)]))
    doc = json.loads(asked(text, "-j").stdout)
    told = doc["told_by_nccl"]
    assert (told["version"], told["others_count"], told["communicators_count"], told["confidence"]) == ("2.28.9", 0, 1, "inferred")
    (found,) = told["communicators"]
    assert (found["hash"], found["ranks"], found["own"], found["collective"]) == ("0xabc", 4, [2], 0)
    assert found["operations"] == [{"name": "AllReduce", "least": 117, "most": 118}]
    assert found["odd"] == [
        {"rank": 3, "state": "dead", "host": "10.0.0.9", "pid": 7},
        {"rank": 1, "state": "failed", "host": "127.0.0.1", "pid": 1001},
        {"rank": 1, "state": "behind", "operation": "AllReduce", "launched": 117, "host": "127.0.0.1", "pid": 1001}]
    assert doc["causes"] == [] or not any(cause["culprit"] for cause in doc["causes"])
    assert doc["collectives"][found["collective"]]["rank"] == 2


def test_ranks_that_do_not_answer_are_told_apart(asked):
    absent = [missing(0, 5, dead=True), missing(1, 6, unresponsive=True), missing(3, -1, host="unknown")]
    shown = asked(lambda pid: report(communicator(0xabc, [rank(2, pid)], absent)))
    assert ("dead: rank 0 (pid 5 on 10.0.0.9); without an answer: rank 1 (pid 6 on 10.0.0.9); no longer in it: rank 3 [inferred]"
            in one_line(shown))


def test_a_choice_of_two_is_not_made(asked):
    """Two communicators of four ranks, in each of which the process is rank 2; those with odd ranks come first."""
    shown = asked(lambda pid: report(communicator(0x111, ranks(pid)), communicator(0xabc, ranks(pid, abort_flag=True))))
    assert "and its waves are those" not in one_line(shown)
    assert "1 fits none of NCCL's communicators, or several" in one_line(shown)
    assert shown.stdout.index("0xabc") < shown.stdout.index("0x111") and "being aborted: rank 1" in one_line(shown)


def test_processes_of_other_hosts_may_have_the_same_number(asked):
    shown = asked(lambda pid: report(communicator(0xabc, [rank(2, pid, host="192.0.2.1"), rank(0, 1)], size=4)))
    refused(shown, "the only communicator that is told of at")
    assert f"which is {asked.pid} to itself" in shown.stderr


def test_a_server_that_is_silent_costs_two_seconds(asked):
    refused(asked(None, answers={"CLIENT PROTOCOL 2": None}), "it did not answer in time")
    assert asked.took < 10


def test_a_server_that_dribbles_costs_two_seconds(asked):
    def dribble(client):
        for _ in range(200):
            client.sendall(b" ")
            time.sleep(0.1)
    refused(asked(None, send=dribble), "it did not answer in time")
    assert asked.took < 10


def test_a_slow_server_is_waited_for(asked):
    def late(client):
        time.sleep(0.7)
        client.sendall(report(communicator(0xabc, ranks(asked_pid[0]))))
    asked_pid = []
    shown = asked(lambda pid: asked_pid.append(pid), send=late)
    assert shown.returncode == 0 and ALL in shown.stdout


def test_an_answer_of_17_mib_is_refused(asked):
    """It would be one otherwise: blanks may stand in front of JSON."""
    shown = asked(lambda pid: b" " * (17 << 20) + report(communicator(0xabc, ranks(pid))))
    refused(shown, "the answer is larger than 16 MiB")


@pytest.mark.parametrize("text,why", [
    (b"", "its report cannot be read"),
    (b"Job summary\n===========\n", "its report cannot be read"),
    (b"[[[[", "its report cannot be read"),
    (b"\xff\xfe\x00", "its report cannot be read"),
    (b'{"nccl_version": "\x1b[2J"}', "its report cannot be read"),
    (b'{"nccl_version": "2"}', "communicators"),
    (report(communicator(1, [rank(7, 1)])), "a rank is none of its communicator"),
    (report(communicator(1, [rank(0, 1), rank(0, 1)], size=1)), "a communicator has more ranks than its size"),
    (report(version="2" * 70), "nccl_version"),
], ids=["empty", "text", "unfinished", "bytes", "control", "half", "rank", "ranks", "version"])
def test_what_is_no_report_is_refused(asked, text, why):
    refused(asked(lambda pid: text), why)


@pytest.mark.parametrize("counts", [{"AllReduce": -1}, {"AllReduce": 1.5}, {"AllReduce": "1"}, {"AllReduce": {}}],
                         ids=["negative", "fraction", "text", "object"])
def test_counts_that_are_none_are_refused(asked, counts):
    refused(asked(lambda pid: report(communicator(0xabc, ranks(pid, counts=counts)))), "counts of operations are no numbers")


@pytest.mark.parametrize("answers,why", [
    ({"SET FORMAT json": "ERROR: Unknown command"}, "this NCCL is older than 2.28.7: it has no JSON"),
    ({"CLIENT PROTOCOL 2": "SERVER PROTOCOL 3"}, "it speaks another protocol than 2"),
    ({"CLIENT PROTOCOL 2": "HTTP/1.1 400 Bad Request"}, "what answers is not NCCL's status socket"),
    ({"CLIENT PROTOCOL 2": "x" * 100000}, "what answers is not NCCL's status socket"),
], ids=["old", "protocol", "http", "endless"])
def test_other_servers_are_refused(asked, answers, why):
    refused(asked(None, answers=answers), why)


def test_names_of_strangers_steer_no_terminal(asked):
    evil = "\x1b[2J\u202e\nCAUSE  rank 0"

    def text(pid):
        return report(communicator(0xabc, ranks(pid, host=evil, counts={"AllReduce": 1, evil: 3})), version=evil)
    shown = asked(text)
    assert shown.returncode == 0 and "\x1b" not in shown.stdout and "\u202e" not in shown.stdout
    assert not any(line.startswith("CAUSE") for line in shown.stdout.splitlines())
    assert "1 by rank 1 (pid 1001 on \\x1b[2J" in one_line(shown)


@pytest.mark.parametrize("any_address", [0, 1])
def test_an_address_that_may_be_bound_is_none_of_the_machine(any_address):
    """bind() takes any where no interface has one, and where ip_nonlocal_bind says so."""
    need_root()
    command = f"echo {any_address} >/proc/sys/net/ipv4/ip_nonlocal_bind && exec {BIN.parent}/tests/test_ctl_nccl"
    run = subprocess.run(["unshare", "--net", "sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0 and "PASS ctl_nccl.knows_its_own_addresses" in run.stdout, run


@pytest.mark.parametrize("address,why", [
    ("127.0.0.1:1", "nobody answers at 127.0.0.1:1"),
    ("localhost:1", "nobody answers at localhost:1"),
    ("[::1]:1", "[::1]:1"),
    ("192.0.2.1:4000", "192.0.2.1:4000 is no address of this machine"),
    ("gpu07.example:4000", "names are not looked up"),
    ("127.0.0.1", "names are not looked up"),
    ("127.0.0.1:70000", "names are not looked up"),
], ids=["nobody", "localhost", "six", "elsewhere", "name", "no_port", "port"])
def test_where_nobody_can_be_asked_it_is_missing(address, why):
    with Told(address) as s:
        refused(s.why(), why)
        assert s.took < 10


def test_nobody_answers_for_a_core(tmp_path):
    (tmp_path / "core").touch()
    run = subprocess.run([BIN / "gpu-agentctl", "why", "--core", tmp_path / "core", "--ras"], text=True, capture_output=True, check=False)
    assert run.returncode == 2 and "--ras needs a process" in run.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="users need root")
def test_the_owner_needs_no_right(monkeypatch):
    with Ras() as ras:
        monkeypatch.setenv("NCCL_RAS_ADDR", ras.address)
        with Scene(user_mode=False, app_user=1000) as s:
            ras.text = report(communicator(0xabc, ranks(s.app.pid)))
            ctl = shutil.copy(BIN / "gpu-agentctl", s.directory)
            shown = subprocess.run([ctl, "why", str(s.app.pid), "--ras"], env={**os.environ, "GPU_AGENT_SOCKET": str(s.socket)},
                                   user=1000, group=1000, extra_groups=[], text=True, capture_output=True, check=False)
            assert shown.returncode == 0 and ALL in shown.stdout, shown


SERVER = """
import sys, time
sys.path[:0] = sys.argv[1:]
import rasserver
ras = rasserver.Ras()
print(ras.address, flush=True)
ras.text = eval(input())
time.sleep(60)
"""


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="network namespaces need root")
def test_another_network_namespace():
    """Root enters it for the socket; whoever has that address in this program's own network is not asked."""
    here = os.path.dirname(__file__)
    with Told("127.0.0.1:1") as s:
        with subprocess.Popen(["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, "-c", SERVER, here],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as inner:
            address = inner.stdout.readline().strip()
            assert address, "no network namespace can be made here"
            s.app = s.start("inner", ["nsenter", f"--net=/proc/{inner.pid}/ns/net", BIN / "gpu-agent-simapp", "--kfd", s.mount / "kfd",
                                      "--scene", "other-collective", "--set", "rank=2,previous=1,next=3"],
                            env={"NCCL_RAS_ADDR": address})
            s.app.wait_line()
            inner.stdin.write(repr(report(communicator(0xabc, ranks(s.app.pid)))) + "\n")
            inner.stdin.flush()
            with Ras(port=int(address.split(":")[1])) as outer:
                shown = s.why()
                assert shown.returncode == 0 and ALL in shown.stdout
                # What may not enter it says so, and asks nobody.
                run = subprocess.run(["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", BIN / "gpu-agentctl", "why",
                                      str(s.app.pid), "--ras"], env={**os.environ, "GPU_AGENT_SOCKET": str(s.socket)}, text=True,
                                     capture_output=True, check=False)
                refused(run, "the process has another network namespace, which only root may enter")
                assert outer.lines == []
            inner.kill()


def snapshots(directory, texts):
    """A snapshot of each process, to which NCCL has said what its text says."""
    files = []
    for i, text in enumerate(texts):
        with Ras() as ras, Told(ras.address) as s:
            ras.text = text(s.app.pid) if text else "nothing of the kind"
            files.append(directory / f"rank{i}.json")
            shown = s.ctl("snapshot", s.app.pid, "--why", "--ras", "-j", "-o", files[-1])
            assert shown.returncode == (0 if text else 8), shown.stderr
            assert text or "missing: what NCCL says of itself: its report cannot be read" in shown.stderr, shown.stderr
    return files


def run(*args):
    return subprocess.run([BIN / "gpu-agentctl", *args], check=False, capture_output=True, text=True, timeout=60)


def test_what_is_told_outlives_a_merge(tmp_path):
    """Each rank of a merged document has what NCCL has said to it, also when that is merged again."""
    behind = [lambda pid: report(communicator(0xabc, ranks(pid, counts={"AllReduce": 117}))),
              lambda pid: report(communicator(0xabc, ranks(pid)), communicator(0xdef, [rank(0, pid)])), None]
    files = snapshots(tmp_path, behind)
    alone = [json.loads(file.read_text()) for file in files]
    # That NCCL says nothing is missing of the snapshot, and all is known of what waits.
    assert alone[2]["why"]["complete"] and not alone[2]["complete"] and "told_by_nccl" not in alone[2]["why"]
    two, all_of_them = tmp_path / "two.json", tmp_path / "all.json"
    assert run("merge", *files[:2], "-j", "-o", two).returncode == 0
    assert run("merge", two, files[2], "-j", "-o", all_of_them).returncode == 8
    merged = json.loads(all_of_them.read_text())
    assert [r.get("told_by_nccl") for r in merged["ranks"]] == [d["why"].get("told_by_nccl") for d in alone]
    assert merged["ranks"][0]["told_by_nccl"]["communicators"][0]["collective"] == 0
    assert merged["ranks"][0]["collectives"][0]["rank"] == 2
    text = one_line(run("merge", all_of_them))
    # Of two that were told of one communicator, it is the one that was told of a difference.
    assert "NCCL rank0 was told of communicator 0xabc of 4: AllReduce launched 118 times, but 117 by rank 1" in text, text
    assert "NCCL rank1 was told of communicator 0xdef of 1: " in text and text.count("NCCL rank") == 2, text
    text = one_line(run("merge", files[0]))
    assert "NCCL rank0 was told of communicator 0xabc of 4: AllReduce launched 118 times, but 117 by rank 1" in text, text


def test_nobody_is_asked_without_why(tmp_path):
    with Ras() as ras, Told(ras.address) as s:
        shown = s.ctl("snapshot", s.app.pid, "--ras")
        assert shown.returncode == 2 and "--ras needs --why" in shown.stderr, shown
        shown = s.ctl("snapshot", s.app.pid, "--why", "--ras", "--again=10")
        assert shown.returncode == 2 and "--ras and --again exclude each other" in shown.stderr, shown
        shown = s.ctl("job", "--pids", s.app.pid, "--ras")
        assert shown.returncode == 2 and "--ras needs --why" in shown.stderr, shown
        assert ras.lines == []


def test_the_page_of_a_snapshot_has_it():
    with Ras() as ras, Told(ras.address) as s:
        ras.text = report(communicator(0xabc, ranks(s.app.pid)))
        shown = s.ctl("snapshot", s.app.pid, "--why", "--ras")
        assert shown.returncode == 0 and ALL in one_line(shown).replace("NCCL says", "NCCL   says"), shown.stdout
        assert "NCCL" not in s.ctl("snapshot", s.app.pid, "--why").stdout


def test_a_job_asks_for_no_longer_than_it_has():
    """One that does not answer costs what is left, not two seconds, and what else is known of the rank is kept."""
    with Ras(answers={"CLIENT PROTOCOL 2": None}) as ras, Told(ras.address) as s:
        shown = s.ctl("job", "--pids", s.app.pid, "--why", "--ras", "--deadline=4s", "-j")
        assert shown.returncode == 8, (shown.stdout, shown.stderr)
        found = json.loads(shown.stdout)
        assert len(found["ranks"]) == 1 and "told_by_nccl" not in found["ranks"][0], found
        assert any("did not answer in time" in text or "no time was left" in text for text in found["missing"]), found["missing"]


def test_of_a_process_without_a_gpu_nobody_is_asked():
    why = "what NCCL says of itself: it was not asked, as what waits on the GPUs could not be looked at"
    with Ras() as ras, Told(ras.address) as s:
        idle = s.start("idle", [shutil.which("sleep"), "100000"], env={"NCCL_RAS_ADDR": ras.address})
        wait_until(lambda: pathlib.Path(f"/proc/{idle.pid}/comm").read_text() == "sleep\n", "sleep")
        shown = s.ctl("snapshot", idle.pid, "--why", "--ras", "--host", "-j")
        assert shown.returncode == 8 and f"missing: {why}" in shown.stderr, shown
        assert why in json.loads(shown.stdout)["missing"], shown.stdout
        assert why not in json.loads(s.ctl("snapshot", idle.pid, "--why", "--host", "-j").stdout)["missing"]
        shown = s.ctl("job", "--pids", idle.pid, "--why", "--ras", "--deadline=30s", "-j")
        assert any(why in text for text in json.loads(shown.stdout)["missing"]), shown.stdout
        assert ras.lines == []


def test_without_time_nobody_is_asked():
    with Ras() as ras, Told(ras.address) as s:
        shown = s.ctl("snapshot", s.app.pid, "--why", "--ras", "--deadline=1ms", "-j")
        assert shown.returncode == 8 and ras.lines == [], (shown.stdout, ras.lines)
        assert json.loads(shown.stdout)["missing"] == [
            "what NCCL says of itself: it was not asked: no time was left before the deadline"], shown.stdout
        assert json.loads(shown.stdout)["why"]["complete"]
        shown = s.ctl("snapshot", s.app.pid, "--why", "--deadline=1s")
        assert shown.returncode == 2 and "--deadline needs --ras" in shown.stderr, shown


def test_a_job_keeps_what_is_told():
    with Ras() as ras, Told(ras.address) as s:
        ras.text = report(communicator(0xabc, ranks(s.app.pid)))
        shown = s.ctl("job", "--pids", s.app.pid, "--why", "--ras", "--deadline=60s", "-j")
        (told,) = [r["told_by_nccl"] for r in json.loads(shown.stdout)["ranks"]]
        assert told["communicators"][0]["hash"] == "0xabc"
