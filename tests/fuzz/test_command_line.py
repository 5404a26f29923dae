"""The commands themselves on bad files: words and an end, whatever is in them."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest import mock

import yaml
from hypothesis import given

from bertcli.cli.main import main
from bertcli.system.errors import UserError
from tests.fuzz.good import TEXT, copy_of, good_model, good_tokenizer
from tests.fuzz.guard import endure, scratch
from tests.fuzz.mutations import damaged, fuzzed, json_files, place, put
from tests.fuzz.test_configs import PRETRAIN, yaml_files
from tests.fuzz.test_models import json_of
from tests.small_runs import run_warm


def command(label: str, folder: Path, *arguments: object) -> None:
    """Run it in this process, as the console script would."""

    def run() -> None:
        with mock.patch.object(sys, "argv", ["bertcli", *map(str, arguments)]):
            try:
                main()
            except SystemExit as stop:
                if stop.code:
                    raise UserError(f"exit code {stop.code}") from None

    endure(f"command {label}", folder, run)


@fuzzed
@given(yaml_files(PRETRAIN))
def test_prepare(content: bytes) -> None:
    with scratch() as folder:
        (folder / "corpus.txt").write_text(TEXT, encoding="utf-8")
        (folder / "config.yaml").write_bytes(content)
        places = {
            "output_dir": folder / "run",
            "corpus.files": [str(folder / "corpus.txt")],
            "corpus.store": "null",
            "tokenizer.path": good_tokenizer(),
        }
        sets = [part for key, value in places.items() for part in ("--set", f"{key}={value}")]
        command("prepare", folder, "prepare", folder / "config.yaml", *sets)


@fuzzed
@given(place(json_files(json_of(good_model() / "config.json"))), place(damaged(TEXT.encode())))
def test_predict_mask_and_tokenizer(config: bytes | None, text: bytes | None) -> None:
    with scratch() as folder:
        copy = copy_of(good_model(), folder)
        put(folder / "texts.txt", text)
        command(
            "tokenizer", folder, "tokenizer", "encode", "--tokenizer", copy, "--input", folder / "texts.txt"
        )
        put(copy / "config.json", config)
        command("predict-mask", folder, "predict-mask", copy, "the [MASK] sat")
        command("embed", folder, "embed", copy, "--input", folder / "texts.txt")


def test_a_process_of_its_own_shows_no_traceback() -> None:
    with scratch() as folder:
        (folder / "config.yaml").write_text(
            yaml.safe_dump(PRETRAIN | {"output_dir": str(folder / "run"), "corpus": {"files": ["a" * 300]}})
        )
        (folder / "laughs.yaml").write_text("a: &a [" + "[" * 900 + "]" * 900 + "]\nb: *a\n")
        for name in ("config.yaml", "laughs.yaml"):
            result = run_warm("prepare", folder / name)
            assert result.returncode == 2
            assert result.stderr.startswith("error: ")
            assert "Traceback" not in result.stderr
