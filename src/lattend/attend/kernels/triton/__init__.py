"""The Triton kernels: one forward and two backward ones, for every part of every plan."""
