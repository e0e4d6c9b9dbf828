"""lattend gradients: gradient size against distance, and claims about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lattend.cli.arguments import out_option
from lattend.cli.command import Answer, Command, argument, option
from lattend.cli.failures import NO, NO_ANSWER, YES
from lattend.cli.output import check_out, complain, say, say_json, tell, width


@dataclass(frozen=True)
class GradientsCommand(Command):
    """Gradient size against distance, as networks start and after training.

    How much the output at the last position changes with an input d positions before it: exact, by autograd,
    for an RNN, an LSTM, a 2-D RNN, a stack of convolutions and attention; then again after training a little
    on recall, where the first symbol is to be named at the end. With the factor per step of distance that is
    fitted to it, and its 95% interval over seeds.

    A claim is judged by these intervals. NETWORK vanishes: the factor is below 0.95 with its whole interval
    (grows, or explodes: above 1.05). A < B at D: the ratio of the sizes at distance D is below 1 with its
    whole interval. NETWORK learns: with every seed it names 90% of the first symbols. "A is harder to train
    than B": B learns, A does with no seed. "at initialisation" or "after training" may end the first two. The
    exit code is 1 when one fails, 3 when one is undecided.

        lattend gradients
        lattend gradients rnn attention --steps 0
        lattend gradients --length 9 --steps 300 --out gradients.png
        lattend gradients --claim "rnn vanishes" --claim "attention does not vanish"
        lattend gradients --claim "rnn < attention at 32"
        lattend gradients --claim "rnn is harder to train than attention"
    """

    networks: list[str] | None = argument(
        "NETWORK", "rnn, lstm, rnn2d, conv, attention; all unless said.", None
    )
    claim: list[str] | None = option(
        "CLAIM", 'Judge "rnn vanishes", "rnn < attention at 32", "attention learns"; may be repeated.'
    )
    length: int | None = option("N", "Inputs, so that distances go to N - 1; 33.")
    size: int | None = option("H", "Numbers of an input and of the output; 32.", "--width")
    steps: int | None = option("N", "Of training on recall; 150. 0 leaves it out.")
    seeds: int | None = option("K", "Networks of each kind, from 2 to 10; 3.")
    seed: int | None = option("S", "Of the first of them; 0.")
    out: str | None = out_option()

    def answer(self) -> Answer:
        from lattend.study.gradients.decay import measure

        chosen = self.options("length steps seeds seed", width="size")
        check_out(self.out)
        try:
            if not self.claim:
                return measure(self.networks or (), **chosen, progress=tell).draw()
            self.refuse(("out", "networks"), "has no part in --claim; leave it out")
            return _judged(self.claim, chosen, self.json)
        except KeyboardInterrupt:
            complain("stopped")
            raise


def _judged(texts: list[str], options: dict[str, Any], json: bool) -> int:
    """Print the verdicts on the claims, and return the exit code."""
    from lattend.study.gradients.claims import judge_all

    measured, verdicts = judge_all(texts, **options, progress=tell)
    if json:
        say_json({"claims": [verdict.json() for verdict in verdicts], **measured.json()})
    else:
        say("\n".join(verdict.text(width()) for verdict in verdicts))
    if any(verdict.holds is False for verdict in verdicts):
        return NO
    return YES if all(verdicts) else NO_ANSWER
