"""The facts in which the tokenizers of model types differ, for the files that leave them open."""

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class TokenizerFacts:
    """The facts that a folder leaves open if it only names a model type or a class of transformers.

    Attributes:
        names: special tokens by role, as `tokenizer_config.json` names the role; in the order of their ids in
            a new vocabulary.
        kind: type of the tokenization model in the tokenizers library.
        classes: classes of transformers that build this pipeline, without Fast.
        files: names of the vocabulary's files in a folder without a tokenizer.json.
        separators: number of separators between the two texts of a pair.
        segments: true if the model tells two texts apart by segment ids.
        mask_strips: true if a mask token in a text takes the blank before it along.
        class_errs: true if the classes make other rows than the model was trained with, also in files.
        written: the class that builds exactly this pipeline and rows; None: the file's own class is written.
        steps: steps of the normalizer, see `tokenizer/pipelines.py`.
        lowercase: the default of `do_lower_case`.
        words_first: true if text is cut at white space before blanks become `▁`.
        first, replaced: pieces (or roles) that replace the first `replaced` pieces of a SentencePiece file.
        mask_piece: true if the mask is the last piece of the model.
    """

    names: Mapping[str, str]
    kind: str
    classes: tuple[str, ...]
    files: tuple[str, ...]
    separators: int = 1
    segments: bool = True
    mask_strips: bool = True
    class_errs: bool = False
    written: str | None = None
    steps: tuple[str, ...] = ()
    lowercase: bool = False
    words_first: bool = True
    first: tuple[str, ...] = ()
    replaced: int = 0
    mask_piece: bool = False


_BRACKETS = {f"{role}_token": f"[{role.upper()}]" for role in ("pad", "unk", "cls", "sep", "mask")}
_ANGLES = {
    "cls_token": "<s>",
    "pad_token": "<pad>",
    "sep_token": "</s>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
}
_DEBERTA_NAMES = {f"{role}_token": f"[{role.upper()}]" for role in ("pad", "cls", "sep", "unk", "mask")}

BERT = TokenizerFacts(
    names=_BRACKETS, kind="WordPiece", classes=("BertTokenizer",), files=("vocab.txt",), mask_strips=False
)
_ROBERTA = TokenizerFacts(
    names=_ANGLES,
    kind="BPE",
    classes=("RobertaTokenizer",),
    files=("vocab.json", "merges.txt"),
    separators=2,
    segments=False,
    written="RobertaTokenizer",
)
_XLM_ROBERTA = TokenizerFacts(
    names=_ANGLES,
    kind="Unigram",
    classes=("XLMRobertaTokenizer",),
    files=("sentencepiece.bpe.model",),
    separators=2,
    segments=False,
    steps=("charsmap",),
    first=("cls_token", "pad_token", "sep_token", "unk_token"),  # fairseq's
    replaced=3,
    mask_piece=True,
)
_DEBERTA = replace(
    _ROBERTA,
    names=_DEBERTA_NAMES,
    classes=("DebertaTokenizer",),
    separators=1,
    segments=True,
    class_errs=True,
    written=None,
)
TOKENIZERS: dict[str, TokenizerFacts] = {
    "bert": BERT,
    "distilbert": replace(BERT, classes=("BertTokenizer", "DistilBertTokenizer"), segments=False),
    "electra": replace(BERT, classes=("BertTokenizer", "ElectraTokenizer")),
    "roberta": _ROBERTA,
    "xlm-roberta": _XLM_ROBERTA,
    "camembert": replace(
        _XLM_ROBERTA,
        classes=("CamembertTokenizer",),
        first=("<s>NOTUSED", "pad_token", "</s>NOTUSED", "unk_token", "<unk>NOTUSED"),
        replaced=1,
    ),
    "albert": TokenizerFacts(
        names={**_BRACKETS, "pad_token": "<pad>", "unk_token": "<unk>"},
        kind="Unigram",
        classes=("AlbertTokenizer",),
        files=("spiece.model",),
        steps=("quotes", "accents", "lowercase", "charsmap"),
        lowercase=True,
    ),
    "deberta": _DEBERTA,
    "deberta-v2": TokenizerFacts(
        names=_DEBERTA_NAMES,
        kind="Unigram",
        classes=("DebertaV2Tokenizer",),
        files=("spm.model",),
        mask_strips=False,
        steps=("lowercase", "blanks"),
        words_first=False,
    ),
    "modernbert": TokenizerFacts(names=_BRACKETS, kind="BPE", classes=(), files=(), segments=False),
}
"""`model_type` -> its facts."""
