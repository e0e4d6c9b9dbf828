"""The catalogue: known rules by name, one small file each."""
