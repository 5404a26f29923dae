"""What is particular to BERT stands in `bertcli/families/`: strings elsewhere that name it are found here."""

from __future__ import annotations

import ast
import re

from tests.shape import PACKAGE, trees

PARTICULAR = re.compile(r"\bbert\.|\[(CLS|SEP|PAD|MASK|UNK)\]|\bBert[A-Z]")
ALLOWED = {
    "cli/masks.py",  # the help that says what to write for a mask
    "tokenizer/wordpiece.py",  # its special tokens, and the classes of transformers that make its pipeline
}


def strings(tree: ast.Module) -> list[str]:
    """The string constants of a file, the parts of f-strings too; not those that stand alone (docstrings)."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone
    ]


def test_strings_are_found_in_every_form():
    source = '"""[CLS]"""\nname = "bert.pooler"\n"""[SEP]"""\nprint(f"{name} is a BertModel")\n'
    assert [text for text in strings(ast.parse(source)) if PARTICULAR.search(text)] == [
        "bert.pooler",
        " is a BertModel",
    ]


def test_few_files_name_what_is_particular_to_bert():
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path, tree in trees().items()
        if any(PARTICULAR.search(text) for text in strings(tree))
    }
    outside = {name for name in found if not name.startswith("families/")}
    assert len(ALLOWED) <= 5
    assert outside == ALLOWED
