"""Convolutions as attention: one head for every shift of the kernel.

A head whose weight lies whole on the pixel q + Δ moves the image by Δ. A convolution is the sum of such
moves, each followed by its matrix W^(h). `from_conv` and `to_conv` go from one to the other, `sharpness` says
how far a head of finite α is from a move.
"""
