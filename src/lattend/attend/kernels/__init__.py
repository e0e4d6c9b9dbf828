"""The kernels: each computes attention over a plan, forward and backward."""
