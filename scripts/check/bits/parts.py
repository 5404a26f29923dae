"""What both checkouts run, part by part; each yields (comparison, difference or nothing, rule)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bertcli.samples import CONFIGS
from bits.compare import compare_files, compare_metrics, compare_moments, compare_text, compare_weights
from bits.data import TASKS, write_data
from bits.tree import Tree

Found = Iterator[tuple[str, str, str]]
EXACT = "to the bit"
NEAR = 1e-6
STOP, STEPS = 120, 200
SENTENCES = ["The [MASK] was dark and the [MASK] was cold.", "She looked at [MASK].", "[MASK]"]


@dataclass(frozen=True)
class Both:
    """The two checkouts, and a folder that both read: labeled files, and a model of the old one."""

    old: Tree
    new: Tree
    shared: Path

    def each(self) -> tuple[Tree, Tree]:
        return self.old, self.new

    def outputs(self, *arguments: str) -> tuple[str, str]:
        return self.old.call(*arguments), self.new.call(*arguments)

    def runs(self, name: str) -> tuple[Path, Path]:
        return self.old.scratch / name, self.new.scratch / name

    def write(self, name: str, config: dict[str, Any]) -> Path:
        """The config NAME.yaml, one file for both."""
        path = self.shared / f"{name}.yaml"
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        return path

    def model(self) -> Path:
        """A model of the old checkout, a few steps old, with dropout: that of every fine-tuning."""
        folder = self.shared / "model"
        if not folder.exists():
            config = pretraining(self, "model-run", steps=40)
            self.old.call("pretrain", str(self.write("model-run", config)))
            _copy_model(self.old.scratch / "model-run" / "model", folder, dropout=0.1)
            _copy_model(folder, self.shared / "model-without-dropout", dropout=0.0)
            write_data(self.old.code / "bertcli" / "samples", self.shared)
        return folder


def _copy_model(source: Path, target: Path, dropout: float) -> None:
    """What `transformers` reads of a model folder, with another dropout."""
    target.mkdir()
    for path in source.iterdir():
        if path.name not in ("manifest.json", "README.md", ".bertcli.json"):
            shutil.copy(path, target / path.name)
    values = json.loads((source / "config.json").read_text())
    values |= dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), dropout)
    (target / "config.json").write_text(json.dumps(values, indent=2))


def pretraining(both: Both, name: str, steps: int, **data: Any) -> dict[str, Any]:
    """The quickstart's config with dropout, fewer steps, each of them logged."""
    config = yaml.safe_load(CONFIGS["quickstart"].read_text())
    config["output_dir"] = name
    config["data"] |= data
    config["model"]["dropout"] = 0.1
    config["training"] |= {
        "steps": steps,
        "warmup_steps": steps // 10,
        "precision": "fp32",
        "device": "cpu",
    }
    every = steps // 4
    config["evaluation"] = {"every_steps": every, "batches": 10}
    return config | {"checkpoint": {"every_steps": every}, "logging": {"every_steps": 1}}


def pretrain(both: Both) -> Found:
    """Masked tokens and sentence pairs, killed and resumed; the store; the stream."""
    config = both.write("pretrain", pretraining(both, "pretrain", STEPS))
    for tree in both.each():
        tree.run_with_a_stop("pretrain", config, Path("pretrain"), STOP)
    yield from _pretrained(both, "pretrain")
    stats = both.outputs("show-batch", str(config), "--stats", "--batches", str(STEPS), "--json")
    yield "show-batch: stream hash and counts", compare_text(*stats), EXACT


def pretrain_family(both: Both, family: str) -> Found:
    """The objective of a family (BERT: masked tokens alone), in micro-batches."""
    settings = pretraining(both, family, 24, **({"objective": "mlm"} if family == "bert" else {}))
    settings["model"]["family"] = family
    settings["training"]["micro_batch_size"] = 8
    config = both.write(family, settings)
    both.outputs("pretrain", str(config))
    yield from _pretrained(both, family)
    stats = both.outputs("show-batch", str(config), "--stats", "--batches", "24", "--json")
    yield "show-batch: stream hash and counts", compare_text(*stats), EXACT


def _pretrained(both: Both, name: str) -> Found:
    old, new = both.runs(name)
    yield "store: arrays and tokenizer", compare_files(old / "store", new / "store", "*.bin"), EXACT
    yield "tokenizer", compare_files(old / "store" / "tokenizer", new / "store" / "tokenizer"), EXACT
    yield from _trained(old, new, tolerance=0.0)


def _trained(old: Path, new: Path, tolerance: float) -> Found:
    """The metrics, the model, and, to the bit, each checkpoint of two runs."""
    rule = f"{tolerance:g} relative" if tolerance else EXACT
    yield "metrics.jsonl", compare_metrics(old, new, tolerance), rule
    weights = Path("model") / "model.safetensors"
    yield "model", compare_weights(old / weights, new / weights, tolerance), rule
    for folder in sorted((old / "checkpoints").glob("step-*")):
        other = new / "checkpoints" / folder.name
        yield (
            f"{folder.name}: weights",
            compare_weights(folder / weights, other / weights, tolerance),
            rule,
        )
        if not tolerance:
            moments = compare_moments(folder / "optimizer.safetensors", other / "optimizer.safetensors")
            yield f"{folder.name}: moments", moments, EXACT


def finetune(both: Both, task: str) -> Found:
    """An epoch with dropout to the bit; one without dropout in larger batches, within 1e-6; predictions."""
    both.model()
    keys = {**TASKS[task], "type": task, "max_length": 64, "doc_stride": 16}
    suffix = keys.pop("suffix")
    files = {side: str(both.shared / f"{task}-{side}.{suffix}") for side in ("train", "dev")}
    for name, model, batch_size, tolerance in (
        (task, "model", 8, 0.0),
        (f"{task}-large", "model-without-dropout", 32, NEAR),
    ):
        training: dict[str, Any] = {"epochs": 1, "learning_rate": 1e-4, "batch_size": batch_size}
        training |= {"device": "cpu", "precision": "fp32", "weight_decay": 0.0, "max_grad_norm": 1e6}
        training["micro_batch_size"] = batch_size  # NEW would take 16 at once, and sum in another order
        config = {"output_dir": name, "model": str(both.shared / model), "task": {**keys, **files}}
        config |= {"training": training, "logging": {"every_steps": 1}}
        both.outputs("finetune", str(both.write(name, config)))
        title = f"dropout 0, {batch_size} rows" if tolerance else f"dropout 0.1, {batch_size} rows"
        for comparison, difference, rule in _trained(*both.runs(name), tolerance):
            yield f"{title}: {comparison}", difference, rule
    tuned = str(both.old.scratch / task)
    answers = both.outputs("predict", tuned, "--input", files["dev"], "--json")
    yield "predict (both with the old one's model)", compare_text(*answers), EXACT
    # So few at once that their rows were never grouped by length: the loss is in the output.
    few = ("--batch-size", "8")
    scores = both.outputs("evaluate", tuned, "--data", files["dev"], "--json", *few)
    told = (json.dumps(_without_prose(json.loads(each)), indent=1) for each in scores)
    yield "evaluate (both with the old one's model)", compare_text(*told), f"{EXACT}, but for prose"


def _without_prose(scores: dict[str, Any]) -> dict[str, Any]:
    """The scores without the sentences of the verdict, whose words may change."""
    return scores | {"verdict": {key: scores["verdict"][key] for key in ("better", "baseline")}}


def inference(both: Both) -> Found:
    """`embed`, `predict-mask` and `predict-next` of the old one's model."""
    model = str(both.model())
    texts = str(both.shared / "classification-dev.jsonl")
    for pooling in ("mean", "cls", "max"):
        vectors = both.outputs("embed", model, "--input", texts, "--pooling", pooling)
        yield f"embed --pooling {pooling}", compare_text(*vectors), EXACT
    yield "predict-mask", compare_text(*both.outputs("predict-mask", model, "--json", *SENTENCES)), EXACT
    pairs = both.shared / "pairs.tsv"
    lines = [json.loads(line) for line in (both.shared / "regression-dev.jsonl").open(encoding="utf-8")]
    pairs.write_text("".join(f"{line['text']}\t{line['other']}\n" for line in lines), encoding="utf-8")
    scored = both.outputs("predict-next", model, "--json", "--input", str(pairs))
    yield "predict-next", compare_text(*scored), EXACT


def export(both: Both) -> Found:
    """The vectors of each checkout's own ONNX folder of the old one's model."""
    both.outputs("export", str(both.model()), "onnx", "--encoder")
    texts = str(both.shared / "classification-dev.jsonl")
    vectors = both.outputs("embed", "onnx", "--input", texts)
    yield "embed with the exported encoder", compare_text(*vectors), EXACT
