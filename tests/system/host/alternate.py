# SPDX-License-Identifier: MIT
"""A program that runs without pause, now one chain of calls, now another: a_* and b_* are never in one stack."""
import os


def a_generator(n):
    if n:
        yield from a_generator(n - 1)
    else:
        yield a_leaf(3)


def b_generator(n):
    if n:
        yield from b_generator(n - 1)
    else:
        yield b_leaf(3)


def a_leaf(n):
    return a_leaf(n - 1) if n else sum(range(20))


def b_leaf(n):
    return b_leaf(n - 1) if n else sum(range(30))


def a_calls(n):
    if n:
        a_calls(n - 1)
    else:
        for _ in a_generator(4):
            pass


def b_calls(n):
    if n:
        b_calls(n - 1)
    else:
        for _ in b_generator(4):
            pass


print(os.getpid(), flush=True)
while True:
    a_calls(6)
    b_calls(6)
