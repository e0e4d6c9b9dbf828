"""Small versions of published models: the shapes that their parameters and multiply-adds follow from."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

# Convolutional networks


def normed(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs))


class Residual(nn.Module):
    """Two 3 × 3 convolutions, or 1 × 1, 3 × 3 and 1 × 1 with four times the channels at the end."""

    def __init__(self, inputs: int, width: int, stride: int, *, bottleneck: bool) -> None:
        super().__init__()
        outputs = 4 * width if bottleneck else width
        if bottleneck:
            steps = [normed(inputs, width, 1), nn.ReLU(), normed(width, width, 3, stride), nn.ReLU()]
            self.path = nn.Sequential(*steps, normed(width, outputs, 1))
        else:
            self.path = nn.Sequential(normed(inputs, width, 3, stride), nn.ReLU(), normed(width, width, 3))
        plain = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if plain else normed(inputs, outputs, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.path(x) + self.shortcut(x))


def resnet(counts: tuple[int, ...], *, bottleneck: bool) -> nn.Sequential:
    stem = [normed(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs, stages = 64, list[nn.Module]()
    for stage, count in enumerate(counts):
        width = 64 << stage
        blocks: list[nn.Module] = []
        for block in range(count):
            stride = 2 if stage and not block else 1
            blocks.append(Residual(inputs, width, stride, bottleneck=bottleneck))
            inputs = 4 * width if bottleneck else width
        stages.append(nn.Sequential(*blocks))
    return nn.Sequential(*stem, *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


def vgg16() -> nn.Sequential:
    layers: list[nn.Module] = []
    inputs = 3
    for width, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            layers += [nn.Conv2d(inputs, width, 3, padding=1), nn.ReLU()]
            inputs = width
        layers.append(nn.MaxPool2d(2))
    head = [nn.Linear(512 * 7 * 7, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1000)]
    return nn.Sequential(*layers, nn.Flatten(), *head)


def alexnet() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 64, 11, 4, 2), nn.ReLU(), nn.MaxPool2d(3, 2),
        nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2),
        nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(),
        nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(),
        nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2),
        nn.Flatten(), nn.Dropout(), nn.Linear(256 * 6 * 6, 4096), nn.ReLU(),
        nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1000),
    )  # fmt: skip


# Transformers on images


class Encoder(nn.Module):
    """Norm, attention, norm, feed-forward, each added to what came in."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(size), nn.LayerNorm(size)
        self.attention = nn.MultiheadAttention(size, heads, batch_first=True)
        self.wide = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))

    def forward(self, x: Tensor) -> Tensor:
        y = self.before(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.wide(self.between(x))


class ViT(nn.Module):
    def __init__(self, size: int = 768, layers: int = 12, heads: int = 12, patch: int = 16) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, size, patch, patch)
        self.class_token = nn.Parameter(torch.zeros(1, 1, size))
        self.positions = nn.Parameter(torch.zeros(1, (224 // patch) ** 2 + 1, size))
        self.layers = nn.Sequential(*(Encoder(size, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(size), nn.Linear(size, 1000)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.patches(x).flatten(2).mT
        tokens = torch.cat([self.class_token.expand(len(x), -1, -1), tokens], 1) + self.positions
        return self.head(self.norm(self.layers(tokens))[:, 0])


class Windows(nn.Module):
    """Attention in 7 × 7 windows with a learned bias for each shift and head; every second one shifted."""

    def __init__(self, size: int, heads: int, shift: int) -> None:
        super().__init__()
        self.heads, self.shift = heads, shift
        self.bias = nn.Parameter(torch.zeros(13 * 13, heads))
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)

    def forward(self, x: Tensor) -> Tensor:
        batch, rows, cols, size = x.shape
        moved = x.roll((-self.shift, -self.shift), (1, 2))
        windows = moved.view(batch, rows // 7, 7, cols // 7, 7, size).transpose(2, 3).reshape(-1, 49, size)
        q, k, v = self.qkv(windows).view(-1, 49, 3, self.heads, size // self.heads).permute(2, 0, 3, 1, 4)
        place = torch.arange(7, device=x.device)
        apart = place[:, None] - place + 6
        shifts = (13 * apart[:, None, :, None] + apart[None, :, None, :]).view(49, 49)
        scores = q @ k.mT + self.bias[shifts].permute(2, 0, 1)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(-1, 49, size)
        back = self.out(mixed).view(batch, rows // 7, cols // 7, 7, 7, size).transpose(2, 3)
        return back.reshape(x.shape).roll((self.shift, self.shift), (1, 2))


class SwinBlock(nn.Module):
    def __init__(self, size: int, heads: int, shift: int) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(size), nn.LayerNorm(size)
        self.attention = Windows(size, heads, shift)
        self.wide = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.before(x))
        return x + self.wide(self.between(x))


class Merge(nn.Module):
    """Four neighbours side by side, then half as many channels."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.norm, self.reduce = nn.LayerNorm(4 * size), nn.Linear(4 * size, 2 * size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        corners = [x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)]
        return self.reduce(self.norm(torch.cat(corners, -1)))


class SwinT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches, self.first = nn.Conv2d(3, 96, 4, 4), nn.LayerNorm(96)
        stages: list[nn.Module] = []
        for stage, count in enumerate((2, 2, 6, 2)):
            size = 96 << stage
            blocks = (SwinBlock(size, 3 << stage, 3 * (block % 2)) for block in range(count))
            stages += [nn.Sequential(*blocks), *([Merge(size)] if stage < 3 else [])]
        self.stages = nn.Sequential(*stages)
        self.norm, self.head = nn.LayerNorm(768), nn.Linear(768, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(self.patches(x).permute(0, 2, 3, 1))
        return self.head(self.norm(self.stages(x)).mean((1, 2)))


# A language model


class Decoder(nn.Module):
    """Causal attention whose query heads share kv heads, then a gated feed-forward; no biases."""

    def __init__(self, size: int, heads: int, kv_heads: int, hidden: int) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, size // heads
        self.before, self.between = nn.RMSNorm(size), nn.RMSNorm(size)
        self.q, self.out = (nn.Linear(size, size, bias=False) for _ in "qo")
        self.k, self.v = (nn.Linear(size, kv_heads * self.head_dim, bias=False) for _ in "kv")
        self.gate, self.up = (nn.Linear(size, hidden, bias=False) for _ in "gu")
        self.down = nn.Linear(hidden, size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = self.before(x)
        q, k, v = (
            part(y).unflatten(-1, (-1, self.head_dim)).transpose(1, 2) for part in (self.q, self.k, self.v)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        y = self.between(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


def language_model(words: int, layers: int, size: int, heads: int, kv_heads: int, hidden: int) -> nn.Module:
    decoders = (Decoder(size, heads, kv_heads, hidden) for _ in range(layers))
    ends = (nn.RMSNorm(size), nn.Linear(size, words, bias=False))
    return nn.Sequential(nn.Embedding(words, size), nn.Sequential(*decoders), *ends)
