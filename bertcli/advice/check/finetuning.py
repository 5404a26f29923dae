"""The check of a fine-tuning config: the content of its files, and what to mend.

The checks are those at the start of `finetune`. A run stops at the first error; this check continues if it
can, and finds all errors at once.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from bertcli.advice.check.findings import PLACES, Places, bad_bytes_findings, excerpt, failing
from bertcli.advice.check.lines import FAULT_TEXTS, Fault, find_faults
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.run import with_values
from bertcli.corpus.encodings import BAD_BYTES
from bertcli.folders.lengths import LongRows, check_length
from bertcli.folders.locate import resolve_model
from bertcli.system.errors import Finding
from bertcli.system.remote import InputPath
from bertcli.tasks.data import divided, task_to_train
from bertcli.tasks.data_report import Splits, cut_rows, figures, longer_rows, repeated_rows
from bertcli.tasks.examples import Example
from bertcli.tasks.files import find_labeled_file, has_lines, read_examples, settings_found
from bertcli.tasks.label_doubts import label_doubts
from bertcli.tasks.labels import check_labels, label_set
from bertcli.tasks.supervised import Item
from bertcli.tasks.table import LabeledFile
from bertcli.tokenizer.tokenizer import Tokenizer

WINDOWS = 2
"""Mean number of windows per row; above it a run takes far more steps than its rows suggest."""


class LabeledCheck:
    """The result of `bertcli check-data` for a fine-tuning config.

    Attributes:
        figures: `tasks.data_report.figures`, and `steps_per_epoch`; empty if they could not be computed.
        findings: the findings, with what to mend.
        notes: lines on how files are read whose layout had to be guessed.
    """

    def __init__(self, config: FinetuneConfig):
        """Read all files and encode the rows.

        Raises `UserError` if a file or the model does not exist.
        """
        self.figures: dict[str, Any] = {}
        self.findings: list[Finding] = []
        self.notes: list[str] = []
        self._config = config
        source = resolve_model(config.model)
        with failing(self.findings):
            check_length(source, config.task.max_length, "task.max_length")
        self._long_rows = LongRows(source)
        self._tokenizer = tokenizer = Tokenizer.load(source)
        self._settings = settings_found(config.task.settings, config.task.train)
        train = self._read(config.task.train)
        dev = None if config.task.dev is None else self._read(config.task.dev)
        labeled = train
        if dev is None and train:
            with failing(self.findings):
                train, dev, places = divided(labeled, config)
                labeled = labeled if places else train  # the outputs of all folds are the same
        splits = {"train": train, "dev": dev} if dev else {"train": train}
        if train and (items := self._encode(splits, labeled, tokenizer)):
            self.figures = figures(splits, items, self._settings)
            self.figures["steps_per_epoch"] = self._steps_per_epoch
            self.findings += [*self._repeats(train, dev or []), *self._lengths()]
            self.findings += label_doubts(self.figures.get("counts", {}), splits, self._settings)

    def _read(self, name: str) -> list[Example]:
        """The usable rows of a file."""
        path, task = find_labeled_file(name), self._config.task
        left_out, notes, found = list[str](), list[str](), list[Finding]()
        examples, settings = list[Example](), self._settings
        with failing(self.findings):
            if has_lines(LabeledFile(path, settings)):
                found, decoding = bad_bytes_findings(path, settings.decoding, share=1.0)
                settings = with_values(settings, {"bad_bytes": decoding.bad_bytes})
            # Unusable rows raise an error at the end of the file, when the list has all other rows.
            examples += read_examples(
                path,
                settings,
                True,
                skip_bad=task.skip_bad,
                report=left_out.append,
                note=notes.append,
                tokenizer=self._tokenizer,
            )
        self.findings += found
        self.notes += [note for note in notes if not found or BAD_BYTES not in note]  # a finding has it
        self.findings += [Finding(message) for message in left_out]
        self._find_faults(path, examples)
        return examples

    def _encode(
        self, splits: Splits, labeled: Sequence[Example], tokenizer: Tokenizer
    ) -> dict[str, list[Item]] | None:
        """The items of each split as the model reads it; None: a run would stop before.

        `labeled`: the rows with all labels of the model.
        """
        train, dev = splits["train"], splits.get("dev", [])
        task, settings = self._config.task, self._settings
        with failing(self.findings):
            labels = label_set(labeled, settings)
            built = task_to_train(task, settings, labels)
            built.prepare(
                train,
                lambda line: self.findings.append(Finding(line.removeprefix("warning: "))),
                task.class_weights,
            )
            items = {"train": built.encode(train, tokenizer)}
            order = built.order(items["train"], self._config.training.batch_size, self._config.seed)
            self._steps_per_epoch = order.steps_per_epoch
            with failing(self.findings):
                check_labels(dev, labels, settings)
                items["dev"] = built.encode(dev, tokenizer)
            for each in items.values():
                self._long_rows.count(item.length for item in each)
            return {split: each for split, each in items.items() if each}
        return None

    def _find_faults(self, path: InputPath, examples: Sequence[Example]) -> None:
        found: dict[Fault, Places[str]] = defaultdict(Places[str])
        for example in examples:
            for text in example.texts:
                for fault, at in find_faults(text):
                    found[fault].add(1, [f"{example.where}: {excerpt(text, at)}"])
        found.pop("long", None)  # `_lengths` finds those
        for fault, places in found.items():
            share = places.count / len(examples)
            problem, mend = FAULT_TEXTS[fault]
            problem = f"{path}: {places.count:,} texts {problem}"
            self.findings.append(Finding(problem, mend, places=tuple(places.first), share=share))

    def _repeats(self, train: Sequence[Example], dev: Sequence[Example]) -> Iterator[Finding]:
        """Findings about texts that occur twice: in one file, in both, or with different labels."""
        for where, count, problem in repeated_rows(self.figures):
            examples = train if where == "train" else dev
            before, mend = {}, "delete the copies"
            if where == "across":
                before = {example.texts: example.where for example in reversed(train)}
                mend = "remove them from one of the two files"
            yield Finding(problem, mend, _first_copies(examples, before), share=count / len(examples))
        if contradictions := self.figures["contradictions"]:
            yield Finding(
                f"one text, several labels: {len(contradictions):,} texts of train",
                "decide on one label for each",
                places=tuple(
                    f"{excerpt(each['text'])}: {'; '.join(each['where'])}" for each in contradictions[:PLACES]
                ),
                share=len(contradictions) / len(train),
            )

    def _lengths(self) -> Iterator[Finding]:
        """Findings about rows that are longer than `max_length`, or than rows that the model knows."""
        if (line := self._long_rows.line) is not None:
            yield Finding(line, share=self._long_rows.long / self._long_rows.rows)
        windows = self.figures.get("windows")
        for split, lengths in self.figures["lengths"].items():
            rows, limit = self.figures["rows"][split], lengths["max_length"]
            if windows and windows[split] > WINDOWS * rows:
                problem = f"the {rows:,} rows of {split} are long: {windows[split]:,} windows of {limit} "
                problem += "tokens, each of which takes the time of a row"
                yield Finding(problem, longer_rows(lengths), share=lengths["longer"])
        yield from cut_rows(self.figures, self._config.task.settings)


def _first_copies(examples: Sequence[Example], before: dict[tuple[str, ...], str]) -> tuple[str, ...]:
    """The first rows whose text is in `before` (text -> place), or in an earlier row if `before` is empty."""
    seen, copies = dict(before), []
    for example in examples:
        if example.texts in seen and len(copies) < PLACES:
            copies.append(
                f"{example.where}: {excerpt(' | '.join(example.texts))}, as in {seen[example.texts]}"
            )
        if not before:
            seen.setdefault(example.texts, example.where)
    return tuple(copies)
