# SPDX-License-Identifier: MIT
"""Two functions of one shape, in an interpreted language. The second one is careless.

usage: equal_states.py first|back    first: it loses its stream when the event fails; back: only when the synchronization before it fails, too
"""
import ctypes
import sys

driver = ctypes.CDLL("libcuda.so.1")
mode = sys.argv[1]


def encoder():
    stream, event = ctypes.c_void_p(), ctypes.c_void_p()
    if driver.cuStreamCreate(ctypes.byref(stream), 1):
        return 1
    if driver.cuEventCreate(ctypes.byref(event), 0):
        driver.cuStreamSynchronize(stream)
        driver.cuStreamDestroy_v2(stream)
        return 1
    driver.cuEventDestroy_v2(event)
    driver.cuStreamDestroy_v2(stream)
    return 0


def decoder():
    stream, event = ctypes.c_void_p(), ctypes.c_void_p()
    if driver.cuStreamCreate(ctypes.byref(stream), 1):
        return 1
    if driver.cuEventCreate(ctypes.byref(event), 0):
        if mode == "first" or driver.cuStreamSynchronize(stream):
            return 1
        driver.cuStreamDestroy_v2(stream)
        return 1
    driver.cuEventDestroy_v2(event)
    driver.cuStreamDestroy_v2(stream)
    return 0


context = ctypes.c_void_p()
if driver.cuInit(0) or driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0):
    sys.exit(1)
driver.cuCtxSetCurrent(context)
failed = encoder() or decoder()
driver.cuDevicePrimaryCtxRelease_v2(0)
sys.exit(failed)
