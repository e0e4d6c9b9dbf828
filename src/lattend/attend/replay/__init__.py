"""Repeating a call: from its signature to what was prepared for it.

A model calls attention thousands of times with tensors of the same shapes. The first call decides: it checks
every argument, makes a plan, and chooses a kernel, its tiles and its launch parameters. A later call must
only allocate and launch. This folder is how it gets there:

    signature.py      `plain_signature(options, *tensors)`: all that decides how a call runs, but for the
                      numbers in its tensors. None where somebody watches or traces: such a call goes to an
                      operator.
    plain_call.py     `call_signature`: the same with the rule, its parameters and the bias. `PREPARED` is
                      the dictionary from it to a `PreparedCall`. `forward` runs the first call of a
                      signature and puts it there. Around its steps there is torch.autograd, nothing else.
    compiled_call.py  `CompiledCall`: the steps forward and backward, also found by an operator's arguments.
    recorder.py       `Recorder`: kernels do what they do to tensors through it; it writes the steps down.
    host/             the same signature and the calls of compiled code in C++, where a compiler was there.

A call that is taken for another gives wrong numbers without an error. So whatever a signature holds has a
test that fails if the signature loses it (tests/attend/test_host.py; random calls in test_direct.py): dtype,
device, shape, strides, the address modulo 16 (vector loads), which tensors are the same, requires_grad and
grad mode, autocast and its dtype, TF32 and the choice of torch's own attention on a GPU, and types of options
(1 is not True). Tensors with negated memory, sparse tensors and subclasses, dispatch modes, torch.func and
tracing have no signature.

The recorder stays: Triton's kernels and those of nets on a grid make dozens of decisions between launches. At
n = 16 on a CPU a repeated call takes 12 µs, as torch's scaled_dot_product_attention does. With gradients its
forward pass takes 20 µs (torch 14), its backward pass 66 µs (torch 68).
"""
