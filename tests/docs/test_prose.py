#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/check-prose: what it counts, and what it lets pass."""
import importlib.machinery
import importlib.util
import os
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import ROOT

RULES = {"long": {}, "coined": {"heirs?": "recovery process"}, "may_say_coined": []}
WORDS = "Word" + " word" * 34


def load():
    loader = importlib.machinery.SourceFileLoader("check_prose", str(ROOT / "scripts/check-prose"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_prose", loader))
    loader.exec_module(module)
    return module


def told(tmp_path, text, rules=None, name="README.md"):
    prose = load()
    prose.ROOT = tmp_path
    (tmp_path / name).write_text(text)
    return prose.check(name, {**RULES, **(rules or {})})[0]


def test_a_sentence_of_36_words_is_told(tmp_path):
    assert told(tmp_path, f"Short one. {WORDS}. {WORDS}\n") == []
    line, = told(tmp_path, f"Short one.\nOne {WORDS}.\n")
    assert line.startswith("README.md: 36 words: One Word")


def test_an_exception_is_named_by_its_beginning(tmp_path):
    assert told(tmp_path, f"One {WORDS}.\n", {"long": {"README.md": ["One Word"]}}) == []
    assert told(tmp_path, f"One {WORDS}.\n", {"long": {"GLOSSARY.md": ["One Word"]}})


def test_items_cells_and_headings_end_a_sentence(tmp_path):
    half = " ".join(["word"] * 20)
    assert told(tmp_path, f"- {half}\n- {half}\n\n# {half}\n{half}\n\n| {half} | {half} |\n") == []
    assert told(tmp_path, f"{half}\n{half}\n")


def test_code_is_one_word_and_its_blocks_are_none(tmp_path):
    code = f"```sh\n{WORDS} {WORDS}\n```\n\n    {WORDS} {WORDS}\n\nText with `{WORDS} {WORDS}` in it.\n"
    assert told(tmp_path, code) == []


def test_a_coined_word_comes_with_a_better_one(tmp_path):
    line, = told(tmp_path, "Then the heir\ncleans up.\n")
    assert "write recovery process" in line
    assert told(tmp_path, "Then `the heir` cleans up.\n") == []


def test_manual_pages_are_counted_without_synopsis_and_commands(tmp_path):
    page = ".Dd November 21, 2026\n.Dt X 1\n.Os\n.Sh NAME\n.Nm x\n.Nd y\n.Sh SYNOPSIS\n.Nm\n.Ar {0}\n" \
           ".Sh DESCRIPTION\n{1}\n.Pp\n.Dl $ {0} {0}\n"
    assert told(tmp_path, page.format(f"{WORDS} {WORDS}", f"{WORDS}.\nx is the {WORDS}"), name="x.1") \
        == [f"x.1: 38 words: x is the {WORDS}"]


def test_the_documents_pass():
    prose = load()
    assert "README.md" in prose.documents() and "docs/man/gpu-agentd.8" in prose.documents()
