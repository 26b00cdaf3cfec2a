# SPDX-License-Identifier: MIT
"""Tasks of asyncio that wait in many ways, in two threads; SIGUSR1 has each tell where it is.  usage: tasks.py"""
import asyncio
import os
import signal
import sys
import threading
import time

READY = threading.Semaphore(0)


async def inner(event):
    READY.release()
    await event.wait()


async def middle(event):
    await inner(event)


async def outer(event):
    return await middle(event)


async def gather(event):
    await asyncio.gather(*(asyncio.create_task(outer(event), name=f"Größe-{i}") for i in range(3)))


async def sleeper():
    READY.release()
    await asyncio.sleep(100000)


async def main():
    event = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(gather(event), name="gather")
        for _ in range(5):
            group.create_task(sleeper())
        group.create_task(outer(event), name="alone")


def tell(*_):
    for loop in LOOPS:
        for task in asyncio.all_tasks(loop):
            chain, coroutine = [], task.get_coro()
            while getattr(coroutine, "cr_frame", None):
                frame = coroutine.cr_frame
                chain.insert(0, (coroutine.cr_code.co_qualname, frame.f_code.co_filename, frame.f_lineno))
                coroutine = coroutine.cr_await
            print("task", repr((task.get_name(), chain)), file=sys.stderr)
    print("told", file=sys.stderr, flush=True)


LOOPS = []


def run():
    with asyncio.Runner() as runner:
        LOOPS.append(runner.get_loop())
        runner.run(main())


signal.signal(signal.SIGUSR1, tell)
for _ in range(2):
    threading.Thread(target=run, daemon=True).start()
for _ in range(2 * 9):
    READY.acquire()
time.sleep(0.2)
print(os.getpid(), flush=True)
while True:
    signal.pause()
