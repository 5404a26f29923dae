"""The bundled configs `families/...`, each from text to a folder, then in transformers, then filling masks.

    python scripts/check/family_configs.py --out FOLDER [--families bert ...]

Trains each by `bertcli pretrain`, prints its time and its held-out scores, loads the folder with
transformers' class for it (with replaced tokens: the generator too), prints the tensors that are missing
there and the largest difference of the outputs, and fills five masks. A run that is finished in FOLDER is not
repeated.

Outputs must agree within 1e-5 in fp64, and in fp32 within 1e-5 of the largest output: logits reach 18, and
two programs that add in another order cannot agree on such numbers within 1e-5. How far each is in fp32 from
transformers in fp64 is printed too. Ends with exit code 1 where a tensor is missing or an output differs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple, get_args

import torch
import transformers
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[2]))

from bertcli.families.family import FamilyName
from bertcli.families.registry import NEW
from bertcli.folders.model_folder import load_encoder_folder, load_model_folder
from bertcli.samples import SENTENCES

TEXTS = SENTENCES["quickstart-sentences"].read_text(encoding="utf-8").splitlines()
TOLERANCE = 1e-5


class Found(NamedTuple):
    """Of two programs' outputs: the largest one, and the largest differences."""

    missing: list[str]
    largest: float
    fp64: float
    fp32: float
    ours: float
    theirs: float

    def is_good(self) -> bool:
        return not self.missing and self.fp64 <= TOLERANCE and self.fp32 <= TOLERANCE * max(1, self.largest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--families", nargs="+", default=get_args(FamilyName), choices=get_args(FamilyName))
    options = parser.parse_args()
    good = [check(family, options.out / family) for family in options.families]
    sys.exit(0 if all(good) else 1)


def check(family: FamilyName, run: Path) -> bool:
    if not (run / "model").is_dir():
        bertcli("pretrain", f"families/{family}", "--set", f"output_dir={run}")
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    last = [row for row in rows if row["split"] == "heldout"][-1]
    numbers = [
        f"{name} {value:.3f}" for name, value in last.items() if name not in ("step", "tokens", "split")
    ]
    print(f"{family}: {last['step']} steps; {', '.join(numbers)}", flush=True)
    words, kinds = run / "model", {run / "model": "masked-lm"}
    if NEW[family].objective.generates:
        words = run / "model" / "generator"
        kinds = {run / "model": "discriminator", words: "masked-lm"}
    good = True
    for folder, kind in kinds.items():
        found = compare(folder, family, kind)
        good &= found.is_good()
        what = "logits" if kind == "masked-lm" else "hidden states"
        print(f"  transformers, {kind}: missing {found.missing or 'nothing'}")
        print(
            f"  {what} up to {found.largest:.1f}: apart by {found.fp64:.1e} in fp64, {found.fp32:.1e} in "
            f"fp32 (from its fp64: ours {found.ours:.1e}, its own {found.theirs:.1e})"
        )
    mask = transformers.AutoTokenizer.from_pretrained(words).mask_token
    for text in TEXTS:
        answer = bertcli("predict-mask", words, text.replace("[MASK]", mask))
        print(f"  {' | '.join(' '.join(line.split()) for line in answer.splitlines())}", flush=True)
    return good


@torch.inference_mode()
def compare(folder: Path, family: FamilyName, kind: str) -> Found:
    """The outputs at real tokens, ours and those of transformers, in both precisions."""
    cls = getattr(transformers, NEW[family].family.classes[kind])
    loaded: Any = cls.from_pretrained(folder, output_loading_info=True, attn_implementation="eager")
    theirs, info = loaded
    ours = load_model_folder(folder).model if kind == "masked-lm" else load_encoder_folder(folder)[0]
    inputs = transformers.AutoTokenizer.from_pretrained(folder)(TEXTS, padding=True, return_tensors="pt")
    ids_BT, mask_BT = inputs["input_ids"], inputs["attention_mask"].bool()

    def outputs() -> tuple[Tensor, Tensor]:
        given = ids_BT, torch.zeros_like(ids_BT), mask_BT
        if kind == "masked-lm":
            got = ours.eval()(*given).mlm_logits_MV.unflatten(0, mask_BT.shape)
            return got[mask_BT], theirs(**inputs).logits[mask_BT]
        want = theirs(**inputs, output_hidden_states=True).hidden_states[-1]
        return ours.eval()(*given)[mask_BT], want[mask_BT]

    got, want = outputs()
    ours.double()
    theirs.double()
    got_fp64, want_fp64 = outputs()
    return Found(
        missing=sorted(info["missing_keys"]),
        largest=largest(want_fp64),
        fp64=largest(got_fp64 - want_fp64),
        fp32=largest(got - want),
        ours=largest(got - want_fp64),
        theirs=largest(want - want_fp64),
    )


def largest(values: Tensor) -> float:
    return float(values.abs().max())


def bertcli(*arguments: object) -> str:
    command = [sys.executable, "-m", "bertcli", *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
