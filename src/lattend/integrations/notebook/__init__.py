"""Lattend in notebooks: what a rule shows of itself."""
