# SPDX-License-Identifier: MIT
"""PyTorch in production: training steps, marked as cycles, with a leak through the driver API. `cuaudit record` writes it down.

    torch_recorded.py [STEPS] [LEAKS]      default 12 and 3: each of the last LEAKS steps loses a stream

Exit 77: no PyTorch, or no GPU. Prints what was computed, the same with and without a recording, and the seconds of the steps on stderr.
"""
import ctypes
import sys
import time

import marked_cycles

try:
    import torch
except ImportError as missing:
    marked_cycles.leave(str(missing))
if not torch.cuda.is_available():
    marked_cycles.leave("no GPU that PyTorch can use")

driver = ctypes.CDLL("libcuda.so.1")


def forget_stream():
    stream = ctypes.c_void_p()
    assert driver.cuStreamCreate(ctypes.byref(stream), 1) == 0


def train(model, optimizer, batch, target):
    optimizer.zero_grad(set_to_none=True)
    loss = torch.nn.functional.mse_loss(model(batch), target)
    loss.backward()
    optimizer.step()
    return loss


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    leaks = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[layer for _ in range(4) for layer in (torch.nn.Linear(512, 512), torch.nn.ReLU())]).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    batch, target = torch.randn(256, 512, device="cuda"), torch.randn(256, 512, device="cuda")
    for _ in range(3):
        train(model, optimizer, batch, target)
    torch.cuda.synchronize()
    began = time.monotonic()
    for step in range(steps):
        marked_cycles.mark(marked_cycles.BEGIN)
        loss = train(model, optimizer, batch, target)
        if step >= steps - leaks:
            forget_stream()
        marked_cycles.mark(marked_cycles.END)
    torch.cuda.synchronize()
    print(f"{time.monotonic() - began:.6f}", file=sys.stderr)
    print(f"{loss.item():.6f}")


if __name__ == "__main__":
    main()
