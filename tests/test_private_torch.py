"""A canary: every private name of torch in use, found in the source, is listed here and is still there."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed.device_mesh import DeviceMesh

SOURCE = Path(__file__).parents[1] / "src" / "lattend"
SHORT = {"aten": "torch.ops.aten", "forward_ad": "torch.autograd.forward_ad"}  # as the source calls them
# Names in modules, by where they are
IN_MODULES = {
    "torch._C._autograd._get_sequence_nr",
    "torch._C._autograd._top_saved_tensors_default_hooks",
    "torch._C._current_autograd_node",
    "torch._C._current_graph_task_id",
    "torch._C._functorch.TransformType",
    "torch._C._functorch.get_interpreter_stack",
    "torch._C._functorch.is_batchedtensor",
    "torch._C._functorch.is_functorch_wrapped_tensor",
    "torch._C._get_cudnn_sdp_enabled",
    "torch._C._get_flash_sdp_enabled",
    "torch._C._get_fp32_precision_getter",  # without it, allow_tf32 is asked
    "torch._C._get_mem_efficient_sdp_enabled",
    "torch._C._is_tracing",
    "torch._C._len_torch_dispatch_stack",
    "torch._assert_async",
    "torch._dynamo.mark_static_address",
    "torch._fused_sdp_choice",
    "torch._ops.OpOverload",
    "torch._scaled_dot_product_cudnn_attention",
    "torch._scaled_dot_product_efficient_attention",
    "torch._scaled_dot_product_flash_attention",
    "torch._scaled_dot_product_flash_attention_for_cpu",
    "torch._subclasses.fake_tensor.FakeTensor",
    "torch.autograd.forward_ad._current_level",
    "torch.ops.aten._scaled_dot_product_cudnn_attention_backward.default",
    "torch.ops.aten._scaled_dot_product_efficient_attention_backward.default",
    "torch.ops.aten._scaled_dot_product_flash_attention_backward.default",
    "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default",
    "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default",
    "torch.utils._python_dispatch.TorchDispatchMode",
    "torch.utils._python_dispatch._get_current_dispatch_mode_stack",
    "torch.utils._pytree.tree_leaves",
    "torch.utils._pytree.tree_map",
}
# Attributes of objects, and an object that has each
OF_OBJECTS: dict[str, Any] = {
    "_schema": torch.ops.aten.add.Tensor,
    "_overloadpacket": torch.ops.aten.add.Tensor,
    "_cdata": torch.zeros(1).untyped_storage(),
    "_sequence_nr": (torch.ones(1, requires_grad=True) * 2).grad_fn,
    "_buffers": torch.nn.Module(),
    "_qkv_same_embed_dim": torch.nn.MultiheadAttention(2, 1),
    "_forward_hooks": torch.nn.Module(),
    "_forward_pre_hooks": torch.nn.Module(),
    "_dynamo_marked_constant": torch.compiler.assume_constant_result(lambda: None),
    "_torchdynamo_disable": torch.compiler.disable(lambda: None),
    "_flatten": DeviceMesh,
    "_ragged_idx": torch.nested.nested_tensor([torch.ones(2, 1)], layout=torch.jagged),
    "_get_backend": torch.distributed.ProcessGroup,
    "_timeout": torch.distributed.ProcessGroupGloo._Options(),  # pyright: ignore
}


def parts(name: str) -> list[str]:
    return name.split(".")


def is_private(name: str) -> bool:
    return any(part.startswith("_") and not part.startswith("__") for part in parts(name))


def found() -> tuple[set[str], set[str]]:
    """Private names in torch's modules, and private attributes that no line of ours defines."""
    modules: set[str] = set()
    read: set[str] = set()
    ours: set[str] = {
        "_replace",
        "_asdict",
        "_fields",
        "_first",
        "_getframe",
        "_exit",
    }  # Python's, and one put by name
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and parts(node.module or "")[0] == "torch":
                modules |= {f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Attribute):
                chain = ast.unparse(node)
                first, _, rest = chain.partition(".")
                whole = f"{SHORT.get(first, first)}.{rest}"
                if parts(whole)[0] == "torch" and whole.replace(".", "").replace("_", "").isalnum():
                    modules.add(whole)
                elif first in ("self", "cls"):
                    ours.add(node.attr)
                else:
                    read.add(node.attr)
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                ours.add(node.name)
            elif isinstance(node, ast.Name):
                ours.add(node.id)
    modules = {name for name in modules if is_private(name)}
    longest = {name for name in modules if not any(other.startswith(f"{name}.") for other in modules)}
    return longest, {name for name in read - ours if is_private(name)}


def test_every_private_name_is_listed() -> None:
    in_modules, of_objects = found()
    assert in_modules == IN_MODULES
    assert of_objects == set(OF_OBJECTS)


@pytest.mark.parametrize("name", sorted(IN_MODULES))
def test_a_name_of_a_module_is_there(name: str) -> None:
    here: Any = torch
    for place, part in enumerate(parts(name)[1:], 2):
        if not hasattr(here, part):
            import_module(".".join(parts(name)[:place]))
        here = getattr(here, part)


@pytest.mark.parametrize("name", sorted(OF_OBJECTS))
def test_an_attribute_of_an_object_is_there(name: str) -> None:
    assert hasattr(OF_OBJECTS[name], name)
