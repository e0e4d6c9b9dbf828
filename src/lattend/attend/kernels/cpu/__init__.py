"""The CPU kernel: equal tiles of a plan together, as batched matrix products."""
