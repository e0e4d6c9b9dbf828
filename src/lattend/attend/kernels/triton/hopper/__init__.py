"""Kernels for NVIDIA's Hopper, in Gluon, the lower language of Triton: forward and backward passes."""
