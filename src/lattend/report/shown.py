"""Shown: what a notebook shows of a result, every form of it in one bundle."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lattend.errors import LattendError

# The forms that a result may have, by the method that gives each; None where it has none
FORMS = {"text/latex": "_repr_latex_", "image/svg+xml": "_repr_svg_", "text/html": "_repr_html_"}

# Pictures are drawn on white paper. On a dark page lightness is turned over, and hues stay. JupyterLab,
# VS Code, Colab and pages made by Sphinx say which they are; of other pages the system's choice is taken.
_DARK = (
    '[data-jp-theme-light="false"]',
    '[data-vscode-theme-kind="vscode-dark"]',
    '[data-vscode-theme-kind="vscode-high-contrast"]',
    '[theme="dark"]',
    '[data-theme="dark"]',
)
_UNSAID = (
    'html:not([theme], [data-theme="light"]) '
    'body:not([data-jp-theme-light], [data-vscode-theme-kind], [data-theme="light"])'
)
_TURNED = "filter: invert(0.93) hue-rotate(180deg)"
STYLE = f"""<style>
.lattend svg {{ display: block; max-width: 100%; height: auto; margin: 0.3em 0; border-radius: 4px; }}
.lattend > p {{ margin: 0.4em 0; max-width: 46em; }}
.lattend > table {{ border-collapse: collapse; margin: 0.4em 0; border: 0; }}
.lattend > table th, .lattend > table td {{ padding: 0.2em 0.9em 0.2em 0; border: 0; }}
.lattend .pieces td, .lattend .derivation td + td {{ text-align: left; }}
.lattend.lattend tr:nth-child(n) {{ background: none; }}
.lattend .good {{ color: #1a7f37; font-weight: 600; }}
.lattend .bad {{ color: #c0362c; font-weight: 600; }}
.lattend .open {{ color: #9a6700; font-weight: 600; }}
{", ".join(f"{page} .lattend svg" for page in _DARK)} {{ {_TURNED}; }}
{", ".join(f"{page} .lattend .good" for page in _DARK)} {{ color: #4ac26b; }}
{", ".join(f"{page} .lattend .bad" for page in _DARK)} {{ color: #ff8f86; }}
{", ".join(f"{page} .lattend .open" for page in _DARK)} {{ color: #e3b341; }}
@media (prefers-color-scheme: dark) {{ {_UNSAID} .lattend svg {{ {_TURNED}; }} }}
</style>"""


class Shown:
    """A result that a notebook shows as HTML, SVG, LaTeX or text, whichever forms it has."""

    __slots__ = ()

    def _repr_mimebundle_(
        self, include: Iterable[str] | None = None, exclude: Iterable[str] | None = None
    ) -> dict[str, str]:
        """The forms by their MIME types; the notebook chooses among them."""
        return bundle(self)


class Drawn(Shown):
    """A result that also shows its picture, if it has one."""

    __slots__ = ()

    if TYPE_CHECKING:

        def draw(self) -> Any:
            """The picture."""

    def _repr_svg_(self) -> str | None:
        try:
            return self.draw().svg()
        except LattendError:
            return None


def bundle(result: object) -> dict[str, str]:
    """All forms of a result by MIME type. The HTML has the picture too, since notebooks prefer it."""
    forms = {"text/plain": str(result)}
    for kind, method in FORMS.items():
        form = getattr(result, method, None)
        if said := form and form():
            forms[kind] = said
    svg, html = forms.get("image/svg+xml", ""), forms.get("text/html", "")
    if svg or html:
        forms["text/html"] = f'<div class="lattend">{STYLE}\n{svg}{html}</div>'
    return forms
