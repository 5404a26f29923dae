"""Cards say what is true in YAML and in Markdown, and nothing of the machine that they were made on."""

from __future__ import annotations

import pytest
import yaml

from bertcli.reports.cards import front_matter, plain, public_name


@pytest.mark.parametrize(
    "value", ["no", "on", "y", "null", "1e5", "a: b", "- x", "'", '"', "é", "#", "de", "---"]
)
def test_front_matter_means_what_it_was_given(value: str):
    block = front_matter({"language": value, "tags": ["bert", value]})
    first, *lines, last = block.split("\n")
    assert (first, last) == ("---", "---")
    assert yaml.safe_load("\n".join(lines)) == {"language": value, "tags": ["bert", value]}


def test_markup_is_shown_as_it_is():
    assert plain("a|b *c* <b>d</b> [x](y) `z`") == r"a\|b \*c\* \<b\>d\</b\> \[x\](y) \`z\`"
    assert plain("B-LOC my_file.txt _x_") == r"B-LOC my_file.txt \_x\_"
    assert plain("two\nlines\r\t\x1b[31m\u2028end") == r"two lines \[31m end"
    assert plain("# no title ~~x~~ &lt; $1$") == r"\# no title \~\~x\~\~ \&lt; \$1\$"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("corpus/a.txt", "corpus/a.txt"),
        ("classics", "classics"),
        ("/home/someone/secret/a.txt", "a.txt"),
        ("~/texts/*.txt", "*.txt"),
        ("../elsewhere/b.txt", "b.txt"),
        ("/home/someone/runs/first/model", "first/model"),
        ("/home/x/.cache/huggingface/hub/models--google--bert-tiny/snapshots/0a1b", "google/bert-tiny"),
        ("org/name", "org/name"),
    ],
)
def test_no_local_path_is_published(path: str, name: str):
    assert public_name(path) == name
