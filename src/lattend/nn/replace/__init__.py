"""Attention of other libraries' modules, run under a rule; see replace.py."""
