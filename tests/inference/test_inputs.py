"""What comes from the command line, a pipe and files; settings of a model for another file."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from bertcli.config.task import TaskSettings
from bertcli.inference.inputs import adapt_settings, read_inputs
from bertcli.system.errors import UserError
from bertcli.tasks.examples import ChoiceExample, QuestionExample, TaggedExample, TextExample
from tests.folders.folders import SETTINGS

ONE = SETTINGS["multi-label"]
PAIR = SETTINGS["classification"]


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch):
    """Puts a text into standard input."""

    def put(text: str) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return put


def read(texts: list[str], settings: TaskSettings, file: str | None = None) -> list[object]:
    return list(read_inputs(texts, file, settings, print))


def test_each_text_of_the_command_line_is_a_row() -> None:
    first, second = read(["a\tb", "c"], ONE)
    assert first == TextExample("text 1", {"text": "a\tb"}, ("a\tb",), None)
    assert isinstance(second, TextExample)
    assert second.texts == ("c",)


def test_a_pair_a_question_and_choices_are_one_row() -> None:
    (pair,) = read(["A", "B"], PAIR)
    assert pair == TextExample("the command line", {"text_a": "A", "text_b": "B"}, ("A", "B"), None)
    (question,) = read(["Who?", "It was he."], SETTINGS["questions"])
    assert isinstance(question, QuestionExample)
    assert question.columns == {"question": "Who?", "context": "It was he."}
    (choice,) = read(["A story.", "one", "two", "three"], SETTINGS["choices"])
    assert isinstance(choice, ChoiceExample)
    assert (choice.given, choice.choices) == (("A story.",), ("one", "two", "three"))
    assert choice.columns == {"text": "A story.", "choices": ["one", "two", "three"]}
    pairs = TaskSettings(type="multiple-choice", text=["a", "b"], choices="list")
    (choice,) = read(["A", "B", "one", "two"], pairs)
    assert isinstance(choice, ChoiceExample)
    assert (choice.given, choice.choices) == (("A", "B"), ("one", "two"))


def test_running_text_is_cut_into_words_where_they_stand() -> None:
    (tagged,) = read(["She sat."], SETTINGS["tokens"])
    assert isinstance(tagged, TaggedExample)
    assert (tagged.words, tagged.spans) == (("She", "sat", "."), ((0, 3), (4, 7), (7, 8)))


def test_lines_of_a_pipe_are_rows_with_tabs_between_the_texts_of_a_pair(pipe) -> None:
    pipe("a\tb\n\nc\n")
    assert [text.texts[0] for text in read([], ONE)] == ["a\tb", "", "c"]  # pyright: ignore[reportAttributeAccessIssue]
    pipe("A\tB\nC\tD\n")
    second = read(["-"], PAIR)[1]
    columns = {"text_a": "C", "text_b": "D"}
    assert second == TextExample("standard input, line 2", columns, ("C", "D"), None)


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("jsonl", '{"id": 1, "text": "She sat."}\n{"id": 2, "text": ""}\n'),
        ("jsonl", '[{"id": 1, "text": "She sat."},\n {"id": 2, "text": null}]'),
        ("csv", 'id,text\n1,"She sat."\n2,\n'),
        ("csv", "id;text\n1;She sat.\n2;\n"),
        ("tsv", "id\ttext\n1\tShe sat.\n2\t\n"),
    ],
)
@pytest.mark.parametrize("kind", ["multi-label", "tokens"])
def test_a_pipe_is_a_file_of_the_format_that_is_named(pipe, format: str, text: str, kind: str) -> None:
    pipe(text)
    settings, said = adapt_settings(SETTINGS[kind], text=["text"], format=format), list[str]()
    full, empty = read_inputs([], "-", settings, said.append, is_table=True)
    assert (full.texts, empty.texts) == (("She sat.",), ("",))
    assert (str(full.columns["id"]), full.where.partition(",")[0]) == ("1", "standard input")
    assert said[0].startswith("standard input: the text is empty in 1 of 2 rows")


def test_a_pipe_of_another_format_than_the_named_one_is_refused(pipe) -> None:
    for text in ("She sat.\n", '{"text": "She sat."\n', "[1]"):
        pipe(text)
        with pytest.raises(UserError, match=r"^standard input, (line|object) 1"):
            list(read_inputs([], "-", adapt_settings(ONE, format="jsonl"), print, is_table=True))


def test_lines_of_a_pipe_that_look_like_another_format_are_told(pipe, tmp_path: Path) -> None:
    for text, format in (('{"text": "She sat."}\n', "jsonl"), ("__label__a She sat.\n", "fasttext")):
        pipe(text)
        (tmp_path / "lines.txt").write_text(text)
        for file, where in (("-", "standard input"), (str(tmp_path / "lines.txt"), "lines.txt")):
            said: list[str] = []
            list(read_inputs([], file, ONE, said.append))
            assert f"{where}, line 1: is read as text, from its first word on;" in said[0]
            assert said[0].endswith(f"set task.format: {format}")


def test_files_are_read_with_the_settings(tmp_path: Path) -> None:
    path = tmp_path / "rows.tsv"
    path.write_text("premise\tid\thypothesis\nA\t7\tB\n")
    (row,) = read([], PAIR, str(path))
    assert isinstance(row, TextExample)
    assert (row.texts, row.columns["id"], row.label) == (("A", "B"), "7", None)


@pytest.mark.parametrize(
    ("texts", "kind", "message"),
    [
        (["A"], "classification", "the command line: the model reads a pair of texts, each in quotation"),
        (["A", "B", "C"], "regression", "each in quotation marks; found 3"),
        (["A"], "questions", "the model reads a question and its context, each in quotation marks; found 1"),
        (["A", "B"], "choices", "reads a text and at least two choices, each in quotation marks; found 2"),
        (["", " "], "classification", "the command line holds no text"),
    ],
)
def test_what_the_task_cannot_read_is_refused(texts: list[str], kind: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(texts, SETTINGS[kind])


def test_lines_that_are_no_pair_are_refused(pipe) -> None:
    pipe("A\tB\nC\n")
    with pytest.raises(
        UserError, match=r"input, line 2: .* a pair of texts, with a tab between them; found 1"
    ):
        read([], PAIR)


@pytest.mark.parametrize("kind", ["classification", "questions", "tokens"])
def test_blank_lines_of_a_pipe_are_rows_of_empty_texts(pipe, kind: str) -> None:
    whole = "A B" if kind == "tokens" else "A\tB"
    pipe(f"\n{whole}\n \t\n\n")
    if kind == "tokens":
        pipe(f"\n{whole}\n \n\n")
    said: list[str] = []
    rows = list(read_inputs([], None, SETTINGS[kind], said.append))
    assert [any(text.strip() for text in row.texts) for row in rows] == [False, True, False, False]
    assert said[0].startswith("standard input: the text is empty in 3 of 4 rows:")
    pipe("\n\n")
    with pytest.raises(UserError, match="standard input: holds no text"):
        read([], SETTINGS[kind])


def test_a_blank_line_of_a_pipe_holds_no_choices(pipe) -> None:
    pipe("A\tyes\tno\n\n")
    with pytest.raises(UserError, match="line 2: the model reads a text and at least two choices"):
        read([], SETTINGS["choices"])


def test_a_file_given_as_a_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.tsv"
    path.write_text("text\nA\n")
    with pytest.raises(UserError, match=r"is a file, not a text; give it as --input .*rows\.tsv"):
        read([str(path)], ONE)
    assert len(read(["no file has so long a name " * 200], ONE)) == 1


def test_settings_are_adapted_to_another_file() -> None:
    adapted = adapt_settings(ONE, ["3"], columns="id, text", format="csv", encoding="latin-1", quoting=None)
    assert (adapted.text, adapted.columns, adapted.format) == (3, ["id", "text"], "csv")
    assert (adapted.encoding, adapted.quoting, adapted.multi_label) == ("latin-1", "auto", True)
    assert adapt_settings(adapted, columns="").columns is None
    assert adapt_settings(ONE) == ONE
    assert adapt_settings(ONE, is_pair=True).text == ["text_a", "text_b"]
    assert adapt_settings(ONE, ["a", "b"], is_pair=True).text == ["a", "b"]
    assert adapt_settings(ONE, label="gold").label == "gold"


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("classification", {"text": ["a"]}, "--text: the model reads two texts a row: name both columns"),
        ("multi-label", {"text": ["a", "b"]}, "one text a row: name one column; .* add --pair"),
        ("questions", {"text": ["a"]}, "--text: the model reads two texts"),
        ("tokens", {"is_pair": True}, "--pair: a token-classification model reads no pairs"),
        ("tokens", {"format": "xlsx"}, "the options"),
    ],
)
def test_settings_that_cannot_be_are_refused(kind: str, changes: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        adapt_settings(SETTINGS[kind], **changes)  # pyright: ignore[reportArgumentType]
