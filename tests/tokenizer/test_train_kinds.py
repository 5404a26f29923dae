"""Vocabularies of every kind for every family: special tokens, the same in every process, saved folders."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import transformers

from bertcli.families.family import FamilyName, TokenizerKind
from bertcli.families.registry import NEW
from bertcli.families.tokenizers import TOKENIZERS
from bertcli.system.errors import UserError
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.tokenizer.train import train_tokenizer
from tests.tokenizer.tokenizers_of import LINES, sample_lines, write_json

KINDS: tuple[TokenizerKind, ...] = ("wordpiece", "byte-bpe", "unigram")
SIZE = 700
CHINESE = [
    "今天天气很好，我们去公园散步。",
    "明天天气也很好，他们去学校上课。",
    "北京是中国的首都，上海是最大的城市。",
] * 20
HASHES = """
import gzip
from bertcli.families.tokenizers import TOKENIZERS
from bertcli.samples import SAMPLES
from bertcli.tokenizer.train import train_tokenizer
with gzip.open(SAMPLES["classics"], "rt", encoding="utf-8") as file:
    lines = file.read().split("\\n")
print(train_tokenizer(lines[:1500], 3000, lowercase=False).hash)
for kind in ("byte-bpe", "unigram"):
    print(train_tokenizer(lines[:400], 700, lowercase=False, kind=kind, facts=TOKENIZERS["albert"]).hash)
"""


def trained(family: FamilyName, kind: TokenizerKind) -> Tokenizer:
    facts = TOKENIZERS[NEW[family].family.model_type]
    same = next(model_type for model_type, other in TOKENIZERS.items() if other == facts)
    return trained_once(same, kind)


@cache
def trained_once(model_type: str, kind: TokenizerKind) -> Tokenizer:
    facts = TOKENIZERS[model_type]
    return train_tokenizer(sample_lines(100), SIZE, lowercase=False, kind=kind, facts=facts)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", NEW)
def test_special_tokens_are_the_familys_and_come_first(family: FamilyName, kind: TokenizerKind) -> None:
    tokenizer, facts = trained(family, kind), TOKENIZERS[NEW[family].family.model_type]
    assert tokenizer.vocab_size <= SIZE
    assert [tokenizer.token(i) for i in range(5)] == list(facts.names.values())
    assert tokenizer.mask_token == facts.names["mask_token"]
    assert len(tokenizer.frame.between) == facts.separators
    assert tokenizer.mask_strips or not facts.mask_strips
    assert len(set(tokenizer.encode("The cat sat on the mat.")) & set(range(5))) == 0


def test_the_published_order_of_special_tokens() -> None:
    assert trained("roberta", "byte-bpe").pad_id == 1
    assert [trained("deberta-v3", "unigram").token(i) for i in range(4)] == [
        "[PAD]",
        "[CLS]",
        "[SEP]",
        "[UNK]",
    ]


def test_separate_processes_train_the_same_vocabularies() -> None:
    command = [sys.executable, "-c", HASHES]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    found = [run.communicate()[0].split() for run in runs]
    assert found[0] == found[1] == found[2]
    assert len({name for name in found[0] if len(name) == 64}) == 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", ["bert", "roberta", "albert", "deberta", "deberta-v3", "modernbert"])
def test_transformers_reads_the_saved_folder_to_the_same_ids(
    tmp_path: Path, family: FamilyName, kind: TokenizerKind
) -> None:
    tokenizer = trained(family, kind)
    write_json(tmp_path / "config.json", {"model_type": NEW[family].family.model_type})
    tokenizer.save(tmp_path)
    assert Tokenizer.load(tmp_path).hash == tokenizer.hash
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    texts = [text for text in LINES if text]
    for text, ids in zip(texts, tokenizer.encode_batch(texts), strict=True):
        assert theirs(text, add_special_tokens=False)["input_ids"] == ids, text
        pair = tokenizer.frame.row(ids, ids).ids
        assert theirs(text, text)["input_ids"] == list(pair)
    assert theirs.mask_token == tokenizer.mask_token


def test_many_rare_characters_fit_no_unigram_and_are_unknown() -> None:
    common = "".join(chr(0x4E00 + i) for i in range(60))
    lines = [common * 20, *("".join(chr(0x5000 + i + j) for j in range(40)) for i in range(0, 4000, 40))]
    facts = TOKENIZERS["albert"]
    tokenizer = train_tokenizer(lines, 1500, lowercase=False, kind="unigram", facts=facts)
    assert tokenizer.vocab_size <= 1500
    assert tokenizer.unk_id not in tokenizer.encode(common)
    assert any(tokenizer.unk_id in tokenizer.encode(line) for line in lines[1:])


@pytest.mark.parametrize("kind", ["byte-bpe", "unigram"])
def test_text_without_blanks_is_cut_into_more_than_characters(kind: TokenizerKind) -> None:
    tokenizer = train_tokenizer(CHINESE, 400, lowercase=False, kind=kind)
    text = CHINESE[0]
    ids = tokenizer.encode(text)
    assert tokenizer.unk_id not in ids
    assert len(ids) < len(text)
    words = [i for i in ids if not tokenizer.continuation[i]]
    assert len(words) >= len(ids) / 2  # masking by words does not take a whole sentence
    assert tokenizer.join(tokenizer.token(i) for i in ids) == text


@pytest.mark.parametrize("kind", ["byte-bpe", "unigram"])
def test_case_and_accents_are_kept_or_removed_on_request(kind: TokenizerKind) -> None:
    def words(lowercase: bool, strip_accents: bool = False) -> str:
        texts = ["Émile a été à Zürich"] * 9
        tokenizer = train_tokenizer(texts, 330, lowercase, strip_accents=strip_accents, kind=kind)
        return tokenizer.join(map(tokenizer.token, tokenizer.encode("Émile, été")))

    assert words(lowercase=False) == "Émile, été"
    assert words(lowercase=True) == "émile, été"
    assert words(lowercase=True, strip_accents=True) == "emile, ete"


@pytest.mark.parametrize(
    ("kind", "says"),
    [("byte-bpe", "the 256 bytes and the special tokens are 261"), ("unigram", "the blank and the special")],
)
def test_a_vocabulary_that_is_too_small_is_refused(kind: TokenizerKind, says: str) -> None:
    with pytest.raises(UserError, match=f"{says}.*Set tokenizer.vocab_size"):
        train_tokenizer(["a few words"], 50, kind=kind)


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_is_refused(kind: TokenizerKind) -> None:
    with pytest.raises(UserError, match="no text to train"):
        train_tokenizer(["", "  "], 500, kind=kind)


def test_unigram_without_sentencepiece_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(UserError, match=r"pip install 'bertcli\[unigram\]'"):
        train_tokenizer(["some words"], 500, kind="unigram")


def test_a_small_text_gives_fewer_entries() -> None:
    for kind in KINDS:
        assert train_tokenizer(["only a few words here"] * 3, 5000, kind=kind).vocab_size < 1000


def test_a_unigram_in_lower_case_has_no_capitals() -> None:
    lines = ["The Acme™ firm, № 5: 𝐀, Éclair and İstanbul"] * 30
    tokenizer = train_tokenizer(lines, 200, lowercase=True, kind="unigram")
    read = tokenizer.backend.normalizer.normalize_str(lines[0])
    assert read == read.lower()
    assert tokenizer.lowercase
    assert tokenizer.unk_id not in tokenizer.encode(lines[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", NEW)
def test_pieces_beside_masks_have_their_places(family: FamilyName, kind: TokenizerKind) -> None:
    tokenizer = trained(family, kind)
    mask = tokenizer.mask_token
    texts = [f"The {mask} sat, and {mask} ran.", f"a{mask} {mask}{mask} é ", f"  {mask}\n"]
    for text, placed in zip(texts, tokenizer.encode_with_spans(texts, masks=True), strict=True):
        assert placed.ids == tokenizer.encode_with_masks([text])[0]
        shown = [text[start:end] for start, end in placed.spans.tolist()]
        assert [each for each in shown if each == mask] == [mask] * text.count(mask)
        assert [each for each in shown if each != each.strip()] == []
