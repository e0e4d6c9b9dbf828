"""Terms: formulas as trees of any notation, written as text, LaTeX and MathML."""
