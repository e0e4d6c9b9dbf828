"""lattend cache: how many keys a KV cache holds under a rule, and when each may be dropped."""

from __future__ import annotations

from lattend.cli.arguments import At, Json, RuleText, read_numbers, read_rule
from lattend.cli.failures import NO, YES, in_options
from lattend.cli.output import say, say_json, width
from lattend.errors import DeadlineError, DomainError, LattendError, NamingError
from lattend.report.table import fitted

EXAMPLES = (
    "lattend cache strided --at t=3",
    'lattend cache "sinks(s=4, t=1023)"',
    "lattend cache causal",
)


def cache(rule: RuleText, at: At = None, json: Json = False) -> int:
    """How many keys a KV cache holds at most, decoding token by token.

    A key is dropped after the last query that reaches it: a sliding window needs a rolling buffer, a causal
    mask keeps every key. Parameters need numbers, the sequence length does not.
    The exit code is 1 where there is no cache, as when queries attend to keys that have not come yet.
    """
    from lattend.plans.retention import retention
    from lattend.sets.guard import deadlines_missed

    chosen, values = read_rule(rule), read_numbers(at)
    missed = deadlines_missed()
    about = {"rule": chosen.text, "at": {**chosen.values, **values}}
    try:
        found = retention(chosen.at(**values))
    except (DomainError, NamingError):
        raise
    except LattendError as reason:
        if deadlines_missed() > missed:  # it is not that there is no cache
            raise DeadlineError(reason.reason) from None
        why = in_options(str(reason))
        if json:
            say_json({**about, "cache": False, "most": None, "why": why})
        else:
            say("\n".join(fitted(f"no cache: {why}", width())))
        return NO
    if json:
        say_json({**about, "cache": True, "most": found.most, "why": str(found)})
    else:
        say("\n".join(fitted(str(found), width())))
    return YES
