"""The forms of a picture: terminal, SVG, PNG, PDF, TikZ."""
