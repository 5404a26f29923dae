"""`bertcli bench step|stream|tokenize|finetune|predict`: the speed of this machine."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from bertcli.cli.options import (
    Command,
    Config,
    Device,
    FinetuningConfig,
    Json,
    Set,
    argument,
    count,
    flag,
    group,
    number,
    option,
)
from bertcli.config import MOST, MOST_ROWS, MOST_TOKENS
from bertcli.families.family import FamilyName
from bertcli.system.errors import UserError
from bertcli.system.terminal import say

bench = group(
    "Measure the speed of this machine.\n\nExample: bertcli bench step --preset tiny --vocab-size 2048"
)

Preset = Annotated[
    Literal["tiny", "micro", "mini", "small", "medium", "base", "large"],
    option(..., "Size of the model: layers and hidden size."),
]
Family = Annotated[FamilyName, option(..., "Model family (model.family).", metavar="NAME")]
VocabSize = Annotated[int, option(..., "Number of entries in the vocabulary.", min=6, max=MOST_TOKENS)]
PrecisionName = Annotated[
    Literal["auto", "bf16", "fp16", "fp32"], option(..., "Number format (training.precision).")
]


@bench.command(cls=Command)
def step(
    preset: Preset = "mini",
    family: Family = "bert",
    vocab_size: VocabSize = 30522,
    batch_size: int = option(32, "Rows per step.", min=1, max=MOST_ROWS),
    micro_batch_size: int | None = option(None, "Rows computed at once.", min=1, max=MOST_ROWS),
    length: int = option(128, "Tokens per row.", min=16, max=MOST_TOKENS),
    dropout: float = option(
        0.1, "Dropout rate of hidden states and attention.", min=0.0, max=0.99, callback=number
    ),
    precision: PrecisionName = "auto",
    device: Device = "auto",
    compile_: bool = flag("Compile the model with torch.compile.", "--compile"),
    steps: int = count(20, "Number of steps to measure, after the warm-up."),
    config: Path | None = option(
        None, "Measure a pretraining config on its own text; other sizes are ignored."
    ),
    set_: Set = None,
    json_: Json = False,
) -> None:
    """Time the steps of a pretraining: those of `bertcli pretrain`.

    The rows are full, or with --config those of a text. tflops counts the matrix products of the model (with
    the MLM head only at masked tokens). matmul_tflops is the rate of large matrix products alone on this
    machine, in the same precision.

    Example: bertcli bench step --preset tiny --vocab-size 2048 --steps 5
    """
    from bertcli.advice.bench.measure import bench_config, bench_synthetic
    from bertcli.advice.bench.timing import training_to_time
    from bertcli.config import load, run, schema

    if config is not None:
        _show(bench_config(load.load_config(schema.PretrainConfig, config, set_), steps), json_)
        return
    if set_:
        raise UserError("--set: only with --config; without one, give the sizes as options")
    training = training_to_time(
        batch_size=batch_size,
        micro_batch_size=micro_batch_size or "auto",
        precision=precision,
        device=device,
        compile=compile_,
    )
    model = run.ModelRecipe(family=family, preset=preset, dropout=dropout, max_positions=max(512, length))
    _show(bench_synthetic(model, vocab_size, length, training=training, steps=steps), json_)


@bench.command(cls=Command)
def stream(
    config: Config,
    batches: int = count(200, "Number of batches to measure."),
    set_: Set = None,
    json_: Json = False,
) -> None:
    """Time the batches of a config's store, without a model.

    Example: bertcli bench stream quickstart
    """
    from bertcli.advice.bench.measure import bench_stream
    from bertcli.config import load, schema

    _show(bench_stream(load.load_config(schema.PretrainConfig, config, set_), batches), json_)


@bench.command(cls=Command)
def tokenize(
    config: Path | None = argument(
        None, "Config whose text is read; default: the bundled classics.", "[CONFIG]"
    ),
    tokenizer: Path | None = option(
        None, "A vocab.txt, tokenizer.json or model folder; default: a tokenizer is trained."
    ),
    vocab_size: VocabSize = 8192,
    megabytes: float = option(20.0, "Megabytes of text to read.", min=0.01, max=MOST, callback=number),
    set_: Set = None,
    json_: Json = False,
) -> None:
    """Time the way from text to token ids, as in `bertcli prepare`.

    One process splits the sentences and tokenizes them.

    Example: bertcli bench tokenize --megabytes 1
    """
    from bertcli.advice.bench.measure import bench_tokenize
    from bertcli.config import load, run, schema
    from bertcli.config.corpus import CorpusConfig
    from bertcli.corpus import files, matching
    from bertcli.tokenizer.tokenizer import Tokenizer

    if config is None and set_:
        raise UserError("--set: only with a config")
    corpus = CorpusConfig(files=["classics"])
    if config is not None:
        corpus = load.load_config(schema.PretrainConfig, config, set_).corpus
    if tokenizer is not None:
        loaded = Tokenizer.load(tokenizer)
    else:
        recipe = run.TokenizerRecipe(vocab_size=vocab_size, kind="wordpiece", lowercase=True)
        loaded = matching.train_on_corpus(files.corpus_files(corpus), corpus, recipe, report=say)
    _show(bench_tokenize(corpus, loaded, megabytes), json_)


@bench.command(cls=Command)
def finetune(
    config: FinetuningConfig,
    steps: int = count(50, "Number of steps to measure, after the warm-up."),
    set_: Set = None,
    json_: Json = False,
) -> None:
    """Time fine-tuning steps on the rows of a config.

    They are compared with steps in which each row is padded to max_length.

    Example: bertcli bench finetune spam --steps 20
    """
    from bertcli.advice.bench.measure import bench_finetune
    from bertcli.config import finetune, load

    _show(bench_finetune(load.load_config(finetune.FinetuneConfig, config, set_), steps), json_)


@bench.command(cls=Command)
def predict(
    model: Path | None = argument(None, "A fine-tuned model; default: a fresh one.", "[MODEL]"),
    input_: str | None = option(
        None,
        "A file of texts, as for bertcli predict; default: the bundled text messages.",
        "--input",
        metavar="FILE",
    ),
    preset: Preset = "mini",
    vocab_size: VocabSize = 8192,
    max_length: int = option(128, "Tokens in a row of the fresh model.", min=16, max=MOST_TOKENS),
    texts: int = count(2000, "Most texts to read."),
    batch_size: int | None = option(None, "Rows computed at once.", min=1, max=MOST_ROWS),
    precision: PrecisionName = "fp32",
    device: Device = "auto",
    json_: Json = False,
) -> None:
    """Time predictions on texts of mixed length.

    They are compared with rows that are all padded to max_length.

    Example: bertcli bench predict --preset tiny --texts 200
    """
    from dataclasses import replace
    from itertools import islice

    from bertcli.advice.bench.predict import bench_predict, fresh_runner, given_runner, sample_messages
    from bertcli.inference.inputs import read_inputs
    from bertcli.system.hardware import resolve_device, resolve_precision

    where = resolve_device(device)
    if model is not None:
        runner = given_runner(model, where)
    else:
        runner = fresh_runner(preset, vocab_size, max_length, device=where, report=say)
    if input_ is None:
        examples = sample_messages(runner.task.settings)
    else:
        examples = read_inputs([], input_, runner.task.settings, report=say)
    rows, chosen = batch_size or runner.batch_size, resolve_precision(precision, where)
    runner = replace(runner, precision=chosen, batch_size=rows)
    _show(bench_predict(runner, list(islice(examples, texts))), json_)


def _show(measured: dict[str, Any], json_: bool) -> None:
    if json_:
        print(json.dumps(measured))
        return
    for name, value in measured.items():
        print(f"{name:<20}{_number(value)}")


def _number(value: Any) -> str:
    if isinstance(value, list):
        return " to ".join(map(_number, value))
    if isinstance(value, float):
        return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"
    return str(value)
