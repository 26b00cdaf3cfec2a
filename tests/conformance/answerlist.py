# SPDX-License-Identifier: MIT
"""Answers of kfd_answers: what it printed, what the real kernels said, and what is known to differ.

answers.txt has one answer a line: its name, what the old kernel says, and what the new one says where that is something else,
with tabs between them.  `python3 answerlist.py OLD NEW` makes it from what kfd_answers printed on both.
"""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
SIDES = ("old", "new")
# Fewer than this would mean that the list was cut.
FEWEST = 1800


def printed(text):
    """{name: answer}; each may be given once only."""
    answers = {}
    for line in text.splitlines():
        if line.startswith("ANSWER "):
            _, name, answer = line.split(" ", 2)
            assert name not in answers, f"{name}: answered twice"
            answers[name] = answer
    return answers


def recorded(side):
    """{name: answer} of a real kernel."""
    answers = {}
    for line in (HERE / "answers.txt").read_text(encoding="ascii").splitlines():
        if not line.startswith("#"):
            name, *said = line.split("\t")
            answers[name] = said[-1] if side == "new" else said[0]
    assert len(answers) >= FEWEST, f"answers.txt has {len(answers)} answers"
    return answers


def known_differences():
    """{name: (answer of the simulator, answer of the kernel)}: rows of the table in docs/VM.md that name an answer."""
    page = (HERE.parent.parent / "docs/VM.md").read_text(encoding="utf-8")
    row = re.compile(r"^\| `([a-z_]+\.[^`]+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.M)
    return {name: (sim.strip(), kernel.strip()) for name, sim, kernel, reason in row.findall(page) if reason.strip()}


def differences(got, want):
    """Lines that say what is not as it should be."""
    lines = [f"{name}: not answered, should be {want[name]}" for name in want if name not in got]
    lines += [f"{name}: answered {got[name]}, and not in answers.txt" for name in got if name not in want]
    return lines + [f"{name}: {got[name]}, should be {want[name]}" for name in want if got.get(name, want[name]) != want[name]]


def of_simulator(side):
    """What the simulator should say: what the kernel does, or what docs/VM.md says instead."""
    want = recorded(side)
    for name, (sim, kernel) in known_differences().items():
        assert want.get(name) == kernel, f"docs/VM.md says that the kernel answers {name} with {kernel}: {want.get(name)}"
        assert sim != kernel, f"docs/VM.md lists {name}, which does not differ"
        want[name] = sim
    return want


def main():
    old, new = (printed(pathlib.Path(path).read_text(encoding="ascii", errors="replace")) for path in sys.argv[1:])
    assert list(old) == list(new), "the two have not answered the same questions"
    print("# What the two kernels of docs/VM.md answer to kfd_answers; made by answerlist.py.")
    for name, answer in old.items():
        print(name, answer, *([new[name]] if new[name] != answer else []), sep="\t")


if __name__ == "__main__":
    main()
