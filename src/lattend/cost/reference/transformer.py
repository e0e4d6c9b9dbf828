"""What is made of layers, on lists: blocks, stacks of them, a language model, an image classifier, a VAE.

Each layer in them is one unit: a norm, an attention, a feed-forward net, a residual, a map, a sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lattend.cost.reference.attention import Mask, attention
from lattend.cost.reference.convolution import Image, patch_embedding
from lattend.cost.reference.numbers import exp, unit
from lattend.cost.reference.tokenwise import embedding, feed_forward, layer_norm, linear, rms_norm
from lattend.cost.reference.vectors import Matrix, Weights, each, part, plus

Masks = Sequence[Mask]
Change = Callable[[Matrix], Matrix]


def normed(tokens: Matrix, weights: Weights, name: str) -> Matrix:
    """A layer norm where there is a bias, otherwise an RMS norm."""
    own = part(weights, name)
    return unit(layer_norm(tokens, own) if "bias" in own else rms_norm(tokens, own))


def added(left: Matrix, right: Matrix) -> Matrix:
    """Two lists of tokens added."""
    return unit([plus(x, y) for x, y in zip(left, right, strict=True)])


def block(
    tokens: Matrix,
    weights: Weights,
    masks: Masks,
    *,
    activation: str = "gelu",
    norm_first: bool = True,
    scale: float | None = None,
    memory: Matrix | None = None,
) -> Matrix:
    """Attention, to `memory` too if there is one, and a feed-forward net, each with norm and residual."""

    def step(tokens: Matrix, name: str, change: Change) -> Matrix:
        if norm_first:
            return added(tokens, unit(change(normed(tokens, weights, name))))
        return normed(added(tokens, unit(change(tokens))), weights, name)

    def attend(x: Matrix) -> Matrix:
        return attention(x, x, part(weights, "attention"), masks, scale=scale)

    def attend_to_memory(x: Matrix) -> Matrix:
        everything = [[[True] * len(memory or ())] * len(x)] * len(masks)
        return attention(x, memory or [], part(weights, "cross"), everything, scale=scale)

    tokens = step(tokens, "norm1", attend)
    if memory:
        tokens = step(tokens, "norm3", attend_to_memory)
    return step(tokens, "norm2", lambda x: feed_forward(x, weights, activation))


def stack(tokens: Matrix, weights: Weights, masks: Masks, **options: Any) -> Matrix:
    """Stacked blocks: layers "0", "1", … of the weights, each with the options of `block`."""
    for layer in range(1 + max(int(name.split(".")[0]) for name in weights)):
        tokens = block(tokens, part(weights, str(layer)), masks, **options)
    return tokens


def language_model(
    words: Sequence[int],
    weights: Weights,
    masks: Masks,
    scale: float | None = None,
    memory: Matrix | None = None,
) -> Matrix:
    """Embedding, blocks, a norm and a map to the vocabulary: the embedding's own table if there is none."""
    tokens = unit(embedding(words, part(weights, "embedding")))
    tokens = stack(tokens, part(weights, "blocks"), masks, scale=scale, memory=memory)
    tokens = normed(tokens, weights, "norm")
    return unit(linear(tokens, part(weights, "output") or part(weights, "embedding")))


def vit(image: Image, weights: Weights, heads: int, scale: float | None = None) -> Matrix:
    """Patches behind a class token, positions, blocks, a norm; then the class token's classes."""
    tokens = [weights["class"], *unit(patch_embedding(image, part(weights, "patches")))]
    tokens = added(tokens, weights["positions"])
    everything = [[[True] * len(tokens)] * len(tokens)] * heads
    tokens = normed(stack(tokens, part(weights, "blocks"), everything, scale=scale), weights, "norm")
    return unit(linear(tokens[:1], part(weights, "head")))


def vae(examples: Matrix, weights: Weights, noise: Matrix) -> Matrix:
    """Z = mean + exp(spread / 2) * noise between an encoder and a decoder, each with one hidden layer."""

    def mapped(x: Matrix, name: str) -> Matrix:
        return unit(linear(x, part(weights, name)))

    def bent(x: Matrix) -> Matrix:
        return unit([each("relu", row) for row in x])

    hidden = bent(mapped(examples, "encoder"))
    means, spreads = mapped(hidden, "mean"), mapped(hidden, "spread")
    latent = unit(
        [
            [mean + exp(0.5 * spread) * e for mean, spread, e in zip(*rows, strict=True)]
            for rows in zip(means, spreads, noise, strict=True)
        ]
    )
    return mapped(bent(mapped(latent, "decoder")), "output")
