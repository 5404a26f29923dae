"""A model folder and another vocabulary -> a folder with the model's tables for that vocabulary."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parameter import Parameter

from bertcli.folders import convert, locate, model_files, sealed
from bertcli.folders.config_file import NEW_VOCABULARY, read_architecture
from bertcli.system.errors import UserError
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.tokenizer.transplant import Origins

Change = Callable[[Tensor], Tensor]
"""A table [V, ...] with a row for each old piece -> the table of the new vocabulary. Equal tables give equal
results, so that embeddings that a generator shares stay equal in both folders."""


def write_with_vocabulary(
    source: Path, destination: Path, tokenizer: Tokenizer, change: Change, is_new: bool = False
) -> list[str]:
    """Write the model of `source` with another vocabulary to `destination`, a new folder or an empty one.

    `change` is applied to the word embeddings and to the bias of the MLM head, also to those of the generator
    of replaced words. The differences between the embeddings of both models are not written, because they
    follow from the two tables. `is_new`: no piece keeps its meaning for sure, which `config.json` notes
    (`NEW_VOCABULARY`). Returns the names of the weights that are dropped: those of heads that no
    class of transformers holds with the rest.

    Raises:
        UserError: `source` cannot be read; `destination` holds something, or cannot be written.
    """

    def fill(partial: Path) -> list[str]:
        notes = {NEW_VOCABULARY: True} if is_new else {}
        dropped = _write(source, partial, tokenizer, change=change, notes=notes)
        if (source / locate.GENERATOR).is_dir():
            own = source / locate.GENERATOR
            _write(own, partial / locate.GENERATOR, tokenizer, change=change, notes=notes)
        return dropped

    return sealed.write_new(destination, fill)


def _write(
    source: Path, destination: Path, tokenizer: Tokenizer, change: Change, notes: Mapping[str, Any]
) -> list[str]:
    read = convert.with_heads(model_files.read_model_files(source))
    model = cast(Any, read.model)
    words: nn.Embedding = model.body.embeddings.word
    words.weight = Parameter(change(words.weight.detach()))
    if hasattr(model, "mlm_head"):
        model.mlm_head.bias = Parameter(change(model.mlm_head.bias.detach()))
    model.architecture = replace(model.architecture, vocab_size=len(words.weight))
    declared = replace(read.declared, keys={**read.declared.keys, **notes})
    model_files.write_model_files(destination, model, tokenizer, declared=declared)
    return read.report.dropped()


def check_padding(folder: Path, tokenizer: Tokenizer) -> None:
    """Raise `UserError` if the positions of the model in `folder` begin after another id than that of the
    vocabulary's padding."""
    offset = read_architecture(folder / "config.json").position_offset
    if offset not in (0, tokenizer.pad_id + 1):
        raise UserError(
            f"{folder}: the positions of this model begin after the id of its padding, {offset - 1}, but the "
            f"new vocabulary has the id {tokenizer.pad_id} for it. Leave tokenizer.path out, so that a "
            "vocabulary for this model is trained"
        )


def extended(size: int, replaced: list[list[int]]) -> Change:
    """The change for a vocabulary of `size` pieces whose last ones are new.

    A new row is the mean of the rows that its piece replaces. `replaced` holds the old ids that each new id
    replaces, in the order of the new ids.
    """

    def change(table_V: Tensor) -> Tensor:
        new = torch.stack([table_V[ids].mean(dim=0) for ids in replaced]) if replaced else table_V[:0]
        return torch.cat([table_V[: size - len(new)], new, table_V[size:]])

    return change


def transplanted(origins: Origins, seed: int) -> Change:
    """The change for a new vocabulary with these origins; `seed` is that of the drawn rows.

    A drawn row is normal, with mean and standard deviation of the old rows in each column. A drawn bias is
    their mean: the piece is then as likely as an average one. A lower bias would make the words of a new
    script nearly impossible, and a drawn one would prefer some of them for no reason.
    """
    ids = torch.tensor([old_id for parts in origins.mixed for old_id in parts])
    weights = torch.tensor([weight for parts in origins.mixed for weight in parts.values()])
    starts = torch.tensor([0, *map(len, origins.mixed)]).cumsum(0)[:-1]

    def change(table_V: Tensor) -> Tensor:
        rows = table_V.reshape(len(table_V), -1)
        new = F.embedding_bag(ids, rows, starts, mode="sum", per_sample_weights=weights)
        draws = torch.Generator().manual_seed(seed)
        for new_ids, old_ids in origins.drawn:
            std, mean = torch.std_mean(rows[old_ids], dim=0, correction=0)
            noise = torch.randn(len(new_ids), len(mean), generator=draws)
            new[new_ids] = mean + noise * std if table_V.ndim > 1 else mean
        return new.reshape(-1, *table_V.shape[1:])

    return change
