"""Attention as the matrices of its heads: one, several, the quadratic encoding, its limit, equal weights."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np

from lattend.study.derivations.draft import Chain, Draft, Instances, Link
from lattend.study.derivations.evaluation import Environment, exact_array, vector
from lattend.study.exact.function import symbols
from lattend.study.exact.numbers import exact

TOKENS, WIDTH, HEADS = 3, 2, 2
MODELS = 3
IMAGE = 3  # rows and columns of the image that the limit is checked on


def mhsa() -> Draft:
    """MHSA(Z)_q = Σ_h (Σ_k softmax(A^(h)_q)_k Z_k) W^(h) + b_out, out of the definition of one head."""
    definitions = [
        ("Q", "Z W_q", "queries"),
        ("K", "Z W_k", "keys"),
        ("V", "Z W_v", "values"),
        ("A{h}", "Z W_q{h} W_k{h}.T Z.T", "scores of head h"),
        ("O{h}[q]", "softmax(A{h}[q]) Z W_v{h}", "what head h gives for query q"),
        ("W{h}", "W_v{h} W_out{h}", "W_out^(h) are the rows of W_out that meet head h"),
    ]
    ground = Instances(
        f"exactly, for every query of {MODELS} random layers of {TOKENS} tokens and {HEADS} heads; O and Y "
        "worked through step by step",
        _layer,
        definitions,
        many=MODELS,
        over=("q",),
    )
    one = [
        Link("sum(softmax(Q[q] K.T)[k] V[k], k)", "the values, mixed by the softmax of the scores"),
        Link("softmax(Q[q] K.T) V", "a sum of rows with weights is a row times a matrix"),
        Link("softmax(Z[q] W_q (Z W_k).T) Z W_v", "row q of Z W_q is Z_q W_q"),
        Link("softmax(Z[q] W_q W_k.T Z.T) Z W_v", "a product is transposed from behind"),
    ]
    several = [
        Link("concat(O{h}[q], h) W_out + b_out", "the heads side by side, mixed by W_out"),
        Link("sum(O{h}[q] W_out{h}, h) + b_out", "a row of blocks times a column of blocks"),
        Link("sum(softmax(A{h}[q]) Z W_v{h} W_out{h}, h) + b_out", "what head h gives"),
        Link("sum(softmax(A{h}[q]) Z W{h}, h) + b_out", "the two matrices of a head act as one"),
        Link("sum(sum(softmax(A{h}[q])[k] Z[k], k) W{h}, h) + b_out", "the row times Z, written as a sum"),
    ]
    return Draft(
        "mhsa",
        "Multi-head self-attention, split by heads",
        "Z has a row for each token; O_q is one head's output for query q, Y = MHSA(Z) that of all; scale 1",
        [Chain("O[q]", one, ground), Chain("Y[q]", several, ground)],
        definitions,
    )


def _layer(random: Random) -> Environment:
    """Random matrices, and the outputs as `work` works them through: its steps are not these formulas."""
    from lattend.study.worked.work import work

    def matrix(rows: int, columns: int, below: int = 1) -> list[list[Fraction]]:
        return [[Fraction(random.randint(-3, 3), below) for _ in range(columns)] for _ in range(rows)]

    tokens = matrix(TOKENS, WIDTH)
    query, key = ([matrix(WIDTH, WIDTH) for _ in range(HEADS)] for _ in range(2))
    value = [matrix(WIDTH, WIDTH, random.randint(2, 7)) for _ in range(HEADS)]
    out, bias = matrix(HEADS * WIDTH, WIDTH, random.randint(2, 7)), matrix(1, WIDTH, 5)[0]
    one = work(tokens, query[0], key[0], value[0]).outputs.exact
    several = work(tokens, query, key, value, wo=out).outputs.exact
    return {
        **{"each q": range(TOKENS), "each k": range(TOKENS), "each h": range(HEADS)},
        **{
            "Z": exact_array(tokens),
            "W_q": exact_array(query[0]),
            "W_k": exact_array(key[0]),
            "W_v": exact_array(value[0]),
        },
        **{"W_q{}": exact_array(query), "W_k{}": exact_array(key), "W_v{}": exact_array(value)},
        **{
            "W_out": exact_array(out),
            "W_out{}": exact_array(out).reshape(HEADS, WIDTH, WIDTH),
            "b_out": exact_array(bias),
        },
        **{"O": vector(one), "Y": vector(several) + exact_array(bias)},
    }


def quadratic() -> Draft:
    """A_{q,k} = −α(‖δ − Δ‖² − ‖Δ‖²) out of the four terms of relative attention."""
    definitions = [
        (
            "A[q, k]",
            "x_q W_q W_k.T x_k.T + x_q W_q W̃_k r_δ + u.T W_k.T x_k.T + v.T W̃_k r_δ",
            "the four terms: content to content, content to shift, content alone, shift alone",
        ),
        ("v", "-α (1, -2Δ_1, -2Δ_2)", "of the head with centre Δ = (Δ₁, Δ₂) and sharpness α"),
        ("r_δ", "(norm(δ)^2, δ_1, δ_2)", "of the shift δ = k − q = (δ₁, δ₂)"),
    ]
    ground = Instances("symbolically, for all α, δ, Δ, x_q, x_k and u", _encoding, definitions)
    zero = [
        Chain("x_q W_q W_k.T x_k.T", [Link("0", "W_q = 0")], ground),
        Chain("x_q W_q W̃_k r_δ", [Link("0", "W_q = 0")], ground),
        Chain("u.T W_k.T x_k.T", [Link("0", "W_k = 0")], ground),
    ]
    score = [
        Link("v.T W̃_k r_δ", "the first three terms vanish"),
        Link("v.T r_δ", "W̃_k = I"),
        Link("-α (1, -2Δ_1, -2Δ_2)(norm(δ)^2, δ_1, δ_2).T", "v and r_δ written out"),
        Link("-α (norm(δ)^2 - 2δ_1 Δ_1 - 2δ_2 Δ_2)", "multiplied"),
        Link("-α (norm(δ - Δ)^2 - norm(Δ)^2)", "the square completed: ‖δ − Δ‖² has ‖Δ‖² besides"),
    ]
    return Draft(
        "quadratic",
        "The score of the quadratic encoding",
        "pixel q attends to pixel k; W_q = W_k = 0 and W̃_k = I, so D_p = 3 numbers are enough for a position",
        [*zero, Chain("A[q, k]", score, ground)],
        definitions,
        "−‖Δ‖² is the same for every key, and softmax does not see it: the weights are those of −α‖δ − Δ‖², "
        "a Gaussian around the centre.",
    )


def _encoding(random: Random) -> Environment:
    plain = ("α", "δ_1", "δ_2", "Δ_1", "Δ_2")
    vectors = {
        name: symbols([f"{name}_{i}" for i in range(many)])
        for name, many in (("x_q", 2), ("x_k", 2), ("u", 3))
    }
    environment: Environment = dict(zip(plain, symbols(plain), strict=True))
    nothing, one = exact(0), exact(1)
    return {
        **environment,
        **{name: vector(entries) for name, entries in vectors.items()},
        **{
            "δ": vector([environment["δ_1"], environment["δ_2"]]),
            "Δ": vector([environment["Δ_1"], environment["Δ_2"]]),
        },
        **{"W_q": vector([[nothing] * 3] * 2), "W_k": vector([[nothing] * 3] * 2)},
        **{"W̃_k": vector([[one if i == j else nothing for j in range(3)] for i in range(3)]), "q": 0, "k": 0},
    }


def limit() -> Draft:
    """a_k = 1/(1 + Σ_{j≠k} e^(−α‖j − k‖²)) → 1: the sharper the head, the more it is one pixel."""
    definitions = [
        ("q", "k - Δ", "the query that the head leads to pixel k"),
        ("A[j]", "-α (norm(j - q - Δ)^2 - norm(Δ)^2)", "the score of pixel j, from the quadratic encoding"),
        ("a[k]", "exp(A[k])/sum(exp(A[j]), j)", "the softmax weight of pixel k"),
    ]
    ground = Instances(
        f"symbolically in α, for every pixel k of a {IMAGE} × {IMAGE} image",
        _sharp,
        definitions,
        over=("k",),
        grows="α",
    )
    weight = [
        Link(
            "exp(α norm(Δ)^2)/sum(exp(-α (norm(j - k)^2 - norm(Δ)^2)), j)",
            "k = q + Δ: its score is α‖Δ‖², and j − q − Δ = j − k",
        ),
        Link("1/sum(exp(-α norm(j - k)^2), j)", "e^(α‖Δ‖²) is in every term"),
        Link("1/(1 + sum(exp(-α norm(j - k)^2), j != k))", "the term of j = k is e^0 = 1"),
        Link("1", "as α → ∞: every other term tends to 0", "→"),
    ]
    rest = [
        Link(
            "sum(exp(-α norm(j - k)^2), j != k)/(1 + sum(exp(-α norm(j - k)^2), j != k))",
            "what goes to all other pixels",
        ),
        Link("0", "as α → ∞, so that each of them gets nothing", "→"),
    ]
    rate = [
        Link("sum(is(norm(j - k)^2 = 1), j)", "as α → ∞: the pixels at distance 1, 4 of them inside", "→"),
    ]
    return Draft(
        "limit",
        "The softmax limit of a sharp head",
        "a head with centre Δ and sharpness α; for query q its centre is the pixel k = q + Δ of the image",
        [
            Chain("a[k]", weight, ground),
            Chain("1 - a[k]", rest, ground),
            Chain("exp(α) (1 - a[k])", rate, ground),
        ],
        definitions,
        "So the weight is 1 − 4e^(−α) to first order: α = 10 leaves 0.018% to the other pixels.",
    )


def _sharp(random: Random) -> Environment:
    pixels = [exact_array([y, x]) for y in range(IMAGE) for x in range(IMAGE)]
    centre = exact_array([random.randint(-2, 2), random.randint(-2, 2)])
    return {"each j": pixels, "each k": pixels, "α": symbols(["α"])[0], "Δ": centre}


MOST_KEYS = 6


def steer() -> Draft:
    """w_a = 1/(2 + (m − 2)e^(−β)) → 1/2: a query along two orthonormal keys gives the mean of two values."""
    definitions = [
        ("q", "β (K[a] + K[b])", "the query: β along each of the two keys"),
        ("w", "softmax(q K.T)", "the weights"),
    ]
    sizes = iter(range(2, MOST_KEYS + 1))
    ground = Instances(
        f"symbolically in β, for 2 to {MOST_KEYS} orthonormal keys",
        lambda random: _keys(next(sizes), random),
        definitions,
        many=MOST_KEYS - 1,
        grows="β",
    )
    weight = [
        Link("exp(q K[a])/sum(exp(q K[i]), i)", "softmax; a product of two rows is their inner product"),
        Link(
            "exp(β)/(exp(β) + exp(β) + sum(exp(0), i, 3, m))",
            "orthonormal keys: β for two of them, 0 for m − 2",
        ),
        Link("exp(β)/(2 exp(β) + m - 2)", "e^0 = 1"),
        Link("1/(2 + (m - 2) exp(-β))", "divided by e^β"),
        Link("1/2", "as β → ∞", "→"),
    ]
    rest = [
        Link("(m - 2)/(2 exp(β) + m - 2)", "what leaks to the others"),
        Link("0", "as β → ∞, and never before where there are others", "→"),
    ]
    return Draft(
        "steer",
        "Two equal weights",
        "m orthonormal keys, the rows of K, and values, the rows of V",
        [
            Chain("w[a]", weight, ground),
            Chain("1 - w[a] - w[b]", rest, ground),
            Chain("w V", [Link("(V[a] + V[b])/2", "as β → ∞: the mean of the two values", "→")], ground),
        ],
        definitions,
    )


def _keys(m: int, random: Random) -> Environment:
    """A random orthonormal basis of fractions: rotations by the angle of the 3-4-5 triangle."""
    basis = exact_array(np.eye(m, dtype=int).tolist())
    cosine, sine = exact("3/5"), exact("4/5")
    for _ in range(m):
        i, j = random.sample(range(m), 2)
        basis[i], basis[j] = cosine * basis[i] - sine * basis[j], sine * basis[i] + cosine * basis[j]
    a, b = random.sample(range(m), 2)
    values = exact_array([[random.randint(-9, 9) for _ in range(2)] for _ in range(m)])
    return {
        "K": basis,
        "V": values,
        "m": exact(m),
        "a": a,
        "b": b,
        "each i": range(m),
        "β": symbols(["β"])[0],
    }
