"""by_name: methods of a rule that take its numbers by name, and say so when one comes without."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from lattend.errors import NamingError

Method = TypeVar("Method", bound=Callable[..., Any])


def by_name(method: Method) -> Method:
    """The method, which answers a number without a name with what to write."""

    @wraps(method)
    def checked(rule: Any, *unnamed: object, **named: Any) -> Any:
        if unnamed:
            name = next(iter(rule.free), "n")
            raise NamingError(
                f"{method.__name__}({', '.join(map(repr, unnamed))}): numbers are given by name, "
                f"as in {method.__name__}({name}={unnamed[0]!r})"
            )
        return method(rule, **named)

    return cast(Method, checked)
