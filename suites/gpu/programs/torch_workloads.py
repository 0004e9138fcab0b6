# SPDX-License-Identifier: MIT
"""What users of PyTorch do on a GPU, small enough for minutes: the same arithmetic on any allocator.

Each workload is a generator. It yields None when its model is there, then the numbers that it computes. torch_trace.py records what they ask of
an allocator, torch_end_to_end.py runs them on several.
"""
import threading

import torch
from torch import nn
from torch.nn import functional

WIDTH, HEADS, VOCABULARY = 512, 8, 16384
THREADS = 16  # of the server



def tell_stream(tensor, stream):
    """Says that the stream uses the tensor. torch_trace.py puts another function here, to know when."""
    tensor.record_stream(stream)


class Block(nn.Module):
    """A layer of a transformer that may keep keys and values of earlier tokens."""

    def __init__(self):
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.three, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, kept=None):
        batch, length, _ = x.shape
        query, key, value = (part.view(batch, length, HEADS, -1).transpose(1, 2) for part in self.three(self.before(x)).chunk(3, -1))
        if kept is not None:
            key, value = torch.cat((kept[0], key), 2), torch.cat((kept[1], value), 2)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=kept is None)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.wide(self.after(x)), (key, value)


class Transformer(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.out = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens, kept=None):
        x, now = self.words(tokens), []
        for number, block in enumerate(self.blocks):
            x, cached = block(x, None if kept is None else kept[number])
            now.append(cached)
        return self.out(x), now


def step_of(model, optimizer, tokens, labels):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = functional.cross_entropy(model(tokens)[0].flatten(0, 1), labels.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def transformer():
    """Training steps of changing length, each batch copied by a stream of its own, as loaders do; then text is generated."""
    copying, computing = torch.cuda.Stream(), torch.cuda.current_stream()
    model = Transformer(8).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    yield None
    for length in (768, 512, 1024, 640, 896, 320):
        batch = torch.randint(VOCABULARY, (2, 8, length)).pin_memory()
        with torch.cuda.stream(copying):
            tokens, labels = batch[0].to("cuda", non_blocking=True), batch[1].to("cuda", non_blocking=True)
        computing.wait_stream(copying)
        for tensor in (tokens, labels):
            tell_stream(tensor, computing)
        yield step_of(model, optimizer, tokens, labels)
    yield from answers(model, 4, 64, 32)


@torch.no_grad()
def answers(model, requests, prompt, more):
    """Greedy decoding of a batch, keys and values kept and grown by one token a step."""
    tokens = torch.randint(VOCABULARY, (requests, prompt), device="cuda")
    kept = None
    for _ in range(more):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits, kept = model(tokens, kept)
        tokens = logits[:, -1].argmax(-1, keepdim=True)
    yield float(tokens.sum().item())


def generation():
    """Inference with growing caches of keys and values: batches of different sizes and lengths come and go."""
    model = Transformer(6).cuda().half()
    yield None
    for requests, prompt, more in ((8, 256, 40), (2, 1024, 24), (16, 128, 32), (1, 1536, 50), (4, 512, 40), (12, 320, 24)):
        yield from answers(model, requests, prompt, more)


def residual(wide, to, stride):
    narrow = to // 4
    return nn.Sequential(nn.Conv2d(wide, narrow, 1, bias=False), nn.BatchNorm2d(narrow), nn.ReLU(inplace=True),
                         nn.Conv2d(narrow, narrow, 3, stride, 1, bias=False), nn.BatchNorm2d(narrow), nn.ReLU(inplace=True),
                         nn.Conv2d(narrow, to, 1, bias=False), nn.BatchNorm2d(to))


class Residual(nn.Module):
    def __init__(self, wide, to, stride):
        super().__init__()
        self.body = residual(wide, to, stride)
        self.shortcut = nn.Identity() if wide == to else nn.Sequential(nn.Conv2d(wide, to, 1, stride, bias=False), nn.BatchNorm2d(to))

    def forward(self, x):
        return functional.relu(self.body(x) + self.shortcut(x))


def resnet_50():
    blocks, wide = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)], 64
    for stage, count in enumerate((3, 4, 6, 3)):
        for number in range(count):
            blocks.append(Residual(wide, 256 << stage, 2 if stage > 0 and number == 0 else 1))
            wide = 256 << stage
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(wide, 1000))


def resnet():
    """ResNet-50 is trained on pictures of noise."""
    model = resnet_50().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    yield None
    for _ in range(12):
        pictures = torch.randn(64, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
        labels = torch.randint(1000, (64,), device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = functional.cross_entropy(model(pictures), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss.item()


class Noise(nn.Module):
    """A U-Net with two levels."""

    def __init__(self, wide=128):
        super().__init__()
        self.first = nn.Conv2d(4, wide, 3, 1, 1)
        self.down = nn.ModuleList((self.level(wide, wide), self.level(wide, 2 * wide)))
        self.middle = self.level(2 * wide, 2 * wide)
        self.up = nn.ModuleList((self.level(4 * wide, wide), self.level(2 * wide, wide)))
        self.last = nn.Conv2d(wide, 4, 3, 1, 1)

    @staticmethod
    def level(wide, to):
        return nn.Sequential(nn.GroupNorm(8, wide), nn.SiLU(), nn.Conv2d(wide, to, 3, 1, 1), nn.GroupNorm(8, to), nn.SiLU(), nn.Conv2d(to, to, 3, 1, 1))

    def forward(self, x):
        x, sides = self.first(x), []
        for level in self.down:
            x = level(x)
            sides.append(x)
            x = functional.avg_pool2d(x, 2)
        x = self.middle(x)
        for level in self.up:
            x = functional.interpolate(x, scale_factor=2.0)
            x = level(torch.cat((x, sides.pop()), 1))
        return self.last(x)


@torch.no_grad()
def diffusion():
    """Noise is taken from pictures step by step, for requests of several sizes, with and without guidance."""
    model = Noise().cuda().half()
    yield None
    for count, size, steps in ((4, 64, 20), (1, 128, 25), (2, 96, 20), (6, 64, 15), (1, 160, 20), (3, 96, 20)):
        picture = torch.randn(count, 4, size, size, device="cuda", dtype=torch.half)
        for step in range(steps):
            both = model(torch.cat((picture, picture * 0.9)))
            without, guided = both.chunk(2)
            picture = (picture - (without + 3 * (guided - without)) / (steps + step)).clamp(-4, 4)
        yield float(picture.float().sum().item())


class Adapter(nn.Module):
    """A linear layer that is kept as it is, and a product of two small ones that learns."""

    def __init__(self, layer, rank=16):
        super().__init__()
        self.layer, self.into, self.out = layer, nn.Linear(layer.in_features, rank, bias=False), nn.Linear(rank, layer.out_features, bias=False)
        layer.requires_grad_(False)

    def forward(self, x):
        return self.layer(x) + self.out(self.into(x))


def finetuning():
    """Adapters learn from batches of whatever length the texts have."""
    model = Transformer(6).requires_grad_(False)
    for block in model.blocks:
        block.three, block.out = Adapter(block.three), Adapter(block.out)
    model.cuda()
    optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad])
    lengths = torch.randint(64, 1200, (16,)).tolist()
    yield None
    for length in lengths:
        tokens = torch.randint(VOCABULARY, (max(1, 4096 // length), length), device="cuda")
        yield step_of(model, optimizer, tokens, tokens.roll(-1, 1))


def server():
    """Requests of sixteen threads, each on its own stream; another stream copies the answers out."""
    model = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)).cuda().half()
    lengths = torch.randint(16, 2048, (THREADS, 60)).tolist()
    sums = [0.0] * THREADS
    torch.cuda.synchronize()
    yield None

    def serve(number):
        mine, copying = torch.cuda.Stream(), torch.cuda.Stream()
        with torch.no_grad(), torch.cuda.stream(mine):
            for length in lengths[number]:
                request = torch.full((length, WIDTH), (length % 7) / 7, device="cuda", dtype=torch.half)
                answer = model(request)
                copying.wait_stream(mine)
                with torch.cuda.stream(copying):
                    copied = answer.float().sum().to("cpu", non_blocking=False)
                tell_stream(answer, copying)
                sums[number] += float(copied)

    threads = [threading.Thread(target=serve, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    yield sum(sums)


WORKLOADS = {"resnet": resnet, "transformer": transformer, "server": server, "generation": generation, "diffusion": diffusion, "finetuning": finetuning}
