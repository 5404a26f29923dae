"""Format, text, language, documents and lines of a corpus are read in its files."""

from __future__ import annotations

import gzip
import json
import re
import textwrap
from pathlib import Path

import pytest

from bertcli.advice.init.amount import measure_amount, write_sample
from bertcli.advice.init.corpus import CorpusLook, look_at_corpus
from bertcli.advice.init.files import find_files
from bertcli.config.corpus import CorpusConfig
from bertcli.corpus.files import corpus_files
from bertcli.samples import SAMPLES
from bertcli.system.errors import UserError
from tests.advice.init.files import FIT, write_jsonl

GERMAN = (
    "Der alte Mann ging jeden Morgen durch den Garten und goss die Blumen. Seine Frau sah ihm zu.\n"
    "Die Kinder der Nachbarn spielten auf der Straße. Ein Hund lief ihnen nach und bellte laut.\n"
)
CHINESE = "昨天晚上我们沿着河边散步。水上有两只白色的天鹅。孩子们在岸边大声地笑着。\n"


def test_files_without_text_are_named(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("\n \n", encoding="utf-8")
    config = CorpusConfig(files=[str(tmp_path)])
    with pytest.raises(UserError, match=r"a\.txt and the other files: no text was found"):
        measure_amount(corpus_files(config), config)


@pytest.fixture(scope="module")
def chapters() -> list[str]:
    with gzip.open(SAMPLES["classics"], "rt", encoding="utf-8") as file:
        return file.read(900_000).split("\n\n")[:-1]


def look(*names: Path) -> CorpusLook:
    return look_at_corpus(find_files(list(map(str, names)), Path("/nowhere/c.yaml")))


def written(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_text(text, encoding=encoding)
    return path


def test_blank_lines_end_documents(tmp_path: Path, chapters: list[str]) -> None:
    found = look(written(tmp_path / "a.txt", "\n\n".join(chapters)))
    config = found.config
    assert (config.format, config.document, config.language, config.join_lines) == (
        "text",
        "blank-line",
        "en",
        False,
    )
    assert found.has_documents
    assert "blank lines end documents" in found.comments["document"]


def test_hard_wrapped_lines_are_joined(tmp_path: Path, chapters: list[str]) -> None:
    wrapped = "\n\n".join("\n".join(textwrap.wrap(line, 72)) for line in chapters[0].split("\n"))
    alone = look(written(tmp_path / "a.txt", wrapped))
    assert (alone.config.document, alone.config.join_lines) == ("file", True)
    assert "lines are cut at about column 7" in alone.comments["join_lines"]
    assert not alone.has_documents  # one file, thus one document
    assert look(tmp_path / "a.txt", written(tmp_path / "b.txt", wrapped)).has_documents


def test_files_without_blank_lines_are_documents(tmp_path: Path, chapters: list[str]) -> None:
    files = [written(tmp_path / f"{n}.txt", chapters[n]) for n in range(3)]
    assert look(*files).config.document == "file"


def test_files_whose_blank_lines_stand_between_paragraphs_are_documents(
    tmp_path: Path, chapters: list[str]
) -> None:
    files = [written(tmp_path / f"{n}.txt", chapters[n].replace("\n", "\n\n")) for n in range(3)]
    found = look(*files)
    assert found.config.document == "file"
    assert "or blank-line" in found.comments["document"]


def test_lines_without_blank_ones_in_one_file_have_no_known_documents(
    tmp_path: Path, chapters: list[str]
) -> None:
    assert not look(written(tmp_path / "a.txt", chapters[0])).has_documents


def test_a_sentence_a_line(tmp_path: Path) -> None:
    sentences = [f"The {n} men walked slowly home." for n in range(100)]
    groups = "\n\n".join("\n".join(sentences[n : n + 5]) for n in range(0, 100, 5))
    found = look(written(tmp_path / "a.txt", groups))
    assert found.config.format == "sentences"
    assert "or text" in found.comments["format"]


@pytest.mark.parametrize(
    ("text", "language", "encoding"),
    [(GERMAN, "de", "utf-8"), (GERMAN, "de", "cp1252"), (CHINESE, "zh", "utf-8"), (CHINESE, "zh", "gb18030")],
)
def test_languages_and_encodings(tmp_path: Path, text: str, language: str, encoding: str) -> None:
    found = look(written(tmp_path / "a.txt", f"{text}\n" * 30, encoding))
    assert (found.config.language, found.config.encoding) == (language, encoding)
    assert ("is not UTF-8" in found.comments.get("encoding", "")) == (encoding != "utf-8")


def test_a_language_that_is_not_recognized_is_marked(tmp_path: Path) -> None:
    found = look(written(tmp_path / "a.txt", "12 34\n56 78\n\n" * 20))
    assert found.config.language == "en"
    assert "or the code of your language" in found.comments["language"]


def test_the_text_of_json_lines_is_the_longest_and_others_are_named(
    tmp_path: Path, chapters: list[str]
) -> None:
    rows = [{"id": n, "title": chapter[:30], "body": chapter} for n, chapter in enumerate(chapters)]
    found = look(write_jsonl(tmp_path / "a.jsonl", rows))
    assert (found.config.format, found.config.text_key) == ("jsonl", "body")
    assert "or title" in found.comments["text_key"]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_of_objects_or_of_texts(tmp_path: Path, chapters: list[str], indent: int | None) -> None:
    rows = [{"n": n, "body": chapter} for n, chapter in enumerate(chapters)]
    found = look(written(tmp_path / "a.json", json.dumps(rows, indent=indent)))
    assert (found.config.format, found.config.text_key) == ("jsonl", "body")
    assert found.comments["format"] == "a list of objects"
    texts = look(written(tmp_path / "b.json", json.dumps(chapters, indent=indent)))
    assert (texts.config.format, texts.comments["format"]) == ("jsonl", "a list of texts")
    amounts = [
        measure_amount(find_files([str(tmp_path / name)], tmp_path / "c").files, each.config)
        for name, each in (("a.json", found), ("b.json", texts))
    ]
    assert amounts[0] == amounts[1]
    assert amounts[0].documents == len(chapters)


def test_the_column_of_parquet(tmp_path: Path, chapters: list[str]) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(
        arrow.table({"n": list(range(len(chapters))), "story": chapters}), tmp_path / "a.parquet"
    )
    found = look(tmp_path / "a.parquet")
    assert (found.config.format, found.config.text_key) == ("parquet", "story")


def test_json_lines_without_a_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no key holds a text; its keys: a, b"):
        look(write_jsonl(tmp_path / "a.jsonl", [{"a": 1, "b": 2}] * 5))


def test_the_amount_is_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", "One two. Three four.\nFive six.\n\nSeven.\n")
    amount = measure_amount(find_files([str(path)], tmp_path / "c").files, look(path).config)
    assert (amount.files, amount.documents, amount.words, amount.is_exact) == (1, 2, 7, True)
    assert amount.one_sentence == 0.5
    assert amount.line() == "1 file, 0.0 MB of text, 2 documents, 7 words"


def test_the_amount_of_a_large_corpus_is_estimated(
    tmp_path: Path, chapters: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [written(tmp_path / f"{n}.txt", "\n\n".join(chapters)) for n in range(6)]
    found = find_files(list(map(str, files)), tmp_path / "c")
    exact = measure_amount(found.files, look(*files).config)
    monkeypatch.setattr("bertcli.advice.init.amount.COUNTED_BYTES", 2_000_000)
    about = measure_amount(found.files, look(*files).config)
    assert not about.is_exact
    assert about.line().startswith("6 files, about ")
    assert about.words == pytest.approx(exact.words, rel=0.1)


def test_words_are_not_counted_in_a_script_without_blanks(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", f"{CHINESE}\n" * 30)
    assert measure_amount(find_files([str(path)], tmp_path / "c").files, look(path).config).words == 0


def test_a_sample_is_even_and_keeps_documents(tmp_path: Path, chapters: list[str]) -> None:
    files = [written(tmp_path / f"{n}.txt", "\n\n".join(chapters)) for n in range(2)]
    found = find_files(list(map(str, files)), tmp_path / "c")
    size = write_sample(found.files, look(*files).config, 200_000, tmp_path / "sample")
    text = (tmp_path / "sample").read_text(encoding="utf-8")
    assert 200_000 <= size <= len(text.encode()) <= 230_000
    assert text.count(chapters[0]) == 2


LINES = [f"Man {n} went home.Then  he slept, and so did\u00a0she." for n in range(2100)]
"""A sentence ends without a blank after it; between words are two blanks, and one that never breaks."""
DOCUMENTS = [f"{line}\n{line}" for line in LINES[:100]]


@pytest.mark.parametrize(
    ("files", "documents"),
    [
        ({"a.txt": "\n\n".join("\n".join(LINES[n : n + 20]) for n in range(0, 400, 20))}, 20),
        ({"a.txt": "\n".join(LINES[:200])}, 1),
        ({"a.txt": "\n".join(LINES) + "\n\n\n" + LINES[0]}, 2),  # behind what is looked at for the layout
        ({f"{n}.txt": "\n".join(LINES[n : n + 150]) for n in (0, 400, 800)}, 3),
        ({"a.jsonl": "\n".join(json.dumps({"text": text}) for text in DOCUMENTS)}, 100),
        ({"a.json": json.dumps([{"id": len(text), "body": text} for text in DOCUMENTS])}, 100),
        ({"a.json": json.dumps(DOCUMENTS, indent=1)}, 100),
        ({"a.txt": "\n".join(LINES[:200]) + "\n\nA caf\udce9 there.\n"}, 2),
    ],
    ids=["blank-lines", "one", "late-blank-line", "files", "jsonl", "objects", "texts", "bad-byte"],
)
def test_init_and_check_data_give_the_same_numbers(
    run_bertcli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], documents: int
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("bertcli.advice.init.fit_pretraining.start_seconds", lambda module: 1.0)
    monkeypatch.setattr("bertcli.advice.init.fit_pretraining.fit_pretraining", lambda *given, **named: FIT)
    (tmp_path / "texts").mkdir()
    for name, text in files.items():
        (tmp_path / "texts" / name).write_bytes(text.encode(errors="surrogateescape"))
    code, _, err = run_bertcli("init", "texts", "--for", "pretrain")
    assert code == 0, err
    said = _amount(next(line for line in err.splitlines() if line.startswith("found: ")))
    assert said[0] == f"{documents} document{'s' * (documents != 1)}"
    config = " ".join((tmp_path / "bertcli.yaml").read_text().replace("#", " ").split())
    assert all(part in config for part in said)
    assert ("one document" in config) == (documents == 1)
    code, out, _ = run_bertcli("check-data", "bertcli.yaml", "--set", "tokenizer.vocab_size=300")
    assert code == 0, out
    assert _amount(out.partition("\n")[0]) == said


def _amount(line: str) -> list[str]:
    return re.findall(r"[\d,]+ (?:documents?|words)", line)
