"""Meters: what torch modules cost, counted as they run; needed, executed and dense apart."""
