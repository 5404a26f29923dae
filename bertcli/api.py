"""The Python API: the work of the command line, with the objects that `--json` prints as results.

Nothing heavy is imported before it is needed: `import bertcli` loads neither torch nor numpy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bertcli.cli import calls
from bertcli.system.terminal import say

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    from bertcli.folders.model_folder import LoadedModel
    from bertcli.inference.opened import Compute
    from bertcli.inference.outputs import CutRows
    from bertcli.inference.predict import Runner
    from bertcli.inference.vectors import Embedder
    from bertcli.tasks.examples import Example

Config = str | Path | Mapping[str, Any]
"""A YAML file, its keys as a mapping, or the folder of a run that is resumed."""


@calls.call
def load(
    model: str | Path, device: str = "auto", precision: Literal["fp32", "bf16", "fp16", "auto"] = "fp32"
) -> Model:
    """A model that answers.

    Args:
        model: a run, a checkpoint, a model folder of a supported family, a folder of `bertcli export`, or an
            id on the Hugging Face hub.
        device: auto, cpu, cuda or cuda:N.
        precision: number format of the matrix products of `predict` and `embed`.

    Raises:
        UserError: there is no such model or no such device.
    """
    path = calls.path("model", model)
    calls.text("device", device)
    calls.one_of("precision", precision, "fp32", "bf16", "fp16", "auto")
    from bertcli.folders.locate import find_onnx, resolve_model
    from bertcli.inference.opened import Compute

    place, compute = find_onnx(path), Compute(device, precision)
    if place is not None:
        compute.of_onnx(place.file)
        return Model(path, compute)
    compute.of_weights()
    return Model(resolve_model(path), compute)


@calls.call_of_torch
def pretrain(config: Config, resume: bool = False, overwrite: bool = False) -> dict[str, str]:
    """Make a model from raw text, like `bertcli pretrain`; returns `{"model": FOLDER}`.

    Args:
        resume: continue exactly where the run stopped.
        overwrite: delete the run in `output_dir` first.

    Raises:
        UserError: the config, the text or the folder cannot be used.
        KeyboardInterrupt: after Ctrl-C, when the checkpoint is saved.
    """
    from bertcli.training import ranks
    from bertcli.training import train as training

    given = _given(config, resume, overwrite)
    with ranks.joined():
        return training.run_pretraining(given, [], resume, overwrite=overwrite)


@calls.call_of_torch
def finetune(config: Config, resume: bool = False, overwrite: bool = False) -> dict[str, Any]:
    """Make a task model from a model and labeled data, like `bertcli finetune --json`.

    Returns its folder as `model`, its scores on the dev data, and the verdict. Arguments and errors are those
    of `pretrain`.
    """
    from bertcli.training import ranks
    from bertcli.training import train as training

    given = _given(config, resume, overwrite)
    with ranks.joined():
        return training.run_finetuning(given, [], resume, overwrite=overwrite)


@calls.call_of_torch
def tune(
    config: Config,
    minutes: float | None = None,
    trials: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Search for a better fine-tuning config, like `bertcli tune --json`.

    Returns the recommended config's file as `config`, and what was tried. `minutes` and `trials` are limits;
    None: those of the search that is resumed, or 60 and 30. Other arguments and errors are those of
    `pretrain`.
    """
    from bertcli.advice import tune as search
    from bertcli.training import ranks

    given = _given(config, resume, overwrite)
    limit = None if minutes is None else calls.positive("minutes", minutes)
    most = None if trials is None else calls.count("trials", trials)
    with ranks.joined():
        return search.tune(given, minutes=limit, trials=most, resume=resume, overwrite=overwrite)


class Model:
    """A model folder, made by `load`; its weights are read when they are first needed.

    Each method takes one text or several, and answers with one result for each, in their order.
    """

    def __init__(self, folder: Path, compute: Compute) -> None:
        self.folder, self._compute = folder, compute

    @calls.call
    def fill_mask(self, texts: str | Iterable[str], top_k: int = 5) -> list[dict[str, Any]]:
        """The `top_k` likeliest words for each `[MASK]`, as `bertcli predict-mask --json` prints them.

        Raises `UserError` for a model without an MLM head, and for a text without a mask.
        """
        from bertcli.folders.lengths import LongRows
        from bertcli.inference import fill_mask, lines, predict

        several, top_k = _texts(texts), calls.count("top_k", top_k)
        device, long_rows = self._device, LongRows(self.folder)
        filled = fill_mask.fill_masks(
            self._words,
            [lines.Line(text, f"text {number}") for number, text in enumerate(several, start=1)],
            top_k,
            batch_size=predict.default_batch_size(device),
            device=device,
            count=long_rows.count,
        )
        answers = [each.as_json() for each in filled]
        long_rows.tell()
        return answers

    @calls.call
    def predict(
        self, rows: str | Iterable[str | Sequence[str]], min_probability: float = 0.0
    ) -> list[dict[str, Any]]:
        """The answer of a fine-tuned model to each row, as `bertcli predict --json` prints it.

        A row is a text, or a tuple of texts: a pair, a question and its context, or a text and its choices.
        The label of answers with a lower probability than `min_probability` is None.

        Raises `UserError` for a model that was not fine-tuned, and for a row that its task cannot read.
        """
        from bertcli.inference import outputs, predict

        sure = outputs.SureAnswers(calls.probability("min_probability", min_probability))
        examples, runner, cut = self._rows(rows)
        stream = sure.watch(predict.predict_stream(runner, examples))
        answers = [outputs.row_json(each) for each in cut.watch(stream)]
        cut.tell()
        return answers

    @calls.call
    def suggest(self, rows: str | Iterable[str | Sequence[str]], number: int = 100) -> list[dict[str, Any]]:
        """The rows to label next, as `bertcli suggest --json` prints them: at most `number`, the best first.

        `rows` are those of `predict`. Raises `UserError` for a model whose answers have no probability.
        """
        from bertcli.inference import suggest

        most, (examples, runner, cut) = calls.count("number", number), self._rows(rows)
        unlabeled = suggest.without_labels(examples, runner.task.settings, report=say)
        found = [each.as_json() for each in suggest.suggest(runner, unlabeled, most, watch=cut.watch)]
        cut.tell()
        return found

    @calls.call
    def embed(
        self,
        texts: str | Iterable[str],
        pooling: Literal["mean", "cls", "max"] | None = None,
        normalize: bool | None = None,
        windows: Literal["first", "mean", "max"] | None = None,
    ) -> NDArray[np.float32]:
        """The vectors of `bertcli embed`, float32 [texts, hidden].

        Args:
            pooling: how a text's vector is made of its tokens; None: as the folder says, else the mean.
            normalize: true scales vectors to length 1; None: as the folder says, else false.
            windows: how texts that are longer than a row are read (`task.windows`); None: as the folder says,
                else first, which cuts them.
        """
        import numpy as np

        from bertcli.inference.outputs import CutRows
        from bertcli.tasks.examples import TextExample

        several = _texts(texts)
        calls.one_of("pooling", pooling, None, "mean", "cls", "max")
        calls.one_of("normalize", normalize, None, False, True)
        calls.one_of("windows", windows, None, "first", "mean", "max")
        embedder, folder = self._encoder
        cut = CutRows(folder)
        embedder = embedder.reading(cut, mode=pooling, normalize=normalize, windows=windows)
        examples = [
            TextExample(f"text {number}", {"text": text}, (text,), label=None)
            for number, text in enumerate(several, start=1)
        ]
        vectors = np.zeros((len(examples), embedder.model.architecture.hidden), dtype=np.float32)
        for vector_D, embedded in zip(vectors, cut.watch(embedder.embed(examples)), strict=True):
            vector_D[:] = embedded.vector_D.numpy()
        cut.tell()
        return vectors

    @calls.call_of_torch
    def attention(self, text: str | Sequence[str]) -> dict[str, Any]:
        """The attention of each word in every layer and head, as `bertcli attention --json` prints it.

        `text`: one text, or a tuple of texts that the model reads together, as in `predict`.
        """
        from bertcli.folders import locate
        from bertcli.inference import attention, inputs

        texts = calls.row("text", text)
        row = attention.read_one(
            locate.resolve_model(self.folder),
            texts,
            lambda settings: [inputs.example_of(texts, "the row", settings, how="as a tuple")],
            is_pair=False,
            explained=False,
            target=None,
            device=self._device,
        )
        return {"texts": row.texts, **attention.attention_of(row.body, row.tokenizer, row.read).as_json()}

    def _rows(self, rows: str | Iterable[str | Sequence[str]]) -> tuple[list[Example], Runner, CutRows]:
        """The examples of the user's rows, the model that reads them, and a counter of those that are cut."""
        from bertcli.inference import inputs, outputs

        several = enumerate(calls.texts("rows", rows), start=1)
        given = [(f"row {number}", calls.row(f"row {number}", row)) for number, row in several]
        runner, folder = self._task
        settings, cut = runner.task.settings, outputs.CutRows(folder)
        examples = [inputs.example_of(row, where, settings, how="as a tuple") for where, row in given]
        return examples, runner.reading(settings, cut), cut

    @property
    def _device(self) -> torch.device:
        return self._compute.of_weights()[0]

    @cached_property
    @calls.call_of_torch
    def _words(self) -> LoadedModel:
        from bertcli.folders import locate, model_folder

        return model_folder.load_model_folder(locate.resolve_model(self.folder), pairs=False)

    @cached_property
    @calls.call_of_torch
    def _task(self) -> tuple[Runner, Path]:
        from bertcli.inference.opened import open_task

        return open_task(self.folder, self._compute)

    @cached_property
    @calls.call_of_torch
    def _encoder(self) -> tuple[Embedder, Path]:
        from bertcli.inference.opened import open_encoder

        return open_encoder(self.folder, self._compute)


def _given(config: Config, resume: bool, overwrite: bool) -> Path | Mapping[str, Any]:
    calls.one_of("resume", resume, False, True)
    calls.one_of("overwrite", overwrite, False, True)
    return config if isinstance(config, Mapping) else calls.path("config", config)


def _texts(texts: str | Iterable[str]) -> list[str]:
    several = enumerate(calls.texts("texts", texts), start=1)
    return [calls.text(f"text {number}", text) for number, text in several]
