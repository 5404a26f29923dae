"""The pretraining step of each family beside transformers' own model of it: in turn, in one process.

    python scripts/bench/family_steps.py [--families roberta ...] [--preset mini] [--pairs 5]

Theirs is the class that loads the folder that we write, with the same sizes and dropout 0.1, as its users run
it: the attention that it takes by default, autocast, fused AdamW, gradients clipped at 1.0. For replaced
words it is a plain loop around its two classes: the generator's loss, its words drawn by softmax and
multinomial, the discriminator's loss over all tokens, 50 times; both share their embeddings. Rows are full,
so that skipping padding wins nothing, and both sides have as many masked tokens. A pair is so many steps of
ours, then of theirs; the ratio is taken pair by pair. Needs the test extras.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import torch
import torch.nn.functional as F
import transformers
from torch import Tensor, nn

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from vs_transformers import WARMUP_STEPS, plain_step, seconds_of  # noqa: E402

from bertcli.advice.bench.timing import device_name, synthetic_steps, take_steps, training_to_time  # noqa: E402
from bertcli.config.model import ModelConfig  # noqa: E402
from bertcli.config.run import ModelRecipe  # noqa: E402
from bertcli.families.family import FamilyName  # noqa: E402
from bertcli.folders.config_file import new_architecture  # noqa: E402
from bertcli.objectives.learner import learner_of  # noqa: E402
from bertcli.objectives.registry import MLM_NSP, Objective  # noqa: E402
from bertcli.tokenizer.tokenizer import Tokenizer  # noqa: E402
from bertcli.training.resolve import decide_loop, own_share  # noqa: E402
from tests.tokenizer.tokenizers_of import make_tokenizer_folder  # noqa: E402

FP32_ALONE = ("deberta",)
"""Families whose class in transformers 5.23 fails under autocast ("value cannot be converted to type
c10::BFloat16"): theirs computes in fp32 then."""
MASK_RATES = {"modernbert": 0.3}
USUAL_RATE = 0.15
Step = Callable[[], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--families", nargs="+", default=get_args(FamilyName), choices=get_args(FamilyName))
    parser.add_argument("--preset", default="mini")
    parser.add_argument("--vocab-size", type=int, default=8192)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--precision", choices=["bf16", "fp32"], default="bf16")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2, help="a pair, of either side")
    options = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    print(f"{'family':<12}{'objective':<10}{'ours, ms':>10}{'theirs':>10}{'ratio':>8}")
    device = torch.device("cpu")
    for family in options.families:
        our_step, their_step, device = sides(family, options)
        for _ in range(WARMUP_STEPS):
            our_step()
            their_step()
        pairs = [
            (seconds_of(our_step, options.steps, device), seconds_of(their_step, options.steps, device))
            for _ in range(options.pairs)
        ]
        ours, theirs = (1e3 * statistics.median(side) for side in zip(*pairs, strict=True))
        ratio = statistics.median(theirs / ours for ours, theirs in pairs)
        objective = ModelConfig(family=family).fresh.objective
        note = "  theirs in fp32" if family in FP32_ALONE else ""
        print(
            f"{family:<12}{objective.name:<10}{ours:>10,.1f}{theirs:>10,.1f}{ratio:>8.2f}{note}", flush=True
        )
    print(json.dumps(vars(options) | {"device": device_name(device), "threads": torch.get_num_threads()}))


def sides(family: FamilyName, options: argparse.Namespace) -> tuple[Step, Step, torch.device]:
    """A step of either side, on models with the same weights."""
    model = ModelRecipe(family=family, preset=options.preset, dropout=0.1)
    objective, rate = model.fresh.objective, MASK_RATES.get(family, USUAL_RATE)
    sizes = new_architecture(model, options.vocab_size, objective=objective)
    training = training_to_time(
        batch_size=options.batch_size,
        precision=options.precision,
        device=options.device,
        compile=False,
    )
    decided = decide_loop(training, sizes, options.length, tokens=0, predicted=rate)
    device = torch.device(decided.device)
    torch.manual_seed(0)
    learner = learner_of(objective.name)
    built = learner.build(model, sizes).to(device)
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = Tokenizer.load(make_tokenizer_folder(sizes.family, Path(folder) / "tokenizer"))
        saved, weights = Path(folder) / "model", built.state_dict()
        saved.mkdir()
        learner.save(saved, built, tokenizer, trained_length=options.length, weights=weights)
        step = their_step(saved, objective, options, device=device, rate=rate)
    batches = synthetic_steps(
        options.vocab_size,
        options.batch_size,
        options.length,
        share=own_share(decided),
        objective=objective,
        mask_rate=rate,
    )
    reports = take_steps(built, learner.task(training), batches, training=decided)
    return lambda: next(reports), step, device


def their_step(
    folder: Path, objective: Objective, options: argparse.Namespace, device: torch.device, rate: float
) -> Step:
    """A step of transformers' classes, which load the folder that we wrote."""
    if objective.generates:
        model: Any = TheirReplacedTokens(folder).to(device).train()
    elif objective.pairs.is_pair:
        model = transformers.AutoModelForPreTraining.from_pretrained(folder).to(device).train()
    else:
        model = transformers.AutoModelForMaskedLM.from_pretrained(folder).to(device).train()
    half = options.precision == "bf16" and model.config.model_type not in FP32_ALONE
    return plain_step(model, their_batch(objective, options, device, rate=rate), half)


def their_batch(
    objective: Objective, options: argparse.Namespace, device: torch.device, rate: float
) -> dict[str, Tensor]:
    shape = (options.batch_size, options.length)
    ids_BT = torch.randint(5, options.vocab_size, shape, device=device)
    chosen_BM = torch.rand(shape, device=device).topk(round(rate * options.length), dim=1).indices
    labels_BT = torch.full_like(ids_BT, -100).scatter(1, chosen_BM, ids_BT.gather(1, chosen_BM))
    batch = {"input_ids": ids_BT, "attention_mask": torch.ones_like(ids_BT), "labels": labels_BT}
    if objective.pairs.is_pair:
        halves = (torch.arange(options.length, device=device) >= options.length // 2).long()
        name = "next_sentence_label" if objective is MLM_NSP else "sentence_order_label"
        batch |= {"token_type_ids": halves.expand(shape), name: torch.arange(shape[0], device=device) % 2}
    return batch


class TheirReplacedTokens(nn.Module):
    """Generator and discriminator of transformers, as a user would join them."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.config = transformers.AutoConfig.from_pretrained(folder)
        self.generator = transformers.AutoModelForMaskedLM.from_pretrained(folder / "generator")
        self.discriminator = transformers.AutoModel.from_pretrained(folder)
        hidden = self.discriminator.config.hidden_size
        self.dense, self.output = nn.Linear(hidden, hidden), nn.Linear(hidden, 1)
        own, theirs = self.discriminator.embeddings, self.generator.base_model.embeddings
        own.word_embeddings = theirs.word_embeddings

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Any:
        made = self.generator(input_ids=input_ids, attention_mask=attention_mask, labels=labels)
        masked = labels != -100
        with torch.no_grad():
            sampled = torch.multinomial(made.logits[masked].float().softmax(-1), 1).squeeze(1)
        replaced = input_ids.clone()
        replaced[masked] = sampled
        wrong = (masked & (replaced != labels)).float()
        hidden = self.discriminator(input_ids=replaced, attention_mask=attention_mask).last_hidden_state
        logits = self.output(F.gelu(self.dense(hidden))).squeeze(-1)
        loss = made.loss + 50 * F.binary_cross_entropy_with_logits(logits.float(), wrong)
        return argparse.Namespace(loss=loss)


if __name__ == "__main__":
    main()
