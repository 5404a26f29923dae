from __future__ import annotations

from bertcli.config.yaml_text import WIDTH, Block, Line, commented_yaml, parse_yaml


def test_comments_stand_beside_their_keys_or_above_them() -> None:
    long = "a reason that is much too long to stand beside its key, so that it is written above it"
    text = commented_yaml(
        [
            Line("a", 1, beside="why"),
            Line("b", "x", above="what", beside=long),
            Block("c", [Line("d", None, beside="a number", is_required=True)], above="a section"),
            Block("e", [Line("f", 2)], is_out=True),
        ],
        head="first\nsecond",
    )
    assert text.split("\n") == [
        "# first",
        "# second",
        "a: 1                       # why",
        f"# what {long}",
        "b: x",
        "",
        "# a section",
        "c:",
        "  d:                       # required: a number",
        "",
        "# e:",
        "#   f: 2",
        "",
    ]
    assert parse_yaml(text, "") == {"a": 1, "b": "x", "c": {"d": None}}


def test_long_comments_are_wrapped() -> None:
    lines = commented_yaml([Line("a", 1, above="word " * 60)]).splitlines()
    assert len(lines) > 3
    assert all(line.startswith("# word") and len(line) <= WIDTH + 2 for line in lines[:-1])


def test_a_long_list_has_a_line_for_each_item() -> None:
    files = [f"a rather long folder/file {number}.txt" for number in range(9)]
    text = commented_yaml([Block("corpus", [Line("files", files, beside="why")])])
    assert text.startswith(
        "\ncorpus:\n  files:                   # why\n    - a rather long folder/file 0.txt\n"
    )
    assert parse_yaml(text, "") == {"corpus": {"files": files}}


def test_a_users_words_in_a_comment_stay_in_it() -> None:
    text = commented_yaml([Line("a", 1, beside="one\nb: 2"), Line("c", 3, above="\x1b[31m\x00 red\nd: 4")])
    assert parse_yaml(text, "") == {"a": 1, "c": 3}
