"""Plain code for layers, on lists of floats or of numbers that count themselves: exact, slow, easy to read.

Layers: linear, feed_forward, layer_norm, rms_norm, embedding, conv2d, patch_embedding, recurrent (rnn, lstm
and gru on a line), rnn2d and rnn2d_stack (the same cells on an image). A product with padding, or with a
state that is not there, is left out and not done with a zero.

>>> from lattend.plain import Tally, counting, rnn2d
>>> tally = Tally()
>>> image, weights = counting([[[1.0], [2.0]]], tally), {"W_in": [[0.5]], "W_left": [[0.1]], "W_top": [[0.1]]}
>>> states = rnn2d(image, counting(weights, tally))
>>> tally.multiplies, tally.adds, tally.functions  # two pixels, one of which has a left neighbour
(3, 1, 2)
"""

from lattend.plain.convolution import conv2d as conv2d
from lattend.plain.convolution import patch_embedding as patch_embedding
from lattend.plain.gradients import backward as backward
from lattend.plain.grid import rnn2d as rnn2d
from lattend.plain.grid import rnn2d_stack as rnn2d_stack
from lattend.plain.layers import plain_layer as plain_layer
from lattend.plain.numbers import Number as Number
from lattend.plain.numbers import Tally as Tally
from lattend.plain.numbers import counting as counting
from lattend.plain.numbers import floats as floats
from lattend.plain.recurrent import recurrent as recurrent
from lattend.plain.running import run as run
from lattend.plain.simple import embedding as embedding
from lattend.plain.simple import feed_forward as feed_forward
from lattend.plain.simple import layer_norm as layer_norm
from lattend.plain.simple import linear as linear
from lattend.plain.simple import rms_norm as rms_norm
