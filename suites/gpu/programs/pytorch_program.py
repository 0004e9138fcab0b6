# SPDX-License-Identifier: MIT
"""PyTorch: streams, events, a matrix product and a captured graph. Prints what it computed; the loop length is the first argument."""
import sys

import torch

torch.manual_seed(0)
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20
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
for _ in range(steps):
    graph.replay()
    e = torch.softmax(d @ a, dim=1)
    event = torch.cuda.Event()
    event.record()
    event.synchronize()
torch.cuda.synchronize()
print(f"{c.double().sum().item():.3f} {d.double().sum().item():.3f} {e.double().sum().item():.3f}")
