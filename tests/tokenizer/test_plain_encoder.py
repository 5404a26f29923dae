"""No text yields a special token, also where the model holds it as a piece; other texts keep their ids."""

from __future__ import annotations

import tokenizers
from tokenizers import models, pre_tokenizers

from bertcli.tokenizer.encoder import PlainEncoder, with_text_token

PIECES = [("<unk>", 0.0), ("</s>", 0.0), ("<mask>", 0.0), *((letter, -2.0) for letter in "</s>mak▁ ab")]


def backend() -> tokenizers.Tokenizer:
    made = tokenizers.Tokenizer(models.Unigram(PIECES, 0, byte_fallback=False))
    made.add_special_tokens(["</s>", "<mask>"])
    return made


def test_a_special_token_in_a_text_is_cut():
    texts = ["ab", "a</s>b", "</s></s>", ""]
    plain = backend()
    plain.encode_special_tokens = True
    assert 1 in plain.encode(texts[1]).ids  # what the library does alone
    encoder = PlainEncoder(backend(), {"</s>": 1})
    for before in (None, pre_tokenizers.Metaspace(prepend_scheme="never")):
        made = backend()
        made.pre_tokenizer = before
        encoded = PlainEncoder(made, {"</s>": 1}).encode(texts, places=True)
        assert [encoding.tokens for _, encoding in encoded] == [
            ["a", "b"],
            ["a", "<", "/", "s", ">", "b"],
            ["<", "/", "s", ">"] * 2,
            [],
        ]
        assert encoded[1][1].offsets == [(i, i + 1) for i in range(6)]
    assert [ids for ids, _ in encoder.encode(texts)] == [ids for ids, _ in encoder.encode(texts, places=True)]


def test_one_token_may_be_read_in_texts():
    for made in (backend(), tokenizers.Tokenizer(models.Unigram(PIECES, 0, byte_fallback=False))):
        encoder = PlainEncoder(with_text_token(made, "<mask>"), {"</s>": 1})
        ((ids, encoding),) = encoder.encode(["a<mask></s>"], places=True)
        assert (ids.count(2), encoding.tokens) == (1, ["a", "<mask>", "<", "/", "s", ">"])


def test_the_library_gets_few_texts_at_once(monkeypatch):
    """Ctrl-C waits for a call of the library."""
    monkeypatch.setattr("bertcli.tokenizer.encoder._AT_ONCE", 2)
    calls = []

    class Watched:
        def encode_batch_fast(self, texts, add_special_tokens):
            calls.append(texts)
            return backend().encode_batch_fast(texts, add_special_tokens=add_special_tokens)

    texts = ["a b", "b", "", "a", "b a"]
    whole = backend().encode_batch_fast(texts, add_special_tokens=False)
    encoder = PlainEncoder(Watched(), {"</s>": 1})  # pyright: ignore[reportArgumentType]
    encoded = encoder.encode(texts)
    assert calls == [["a b", "b"], ["", "a"], ["b a"]]
    assert [ids for ids, _ in encoded] == [encoding.ids for encoding in whole]
