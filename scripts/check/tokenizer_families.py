"""Do tokenizers of every model type give the ids and places that transformers gives?

    python scripts/check/tokenizer_families.py FOLDER [--lines 20000]

FOLDER holds plain text (*.txt, *.gz). For each layout of `tests/tokenizer/tokenizers_of.py` (tokenizer.json,
and the older files in its place) a small tokenizer reads its lines and the special lines there. Prints a line
a layout; exit code 1 where ids or places differ.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from pathlib import Path

from transformers import AutoTokenizer

sys.path.insert(0, str(Path(__file__).parents[2]))

from bertcli.config.section import Decoding
from bertcli.corpus.files import list_files
from bertcli.corpus.streams import read_lines
from bertcli.tokenizer.pieces import trim_places
from bertcli.tokenizer.tokenizer import Tokenizer
from tests.tokenizer.tokenizers_of import LINES, MODEL_TYPES, SLOW_TYPES, make_tokenizer_folder

BATCH = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--vocab-size", type=int, default=800)
    options = parser.parse_args()
    files = list_files([str(options.folder)])
    found = (line for file in files for line in read_lines(file.path, Decoding()) if line.strip())
    lines = [*LINES, *itertools.islice(found, options.lines)]
    print(f"{'model type':12} {'files':15} {'kind':10} {'lines':>8} {'equal ids':>10} {'equal places':>12}")
    wrong = False
    for model_type, slow in [(kind, slow) for slow in (False, True) for kind in MODEL_TYPES]:
        if slow and model_type not in SLOW_TYPES:
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = make_tokenizer_folder(model_type, Path(name), slow, vocab_size=options.vocab_size)
            ours, ids, places = compare(folder, lines)
        files = "vocabulary" if slow else "tokenizer.json"
        print(f"{model_type:12} {files:15} {ours:10} {len(lines):8,} {ids:10,} {places:12,}", flush=True)
        wrong |= ids < len(lines) or places < len(lines)
    sys.exit(wrong)


def compare(folder: Path, lines: list[str]) -> tuple[str, int, int]:
    """The kind of the tokenizer; lines with the same ids; lines with the same places of all pieces."""
    ours, theirs = Tokenizer.load(folder), AutoTokenizer.from_pretrained(folder)
    same_ids = same_places = 0
    for start in range(0, len(lines), BATCH):
        batch = lines[start : start + BATCH]
        encoded = theirs(batch, add_special_tokens=False, verbose=False, return_offsets_mapping=True)
        rows = zip(
            *(batch, ours.encode_batch(batch), ours.encode_with_spans(batch)),
            *(encoded["input_ids"], encoded["offset_mapping"]),
            strict=True,
        )
        for text, ids, placed, their_ids, offsets in rows:
            same_ids += ids == their_ids == placed.ids
            same_places += placed.spans.tolist() == trim_places(text, offsets).tolist()
    return ours.kind, same_ids, same_places


if __name__ == "__main__":
    main()
