"""Comparisons: layers side by side as a size grows, and where they cross."""

from lattend.comparisons.architectures import Architectures as Architectures
from lattend.comparisons.architectures import architectures as architectures
from lattend.comparisons.comparison import Comparison as Comparison
from lattend.comparisons.comparison import compare as compare
