"""Recurrent nets on a grid: GridRNN, its cells, and the ways to run them."""
