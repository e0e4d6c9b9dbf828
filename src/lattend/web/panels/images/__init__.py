"""Panels about images: convolution as attention, the 2-D RNN, patches."""
