# SPDX-License-Identifier: MIT
"""CuPy: arrays, a raw kernel, streams, pinned memory. Prints what it computed."""
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
