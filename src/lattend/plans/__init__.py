"""Plans: which tiles of pairs to compute, in which order of positions, for a rule at its numbers."""
