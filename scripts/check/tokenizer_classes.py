"""Do folders made from any kind of tokenizer give AutoTokenizer the ids that bertcli gives?

    python scripts/check/tokenizer_classes.py [--lines 2000]

For each kind of `tests/tokenizer/tokenizer_kinds.py` the three writers of folders (pretrain's, finetune's and
convert's) write a tiny model with it. Prints a line a kind: the ids that differ, or why the kind was refused;
exit code 1 where ids differ, or where a kind that should be read is refused or the other way round.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from transformers import AutoTokenizer

sys.path.insert(0, str(Path(__file__).parents[2]))

from bertcli.folders.convert import convert
from bertcli.folders.model_files import write_model_files
from bertcli.folders.model_folder import save_model_folder
from bertcli.folders.task_folder import declare_task
from bertcli.model.pretraining import PretrainingModel
from bertcli.model.task_models import build_task_model
from bertcli.system.errors import UserError
from bertcli.tokenizer.tokenizer import Tokenizer
from tests.folders.folders import LABELS, ODD, SETTINGS
from tests.tokenizer.tokenizer_kinds import KINDS, lines, pieces

VOCABULARY = 3000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--lines", type=int, default=2000)
    texts = lines(parser.parse_args().lines)
    vocabulary, wrong = pieces(texts, VOCABULARY), 0
    for name, kind in KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                tokenizer = Tokenizer.load(kind.write(Path(folder) / "given", vocabulary))
            except UserError as error:
                wrong += kind.refused is None
                print(f"{name}: refused: {str(error).replace(folder, '')}")
                continue
            differences = compare(tokenizer, Path(folder), texts)
        wrong += kind.refused is not None or any(differences.values())
        print(f"{name}: lines that differ, of {len(texts):,}: {differences}")
    print(f"{len(KINDS)} kinds, {wrong} wrong")
    sys.exit(wrong > 0)


def compare(tokenizer: Tokenizer, folder: Path, texts: list[str]) -> dict[str, int]:
    """Writer of a folder -> the lines to which AutoTokenizer gives other ids than `tokenizer`."""
    sizes = replace(ODD, vocab_size=tokenizer.vocab_size)
    save_model_folder(folder / "pretrain", PretrainingModel(sizes), tokenizer)
    task, labels = SETTINGS["classification"], LABELS["classification"]
    model = build_task_model("sequences", sizes, len(labels))
    write_model_files(folder / "finetune", model, tokenizer, declare_task(task, labels))
    convert(folder / "pretrain", folder / "convert", None)
    ours, differences = tokenizer.encode_batch(texts), {}
    for writer in ("pretrain", "finetune", "convert"):
        theirs = AutoTokenizer.from_pretrained(folder / writer)
        ids = theirs(texts, add_special_tokens=False, verbose=False)["input_ids"]
        differences[writer] = sum(a != b for a, b in zip(ours, ids, strict=True))
    return differences


if __name__ == "__main__":
    main()
