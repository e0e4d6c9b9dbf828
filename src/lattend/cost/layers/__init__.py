"""Layers: each as a few statements."""
