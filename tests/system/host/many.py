# SPDX-License-Identifier: MIT
"""Threads that wait in many ways; SIGUSR1 has faulthandler tell where.  usage: many.py SEED"""
import faulthandler
import os
import random
import signal
import sys
import threading
import time

FOREVER = threading.Event()
READY = threading.Semaphore(0)
RANDOM = random.Random(int(sys.argv[1]))


def wait():
    READY.release()
    FOREVER.wait()


def generate(n):
    if n:
        yield from generate(n - 1)
    wait()
    yield n


class Größe:
    def mäßig(self, n, then):
        return self.mäßig(n - 1, then) if n else then()


def by_sort():
    sorted([2, 1], key=lambda _: wait())


def by_generator():
    for _ in generate(RANDOM.randrange(5)):
        pass


async def waits(n):
    return await waits(n - 1) if n else wait()


def by_coroutine():
    try:
        waits(RANDOM.randrange(4)).send(None)
    except StopIteration:
        pass


def by_sleep():
    READY.release()
    time.sleep(100000)


def by_map():
    list(map(lambda _: wait(), [1]))


WAYS = [by_sort, by_generator, by_coroutine, by_sleep, by_map, wait]

faulthandler.register(signal.SIGUSR1, all_threads=True)
threading.stack_size(512 * 1024)
for _ in range(24):
    threading.Thread(target=Größe().mäßig, args=(RANDOM.randrange(60), RANDOM.choice(WAYS)), daemon=True).start()
for _ in range(24):
    READY.acquire()
time.sleep(0.3)
print(os.getpid(), flush=True)
time.sleep(100000)
