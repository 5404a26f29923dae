"""A model folder and a longer vocabulary -> a folder with the embeddings of the new pieces."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.parameter import Parameter

from bertcli.folders import convert, locate, model_files, model_folder, sealed, weights
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
        if (source / locate.GENERATOR).is_dir():
            _write(source / locate.GENERATOR, partial / locate.GENERATOR, tokenizer, replaced=replaced)
        if has_file(source / model_folder.DIFFERENCES):
            differences = weights.read_weights(source / model_folder.DIFFERENCES)
            words = "body.embeddings.word.difference"
            grown = _grown(differences[words], tokenizer.vocab_size, replaced)
            weights.write_safetensors(partial / model_folder.DIFFERENCES, differences | {words: grown})
        return dropped

    return sealed.write_new(destination, fill)


def _write(source: Path, destination: Path, tokenizer: Tokenizer, replaced: list[list[int]]) -> list[str]:
    read = convert.with_heads(model_files.read_model_files(source))
    model, size = cast(Any, read.model), tokenizer.vocab_size
    words: nn.Embedding = model.body.embeddings.word
    words.weight = Parameter(_grown(words.weight.detach(), size, replaced))
    if hasattr(model, "mlm_head"):
        model.mlm_head.bias = Parameter(_grown(model.mlm_head.bias.detach(), size, replaced))
    model.architecture = replace(model.architecture, vocab_size=len(words.weight))
    model_files.write_model_files(destination, model, tokenizer, declared=read.declared)
    return read.report.dropped()


def _grown(table_V: Tensor, size: int, replaced: list[list[int]]) -> Tensor:
    """The table [V, ...], whose first `size` rows end with the new ones: means of the `replaced` rows."""
    new = torch.stack([table_V[ids].mean(dim=0) for ids in replaced]) if replaced else table_V[:0]
    first = size - len(new)
    return torch.cat([table_V[:first], new, table_V[size:]])
