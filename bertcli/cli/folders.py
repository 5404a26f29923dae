"""`bertcli convert`, `export`, `extend-vocab`, `transplant`: one model folder -> another one."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bertcli.cli.options import Config, Json, Model, Set, argument, count, flag, option
from bertcli.system.errors import UserError
from bertcli.system.terminal import say

if TYPE_CHECKING:
    from bertcli.config.schema import PretrainConfig
    from bertcli.corpus.files import CorpusFile
    from bertcli.folders.onnx_folder import Comparison


def convert(
    source: Path = argument(
        ..., "A run, any model folder, a hub id, or a TensorFlow checkpoint: folder or prefix.", metavar="SRC"
    ),
    destination: Path = argument(..., "The folder to write: a new one, or empty.", "DST"),
    cased: bool | None = option(
        None,
        "Case of a TensorFlow checkpoint. Default: cased if the vocabulary has upper case.",
        "--cased/--uncased",
    ),
) -> None:
    """Write a model as safetensors with current names.

    The source may have .bin weights, old names, weights in several files, or be a TensorFlow checkpoint by
    Google, which is read without TensorFlow. The labels are kept, and so are the heads that one class of
    transformers holds together. Weights of other heads are dropped, and named. The result is loaded and
    compared with the source on the same texts. A difference above 1e-6 is an error, and nothing is written.

    Example: bertcli convert runs/quickstart converted
    """
    from bertcli.folders.convert import convert as run
    from bertcli.folders.fill import DROPPED

    done = run(source, destination, cased)
    dropped = done.report.dropped()
    buffers = [name for name in done.report.left_aside if name not in dropped]
    for what, names in (
        (DROPPED, dropped),
        ("not used", buffers),
        ("state of its training", done.optimizer),
    ):
        if names:
            say(f"{what}: {', '.join(names)}")
    say(f"tokenizer: {'uncased' if done.lowercase else 'cased'}")
    print(f"{destination}: {len(done.report.loaded)} tensors; largest difference {done.difference:g}")


def export(
    model: Model,
    destination: Path = argument(..., "The folder to write: a new one, or empty.", "OUT"),
    format_: Literal["onnx"] = option("onnx", "Format of the model's file.", "--format", panel="Output"),
    encoder: bool = flag("Write the encoder alone, for vectors, without the model's head.", "--encoder"),
    int8: bool = flag("Write a file with 8-bit weights too, and compare it with the other.", "--int8"),
    sample: str | None = option(
        None,
        "Rows to compare on, read as by predict --input; default: text of the model's run, or else "
        "bundled English messages.",
        metavar="FILE",
    ),
    text: list[str] | None = option(
        None, "Column of the text in the sample; twice: pairs.", metavar="COLUMN"
    ),
    json_: Json = False,
) -> None:
    """Write a model as ONNX.

    OUT/onnx/model.onnx runs without PyTorch: in onnxruntime, sentence-transformers (backend="onnx") and
    transformers.js. Configuration and tokenizer are beside it. It reads any number of rows, of any length up
    to the model's positions. Nothing is written unless onnxruntime's outputs equal bertcli's within 1e-4 (of
    the largest output, if that is above 1), at three sizes that the exporter did not see.

    --int8 adds OUT/onnx/model_quantized.onnx, about a quarter of the size, and prints how often its answers
    are equal (or the cosine of its vectors), and its speed. At most 1,000 rows of the sample are read.

    bertcli predict, embed, similarity and serve run OUT, and OUT/onnx/model_quantized.onnx. Needs the extra
    onnx: pip install 'bertcli[onnx]'.

    Example: bertcli export runs/spam spam-onnx --int8
    """
    from bertcli.folders import onnx_folder, onnx_graph, onnx_source, sealed

    if not int8 and (sample is not None or text):
        raise UserError("--sample and --text say what --int8 is compared on; give --int8 too")
    onnx_graph.check_packages()
    sealed.check_new(destination)
    source = onnx_source.read_source(model, encoder)
    rows = onnx_source.read_sample(sample, source.settings, text, folder=source.folder) if int8 else None
    done = onnx_folder.export_onnx(source, destination, rows)
    if json_:
        print(json.dumps({"folder": str(destination), **asdict(done)}))
        return
    size = f"{done.bytes / 1e6:,.1f} MB"
    print(f"{destination}: {', '.join(done.outputs)}; {size}; largest difference {done.difference:.1g}")
    if done.int8 is not None:
        print("\n".join(_table(done.int8)))


def _table(report: Comparison) -> list[str]:
    """The table of sizes, speeds and agreement, for people."""
    sizes = list(next(iter(report.forms.values())).rows_per_second)
    columns = "{:<20}{:>10}" + "{:>22}" * len(sizes)
    found = report.agreement
    if "mean_cosine" in found:
        line = (
            f"cosine of its vectors with bertcli's: mean {found['mean_cosine']:.4f}, least "
            f"{found['min_cosine']:.4f}"
        )
    elif "equal" in found:
        line = f"{found['equal']:.2%} of its {found['answers']:,} answers are bertcli's"
    else:
        line = (
            f"its values differ from bertcli's by {found['mean_difference']:.4f} in the mean, at most "
            f"{found['largest_difference']:.4f}"
        )
    return [
        columns.format("", "MB", *(f"rows/s, {size} at once" for size in sizes)),
        *(
            columns.format(
                name, f"{form.bytes / 1e6:,.1f}", *(f"{form.rows_per_second[size]:,.1f}" for size in sizes)
            )
            for name, form in report.forms.items()
        ),
        "int8 has one scale for all rows of a batch: in another batch, a row may have another answer",
        f"int8 ({7 if report.seven_bits else 8} bits of a weight are used), {report.rows:,} rows: {line}",
    ]


def extend_vocab(
    model: Model,
    config: Config,
    out: Path = argument(..., "The folder to write: a new one, or empty.", "OUT"),
    add: int = count(500, "Number of new pieces."),
    set_: Set = None,
    json_: Json = False,
) -> None:
    """Add the pieces to a vocabulary that shorten a corpus most.

    CONFIG names the corpus. Each new piece starts with the mean of the pieces that it replaces. Continue with
    the result as model.init_from, so that it learns the new pieces.

    Example: bertcli extend-vocab runs/quickstart quickstart extended
    """
    from bertcli.corpus import chunks, sample
    from bertcli.folders import fill, vocabulary
    from bertcli.tokenizer.extend import extend
    from bertcli.tokenizer.tokenizer import Tokenizer

    folder, run, files = _model_and_corpus(model, config, set_, out=out)
    with chunks.progress_display("reading", files, say) as advance:
        rates = sample.sample_rates(files, run.corpus)
        texts = sample.sample_paragraphs(files, run.corpus, rates, progress=advance)
        extended = extend(Tokenizer.load(folder), texts, add, report=say)
    size, replaced = extended.tokenizer.vocab_size, extended.replaced
    change = vocabulary.extended(size, replaced)
    dropped = vocabulary.write_with_vocabulary(folder, out, extended.tokenizer, change=change)
    if dropped:
        say(f"{fill.DROPPED}: {', '.join(dropped)}")
    summary = {
        "folder": str(out),
        "added": len(replaced),
        "vocab_size": size,
        "pieces_per_word_before": extended.before,
        "pieces_per_word_after": extended.after,
    }
    if json_:
        print(json.dumps(summary))
        return
    shown = ", ".join(map(extended.tokenizer.readable, range(size - len(replaced), size)[:10]))
    say(f"{len(replaced):,} new pieces, the most useful ones: {shown}")
    say(f"pieces a word of this corpus: {extended.before:.3f} before, {extended.after:.3f} after")
    print(out)


def transplant(
    model: Model,
    config: Config,
    out: Path = argument(..., "The folder to write: a new one, or empty.", "OUT"),
    set_: Set = None,
    json_: Json = False,
) -> None:
    """Write a model with a new vocabulary, trained on a corpus.

    CONFIG names the corpus. Its section tokenizer says which vocabulary; auto is decided as for a new model
    of this family. A piece that the old vocabulary has keeps its vector. Another one starts with the mean of
    the old pieces that make it up. A piece of letters that the old vocabulary lacks gets a random vector,
    like those of the old pieces. Continue with the result as model.init_from, so that it learns the new
    pieces.

    Example: bertcli transplant runs/quickstart quickstart transplanted
    """
    from bertcli.corpus import matching
    from bertcli.families.registry import new_name
    from bertcli.folders import config_file, fill, vocabulary
    from bertcli.tokenizer.tokenizer import Tokenizer
    from bertcli.tokenizer.transplant import find_origins
    from bertcli.training.recipe import new_vocabulary

    folder, run, files = _model_and_corpus(model, config, set_, out=out)
    family, old = config_file.read_architecture(folder / "config.json").family, Tokenizer.load(folder)
    recipe = new_vocabulary(run, new_name(family))
    new = matching.load_given_tokenizer(recipe) or matching.train_on_corpus(
        files, recipe.corpus, recipe.tokenizer, report=say, model_type=family
    )
    vocabulary.check_padding(folder, new)
    origins = find_origins(old, new)
    change = vocabulary.transplanted(origins, run.seed)
    if dropped := vocabulary.write_with_vocabulary(folder, out, new, change=change, is_new=True):
        say(f"{fill.DROPPED}: {', '.join(dropped)}")
    if json_:
        print(json.dumps({"folder": str(out), "vocab_size": new.vocab_size, **origins.counts}))
        return
    ways = ", ".join(f"{way.replace('_', ' ')} {number:,}" for way, number in origins.counts.items())
    say(f"{new.vocab_size:,} pieces in place of {old.vocab_size:,}: {ways}")
    print(out)


def _model_and_corpus(
    model: Path, config: Path, set_: list[str] | None, out: Path
) -> tuple[Path, PretrainConfig, list[CorpusFile]]:
    """The folder of the model, the config and the files of its corpus, which is not read yet.

    Raises `UserError` if one of them is missing, or if `out` holds something.
    """
    from bertcli.config import load, schema
    from bertcli.corpus import chunks, matching
    from bertcli.folders import locate, sealed

    run, folder = load.load_config(schema.PretrainConfig, config, set_), locate.resolve_model(model)
    sealed.check_new(out)
    files = chunks.find_corpus(run.corpus, matching.output_paths(run))
    for note in chunks.encoding_notes(files, run.corpus):
        say(note)
    return folder, run, files
