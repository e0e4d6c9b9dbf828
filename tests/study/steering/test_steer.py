"""steer against closed forms, softmax in 60 digits, linear programs and all queries of a grid."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import steering_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import lattend as lt
from lattend.study.steering.steer import Steered, SteeredHeads


def steered(*given: Any, **options: Any) -> Steered:
    result = lt.study.steer(*given, **options)
    assert isinstance(result, Steered)
    return result


def heads(*given: Any, **options: Any) -> SteeredHeads:
    result = lt.study.steer(*given, **options)
    assert isinstance(result, SteeredHeads)
    return result


def rotation(size: int, seed: int = 0) -> Any:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))[0]


@pytest.mark.parametrize("m", [2, 3, 10])
@pytest.mark.parametrize("beta", [0.0, 1.5, 6.0])
def test_one_and_two_orthonormal_keys(m: int, beta: float) -> None:
    keys = rotation(m)
    one = steered(keys, np.eye(m)[1], sharpness=beta)
    np.testing.assert_allclose(one.query, beta * keys[1], atol=1e-12)
    assert one.error == pytest.approx((m - 1) / (math.e**beta + m - 1), rel=1e-12)
    two = steered(keys, (np.eye(m)[0] + np.eye(m)[1]) / 2, sharpness=beta)
    np.testing.assert_allclose(two.query, beta * (keys[0] + keys[1]) if m > 2 else two.query, atol=1e-12)
    np.testing.assert_allclose(two.weights[:2], 1 / (2 + (m - 2) * math.e**-beta), rtol=1e-12)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=7).filter(any), st.floats(-2, 12))
def test_any_mixture_of_orthonormal_keys(parts: list[int], beta: float) -> None:
    wanted = [Fraction(part, sum(parts)) for part in parts]
    m, s = len(parts), sum(part > 0 for part in parts)
    keys = rotation(m, seed=1)
    result = steered(keys, wanted, sharpness=beta)
    betas = [beta + math.log(s * w) if w else 0.0 for w in wanted]
    np.testing.assert_allclose(result.query, np.array(betas) @ keys, atol=1e-10)
    leak = (m - s) / (s * math.exp(beta) + m - s)
    assert result.error == pytest.approx(leak, rel=1e-9)
    assert result.bound == pytest.approx(leak, rel=1e-12) and result.error <= result.bound
    assert result.exact == (s == m) and result.certificate is None


@pytest.mark.parametrize("error", [0.5, 1e-3, 1e-12])
def test_a_wanted_error(error: float) -> None:
    result = steered(np.eye(6), [0.5, 0.25, 0.25, 0, 0, 0], error=error)
    assert result.sharpness == pytest.approx(math.log(3 * (1 - error) / (3 * error)))
    assert result.error == pytest.approx(error, rel=1e-9)
    keys = np.random.default_rng(3).normal(size=(30, 6))
    general = steered(keys, [1, *[0] * 29], error=error)
    assert general.reach == "in the limit"
    assert general.error <= general.bound and general.bound == pytest.approx(error, rel=1e-9)
    assert steered(np.eye(2), [1, 0]).error == pytest.approx(1e-3)


@settings(max_examples=40, deadline=None)
@given(
    arrays(np.int64, st.tuples(st.integers(2, 7), st.integers(1, 3)), elements=st.integers(-2, 2)),
    st.data(),
)
def test_all_that_is_said_of_any_keys(keys: Any, data: st.DataObject) -> None:
    parts = data.draw(st.lists(st.integers(0, 3), min_size=len(keys), max_size=len(keys)).filter(any))
    wanted = [Fraction(part, sum(parts)) for part in parts]
    beta = data.draw(st.floats(-1, 20))
    result = steered(keys, wanted, sharpness=beta)
    support = np.array(parts) > 0
    face = np.array(oracle.smallest_face(keys, support))
    assert result.ray.face.tolist() == face.tolist()
    reached = oracle.softmax(keys, result.query)
    np.testing.assert_allclose(result.weights, np.array(reached, dtype=float), atol=1e-12)
    assert result.error == pytest.approx(oracle.apart(reached, result.wanted), rel=1e-6, abs=1e-11)
    assert result.error <= result.bound
    if not face.all():
        on = sum(w for w, inside in zip(reached, face, strict=True) if inside) / int(face.sum())
        off = max(w for w, inside in zip(reached, face, strict=True) if not inside)
        assert float(on / off) == pytest.approx(math.exp(beta), rel=1e-8)  # what sharpness means
    if result.reach == "never":
        check_certificate(keys, result)
    else:
        assert face.tolist() == support.tolist() and result.certificate is None
        assert result.exact == bool(face.all())
        off = float(sum(w for w, inside in zip(reached, face, strict=True) if not inside))
        assert result.error == pytest.approx(off, rel=1e-8)


def check_certificate(keys: Any, result: Steered) -> None:
    why = result.certificate
    assert why is not None
    y = why.relation.astype(float)
    np.testing.assert_allclose([*(y @ keys), y.sum()], 0, atol=1e-9)
    used = result.wanted > 0
    if (y[~used] != 0).any():
        assert (y[~used] >= 0).all() and why.total == -math.inf
    else:
        assert why.total == pytest.approx(float(y[used] @ np.log(result.wanted[used]))) and why.total != 0
    np.testing.assert_allclose(why.weights @ keys, result.wanted @ keys, atol=1e-9)
    assert why.nats == pytest.approx(oracle.least_nats(keys, result.wanted), abs=1e-4)
    for query in np.random.default_rng(0).normal(size=(50, keys.shape[1])) * 3:
        logits = keys @ query
        logs = logits - logits.max() - math.log(np.exp(logits - logits.max()).sum())
        nats = float((result.wanted[used] * (np.log(result.wanted[used]) - logs[used])).sum())
        assert nats >= why.nats - 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_attention_is_found_again(seed: int) -> None:
    source = np.random.default_rng(seed)
    keys, query = source.normal(size=(40, 5)), source.normal(size=5)
    logits = keys @ query
    wanted = np.exp(logits) / np.exp(logits).sum()
    result = steered(keys, wanted)
    assert result.exact and result.error == result.bound < 1e-14
    np.testing.assert_allclose(result.query, query, atol=1e-9)
    assert steered(keys.astype(np.float32), wanted.astype(np.float32)).exact  # to its own rounding


def test_geometric_weights_on_a_line() -> None:
    result = steered([[0], [1], [2]], ["1/7", "2/7", "4/7"])  # a1² = a0·a2: 4/49 = 4/49
    assert result.exact and result.query[0] == pytest.approx(math.log(2))
    small = Fraction(1, 10**10)
    near = steered([[0], [1], [2]], [Fraction(1, 7) + small, Fraction(2, 7), Fraction(4, 7) - small])
    assert near.reach == "never" and near.certificate is not None
    assert near.certificate.relation.tolist() == [1, -2, 1]


def test_a_key_between_others_is_never_singled_out() -> None:
    keys = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [1.0, 1.0]])
    result = steered(keys, [0, 0, 0, 1])
    assert result.certificate is not None
    assert result.certificate.relation.tolist() == [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4), -1]
    most = result.weights[3]
    grid = np.stack(np.meshgrid(np.linspace(-2, 2, 81), np.linspace(-2, 2, 81)), -1).reshape(-1, 2)
    logits = grid @ keys.T
    tried = (np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True))[:, 3].max()
    assert tried <= most <= tried + 1e-3
    assert steered([[-1], [0], [1]], [0, 1, 0]).weights[1] == pytest.approx(1 / 3)


def test_twins_share() -> None:
    result = steered([[1, 0], [1, 0], [0, 1]], [1, 0, 0], sharpness=30)
    np.testing.assert_allclose(result.weights, [0.5, 0.5, 0], atol=1e-12)
    assert result.certificate is not None and result.certificate.nats == pytest.approx(math.log(2))


def test_the_best_fit_on_a_face() -> None:
    keys = [[0, 0], [1, 0], [2, 0], [0, 5]]  # the wanted ends cannot lose the key between them
    result = steered(keys, ["1/2", 0, "1/2", 0], sharpness=25)
    assert result.reach == "never" and result.ray.face.tolist() == [True, True, True, False]
    np.testing.assert_allclose(result.weights, [1 / 3, 1 / 3, 1 / 3, 0], atol=1e-9)
    assert 1 / 3 <= result.error <= result.bound <= 1 / 3 + 1e-10


def test_values() -> None:
    keys = np.random.default_rng(2).normal(size=(12, 3))
    values = np.random.default_rng(4).normal(size=(12, 4))
    wanted = np.zeros(12)
    wanted[[0, 5]] = 0.75, 0.25
    for beta in (1.0, 9.0):
        result = steered(keys, wanted, sharpness=beta, values=values)
        reached = np.array(oracle.softmax(keys, result.query), dtype=float)
        np.testing.assert_allclose(result.output, reached @ values, atol=1e-12)
        apart = np.linalg.norm((reached - wanted) @ values)
        assert result.output_error == pytest.approx(apart, rel=1e-6)
        widest = max(float(np.linalg.norm(a - b)) for a in values for b in values)
        assert result.output_bound == pytest.approx(widest * result.bound)
        assert result.output_error <= result.output_bound


@pytest.mark.parametrize(("scale", "factor"), [(0.25, 0.25), ("sqrt", 1 / math.sqrt(3)), (-2, -2.0)])
def test_scale(scale: Any, factor: float) -> None:
    keys = np.random.default_rng(5).normal(size=(7, 3))
    plain, scaled = (steered(keys, np.eye(7)[0], sharpness=4, scale=s) for s in (1, scale))
    np.testing.assert_allclose(scaled.query * factor, plain.query)
    reached = oracle.softmax(keys, scaled.query, factor)
    assert scaled.error == pytest.approx(oracle.apart(reached, scaled.wanted), rel=1e-9)


def test_where_the_keys_lie_makes_no_difference() -> None:
    keys = np.random.default_rng(6).normal(size=(9, 2))
    near, far = (steered(keys + shift, np.eye(9)[keys[:, 0].argmax()], sharpness=5) for shift in (0, 1000))
    assert near.reach == far.reach == "in the limit"
    np.testing.assert_allclose(near.query, far.query, rtol=1e-8)


def test_far_beyond_what_floats_hold() -> None:
    result = steered(np.eye(3), [1, 0, 0], sharpness=1000)
    assert result.error == result.bound == 0 and not result.exact
    assert steered(np.eye(3), [1, 0, 0], sharpness=-1000).error == pytest.approx(1)
    assert "steered" in result.draw().svg()
    tiny = steered(np.eye(3), [1 - 1e-300, 1e-300, 0], error=0.01)
    assert tiny.weights[1] == pytest.approx(0.99e-300)


def test_one_key() -> None:
    result = steered([[3, 4]], [1])
    assert result.exact and result.weights.tolist() == [1.0]


def test_heads() -> None:
    source = np.random.default_rng(7)
    keys, wanted = source.normal(size=(2, 3, 6, 2)), np.eye(6)[[0, 1, 2]]
    values, beta = source.normal(size=(6, 4)), np.array([[1.0], [5.0]])
    many = heads(keys, wanted, sharpness=beta, values=values)
    assert many.query.shape == (2, 3, 2) and many.weights.shape == (2, 3, 6) and many.error.shape == (2, 3)
    assert many.output.shape == (2, 3, 4) and len(many) == 2 and len(list(many)) == 6
    for place in np.ndindex(2, 3):
        one = steered(keys[place], wanted[place[1]], sharpness=beta[place[0], 0], values=values)
        np.testing.assert_array_equal(many.query[place], one.query)
        assert many[place].error == one.error == many.error[place]
    assert many.reach == [head.reach for head in many]
    assert [why is None for why in many.certificate] == [reach != "never" for reach in many.reach]
    assert heads(np.eye(3), np.eye(3)).error == pytest.approx(np.full(3, 1e-3))
    assert heads(np.eye(3), np.eye(3)).output is None
    with pytest.raises(IndexError, match=r"\[1\] is 3 heads; give a number for each of \(2, 3\)"):
        many[1]
    assert json.loads(json.dumps(many.json()))["shape"] == [2, 3]


def test_json() -> None:
    result = steered([[0], [1], [2]], [0, 1, 0], values=[[1], [2], [4]])
    data = json.loads(json.dumps(result.json(), allow_nan=False))
    assert data["reach"] == "never" and data["certificate"]["relation"] == [0.5, -1, 0.5]
    assert data["certificate"]["total"] is None and data["wanted_output"] == [2.0]
    assert data["weights"] == pytest.approx([1 / 3] * 3)


EYE = np.eye(2)


@pytest.mark.parametrize(
    ("given", "options", "error", "message"),
    [
        (([1, 0], [1, 0]), {}, lt.errors.TensorError, r"keys has shape \(2,\); give \[\.\.\., m, D\]"),
        ((EYE, [1, 0, 0]), {}, lt.errors.TensorError, r"weights has shape \(3,\) for 2 keys"),
        ((EYE, [1.5, -0.5]), {}, lt.errors.DomainError, r"weights\[1\] is -0\.5; a weight is at least 0"),
        ((EYE, [0.5, 0.7]), {}, lt.errors.DomainError, "sum to 1.2, not 1; divide them by their sum"),
        ((EYE, [[1, 0], [1, 1]]), {}, lt.errors.DomainError, r"weights of head \(1,\) sum to 2, not 1"),
        (
            (np.zeros((2, 2, 2)), np.full((3, 2), 0.5)),
            {},
            lt.errors.TensorError,
            r"keys have leading axes \(2,\) and weights \(3,\); give both the same heads",
        ),
        ((EYE, [1, 0]), {"sharpness": 1, "error": 0.1}, lt.errors.NamingError, "both given; each decides"),
        ((EYE, [1, 0]), {"error": 0}, lt.errors.DomainError, "error is 0; the share .* between 0 and 1"),
        ((EYE, [1, 0]), {"error": 1.0}, lt.errors.DomainError, "error is 1; the share"),
        ((EYE, [1, 0]), {"sharpness": math.inf}, lt.errors.DomainError, "sharpness is inf; give finite"),
        ((EYE, [1, 0]), {"sharpness": [1, 2]}, lt.errors.TensorError, r"shape \(2,\); give one number$"),
        ((EYE, EYE), {"sharpness": [1, 2, 3]}, lt.errors.TensorError, r"or one a head: \(2,\)"),
        ((EYE, [1, 0]), {"values": [1, 2]}, lt.errors.TensorError, r"give \[\.\.\., 2, v\], a row for each"),
        (
            (EYE, EYE),
            {"values": np.zeros((3, 2, 1))},
            lt.errors.TensorError,
            r"axes \(3,\); the heads are \(2,\)",
        ),
        ((EYE, [1, 0]), {"scale": 0}, lt.errors.DomainError, "scale is 0; no query would change a weight"),
        (
            (EYE, [1, 0]),
            {"scale": "root"},
            lt.errors.DomainError,
            'or "sqrt", for 1/√D: "root" is not a number',
        ),
        (
            (EYE, [1, 0]),
            {"scale": None},
            lt.errors.DomainError,
            'scale is a number or "sqrt".*: None is not a n',
        ),
        ((EYE, ["1e-400", 1]), {}, lt.errors.DomainError, r"weights\[0\]: 1e-400 is beyond floats"),
        (
            (EYE, [1, 0]),
            {"sharpness": 1e308},
            lt.errors.DomainError,
            "too long for floats; give a smaller sh",
        ),
        ((EYE * 1e-310, [1, 0]), {}, lt.errors.DomainError, "the query is too long for floats"),
    ],
)
def test_bad_input(given: Any, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        lt.study.steer(*given, **options)


def test_many_orthonormal_keys_need_no_decomposition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unit vectors, and the same turned, which are orthonormal up to rounding alone, give one answer."""
    wanted = [0.5, 0.5] + [0] * 98
    turned = np.linalg.qr(np.random.default_rng(0).normal(size=(100, 100)))[0]
    slow = lt.study.steer(turned, wanted, error=0.01)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("decomposed")

    monkeypatch.setattr(np.linalg, "svd", refuse)
    fast = lt.study.steer(3 * np.eye(100), wanted, error=0.01)
    assert fast.weights == pytest.approx(slow.weights, abs=1e-12)
    assert fast.query == pytest.approx(turned @ slow.query / 3, abs=1e-9)
    assert fast.error == pytest.approx(0.01)
