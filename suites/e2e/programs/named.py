# SPDX-License-Identifier: MIT
"""Driver calls from Python, in each way in which Python makes calls. Comments that begin with "#:" name the lines that tests expect.

usage: named.py MODE [DIRECTORY]    the directory holds named_extension.so, or a file that counts the runs (drift)
"""
import ctypes
import sys
import threading

driver = ctypes.CDLL("libcuda.so.1")


class Failed(Exception):
    pass


def check(result):
    if result:
        raise Failed(result)


class Encoder:
    def __init__(self):
        self.stream = ctypes.c_void_p()
        check(driver.cuStreamCreate(ctypes.byref(self.stream), 1))  #: stream

    def step(self):
        event = ctypes.c_void_p()
        check(driver.cuEventCreate(ctypes.byref(event), 0))  #: event
        driver.cuEventDestroy_v2(event)

    def close(self):
        driver.cuStreamDestroy_v2(self.stream)


def leak():
    encoder = Encoder()  #: encoder
    encoder.step()  #: step
    encoder.close()


def careful():
    encoder = Encoder()
    try:
        encoder.step()
    finally:
        encoder.close()


def callback():
    """The C library calls back, from within the C library."""
    encoder = Encoder()

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    def compare(left, right):
        try:
            encoder.step()  #: compare
        except Failed as failed:
            failures.append(failed)
        return 0

    failures = []
    numbers = (ctypes.c_int * 2)(1, 2)
    ctypes.CDLL(None).qsort(numbers, ctypes.c_size_t(2), ctypes.c_size_t(4), compare)  #: qsort
    if failures:
        raise failures[0]
    encoder.close()


def extension():
    """A C extension calls the driver, and calls Python, which calls the driver."""
    sys.path.insert(0, sys.argv[2])
    import named_extension

    stream = named_extension.make_stream()  #: make_stream
    named_extension.call(Encoder.step)  #: call
    named_extension.end_stream(stream)


def threads():
    failures = []

    def first():
        lose(failures)  #: first

    def second():
        lose(failures)  #: second

    for function in (first, second):
        thread = threading.Thread(target=function)
        thread.start()
        thread.join()
    if failures:
        raise failures[0]


def lose(failures):
    context = ctypes.c_void_p()
    if driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0):
        return
    driver.cuCtxSetCurrent(context)
    try:
        leak()
    except Failed as failed:
        failures.append(failed)
    driver.cuDevicePrimaryCtxRelease_v2(0)


def streams():
    stream = ctypes.c_void_p()
    check(driver.cuStreamCreate(ctypes.byref(stream), 1))  #: in generator
    yield stream
    driver.cuStreamDestroy_v2(stream)


def generator():
    for stream in streams():  #: for
        event = ctypes.c_void_p()
        check(driver.cuEventCreate(ctypes.byref(event), 0))  #: in loop
        driver.cuEventDestroy_v2(event)


async def wait_for(value):
    return (lambda: driver.cuEventCreate(ctypes.byref(value), 0))()  #: lambda


async def coroutine():
    encoder, event = Encoder(), ctypes.c_void_p()
    check(await wait_for(event))  #: await
    driver.cuEventDestroy_v2(event)
    encoder.close()


def asynchronous():
    import asyncio

    asyncio.run(coroutine())


def handler():
    """Careless only where the clean-up itself fails."""
    encoder = Encoder()
    try:
        encoder.step()
    except Failed:
        check(driver.cuStreamSynchronize(encoder.stream))  #: except
        encoder.close()
        raise
    encoder.close()


def pooled():
    """A helper makes one object for each turn of the loop here, which loses those of earlier turns."""
    encoders = [Encoder() for _ in range(2)]  #: turns
    for encoder in encoders:
        encoder.close()


def drift():
    """Every other run makes an event more, so faults are addressed by call stack."""
    with open(sys.argv[2], "ab") as counter:
        counter.write(b".")
        odd = counter.tell() % 2
    if odd:
        event = ctypes.c_void_p()
        check(driver.cuEventCreate(ctypes.byref(event), 0))
        driver.cuEventDestroy_v2(event)
    leak()


def dies():
    """In the C library, where ctypes called it."""
    encoder = Encoder()
    try:
        encoder.step()
    except Failed:
        ctypes.memset(0, 0, 1)  #: dies
    encoder.close()


def hangs():
    """In a lock of Python's own."""
    encoder = Encoder()
    lock = threading.Lock()
    lock.acquire()
    try:
        encoder.step()
    except Failed:
        lock.acquire()  #: hangs
    encoder.close()


def deep():
    """More Python frames than a stack keeps."""
    encoder = Encoder()

    def down(levels):
        if levels:
            return down(levels - 1)  #: down
        return encoder.step()

    down(100)
    encoder.close()


def ünïcode():
    leak()  #: unicode


def main():
    context = ctypes.c_void_p()
    if driver.cuInit(0) or driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0):
        return 1
    driver.cuCtxSetCurrent(context)
    try:
        globals()[sys.argv[1]]()  #: main
    except Failed:
        return 1
    finally:
        driver.cuDevicePrimaryCtxRelease_v2(0)  #: finally
    return 0


sys.exit(main())  #: module
