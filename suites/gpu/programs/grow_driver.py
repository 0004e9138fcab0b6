# SPDX-License-Identifier: MIT
"""The driver by ctypes, no framework: what must stay silent, and one planted loss; marked_cycles.py says how. Runs on the simulated driver too."""
import ctypes
import sys

import marked_cycles


def ask(code):
    if code != 0:
        raise RuntimeError(f"CUresult {code}")


if sys.argv[1:] != ["--list"]:
    driver, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    ask(driver.cuInit(0))
    ask(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    ask(driver.cuCtxSetCurrent(context))


def make_stream():
    one = ctypes.c_void_p()
    ask(driver.cuStreamCreate(ctypes.byref(one), 0))
    return one


def stream():
    ask(driver.cuStreamDestroy_v2(make_stream()))


def graph():
    one = ctypes.c_void_p()
    ask(driver.cuGraphCreate(ctypes.byref(one), 0))
    ask(driver.cuGraphDestroy(one))


if __name__ == "__main__":
    marked_cycles.main("driver", {"stream": stream, "graph": graph, "lost_stream": make_stream}, lambda: ask(driver.cuCtxSynchronize()))
