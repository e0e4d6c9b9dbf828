"""Plans: which tiles of squares to compute, in which order of positions, for a rule at its numbers."""
