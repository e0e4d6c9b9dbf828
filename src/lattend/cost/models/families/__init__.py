"""Families: what makes a model of the fields of a config. Text models are data, in text.toml."""
