"""`bertcli bench step|stream|tokenize|finetune|predict`: the speed of this machine."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from bertcli.cli.options import Config, Device, FinetuningConfig, Json, Set, number
from bertcli.config.section import MOST, MOST_ROWS, MOST_TOKENS
from bertcli.families.family import FamilyName
from bertcli.system.terminal import say

bench = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Measure the speed of this machine.\n\nExample: bertcli bench step --preset tiny --vocab-size 2048",
)

Preset = Annotated[
    Literal["tiny", "mini", "small", "medium", "base", "large"],
    typer.Option(help="Size of the model: layers and hidden size."),
]
Family = Annotated[FamilyName, typer.Option(help="Model family (model.family).")]
VocabSize = Annotated[int, typer.Option(min=6, max=MOST_TOKENS, help="Number of entries in the vocabulary.")]
PrecisionName = Annotated[
    Literal["auto", "bf16", "fp16", "fp32"], typer.Option(help="Number format (training.precision).")
]


@bench.command()
def step(
    preset: Preset = "mini",
    family: Family = "bert",
    vocab_size: VocabSize = 30522,
    batch_size: Annotated[int, typer.Option(min=1, max=MOST_ROWS, help="Rows per step.")] = 32,
    micro_batch_size: Annotated[
        int | None, typer.Option(min=1, max=MOST_ROWS, help="Rows computed at once.")
    ] = None,
    length: Annotated[int, typer.Option(min=16, max=MOST_TOKENS, help="Tokens per row.")] = 128,
    dropout: Annotated[
        float,
        typer.Option(min=0.0, max=0.99, callback=number, help="Dropout rate of hidden states and attention."),
    ] = 0.1,
    precision: PrecisionName = "auto",
    device: Device = "auto",
    compile_: Annotated[
        bool, typer.Option("--compile", help="Compile the model with torch.compile.")
    ] = False,
    steps: Annotated[
        int, typer.Option(min=1, max=MOST, help="Number of steps to measure, after the warm-up.")
    ] = 20,
    config: Annotated[
        Path | None,
        typer.Option(help="Measure a pretraining config on its own text; other sizes are ignored."),
    ] = None,
    set_: Set = None,
    json_: Json = False,
) -> None:
    """Time the pretraining step: the loop of `bertcli pretrain` on full rows, or with --config on real ones.

    tflops counts the matrix products of the model (with the MLM head only at masked tokens). matmul_tflops is
    the rate of large matrix products alone on this machine, in the same precision.

    Example: bertcli bench step --preset tiny --vocab-size 2048 --steps 5
    """
    from bertcli.advice.bench.step import bench_config, bench_synthetic
    from bertcli.advice.bench.timing import training_to_time
    from bertcli.config.load import load_config
    from bertcli.config.run import ModelRecipe
    from bertcli.config.schema import PretrainConfig
    from bertcli.system.errors import UserError

    if config is not None:
        _show(bench_config(load_config(PretrainConfig, config, set_), steps), json_)
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
    model = ModelRecipe(family=family, preset=preset, dropout=dropout, max_positions=max(512, length))
    _show(bench_synthetic(model, vocab_size, length, training=training, steps=steps), json_)


@bench.command()
def stream(
    config: Config,
    batches: Annotated[int, typer.Option(min=1, max=MOST, help="Number of batches to measure.")] = 200,
    set_: Set = None,
    json_: Json = False,
) -> None:
    """Time the batches of a config's store, without a model.

    Example: bertcli bench stream configs/quickstart.yaml
    """
    from bertcli.advice.bench.data import bench_stream
    from bertcli.config.load import load_config
    from bertcli.config.schema import PretrainConfig

    _show(bench_stream(load_config(PretrainConfig, config, set_), batches), json_)


@bench.command()
def tokenize(
    config: Annotated[
        Path | None,
        typer.Argument(metavar="[CONFIG]", help="Config whose text is read; default: the bundled classics."),
    ] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option(help="A vocab.txt, tokenizer.json or model folder; default: a tokenizer is trained."),
    ] = None,
    vocab_size: VocabSize = 8192,
    megabytes: Annotated[
        float, typer.Option(min=0.01, max=MOST, callback=number, help="Megabytes of text to read.")
    ] = 20.0,
    set_: Set = None,
    json_: Json = False,
) -> None:
    """Time the way from text to token ids in one process, with sentences split and tokenized as in `prepare`.

    Example: bertcli bench tokenize --megabytes 1
    """
    from bertcli.advice.bench.data import bench_tokenize
    from bertcli.config.load import load_config
    from bertcli.config.run import TokenizerRecipe
    from bertcli.config.schema import CorpusConfig, PretrainConfig
    from bertcli.corpus.matching import train_on_corpus
    from bertcli.corpus.sources import find_sources
    from bertcli.system.errors import UserError
    from bertcli.tokenizer.tokenizer import Tokenizer

    if config is None and set_:
        raise UserError("--set: only with a config")
    corpus = CorpusConfig(files=["classics"])
    if config is not None:
        corpus = load_config(PretrainConfig, config, set_).corpus
    if tokenizer is not None:
        loaded = Tokenizer.load(tokenizer)
    else:
        options = TokenizerRecipe(vocab_size=vocab_size, kind="wordpiece", lowercase=True)
        loaded = train_on_corpus(find_sources(corpus.files), corpus, options, report=say)
    _show(bench_tokenize(corpus, loaded, megabytes), json_)


@bench.command()
def finetune(
    config: FinetuningConfig,
    steps: Annotated[
        int, typer.Option(min=1, max=MOST, help="Number of steps to measure, after the warm-up.")
    ] = 50,
    set_: Set = None,
    json_: Json = False,
) -> None:
    """Time fine-tuning steps on a config's own rows, compared with every row padded to max_length.

    Example: bertcli bench finetune configs/spam.yaml --set model=runs/quickstart/model
    """
    from bertcli.advice.bench.step import bench_finetune
    from bertcli.config.finetune import FinetuneConfig
    from bertcli.config.load import load_config

    _show(bench_finetune(load_config(FinetuneConfig, config, set_), steps), json_)


@bench.command()
def predict(
    model: Annotated[
        Path | None, typer.Argument(metavar="[MODEL]", help="A fine-tuned model; default: a fresh one.")
    ] = None,
    input_: Annotated[
        str | None,
        typer.Option(
            "--input",
            metavar="FILE",
            help="A file of texts, as for bertcli predict; default: the bundled text messages.",
        ),
    ] = None,
    preset: Preset = "mini",
    vocab_size: VocabSize = 8192,
    max_length: Annotated[
        int, typer.Option(min=16, max=MOST_TOKENS, help="Tokens in a row of the fresh model.")
    ] = 128,
    texts: Annotated[int, typer.Option(min=1, max=MOST, help="Most texts to read.")] = 2000,
    batch_size: Annotated[
        int | None, typer.Option(min=1, max=MOST_ROWS, help="Rows computed at once.")
    ] = None,
    precision: PrecisionName = "fp32",
    device: Device = "auto",
    json_: Json = False,
) -> None:
    """Time predictions on texts of mixed length, compared with every row padded to max_length.

    Example: bertcli bench predict --preset tiny --texts 200
    """
    from itertools import islice

    from bertcli.advice.bench.predict import bench_predict, fresh_model, given_model, sample_messages
    from bertcli.inference.inputs import read_inputs
    from bertcli.system.hardware import resolve_device, resolve_precision

    where = resolve_device(device)
    used = (
        given_model(model) if model is not None else fresh_model(preset, vocab_size, max_length, report=say)
    )
    examples = (
        sample_messages(used.settings)
        if input_ is None
        else read_inputs([], input_, used.settings, report=say)
    )
    measured = bench_predict(
        used,
        examples=list(islice(examples, texts)),
        device=where,
        precision=resolve_precision(precision, where),
        batch_size=batch_size,
    )
    _show(measured, json_)


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
