# SPDX-License-Identifier: MIT
"""Numba: streams, events, memory and kernels, made, used and destroyed; marked_cycles.py says how."""
import marked_cycles

try:
    import numpy
    if not hasattr(numpy, "row_stack"):
        numpy.row_stack = numpy.vstack  # numba 0.68.0 asks for it when it compiles a kernel, NumPy 2.5 has it no more
    from numba import __version__, cuda
except ImportError as missing:
    marked_cycles.leave(str(missing))


def stream():
    one = cuda.stream()
    data = cuda.to_device(numpy.ones(1024, dtype=numpy.float32), stream=one)
    one.synchronize()
    assert data.copy_to_host()[0] == 1


def event():
    first, second = cuda.event(), cuda.event()
    first.record()
    second.record()
    second.synchronize()
    cuda.event_elapsed_time(first, second)


def memory():
    device, pinned = cuda.device_array(1 << 20, dtype=numpy.float32), cuda.pinned_array(1024, dtype=numpy.float32)
    pinned[:] = 3
    device[:1024].copy_to_device(pinned)
    assert device[0] == 3


count = 0


def module():
    """Another constant each time, so that it is compiled and loaded anew."""
    global count
    count += 1
    constant = numpy.float32(count)

    @cuda.jit
    def add(x):
        x[cuda.threadIdx.x] += constant
    x = cuda.to_device(numpy.zeros(32, dtype=numpy.float32))
    add[1, 32](x)
    assert x.copy_to_host()[31] == count


if __name__ == "__main__":
    if not cuda.is_available():
        marked_cycles.leave(f"numba {__version__} finds no driver")
    marked_cycles.main(f"numba {__version__}", {"stream": stream, "event": event, "memory": memory, "module": module}, cuda.synchronize)
