"""The native kernel: tiles of 16 queries, each with its list of keys, in compiled code on a CPU."""
