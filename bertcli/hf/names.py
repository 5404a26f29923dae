"""Our name of a parameter <-> its name in a folder, by the table of its family."""

from __future__ import annotations

import re

from bertcli.families.family import Family, Spellings


def hf_name(family: Family, name: str, kind: str | None = None) -> str:
    """Our parameter's name -> its name in a Hugging Face folder. Raises `KeyError` if it has none.

    `kind`: what the folder holds (a key of `Family.classes`); the names of a head depend on the task.
    """
    table = family.names(kind)
    number = re.search(r"\.(\d+)\.", name)
    general = name if number is None else name.replace(number[0], ".{}.")
    if general in table:
        found = table[general]
    else:
        module, _, parameter = general.rpartition(".")
        found = f"{table[module]}.{parameter}"
    return found if number is None else found.format(number[1])


def modern_name(family: Family, name: str) -> str:
    """Any name that folders use -> the name that `hf_name` gives."""
    return re.sub(family.bare_prefix, family.prefix, _respell(family.old_spellings, name))


def name_from_tensorflow(family: Family, name: str) -> str | None:
    """A variable of the authors' TensorFlow code -> its name in a folder; None: it is unknown."""
    found = _respell(family.tensorflow, name)
    module, _, parameter = re.sub(r"\.\d+\.", ".{}.", found).rpartition(".")
    known = {*family.names("classification").values(), *family.names("question-answering").values()}
    return found if module in known and parameter in ("weight", "bias") else None


def is_harmless(family: Family, name: str) -> bool:
    """Whether a weight that is not in the model may be ignored: of another head, or a buffer."""
    module, _, parameter = name.rpartition(".")
    if module in family.head_names() and parameter in ("weight", "bias"):
        return True
    unused = family.unused_heads
    return is_buffer(family, name) or (unused is not None and re.fullmatch(unused, name) is not None)


def is_buffer(family: Family, name: str) -> bool:
    """Whether a weight of a folder holds nothing that was learned."""
    return re.fullmatch(family.buffers, name) is not None


def _respell(spellings: Spellings, name: str) -> str:
    for pattern, replacement in spellings:
        name = re.sub(pattern, replacement, name)
    return name
