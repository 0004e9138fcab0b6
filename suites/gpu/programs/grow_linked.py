# SPDX-License-Identifier: MIT
"""A library that was linked with the driver: PyTorch's libcaffe2_nvrtc.so names libcuda.so.1 as needed and hands out a table of driver functions
that the loader bound when it came into the process. Modules, made, used and destroyed through that table; marked_cycles.py says how."""
import ctypes
import os

import marked_cycles

try:
    import torch
except ImportError as missing:
    marked_cycles.leave(str(missing))

PTX = b".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing() { ret; }\n"


class Where(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p), ("address", ctypes.c_void_p)]


def table():
    """Name -> address of the driver functions in it, as dladdr knows them."""
    library = ctypes.CDLL(os.path.join(torch.__path__[0], "lib", "libcaffe2_nvrtc.so"), ctypes.RTLD_GLOBAL)
    load = next((getattr(library, name) for name in ("load_nvrtc", "_ZN2at4cuda10load_nvrtcEv") if hasattr(library, name)), None)
    if load is None:
        raise NotImplementedError("load_nvrtc of libcaffe2_nvrtc.so")
    load.restype = ctypes.POINTER(ctypes.c_void_p)
    entries, functions, where = load(), {}, Where()
    dladdr = ctypes.CDLL(None).dladdr
    for i in range(64):
        if entries[i] is None or dladdr(ctypes.c_void_p(entries[i]), ctypes.byref(where)) == 0 or where.name is None:
            break
        functions[where.name.decode()] = entries[i]
    return functions


functions = {}


def call(name, *arguments):
    functions.update(functions or table())
    if name not in functions:
        raise NotImplementedError(f"{name} in libcaffe2_nvrtc.so, which has {sorted(functions)}")
    status = ctypes.CFUNCTYPE(ctypes.c_int)(functions[name])(*arguments)
    if status != 0:
        raise RuntimeError(f"{name}: {status}")


def module():
    one, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    call("cuModuleLoadData", ctypes.byref(one), PTX)
    call("cuModuleGetFunction", ctypes.byref(kernel), one, b"nothing")
    call("cuLaunchKernel", kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None)
    torch.cuda.synchronize()
    call("cuModuleUnload", one)


def lost_module():
    call("cuModuleLoadData", ctypes.byref(ctypes.c_void_p()), PTX)


if __name__ == "__main__":
    if marked_cycles.sys.argv[1:] != ["--list"]:
        torch.zeros(1, device="cuda")  # a current context
    marked_cycles.main(f"libcaffe2_nvrtc.so of torch {torch.__version__}", {"module": module, "lost_module": lost_module}, torch.cuda.synchronize)
