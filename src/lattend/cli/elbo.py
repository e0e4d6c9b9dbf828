"""lattend elbo: evidence lower bounds, exact for small models and of a VAE trained on handwritten digits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lattend.cli.arguments import out_option, read_names, read_numbers_of
from lattend.cli.command import Answer, Command, argument, flag, option, setting
from lattend.cli.output import check_out, complain, tell
from lattend.errors import DomainError, NamingError, TextError
from lattend.report.report import Report
from lattend.report.table import Facts
from lattend.study.generative import PICTURES

if TYPE_CHECKING:
    from lattend.draw.picture import Picture
    from lattend.study.generative.exact_bound import GaussianLine
    from lattend.study.generative.training import Epoch


MODELS = {
    "linear": "x = W z + b + noise, where all is known: ELBO + gap = log p(x), and the importance bound",
    "digits": "a VAE trained on handwritten digits in a minute or two, its bounds and pictures",
}
EXACT = {  # commands of their own
    "gaussian": "one number from one Gaussian latent: every term as a formula, for any Gaussian q",
    "discrete": "z takes a few values: every term as a formula, for any q",
}
LARGEST = 1024  # numbers in an example, and in z
MOST = {"size": LARGEST, "latent": LARGEST, "examples": 4096}
BELONGS = {
    **dict.fromkeys(("size", "noise", "examples", "k", "samples", "data"), "linear"),
    **dict.fromkeys(("epochs", "binary", "show"), "digits"),
}


@dataclass(frozen=True)
class ElboCommand(Command):
    """The evidence lower bound: reconstruction minus KL.

    linear: on a model where all is known, ELBO + gap = log p(x) to the last digits for three q, and the
    importance bound rising to log p(x) with k. digits: trains a VAE on handwritten digits in a minute or two
    and gives its bounds on test digits with a picture. `lattend elbo gaussian` and `lattend elbo discrete`
    are small models whose terms are exact formulas.

        lattend elbo linear
        lattend elbo linear --size 20 --latent 3 --noise 0.5 --k 1,10,100
        lattend elbo linear --data rows.csv --latent 2 --out bound.svg
        lattend elbo digits --out digits.png
        lattend elbo digits --latent 2 --show latent --out plane.svg
    """

    model: str | None = argument("linear|digits", "Which model; without it, all are told.", None)
    size: int | None = option("D", "linear: numbers in an example; 6.")
    latent: int | None = option("Z", "Numbers in z; linear 2, digits 16.")
    noise: float | None = option("V", "linear: variance of the noise; 1.")
    examples: int | None = option("N", "linear: how many are bounded; 5.")
    k: str | None = option("1,2,4", "linear: samples in a bound; 1 to 512.")
    samples: int | None = option("M", "linear: repeats at the largest k; 200.")
    data: str | None = option("FILE", "linear: rows to fit it to; .csv, .npy, .json or .npz.")
    epochs: int | None = option("E", "digits: times each one is seen; 40.")
    binary: bool = flag("digits: pixels are 0 or 1.")
    picture: str | None = option("|".join(PICTURES), "digits: which picture; samples.", "--show")
    seed: int = setting("S", "Of all that is random.", 0)
    out: str | None = out_option()

    def answer(self) -> Answer:
        if self.model is not None and self.model not in MODELS:
            raise NamingError(f"elbo has {', '.join(MODELS | EXACT)}, not {self.model!r}")
        chosen = self.options("size noise examples k samples data epochs binary", show="picture")
        if self.model is None:
            if chosen or self.out is not None:
                raise NamingError(
                    f"say which model: `lattend elbo {BELONGS.get(next(iter(chosen), ''), 'linear')} …`"
                )
            return _models()
        for name in chosen:
            if BELONGS[name] != self.model:
                raise NamingError(f"--{name} belongs to `lattend elbo {BELONGS[name]}`; leave it out")
        chosen |= self.options("seed latent")
        for name, most in MOST.items():
            if not 1 <= chosen.get(name, 1) <= most:
                raise DomainError(f"--{name} must be from 1 to {most:,}, got {chosen[name]:,}")
        check_out(self.out)
        try:
            return (_linear if self.model == "linear" else _digits)(chosen)
        except KeyboardInterrupt:
            complain("stopped")
            raise


def _models() -> Report:
    """The models of `lattend elbo`."""
    derived = "`lattend derive elbo` derives the bound from log p(x), line by line."
    known = MODELS | EXACT
    return Report(
        "Models with an evidence lower bound", [Facts(list(known.items())), "", derived], {"models": known}
    )


def _linear(options: dict[str, Any]) -> Picture:
    from lattend.study.generative.linear_picture import show_linear

    if "k" in options:
        options["k"] = _whole("--k", options["k"])
    if "data" in options:
        for name in ("size", "noise"):
            if name in options:
                raise NamingError(f"--{name} is found from the rows of --data; leave it out")
        options["rows"] = _rows(options.pop("data"))
    return show_linear(**options)


def _digits(options: dict[str, Any]) -> Picture:
    from lattend.study.generative.handwritten import EPOCHS, show_digits

    if "show" in options:
        options["picture"] = options.pop("show")
    return show_digits(**options, progress=_progress(options.get("epochs", EPOCHS)))


def _progress(epochs: int) -> Any:
    """Report the first epoch, about ten more and new stages on standard error."""
    every = max(1, epochs // 10)

    def report(done: Epoch | str) -> None:
        if isinstance(done, str) or done.epoch == 1 or done.epoch % every == 0:
            tell(done)

    return report


def _rows(source: str) -> Any:
    """The rows of --data, a file or a text, as floats."""
    from lattend.cli.files import read_matrix
    from lattend.study.steering.numbers import check_number, read

    rows = read("--data", read_matrix("data", source, check_number)).floats
    if rows.ndim != 2 or rows.shape[1] > LARGEST:
        raise DomainError(f"--data has rows of at most {LARGEST} numbers, got shape {rows.shape}")
    return rows


def _whole(name: str, text: str) -> list[int]:
    numbers = read_numbers_of(name, text) or []
    if not all(number.is_integer() and 1 <= number <= 10_000 for number in numbers):
        raise TextError(f"{name} has whole numbers from 1 to 10,000", text, 0, len(text))
    return [int(number) for number in numbers]


@dataclass(frozen=True)
class GaussianFields:
    """x = weight·z + bias + noise with z ~ N(0, 1), the x that is seen, and q = N(mean, variance)."""

    weight: str = option("W", "What z is multiplied by; 1.", default="1")
    bias: str = option("B", "What is added; 0.", default="0")
    noise: str = option("V", "Variance of the noise; 1.", default="1")
    x: str = option("X", "The number that is seen; 3/2.", default="3/2")
    mean: str = option("M", "Mean of q; 0.", default="0")
    variance: str = option("V", "Variance of q; 1.", default="1")

    def line(self) -> GaussianLine:
        """The model of these numbers."""
        from lattend.study.generative.exact_bound import GaussianLine

        return GaussianLine(self.weight, self.bias, self.noise, self.x)


@dataclass(frozen=True)
class ElboGaussianCommand(GaussianFields, Command):
    """The ELBO of one number from one Gaussian latent, exactly.

    x = weight·z + bias + noise with z ~ N(0, 1), and q = N(mean, variance). Every term as a formula, with the
    proof that ELBO + gap = log p(x); the densities, and the q of equal gap. Numbers are fractions or
    decimals.

        lattend elbo gaussian
        lattend elbo gaussian --x 3/2 --mean 3/4 --variance 1/2
        lattend elbo gaussian --weight 2 --noise 1/4 --x -1 --out bound.svg
    """

    out: str | None = out_option()

    def answer(self) -> Answer:
        from lattend.study.generative.exact_bound import draw_line

        return draw_line(self.line(), self.mean, self.variance)


@dataclass(frozen=True)
class ElboDiscreteCommand(Command):
    """The ELBO where z takes a few values, exactly.

    All z are summed: log p(x), the bound and what it leaves as formulas, with the proof that
    ELBO + gap = log p(x), and the posterior, where the gap is 0. Numbers are fractions or decimals.

        lattend elbo discrete
        lattend elbo discrete --prior 1/2,1/4,1/4 --likelihood 1/10,3/5,9/10 --q 1/5,2/5,2/5
        lattend elbo discrete --prior 0.9,0.1 --likelihood 0.05,0.8
    """

    prior: str = option("P,P", "p(z), a number for each z; 1/2,1/4,1/4.", default="1/2,1/4,1/4")
    likelihood: str = option("P,P", "p(x|z) of the x that is seen; 1/10,3/5,9/10.", default="1/10,3/5,9/10")
    q: str | None = option("P,P", "q(z|x); the prior if not given.")

    def answer(self) -> Answer:
        from lattend.study.generative.exact_bound import DiscreteModel

        model = DiscreteModel(read_names(self.prior), read_names(self.likelihood))
        return model.report(read_names(self.prior if self.q is None else self.q))
