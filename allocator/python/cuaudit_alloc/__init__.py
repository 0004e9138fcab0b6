# SPDX-License-Identifier: MIT
"""cuaudit's caching allocator for PyTorch and CuPy.

    import cuaudit_alloc
    cuaudit_alloc.enable("policy:wait")          # before the first CUDA tensor
    ...
    cuaudit_alloc.record_use(tensor, stream)     # the tensor's last access on that stream has just been enqueued

Errors are AllocatorError with the allocator's own words, ValueError for settings that are wrong, TypeError for what is no pointer or
stream. The memory is given back by the process's end, as PyTorch's own is.
"""
import ctypes
import os
from pathlib import Path

__all__ = ["AllocatorError", "cupy_allocator", "enable", "last_error", "library_path", "memory_pool", "record_use", "snapshot", "statistic"]

# What PyTorch asks of a pluggable allocator, and which function of the library answers.
_HOOKS = {
    "set_init_fn": "cuaudit_init",
    "set_reset_fn": "cuaudit_reset",
    "set_memory_fraction_fn": "cuaudit_memory_fraction",
    "set_base_alloc_fn": "cuaudit_base_alloc",
    "set_record_stream_fn": "cuaudit_record_stream",
    "set_begin_allocate_to_pool": "cuaudit_begin_allocate_to_pool",
    "set_end_allocate_to_pool_fn": "cuaudit_end_allocate_to_pool",
    "set_release_pool": "cuaudit_release_pool",
}
_SETTINGS = "CUAUDIT_ALLOC_CONF"
_loaded = None
_pluggable = None
_enabled = False


class AllocatorError(RuntimeError):
    """What the allocator refused, in its own words."""


def library_path():
    """The library that PyTorch loads."""
    return str(Path(__file__).resolve().parent / "libcuaudit_allocator.so")


def _library():
    global _loaded
    if _loaded is None:
        library = ctypes.CDLL(library_path())
        pointer, status = ctypes.c_void_p, ctypes.c_int
        for name, result, arguments in (
                ("cuaudit_last_error", ctypes.c_char_p, ()),
                ("cuaudit_check_settings", status, ()),
                ("cuaudit_allocate", status, (ctypes.c_size_t, ctypes.c_int, pointer, ctypes.POINTER(pointer))),
                ("cuaudit_free", None, (pointer, ctypes.c_ssize_t, ctypes.c_int, pointer)),
                ("cuaudit_record_use", status, (pointer, pointer)),
                ("cuaudit_statistic", status, (ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_longlong))),
                ("cuaudit_snapshot", status, (ctypes.c_char_p,))):
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        _loaded = library
    return _loaded


def last_error():
    """What this thread's latest failure was about."""
    return _library().cuaudit_last_error().decode(errors="replace")


def _expect(result, call):
    if result != 0:
        raise AllocatorError(f"{call}: {last_error() or f'CUresult {result}'}")


def _allocator():
    """The pluggable allocator with every hook that this PyTorch has."""
    global _pluggable
    if _pluggable is None:
        from torch.cuda.memory import CUDAPluggableAllocator
        made = CUDAPluggableAllocator(library_path(), "cuaudit_malloc", "cuaudit_free")
        inner = made.allocator()
        if not hasattr(inner, "set_record_stream_fn"):
            raise AllocatorError("this PyTorch has no set_record_stream_fn: what another stream uses would be given out too early")
        for hook, function in _HOOKS.items():
            if hasattr(inner, hook):
                getattr(inner, hook)(ctypes.cast(getattr(_library(), function), ctypes.c_void_p).value)
        _pluggable = made
    return _pluggable


def enable(settings=None):
    """Makes it PyTorch's allocator. PyTorch allows that only before its own has given out memory.

    `settings` is a text such as "policy:wait,max_split_size_mb:128"; None leaves CUAUDIT_ALLOC_CONF as it is. Wrong ones are a ValueError,
    and nothing is changed.
    """
    global _enabled
    if _enabled:
        raise AllocatorError("enable: the allocator is PyTorch's already, and its settings have been read")
    before = os.environ.get(_SETTINGS)
    if settings is not None:
        os.environ[_SETTINGS] = settings
    if _library().cuaudit_check_settings() != 0:
        wrong = last_error()
        if settings is not None:
            if before is None:
                del os.environ[_SETTINGS]
            else:
                os.environ[_SETTINGS] = before
        raise ValueError(wrong)
    from torch.cuda.memory import change_current_allocator
    change_current_allocator(_allocator())
    _enabled = True


def memory_pool():
    """A torch.cuda.MemPool whose segments come from this allocator, for one part of a program; enable is not needed."""
    import torch
    return torch.cuda.MemPool(_allocator().allocator())


def _address(memory):
    if isinstance(memory, int):
        return memory
    if hasattr(memory, "data_ptr"):  # PyTorch's tensors and storages
        return memory.data_ptr()
    data = getattr(memory, "data", None)  # CuPy's arrays
    if isinstance(getattr(data, "ptr", None), int):
        return data.ptr
    raise TypeError(f"record_use: {type(memory).__name__} is no tensor, array or address")


def _handle(stream):
    for name in ("cuda_stream", "ptr"):  # PyTorch's, CuPy's
        if isinstance(getattr(stream, name, None), int):
            return getattr(stream, name)
    if isinstance(stream, int):
        return stream
    raise TypeError(f"record_use: {type(stream).__name__} is no CUDA stream")


def record_use(memory, stream):
    """The last access to `memory` on `stream` has just been enqueued: whoever is given the memory next is ordered behind it.

    After that the tensor may be dropped at any time. An access that is enqueued later is not waited for.
    """
    _expect(_library().cuaudit_record_use(_address(memory), _handle(stream)), "record_use")


def statistic(name, device=0):
    """A counter by its name, such as "allocated_bytes.all.current"."""
    value = ctypes.c_longlong()
    _expect(_library().cuaudit_statistic(device, name.encode(), ctypes.byref(value)), "statistic")
    return value.value


def snapshot(path):
    """Writes a file that opens at pytorch.org/memory_viz."""
    _expect(_library().cuaudit_snapshot(os.fsencode(path)), "snapshot")


def cupy_allocator():
    """For cupy.cuda.set_allocator: CuPy's memory comes from here, in the order of its current stream."""
    import cupy

    def get(size, device):
        out = ctypes.c_void_p()
        _expect(_library().cuaudit_allocate(size, device, cupy.cuda.get_current_stream().ptr, ctypes.byref(out)), "cupy_allocator")
        return out.value or 0

    def put(address, device):
        _library().cuaudit_free(address, 0, device, None)

    return cupy.cuda.PythonFunctionAllocator(get, put).malloc
