"""`bertcli clean` and its files: kills at the end, links, changes while it reads, encodings."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bertcli.corpus.clean import run, stages
from bertcli.corpus.clean.run import clean_corpus, next_step
from bertcli.corpus.documents import read_paragraphs
from bertcli.corpus.engines import Placing
from bertcli.corpus.files import list_files
from bertcli.system.errors import UserError
from tests.corpus.builds import contents, make_config, short_chapters, silent

SHARD = "text/00000.jsonl.zst"


def cleaned(config: Any, out: Path) -> dict[str, Any]:
    return clean_corpus(config, out, Placing(1, 1), dry_run=False, page=lambda _: "a page", report=silent)


def write(folder: Path, *documents: str, encoding: str = "utf-8") -> Path:
    (folder / "corpus").mkdir()
    path = folder / "corpus" / "a.txt"
    path.write_text("\n\n".join(documents), encoding=encoding)
    return path


def killed(*_: Any) -> None:
    raise KeyboardInterrupt


def test_kills_at_the_end_leave_no_trace(tmp_path: Path, monkeypatch) -> None:
    text = write(tmp_path, *short_chapters()[:3])
    config, out = make_config(tmp_path), tmp_path / "corpus" / "out"
    cleaned(config, tmp_path / "alone")
    for module, name in ((run, "_account"), (run.os, "rename")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, killed)
            with pytest.raises(KeyboardInterrupt):
                cleaned(config, out)
        partial = out.with_name("out.partial")
        (partial / f"{SHARD}.8072.new").write_bytes(b"cut")
        (partial / "..bertcli.json.0123abcd.partial").write_text("{")
        assert [file.path for file in list_files([str(text.parent)])] == [text]
    cleaned(config, out)
    assert contents(out) == contents(tmp_path / "alone")


def test_a_link_is_read_by_its_own_name(tmp_path: Path) -> None:
    text = write(tmp_path, *short_chapters()[:2])
    (tmp_path / "blob").write_bytes(gzip.compress(text.read_bytes()))
    text.unlink()
    text.with_name("a.txt.gz").symlink_to(tmp_path / "blob")
    assert cleaned(make_config(tmp_path), tmp_path / "out")["documents"] == 2


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, monkeypatch) -> None:
    text = write(tmp_path, *short_chapters()[:2])

    def changing(*given: Any) -> Iterator[str | None]:
        yield from read_paragraphs(*given)
        text.write_text("other text")

    monkeypatch.setattr(stages, "read_paragraphs", changing)
    with pytest.raises(UserError, match=r"a\.txt: the file changed while it was read; run the command again"):
        cleaned(make_config(tmp_path), tmp_path / "out")


def test_the_current_folder_is_no_new_one(tmp_path: Path) -> None:
    write(tmp_path, "some text")
    with pytest.raises(UserError, match=r"^\.: exists already; name a new folder"):
        cleaned(make_config(tmp_path), Path("."))


def test_the_encoding_of_the_input_reads_the_cleaned_text_too(tmp_path: Path) -> None:
    chapter = f"{short_chapters()[0]}\nThe café was closed.".encode("latin-1", "ignore").decode("latin-1")
    write(tmp_path, chapter, encoding="latin-1")
    config = make_config(tmp_path, encoding="latin-1", document="file", join_lines=True)
    out = tmp_path / "out"
    cleaned(config, out)
    shards = config.corpus.model_copy(update={"format": "jsonl", "join_lines": False})
    assert next(read_paragraphs(out / SHARD, shards)) == " ".join(chapter.split("\n"))
    reads = "a config reads this text with files:"
    assert next_step(config.corpus, out) == (
        f"{reads} {out}/text, format: jsonl, and without encoding, join_lines"
    )
    sources = [{"files": "a", "text_key": "content", "format": "jsonl"}, {"files": "b"}]
    assert next_step(make_config(tmp_path, files=[], sources=sources).corpus, Path("out")) == (
        f"{reads} out/text/NAME for each source, format: jsonl, and without text_key"
    )


def test_a_copy_of_a_near_copy_names_what_stays(tmp_path: Path) -> None:
    words = short_chapters()[0].split()
    near = " ".join([*words[:50], "changed", *words[51:]])
    write(tmp_path, " ".join(words), near, near.upper())
    account = cleaned(make_config(tmp_path), tmp_path / "out")
    (copy,), (other,) = account["examples"]["copies"], account["examples"]["near_copies"]
    assert (copy["document"], other["document"]) == (3, 2)
    assert copy["as"] == other["as"]
    assert copy["as"]["document"] == 1
    assert copy["similarity"] == other["similarity"] < 1
    assert json.loads((tmp_path / "out" / "clean.json").read_text(encoding="utf-8")) == account
