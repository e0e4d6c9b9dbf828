"""lattend complete: a 2-D RNN trained on handwritten digits draws the half that is not given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lattend.cli.arguments import out_option
from lattend.cli.command import Answer, Command, option
from lattend.cli.output import complain, tell

if TYPE_CHECKING:
    from lattend.study.generative.completion import CompletionEpoch


@dataclass(frozen=True)
class CompleteCommand(Command):
    """Digits completed by a 2-D RNN, trained here and now.

    The net reads an image pixel by pixel, each given those before it, and so draws what is missing. Its nats
    on digits it has not seen stand beside those of tables that count levels; less is better. The digits are
    those of scikit-learn.

        lattend complete
        lattend complete --epochs 20 --out digits.png
        lattend complete --given left --particles 64
    """

    epochs: int = option("E", "Times each digit is seen; 8, in half a minute.", default=8)
    given: str = option("top|left", "The half of a digit that is known; top.", default="top")
    samples: int = option("N", "Completions of each digit; 3.", default=3)
    particles: int = option("N", "Drawn side by side, the likely ones kept; 1.", default=1)
    seed: int = option("S", "Of all that is random; 0.", default=0)
    out: str | None = out_option()

    def answer(self) -> Answer:
        from lattend.study.generative.completion import complete_digits, half

        half(self.given)  # which may be wrong, and training takes a while
        try:
            result = complete_digits(self.epochs, seed=self.seed, progress=_tell)
        except KeyboardInterrupt:
            complain("stopped")
            raise
        return result.draw(self.given, self.samples, self.particles)


def _tell(epoch: CompletionEpoch) -> None:
    """Print an epoch on standard error."""
    if epoch.epochs <= 20 or epoch.epoch % (epoch.epochs // 10) == 0:
        tell(epoch)
