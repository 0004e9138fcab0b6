#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The allocator's Python package as a user gets it: a wheel, unpacked, under stand-ins for PyTorch and CuPy, on the simulated driver.

    wheel_test.py MAKE_ALLOC_WHEEL.PY SOURCE LIBRARY

The stand-ins have what the package touches of the real modules and nothing else; suites/gpu/programs/torch_allocator_program.py runs PyTorch.
"""
import base64
import csv
import ctypes
import hashlib
import io
import os
import subprocess
import sys
import tempfile
import types
import unittest
import zipfile
from pathlib import Path

make, source, library = sys.argv[1:]
STREAM = ctypes.c_void_p


class Inner:
    """What CUDAPluggableAllocator.allocator() answers: it notes the hooks."""

    def __init__(self, without=()):
        self.hooks = {}
        for name in ("set_init_fn", "set_reset_fn", "set_memory_fraction_fn", "set_base_alloc_fn", "set_record_stream_fn",
                     "set_begin_allocate_to_pool", "set_end_allocate_to_pool_fn", "set_release_pool"):
            if name not in without:
                setattr(self, name, lambda address, name=name: self.hooks.__setitem__(name, address))


class Pluggable:
    without = ()

    def __init__(self, path, get, put):
        self.names = (get, put)
        self.functions = ctypes.CDLL(path)
        self.inner = Inner(self.without)

    def allocator(self):
        return self.inner


class Tensor:
    def __init__(self, address):
        self.address = address

    def data_ptr(self):
        return self.address


class TorchStream:
    def __init__(self, handle):
        self.cuda_stream = handle


def stand_in():
    torch = types.ModuleType("torch")
    torch.cuda = types.ModuleType("torch.cuda")
    torch.cuda.memory = types.ModuleType("torch.cuda.memory")
    torch.cuda.memory.CUDAPluggableAllocator = Pluggable
    torch.changed_to = []
    torch.cuda.memory.change_current_allocator = torch.changed_to.append
    torch.cuda.MemPool = lambda allocator: ("pool of", allocator)
    cupy = types.ModuleType("cupy")
    cupy.cuda = types.ModuleType("cupy.cuda")

    class PythonFunctionAllocator:
        def __init__(self, get, put):
            self.get, self.put = get, put

        def malloc(self, size):
            return self.get(size, 0)

    cupy.cuda.PythonFunctionAllocator = PythonFunctionAllocator
    sys.modules.update({"torch": torch, "torch.cuda": torch.cuda, "torch.cuda.memory": torch.cuda.memory, "cupy": cupy, "cupy.cuda": cupy.cuda})
    return torch, cupy


class Wheel(unittest.TestCase):
    """In order: the package keeps what it has loaded, as in a program."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        where = Path(cls.folder.name)
        arguments = [sys.executable, make, "--source", source, "--library", library, "--version", "1.2.3", "--platform", "linux_x86_64", "--out"]
        cls.wheels = [subprocess.run([*arguments, str(where / one)], check=True, capture_output=True, text=True).stdout.strip() for one in "ab"]
        cls.refused = subprocess.run([*arguments[:-5], "--version", "1/../2", *arguments[-3:], str(where)], capture_output=True, text=True)
        with zipfile.ZipFile(cls.wheels[0]) as archive:
            archive.extractall(where / "site")
            cls.files = {name: archive.read(name) for name in archive.namelist()}
        sys.path.insert(0, str(where / "site"))
        cls.torch, cls.cupy = stand_in()
        driver = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        assert driver.cuInit(0) == 0 and driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and driver.cuCtxSetCurrent(context) == 0
        cls.streams = []
        for _ in range(2):
            stream = STREAM()
            assert driver.cuStreamCreate(ctypes.byref(stream), 1) == 0
            cls.streams.append(stream.value)
        cls.cupy.cuda.get_current_stream = lambda: types.SimpleNamespace(ptr=cls.streams[0])
        import cuaudit_alloc
        cls.alloc = cuaudit_alloc

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_a_the_wheel_is_one(self):
        self.assertEqual(Path(self.wheels[0]).name, "cuaudit_alloc-1.2.3-py3-none-linux_x86_64.whl")
        self.assertEqual(Path(self.wheels[0]).read_bytes(), Path(self.wheels[1]).read_bytes(), "the same input, the same bytes")
        self.assertIn(b"Version: 1.2.3\n", self.files["cuaudit_alloc-1.2.3.dist-info/METADATA"])
        self.assertIn(b"Tag: py3-none-linux_x86_64\n", self.files["cuaudit_alloc-1.2.3.dist-info/WHEEL"])
        rows = list(csv.reader(io.StringIO(self.files["cuaudit_alloc-1.2.3.dist-info/RECORD"].decode())))
        self.assertEqual({row[0] for row in rows}, set(self.files))
        for name, digest, size in rows:
            if name.endswith("RECORD"):
                self.assertEqual((digest, size), ("", ""))
                continue
            sha = base64.urlsafe_b64encode(hashlib.sha256(self.files[name]).digest()).rstrip(b"=").decode()
            self.assertEqual((digest, int(size)), ("sha256=" + sha, len(self.files[name])), name)
        self.assertEqual((self.refused.returncode, self.refused.stdout), (1, ""))
        self.assertIn("numbers and dots expected", self.refused.stderr)

    def test_b_wrong_settings_change_nothing(self):
        os.environ.pop("CUAUDIT_ALLOC_CONF", None)
        with self.assertRaisesRegex(ValueError, "CUAUDIT_ALLOC_CONF: .*policy"):
            self.alloc.enable("policy:sometimes")
        self.assertNotIn("CUAUDIT_ALLOC_CONF", os.environ)
        self.assertEqual(self.torch.changed_to, [])

    def test_c_without_record_stream_nothing_is_changed(self):
        Pluggable.without = ("set_record_stream_fn",)
        with self.assertRaisesRegex(self.alloc.AllocatorError, "no set_record_stream_fn"):
            self.alloc.enable()
        Pluggable.without = ("set_release_pool",)
        self.assertEqual(self.torch.changed_to, [])

    def test_d_enable(self):
        self.alloc.enable("policy:wait,max_split_size_mb:128")
        [one] = self.torch.changed_to
        self.assertEqual(one.names, ("cuaudit_malloc", "cuaudit_free"))
        # This PyTorch lacks a hook; the others are the library's functions.
        expected = {"set_init_fn": "cuaudit_init", "set_reset_fn": "cuaudit_reset", "set_memory_fraction_fn": "cuaudit_memory_fraction",
                    "set_base_alloc_fn": "cuaudit_base_alloc", "set_record_stream_fn": "cuaudit_record_stream",
                    "set_begin_allocate_to_pool": "cuaudit_begin_allocate_to_pool", "set_end_allocate_to_pool_fn": "cuaudit_end_allocate_to_pool"}
        found = {hook: ctypes.cast(getattr(one.functions, name), ctypes.c_void_p).value for hook, name in expected.items()}
        self.assertEqual(one.inner.hooks, found)
        self.assertEqual(self.alloc.memory_pool(), ("pool of", one.inner))
        with self.assertRaisesRegex(self.alloc.AllocatorError, "already"):
            self.alloc.enable()

    def test_e_uses_are_recorded(self):
        get = self.alloc._allocator().functions.cuaudit_malloc
        get.restype, get.argtypes = ctypes.c_void_p, (ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
        put = self.alloc._allocator().functions.cuaudit_free
        put.restype, put.argtypes = None, (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
        address = get(4096, 0, self.streams[0])
        before = self.alloc.statistic("uses_recorded")
        self.alloc.record_use(Tensor(address + 8), TorchStream(self.streams[1]))
        self.alloc.record_use(address, self.streams[1])
        self.assertEqual(self.alloc.statistic("uses_recorded"), before + 2)
        self.alloc.record_use(Tensor(0), TorchStream(self.streams[1]))  # an empty tensor
        for wrong in ("a text", None, 1.5):
            with self.assertRaises(TypeError):
                self.alloc.record_use(wrong, TorchStream(self.streams[1]))
            with self.assertRaises(TypeError):
                self.alloc.record_use(Tensor(address), wrong)
        with self.assertRaisesRegex(self.alloc.AllocatorError, "in no live block"):
            self.alloc.record_use(8, self.streams[1])
        with self.assertRaisesRegex(self.alloc.AllocatorError, "no_such_counter"):
            self.alloc.statistic("no_such_counter")
        put(address, 4096, 0, self.streams[0])
        file = Path(self.folder.name) / "snapshot.pickle"
        self.alloc.snapshot(file)
        self.assertEqual(file.read_bytes()[:1], b"\x80")
        with self.assertRaises(self.alloc.AllocatorError):
            self.alloc.snapshot(Path(self.folder.name) / "no" / "folder")

    def test_f_cupy(self):
        get = self.alloc.cupy_allocator()
        address = get(1000)
        self.assertNotEqual(address, 0)
        self.assertEqual(self.alloc.statistic("allocation.all.current"), 1)
        array = types.SimpleNamespace(data=types.SimpleNamespace(ptr=address))
        self.alloc.record_use(array, types.SimpleNamespace(ptr=self.streams[1]))
        get.__self__.put(address, 0)
        self.assertEqual(self.alloc.statistic("allocation.all.current"), 0)
        self.assertEqual(get(0), 0)
        with self.assertRaisesRegex(self.alloc.AllocatorError, "out of memory on device 0"):
            get(1 << 50)


unittest.main(argv=sys.argv[:1], verbosity=2)
