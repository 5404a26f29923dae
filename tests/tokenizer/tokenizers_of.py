"""Small tokenizers of every model type, in folders laid out as the published ones."""

from __future__ import annotations

import gzip
import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import sentencepiece
import tokenizers
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers

from bertcli.samples import SAMPLES
from bertcli.tokenizer.train import train_tokenizer
from tests.wordpieces import wordpiece

ROBERTA = ("<s>", "<pad>", "</s>", "<unk>")
DEBERTA = ("[PAD]", "[CLS]", "[SEP]", "[UNK]")
BERT_TYPES = ("bert", "distilbert", "electra")
BPE_TYPES = ("roberta", "deberta", "modernbert")
UNIGRAM_FILES = {
    "albert": "spiece.model",
    "camembert": "sentencepiece.bpe.model",
    "deberta-v2": "spm.model",
    "xlm-roberta": "sentencepiece.bpe.model",
}
MODEL_TYPES = (*BERT_TYPES, *BPE_TYPES, *UNIGRAM_FILES)
SLOW_TYPES = tuple(model_type for model_type in MODEL_TYPES if model_type != "modernbert")
"""Those whose models were published without a tokenizer.json, or could be."""
MASKS = dict.fromkeys(MODEL_TYPES, "[MASK]") | dict.fromkeys(
    ("roberta", "camembert", "xlm-roberta"), "<mask>"
)

LINES = (
    "I ate 12 eggs, didn't I? (No: 3.50 £ each.)",
    "a family 👨‍👩‍👧 and a flag 🇫🇷, 🎉🎉!",
    "日本語と中文 mixed with English",
    "السلام عليكم يا أصدقائي",
    "tabs\there\t\tand  two blanks   three",
    "no-break\u00a0blanks\u00a0\u00a0here\u2003and an em space",
    "cafe\u0301 and café, E\u0301TE\u0301 and ÉTÉ, ﬁne ½ Ⅷ ＡＢＣ",
    " a leading blank and a trailing one ",
    "``quoted'' and “quoted”, a\u0000b \ufffd \u200b x",
    "line\nbreak\r\nhere",
    "x" * 120,
    "",
    " ",
    " \t\u00a0 ",
)
"""Texts that tokenizers cut in different ways."""


@cache
def sample_lines(number: int = 400) -> tuple[str, ...]:
    """Lines of the sample corpus, and `LINES`."""
    with gzip.open(SAMPLES["classics"], "rt", encoding="utf-8") as file:
        text = [line for line in file.read().split("\n") if line.strip()]
    return (*text[:: len(text) // number][:number], *LINES)


def make_tokenizer_folder(model_type: str, folder: Path, slow: bool = False, vocab_size: int = 400) -> Path:
    """Write the tokenizer's files of a published model, and a config.json with its type alone.

    Args:
        slow: only the vocabulary's own files, without a tokenizer.json.
        vocab_size: at most; special tokens come in addition for some types. It decides how much is read.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", {"model_type": model_type})
    if model_type in BERT_TYPES:
        _wordpiece(folder, vocab_size)
    elif model_type in BPE_TYPES:
        _byte_bpe(model_type, folder, vocab_size)
    else:
        _unigram(model_type, folder, vocab_size)
    if slow:
        (folder / "tokenizer.json").unlink()
    return folder


def write_json(path: Path, value: Any) -> None:
    """Write one JSON file."""
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def change_json(path: Path, **values: Any) -> None:
    """Change some keys of a JSON file, which may be absent."""
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    write_json(path, before | values)


def _wordpiece(folder: Path, vocab_size: int) -> None:
    pieces = _trained_wordpiece(vocab_size)
    model_config = (folder / "config.json").read_bytes()
    (folder / "config.json").unlink()
    wordpiece(pieces).save(folder)
    (folder / "config.json").write_bytes(model_config)
    write_json(folder / "tokenizer_config.json", {"do_lower_case": True, "model_max_length": 512})


@cache
def _trained_wordpiece(vocab_size: int) -> list[str]:
    trained = train_tokenizer(list(sample_lines(vocab_size // 2)), vocab_size, strip_accents=True)
    return [trained.token(i) for i in range(trained.vocab_size)]


@cache
def _trained_bpe(size: int, first: tuple[str, ...]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(first),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    backend.train_from_iterator(sample_lines(size // 2), trainer)
    model = json.loads(backend.to_str())["model"]
    return model["vocab"], [tuple(merge) for merge in model["merges"]]


def _byte_bpe(model_type: str, folder: Path, vocab_size: int) -> None:
    first = {"roberta": ROBERTA, "deberta": DEBERTA, "modernbert": ()}[model_type]
    vocab, merges = _trained_bpe(vocab_size, first)
    mask = AddedToken(MASKS[model_type], lstrip=True, normalized=False, special=True)
    if model_type != "modernbert":
        vocab = vocab | {MASKS[model_type]: len(vocab)}
        write_json(folder / "vocab.json", vocab)
        lines = ["#version: 0.2", *(" ".join(merge) for merge in merges)]
        (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    parts = {"continuing_subword_prefix": "", "end_of_word_suffix": ""} if first else {}
    backend = tokenizers.Tokenizer(models.BPE(vocab, merges, **parts))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    config: dict[str, Any] = {"model_max_length": 512}
    special = list(first)
    if model_type == "modernbert":
        backend.normalizer = normalizers.NFC()
        backend.add_tokens([AddedToken(" " * n, normalized=True) for n in (4, 3, 2)])
        special = ["[UNK]", "[CLS]", "[SEP]", "[PAD]"]
        config |= {f"{name[1:-1].lower()}_token": name for name in (*special, "[MASK]")}
        config |= {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_input_names": ["input_ids", "attention_mask"],
        }
    backend.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in special])
    backend.add_special_tokens([mask])
    _add_rows(backend, model_type)
    backend.save(str(folder / "tokenizer.json"))
    write_json(folder / "tokenizer_config.json", config)


@cache
def _trained_spm(model_type: str, vocab_size: int) -> bytes:
    layouts: dict[str, dict[str, Any]] = {
        "albert": {
            **{"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1},
            "control_symbols": ["[CLS]", "[SEP]", "[MASK]"],
            "user_defined_symbols": ["(", ")", '"', "-", ".", "–", "£", "€"],
        },
        "deberta-v2": {
            **{"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3},
            **{"pad_piece": "[PAD]", "bos_piece": "[CLS]", "eos_piece": "[SEP]", "unk_piece": "[UNK]"},
        },
    }
    written, lines = io.BytesIO(), sample_lines(vocab_size // 2)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(line for line in lines if line.strip() and "\x00" not in line),
        model_writer=written,
        vocab_size=vocab_size,
        model_type="unigram",
        minloglevel=2,
        num_threads=1,
        **layouts.get(model_type, {}),
    )
    return written.getvalue()


def _unigram(model_type: str, folder: Path, vocab_size: int) -> None:
    data = _trained_spm(model_type, vocab_size)
    (folder / UNIGRAM_FILES[model_type]).write_bytes(data)
    processor = sentencepiece.SentencePieceProcessor(model_proto=data)
    pieces = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(processor.get_piece_size())]
    if model_type == "xlm-roberta":
        pieces = [*((name, 0.0) for name in ROBERTA), *pieces[3:], ("<mask>", 0.0)]
    elif model_type == "camembert":
        first = [("<s>NOTUSED", 0.0), ("<pad>", 0.0), ("</s>NOTUSED", 0.0), ("<unk>", 0.0)]
        pieces = [*first, ("<unk>NOTUSED", -100.0), *pieces[1:], ("<mask>", 0.0)]
    names = [name for name, _ in pieces]
    unknown = "[UNK]" if model_type == "deberta-v2" else "<unk>"
    backend = tokenizers.Tokenizer(models.Unigram(pieces, names.index(unknown), byte_fallback=False))
    charsmap = normalizers.Precompiled(_charsmap(data))
    metaspace = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    config: dict[str, Any] = {"model_max_length": 512}
    if model_type == "albert":
        quotes = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
        accents = [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
        backend.normalizer = normalizers.Sequence([*quotes, *accents, charsmap])
    elif model_type == "deberta-v2":
        blanks = normalizers.Replace(Regex(r"\s{2,}|[\n\r\t]"), " ")
        steps = [blanks, normalizers.NFC(), normalizers.Strip(left=False, right=True)]
        backend.normalizer = normalizers.Sequence(steps)
        config |= {"do_lower_case": False, "vocab_type": "spm"}
    else:
        backend.normalizer = charsmap
    parts = [metaspace] if model_type == "deberta-v2" else [pre_tokenizers.WhitespaceSplit(), metaspace]
    backend.pre_tokenizer = pre_tokenizers.Sequence(parts)
    special = DEBERTA if model_type == "deberta-v2" else ROBERTA
    if model_type == "albert":
        special = ("<pad>", "<unk>", "[CLS]", "[SEP]")
    backend.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in special])
    lstrip = model_type != "deberta-v2"
    backend.add_special_tokens([AddedToken(MASKS[model_type], lstrip=lstrip, normalized=False, special=True)])
    _add_rows(backend, model_type)
    backend.save(str(folder / "tokenizer.json"))
    write_json(folder / "tokenizer_config.json", config)


def _add_rows(backend: tokenizers.Tokenizer, model_type: str) -> None:
    """The rows of the original: `<s> A </s></s> B </s>`, or `[CLS] A [SEP] B [SEP]` in two segments."""
    ids = backend.get_vocab()
    if model_type == "roberta":
        backend.post_processor = processors.RobertaProcessing(
            ("</s>", ids["</s>"]), ("<s>", ids["<s>"]), trim_offsets=True, add_prefix_space=False
        )
    elif MASKS[model_type] == "<mask>":
        backend.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>",
            pair="<s> $A </s> </s> $B </s>",
            special_tokens=[(name, ids[name]) for name in ("<s>", "</s>")],
        )
    else:
        backend.post_processor = processors.TemplateProcessing(
            single="[CLS]:0 $A:0 [SEP]:0",
            pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
            special_tokens=[(name, ids[name]) for name in ("[CLS]", "[SEP]")],
        )


def _charsmap(data: bytes) -> bytes:
    model = sentencepiece_model_pb2.ModelProto.FromString(data)  # pyright: ignore[reportAttributeAccessIssue]
    return model.normalizer_spec.precompiled_charsmap
