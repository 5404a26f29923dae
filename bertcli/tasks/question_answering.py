"""Start and end logits of the windows of a text -> its best spans (Devlin et al. 2019, section 4.2)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from bertcli.config.task import ClassWeights, TaskSettings
from bertcli.objectives.base import Term
from bertcli.system.terminal import Report
from bertcli.tasks import answers as qa
from bertcli.tasks.examples import QuestionExample
from bertcli.tasks.row_words import Part, ReadRow, read_parts, text_places
from bertcli.tasks.shown import Mistake, MistakeWords, Output
from bertcli.tasks.squad import may_be_questions, question_examples, read_squad, recognize_questions
from bertcli.tasks.supervised import NEVER, Item, Items, LabeledBatch, LabeledTask, Logits, cut_windows
from bertcli.tasks.verdict import Verdict, no_better, share_verdict
from bertcli.tokenizer.frame import Frame
from bertcli.tokenizer.pieces import PlacedPieces
from bertcli.tokenizer.tokenizer import Tokenizer

MAX_QUESTION = 64
"""Most tokens of a question, as in the original code; it takes at most half of a row."""


class QuestionAnswering(LabeledTask):
    """Start and end of the answer, each by a softmax over the tokens; long contexts in windows.

    The target of a window without the complete answer is the first token; this holds for every window of a
    question without answer. Answers are text of the context, not decoded tokens.
    """

    type = "question-answering"
    keys = ("null_threshold",)
    formats = ("squad",)
    names_columns = False
    takes_pairs = False
    head = "spans"
    recognize = staticmethod(recognize_questions)
    may_be_in = staticmethod(may_be_questions)
    in_windows = True
    metric = "f1"
    pipeline_tag = type
    mistake_words = MistakeWords(
        text="question and context", marks={"right": "right", "given": "given", "both": "right and given"}
    )
    table_examples = staticmethod(question_examples)
    own_examples: ClassVar = {"squad": read_squad}
    longest_row = 384  # as in BERT's release
    fixed_texts = 2
    # Usual columns, and an answer to every question.
    foreign_keys: ClassVar[Mapping[str, Any]] = {"null_threshold": None}
    has_unanswered = False
    """Whether some question of the training data has no answer."""

    @classmethod
    def check_settings(cls, settings: TaskSettings) -> None:
        if len(settings.text_columns) not in (0, 2):
            raise ValueError(f"text: two columns, the question's and the context's ({cls.type})")

    @classmethod
    def reads(cls, settings: TaskSettings) -> str:
        return "a question and its context"

    @classmethod
    def example(cls, texts: Sequence[str], where: str, settings: TaskSettings) -> QuestionExample:
        """A question without answers; its place is its id."""
        question, context = texts
        columns = {"question": question, "context": context}
        return QuestionExample(where, columns, (question, context), id=where, answers=None)

    def prepare(
        self, examples: Sequence[QuestionExample], report: Report, weights: ClassWeights = None
    ) -> None:
        """Take whether the model should learn to give no answer."""
        self.has_unanswered = not all(example.answers for example in examples)

    def kept_settings(self, metrics: Mapping[str, Any]) -> TaskSettings:
        """The settings with the `null_threshold` that the dev data gave. Without dev data it is 0, which
        training aims at."""
        if self.settings.null_threshold != "auto":
            return self.settings
        usual = 0.0 if self.has_unanswered and not metrics else None
        return self.settings.model_copy(update={"null_threshold": metrics.get("null_threshold", usual)})

    def encode(self, examples: Sequence[QuestionExample], tokenizer: Tokenizer) -> list[Item]:
        """An item for each window of each context: question and window.

        The target is the positions in the row of the first and the last token of the first right answer.
        """
        contexts = list({example.texts[1]: None for example in examples})  # several questions can share one
        placed = dict(zip(contexts, tokenizer.encode_with_spans(contexts), strict=True))
        questions = tokenizer.encode_batch([example.texts[0] for example in examples])
        frame = tokenizer.frame
        items: list[Item] = []
        for number, (example, question) in enumerate(zip(examples, questions, strict=True)):
            context = placed[example.texts[1]]
            items += self._windows(number, example, question, context=context, frame=frame)
        return items

    def _windows(
        self, number: int, example: QuestionExample, question: list[int], context: PlacedPieces, frame: Frame
    ) -> list[Item]:
        max_length = self.settings.max_length
        cost = frame.cost(pair=True)
        kept = question[: min(MAX_QUESTION, (max_length - cost) // 2)]
        dropped = len(question) - len(kept)
        room = max_length - len(kept) - cost
        overlap = min(self.settings.doc_stride, room // 2)
        full = len(question) + len(context.ids) + cost
        items = []
        for window in cut_windows([1] * len(context.ids), room, overlap):
            row = frame.row(kept, context.ids[window.start : window.stop])
            passage = qa.ContextWindow(window, frame.b_starts(len(kept)), context.spans)
            target = None if example.answers is None else qa.target_of(passage, example.answers)
            items.append(Item(number, (row,), target, layout=passage, dropped=dropped, full_length=full))
        return items

    def answers(self, logits: Tensor, batch: LabeledBatch) -> Tensor:
        """The logits [B, 2, T] of start and end; padding is `NEVER`."""
        logits_BT2, mask_BT = logits.float(), batch.rows.mask_BT
        if mask_BT is not None:
            logits_BT2 = logits_BT2.masked_fill(~mask_BT.to(logits.device)[:, :, None], NEVER)
        return logits_BT2.mT

    def term(self, logits: Tensor, batch: LabeledBatch) -> Term:
        """Mean of the cross-entropies of start and end, summed over the rows."""
        targets_B2 = torch.tensor([item.target for item in batch.items], device=logits.device)
        loss = F.cross_entropy(self.answers(logits, batch).mT, targets_B2, reduction="sum")
        return Term(loss / 2)

    def predict(self, example: QuestionExample, items: Items, logits: Logits) -> qa.Answered:
        passages: list[qa.ContextWindow] = [item.layout for item in items]
        spans = self.best(passages, logits)
        if not spans:
            return qa.Answered("", None, None, score=1.0, best="", null_difference=0.0)
        null = min(float(logits_T2[0].sum()) for logits_T2 in logits)
        difference = null - spans[0].score
        context = example.texts[1]
        start, end = qa.characters_of(context, passages[0].spans, spans[0].first, last=spans[0].last)
        best = context[start:end]
        threshold = self.settings.null_threshold
        if threshold == "auto":  # not found yet
            threshold = None
        scores = [span.score for span in spans] + ([] if threshold is None else [null])
        probabilities = torch.tensor(scores).softmax(0).tolist()
        if threshold is not None and difference > threshold:
            return qa.Answered("", None, None, score=probabilities[-1], best=best, null_difference=difference)
        return qa.Answered(best, start, end, score=probabilities[0], best=best, null_difference=difference)

    def best(self, passages: Sequence[qa.ContextWindow], logits: Logits) -> list[qa.Span]:
        """The best spans of a context, the best first, in the context's tokens; none in an empty one."""
        pairs = zip(passages, logits, strict=True)
        inside = [logits_T2[passage.first :][: len(passage.window)] for passage, logits_T2 in pairs]
        return qa.best_spans([passage.window for passage in passages], inside)

    def is_right(self, example: QuestionExample, prediction: qa.Answered) -> bool:
        return qa.is_exact(prediction.answer, self.right_answer(example))

    def score(
        self, examples: Sequence[QuestionExample], predictions: Sequence[qa.Answered]
    ) -> Mapping[str, float]:
        """The scores of SQuAD's scorers, in percent; if a question has no answer, with the best
        `null_threshold`.

        The scores are those of the threshold with the best F1 while `null_threshold` is `auto`.
        """
        gold = [self.right_answer(example) for example in examples]
        if all(gold):
            return qa.answer_scores(gold, [prediction.answer for prediction in predictions])
        differences = [prediction.null_difference for prediction in predictions]
        best = [prediction.best for prediction in predictions]
        found = qa.best_thresholds(gold, best, differences)
        if self.settings.null_threshold != "auto":
            return qa.answer_scores(gold, [prediction.answer for prediction in predictions]) | found
        threshold = found["best_f1_threshold"]
        above = [difference for difference in differences if difference > threshold]
        if above:  # between two questions, so that another precision or batch changes no answer
            threshold = (threshold + min(above)) / 2
        pairs = zip(best, differences, strict=True)
        answers = ["" if difference > threshold else answer for answer, difference in pairs]
        return qa.answer_scores(gold, answers) | found | {"null_threshold": threshold}

    def settled(self, predictions: Sequence[qa.Answered], kept: TaskSettings) -> Sequence[qa.Answered]:
        """The answers with the kept threshold. "No answer" has its probability beside the best answer."""
        limit = kept.null_threshold
        if not isinstance(limit, float):
            return predictions

        def settle(answer: qa.Answered) -> qa.Answered:
            if answer.null_difference <= limit:
                return answer
            score = float(torch.tensor(answer.null_difference).sigmoid())
            return replace(answer, answer="", start=None, end=None, score=score)

        return [settle(each) for each in predictions]

    def verdict(self, examples: Sequence[QuestionExample], metrics: Mapping[str, Any]) -> Verdict:
        """The verdict beside "no answer". SQuAD's scores are percentages."""
        share = sum(not example.answers for example in examples) / len(examples)
        metric, exact = "exact_match", metrics["exact_match"] / 100
        if share > 0:
            n = len(examples)
            blind = f"always answering that there is no answer ({100 * share:.4g})"
            return share_verdict(metric, "exact match", exact, share=share, blind=blind, rows=n, percent=100)
        if exact > 0:
            return Verdict(True, {metric: 0.0}, f"exact match {100 * exact:.4g}, where no answer gives 0")
        said = "no question was answered exactly: exact match 0"
        return no_better({metric: 0.0}, said, "no answer (0)", noise_of=None)

    def right_answer(self, example: QuestionExample) -> list[str]:
        return [answer.text for answer in example.answers or ()]

    def mistake(self, example: QuestionExample, prediction: qa.Answered, examples: Sequence[Any]) -> Mistake:
        right, given = " / ".join(dict.fromkeys(self.right_answer(example))), prediction.answer
        right, given = (answer or "(no answer)" for answer in (right, given))
        passages = qa.answer_passages(example, prediction)
        return Mistake(passages, prediction.score, right=right, given=given)

    def output(self, example: QuestionExample, items: Items, logits: Logits, target: int | None) -> Output:
        """The first and the last token of the answer, in the window that has most context for it."""
        answered, passages = self.predict(example, items, logits), [item.layout for item in items]
        if answered.start is None:
            sums = [float(logits_T2[list(qa.NOWHERE), [0, 1]].sum()) for logits_T2 in logits]
            item, (first, last) = sums.index(min(sums)), qa.NOWHERE
        else:
            item, first, last = qa.place_of(self.best(passages, logits)[0], passages)
        said = answered.answer or qa.NO_ANSWER
        return Output(said, lambda logits_BT2: logits_BT2[:, first, 0] + logits_BT2[:, last, 1], item=item)

    def read(self, example: QuestionExample, item: Item, number: int, tokenizer: Tokenizer) -> ReadRow:
        """The question and a window of the context."""
        row, (question, context) = item.rows[number], example.texts
        first, second = text_places(row, tokenizer.frame)
        window = Part(context, second, 1, skipped=item.layout.window.start)
        return read_parts(row, [Part(question, first, 0), window], tokenizer)
