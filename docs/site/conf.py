"""Sphinx's settings for the site; make.py calls it."""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "src")]

import lattend  # noqa: E402  (from this repository)

project = "Lattend"
copyright = "Lattend's contributors"
version = release = lattend.__version__
root_doc = "index"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "docstrings",
    "mathml",
]
exclude_patterns: list[str] = []
nitpicky = True
suppress_warnings = ["myst.xref_missing_title"]

# Chapters: GitHub's anchors
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "dollarmath", "attrs_inline"]
myst_links_external_new_tab = False

# Notebooks: run when they changed; make.py says whether, and where outputs are kept
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # widgets' scripts would come from elsewhere

# Reference
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"

# Copied without prompts and output
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_copy_empty_lines = False

html_context = {"default_mode": "auto"}
html_theme = "pydata_sphinx_theme"
html_title = "Lattend"
html_static_path = ["style.css", "search.js"]
html_js_files = ["search.js"]
html_css_files = ["style.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {page: [] for page in ("index", "search", "docs/speed")}
html_theme_options = {
    "logo": {"text": "Lattend"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button-field"],
    "search_as_you_type": True,
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
    "navigation_depth": 3,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-light",
    "pygments_dark_style": "a11y-dark",
}


def setup(app: Sphinx) -> None:
    """What Sphinx calls: after a change in this folder every page is written again."""
    code = b"".join(file.read_bytes() for file in sorted(HERE.glob("*.py")))
    app.add_config_value("made_by", sha256(code).hexdigest(), "env", str)
