"""Comparisons: layers side by side as a size grows, and where they cross."""

from lattend.cost.comparison.comparison import Comparison as Comparison
from lattend.cost.comparison.comparison import compare as compare
from lattend.cost.comparison.tables import Architectures as Architectures
