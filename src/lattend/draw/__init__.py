"""Pictures of rules: `draw(rule, n=12)` gives a `Picture` with terminal, SVG, PNG, PDF and TikZ forms."""

from lattend.draw.grid.rules import draw as draw
from lattend.draw.picture import Picture as Picture
