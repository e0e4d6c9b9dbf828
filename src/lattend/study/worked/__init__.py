"""Attention by hand: every step exact and in decimals, and a given answer judged step by step."""
