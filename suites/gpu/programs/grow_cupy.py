# SPDX-License-Identifier: MIT
"""CuPy: streams, events, graphs, pools, modules and plans, made, used and destroyed; marked_cycles.py says how."""
import marked_cycles

try:
    import cupy
except ImportError as missing:
    marked_cycles.leave(str(missing))


def stream():
    one = cupy.cuda.Stream(non_blocking=True)
    with one:
        total = cupy.ones(1024, dtype=cupy.float32).sum()
    one.synchronize()
    assert float(total) == 1024


def event():
    first, second = cupy.cuda.Event(), cupy.cuda.Event()
    first.record()
    second.record()
    second.synchronize()
    cupy.cuda.get_elapsed_time(first, second)


def graph():
    x = cupy.ones(1024, dtype=cupy.float32)
    one = cupy.cuda.Stream(non_blocking=True)
    with one:
        x *= 1
        one.synchronize()
        one.begin_capture()
        x *= 2
        captured = one.end_capture()
    captured.launch(one)
    one.synchronize()
    assert float(x[0]) == 2


def pool():
    own = cupy.cuda.MemoryPool()
    with cupy.cuda.using_allocator(own.malloc):
        inside = cupy.ones(1 << 20, dtype=cupy.float32)
    assert float(inside[0]) == 1
    del inside
    own.free_all_blocks()


def asynchronous_pool():
    own = cupy.cuda.MemoryAsyncPool()
    with cupy.cuda.using_allocator(own.malloc):
        inside = cupy.ones(1 << 20, dtype=cupy.float32)
    assert float(inside[0]) == 1
    del inside
    own.free_all_blocks()


count = 0


def module():
    """Other source each time, so that no cache has it."""
    global count
    count += 1
    loaded = cupy.RawModule(code=f'extern "C" __global__ void add(float* x) {{ x[threadIdx.x] += {count}; }}')
    x = cupy.zeros(32, dtype=cupy.float32)
    loaded.get_function("add")((1,), (32,), (x,))
    assert float(x[31]) == count


def plan():
    spectrum = cupy.fft.fft(cupy.ones(4096, dtype=cupy.complex64))
    assert abs(complex(spectrum[0])) == 4096
    cupy.fft.config.get_plan_cache().clear()


if __name__ == "__main__":
    marked_cycles.main(f"cupy {cupy.__version__}", {"stream": stream, "event": event, "graph": graph, "pool": pool, "asynchronous_pool": asynchronous_pool,
                                                    "module": module, "plan": plan}, cupy.cuda.runtime.deviceSynchronize)
