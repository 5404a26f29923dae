"""Building a store: the same bytes however it is done; no new file moves a document between the sides."""

from __future__ import annotations

import errno
import gzip
import itertools
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertcli.corpus import build, chunks, writer
from bertcli.corpus.build import prepare_store
from bertcli.corpus.token_store import TokenStore
from bertcli.corpus.writer import SideFiles
from bertcli.system import files
from bertcli.system.errors import UserError
from tests.corpus.builds import contents, make_config, silent, write_corpus_folder
from tests.decided import tokenizer_config
from tests.tokenizer.tokenizers_of import make_tokenizer_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_corpus_folder(tmp_path)


def texts(side: TokenStore) -> set[bytes]:
    """Each document's ids."""
    bounds = side.sentences[side.documents].astype(int)
    return {side.ids[a:b].tobytes() for a, b in itertools.pairwise(bounds)}


def test_the_store_is_the_same_however_it_is_built(folder: Path, monkeypatch: pytest.MonkeyPatch):
    config = make_config(folder)
    built = {}
    for name, processes, chunk_bytes, spool_bytes in (
        ("in this process", 0, 1 << 18, 1 << 20),
        ("small chunks, long documents on the disk", 0, 700, 100),
        ("two processes", 2, 3000, 1 << 20),
    ):
        monkeypatch.setattr(chunks, "CHUNK_CHARACTERS", chunk_bytes)
        monkeypatch.setattr(writer, "SPOOL_BYTES", spool_bytes)
        store = prepare_store(config, silent, processes=processes)
        built[name] = contents(store.folder)
        shutil.rmtree(store.folder)
    first, *others = built.values()
    assert len(first) == 1 + 1 + 1 + 3 + 8
    assert all(other == first for other in others)


def test_chunks_change_no_piece_of_a_vocabulary_that_marks_blanks(folder: Path, monkeypatch):
    path = make_tokenizer_folder("roberta", folder / "tokenizer")
    given = tokenizer_config(path=str(path))
    built = []
    for number, characters in enumerate((1 << 18, 700)):
        monkeypatch.setattr(chunks, "CHUNK_CHARACTERS", characters)
        config = make_config(
            folder,
            given,
            format="sentences",
            document="file",
            heldout_fraction=0,
            store=str(folder / str(number)),
        )
        built.append(contents(prepare_store(config, silent, processes=0).folder))
    assert built[0] == built[1]


def test_nothing_but_the_store_is_left(folder: Path):
    prepare_store(make_config(folder), silent)
    assert [path.name for path in (folder / "run").iterdir()] == ["store"]


def test_sides_share_no_document_and_together_hold_all(folder: Path):
    store = prepare_store(make_config(folder), silent)
    train, heldout = texts(store.train), texts(store.heldout)
    assert not train & heldout
    assert len(train) == store.train.num_documents > 2 * store.heldout.num_documents
    assert len(train) + len(heldout) == store.manifest.train.documents + store.manifest.heldout.documents


def test_a_new_file_moves_no_document_between_the_sides(folder: Path):
    before = prepare_store(make_config(folder), silent)
    sides = texts(before.train), texts(before.heldout)
    new = tokenizer_config(path=str(before.folder / "tokenizer"))
    (folder / "corpus" / "aa.txt").write_text("A new file. Of two sentences.\n\nAnother document.\n")
    after = prepare_store(make_config(folder, new, store=str(folder / "other")), silent)
    assert sides[0] <= texts(after.train)
    assert sides[1] <= texts(after.heldout)


def test_the_same_text_in_another_wrapping_is_the_same_store(folder: Path):
    tokenizer = tokenizer_config(path=str(prepare_store(make_config(folder), silent).folder / "tokenizer"))
    lines = b"".join(
        (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()) + b"\n\n"
        for path in sorted((folder / "corpus").iterdir())
    )
    (folder / "whole.txt").write_bytes(b"\xef\xbb\xbf" + lines.replace(b"\n", b"\r\n"))
    whole = prepare_store(
        make_config(folder, tokenizer, files=[str(folder / "whole.txt")], store=str(folder / "other")), silent
    )
    arrays = {k: v for k, v in contents(folder / "run" / "store").items() if k.endswith(".bin")}
    assert {k: v for k, v in contents(whole.folder).items() if k.endswith(".bin")} == arrays


def test_an_initial_model_brings_its_tokenizer(folder: Path):
    trained = prepare_store(make_config(folder), silent).tokenizer
    trained.save(folder / "model")
    config = make_config(folder, store=str(folder / "other"))
    config = config.model_copy(
        update={"model": config.model.model_copy(update={"init_from": str(folder / "model")})}
    )
    assert prepare_store(config, silent).tokenizer.hash == trained.hash


def test_a_short_text_is_said_to_give_fewer_entries(folder: Path):
    lines: list[str] = []
    prepare_store(make_config(folder, tokenizer_config(vocab_size=50_000)), lines.append)
    assert any("note: the text is too short for 50,000 entries: it gives " in line for line in lines)


def test_too_few_heldout_documents_name_a_fraction_that_works(folder: Path):
    with pytest.raises(
        UserError, match=r"holds out [01]; evaluation needs two or more. Raise it to "
    ) as error:
        prepare_store(make_config(folder, heldout_fraction=0.0001), silent)
    assert not (folder / "run" / "store").exists()
    fraction = float(str(error.value).partition("Raise it to ")[2].split(",")[0])
    assert prepare_store(make_config(folder, heldout_fraction=fraction), silent).heldout.num_documents == 2


def test_all_documents_held_out_is_an_error(folder: Path):
    (folder / "few.txt").write_text("\n\n".join(f"Document {i} of three. The end.\n" for i in range(3)))
    with pytest.raises(UserError, match=r"0.999999 holds out all of 3 documents; lower it"):
        prepare_store(make_config(folder, files=[str(folder / "few.txt")], heldout_fraction=0.999999), silent)


def test_a_corpus_without_text_is_an_error(folder: Path):
    tokenizer = tokenizer_config(path=str(prepare_store(make_config(folder), silent).folder / "tokenizer"))
    empty = folder / "empty"
    empty.mkdir()
    (empty / "a.txt").write_text("\n \n")
    listed = make_config(folder, tokenizer, files=[str(empty / "a.txt")], store=str(folder / "x"))
    with pytest.raises(UserError, match=r"a.txt: the file holds no text"):
        prepare_store(listed, silent)
    found = make_config(folder, tokenizer, files=[str(empty)], store=str(folder / "x"))
    with pytest.raises(UserError, match="the corpus holds no text"):
        prepare_store(found, silent)
    (empty / "a.txt").write_bytes(b"")
    with pytest.raises(UserError, match="there is no text to train a vocabulary on"):
        prepare_store(make_config(folder, files=[str(empty)], store=str(folder / "x")), silent)


def test_a_folder_with_something_else_is_left_alone(folder: Path):
    (folder / "mine").mkdir()
    (folder / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(
        UserError, match=r"mine: a folder with other files in it: .*Name another in corpus.store"
    ):
        prepare_store(make_config(folder, store=str(folder / "mine")), silent, overwrite=True)
    assert (folder / "mine" / "thesis.txt").read_text() == "years of work"


def test_a_build_killed_while_its_note_was_written_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch):
    config, left = make_config(folder), "..bertcli.json.0123abcd.partial"

    def killed(partial: Path, note: object) -> None:
        (partial / left).write_text("{")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("bertcli.corpus.build.write_note", killed)
        with pytest.raises(KeyboardInterrupt):
            prepare_store(config, silent)
    store = prepare_store(config, silent).folder
    again = prepare_store(make_config(folder, store=str(folder / "again")), silent).folder
    assert contents(store).keys() == contents(again).keys()


def test_a_place_that_cannot_be_written_is_an_error(folder: Path):
    (folder / "file").write_text("")
    with pytest.raises(
        UserError, match=r"store: the token store cannot be written: not a directory; name one that can"
    ):
        prepare_store(make_config(folder, store=str(folder / "file" / "store")), silent)


def test_a_full_disk_keeps_what_was_there_and_the_build_goes_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    config = make_config(folder)
    expected = contents(prepare_store(config, silent).folder)
    shutil.rmtree(folder / "run" / "store")
    monkeypatch.setattr(chunks, "CHUNK_CHARACTERS", 2000)
    write, room = SideFiles._write, 20_000

    def write_while_there_is_room(self: SideFiles, name: str, array: np.ndarray) -> None:
        nonlocal room
        room -= array.nbytes
        if room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(self, name, array)

    with monkeypatch.context() as patch:
        patch.setattr(SideFiles, "_write", write_while_there_is_room)
        patch.setattr(build, "JOURNAL_SECONDS", 0)
        with pytest.raises(
            UserError, match=r"cannot be written: no space left on device; .* it resumes from here"
        ):
            prepare_store(config, silent)
    lines: list[str] = []
    assert contents(prepare_store(config, lines.append).folder) == expected
    assert lines == [f"resuming the interrupted build in {folder / 'run' / 'store.partial'}"]


def test_a_file_that_changes_while_it_is_read_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(chunks, "CHUNK_CHARACTERS", 100)
    encode = __import__("bertcli.corpus.build", fromlist=["encode_chunks"]).encode_chunks

    def encode_and_append(*arguments: Any, **named: Any) -> Any:
        for pair in encode(*arguments, **named):
            with open(folder / "corpus" / "a.txt", "a") as file:
                file.write("more\n")
            yield pair

    monkeypatch.setattr("bertcli.corpus.build.encode_chunks", encode_and_append)
    with pytest.raises(UserError, match=r"a.txt: the file changed while it was read; run the command again"):
        prepare_store(make_config(folder), silent)


def test_a_file_that_changes_after_it_was_read_leaves_no_store(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """No command would take that store: its files are others."""
    config, corpus = make_config(folder), folder / "corpus" / "a.txt"
    encode = build.encode_chunks

    def encode_and_append(*arguments: Any, **named: Any) -> Any:
        yield from encode(*arguments, **named)
        corpus.write_text(corpus.read_text() + "more\n")

    monkeypatch.setattr(build, "encode_chunks", encode_and_append)
    with pytest.raises(UserError, match=r"a.txt: the file changed, .*, while the store was built; run"):
        prepare_store(config, silent)
    assert not (folder / "run" / "store").exists()
    monkeypatch.undo()
    again = prepare_store(config, silent)
    assert contents(prepare_store(config, silent).folder) == contents(again.folder)


def test_a_build_that_waited_for_one_that_ended_is_told_of_it(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """The lock that it then gets is no file of the folder any more."""

    def end_the_other(_: object, blocking: bool) -> bool:
        os.rename(folder / "run" / "store.partial", folder / "run" / "store")
        return True

    monkeypatch.setattr(files, "lock_descriptor", end_the_other)
    with pytest.raises(UserError, match=r"store.partial: this store is being built by another process; wait"):
        prepare_store(make_config(folder), silent)


def test_two_builds_at_once_do_not_mix(folder: Path):
    config = make_config(folder)
    errors: list[str] = []

    def build_the_same(_: str) -> None:
        with pytest.raises(UserError) as error:
            prepare_store(config, silent)
        errors.append(str(error.value))

    prepare_store(config, build_the_same)
    assert f"this store is being built by process {os.getpid()} on" in errors[0]
