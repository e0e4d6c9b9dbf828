"""The small language of rules: its expressions, the parser, functions traced into it, evaluation."""
