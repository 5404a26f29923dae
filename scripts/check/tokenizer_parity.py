"""Do our ids equal those of transformers' fast BERT tokenizer, line by line?

    python scripts/check/tokenizer_parity.py VOCAB FILES...

Prints the lines compared and the differences, the first ten of them in full; exit code 1 where there are any.
FILES may be folders, globs or a bundled sample, plain or compressed. Each line is tokenized three times: by
transformers, by `Tokenizer`, and by the `WordCache` that builds token stores.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from transformers import BertTokenizerFast  # pyright: ignore[reportAttributeAccessIssue]

from bertcli.config.section import Decoding
from bertcli.corpus.files import list_files
from bertcli.corpus.streams import read_lines
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.tokenizer.word_cache import WordCache

BATCH = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("vocab", type=Path)
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    lines, differences = 0, 0
    for line, ours, theirs in compare(options.vocab, options.files):
        lines += 1
        if ours != theirs:
            differences += 1
            if differences <= 10:
                print(f"line {lines}: {line!r}\n  ours   {ours}\n  theirs {theirs}")
    print(f"{lines:,} lines compared, {differences:,} differences")
    sys.exit(differences > 0)


def compare(vocab: Path, files: list[str]) -> Iterator[tuple[str, list[int], list[int]]]:
    """(line, our ids, theirs); where our two ways differ among themselves, ours is the wrong one of them."""
    ours = Tokenizer.load(vocab)
    cache = WordCache(ours)
    theirs = BertTokenizerFast(vocab=str(vocab), do_lower_case=True)
    lines = (line for file in list_files(files) for line in read_lines(file.path, Decoding()))
    while batch := list(itertools.islice(lines, BATCH)):
        cached = cache.encode(batch)
        by_word = [ids.tolist() for ids in np.split(cached.ids, np.cumsum(cached.lengths)[:-1])]
        expected = theirs(batch, add_special_tokens=False, verbose=False)["input_ids"]
        for line, a, b, c in zip(batch, ours.encode_batch(batch), by_word, expected, strict=True):
            yield line, (a if b == c else b), c


if __name__ == "__main__":
    main()
