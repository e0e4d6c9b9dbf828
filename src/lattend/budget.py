"""Budget: how long set work may take. isl can take any time, so who asks says how long to wait."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from lattend.errors import DomainError

SECONDS = 1.2  # of work; with starting a process, an answer comes within two


@dataclass(frozen=True)
class Budget:
    """Seconds of work in the second process, which is stopped after them; `inf` waits as long as it takes.

    None is for sets that tests know to be quick: they need no second process and run in this one.
    """

    seconds: float | None = SECONDS
    left: list[float] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.seconds is not None and not self.seconds >= 0:
            raise DomainError(f"a deadline is a number of seconds from 0 up, or inf; got {self.seconds:g}")

    def shared(self) -> Budget:
        """One allowance for several calls: what one of them takes, the others no longer have."""
        return self if self.seconds is None else replace(self, left=[self.seconds])

    def out_of(self, shared: Budget | None) -> Budget:
        """The shared budget, if there is one and this is limited at all."""
        return self if shared is None or self.seconds is None else shared

    def stricter(self, other: Budget) -> Budget:
        """The one that allows less."""
        if self.seconds is None or (other.seconds is not None and other.seconds < self.seconds):
            return other
        return self

    def or_seconds(self, deadline: float | None) -> Budget:
        """The budget of a caller who may have given a deadline."""
        return self if deadline is None else Budget(deadline)


DEFAULT = Budget()
UNLIMITED = Budget(None)
