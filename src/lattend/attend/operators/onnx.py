"""Attention as torch.onnx.export sees it: dense, with its mask, where that is asked for; else refused."""

from __future__ import annotations

import sys

import torch

from lattend.attend.operators.operator_arguments import OperatorCall
from lattend.errors import LattendError

REFUSED = (
    'ONNX has no operator for attention under a rule. Call attention with kernel="dense", and sizes that are '
    "fixed, to export it as dense attention with its mask, all n × m pairs of it; torch.export keeps the rule"
)


def is_exporting() -> bool:
    """Whether torch.onnx.export traces this call; torch.compile and torch.export keep the operator."""
    return torch.compiler.is_exporting() and torch.onnx.is_in_onnx_export()


def check_not_traced() -> None:
    """Raises under torch.jit.trace, which torch.onnx.export(dynamo=False) uses too."""
    if torch.jit.is_tracing():  # pyright: ignore[reportPrivateImportUsage]
        raise LattendError(
            "torch.jit.trace cannot trace attention, whose sizes it would turn into tensors: "
            "use torch.export, and torch.onnx.export with dynamo=True"
        )


def check_exportable(call: OperatorCall) -> None:
    """Raises unless dense attention is asked for, with a mask that is known now."""
    if call.kernel != "dense":
        raise LattendError(REFUSED)
    if call.data:
        raise LattendError("the mask in an ONNX file is fixed: give the rule its arrays as data=… of lt.rule")
    if any(not isinstance(number, int) for number in call.numbers):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise LattendError(
            "the mask in an ONNX file has a fixed size: leave the sequence length out of dynamic_shapes"
        )
    if call.dropout:
        raise LattendError("dropout is for training, and an ONNX file for inference: call the model's eval()")


def check_not_exported() -> None:
    """Raises where the operator itself would come into an ONNX file, as when Dynamo traces the export."""
    exporter = sys.modules.get("torch.onnx")
    if exporter is not None and exporter.is_in_onnx_export():
        raise LattendError(REFUSED)
