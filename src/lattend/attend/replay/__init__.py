"""Repeating a call: from its signature to what was prepared for it."""
