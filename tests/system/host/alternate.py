# SPDX-License-Identifier: MIT
"""A program that runs without pause, now one chain of calls, now another: a_* and b_* are never in one stack.
usage: alternate.py [SEED [THREADS]]
SEED: how deep calls and generators are nested, and in which order.  THREADS: so many do the same."""
import os
import random
import sys
import threading

RANDOM = random.Random(int(sys.argv[1])) if len(sys.argv) > 1 else None
CALLS = RANDOM.randrange(1, 25) if RANDOM else 6
GENERATORS = RANDOM.randrange(8) if RANDOM else 4
LEAVES = RANDOM.randrange(8) if RANDOM else 3


def a_generator(n):
    if n:
        yield from a_generator(n - 1)
    else:
        yield a_leaf(LEAVES)


def b_generator(n):
    if n:
        yield from b_generator(n - 1)
    else:
        yield b_leaf(LEAVES)


def a_leaf(n):
    return a_leaf(n - 1) if n else sum(range(20))


def b_leaf(n):
    return b_leaf(n - 1) if n else sum(range(30))


def a_calls(n):
    if n:
        a_calls(n - 1)
    else:
        for _ in a_generator(GENERATORS):
            pass


def b_calls(n):
    if n:
        b_calls(n - 1)
    else:
        for _ in b_generator(GENERATORS):
            pass


def a_sorts(n):
    sorted([1, 2], key=lambda _: a_calls(n) or 0)


def b_sorts(n):
    sorted([2, 1], key=lambda _: b_calls(n) or 0)


ORDER = [a_calls, b_calls]
if RANDOM:
    ORDER = [RANDOM.choice([a_calls, b_calls, a_sorts, b_sorts]) for _ in range(20)]


def run():
    while True:
        for calls in ORDER:
            calls(CALLS)


for _ in range(int(sys.argv[2]) - 1 if len(sys.argv) > 2 else 0):
    threading.Thread(target=run, daemon=True).start()
print(os.getpid(), flush=True)
run()
