# SPDX-License-Identifier: MIT
"""What frameworks keep of the objects of lifecycles: grow_frameworks.py LIBRARY KIND [CYCLES], one function for each framework;
marked_cycles.py says how.
"""
import os
import sys

from marked_cycles import leave, main


def torch():
    """PyTorch: streams, events, graphs, pools, modules and tensors, made, used and destroyed."""
    try:
        import torch
    except ImportError as missing:
        leave(str(missing))

    def stream():
        one = torch.cuda.Stream()
        with torch.cuda.stream(one):
            total = torch.ones(1024, device="cuda").sum()
        one.synchronize()
        assert total.item() == 1024

    def event():
        first, second = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        torch.ones(1024, device="cuda").mul_(2)
        second.record()
        second.synchronize()
        first.elapsed_time(second)

    def graph():
        fixed = torch.ones(1024, device="cuda")
        warm = torch.cuda.Stream()
        warm.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(warm):
            _ = fixed * 2
        torch.cuda.current_stream().wait_stream(warm)
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            doubled = fixed * 2
        captured.replay()
        torch.cuda.synchronize()
        assert doubled[0].item() == 2
        captured.reset()

    def pool():
        if not hasattr(torch.cuda, "MemPool"):
            raise NotImplementedError("torch.cuda.MemPool")
        own = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(own):
            inside = torch.ones(1 << 20, device="cuda")
        assert inside[0].item() == 1
        del inside, own
        torch.cuda.empty_cache()

    count = 0

    def module():
        """A kernel compiled at run time: other source each time, so that no cache has it."""
        nonlocal count
        count += 1
        source = f'extern "C" __global__ void add(float* x, int n) {{ int i = threadIdx.x; if (i < n) x[i] += {count}; }}'
        kernel = torch.cuda._compile_kernel(source, "add")
        x = torch.zeros(32, device="cuda")
        kernel((1, 1, 1), (32, 1, 1), (x, 32))
        assert x[31].item() == count

    def jiterator():
        """As `module`, compiled by ATen."""
        nonlocal count
        count += 1
        add = torch.cuda.jiterator._create_jit_fn(f"template <typename T> T add_{count}(T x) {{ return x + {count}; }}")
        assert add(torch.zeros(32, device="cuda"))[31].item() == count

    def tensor():
        one = torch.ones(1 << 22, device="cuda")
        pinned = torch.empty(1 << 16, pin_memory=True)
        pinned.copy_(one[: 1 << 16])
        del one, pinned
        torch.cuda.empty_cache()

    def model():
        layers = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8)).cuda()
        layers(torch.randn(16, 64, device="cuda")).square().mean().backward()
        del layers
        torch.cuda.empty_cache()

    main(f"torch {torch.__version__}", {"stream": stream, "event": event, "graph": graph, "pool": pool, "module": module, "jiterator": jiterator, "tensor": tensor,
                                                      "model": model}, torch.cuda.synchronize,
                        {"stream": 40})  # torch.cuda.Stream() hands out 32 streams in turn, and each gets memory of its own once


def cupy():
    """CuPy: streams, events, graphs, pools, modules and plans, made, used and destroyed."""
    try:
        import cupy
    except ImportError as missing:
        leave(str(missing))

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
        nonlocal count
        count += 1
        loaded = cupy.RawModule(code=f'extern "C" __global__ void add(float* x) {{ x[threadIdx.x] += {count}; }}')
        x = cupy.zeros(32, dtype=cupy.float32)
        loaded.get_function("add")((1,), (32,), (x,))
        assert float(x[31]) == count

    def plan():
        spectrum = cupy.fft.fft(cupy.ones(4096, dtype=cupy.complex64))
        assert abs(complex(spectrum[0])) == 4096
        cupy.fft.config.get_plan_cache().clear()

    main(f"cupy {cupy.__version__}", {"stream": stream, "event": event, "graph": graph, "pool": pool, "asynchronous_pool": asynchronous_pool,
                                                    "module": module, "plan": plan}, cupy.cuda.runtime.deviceSynchronize)


def jax():
    """JAX: arrays and compiled functions, made, used and destroyed."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        import jax
        import jax.numpy as jnp
    except ImportError as missing:
        leave(str(missing))

    def array():
        one = jax.device_put(jnp.ones((1024, 1024), dtype=jnp.float32)).block_until_ready()
        one.delete()

    count = 0

    def module():
        """A function that is compiled anew each time and dropped from all caches."""
        nonlocal count
        count += 1
        constant = count
        assert float(jax.jit(lambda x: x * constant + 1)(jnp.ones(())).block_until_ready()) == constant + 1
        jax.clear_caches()

    def graph():
        """Enough small operations in one compiled function for XLA to make a command buffer of them."""
        def steps(x):
            for i in range(8):
                x = jnp.sin(x @ x) + i
            return x.sum()
        jax.jit(steps)(jnp.ones((32, 32), dtype=jnp.float32)).block_until_ready()
        jax.clear_caches()

    if jax.devices()[0].platform != "gpu":
        leave(f"jax {jax.__version__} has no GPU back end here")
    main(f"jax {jax.__version__}", {"array": array, "module": module, "graph": graph}, lambda: jnp.zeros(()).block_until_ready())


def numba():
    """Numba: streams, events, memory and kernels, made, used and destroyed."""
    try:
        import numpy
        if not hasattr(numpy, "row_stack"):
            numpy.row_stack = numpy.vstack  # numba 0.68.0 asks for it when it compiles a kernel, NumPy 2.5 has it no more
        from numba import __version__, cuda
    except ImportError as missing:
        leave(str(missing))

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
        nonlocal count
        count += 1
        constant = numpy.float32(count)

        @cuda.jit
        def add(x):
            x[cuda.threadIdx.x] += constant
        x = cuda.to_device(numpy.zeros(32, dtype=numpy.float32))
        add[1, 32](x)
        assert x.copy_to_host()[31] == count

    if not cuda.is_available():
        leave(f"numba {__version__} finds no driver")
    main(f"numba {__version__}", {"stream": stream, "event": event, "memory": memory, "module": module}, cuda.synchronize)


if __name__ == "__main__":
    {library.__name__: library for library in (torch, cupy, jax, numba)}[sys.argv.pop(1)]()
