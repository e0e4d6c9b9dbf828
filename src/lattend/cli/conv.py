"""lattend conv: a convolution as attention heads: what they take, how sharp they must be, both prices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from lattend.cli.arguments import out_option
from lattend.cli.command import Answer, Command, flag, option, setting
from lattend.errors import DomainError, NamingError, TextError
from lattend.nn.images.patch_grid import read_size

if TYPE_CHECKING:
    from lattend.nn.convolution.geometry import Geometry

Facts = list[tuple[str, str]]

MOST_KEYS, MOST_HEADS = 32, 64  # of an image on which heads are run: every query against every key


@dataclass(frozen=True)
class KernelFields:
    """A kernel and the image that it runs on, as they are typed in the terminal and on the page."""

    called: ClassVar[str] = "--{}"  # what messages call a field

    kernel: str = setting("K", "Taps: 3, or rows by columns: 3x5.", "3")
    stride: str = setting("N", "From query to query.", "1")
    dilation: str = setting("N", "From tap to tap.", "1")
    padding: str | None = option("N|same|valid", "Around the image; half the kernel if not given.")
    padding_mode: str = setting("zeros|replicate", "What stands in the padding.", "zeros")
    size: str = setting("ROWSxCOLS", "The image.", "8x8")

    def arguments(self) -> dict[str, Any]:
        """The arguments of lt.nn.draw_conv that differ from its defaults."""
        options: dict[str, Any] = {"kernel": self._size("kernel")}
        options |= {name: size for name in ("stride", "dilation") if (size := self._size(name)) != 1}
        if self.padding in ("same", "valid"):
            options["padding"] = self.padding
        elif self.padding:
            options["padding"] = self._padding(self.padding)
        return options | ({} if self.padding_mode == "zeros" else {"padding_mode": self.padding_mode})

    def geometry(self) -> Geometry:
        """The geometry of the kernel; raises where the sizes allow none."""
        from lattend.nn.convolution.geometry import read_geometry

        return read_geometry(**self.arguments())

    def image(self) -> tuple[int, int]:
        """Rows and columns."""
        from lattend.nn.images.patch_grid import pair

        return pair("size", self._size("size"))

    def _size(self, name: str) -> int | tuple[int, int]:
        return read_size(self.called.format(name), getattr(self, name))

    def _padding(self, text: str) -> int | tuple[int, int]:
        try:
            return read_size("", text)
        except TextError:
            message = "is same, valid, a whole number, or rows by columns as in 1x2"
            raise TextError(f"{self.called.format('padding')} {message}", text, 0, len(text)) from None


@dataclass(frozen=True)
class ConvCommand(KernelFields, Command):
    """A convolution as attention heads, one for each tap of its kernel.

    The pixels they take for a query in the middle and at the corner, the weight that soft heads leak against
    their sharpness α, and the price: hard heads cost what the convolution needs. With --filter, how far soft
    heads are from the convolution on a small image; with --prove, the price for images of every size.

        lattend conv --kernel 3 --size 8x8 --channels 16 --out-channels 32 --alpha 2
        lattend conv --kernel 3 --dilation 2 --padding-mode replicate --error 1e-6
        lattend conv --kernel 2x3 --stride 2 --padding 1 --size 9x12 --out conv.svg
        lattend conv --kernel 3 --alpha 2 --filter edges
        lattend conv --kernel 3 --channels 16 --out-channels 32 --prove
    """

    channels: int | None = option("C", "Channels in, for the price.")
    out_channels: int | None = option("C", "Channels out.")
    alpha: float | None = option("A", "How sharp heads are: their leak.")
    error: float | None = option("E", "A leak: how sharp heads must be.")
    filter: str | None = option(
        "NAME", "Run soft heads on an image: edges, average, sharpen or random; with --alpha."
    )
    prove: bool = flag("Prove that hard heads cost the same, at all sizes.")
    out: str | None = out_option()

    def answer(self) -> Answer:
        from lattend.nn.pictures.conv import draw_conv

        for name, number in (("--channels", self.channels), ("--out-channels", self.out_channels)):
            if number is not None and number < 1:
                raise DomainError(f"{name} must be at least 1, got {number}")
        image = self.image()
        figure = draw_conv(
            **self.arguments(),
            size=image,
            c_in="c_in" if self.channels is None else self.channels,
            c_out="c_out" if self.out_channels is None else self.out_channels,
            alpha=self.alpha,
            error=self.error,
        )
        more: Facts = []
        data: dict[str, Any] = {}
        if self.filter is not None:
            if self.alpha is None:
                raise NamingError("--filter runs soft heads: say how sharp they are, as in --alpha 2")
            facts, data["filter"] = _trial(self.geometry(), image, self.alpha, self.filter)
            more += facts
        if self.prove:
            if self.channels is None or self.out_channels is None:
                raise NamingError("--prove needs numbers of channels: give --channels and --out-channels")
            facts, data["same_price"] = _proof(self.geometry(), image, self.channels, self.out_channels)
            more += facts
        figure = replace(figure, facts=(*figure.facts, *more), data={**figure.data, **data})
        return figure


def _trial(
    geometry: Geometry, image: tuple[int, int], alpha: float, name: str
) -> tuple[Facts, dict[str, Any]]:
    """Print the error of soft heads against the convolution on an image, and its bound."""
    from lattend.nn.convolution.trial import try_heads
    from lattend.report.numbers import format_number

    keys = max(*image, *geometry.keys(*image))
    if keys > MOST_KEYS or geometry.heads > MOST_HEADS:
        raise DomainError(
            f"--filter runs {geometry.heads:,} heads on {keys:,} rows or columns with the padding; "
            f"at most {MOST_HEADS} heads and {MOST_KEYS} rows and columns: take a smaller --size or --kernel"
        )
    trial = try_heads(geometry, *image, alpha, name)
    numbers = {"error": trial.error, "bound": float(trial.bound.max()), "hard_error": trial.hard_error}
    error, bound, hard = map(format_number, numbers.values())
    sentence = f"soft heads differ from the convolution by {error}, at most {bound}; hard heads by {hard}"
    return [(f"filter {name}", sentence)], {"name": name, **numbers}


def _proof(
    geometry: Geometry, image: tuple[int, int], channels: int, out_channels: int
) -> tuple[Facts, dict[str, Any]]:
    """Print whether hard heads cost as much as the convolution, for all image sizes."""
    from lattend.nn.convolution.convert import priced_heads
    from lattend.nn.convolution.price import QUANTITIES, of_conv
    from lattend.report.numbers import format_value

    layer = priced_heads(geometry, channels, out_channels)
    price = of_conv(layer, *image)
    verdicts = {quantity: layer.same_price(quantity) for quantity in QUANTITIES}
    facts = [
        (f"same {quantity}", f"{verdict}; here {format_value(price.value(quantity))}")
        for quantity, verdict in verdicts.items()
    ]
    return facts, {quantity: verdict.holds for quantity, verdict in verdicts.items()}
