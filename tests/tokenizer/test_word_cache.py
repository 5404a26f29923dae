"""The cache of words gives the tokenizer's own ids, for any text and at any size."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from bertcli.samples import SAMPLES
from bertcli.tokenizer import word_cache
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.tokenizer.train import train_tokenizer
from bertcli.tokenizer.word_cache import WordCache
from bertcli.tokenizer.wordpiece import Normalization, build


def classics() -> list[str]:
    with gzip.open(SAMPLES["classics"], "rt", encoding="utf-8") as file:
        return file.read().split("\n")[:3000:10]


TOKENIZER = train_tokenizer(classics(), 1000)
CASED = Tokenizer(
    build(
        [TOKENIZER.token(i) for i in range(TOKENIZER.vocab_size)],
        Normalization(lowercase=False, strip_accents=True),
    ),
    "the vocabulary",
)
BYTES = train_tokenizer(classics(), 1000, lowercase=False, kind="byte-bpe")
PIECES = train_tokenizer(classics(), 1000, kind="unigram")
# Anything that case, accents, ideographs, control characters and kinds of white space can do near a blank.
TEXTS = st.lists(
    st.one_of(
        st.text(max_size=20),
        st.text(
            alphabet="aA ΣσςİIß\u0301\u0327\u302e é한글日\t\n\r\x00\x1c\u00a0\u2028\u200b\ufffd.,[]MASK",
            max_size=30,
        ),
    ),
    max_size=5,
)


def by_sentence(cache: WordCache, texts: list[str]) -> list[list[int]]:
    encoded = cache.encode(texts)
    assert (encoded.ids.dtype, encoded.lengths.dtype) == (np.uint32, np.uint32)
    return [ids.tolist() for ids in np.split(encoded.ids, np.cumsum(encoded.lengths))[:-1]]


@given(texts=TEXTS)
def test_any_text_gets_the_ids_of_the_tokenizer(texts: list[str]):
    for tokenizer in (TOKENIZER, CASED, BYTES, PIECES):
        assert tokenizer.cut("a b") == ["a", "b"]
        assert by_sentence(WordCache(tokenizer), texts) == tokenizer.encode_batch(texts)


def test_prose_gets_the_ids_of_the_tokenizer_time_and_again():
    cache, texts = WordCache(TOKENIZER), classics()
    for _ in range(2):
        assert by_sentence(cache, texts) == TOKENIZER.encode_batch(texts)


@pytest.mark.parametrize(("limit", "value"), [("MAX_WORDS", 50), ("MAX_CHARACTERS", 300)])
def test_memory_is_bounded_by_forgetting(limit: str, value: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(word_cache, limit, value)
    cache, texts = WordCache(TOKENIZER), classics()[:60]
    assert [by_sentence(cache, [text])[0] for text in texts] == TOKENIZER.encode_batch(texts)
    assert len(cache._numbers) <= 60


def test_a_tokenizer_that_looks_past_blanks_is_asked_for_whole_sentences():
    backend = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({**TOKENIZER._backend.get_vocab()}, unk_token="[UNK]")
    )
    backend.normalizer = tokenizers.normalizers.BertNormalizer()
    backend.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    backend.add_tokens(["the house"])
    tokenizer = Tokenizer(backend, "test")
    assert tokenizer.cut("a b") == ["a b"]
    texts = ["in the house of", "in the garden"]
    assert by_sentence(WordCache(tokenizer), texts) == tokenizer.encode_batch(texts)
    assert tokenizer.vocab_size - 1 in tokenizer.encode(texts[0])
