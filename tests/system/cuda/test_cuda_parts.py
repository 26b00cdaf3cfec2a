#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Warps whose lanes are at different places: their parts, the groups that these are in, and what asking for them costs."""
import collections
import json
import os
import re
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from cudascene import assert_untouched, scene

# The first three read warp by warp, and know the exception of each lane from that.
RELEASES = ("11.8", "12.2", "12.4", "12.9", "13.4")
BATCHED = ("12.4", "12.9", "13.4")
ILLEGAL = "CUDA_EXCEPTION_1: lane illegal address"
WARP_STATE = {"12.4": "readWarpState120", "12.9": "readWarpState", "13.4": "readWarpState"}


def base(s):
    """Where the code of the kernel begins."""
    return next(int(f["address"], 16) for m in s.state()["modules"] for f in m["functions"] if f["name"] == "spin")


def snapshot(s, *argv):
    return json.loads(s.ctl("snapshot", "--waves", "--json", *argv, s.app.pid).stdout)


def at(doc, sm, warp):
    return next(w for w in doc["waves"] if (w["ref"]["unit"], w["ref"]["index"]) == (sm, warp))


def parts(wave, start):
    return [(int(p["pc"], 16) - start, int(p["exec"], 16), p["active"]) for p in wave["parts"]]


def check_sums(doc):
    """Each group has as many waves, parts and lanes as the waves that say they are in it."""
    waves, whole, lanes = collections.Counter(), collections.Counter(), collections.defaultdict(list)
    for w in doc["waves"]:
        of = collections.Counter()
        for p in w.get("parts", [w]):
            assert p["lanes"] == bin(int(p["exec"], 16)).count("1"), p
            of[p["group"]] += p["lanes"]
        assert w["group"] == w.get("parts", [w])[0]["group"], w
        for group, n in of.items():
            waves[group] += 1
            whole[group] += len(of) == 1
            lanes[group].append(n)
    assert sorted(waves) == list(range(len(doc["groups"]))), waves
    for i, g in enumerate(doc["groups"]):
        assert (g["waves"], g.get("parts", 0)) == (waves[i], waves[i] - whole[i]), (i, g)
        n = sorted(lanes[i])
        assert (g["lanes_min"], g["lanes_median"], g["lanes_max"]) == (n[0], n[(len(n) - 1) // 2], n[-1]), (i, g)
    assert doc.get("diverged_waves", 0) == sum("parts" in w for w in doc["waves"])


def test_parts_are_the_same_in_every_release_and_in_a_core(tmp_path):
    """Several blocks; lanes that have exited are in no part, and one warp is at two addresses of one line."""
    documents = []
    for release in RELEASES:
        with scene(release) as s:
            s.control("warp 0 1 2 pc=0x10 idle=0xc0 active=0xff")
            s.control("warp 0 1 3 pc=0xc0 idle=0xc8 active=0xff")
            s.control("warp 0 1 4 pc=0xc0 idle=0x10 active=0xf0 valid=0xfffffff0")
            s.control("warp 0 2 0 pc=0x10 idle=0x10 active=0xf")
            doc = snapshot(s)
            core = tmp_path / f"core-{release}"
            assert s.ctl("dump", s.app.pid, "-o", core).returncode == 0
            of_core = json.loads(s.ctl("analyze", core, "--waves", "--json").stdout)
            for q in doc["queues"]:
                q.pop("stopped_us", None)
            for name in ("groups", "waves", "queues", "diverged_waves", "wave_count", "complete", "missing"):
                assert doc[name] == of_core[name], (release, name, doc[name], of_core[name])
            start = base(s)
            assert parts(at(doc, 1, 2), start) == [(0x10, 0xff, True), (0xc0, 0xffffff00, False)]
            assert parts(at(doc, 1, 3), start) == [(0xc0, 0xff, True), (0xc8, 0xffffff00, False)]
            assert parts(at(doc, 1, 4), start) == [(0xc0, 0xf0, True), (0x10, 0xffffff00, False)]
            assert "parts" not in at(doc, 2, 0) and doc["diverged_waves"] == 3 and doc["wave_count"] == 24
            check_sums(doc)
            rows = {g["frames"][0]["line"]: g for g in doc["groups"]}
            # 0:1:2 waits there, 0:1:3 is there with all its lanes, 0:1:4 executes there.
            assert (rows[12]["waves"], rows[12]["parts"]) == (3, 2) and "lane" not in rows[12], rows[12]
            assert rows[12]["representative"]["index"] == 3, rows[12]
            assert (rows[19]["waves"], rows[19]["parts"]) == (3, 2), rows[19]
            assert rows[19]["representative"]["index"] == 2 and rows[19]["lane"] == 0, rows[19]
            documents.append([(w["ref"], w.get("parts")) for w in doc["waves"]])
            assert_untouched(s)
    assert all(d == documents[0] for d in documents)


def test_each_lane_is_a_part_of_its_own():
    with scene() as s:
        for warp in range(4):
            s.control(f"warp 0 1 {warp} pc=0x10 apart=16 active=0x80")
        doc = snapshot(s)
        assert [p[1] for p in parts(at(doc, 1, 2), base(s))] == [0x80] + [1 << i for i in range(32) if i != 7]
        assert doc["diverged_waves"] == 4
        check_sums(doc)


def test_an_exception_is_that_of_its_lanes():
    """Not of the part whose pc is the warp's, and not of those that wait: also where the driver has one for all lanes."""
    for release in RELEASES:
        for error_pc in ("", " errorpc=0xd0"):
            with scene(release) as s:
                s.control("warp 0 1 2 pc=0x10 idle=0xc0 active=0xff")
                s.control(f"raise 0 1 2 1 lanes=0x30000{error_pc}")
                doc = snapshot(s)
                start, wave = base(s), at(doc, 1, 2)
                where = 0xd0 if error_pc else 0xc0
                assert int(wave["pc"], 16) - start == where and wave["exception"] == ILLEGAL, (release, wave)
                assert parts(wave, start) == [(where, 0xffffff00, False), (0x10, 0xff, True)], (release, wave)
                first = doc["groups"][0]
                assert first["exception"] == ILLEGAL and (first["lane"], first["parts"]) == (16, 1), first
                assert (first["lanes_max"], first["waves"]) == (24, 1) and int(first["pc"], 16) - start == where, first
                rest = [g for g in doc["groups"][1:] if g["representative"]["unit"] == 1 and g["representative"]["index"] == 2]
                assert [g["reasons"] for g in rest] == [[]] and "exception" not in rest[0], rest
                assert (rest[0]["lane"], rest[0]["lanes_max"]) == (0, 8), rest
                check_sums(doc)


def counted(s, *argv):
    """A snapshot, and the calls of the driver that it took."""
    before = collections.Counter(s.state()["calls_of"])
    doc = json.loads(s.ctl("snapshot", "--json", *argv, s.app.pid).stdout)
    return doc, collections.Counter(s.state()["calls_of"]) - before


def test_a_stop_is_no_longer_for_parts():
    """Where the lanes are comes with the rest: one call for each warp that is apart and has an exception, no other."""
    for release in RELEASES:
        with scene(release) as s:
            s.session = s.attach()
            for command in ("warp 0 0 0 pc=0x10", "warp 0 2 3 pc=0xc0"):
                s.control(command)
            counted(s)
            quiet, calls = counted(s)
            assert "diverged_waves" not in quiet
            # Each warp is apart, but at no pc that was not there before.
            for sm in range(3):
                for warp in range(8):
                    s.control(f"warp 0 {sm} {warp} idle={(0xc0, 0x10, 0)[(sm + warp) % 3]:#x} active=0xffff0000")
            apart, with_parts = counted(s)
            assert apart["diverged_waves"] >= 16 and apart["complete"], apart
            assert with_parts == calls, (release, with_parts - calls, calls - with_parts)
            for warp in range(3):
                s.control(f"raise 0 1 {warp} 1 lanes=0x20000000 errorpc=0x10")
            together = counted(s)[1]
            for warp in range(3):
                s.control(f"warp 0 1 {warp} active=0xffffffff")
            whole = counted(s)[1]
            # How the devices were stopped and run on is the engine's business.
            asked = {k: n for k, n in (together - whole).items() if k.startswith("read")}
            assert set(asked) == ({WARP_STATE[release]} if release in BATCHED else set()), (release, asked)
            assert sum(asked.values()) <= 3, (release, asked)


def test_a_driver_that_does_not_say_which_lane():
    """Then the lanes that execute have the exception, as without parts, and the document says that this is not known."""
    for release in BATCHED:
        with scene(release) as s:
            for warp in (2, 3):
                s.control(f"warp 0 1 {warp} pc=0x10 idle=0xc0 active=0xff")
                s.control(f"raise 0 1 {warp} 1 lanes=0x30000")
            s.control(f"fail {WARP_STATE[release]} 21")
            doc = snapshot(s)
            words = "exceptions of 2 waves: which lanes raised them: the driver does not say"
            assert not doc["complete"] and doc["missing"] == [words], (release, doc["missing"])
            assert parts(at(doc, 1, 2), base(s)) == [(0x10, 0xff, True), (0xc0, 0xffffff00, False)], release
            assert [(g["exception"], g["waves"]) for g in doc["groups"] if g["reasons"]] == [(ILLEGAL, 2)], doc["groups"]
            run = s.ctl("registers", s.app.pid, "0:1:2")
            assert "exception: which threads raised it: the driver does not say" in run.stdout, run.stdout
            check_sums(doc)


def test_asking_ends_with_the_stop():
    """Half of the time is over before the lanes are asked, and one of many answers takes the other half."""
    with scene("12.9") as s:
        for sm in range(3):
            for warp in range(8):
                s.control(f"warp 0 {sm} {warp} pc=0x10 idle=0xc0 active=0xff")
                s.control(f"raise 0 {sm} {warp} 1 lanes=0x30000")
        s.control("delay readWarpState 400")
        session = s.attach()
        before = s.state()["calls_of"].get("readWarpState", 0)
        doc = s.rpc.call("gpu.snapshot", session=session, max_stop_ms=1000, waves=True)
        assert s.state()["calls_of"]["readWarpState"] - before <= 4, s.state()["calls_of"]
        words = "waves: which lanes raised them: the stop budget was used up"
        assert doc["budget_exceeded"] and any(words in m for m in doc["missing"]), doc["missing"]
        assert doc["diverged_waves"] == 24 and doc["stopped_us"] < 3000000, doc["stopped_us"]
        assert sum(g["waves"] for g in doc["groups"] if g["reasons"]) == 24, doc["groups"]
        s.rpc.call("session.detach", session=session)
        assert_untouched(s)


def test_a_driver_that_fails_while_warps_are_read():
    """Without a batch, the state of a device is read or is missing as a whole: no warp is told as if it were whole."""
    with scene("11.8") as s:
        s.control("warp 0 1 2 pc=0x10 idle=0xc0 active=0xff")
        s.control("fail readWarpState60 21 nth=12 count=1")
        run = s.ctl("snapshot", "--waves", "--json", s.app.pid)
        doc = json.loads(run.stdout)
        assert not doc["complete"] and len(doc["missing"]) == 1 and "device 0: " in doc["missing"][0], doc["missing"]
        assert doc["wave_count"] == 0 and "diverged_waves" not in doc
        doc = snapshot(s)
        assert doc["complete"] and doc["diverged_waves"] == 1
        assert_untouched(s)


def test_a_report_of_an_exception_has_the_place_of_its_lanes():
    for release in ("11.8", "12.9"):
        with scene(release) as s:
            session = s.attach(control=True)
            s.rpc.call("exception.subscribe", session=session, exceptions=["wave_memory_violation"], look_ms=1000)
            s.control("warp 0 1 2 pc=0x10 idle=0xc0 active=0xff")
            s.control("raise 0 1 2 1 lanes=0x30000")
            event = s.rpc.notification("exception.raised")
            (group,) = event["groups"]
            assert event["waves"] == 1 and event["lanes"] == 8, event
            assert group["frames"][0]["line"] == 12 and (group["lane"], group["lanes_max"]) == (16, 24), group
            assert int(group["pc"], 16) - base(s) == 0xc0, group


def test_a_page_has_a_wave_once():
    """A wave is listed with each group that a part of it is in, and once where several of them are asked for."""
    with scene() as s:
        s.control("warp 0 1 2 pc=0x10 idle=0xc0 active=0xff")
        s.control("warp 0 1 3 pc=0xc0 idle=0x10 active=0xff")
        session = s.attach()
        every = s.rpc.call("gpu.snapshot", session=session, waves=True)
        lines = {g["frames"][0]["line"]: i for i, g in enumerate(every["groups"])}
        for groups in ([lines[19]], [lines[12]], [lines[12], lines[19]]):
            page = s.rpc.call("gpu.snapshot", session=session, waves=True, select={"groups": groups, "first": 0, "max": 10})
            assert [w["ref"]["index"] for w in page["waves"]] == [2, 3], page["waves"]
            assert all(len(w["parts"]) == 2 for w in page["waves"]), page["waves"]


def test_registers_of_a_warp_tell_its_parts():
    with scene() as s:
        s.control("warp 0 1 2 pc=0x10 idle=0xc0 active=0xff")
        wave = {"queue_id": 0, "unit": 1, "index": 2}
        live = s.rpc.call("wave.registers", session=s.attach(), wave=wave)["registers"]["wave"]
        assert parts(live, base(s)) == [(0x10, 0xff, True), (0xc0, 0xffffff00, False)] and "group" not in live["parts"][0], live
        # One wave represents two groups; its registers are there once.
        doc = s.rpc.call("gpu.snapshot", session=s.attach(), registers=True)
        shown = [(r["wave"]["ref"]["unit"], r["wave"]["ref"]["index"]) for r in doc["registers"]]
        assert sorted(shown) == sorted(set(shown)) and (1, 2) in shown, shown
        wave = next(r["wave"] for r in doc["registers"] if r["wave"]["ref"]["unit"] == 1 and r["wave"]["ref"]["index"] == 2)
        assert parts(wave, base(s)) == [(0x10, 0xff, True), (0xc0, 0xffffff00, False)], wave


def flat(text):
    """Without the breaks that a terminal makes."""
    return re.sub(r"\s+", " ", text)


def test_people_read_which_lanes_are_where(tmp_path):
    """The line of a headline is that of the lanes with the exception; warps are counted at each place they are at."""
    with scene() as s:
        s.control("warp 0 1 2 pc=0x10 idle=0xc0 active=0xff")
        s.control("warp 0 1 3 pc=0xc0 active=0xffffffff")
        page = s.ctl("snapshot", s.app.pid).stdout
        assert page.startswith("No fault: 24 warps of 1 context, 1 of 24 warps has diverged\n"), page
        assert "\n24 warps, 1 diverged, stopped " in page, page
        assert "spin.cu:19 (part of 1 warp)" in flat(page) and "spin.cu:12 weigh (part of 1 of 2 warps)" in flat(page), page
        (tmp_path / "a.json").write_text(s.ctl("snapshot", "--json", s.app.pid).stdout)
        listed = s.ctl("warps", s.app.pid).stdout.splitlines()
        row = next(i for i, line in enumerate(listed) if line.startswith("0:1:2 "))
        assert listed[row + 1].split()[:2] == ["0-7", "active"] and " 8/32 " in listed[row + 1], listed[row + 1]
        assert listed[row + 2].split()[:2] == ["8-31", "waiting"] and " 24/32 " in listed[row + 2], listed[row + 2]
        assert "spin.cu:12 weigh" in listed[row + 2] and listed[row + 2].split()[-1] == "0xffffff00", listed[row + 2]
        s.control("raise 0 1 2 1 lanes=0x30000")
        page = s.ctl("snapshot", s.app.pid).stdout
        first = page.splitlines()[0]
        assert re.search(r"^FAULT .*: 1 warp of spin\(.*\), spin.cu:12, lane 16, thread \(80,0,0\), GPU 0", first), page
        (tmp_path / "b.json").write_text(s.ctl("snapshot", "--json", s.app.pid).stdout)
        changes = s.ctl("diff", tmp_path / "a.json", tmp_path / "b.json").stdout
        assert "(part of 1 warp)" in flat(changes), changes


def test_many_parts_are_cut_in_a_list():
    with scene() as s:
        s.control("warp 0 1 2 pc=0x10 apart=16 active=0xffffffff")
        text = s.ctl("warps", s.app.pid).stdout
        assert re.search(r"^  28 more \(-v\) ", text, re.M) and len(re.findall(r"^  \d+ +(active|waiting)", text, re.M)) == 4, text
        assert len(re.findall(r"^  \d+ +(active|waiting)", s.ctl("warps", "-v", s.app.pid).stdout, re.M)) == 32
