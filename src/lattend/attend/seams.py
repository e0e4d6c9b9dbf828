"""Seams: what nn/ and parallel/ build on, besides `attention`, `Bias` and the messages of attend/bias.py.

Whatever else is in this folder may change without a look at them; tests/test_architecture.py holds them to
this list. A layer with Triton kernels of its own imports `kernels.triton.launch_replay` too.
"""

# Arguments: reading and checking what a call is given
from lattend.attend.call.attention_call import BackwardInputs as BackwardInputs
from lattend.attend.call.attention_call import CallSignature as CallSignature
from lattend.attend.call.dropout import new_seed as new_seed
from lattend.attend.call.dropout import placed_seed as placed_seed
from lattend.attend.call.inputs import as_one_kind as as_one_kind
from lattend.attend.call.inputs import check_names as check_names
from lattend.attend.call.inputs import check_shapes as check_shapes
from lattend.attend.call.inputs import check_sinks as check_sinks
from lattend.attend.call.inputs import numbers_given as numbers_given
from lattend.attend.call.inputs import sizes_given as sizes_given
from lattend.attend.call.inputs import term_given as term_given
from lattend.attend.call.options import AttentionOptions as AttentionOptions
from lattend.attend.call.options import KernelOptions as KernelOptions
from lattend.attend.call.options import check_scoring as check_scoring
from lattend.attend.call.padding import padding_given as padding_given
from lattend.attend.call.rule_names import OpenArray as OpenArray
from lattend.attend.call.rule_names import RuleNames as RuleNames
from lattend.attend.call.rule_names import rule_names as rule_names

# Sinks, terms, layouts
from lattend.attend.call.sinks import sink_gradients as sink_gradients
from lattend.attend.call.sinks import with_sinks as with_sinks
from lattend.attend.call.tensor_terms import evaluate as evaluate
from lattend.attend.call.tensors import contiguous_strides as contiguous_strides

# A decoding step
from lattend.attend.decode.step import Scoring as Scoring
from lattend.attend.decode.step import StepMask as StepMask
from lattend.attend.decode.step import attend as attend
from lattend.attend.decode.step import check_length as check_length
from lattend.attend.decode.step import check_step as check_step

# Choosing a kernel, and running a call that is checked
from lattend.attend.kernels import dispatch as dispatch
from lattend.attend.kernels.dispatch import KERNELS as KERNELS
from lattend.attend.kernels.native import library as library
from lattend.attend.kernels.triton.kernel import has_gluon as has_gluon
from lattend.attend.operators import attention_operator as attention_operator
from lattend.attend.operators.operator_arguments import OperatorCall as OperatorCall
from lattend.attend.operators.tracing import left_to_python as left_to_python
from lattend.attend.overrides import OVERRIDES as OVERRIDES

# Repeating a call: signatures, and steps that are recorded
from lattend.attend.replay.compiled_call import WithoutAutocast as WithoutAutocast
from lattend.attend.replay.recorder import Recorder as Recorder
from lattend.attend.replay.recorder import Steps as Steps
from lattend.attend.replay.signature import is_plain as is_plain
from lattend.attend.replay.signature import plain_signature as plain_signature
from lattend.attend.replay.signature import tensor_signature as tensor_signature
