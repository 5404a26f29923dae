"""`bertcli evaluate MODEL --corpus FILES`: the pretraining losses of a model on any text."""

from __future__ import annotations

import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer


def evaluate(
    model: Annotated[
        Path, typer.Argument(help="A run folder, a model folder, a checkpoint or any BERT folder.")
    ],
    corpus: Annotated[list[str], typer.Option(help="Files, folders, globs or a bundled sample; repeatable.")],
    format_: Annotated[str, typer.Option("--format", help="text, sentences, jsonl or parquet.")] = "text",
    document: Annotated[str, typer.Option(help="What ends a document: blank-line or file.")] = "blank-line",
    join_lines: Annotated[bool, typer.Option("--join-lines", help="The text is hard-wrapped.")] = False,
    language: Annotated[str, typer.Option(help="For the sentence splitter.")] = "en",
    encoding: Annotated[str, typer.Option()] = "utf-8",
    max_length: Annotated[int, typer.Option(help="Tokens in a row.")] = 128,
    batch_size: Annotated[int, typer.Option(min=1, help="Rows at once.")] = 32,
    batches: Annotated[
        int | None, typer.Option(min=1, help="At most so many; default: all of the text once.")
    ] = None,
    device: Annotated[str, typer.Option()] = "auto",
    json_: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Measure the MLM and NSP of a model on any text.

    MLM loss, perplexity and accuracy; NSP loss and accuracy beside its majority baseline. The masks are
    the same at every call. A model without an NSP head is measured on MLM alone.

    Example: bertcli evaluate runs/quickstart --corpus classics --batches 5
    """
    from bertcli.config.load import check_config
    from bertcli.config.schema import DataConfig, PretrainConfig
    from bertcli.engine.evaluate import evaluate as run
    from bertcli.engine.heldout import HeldoutBatches
    from bertcli.errors import UserError
    from bertcli.hardware import resolve_device, resolve_precision
    from bertcli.hf.folder import load_model_folder
    from bertcli.hf.locate import resolve_model
    from bertcli.store.build import prepare_store
    from bertcli.tasks.pretraining import PretrainingTask

    folder = resolve_model(model)
    loaded = load_model_folder(folder)
    if not loaded.report.has_mlm_head():
        raise UserError(f"{folder}: has no masked-language-model head to evaluate; pretrain it first")
    with_nsp = loaded.model.nsp_head is not None
    positions = loaded.model.architecture.max_positions
    if max_length > positions:
        raise UserError(f"--max-length {max_length}: the model reads at most {positions} tokens")

    with tempfile.TemporaryDirectory() as scratch:
        config = check_config(
            PretrainConfig,
            {
                "output_dir": scratch,
                "corpus": {
                    "files": corpus,
                    "format": format_,
                    "document": document,
                    "join_lines": join_lines,
                    "language": language,
                    "encoding": encoding,
                    "heldout_fraction": 0.0,
                },
                "tokenizer": {"path": str(folder)},
            },
            "the options",
        )
        text = prepare_store(config, lambda line: print(line, file=sys.stderr)).train
        data = DataConfig(objective="mlm+nsp" if with_nsp else "mlm", max_length=max_length)
        stream = HeldoutBatches(text, loaded.tokenizer, data, batch_size)
        if with_nsp and not stream.with_nsp:
            print("the text gives no sentence pairs: MLM alone", file=sys.stderr)
        where = resolve_device(device)
        scores = run(
            loaded.model.to(where),
            PretrainingTask(),
            stream.batches(batches),
            where,
            resolve_precision("auto", where),
            batch_size,
        )

    measured: dict[str, Any] = {
        "mlm_loss": scores.losses["mlm"],
        "perplexity": math.exp(min(scores.losses["mlm"], 700)),
        "mlm_accuracy": scores.accuracies["mlm"],
    }
    if stream.with_nsp:  # every batch is half IsNext: one answer to all of them is right half of the time
        measured |= {
            "nsp_loss": scores.losses["nsp"],
            "nsp_accuracy": scores.accuracies["nsp"],
            "nsp_majority": 0.5,
        }
    measured["tokens"] = scores.tokens
    if json_:
        print(json.dumps(measured))
        return
    for name, value in measured.items():
        print(f"{name:<14}{value:,.4f}" if isinstance(value, float) else f"{name:<14}{value:,}")
