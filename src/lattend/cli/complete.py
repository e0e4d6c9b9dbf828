"""lattend complete: a 2-D RNN trained on handwritten digits draws the half that is not given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from lattend.cli.arguments import Json, Out, option
from lattend.cli.output import complain, show, tell

if TYPE_CHECKING:
    from lattend.study.generative.completion import CompletionEpoch

EXAMPLES = (
    "lattend complete",
    "lattend complete --epochs 20 --out digits.png",
    "lattend complete --given left --particles 64",
)


def complete(
    epochs: Annotated[int, option("E", "Times each digit is seen; 8, in half a minute.")] = 8,
    given: Annotated[str, option("top|left", "The half of a digit that is known; top.")] = "top",
    samples: Annotated[int, option("N", "Completions of each digit; 3.")] = 3,
    particles: Annotated[int, option("N", "Drawn side by side, the likely ones kept; 1.")] = 1,
    seed: Annotated[int, option("S", "Of all that is random; 0.")] = 0,
    out: Out = None,
    json: Json = False,
) -> None:
    """Digits completed by a 2-D RNN, trained here and now.

    The net reads an image pixel by pixel, each given those before it, and so draws what is missing. Its nats
    on digits it has not seen stand beside those of tables that count levels; less is better. The digits are
    those of scikit-learn.
    """
    from lattend.study.generative.completion import complete_digits, half

    half(given)  # which may be wrong, and training takes a while
    try:
        result = complete_digits(epochs, seed=seed, progress=_tell)
    except KeyboardInterrupt:
        complain("stopped")
        raise
    show(result.draw(given, samples, particles), out, json)


def _tell(epoch: CompletionEpoch) -> None:
    """Print an epoch on standard error."""
    if epoch.epochs <= 20 or epoch.epoch % (epoch.epochs // 10) == 0:
        tell(epoch)
