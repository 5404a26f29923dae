"""The schema of a corpus: its files or sources, how they are read, weighted and cleaned."""

from __future__ import annotations

import glob
import math
import os
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from bertcli.config import MOST
from bertcli.config.section import (
    AnyPaths,
    BadBytes,
    Count,
    Decoding,
    FilePath,
    LocalPath,
    Paths,
    Probability,
    Section,
    Weight,
    ends,
    value_at,
)
from bertcli.system.remote import InputPath
from bertcli.system.urls import is_remote

_LANGUAGES = Path(__file__).with_name("languages.txt")
"""The file of the languages, one a line: its ISO 639-1 code, then its other codes (ISO 639-3 and 639-2, also
of its main variety) and names."""
_CODES = {
    name.casefold(): line.partition(":")[0]
    for line in _LANGUAGES.read_text(encoding="utf-8").splitlines()
    for name in line.split(":")
}
_TWO_LETTERS = frozenset(_CODES.values())
_CODE = re.compile("[a-z]{2,3}([-_][A-Za-z0-9]{2,8})*")


def language_code(language: str) -> str:
    """The code that bertcli uses: `deu`, `de-AT` and `DE` give de; `nds` has no shorter one.

    Raises `ValueError` if `language` is not a code; the message holds the right code if it is known.
    """
    main = re.split("[-_]", language.lower())[0]
    if _CODE.fullmatch(language.lower()) and (len(main) == 3 or main in _TWO_LETTERS):
        return _CODES.get(main, main)
    known = _CODES.get(language.replace("_", " ").strip().casefold())
    if known is not None:
        raise ValueError(f"{language!r} is a language's name; its code is expected: write {known}")
    raise ValueError(
        f"{language!r} is not an ISO 639 language code; expected 2 or 3 small letters: en, de, fr, hi, sw"
    )


class TextConfig(Section):
    """Text files, and how they are divided into documents and sentences."""

    files: Paths
    """Paths, folders, globs, URLs (s3, gs, hf, https), or the name of a bundled sample."""
    format: Literal["text", "sentences", "jsonl", "parquet"] = "text"
    """Format of the files. text: a paragraph a line; sentences: a sentence a line, and a blank line ends a
    document; jsonl: JSON objects or texts, one a line or in a list, each a document; parquet: a document a
    row."""
    text_key: str = "text"
    """The key (jsonl) or column (parquet) that holds a document."""
    document: Literal["blank-line", "file"] = "blank-line"
    """What ends a document in the format text: a blank line, or the end of the file."""
    join_lines: bool = False
    """True for hard-wrapped text: all lines up to a blank line are one paragraph."""
    language: str = "en"
    """ISO 639 code of the language, for the sentence splitter and the rule `clean.language`; stored in its
    shortest form (de for deu or de-AT)."""
    encoding: str = "utf-8"
    """Encoding of the text files, as Python names it. utf-8: a file with the byte order mark of UTF-16 or
    UTF-32 is read in that encoding."""

    @field_validator("language", mode="before")
    @classmethod
    def _language_code(cls, value: Any) -> Any:
        return language_code(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_lines(self) -> Self:
        if self.join_lines and self.document != "file":
            raise ValueError(
                "join_lines: true needs document: file: a blank line then ends a paragraph, not a document"
            )
        if self.join_lines and self.format != "text":
            raise ValueError(f"join_lines is for format: text, not {self.format}")
        return self


class SourceConfig(TextConfig):
    """One of several sources of text. A key that it does not have is that of `corpus`."""

    name: Annotated[str, Field(pattern=r"^[^/.\n][^/\n]*$", max_length=60)] | None = None
    """Name in messages and reports, and of the folder that `bertcli clean` makes; null: from the first of its
    files."""
    weight: Weight | tuple[Weight, Weight] | None = None
    """Share of the rows, relative to the weights of the other sources; [start, end]: it moves over
    `training.ramp_steps`. null: the share follows from the sizes (`corpus.temperature`)."""


class CorpusConfig(TextConfig):
    """The text, and how it is divided into documents and sentences."""

    files: AnyPaths
    """Paths, folders, globs, URLs (s3, gs, hf, https), or the name of a bundled sample; not with
    `sources`."""
    sources: tuple[SourceConfig, ...] = ()
    """Several sources in place of `files`, each with a weight of its own."""
    temperature: Probability | tuple[Probability, Probability] = 1.0
    """Shares of sources without weights: in proportion to size ^ temperature. 1: as the text is; 0: all
    alike; [start, end]: it moves over `training.ramp_steps`."""
    encodings: dict[FilePath, str] = Field(default={})
    """Encodings of single files: a path or pattern -> its encoding. The first one that fits a file counts."""
    bad_bytes: BadBytes = "refuse"
    """Treatment of bytes that are not in the encoding. refuse ends the run; replace reads U+FFFD in their
    place; skip-line leaves out their lines. replace and skip-line first name and count these lines."""
    heldout_fraction: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.05
    """Share of the documents that is kept for evaluation; 0: none is kept, and nothing is evaluated."""
    general: Paths | None = None
    """Text in the form of `files`, for a run with `model.init_from`: at its end, the run shows what the model
    forgot of this text. null: a bundled sample of English books."""
    store: LocalPath | None = None
    """Folder of the token store; null: `output_dir/store`."""

    def decoding(self, path: InputPath) -> Decoding:
        """How this file of the corpus is read."""
        own = (encoding for name, encoding in self.encodings.items() if fits(path, name))
        return Decoding(next(own, self.encoding), self.bad_bytes)

    @property
    def num_sources(self) -> int:
        """The number of sources; 1 for `files`."""
        return max(1, len(self.sources))

    @property
    def source_names(self) -> list[str]:
        """The name of each source: the given one, or that of its first file or folder without a suffix. A
        name of a file that is taken gets a number."""
        names = [source.name for source in self.sources] or [None]
        for place, source in enumerate(self.sources or (self,)):
            if names[place] is None:
                name = own = _name_of(source.files[0])
                number = 2
                while name in names:
                    name, number = f"{own} {number}", number + 1
                names[place] = name
        return [name for name in names if name is not None]

    @property
    def all_files(self) -> list[str]:
        """The `files` of all sources."""
        return [*self.files, *(path for source in self.sources for path in source.files)]

    @property
    def languages(self) -> list[str]:
        """The languages of the sources, each once."""
        return list(dict.fromkeys(source.language for source in self.sources or (self,)))

    @property
    def main_language(self) -> str:
        """The language of all sources; `language` if they have several."""
        return self.languages[0] if len(self.languages) == 1 else self.language

    def shares(self, sizes: Sequence[float], step: int, ramp_steps: int) -> list[float]:
        """The share of each source in the rows of a step, counted from 0; together they are 1.

        Args:
            sizes: the size of each source.
            ramp_steps: the steps in which weights and temperature move.
        """
        weights = [source.weight for source in self.sources if source.weight is not None]
        power = value_at(self.temperature, step, ramp_steps)
        parts = [value_at(each, step, ramp_steps) for each in weights] or [size**power for size in sizes]
        total = math.fsum(parts)
        return [part / total if total else 1 / len(parts) for part in parts]  # all are empty: alike

    @property
    def alone(self) -> list[CorpusConfig]:
        """Each source as a corpus of its own."""
        return [self.of(source) for source in range(self.num_sources)]

    def of(self, source: int) -> CorpusConfig:
        """The source with this number, from 0, as a corpus of its own."""
        if not self.sources:
            return self
        own = self.sources[source].model_dump(exclude={"name", "weight"})
        return self.model_copy(update={**own, "sources": ()})

    @model_validator(mode="before")
    @classmethod
    def _give_to_sources(cls, value: Any) -> Any:
        """Give each source the keys of the corpus that it does not have."""
        if not isinstance(value, dict) or not isinstance(value.get("sources"), list | tuple):
            return value
        value = {"files": [], **value} if value["sources"] else value
        common = {key: value[key] for key in TextConfig.model_fields if key in value and key != "files"}
        sources = [common | each if isinstance(each, dict) else each for each in value["sources"]]
        return {**value, "sources": sources}

    @model_validator(mode="after")
    def _check_sources(self) -> Self:
        if bool(self.files) == bool(self.sources):
            raise ValueError("give files or sources: exactly one of both")
        if self.temperature != 1.0 and (not self.sources or self.sources[0].weight is not None):
            raise ValueError(
                "temperature is for sources without weights; leave out temperature or the weights"
            )
        names = [each.name for each in self.sources if each.name is not None]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two sources have the name {twice}; give each source a name of its own")
        weights = [each.weight for each in self.sources]
        if None in weights and any(weight is not None for weight in weights):
            raise ValueError("give every source a weight, or none")
        if self.sources and None not in weights:
            for end, place in enumerate(("first", "last")):
                if not any(ends(weight)[end] for weight in weights if weight is not None):
                    raise ValueError(f"every weight is 0 in the {place} step; one or more must be above 0")
        return self


def _name_of(path: str) -> str:
    """The name of a source with this path: of a pattern, that of the folder before it."""
    parts = [part.split(".")[0] for part in Path(path).parts if not glob.has_magic(part)]
    return next((part for part in reversed(parts) if part.strip("/")), "source")


Documents = Annotated[int, Field(ge=2, le=MOST)]
Similarity = Annotated[float, Field(gt=0.0, lt=1.0)]


class CleanConfig(Section):
    """The rules of `bertcli clean`, in their order; training reads none of them. null or false: the rule is
    off."""

    mend: bool = True
    """Mend text that was decoded in a wrong encoding (ftfy), bring it to Unicode's form NFC, and remove
    control characters."""
    shared_lines: Documents | None = 10
    """Remove lines that at least this many documents of a source share, such as menus and notices. Only the
    first and the last ten lines of a document are checked."""
    fewest_words: Count | None = 20
    """Documents with fewer words are left out."""
    repetition: bool = True
    """Leave out documents that repeat themselves, by the limits of Rae et al. 2021 (Gopher), table A1."""
    language: bool = True
    """Leave out documents that are likely not in the language of their source."""
    copies: bool = True
    """Leave out documents with the words of an earlier one. Case, punctuation and line breaks do not
    count."""
    near_copies: Similarity | None = 0.45
    """Leave out a document whose similarity to an earlier one is at least this. The similarity is the number
    of runs of three words that both have, as a share of those that either has (Broder 1997). A copy in which
    a random tenth of the words was changed has 0.57. Documents that share a half have 0.33."""


def fits(path: InputPath, name: str) -> bool:
    """True if `name`, a path or a pattern of paths, means this file. As in `corpus.files`, * stays within a
    folder, and ** means folders of any depth."""
    own, given = _absolute(str(path)), _absolute(os.path.expanduser(name))
    return any(_matches(parts, pattern) for parts in _spellings(own) for pattern in _spellings(given))


def _absolute(name: str) -> str:
    return name if is_remote(name) else str(Path(name).absolute())


@lru_cache(1 << 16)  # every file is compared with every name
def _spellings(name: str) -> set[tuple[str, ...]]:
    """The parts of a URL; those of a path from the root as it is written, and without links in it or in its
    folder."""
    if is_remote(name):
        return {tuple(name.split("/"))}
    path = Path(name)
    return {each.parts for each in (path, path.parent.resolve() / path.name, path.resolve())}


def _matches(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    if parts == pattern:
        return True
    if not pattern:
        return False
    if pattern[0] == "**":
        return len(pattern) == 1 or any(_matches(parts[n:], pattern[1:]) for n in range(len(parts)))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])
