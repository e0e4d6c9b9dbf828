"""The reference: what is public, by the four questions that it answers, from docstrings and types."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from lattend.rules import CATALOGUE

LOOK = "What does it look like?"
COST = "What does it cost?"
FAST = "Can I run it that fast?"
RIGHT = "Is it right?"


@dataclass(frozen=True)
class Page:
    """A page of the reference: its names in this order, then what else its `folders` have."""

    name: str
    title: str
    question: str
    words: str
    names: str = ""
    folders: str = ""


PAGES = (
    Page(
        *("rules", "Rules", LOOK, "A rule says which (query, key) pairs are attended."),
        names="lattend.rule lattend.Rule lattend.rules.maximum lattend.rules.minimum lattend.rules.RuleInfo "
        "lattend.sets.compare.Witness",
    ),
    Page(
        *("catalogue", "The catalogue", LOOK, "Rules with a name, as functions."),
        names=" ".join(
            f"lattend.rules.{name}" for name in (*CATALOGUE, "local", "sliding_window", "window_size")
        ),
        folders="lattend.rules",
    ),
    Page(
        *("pictures", "Pictures", LOOK, "Rules and layers drawn, for a terminal, a notebook or a paper."),
        names="lattend.nn.draw_patches lattend.nn.draw_heads lattend.nn.kernel_heads lattend.nn.draw_scores "
        "lattend.nn.draw_conv lattend.nn.draw_grid",
        folders="lattend.draw",
    ),
    Page(
        *("counts", "Counts", COST, "What `Rule.count` and its kin give: formulas, and where they hold."),
        names="lattend.counts.count.Count lattend.counts.growth.Growth lattend.counts.reach.Reach "
        "lattend.counts.field.Depth",
    ),
    Page(
        *("layers", "Prices of layers and models", COST, "The exact price of layers, and of real models."),
        names="lattend.cost.Cost lattend.cost.attention lattend.cost.linear lattend.cost.feed_forward "
        "lattend.cost.norm lattend.cost.embedding lattend.cost.conv lattend.cost.patch_embedding "
        "lattend.cost.rnn lattend.cost.lstm lattend.cost.gru lattend.cost.rnn2d "
        "lattend.cost.transformer_block lattend.cost.encoder lattend.cost.decoder lattend.cost.vit "
        "lattend.cost.vae lattend.cost.of lattend.cost.FlopCounter lattend.cost.config lattend.cost.mfu",
        folders="lattend.cost",
    ),
    Page(
        *("attention", "Attention", FAST, "Attention over a rule's pairs and no others."),
        names="lattend.attention lattend.Bias lattend.KVCache lattend.max_logits lattend.explain "
        "lattend.attend.quantize lattend.attend.explain.explain.Explanation",
        folders="lattend",
    ),
    Page(
        *("parallel", "Many devices", FAST, "One rule over many devices, and what they send each other."),
        names=" ".join(f"lattend.parallel.{name}" for name in ("plan", "ShardPlan", "Cluster", "Cut")),
        folders="lattend.parallel",
    ),
    Page(
        *("modules", "Modules", FAST, "torch modules: attention, images, convolution, recurrent nets."),
        names="lattend.nn.MultiHeadAttention lattend.nn.replace_attention",
        folders="lattend.nn",
    ),
    Page(
        *("integrations", "Other libraries", FAST, "Hugging Face, FlexAttention, Jupyter."),
        names="lattend.integrations.transformers.register lattend.integrations.transformers.set_rule "
        "lattend.integrations.flex.mask_mod lattend.integrations.flex.block_mask "
        "lattend.integrations.notebook.explore",
    ),
    Page(
        *("claims", "Claims and derivations", RIGHT, "Formulas proved or refuted, and derived line by line."),
        names="lattend.counts.verdict.Verdict lattend.study.derive "
        "lattend.study.derivations.derivation.Derivation",
    ),
    Page(
        *("by_hand", "Attention by hand", RIGHT, "Attention worked through, and steered."),
        names="lattend.study.work lattend.study.worked.work.Worked lattend.study.steer "
        "lattend.study.try_query lattend.study.weight_formula",
        folders="lattend.study",
    ),
    Page(
        *("training", "Heads and gradients", RIGHT, "Where heads go, and how far gradients reach."),
        folders="lattend.study.heads lattend.study.gradients",
    ),
    Page(
        *("generative", "Generative models", RIGHT, "The evidence lower bound with its terms apart, a VAE."),
        folders="lattend.study.generative",
    ),
    Page(
        *("games", "Minimax games", RIGHT, "Which step rules converge, cycle or diverge, proved."),
        folders="lattend.study.games",
    ),
    Page(
        *("errors", "Errors", RIGHT, "Every error says what was asked, what was found, and what to do."),
        folders="lattend.errors",
    ),
)
# Results: classes that users meet and do not make
MADE = (
    *("lattend.Rule", "lattend.draw.Picture", "lattend.cost.Cost", "lattend.counts.", "lattend.sets."),
    *("lattend.attend.", "lattend.study.worked.", "lattend.study.derivations."),
)
# What classes have for other parts of the library
INNER = {
    "lattend.Rule": "of given located mask_at baked limits lengths domain moduli positions complete",
    "lattend.counts.count.Count": "bound number restricted counted_from format_pieces typeset covers "
    "domain_text",
}
HEAD = """# Reference

What is public, by the question that it answers. `help(lt.attention)` in Python says the same as these pages.
"""


def pages() -> dict[str, str]:
    """The index and the pages, by path."""
    index = [HEAD]
    for question in dict.fromkeys(page.question for page in PAGES):
        index.append(f"## {question}\n")
        for page in (page for page in PAGES if page.question == question):
            index += [f"### [](reference/{page.name}.rst)\n", f"{page.words}\n", table(names(page))]
    contents = "\n".join(f"reference/{page.name}" for page in PAGES)
    index.append(f"```{{toctree}}\n:hidden:\n\n{contents}\n```\n")
    found = {"reference.md": "\n".join(index)}
    return found | {f"reference/{page.name}.rst": written(page) for page in PAGES}


def written(page: Page) -> str:
    """A page: its title, its names in a list, and each with what it says of itself."""
    parts = [f"{page.title}\n{'=' * len(page.title)}\n", page.words.replace("`", "``"), ""]
    for name in names(page):
        kind = "class" if inspect.isclass(found(name)) else "function"
        kind = "exception" if kind == "class" and issubclass(found(name), Exception) else kind
        parts.append(f".. auto{kind}:: {name}")
        if kind == "class":
            parts.append("   :members:")
            if name in INNER:
                parts.append(f"   :exclude-members: {', '.join(INNER[name].split())}")
        parts.append("")
    return "\n".join(parts)


def table(some: Iterable[str]) -> str:
    """Names with their first sentences."""
    rows = [f"| {{py:obj}}`~{name}` | {summary(name)} |" for name in some]
    return "\n".join(["| | |", "|---|---|", *rows, ""])


def summary(name: str) -> str:
    """The first line of what an object says of itself, as a cell of a table."""
    text = (inspect.getdoc(found(name)) or "").partition("\n")[0].replace("|", r"\|")
    prose_and_code = text.split("`")
    prose_and_code[::2] = [re.sub(r"([*_])", r"\\\1", prose) for prose in prose_and_code[::2]]
    return "`".join(prose_and_code)


@cache
def names(page: Page) -> tuple[str, ...]:
    """The names of a page: those it lists, then those of its folders that no page lists."""
    listed = {name for one in PAGES for name in one.names.split()}
    own = page.names.split()
    for folder in page.folders.split():
        own += [name for name in public(folder) if name not in listed]
    return tuple(own)


def public(folder: str) -> list[str]:
    """What a folder gives to its users: functions and classes, not other folders."""
    module: Any = import_module(folder)
    given = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    some = [(name, getattr(module, name)) for name in given]
    return [
        f"{folder}.{name}"
        for name, value in some
        if (inspect.isclass(value) or inspect.isfunction(value)) and belongs(value, folder)
    ]


def belongs(value: Any, folder: str) -> bool:
    """Whether this is of the folder, and public nowhere above it."""
    above = {"lattend.rules": ("Rule",)}.get(folder, ())
    home = value.__module__
    inside = home.startswith(folder) or folder == "lattend" or home.startswith("lattend.study.image_sets")
    return inside and home.startswith("lattend.") and value.__name__ not in above


def found(name: str) -> Any:
    """The object of a dotted name."""
    module, _, own = name.rpartition(".")
    return getattr(import_module(module), own)


@cache
def homes() -> dict[str, str]:
    """The public name of every object, by where it lives and by its bare name."""
    known: dict[str, str] = {}
    for name in (name for page in PAGES for name in names(page)):
        value = found(name)
        known[f"{value.__module__}.{value.__qualname__}"] = name
        known.setdefault(value.__qualname__, name)
    return known


def public_name(target: str) -> str | None:
    """Under which name the reference has an object; None where it has not."""
    known = homes()
    return known.get(target) or (known.get(target.rpartition(".")[2]) if "lattend" in target else None)
