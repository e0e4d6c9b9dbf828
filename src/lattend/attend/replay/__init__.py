"""Repeating a call: from its signature to what was prepared for it.

A model calls attention thousands of times with tensors of the same shapes. The first call checks its
arguments, plans, chooses a kernel and has it prepare a pass. A later call runs the prepared pass, which only
allocates and launches. This folder is how a later call gets there:

    signature.py      `plain_signature(options, *tensors)`: all that decides how a call runs, but for the
                      numbers in its tensors. It is None where somebody watches or traces; such a call goes to
                      an operator.
    plain_call.py     `call_signature`: the same with the rule, its parameters and the bias. `PREPARED` is
                      the dictionary from it to a `PreparedCall`. `forward` prepares the first call of a
                      signature and puts it there. Around a pass there is only torch.autograd.
    compiled_call.py  `CompiledCall`: the passes of one signature, forward and backward. Operators find it by
                      their arguments.
    recorder.py       `RecordedPass`: how kernels of Triton prepare. Each of their passes is many launches,
                      and what one writes is an argument of the next. The first run decides in plain code and
                      records its launches; later runs repeat them.
    host/             the same signature and the calls of compiled code in C++, where a compiler was there.

A call that is taken for another gives wrong numbers without an error. So whatever a signature holds has a
test that fails if the signature loses it (tests/attend/test_host.py; random calls in test_direct.py): dtype,
device, shape, strides, the address modulo 16 (vector loads), which tensors are the same, requires_grad and
grad mode, autocast and its dtype, TF32 and the choice of torch's own attention on a GPU, and types of options
(1 is not True). Tensors with negated memory, sparse tensors and subclasses, dispatch modes, torch.func and
tracing have no signature.

On a CPU a kernel's `prepare(call, q, k, v)` returns plain functions; kernels/native/kernel.py is the one to
read. They take as long as recorded steps did: at n = 16 a repeated call takes 12 µs, as torch's
scaled_dot_product_attention does; with gradients, its forward pass takes 21 µs (torch 14).
"""
