"""`bertcli embed`, `similarity`: a vector for each text, and the nearest texts."""

import json
from pathlib import Path
from typing import Annotated, Literal

from bertcli.cli import options
from bertcli.cli.options import argument, count, flag, option
from bertcli.config import MOST_TOKENS
from bertcli.system.errors import UserError
from bertcli.system.terminal import say

TextColumn = Annotated[str, option(..., "The file's column of text, by name or number.", metavar="COLUMN")]
TextFormat = Annotated[
    str,
    option(
        ...,
        "Format, also of standard input: tsv, csv, jsonl, parquet, fasttext; .txt: a text a line.",
        "--format",
    ),
]
Encoding = Annotated[str, option(..., "Encoding of the file.")]


def embed(
    model: options.Model,
    texts: list[str] | None = argument(None, "Texts; each one gets a vector.", "TEXT"),
    input_: options.Input = None,
    output: Path | None = option(
        None, "A .npy (float32), .jsonl or .parquet file; default: standard output.", metavar="FILE"
    ),
    json_: bool = flag("Print JSON lines on standard output, as without --output.", "--json"),
    pooling: Literal["mean", "cls", "max"] | None = option(
        None, "How tokens become a vector. Default: the folder's own, else mean."
    ),
    normalize: bool | None = option(
        None, "Scale vectors to length 1. Default: the folder's own, else not.", "--normalize/--no-normalize"
    ),
    max_length: int | None = option(
        None, "Most tokens of a row. Default: the folder's own.", min=3, max=MOST_TOKENS
    ),
    windows: Literal["first", "mean", "max"] | None = option(
        None, "Longer texts are cut (first), or read in windows. Default: the folder's own, else first."
    ),
    text: TextColumn = "text",
    columns: options.Columns = None,
    format_: TextFormat = "auto",
    separator: options.Separator = None,
    quoting: options.Quoting = None,
    ignore_extra_fields: options.IgnoreExtraFields = None,
    encoding: Encoding = "utf-8",
    batch_size: options.BatchSize = None,
    device: options.Device = "auto",
    precision: options.PrecisionName = "fp32",
) -> None:
    """Turn each text into a vector.

    The vector is the mean over its tokens, or what the folder of a sentence-transformers model says. If a
    model was not trained to embed, all cosine similarities are high, and only their order is useful.

    MODEL may also be a folder that bertcli export wrote, or an .onnx file in it; onnxruntime runs it.

    Example: bertcli embed runs/quickstart --input corpus.txt --output out.npy
    """
    from bertcli.folders.lengths import check_length
    from bertcli.inference import inputs, outputs
    from bertcli.inference.opened import Compute, open_encoder
    from bertcli.inference.vectors import SUFFIXES, vector_line, write_vectors
    from bertcli.tasks.files import settings_of_texts

    if json_ and output is not None:
        raise UserError("--json writes to standard output; leave it out, or give --output FILE.jsonl alone")
    if output is not None:
        outputs.check_output(output, SUFFIXES, input_)
    settings = inputs.adapt_settings(
        settings_of_texts(),
        [text],
        columns=columns,
        format=format_,
        separator=separator,
        quoting=quoting,
        ignore_extra_fields=ignore_extra_fields,
        encoding=encoding,
    )
    embedder, folder = open_encoder(model, Compute(device, precision))
    if max_length is not None:
        check_length(folder, max_length, "--max-length")
    cut = outputs.CutRows(folder)
    embedder = embedder.reading(
        cut, batch_size, mode=pooling, normalize=normalize, max_length=max_length, windows=windows
    )
    examples = inputs.read_inputs(texts or [], input_, settings, report=say, is_table=format_ != "auto")
    vectors = cut.watch(embedder.embed(examples))
    if output is None:
        with outputs.opened(None) as file:
            file.writelines(vector_line(embedded) for embedded in vectors)
    else:
        with outputs.writing(output):
            write_vectors(output, vectors, embedder.model.architecture.hidden)
    cut.tell()


def similarity(
    model: options.Model,
    queries: list[str] = argument(
        ...,
        "Texts, or - for a pipe; without --input, one text and those to compare with it.",
        metavar="QUERY",
    ),
    input_: options.Input = None,
    vectors: Path | None = option(
        None, "The vectors of --input: a .npy file that bertcli embed made from it.", metavar="FILE"
    ),
    top: int = count(10, "Number of texts for each query."),
    json_: options.JsonLines = False,
    text: TextColumn = "text",
    columns: options.Columns = None,
    format_: TextFormat = "auto",
    separator: options.Separator = None,
    quoting: options.Quoting = None,
    ignore_extra_fields: options.IgnoreExtraFields = None,
    encoding: Encoding = "utf-8",
    batch_size: options.BatchSize = None,
    device: options.Device = "auto",
    precision: options.PrecisionName = "fp32",
) -> None:
    """Find the texts that are most similar to a query.

    Each line or row of --input is compared with each QUERY by the cosine of their vectors (bertcli embed).
    The nearest ones are printed, the nearest first. Files of any size are streamed. If many queries are asked
    of one file, save its vectors once (bertcli embed MODEL --input FILE --output FILE.npy), and give them by
    --vectors. If there is no --input, the first text is compared with the others.

    Example: bertcli similarity runs/quickstart "a dark night" --input corpus.txt
    """
    from bertcli.inference import inputs, outputs
    from bertcli.inference.opened import Compute, open_encoder
    from bertcli.inference.vectors import VectorFile, nearest
    from bertcli.tasks.files import settings_of_texts

    if input_ is None and (vectors is not None or len(queries) < 2):
        raise UserError("give the texts to compare with: --input FILE, or further texts after the first one")
    given, others = (queries, []) if input_ is not None else (queries[:1], queries[1:])
    if given == ["-"] and (input_ == "-" or others == ["-"]):
        raise UserError("- is standard input, which can be read once; give one of the two as a file")
    settings = inputs.adapt_settings(
        settings_of_texts(),
        [text],
        columns=columns,
        format=format_,
        separator=separator,
        quoting=quoting,
        ignore_extra_fields=ignore_extra_fields,
        encoding=encoding,
    )
    embedder, folder = open_encoder(model, Compute(device, precision))
    cut = outputs.CutRows(folder)
    embedder = embedder.reading(cut, batch_size)
    asked = list(inputs.read_inputs(given, None, settings, report=say))
    queries_QD = embedder.matrix(asked, cut)
    examples = inputs.read_inputs(others, input_, settings, report=say, is_table=format_ != "auto")
    file = None if vectors is None else VectorFile(vectors, embedder.model.architecture.hidden)
    found = nearest(
        queries_QD,
        examples,
        (lambda some: embedder.matrix(some, cut)) if file is None else file.take,
        batch_size=embedder.batch_size,
        top=top,
    )
    if file is not None:
        file.check_end()
    for query, some in zip(asked, found, strict=True):
        if len(asked) > 1 and not json_:
            print(query.texts[0])
        for rank, near in enumerate(some, start=1):
            if not json_:
                print(f"{near.similarity:8.4f}  {near.example.texts[0]}")
                continue
            answer = {
                "query": query.texts[0],
                "rank": rank,
                "similarity": near.similarity,
                "where": near.example.where,
            }
            print(json.dumps(outputs.beside(near.example.columns, answer), ensure_ascii=False))
    cut.tell()
