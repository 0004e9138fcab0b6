# SPDX-License-Identifier: MIT
"""Bytes on a device, by a CUDA driver that ctypes loads. Knows nothing of cuaudit."""
import ctypes
from ctypes import byref, c_size_t, c_uint64, c_void_p


class Device:
    """The primary context of the first device, current on this thread."""

    def __init__(self):
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._call("cuInit", 0)
        context = c_void_p()
        self._call("cuDevicePrimaryCtxRetain", byref(context), 0)
        self._call("cuCtxSetCurrent", context)

    def _call(self, name, *arguments):
        code = getattr(self._driver, name)(*arguments)
        if code != 0:
            raise RuntimeError(f"{name}: CUDA error {code}")

    def name(self):
        name = ctypes.create_string_buffer(128)
        self._call("cuDeviceGetName", name, len(name), 0)
        return name.value.decode()

    def there_and_back(self, sent):
        """Sends the bytes to the device and fetches them again."""
        memory, got = c_uint64(), ctypes.create_string_buffer(len(sent))
        self._call("cuMemAlloc_v2", byref(memory), c_size_t(len(sent)))
        try:
            self._call("cuMemcpyHtoD_v2", memory, sent, c_size_t(len(sent)))
            self._call("cuMemcpyDtoH_v2", got, memory, c_size_t(len(sent)))
        finally:
            self._call("cuMemFree_v2", memory)
        return got.raw

    def close(self):
        self._call("cuDevicePrimaryCtxRelease_v2", 0)
