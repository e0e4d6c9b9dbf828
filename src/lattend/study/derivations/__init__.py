"""Derivations: chains of formulas, each line checked before it is shown."""
