"""Our name of a parameter <-> its name in a folder, by the table of its family."""

from __future__ import annotations

import re

from bertcli.families.family import Family, Spellings


def hf_name(family: Family, name: str) -> str:
    """Our parameter's name -> its name in a Hugging Face folder. Raises `KeyError` if it has none."""
    module, _, parameter = name.rpartition(".")
    number = re.search(r"\.(\d+)\.", module)
    if number is None:
        return f"{family.tensors[module]}.{parameter}"
    return f"{family.tensors[module.replace(number[0], '.{}.')].format(number[1])}.{parameter}"


def modern_name(family: Family, name: str) -> str:
    """Any name that folders use -> the name that `hf_name` gives."""
    return _respell(family.old_spellings, name)


def name_from_tensorflow(family: Family, name: str) -> str | None:
    """A variable of the authors' TensorFlow code -> its name in a folder; None: it is unknown."""
    found = _respell(family.tensorflow, name)
    module, _, parameter = re.sub(r"\.\d+\.", ".{}.", found).rpartition(".")
    return found if module in family.tensors.values() and parameter in ("weight", "bias") else None


def is_harmless(family: Family, name: str) -> bool:
    """Whether a weight that is not in the model may be ignored: of another head, or a buffer."""
    return re.fullmatch(f"{family.buffers}|{family.other_heads}", name) is not None


def _respell(spellings: Spellings, name: str) -> str:
    for pattern, replacement in spellings:
        name = re.sub(pattern, replacement, name)
    return name
