"""The catalogue: known rules by name, by the shape of their pairs: on a line, in blocks, on an image."""
