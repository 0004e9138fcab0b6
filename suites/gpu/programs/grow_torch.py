# SPDX-License-Identifier: MIT
"""PyTorch: streams, events, graphs, pools, modules and tensors, made, used and destroyed; marked_cycles.py says how."""
import marked_cycles

try:
    import torch
except ImportError as missing:
    marked_cycles.leave(str(missing))


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
    global count
    count += 1
    source = f'extern "C" __global__ void add(float* x, int n) {{ int i = threadIdx.x; if (i < n) x[i] += {count}; }}'
    kernel = torch.cuda._compile_kernel(source, "add")
    x = torch.zeros(32, device="cuda")
    kernel((1, 1, 1), (32, 1, 1), (x, 32))
    assert x[31].item() == count


def jiterator():
    """As `module`, compiled by ATen."""
    global count
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


if __name__ == "__main__":
    marked_cycles.main(f"torch {torch.__version__}", {"stream": stream, "event": event, "graph": graph, "pool": pool, "module": module, "jiterator": jiterator, "tensor": tensor,
                                                      "model": model}, torch.cuda.synchronize,
                        {"stream": 40})  # torch.cuda.Stream() hands out 32 streams in turn, and each gets memory of its own once
