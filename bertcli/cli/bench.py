"""`bertcli bench step|stream|tokenize|finetune|predict`: the speed of this machine."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from bertcli.cli.options import Config, Device, FinetuningConfig, Json, Set, argument, count, number, option
from bertcli.config.section import MOST, MOST_ROWS, MOST_TOKENS
from bertcli.families.family import FamilyName
from bertcli.system.errors import UserError
from bertcli.system.terminal import say

bench = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Measure the speed of this machine.\n\nExample: bertcli bench step --preset tiny --vocab-size 2048",
)

Preset = Annotated[
    Literal["tiny", "mini", "small", "medium", "base", "large"],
    option("Size of the model: layers and hidden size."),
]
Family = Annotated[FamilyName, option("Model family (model.family).")]
VocabSize = Annotated[int, option("Number of entries in the vocabulary.", min=6, max=MOST_TOKENS)]
PrecisionName = Annotated[
    Literal["auto", "bf16", "fp16", "fp32"], option("Number format (training.precision).")
]


@bench.command()
def step(
    preset: Preset = "mini",
    family: Family = "bert",
    vocab_size: VocabSize = 30522,
    batch_size: Annotated[int, option("Rows per step.", min=1, max=MOST_ROWS)] = 32,
    micro_batch_size: Annotated[int | None, option("Rows computed at once.", min=1, max=MOST_ROWS)] = None,
    length: Annotated[int, option("Tokens per row.", min=16, max=MOST_TOKENS)] = 128,
    dropout: Annotated[
        float, option("Dropout rate of hidden states and attention.", min=0.0, max=0.99, callback=number)
    ] = 0.1,
    precision: PrecisionName = "auto",
    device: Device = "auto",
    compile_: Annotated[bool, option("Compile the model with torch.compile.", "--compile")] = False,
    steps: Annotated[int, count("Number of steps to measure, after the warm-up.")] = 20,
    config: Annotated[
        Path | None, option("Measure a pretraining config on its own text; other sizes are ignored.")
    ] = None,
    set_: Set = None,
    json_: Json = False,
) -> None:
    """Time the pretraining step: the loop of `bertcli pretrain` on full rows, or with --config on real ones.

    tflops counts the matrix products of the model (with the MLM head only at masked tokens). matmul_tflops is
    the rate of large matrix products alone on this machine, in the same precision.

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


@bench.command()
def stream(
    config: Config,
    batches: Annotated[int, count("Number of batches to measure.")] = 200,
    set_: Set = None,
    json_: Json = False,
) -> None:
    """Time the batches of a config's store, without a model.

    Example: bertcli bench stream configs/quickstart.yaml
    """
    from bertcli.advice.bench.measure import bench_stream
    from bertcli.config import load, schema

    _show(bench_stream(load.load_config(schema.PretrainConfig, config, set_), batches), json_)


@bench.command()
def tokenize(
    config: Annotated[
        Path | None, argument("Config whose text is read; default: the bundled classics.", "[CONFIG]")
    ] = None,
    tokenizer: Annotated[
        Path | None, option("A vocab.txt, tokenizer.json or model folder; default: a tokenizer is trained.")
    ] = None,
    vocab_size: VocabSize = 8192,
    megabytes: Annotated[
        float, option("Megabytes of text to read.", min=0.01, max=MOST, callback=number)
    ] = 20.0,
    set_: Set = None,
    json_: Json = False,
) -> None:
    """Time the way from text to token ids in one process, with sentences split and tokenized as in `prepare`.

    Example: bertcli bench tokenize --megabytes 1
    """
    from bertcli.advice.bench.measure import bench_tokenize
    from bertcli.config import load, run, schema
    from bertcli.corpus import matching, sources
    from bertcli.tokenizer.tokenizer import Tokenizer

    if config is None and set_:
        raise UserError("--set: only with a config")
    corpus = schema.CorpusConfig(files=["classics"])
    if config is not None:
        corpus = load.load_config(schema.PretrainConfig, config, set_).corpus
    if tokenizer is not None:
        loaded = Tokenizer.load(tokenizer)
    else:
        options = run.TokenizerRecipe(vocab_size=vocab_size, kind="wordpiece", lowercase=True)
        loaded = matching.train_on_corpus(sources.find_sources(corpus.files), corpus, options, report=say)
    _show(bench_tokenize(corpus, loaded, megabytes), json_)


@bench.command()
def finetune(
    config: FinetuningConfig,
    steps: Annotated[int, count("Number of steps to measure, after the warm-up.")] = 50,
    set_: Set = None,
    json_: Json = False,
) -> None:
    """Time fine-tuning steps on a config's own rows, compared with every row padded to max_length.

    Example: bertcli bench finetune configs/spam.yaml --set model=runs/quickstart/model
    """
    from bertcli.advice.bench.measure import bench_finetune
    from bertcli.config import finetune, load

    _show(bench_finetune(load.load_config(finetune.FinetuneConfig, config, set_), steps), json_)


@bench.command()
def predict(
    model: Annotated[Path | None, argument("A fine-tuned model; default: a fresh one.", "[MODEL]")] = None,
    input_: Annotated[
        str | None,
        option(
            "A file of texts, as for bertcli predict; default: the bundled text messages.",
            "--input",
            metavar="FILE",
        ),
    ] = None,
    preset: Preset = "mini",
    vocab_size: VocabSize = 8192,
    max_length: Annotated[int, option("Tokens in a row of the fresh model.", min=16, max=MOST_TOKENS)] = 128,
    texts: Annotated[int, count("Most texts to read.")] = 2000,
    batch_size: Annotated[int | None, option("Rows computed at once.", min=1, max=MOST_ROWS)] = None,
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
    if model is not None:
        built, tokenizer, task = given_model(model)
    else:
        built, tokenizer, task = fresh_model(preset, vocab_size, max_length, report=say)
    if input_ is None:
        examples = sample_messages(task.settings)
    else:
        examples = read_inputs([], input_, task.settings, report=say)
    measured = bench_predict(
        built,
        tokenizer,
        task,
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
