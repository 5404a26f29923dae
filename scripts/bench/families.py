"""Fine-tuning of each family here and with transformers' Trainer: time of whole commands.

    python scripts/bench/families.py DATA [--families roberta ...] [--tasks cola stsb] [--rounds 3]

DATA is the folder of GLUE's own files (CoLA/train.tsv, STS-B/train.tsv). Each family has a model of 6 layers
of width 384 with random weights, a vocabulary of 8,192 from the bundled classics, and the dropouts of its
published models. Both sides train one epoch, alternately, each in a process of its own, as
scripts/bench/finetune.py says. Prints the median time of each side and the median of the ratios.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from finetune import SIDES, write_config  # noqa: E402

from tests.tokenizer.tokenizers_of import make_tokenizer_folder  # noqa: E402

VOCABULARY = 8192
SIZES = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 6, "intermediate_size": 1536}
DEBERTA = {
    **{"relative_attention": True, "position_biased_input": False, "pos_att_type": "p2c|c2p"},
    **{"type_vocab_size": 0, "layer_norm_eps": 1e-7, "max_relative_positions": -1},
}
PUBLISHED: dict[str, dict[str, Any]] = {
    "bert": {},
    "roberta": {"max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
    "distilbert": {"hidden_dim": 1536},
    "electra": {"embedding_size": 128},
    "albert": {"embedding_size": 128, "classifier_dropout_prob": 0.1},
    "modernbert": {  # its default ids are beyond this vocabulary
        **{"intermediate_size": 576, "classifier_pooling": "mean"},
        **dict.fromkeys(["bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"]),
    },
    "deberta": DEBERTA,
    "deberta-v2": {
        **DEBERTA,
        **{"position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True},
    },
}
"""Keys of `config.json` that differ from the sizes and from transformers' defaults."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--families", nargs="+", default=list(PUBLISHED), choices=PUBLISHED)
    parser.add_argument("--tasks", nargs="+", default=["cola", "stsb"], choices=["cola", "stsb"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, help="train on so many rows alone, for a quick look")
    parser.add_argument("--precision", choices=["bf16", "fp32"], default="bf16")
    options = parser.parse_args()
    training = SimpleNamespace(
        data=options.data, rows=options.rows, epochs=1, learning_rate=5e-5, precision=options.precision
    )
    print(f"{_processor()}, {torch.get_num_threads()} threads, {options.precision}")
    print(f"{'family':<14}{'task':<7}{'ours':>9}{'Trainer':>9}{'ratio':>7}", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        for family in options.families:
            model = make_model(family, Path(scratch) / family)
            for task in options.tasks:
                seconds = compare(Path(scratch), task, str(model), training, rounds=options.rounds)
                ours, theirs = (statistics.median(each) for each in zip(*seconds, strict=True))
                ratio = statistics.median(their / our for our, their in seconds)
                print(f"{family:<14}{task:<7}{ours:>7.1f} s{theirs:>7.1f} s{ratio:>7.2f}", flush=True)


def make_model(family: str, folder: Path) -> Path:
    """A folder with random weights, as transformers draws them."""
    make_tokenizer_folder(family, folder, vocab_size=VOCABULARY)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    names = [name for name in ("[PAD]", "<pad>") if tokenizer.token_to_id(name) is not None]
    keys = {"vocab_size": tokenizer.get_vocab_size(), "pad_token_id": tokenizer.token_to_id(names[0])}
    config = transformers.AutoConfig.for_model(family, **{**SIZES, **PUBLISHED[family], **keys})
    torch.manual_seed(0)
    transformers.utils.logging.disable_progress_bar()
    transformers.AutoModel.from_config(config).save_pretrained(folder)
    return folder


def compare(scratch: Path, task: str, model: str, training: Any, rounds: int) -> list[tuple[float, float]]:
    """Seconds of both sides, for each round."""
    seconds = []
    for seed in range(1, rounds + 1):
        times = []
        for train in SIDES.values():
            with tempfile.TemporaryDirectory(dir=scratch) as folder:
                config = write_config(Path(folder), task, seed, model, training)
                started = time.perf_counter()
                train(config)
                times.append(time.perf_counter() - started)
        seconds.append((times[0], times[1]))
    return seconds


def _processor() -> str:
    found = subprocess.run(["lscpu"], capture_output=True, text=True, check=True).stdout
    names = [line.split(":")[1].strip() for line in found.splitlines() if line.startswith("Model name")]
    flags = [flag for flag in ("avx2", "avx512_bf16", "amx_bf16") if f" {flag}" in found]
    return f"{names[0] if names else 'unknown'} ({', '.join(flags)})"


if __name__ == "__main__":
    main()
