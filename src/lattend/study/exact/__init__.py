"""Exact mathematics, with sympy: numbers and formulas, how they are read and written."""
