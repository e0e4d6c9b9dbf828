"""What a course on attention studies around it; public as `lt.study`.

work        attention worked through by hand, every number exact, and answers checked
steer       the query that makes attention return a wanted mixture, or why there is none
derive      a derivation, line by line, each line checked before it is shown
try_query   what attention returns for a given query, and how far that is from a wish
weight_formula  the weights of orthonormal keys as formulas in sharpness and number of keys
generative  the evidence lower bound and its terms, a VAE
heads       heads in training: where their centres go, layer by layer, beside a control
gradients   gradient size against distance, as networks start and after training
games       minimax games: orbits, which step rules converge, equilibria, small GANs
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lattend.lazy import on_first_use

if TYPE_CHECKING:
    from lattend.study import games as games
    from lattend.study import generative as generative
    from lattend.study import gradients as gradients
    from lattend.study import heads as heads
    from lattend.study.derivations.draft import derive as derive
    from lattend.study.steering.formulas import weight_formula as weight_formula
    from lattend.study.steering.steer import steer as steer
    from lattend.study.steering.trial import try_query as try_query
    from lattend.study.worked.work import work as work

# Where each name lives, loaded when it is first used
_HOME = {
    "work": "lattend.study.worked.work",
    "steer": "lattend.study.steering.steer",
    "derive": "lattend.study.derivations.draft",
    "try_query": "lattend.study.steering.trial",
    "weight_formula": "lattend.study.steering.formulas",
    "generative": "lattend.study.generative",
    "heads": "lattend.study.heads",
    "gradients": "lattend.study.gradients",
    "games": "lattend.study.games",
}

__getattr__, __dir__ = on_first_use(globals(), "lt.study", _HOME)
