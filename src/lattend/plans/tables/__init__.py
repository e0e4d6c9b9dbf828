"""Tables of tiles as GPU kernels read them, and what they are expected to cost. No torch, no Triton."""
