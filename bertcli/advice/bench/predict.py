"""The measurement `bench predict`: a fine-tuned or a fresh model on texts of mixed length."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from bertcli.advice.bench.timing import Padded, device_name, now
from bertcli.config.corpus import CorpusConfig
from bertcli.config.run import ModelRecipe, TokenizerRecipe
from bertcli.config.task import TaskSettings
from bertcli.corpus.files import corpus_files
from bertcli.corpus.matching import train_on_corpus
from bertcli.folders.config_file import new_architecture
from bertcli.folders.locate import resolve_model
from bertcli.folders.task_folder import load_task_folder, refuse_vectors
from bertcli.inference.inputs import read_inputs
from bertcli.inference.predict import Runner, default_batch_size, predict_stream, runner_of
from bertcli.model.task_models import build_task_model
from bertcli.system.errors import UserError
from bertcli.system.memory import peak_memory
from bertcli.system.terminal import Report
from bertcli.tasks.examples import Example
from bertcli.tasks.files import find_labeled_file, read_examples, settings_of_texts
from bertcli.tasks.supervised import build_task, task_class


def given_runner(path: Path, device: torch.device) -> Runner:
    """The runner of a fine-tuned model. Raises `UserError` as `load_task_folder` and `refuse_vectors`."""
    loaded = load_task_folder(resolve_model(path))
    refuse_vectors(loaded.settings.type, loaded.folder)
    return runner_of(loaded, device)


def fresh_runner(
    preset: Any, vocab_size: int, max_length: int, device: torch.device, report: Report
) -> Runner:
    """The runner of a new classifier: two labels, random weights, a vocabulary from the bundled classics."""
    corpus = CorpusConfig(files=["classics"])
    options = TokenizerRecipe(vocab_size=vocab_size, kind="wordpiece", lowercase=True)
    tokenizer = train_on_corpus(corpus_files(corpus), corpus, options, report=report)
    config = ModelRecipe(preset=preset, max_positions=max(512, max_length), dropout=0.1)
    model = build_task_model("sequences", new_architecture(config, tokenizer.vocab_size), 2)
    model = model.to(device).eval()
    task = build_task(settings_of_texts(max_length=max_length), ("0", "1"))
    rows = default_batch_size(device)
    return Runner(model, task, tokenizer, device=device, precision="fp32", batch_size=rows)


def sample_messages(settings: TaskSettings) -> Iterator[Any]:
    """The bundled text messages as examples. Raises `UserError` for a task that reads more than one text."""
    if not task_class(settings.type).is_one_text(settings):
        raise UserError(
            f"the bundled messages are single texts, but this model reads several ({settings.type}); give "
            "its rows: --input FILE"
        )
    columns = settings_of_texts("message")
    messages = read_examples(find_labeled_file("sms-spam"), columns, labeled=False, report=lambda line: None)
    return read_inputs([example.texts[0] for example in messages], None, settings, report=lambda line: None)


def bench_predict(runner: Runner, examples: Sequence[Example]) -> dict[str, Any]:
    """Measure the time from text to prediction, as in `bertcli predict`, and padded to `max_length`.

    Returns:
        what, device, precision, batch_size, max_length, texts, tokens_per_text; texts_per_s, tokens_per_s
        (real tokens); padded_texts_per_s, speedup (over padded); peak_memory_mb.

    Raises:
        UserError: the task cannot use an example.
    """
    task, device, length = runner.task, runner.device, runner.task.settings.max_length
    tokens = sum(row.length for item in task.encode(examples, runner.tokenizer) for row in item.rows)

    def texts_per_second(runner: Runner) -> float:
        # As in `bertcli predict`, no prediction is kept. The first pass chooses kernels.
        deque(predict_stream(runner, examples[: runner.batch_size]), maxlen=0)
        begun = now(device)
        deque(predict_stream(runner, examples), maxlen=0)
        return len(examples) / (now(device) - begun)

    speed = texts_per_second(runner)
    padded = texts_per_second(replace(runner, model=Padded(runner.model, length)))
    return {
        "what": "predict",
        "device": device_name(device),
        "precision": runner.precision,
        "batch_size": runner.batch_size,
        "max_length": length,
        "texts": len(examples),
        "tokens_per_text": tokens / len(examples),
        "texts_per_s": speed,
        "tokens_per_s": speed * tokens / len(examples),
        "padded_texts_per_s": padded,
        "speedup": speed / padded,
        "peak_memory_mb": peak_memory(device) / 1e6,
    }
