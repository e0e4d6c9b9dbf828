"""Pictures of layers: patches, heads, kernels and wavefronts, with their prices; no torch is loaded."""
