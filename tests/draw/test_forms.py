"""Every form of a picture is read back and must hold exactly the cells it was made from."""

import re
import subprocess
import sys
import zlib
from io import BytesIO
from xml.etree import ElementTree

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from lattend.draw.formats.palette import ATTENDED, BOTH, EMPTY, ONLY_A, ONLY_B, OWN, PAPER
from lattend.draw.formats.scene import POINTS_PER_UNIT, Rect
from lattend.draw.grid.panel import cell_side, compared, squares
from lattend.draw.grid.titles import clipped
from lattend.draw.picture import Picture
from lattend.errors import LattendError

SVG = "{http://www.w3.org/2000/svg}"
ANSI = re.compile(r"\x1b\[[\d;]*m")
LEGENDS = {True: (ATTENDED, OWN), False: (ONLY_A, ONLY_B, BOTH)}

shapes = st.tuples(st.integers(1, 20), st.integers(1, 20))
masks = shapes.flatmap(lambda shape: hnp.arrays(np.bool_, shape))
pairs = shapes.flatmap(lambda shape: st.tuples(hnp.arrays(np.bool_, shape), hnp.arrays(np.bool_, shape)))


def one(marked, title="a rule"):
    rows, cols = (cell_side(name, size) for name, size in zip(("query", "key"), marked.shape, strict=True))
    return Picture(
        title, (squares(marked, rows, cols, np.eye(*marked.shape, dtype=bool)),), ("c",), (), LEGENDS[True]
    )


def two(a, b):
    rows, cols = (cell_side(name, size) for name, size in zip(("query", "key"), a.shape, strict=True))
    return Picture("two rules", (compared(a, b, rows, cols),), ("c",), (), LEGENDS[False])


pictures = masks.map(one) | pairs.map(lambda pair: two(*pair))


def grid(picture: Picture) -> Rect:
    """The rectangle under the cells: the first one after the page."""
    page, first = [item for item in picture.scene.items if isinstance(item, Rect)][:2]
    assert (page.fill, first.fill) == (PAPER, EMPTY.fill)
    return first


def cells_in(rects, picture: Picture):
    """The cells that these (x, y, width, height, fill) paint, each painted once at most."""
    panel, under = picture.panels[0], grid(picture)
    fills = [look.fill for look in panel.looks]
    height, width = under.height / panel.cells.shape[0], under.width / panel.cells.shape[1]
    cells = np.zeros_like(panel.cells)
    for x, y, w, h, fill in rects:
        if y < under.y - 0.01 or y + h > under.y + under.height + 0.01:
            continue  # a swatch of the legend
        edges = [(x - under.x) / width, (y - under.y) / height, w / width, h / height]
        left, top, across, down = (round(edge) for edge in edges)
        assert np.allclose(edges, [left, top, across, down], atol=0.02)
        part = cells[top : top + down, left : left + across]
        assert not part.any()
        part[...] = fills.index(fill)
    return cells


def svg_rects(text):
    for rect in list(ElementTree.fromstring(text).iter(f"{SVG}rect"))[2:]:
        yield *(float(rect.attrib[name]) for name in ("x", "y", "width", "height")), rect.attrib["fill"]


def tikz_rects(text):
    colours = dict(re.findall(r"\\definecolor\{(\w+)\}\{HTML\}\{(\w+)\}", text))
    fills = re.findall(r"\\fill\[(\w+)\] \((.*?),(.*?)\) rectangle \+\+\((.*?),(.*?)\);", text)
    assert len(fills) == text.count(r"\fill")
    for name, *numbers in fills[2:]:
        yield *map(float, numbers), f"#{colours[name].lower()}"


def pdf_rects(data, page_height):
    """The filled areas of a page in painting order, without the page itself and the ground of the grid."""
    stream = re.search(rb"stream\r?\n(.*?)\nendstream", data, re.DOTALL)
    assert stream is not None
    numbers, corners, colour, result = [], [], "", []
    for word in zlib.decompress(stream[1]).decode("latin-1").split():
        if re.fullmatch(r"-?[\d.]+", word):
            numbers.append(float(word))
            continue
        if word in ("rg", "g"):
            levels = numbers[-3:] if word == "rg" else 3 * numbers[-1:]
            colour = "#" + "".join(f"{round(255 * level):02x}" for level in levels)
        elif word in ("m", "l"):
            corners = [*(corners if word == "l" else []), numbers[-2:]]
        elif word == "f":
            (left, low), (right, high) = (np.array(corners) / POINTS_PER_UNIT).take([0, 2], axis=0)
            result.append((left, page_height - low, right - left, low - high, colour))
        numbers = []
    return result[2:]


def terminal_cells(picture: Picture, plain: bool = False):
    panel = picture.panels[0]
    lines = picture.terminal(width=200, colour=False, encoding="ascii" if plain else "utf-8").split("\n")
    margin = len(str(panel.cells.shape[0] - 1)) + 1
    above = next(index for index, line in enumerate(lines) if line.startswith("query down"))
    first = next(i for i, line in enumerate(lines) if i > above and line[: margin - 1].strip() == "0")
    glyphs = [look.plain if plain else look.glyph for look in panel.looks]
    rows = [
        line[margin:].ljust(2 * panel.cells.shape[1]) for line in lines[first : first + panel.cells.shape[0]]
    ]
    assert all(
        pair[1] == (" " if pair[0] == glyphs[0] else pair[0])
        for row in rows
        for pair in re.findall("..", row)
    )
    return np.array([[glyphs.index(glyph) for glyph in row[::2]] for row in rows], dtype=np.uint8)


@given(masks)
def test_squares_have_the_look_of_their_mask(marked):
    cells = one(marked).panels[0].cells
    assert ((cells > 0) == marked).all()
    assert ((cells == 2) == (marked & np.eye(*marked.shape, dtype=bool))).all()


@given(pairs)
def test_comparisons_have_three_classes(pair):
    a, b = pair
    cells = two(a, b).panels[0].cells
    assert ((cells == 1) == (a & ~b)).all()
    assert ((cells == 2) == (b & ~a)).all()
    assert ((cells == 3) == (a & b)).all()


@given(pictures)
def test_svg_holds_the_cells(picture):
    assert (cells_in(svg_rects(picture.svg()), picture) == picture.panels[0].cells).all()


@given(pictures)
def test_tikz_holds_the_cells(picture):
    assert (cells_in(tikz_rects(picture.tikz()), picture) == picture.panels[0].cells).all()


@settings(max_examples=30)
@given(pictures)
def test_pdf_holds_the_cells(picture):
    data = picture.pdf()
    assert data.startswith(b"%PDF-1") and data.rstrip().endswith(b"%%EOF")
    assert (cells_in(pdf_rects(data, picture.scene.height), picture) == picture.panels[0].cells).all()


@settings(max_examples=30)
@given(pictures, st.sampled_from([1.0, 2.0, 3.0]))
def test_png_holds_the_cells(picture, scale):
    pixels = np.asarray(Image.open(BytesIO(picture.png(scale=scale))).convert("RGB"))
    assert pixels.shape == (round(scale * picture.scene.height), round(scale * picture.scene.width), 3)
    panel, under = picture.panels[0], grid(picture)
    rows, cols = panel.cells.shape
    for (i, j), look in np.ndenumerate(panel.cells):
        x, y = under.x + under.width * (j + 0.5) / cols, under.y + under.height * (i + 0.5) / rows
        red, green, blue = pixels[int(scale * y), int(scale * x)].tolist()
        assert f"#{red:02x}{green:02x}{blue:02x}" == panel.looks[look].fill


@given(pictures, st.booleans())
def test_terminal_holds_the_cells(picture, plain):
    assert (terminal_cells(picture, plain) == picture.panels[0].cells).all()


@given(pictures, st.integers(1, 60), st.booleans())
def test_terminal_keeps_to_its_width(picture, width, colour):
    text = picture.terminal(width=width, colour=colour, encoding="utf-8")
    assert max(len(ANSI.sub("", line)) for line in text.split("\n")) <= max(16, width)


@given(pictures)
def test_colour_only_adds_escapes(picture):
    plain, coloured = (picture.terminal(80, colour=colour, encoding="utf-8") for colour in (False, True))
    assert "\x1b" not in plain
    assert [line.rstrip() for line in ANSI.sub("", coloured).split("\n")] == plain.split("\n")
    assert coloured.count("\x1b[38;5;") == coloured.count("\x1b[0m") > 0


def test_narrow_terminal_shades_merged_cells():
    q, k = np.ix_(np.arange(64), np.arange(64))
    text = one(k <= q).terminal(width=19, colour=False, encoding="utf-8")
    rows = [line[3:] for line in text.split("\n") if re.match(r"[ \d]{3}█", line)]
    # on the diagonal (1 + 2 + 3 + 5*4)/32 = 81%, then (1 + 2 + 3 + 4)/32 = 31%
    assert rows == ["█" * (2 * i + 1) + "▒" + "·" * (14 - 2 * i) for i in range(8)]
    assert "one character shows 8 by 4 cells" in text.replace("\n", " ")
    assert "·  empty" in text and "░▒▓█ above 0% to" in text


def test_narrow_terminal_tells_merged_classes():
    a, b = np.zeros((1, 32), bool), np.zeros((1, 32), bool)
    a[0, :9] = b[0, 4:8] = b[0, 9:12] = b[0, 16] = True
    text = two(a, b).terminal(width=18, colour=False, encoding="ascii")
    assert "0 //XX+\\..\\......." in text.split("\n")
    assert "one character shows 1 by 2 cells" in text.replace("\n", " ")


def test_ascii_where_blocks_cannot_be_encoded():
    picture = one(np.eye(3, dtype=bool), title="n × n ≤ 9 …")
    assert picture.terminal(80, False, "ascii").isascii()
    assert picture.terminal(80, False, "ascii").startswith("n x n <= 9 ...\n")
    assert "█" not in picture.terminal(80, False, "latin-1")
    assert "██" in picture.terminal(80, False, "cp437")


class Stream:
    """A standard output of one's own."""

    def __init__(self, encoding, tty):
        self.encoding, self.tty = encoding, tty

    def isatty(self):
        return self.tty


@pytest.mark.parametrize(
    ("tty", "environment", "coloured"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
    ],
)
def test_str_follows_standard_output(monkeypatch, tty, environment, coloured):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "33")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    picture = one(np.eye(12, dtype=bool))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Stream("ascii", tty))
        text = str(picture)
    assert ("\x1b" in text) is coloured
    assert text == picture.terminal(33, coloured, "ascii")


@given(st.text(max_size=300))
def test_any_title_gives_well_formed_svg_and_balanced_tikz(title):
    picture = one(np.eye(2, dtype=bool), title=clipped(title))
    root = ElementTree.fromstring(picture.svg())
    assert (root.findtext(f"{SVG}title") or "").split() == clipped(title).split()
    bare = re.sub(r"\\[{}]", "", picture.tikz())
    assert bare.count("{") == bare.count("}")


def test_tikz_escapes_what_latex_reads():
    text = one(np.eye(2, dtype=bool), title=r"50% of a_b & {c} #1 $2 x^y ~ \n --").tikz()
    shown = r"50\% of a\_b \& \{c\} \#1 \$2 x\textasciicircum{}y \textasciitilde{} \textbackslash{}n {-}{-}"
    assert f"{{{shown}}};" in text


def test_svg_is_what_notebooks_show():
    picture = one(np.eye(2, dtype=bool))
    assert picture._repr_svg_() == picture.svg()
    assert repr(picture) == "<Picture a rule: c>"


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("a.svg", b"<svg "),
        ("a.SVG", b"<svg "),
        ("a.png", b"\x89PNG"),
        ("a.pdf", b"%PDF"),
        ("a.tex", b"% needs \\usepackage{tikz}"),
        ("a.tikz", b"% needs \\usepackage{tikz}"),
        ("a.txt", b"a rule\n"),
    ],
)
def test_save_goes_by_the_ending(tmp_path, name, start):
    path = one(np.eye(2, dtype=bool)).save(tmp_path / name)
    assert path == tmp_path / name
    assert path.read_bytes().startswith(start)


@pytest.mark.parametrize("name", ["a.jpg", "a", ".svg"])
def test_save_names_the_endings_it_knows(tmp_path, name):
    path = tmp_path / name
    with pytest.raises(LattendError) as error:
        one(np.eye(2, dtype=bool)).save(path)
    known = ".svg, .png, .pdf, .tex, .tikz, .txt"
    assert str(error.value) == f'cannot save a picture as "{path}": the ending is not one of {known}'
    assert not path.exists()


def test_save_into_a_missing_folder_or_onto_a_folder(tmp_path):
    picture = one(np.eye(2, dtype=bool))
    with pytest.raises(LattendError) as error:
        picture.save(tmp_path / "no" / "a.svg")
    there = tmp_path / "no"
    assert str(error.value) == f'cannot save "{there / "a.svg"}": there is no folder "{there}"; make it first'
    (tmp_path / "b.svg").mkdir()
    with pytest.raises(LattendError, match="Is a directory"):
        picture.save(tmp_path / "b.svg")


def test_equal_pictures_give_equal_files():
    first, second = (one(np.eye(3, dtype=bool)) for _ in range(2))
    assert first.pdf() == second.pdf()
    assert first.png() == second.png()


@pytest.mark.parametrize("scale", [0, -1, 1e6, float("nan")])
def test_png_scale_is_checked(scale):
    with pytest.raises(LattendError, match="scale=2 is usual"):
        one(np.eye(2, dtype=bool)).png(scale=scale)


def test_drawing_libraries_load_only_when_used():
    code = (
        "import sys, lattend.draw; print(sorted({'PIL', 'matplotlib', 'torch', 'islpy'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_pictures_cannot_be_changed():
    picture = one(np.eye(2, dtype=bool))
    with pytest.raises(AttributeError):
        setattr(picture, "title", "other")  # noqa: B010  (assigning is a type error already)
    with pytest.raises(ValueError, match="read-only"):
        picture.panels[0].cells[0, 0] = 0
