"""Numbers to be read: rounded as a hand does it, halves away from 0; with commas, units, percent, seconds."""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_05UP, ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from math import floor, isfinite, log10
from typing import SupportsFloat

DIGITS = 60
ROUNDING = 1e-6  # an error below it is rounding
UNKNOWN = "–"
UNITS = ("", "k", "M", "G", "T", "P", "E", "Z")

Number = int | Fraction | Decimal | SupportsFloat


def context(digits: int = DIGITS, rounding: str = ROUND_HALF_UP) -> Context:
    """So many digits, of numbers of any size; nothing is trapped: 0/0 is NaN, which is near no number."""
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
    """The number with so many places, thousands apart where `grouped`.

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
    found = wide.quantize(value, Decimal(1).scaleb(-places))
    return f"{found if found else abs(found):{',' if grouped else ''}f}"


def rounded(number: Number, places: int) -> str:
    """The number with at most so many places, thousands apart.

    >>> rounded(1234.5, 2), rounded(3.0, 2)
    ('1,234.5', '3')
    """
    text = fixed(number, places, grouped=True)
    return text.rstrip("0").rstrip(".") if "." in text else text


def significant(number: Number, digits: int) -> str:
    """The number with at most so many digits, with a power of ten where others write one.

    >>> significant(0.1234565, 6), significant(200.0, 6), significant(1.5e-12, 6)
    ('0.123457', '200', '1.5e-12')
    """
    found = context(digits).plus(decimal_of(number))
    if not found.is_finite():
        return str(float(found))
    found = found.normalize(context()) if found else Decimal(0)
    return f"{found:f}" if -4 <= found.adjusted() < digits else _with_power(f"{found:e}")


def scientific(number: Number, places: int) -> str:
    """The number with a power of ten and so many places before it.

    >>> scientific(10**9 + 50000, 4)
    '1.0001e9'
    """
    return _with_power(f"{context(places + 1).plus(decimal_of(number)):.{places}e}")


def _with_power(text: str) -> str:
    digits, power = text.split("e")
    return f"{digits}e{int(power)}"


def format_number(number: Number, digits: int = 3) -> str:
    """The number with at most so many digits and a minus sign that is one, as people write it.

    >>> format_number(0.125), format_number(-3.0), format_number(0.0066928509, 6)
    ('0.125', '−3', '0.00669285')
    """
    return significant(number, digits).replace("-", "−")


def format_fixed(number: Number, places: int = 2) -> str:
    """The number with so many places, thousands apart and a minus sign that is one.

    >>> format_fixed(-1234.5), format_fixed(-0.001)
    ('−1,234.50', '0.00')
    """
    return fixed(number, places, grouped=True).replace("-", "−")


def format_error(number: float, error: float | None = None) -> str:
    """The number with two digits of its error; four places where there is none but rounding.

    >>> format_error(-84.3123, 0.0512)
    '−84.312 ± 0.051'
    """
    if not error or error < ROUNDING or not isfinite(error):
        return format_fixed(number, 4)
    places = max(0, 1 - floor(log10(error)))
    return f"{format_fixed(number, places)} ± {format_fixed(error, places)}"


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
            whole, tenth = divmod(number * 10 // 1000**power, 10)
            return f"{whole}{f'.{tenth}' if tenth else ''}{UNITS[power]}"
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
    whole, rest = divmod(scaled, 10**decimals)
    return f"{whole}.{rest:0{decimals}d}%"


def format_share(share: float, places: int = 1) -> str:
    """A share in percent.

    >>> format_share(0.5906)
    '59.1%'
    """
    return f"{fixed(100 * share, places)}%"


def seconds(value: float, digits: int = 3) -> str:
    """A time in the unit that suits.

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
