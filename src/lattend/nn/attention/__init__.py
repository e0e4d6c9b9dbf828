"""Attention as a layer: projections, encodings of positions, a rule."""
