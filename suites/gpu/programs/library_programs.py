# SPDX-License-Identifier: MIT
"""A little work with a library of the GPU, and a line that says what it computed.

    library_programs.py pytorch [STEPS]     streams, events, a matrix product and a captured graph that is launched STEPS times
    library_programs.py cupy                arrays, a raw kernel, streams, pinned memory
    library_programs.py jax                 a jitted function
"""
import os
import sys


def pytorch(steps=20):
    import torch

    torch.manual_seed(0)
    device = torch.device("cuda")
    a = torch.randn(512, 512, device=device)
    b = torch.randn(512, 512, device=device)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            c = a @ b
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        d = torch.relu(a @ b)
    for _ in range(int(steps)):
        graph.replay()
        e = torch.softmax(d @ a, dim=1)
        event = torch.cuda.Event()
        event.record()
        event.synchronize()
    torch.cuda.synchronize()
    print(f"{c.double().sum().item():.3f} {d.double().sum().item():.3f} {e.double().sum().item():.3f}")


def cupy():
    import cupy

    kernel = cupy.RawKernel(r"""
extern "C" __global__ void twice(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}""", "twice")
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        x = cupy.arange(1 << 16, dtype=cupy.float32)
        y = cupy.empty_like(x)
        kernel(((1 << 16) // 256,), (256,), (x, y, 1 << 16))
        total = y.sum(dtype=cupy.float64)
    stream.synchronize()
    pinned = cupy.cuda.alloc_pinned_memory(4096)
    print(f"{float(total):.1f} {pinned.size()}")


def jax():
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    import jax.numpy as jnp

    @jax.jit
    def work(x):
        return jnp.tanh(x @ x.T).sum()

    x = jnp.arange(64 * 64, dtype=jnp.float32).reshape(64, 64) / 4096
    print(f"{jax.devices()[0].platform} {float(work(x)):.3f}")


{"pytorch": pytorch, "cupy": cupy, "jax": jax}[sys.argv[1]](*sys.argv[2:])
