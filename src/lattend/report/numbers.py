"""Numbers to be read: rounded as a hand does it, halves away from 0; with commas, units, percent, seconds."""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, ROUND_05UP, ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, SupportsFloat

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DIGITS = 60
ROUNDING = 1e-6  # an error below it is rounding
UNKNOWN = "–"
UNITS = ("", "k", "M", "G", "T", "P", "E", "Z")

Number = int | Fraction | Decimal | SupportsFloat


def context(digits: int = DIGITS, rounding: str = ROUND_HALF_UP) -> Context:
    """A decimal context of this many digits, for numbers of any size. It traps nothing: 0/0 is NaN."""
    return Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


def decimal_of(number: Number, digits: int = DIGITS) -> Decimal:
    """The number as a decimal; a float as its shortest one, a fraction cut to so many digits.

    The last digit of a cut one is never 0 or 5, so that a half is a half only if the fraction is.

    >>> decimal_of(0.1), decimal_of(Fraction(2, 3), 5)
    (Decimal('0.1'), Decimal('0.66666'))
    """
    if isinstance(number, int | Decimal):
        return Decimal(number)
    if isinstance(number, Fraction):
        cut = context(digits, ROUND_05UP)
        return cut.divide(Decimal(number.numerator), Decimal(number.denominator))
    return Decimal(repr(float(number)))


def fixed(number: Number, places: int, grouped: bool = False) -> str:
    """The number with this many decimal places; with commas if `grouped`.

    >>> fixed(Fraction(3, 32), 4), fixed(2.5, 0), fixed(-1234.5, 2, grouped=True)
    ('0.0938', '3', '-1,234.50')
    """
    if isinstance(number, Fraction):
        above = max(0, number.numerator.bit_length() - number.denominator.bit_length()) // 3
        value = decimal_of(number, above + places + 4)
    else:
        value = decimal_of(number)
    if not value.is_finite():
        return str(float(value))
    wide = context(max(DIGITS, value.adjusted() + places + 2))
    quantized = wide.quantize(value, Decimal(1).scaleb(-places))
    return f"{quantized if quantized else abs(quantized):{',' if grouped else ''}f}"


def rounded(number: Number, places: int) -> str:
    """The number with at most this many decimal places, and with commas.

    >>> rounded(1234.5, 2), rounded(3.0, 2)
    ('1,234.5', '3')
    """
    text = fixed(number, places, grouped=True)
    return text.rstrip("0").rstrip(".") if "." in text else text


def significant(number: Number, digits: int) -> str:
    """The number with at most this many digits; with a power of ten if it is very large or small.

    >>> significant(0.1234565, 6), significant(200.0, 6), significant(1.5e-12, 6)
    ('0.123457', '200', '1.5e-12')
    """
    rounded_number = context(digits).plus(decimal_of(number))
    if not rounded_number.is_finite():
        return str(float(rounded_number))
    rounded_number = rounded_number.normalize(context()) if rounded_number else Decimal(0)
    return (
        f"{rounded_number:f}"
        if -4 <= rounded_number.adjusted() < digits
        else _with_power(f"{rounded_number:e}")
    )


def scientific(number: Number, places: int) -> str:
    """The number in scientific notation with this many decimal places.

    >>> scientific(10**9 + 50000, 4)
    '1.0001e9'
    """
    return _with_power(f"{context(places + 1).plus(decimal_of(number)):.{places}e}")


def _with_power(text: str) -> str:
    digits, power = text.split("e")
    return f"{digits}e{int(power)}"


def format_number(number: Number, digits: int = 3) -> str:
    """The number with at most this many digits, and with a true minus sign.

    >>> format_number(0.125), format_number(-3.0), format_number(0.0066928509, 6)
    ('0.125', '−3', '0.00669285')
    """
    return significant(number, digits).replace("-", "−")


def fixed_beside(number: Number, places: int, *exact: float) -> str:
    """The number with this many decimal places, and with more if it would look equal to one of `exact`.

    >>> fixed_beside(0.25, 3, 0, 1), fixed_beside(0.99996, 3, 0, 1), fixed_beside(1, 3, 0, 1)
    ('0.250', '0.99996', '1.000')
    >>> fixed_beside(1e-12, 3, 0, 1), fixed_beside(1 + 1e-12, 3, 0, 1)
    ('1e-12', '1 + 1e-12')
    """
    value, text = decimal_of(number), fixed(number, places)
    for target in map(decimal_of, exact):
        gap = context().subtract(value, target)
        if Decimal(text) != target or not gap:
            continue
        if gap.adjusted() >= -9:
            return fixed(number, -gap.adjusted())
        sign = "+" if gap > 0 else "−"
        return f"{target} {sign} {significant(abs(gap), 2)}" if target else significant(gap, 2)
    return text


def format_exponential(logarithm: float, digits: int = 3) -> str:
    """E to this power, however small.

    >>> format_exponential(-800), format_exponential(0)
    ('3.67e−348', '1')
    """
    return format_number(Decimal(logarithm).exp(context(DIGITS)), digits)


def format_weight(log_weight: float, log_rest: float, digits: int = 3) -> str:
    """A weight from its logarithm and that of all other weights: 0 or 1 only where it is exactly that.

    >>> format_weight(math.log(0.25), math.log(0.75)), format_weight(-1.8e-4, math.log(1.8e-4))
    ('0.25', '0.99982')
    >>> format_weight(0.0, -20.0), format_weight(-800.0, 0.0), format_weight(0.0, -math.inf)
    ('1 − 2.1e−9', '3.67e−348', '1')
    """
    text = format_exponential(log_weight, digits)
    if text != "1" or log_rest == -math.inf:
        return text
    rest = Decimal(log_rest).exp(context(DIGITS))
    if log_rest < math.log(ROUNDING):
        return f"1 − {format_number(rest, 2)}"
    return rounded(1 - rest, 1 - rest.adjusted())


def log_sum(scores: NDArray[np.float64]) -> float:
    """The logarithm of the sum of e^score; -inf of none.

    >>> import numpy as np
    >>> log_sum(np.array([-1000.0, -1000.0]))  # log 2 - 1000
    -999.3068528194401
    """
    import numpy as np

    top = float(scores.max(initial=-math.inf))
    return top if math.isinf(top) else top + math.log(float(np.exp(scores - top).sum()))


def format_weights(scores: NDArray[np.float64], digits: int = 3) -> list[str]:
    """The softmax of scores: a weight is 0 or 1 only where it is exactly that.

    >>> import numpy as np
    >>> format_weights(np.array([0.0, 10.0])), format_weights(np.array([1.0]))
    (['4.54e−5', '0.999955'], ['1'])
    """
    import numpy as np

    leader, total = int(scores.argmax()), log_sum(scores)
    rest = log_sum(np.delete(scores, leader)) - total
    return [
        format_weight(score - total, rest if at == leader else 0.0, digits)
        for at, score in enumerate(scores.tolist())
    ]


def format_fixed(number: Number, places: int = 2) -> str:
    """The number with this many decimal places, commas and a true minus sign.

    >>> format_fixed(-1234.5), format_fixed(-0.001)
    ('−1,234.50', '0.00')
    """
    return fixed(number, places, grouped=True).replace("-", "−")


def format_error(number: float, error: float | None = None) -> str:
    """The number and its error, which gets two digits; four places if the error is only rounding.

    >>> format_error(-84.3123, 0.0512)
    '−84.312 ± 0.051'
    """
    if not error or error < ROUNDING or not math.isfinite(error):
        return format_gap(number)
    places = max(0, 1 - math.floor(math.log10(error)))
    return f"{format_fixed(number, places)} ± {format_fixed(error, places)}"


def format_gap(number: float) -> str:
    """The number with four decimal places, or more if these are 0. 0.0000 means rounding errors only.

    >>> format_gap(0.35), format_gap(2.1e-5), format_gap(1e-15)
    ('0.3500', '0.00002', '0.0000')
    """
    if ROUNDING <= abs(number) < 5e-5:
        return fixed_beside(number, 4, 0).replace("-", "−")
    return format_fixed(number, 4)


def format_value(value: object) -> str:
    """A whole number with commas, or a formula; a dash where nothing is known."""
    return UNKNOWN if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def with_unit(number: int) -> str:
    """A whole number in at most eight characters: 640, 11,272, 4.089 G.

    >>> with_unit(1_814_073_344), with_unit(11_689_512), with_unit(99_999)
    ('1.814 G', '11.69 M', '99,999')
    """
    if abs(number) < 100_000:
        return f"{number:,}"
    scaled, unit = float(number), 0
    while abs(scaled) >= 999.95 and unit < len(UNITS) - 1:
        scaled, unit = scaled / 1000, unit + 1
    digits = 3 - len(str(int(abs(scaled)))) + 1
    return f"{scaled:.{max(0, digits)}f} {UNITS[unit]}"


def with_prefix(number: Number, digits: int = 4) -> str:
    """The number with the prefix of its unit, which follows: 3.35 T of "3.35 TB/s".

    >>> with_prefix(989.4e12), with_prefix(80e9), with_prefix(640)
    ('989.4 T', '80 G', '640 ')
    """
    value = decimal_of(number)
    steps = max(0, min(len(UNITS) - 1, context(digits).plus(value).adjusted() // 3)) if value else 0
    return f"{significant(value.scaleb(-3 * steps, context()), digits)} {UNITS[steps]}"


def compact(number: int) -> str:
    """250000 as 250k, 2500000 as 2.5M, 10**18 as 1e18; written out where that would not be exact."""
    digits = str(number).rstrip("0")
    if number >= 10**15 and len(digits) <= 3:
        return f"{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e{len(str(number)) - 1}"
    for power in (4, 3, 2, 1):
        if number >= 1000**power and number * 10 % 1000**power == 0:
            units, tenth = divmod(number * 10 // 1000**power, 10)
            return f"{units}{f'.{tenth}' if tenth else ''}{UNITS[power]}"
    return str(number)


def percent(count: int, total: int) -> str:
    """A count in percent of the total: 0% and 100% only where exact, else two digits at least.

    >>> percent(21, 64), percent(1, 10**6), percent(10**6 - 1, 10**6)
    ('32.8%', '0.00010%', '99.99990%')
    """
    if total == 0 or count in (0, total):
        return "0%" if count == 0 else "100%"
    gap, decimals = min(count, total - count), 1
    while 100 * gap * 10**decimals < 10 * total and decimals < 6:
        decimals += 1
    scaled = (2 * 100 * count * 10**decimals + total) // (2 * total)  # rounded half up, in integers
    if scaled == 0:
        return "under 0.000001%"
    if scaled == 100 * 10**decimals:
        return "over 99.999999%"
    integer, rest = divmod(scaled, 10**decimals)
    return f"{integer}.{rest:0{decimals}d}%"


def format_share(share: float, places: int = 1) -> str:
    """A share in percent: 0% and 100% only where exact.

    >>> format_share(0.5906), format_share(0.99996)
    ('59.1%', '99.996%')
    """
    return f"{fixed_beside(context().multiply(100, decimal_of(share)), places, 0, 100)}%"


def seconds(value: float, digits: int = 3) -> str:
    """A time in a suitable unit.

    >>> seconds(0.00138), seconds(2.12e-3, 2), seconds(0)
    ('1.38 ms', '2.1 ms', '0 s')
    """
    if value == 0:
        return "0 s"
    units = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
    unit, size = next((pair for pair in units if value >= pair[1]), units[-1])
    number = value / size
    return f"{number:,.0f} {unit}" if number >= 10**digits else f"{significant(number, digits)} {unit}"


def format_bytes(count: int) -> str:
    """A number of bytes, and the same in larger units where it has four digits or more.

    >>> format_bytes(147456), format_bytes(512)
    ('147,456 bytes (144 KiB)', '512 bytes')
    """
    return f"{count:,} bytes" + (f" ({short_bytes(count)})" if count >= 1024 else "")


def short_bytes(count: int) -> str:
    """A number of bytes in the largest unit that it has one of.

    >>> short_bytes(147456), short_bytes(512)
    ('144 KiB', '512 bytes')
    """
    size, unit = Fraction(count), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{rounded(size, 1)} {unit}"
