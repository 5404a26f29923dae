"""The weight files of a model folder, in any common format -> names and tensors."""

import pickle
import re
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from bertcli.families.family import Family, Fused, Spellings
from bertcli.system.errors import UserError
from bertcli.system.files import has_file, refuse_special
from bertcli.system.formats import is_inside, read_json

_DTYPES = {
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
    *(torch.int64, torch.int32, torch.uint8, torch.bool),
}
"""Data types of weights, and of the buffers in old folders."""


def read_weights(path: Path) -> dict[str, Tensor]:
    """Every tensor of the file, or of the files that an index lists, by name.

    No code of a file is run: safetensors, or `torch.load(weights_only=True)`.
    Raises `UserError` if a file is missing or damaged, or holds something else.
    """
    weights: dict[str, Tensor] = {}
    for file in weight_files(path):
        part = _read_file(file)
        both = [(name, part[name], weights[name]) for name in part.keys() & weights.keys()]
        if twice := [name for name, a, b in both if a.dtype != b.dtype or not torch.equal(a, b)]:
            raise UserError(
                f"{file}: holds {', '.join(sorted(twice)[:5])}, as another file of {path.name} does, with "
                "other values. The files are of different models: copy or download all of them again."
            )
        weights |= part
    return weights


def weight_files(path: Path) -> list[Path]:
    """The file itself, or the files that an index lists. Raises `UserError` for an index that is damaged."""
    if not path.name.endswith(".index.json"):
        return [path]
    weight_map = read_json(path).get("weight_map")
    if not isinstance(weight_map, dict) or not all(isinstance(name, str) for name in weight_map.values()):
        raise UserError(f"{path}: has no weight_map from weights to files. Copy or download it again.")
    if outside := sorted({name for name in weight_map.values() if not is_inside(name)}):
        raise UserError(
            f"{path}: weight_map lists files outside of its folder: {', '.join(outside[:5])}. The files of a "
            "model must be in one folder; get the model from someone you trust."
        )
    files = sorted({path.parent / name for name in weight_map.values()})
    if missing := [file.name for file in files if not has_file(file)]:
        raise UserError(f"{path}: lists files that are missing: {', '.join(missing)}. Copy them too.")
    return files


def write_safetensors(path: Path, weights: dict[str, Tensor]) -> None:
    """Write fp32 tensors; the same weights give the same bytes. Raises `OSError` if it cannot be written."""
    tensors = {name: weights[name].detach().to("cpu", torch.float32).contiguous() for name in sorted(weights)}
    path.touch()
    mode = path.stat().st_mode  # by the user's umask; safetensors' own is for the owner alone
    try:
        save_file(tensors, path, metadata={"format": "pt"})
        path.chmod(mode)
    except SafetensorError as error:
        raise OSError(f"{path}: {error}") from None


def _read_file(path: Path) -> dict[str, Tensor]:
    refuse_special(path)
    try:
        if path.suffix == ".safetensors":
            weights = load_file(path)
        else:
            weights = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # damaged bytes can raise any error in an unpickler
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        if isinstance(error, pickle.UnpicklingError):
            if forbidden := re.search(r"GLOBAL (\S+)", str(error)):
                raise UserError(
                    f"{path}: would run code when loaded ({forbidden[1]}) and was refused: a weight file "
                    f"must hold tensors alone. Get the model as safetensors, from someone you trust."
                ) from None
            reason = "torch.save did not write it"
        raise UserError(f"{path}: cannot be read as weights: {reason}. Copy or download it again.") from None
    if not isinstance(weights, dict) or not all(isinstance(value, Tensor) for value in weights.values()):
        raise UserError(f"{path}: expected names and tensors, found {type(weights).__name__}")
    if strange := [str(name) for name, value in weights.items() if not _is_plain(name, value)]:
        raise UserError(
            f"{path}: holds tensors of an unsupported kind (sparse, quantized, complex, or without values): "
            f"{', '.join(strange[:5])}. Save the model in float32, and give that file."
        )
    return weights


def _is_plain(name: object, value: Tensor) -> bool:
    """True if a tensor has a name, a plain data type, and all its values in memory."""
    if not isinstance(name, str) or value.layout != torch.strided or value.is_meta or value.is_quantized:
        return False
    return value.dtype in _DTYPES and value.untyped_storage().nbytes() >= value.nbytes


def hf_name(family: Family, name: str, kind: str | None = None) -> str:
    """Our parameter's name -> its name in a Hugging Face folder. Raises `KeyError` if it has none.

    `kind`: what the folder holds, a key of `Family.classes`.
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
    """A variable of the authors' TensorFlow code -> its name in a folder; None if it is unknown."""
    found = _respell(family.tensorflow, name)
    module, _, parameter = re.sub(r"\.\d+\.", ".{}.", found).rpartition(".")
    known = {*family.names("sequences").values(), *family.names("spans").values()}
    return found if module in known and parameter in ("weight", "bias") else None


def is_harmless(family: Family, name: str) -> bool:
    """True if a weight that is not in the model may be ignored: one of another head, or a buffer."""
    module, _, parameter = name.rpartition(".")
    if module in family.head_names() and parameter in ("weight", "bias"):
        return True
    unused = family.unused_heads
    return is_buffer(family, name) or (unused is not None and re.fullmatch(unused, name) is not None)


def is_buffer(family: Family, name: str) -> bool:
    """True if a weight of a folder holds nothing that was learned."""
    return re.fullmatch(family.buffers, name) is not None


def _respell(spellings: Spellings, name: str) -> str:
    for pattern, replacement in spellings:
        name = re.sub(pattern, replacement, name)
    return name


def split_fused(family: Family, weights: Mapping[str, Tensor], heads: int) -> dict[str, Tensor]:
    """`<name>.weight` -> `<name>.query.weight` and so on, for the layers of `Family.fused`.

    `heads`: the number of attention heads. A weight whose rows cannot be divided stays as it is: it does not
    fit the model.
    """
    split: dict[str, Tensor] = {}
    for name, value in weights.items():
        module, _, parameter = name.rpartition(".")
        fused = family.fused
        if fused is None or not re.fullmatch(fused.name, module) or len(value) % _pieces(fused, heads):
            split[name] = value
            continue
        if fused.by_head:
            value = value.unflatten(0, (heads, len(fused.parts), -1)).transpose(0, 1).flatten(0, 2)
        for part, rows in zip(fused.parts, value.chunk(len(fused.parts)), strict=True):
            split[f"{module}.{part}.{parameter}"] = rows
    return split


def join_fused(family: Family, weights: Mapping[str, Tensor], heads: int) -> dict[str, Tensor]:
    """The inverse of `split_fused`."""
    fused = family.fused
    if fused is None:
        return dict(weights)
    joined: dict[str, Tensor] = {}
    for name, value in weights.items():
        module, _, parameter = name.rpartition(".")
        whole, _, part = module.rpartition(".")
        if part not in fused.parts or not re.fullmatch(fused.name, whole):
            joined[name] = value
        elif part == fused.parts[0]:
            rows = torch.cat([weights[f"{whole}.{each}.{parameter}"] for each in fused.parts])
            if fused.by_head:
                rows = rows.unflatten(0, (len(fused.parts), heads, -1)).transpose(0, 1).flatten(0, 2)
            joined[f"{whole}.{parameter}"] = rows
    return joined


def _pieces(fused: Fused, heads: int) -> int:
    return len(fused.parts) * (heads if fused.by_head else 1)
