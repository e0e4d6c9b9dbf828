"""Decoding: the KV cache, and one step of it."""
