"""Plain code for layers, on lists of floats or of numbers that count: exact, slow, easy to read.

Layers: linear, feed_forward, layer_norm, rms_norm, embedding, conv2d, patch_embedding, attention, recurrent
(rnn, lstm and gru on a line), rnn2d and rnn2d_stack (the same cells on an image); in `transformer` blocks and
models made of them. A product with padding, or with a state that is not there, is left out.

>>> from lattend.cost.reference import CountingTape, counting, rnn2d
>>> tape = CountingTape()
>>> image, weights = counting([[[1.0], [2.0]]], tape), {"W_in": [[0.5]], "W_left": [[0.1]], "W_top": [[0.1]]}
>>> states = rnn2d(image, counting(weights, tape))
>>> tape.multiplies, tape.adds, tape.functions  # two pixels, one of which has a left neighbour
(3, 1, 2)
"""

from lattend.cost.reference.layers import plain_layer as plain_layer
from lattend.cost.reference.layers import run as run
from lattend.cost.reference.nets import conv2d as conv2d
from lattend.cost.reference.nets import embedding as embedding
from lattend.cost.reference.nets import feed_forward as feed_forward
from lattend.cost.reference.nets import layer_norm as layer_norm
from lattend.cost.reference.nets import linear as linear
from lattend.cost.reference.nets import patch_embedding as patch_embedding
from lattend.cost.reference.nets import rms_norm as rms_norm
from lattend.cost.reference.numbers import CountingNumber as CountingNumber
from lattend.cost.reference.numbers import CountingTape as CountingTape
from lattend.cost.reference.numbers import backward as backward
from lattend.cost.reference.numbers import counting as counting
from lattend.cost.reference.numbers import floats as floats
from lattend.cost.reference.recurrence import recurrent as recurrent
from lattend.cost.reference.recurrence import rnn2d as rnn2d
from lattend.cost.reference.recurrence import rnn2d_stack as rnn2d_stack
