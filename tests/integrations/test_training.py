"""Training with attn_implementation="lattend" by Trainer, Accelerate, PEFT and DDP: eager's loss curve."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import transformers
from tiny_models import MODELS, ids, padding
from torch import Tensor, nn
from torch.multiprocessing.spawn import spawn
from torch.nn.parallel import DistributedDataParallel

STEPS = 4


def batches() -> list[dict[str, Tensor]]:
    """A few batches of two rows, the first of which is padded on the right."""
    mask = padding("right")["attention_mask"]
    tokens = [ids().roll(step, 1) for step in range(STEPS)]
    return [
        {"input_ids": x, "labels": x.masked_fill(mask == 0, -100), "attention_mask": mask} for x in tokens
    ]


def losses(model: Any, rate: float = 0.01, given: list[dict[str, Tensor]] | None = None) -> list[float]:
    """The loss of each step of a plain loop."""
    optimizer = torch.optim.SGD([x for x in model.parameters() if x.requires_grad], rate)
    found: list[float] = []
    for batch in batches() if given is None else given:
        loss = model(**batch, use_cache=False).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        found.append(loss.item())
    return found


def same_curve(curves: Iterable[list[float]], share: float = 1e-5) -> None:
    eager, ours = curves
    assert len(eager) >= STEPS
    assert max(eager) - min(eager) > 10 * share * eager[0]  # the weights have changed
    assert ours == pytest.approx(eager, rel=share)


@pytest.mark.parametrize("name", ["Llama", "Gemma 3"])
def test_gradient_checkpointing(name: str) -> None:
    eager, ours = MODELS[name].pair()
    ours.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    same_curve([losses(eager.train()), losses(ours.train())])


def test_mixed_precision() -> None:
    """Products in bfloat16, of 8 bits; weights and losses in float32."""
    eager, ours = MODELS["Llama"].pair()
    with torch.autocast("cpu", torch.bfloat16):
        same_curve([losses(eager.train()), losses(ours.train())], share=2e-4)


def packed_batches() -> list[dict[str, Any]]:
    collate = transformers.DataCollatorWithFlattening(return_flash_attn_kwargs=True)
    return [
        collate([{"input_ids": row} for row in batch["input_ids"][0].split((5, 8, 4))]) for batch in batches()
    ]


def test_packed_sequences() -> None:
    eager, ours = MODELS["Llama"].pair()
    plain = [
        {name: batch[name] for name in ("input_ids", "labels", "position_ids")} for batch in packed_batches()
    ]
    same_curve([losses(eager.train(), given=plain), losses(ours.train(), given=packed_batches())])


@pytest.mark.parametrize("packs", [False, True])
def test_trainer(tmp_path: Path, packs: bool) -> None:
    pytest.importorskip("accelerate")
    options = transformers.TrainingArguments(
        output_dir=str(tmp_path),
        max_steps=STEPS,
        per_device_train_batch_size=2,
        logging_steps=1,
        learning_rate=0.01,
        gradient_checkpointing=not packs,
        use_cpu=True,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
        data_seed=0,
    )
    rows = [
        {"input_ids": x, "labels": y}
        for one in batches()
        for x, y in zip(one["input_ids"], one["labels"], strict=True)
    ]
    collate = transformers.DataCollatorWithFlattening(return_flash_attn_kwargs=True) if packs else None
    curves: list[list[float]] = []
    for model in MODELS["Llama"].pair():
        trainer = transformers.Trainer(model, options, train_dataset=rows, data_collator=collate)
        trainer.train()
        curves.append([one["loss"] for one in trainer.state.log_history if "loss" in one])
    same_curve(curves, share=1e-4)  # it rounds what it logs


def test_accelerate() -> None:
    accelerate = pytest.importorskip("accelerate")
    runner = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    curves: list[list[float]] = []
    for one in MODELS["Mistral"].pair():
        model, optimizer = runner.prepare(one.train(), torch.optim.SGD(one.parameters(), 0.01))
        found: list[float] = []
        for batch in batches():
            with runner.accumulate(model):
                loss = model(**batch).loss
                runner.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
                found.append(loss.item())
        curves.append(found)
    same_curve(curves)


def test_peft() -> None:
    """Low-rank adapters are trained, and merged into the weights in the end."""
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights="gaussian")
    pair = MODELS["Llama"].pair()
    adapted = [peft.get_peft_model(model, config) for model in pair]
    adapted[1].load_state_dict(adapted[0].state_dict())
    same_curve(losses(model.train(), rate=1.0) for model in adapted)
    merged = [model.merge_and_unload().eval() for model in adapted]
    wanted, found = (model(ids()).logits for model in merged)
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)


def _rank(rank: int, folder: str) -> None:
    """What one of two processes does: its half of each batch, gradients averaged over both."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    curves: list[list[float]] = []
    for model in MODELS["Llama"].pair():
        shared: nn.Module = DistributedDataParallel(model.train())
        given = [{name: x[rank : rank + 1] for name, x in batch.items()} for batch in batches()]
        curves.append(losses(shared, given=given))
    torch.save(curves, f"{folder}/{rank}.pt")
    dist.destroy_process_group()


@pytest.mark.long  # two processes load torch and transformers again
def test_two_processes(tmp_path: Path) -> None:
    spawn(_rank, (str(tmp_path),), nprocs=2)
    for rank in range(2):
        same_curve(torch.load(tmp_path / f"{rank}.pt"))
