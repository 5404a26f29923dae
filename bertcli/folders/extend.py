"""A model folder and a longer vocabulary -> a folder with the embeddings of the new pieces."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.parameter import Parameter

from bertcli.folders.convert import with_heads
from bertcli.folders.locate import GENERATOR
from bertcli.folders.model_files import read_model_files, write_model_files
from bertcli.folders.model_folder import DIFFERENCES
from bertcli.folders.sealed import write_new
from bertcli.folders.weights import read_weights, write_safetensors
from bertcli.system.files import has_file
from bertcli.tokenizer.tokenizer import Tokenizer


def write_extended(
    source: Path, destination: Path, tokenizer: Tokenizer, replaced: list[list[int]]
) -> list[str]:
    """Write the model of `source` with a longer vocabulary to `destination`, a new folder or an empty one.

    The embedding of a new piece and its bias in the MLM head are means over the pieces that it replaces. The
    generator of replaced words is extended as well. Returns the names of the weights that are dropped: those
    of heads that no class of transformers holds with the rest.

    Args:
        replaced: the old ids that each new id replaces, in the order of the new ids.

    Raises:
        UserError: `source` cannot be read; `destination` holds something, or cannot be written.
    """

    def fill(partial: Path) -> list[str]:
        dropped = _write(source, partial, tokenizer, replaced=replaced)
        if (source / GENERATOR).is_dir():
            _write(source / GENERATOR, partial / GENERATOR, tokenizer, replaced=replaced)
        if has_file(source / DIFFERENCES):
            differences = read_weights(source / DIFFERENCES)
            words = "body.embeddings.word.difference"
            grown = _grown(differences[words], tokenizer.vocab_size, replaced)
            write_safetensors(partial / DIFFERENCES, differences | {words: grown})
        return dropped

    return write_new(destination, fill)


def _write(source: Path, destination: Path, tokenizer: Tokenizer, replaced: list[list[int]]) -> list[str]:
    read = with_heads(read_model_files(source))
    model, size = cast(Any, read.model), tokenizer.vocab_size
    words: nn.Embedding = model.body.embeddings.word
    words.weight = Parameter(_grown(words.weight.detach(), size, replaced))
    if hasattr(model, "mlm_head"):
        model.mlm_head.bias = Parameter(_grown(model.mlm_head.bias.detach(), size, replaced))
    model.architecture = replace(model.architecture, vocab_size=len(words.weight))
    write_model_files(destination, model, tokenizer, declared=read.declared)
    return read.report.dropped()


def _grown(table_V: Tensor, size: int, replaced: list[list[int]]) -> Tensor:
    """The table [V, ...], whose first `size` rows end with the new ones: means of the `replaced` rows."""
    new = torch.stack([table_V[ids].mean(dim=0) for ids in replaced]) if replaced else table_V[:0]
    first = size - len(new)
    return torch.cat([table_V[:first], new, table_V[size:]])
