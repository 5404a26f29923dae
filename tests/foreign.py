"""Trees of things that are not bertcli's, under the names that it uses, and what commands leave of them."""

from __future__ import annotations

import contextlib
import io
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from bertcli.cli.main import main as bertcli
from tests.finetunes import spam_config, spam_files
from tests.small_runs import small_config, write_corpus
from tests.snapshots import compare, snapshot

TEXT = b"of somebody else\n"
IN_ROOT = (
    *(
        "config.yaml",
        "data.json",
        "metrics.jsonl",
        "seeds.json",
        "verdict.json",
        "report.html",
        ".lock",
        ".bertcli.json",
        "model",
        "checkpoints",
    ),
    *(
        "store",
        "store.old",
        "store.partial",
        "store.new",
        "trackers",
        "seed-1",
        "seed-notes",
        ".model.bak",
    ),
    *(".model.partial", ".model.removed", ".config.yaml.partial", "manifest.json", ".DS_Store", "notes.md"),
    *(
        "out",
        ".out.partial",
        "vectors.npy",
        ".vectors.npy.partial",
        "answers.jsonl",
        ".answers.jsonl.partial",
    ),
    *("vocabulary", "wrong.jsonl", "verify-resume-1"),
)
INNER = (
    *(
        "thesis.pt",
        "config.json",
        "model.safetensors",
        "README.md",
        "manifest.json",
        "vocab.txt",
        ".bertcli.json",
    ),
    *(
        "step-00000001",
        "step-00000002",
        "step-00000001 copy",
        "step-notes",
        ".step-00000001.swp",
        ".DS_Store",
    ),
    *("best", ".git", "events.out.tfevents.1.mine", "building.json", "building.lock", "train", "tokenizer"),
    *("notes.md", ".step-00000001.partial", "hashes.bin", "building.json.new"),
)


@dataclass
class Outcome:
    commands: list[str] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


class Base:
    """Corpus, model, a pretraining run in `run`, a fine-tuned one in `tuned`: made once, then copied."""

    def __init__(self, folder: Path):
        self._folder, self._kept = folder / "project", folder / "kept"
        self._folder.mkdir(parents=True)
        write_corpus(self._folder / "corpus.txt", documents=8, paragraphs=4)
        spam_files(self._folder)
        for name in ("train.tsv", "dev.tsv"):
            lines = (self._folder / name).read_text(encoding="utf-8").splitlines()
            (self._folder / name).write_text("\n".join(lines[:25]) + "\n", encoding="utf-8")
        for write, name, more in ((write_pretrain, "run", {"steps": 2}), (write_finetune, "tuned", {})):
            command = write(self._folder, name, more)
            end = in_folder(self._folder, lambda command=command: run(command, in_process))
            assert end == "done", command
        self._folder.rename(self._kept)

    def fresh(self) -> Path:
        """The folder as it was made, at the place where it was made: runs name their files in full."""
        shutil.rmtree(self._folder, ignore_errors=True)
        shutil.copytree(self._kept, self._folder, symlinks=True)
        return self._folder


def write_pretrain(
    folder: Path, output_dir: str, more: dict[str, Any], store: str | None = None
) -> list[str]:
    config = small_config(
        Path("corpus.txt"),
        Path(output_dir),
        corpus={"store": store, "heldout_fraction": 0.5},
        tokenizer={"vocab_size": 200},
        data={"max_length": 16, "objective": "mlm"},
        model={"layers": 1, "hidden": 8, "heads": 2, "feed_forward": 8, "max_positions": 16},
        training={"steps": 1, "batch_size": 2, "micro_batch_size": 2} | more,
        evaluation={"every_steps": 5, "batches": 1},
        checkpoint={"every_steps": 1, "keep_last": 1},
    )
    (folder / "pretrain.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return ["pretrain", "pretrain.yaml"]


def write_finetune(folder: Path, output_dir: str, more: dict[str, Any]) -> list[str]:
    config = spam_config(
        Path(),
        output_dir=output_dir,
        task={"max_length": 16},
        training={"epochs": 0.1},
        checkpoint={"keep_last": 1},
        **more,
    )
    (folder / "finetune.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return ["finetune", "finetune.yaml"]


def check_tree(base: Base, seed: int, in_processes: bool) -> Outcome:
    """One random tree, and one or two random commands in it."""
    folder = base.fresh()
    drawn, outcome = random.Random(seed), Outcome()
    root = drawn.choice([".", "run", "run", "tuned", "new"])
    if drawn.random() < 0.3:
        leave_leftovers(folder / root, drawn)
    ours = set(snapshot(folder))
    scatter(folder, root, drawn)
    before = {name: entry for name, entry in snapshot(folder).items() if name not in ours}
    call = in_new_process if in_processes else in_process
    for _ in range(drawn.choice([1, 1, 2])):
        command = draw_command(folder, root, drawn)
        outcome.commands.append(" ".join(command))
        outcome.ends.append(in_folder(folder, lambda command=command: run(command, call)))
        named = {command[i + 1] for i, word in enumerate(command) if word in ("--output", "--wrong")}
        named |= {os.path.relpath(os.path.realpath(folder / name), folder) for name in named}  # a link's file
        before = {name: entry for name, entry in before.items() if name not in named}
    outcome.lost = compare(before, snapshot(folder))
    if any(end.startswith("failed") for end in outcome.ends):
        outcome.lost += outcome.ends
    return outcome


def leave_leftovers(root: Path, drawn: random.Random) -> None:
    """What a kill leaves of a run that stands: no model, a cut row."""
    if (root / "model").is_dir():
        shutil.rmtree(root / "model")
    if (root / "metrics.jsonl").exists() and drawn.random() < 0.5:
        with open(root / "metrics.jsonl", "ab") as file:
            file.write(b'{"step": 2, "spl')


def scatter(folder: Path, root: str, drawn: random.Random) -> None:
    """Files, folders, links to either, dangling ones; where nothing stands."""
    inner = [f"{name}/{deep}" for name in IN_ROOT for deep in INNER]
    names = [*drawn.choices(IN_ROOT, k=drawn.randint(0, 2)), *drawn.choices(inner, k=drawn.randint(1, 4))]
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "mine.txt").write_bytes(TEXT)
    (folder / "empty").mkdir()
    for number, name in enumerate(names):
        path = folder / root / name
        with contextlib.suppress(FileExistsError, NotADirectoryError):
            path.parent.mkdir(parents=True, exist_ok=True)
            if not os.path.lexists(path):
                kind = drawn.choice(
                    ["file", "file", "file", "folder", "link", "dangling", "to file", "to empty"]
                )
                place(path, kind, folder, TEXT + b"%d" % number)


def place(path: Path, kind: str, folder: Path, content: bytes) -> None:
    targets = {
        "link": "elsewhere",
        "dangling": "nowhere",
        "to file": "elsewhere/mine.txt",
        "to empty": "empty",
    }
    if kind == "file":
        path.write_bytes(content)
    elif kind == "folder":
        path.mkdir()
        (path / "mine.txt").write_bytes(content)
    else:
        path.symlink_to(folder / targets[kind])


def draw_command(folder: Path, root: str, drawn: random.Random) -> list[str]:
    flags = drawn.choice([[], ["--resume"], ["--overwrite"], ["--overwrite"]])
    store = drawn.choice([None, None, None, "out", "elsewhere"])
    trackers = ["tensorboard"] if drawn.random() < 0.05 else []
    board = {"logging": {"trackers": trackers, "every_steps": 1}}
    steps = {"steps": drawn.choice([1, 2, 3])}
    seeds = {"seeds": [1]} if drawn.random() < 0.3 else {}
    at = f"{root}/" if root != "." else ""
    commands: list[Callable[[], list[str]]] = [
        *[lambda: [*write_pretrain(folder, root, steps, store), *flags]] * 4,
        *[lambda: [*write_finetune(folder, root, seeds | board), *flags]] * 3,
        lambda: [
            "prepare",
            write_pretrain(folder, root, steps, store)[1],
            *drawn.choice([[], ["--overwrite"]]),
        ],
        lambda: ["convert", "bert", f"{at}out"],
        lambda: [
            "predict",
            "tuned",
            "--input",
            "dev.tsv",
            "--output",
            f"{at}answers.jsonl",
            "--device",
            "cpu",
        ],
        lambda: ["embed", "bert", "--input", "corpus.txt", "--output", f"{at}vectors.npy", "--device", "cpu"],
        lambda: ["tokenizer", "train", "corpus.txt", "--output", f"{at}vocabulary", "--vocab-size", "100"],
        lambda: ["evaluate", "tuned", "--data", "dev.tsv", "--wrong", f"{at}wrong.jsonl", "--device", "cpu"],
    ]
    return drawn.choice(commands)()


def in_folder(folder: Path, act: Callable[[], str]) -> str:
    before = Path.cwd()
    os.chdir(folder)
    try:
        return act()
    finally:
        os.chdir(before)


def run(command: list[str], call: Callable[[list[str]], tuple[int, str]]) -> str:
    code, said = call(command)
    if code == 0:
        return "done"
    if code == 2 and "Traceback" not in said:
        return "refused"
    return f"failed: {code}: {said[-600:]}"


def in_new_process(command: list[str]) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "bertcli", *command], capture_output=True, text=True, timeout=300, check=False
    )
    return done.returncode, done.stderr


def in_process(command: list[str]) -> tuple[int, str]:
    argv, said = sys.argv, io.StringIO()
    sys.argv = ["bertcli", *command]
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            bertcli()
    except SystemExit as end:
        return int(end.code or 0), said.getvalue()
    except Exception as error:
        return 1, f"{said.getvalue()}\nTraceback: {error!r}"
    finally:
        sys.argv = argv
    return 0, said.getvalue()
