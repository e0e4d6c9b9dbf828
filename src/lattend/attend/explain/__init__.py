"""Explaining a call: its plan, its kernel, why not the others, and the predicted time."""
