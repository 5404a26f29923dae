"""Documents, configs and bytes of the stores that the tests of building make."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path
from typing import Any

from bertcli.config.run import PretrainRecipe, TokenizerRecipe
from bertcli.samples import SAMPLES
from tests.decided import recipe


def make_config(folder: Path, tokenizer: TokenizerRecipe | None = None, **corpus: Any) -> PretrainRecipe:
    return recipe(
        {
            "output_dir": str(folder / "run"),
            "corpus": {"files": [str(folder / "corpus")], "heldout_fraction": 0.2} | corpus,
            "tokenizer": {} if tokenizer is None else tokenizer.model_dump(exclude_unset=True),
        }
    )


def silent(_: str) -> None:
    pass


@cache
def short_chapters() -> list[str]:
    with gzip.open(SAMPLES["classics"], "rt", encoding="utf-8") as file:
        return [c[:2000].rpartition("\n")[0] for c in file.read().split("\n\n")[::4] if len(c) > 2000]


def write_corpus_folder(tmp_path: Path) -> Path:
    """Short chapters of the classics in three files, one of them compressed."""
    chapters = short_chapters()
    (tmp_path / "corpus").mkdir()
    for number, name in enumerate(("a.txt", "b.txt.gz", "c.txt")):
        data = "\n\n".join(chapters[number::3]).encode()
        path = tmp_path / "corpus" / name
        path.write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
