"""An exported folder in sentence-transformers with backend="onnx": its vectors are those of `bertcli embed`.

    python -m venv env && . env/bin/activate
    pip install torch==2.13.0 "sentence-transformers<6" "transformers<4.58" optimum-onnx onnxruntime
    bertcli embed FOLDER --input TEXTS.txt --output vectors.jsonl    # with bertcli's own environment
    python scripts/check/onnx_sentence_transformers.py FOLDER vectors.jsonl [--file onnx/model_quantized.onnx]

The backend needs optimum-onnx, which needs transformers 4, so it cannot be installed beside bertcli's test
extras: the second script of the two runs in an environment of its own, and imports nothing of bertcli.
FOLDER was written by `bertcli export` from a folder of sentence-transformers. Exit code 1 above 1e-5 (of
the file that bertcli ran; give its name with --file if that is not model.onnx).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer  # pyright: ignore[reportMissingImports] -- its own environment


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--file", default="onnx/model.onnx")
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.vectors.read_text(encoding="utf-8").splitlines()]
    model = SentenceTransformer(options.folder, backend="onnx", model_kwargs={"file_name": options.file})
    theirs_ND = model.encode([row["text"] for row in rows])
    ours_ND = np.array([row["vector"] for row in rows], dtype=np.float32)
    difference = float(np.abs(theirs_ND - ours_ND).max())
    print(f"{len(rows):,} vectors of {ours_ND.shape[1]} differ by at most {difference:.1e}")
    sys.exit(0 if difference <= 1e-5 else 1)


if __name__ == "__main__":
    main()
