"""New pieces of a tokenizer: text gets shorter, old ids stay, and other words are cut as before."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from bertcli.tokenizer import extend as new_pieces
from bertcli.tokenizer import train as train_tokenizer_module
from bertcli.tokenizer.extend import extend
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.tokenizer.train import train_tokenizer
from tests.tokenizer.tokenizers_of import make_tokenizer_folder, sample_lines

MEDICINE = [
    "the cardiomyopathy of the patient was treated with angioplasty and thrombolysis",
    "angioplasty, thrombolysis and cardiomyopathy: a cardiologist decides",
    "no thrombolysis after angioplasty; art is not a part of it",
] * 20


@pytest.mark.parametrize("model_type", ["bert", "roberta", "albert", "deberta", "deberta-v2", "modernbert"])
def test_text_gets_shorter_and_old_ids_stay(tmp_path: Path, model_type: str) -> None:
    before = Tokenizer.load(make_tokenizer_folder(model_type, tmp_path))
    done = extend(before, MEDICINE, 6, report=pytest.fail)
    after = done.tokenizer
    assert after.vocab_size == before.vocab_size + 6
    assert len(done.replaced) == 6
    assert done.after < 0.9 * done.before
    again = extend(after, MEDICINE, 1, report=lambda line: None)
    assert again.before == pytest.approx(done.after)  # of words that are all cut anew
    old, new = before.backend.get_vocab(), after.backend.get_vocab()
    assert all(new[piece] == number for piece, number in old.items())
    texts = [*MEDICINE[:3], *sample_lines(100)[:50]]
    for text, ids, others in zip(texts, before.encode_batch(texts), after.encode_batch(texts), strict=True):
        assert len(others) <= len(ids), text
        apart = [
            each
            for i in others
            for each in (done.replaced[i - before.vocab_size] if i >= before.vocab_size else [i])
        ]
        if before.kind != "Unigram":  # there a new piece may move the best cut of its neighbors
            assert apart == ids
    assert after.special_ids == before.special_ids
    assert after.mask_id not in after.encode(f"a {after.mask_token} b")


def test_choosing_says_how_long_it_has_taken_and_ends_at_once_on_ctrl_c(monkeypatch: pytest.MonkeyPatch):
    tokenizer = train_tokenizer(["a part of the party departs"] * 9, 300)
    monkeypatch.setattr(new_pieces, "_MOST_SPANS", 20)
    assert len(extend(tokenizer, MEDICINE, 5, report=lambda line: None).replaced) == 5
    monkeypatch.setattr(train_tokenizer_module, "BETWEEN_LINES", 0.0)
    released = threading.Event()
    monkeypatch.setattr(new_pieces, "_extended", lambda *given, **named: released.wait())

    def interrupt(line: str) -> None:
        assert line.startswith("choosing pieces: ")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        extend(tokenizer, MEDICINE, 5, report=interrupt)
    released.set()


def test_unknown_characters_are_no_parts_of_a_piece(tmp_path: Path) -> None:
    """A Unigram gives them as they stand in the text."""
    before = Tokenizer.load(make_tokenizer_folder("albert", tmp_path))
    done = extend(before, ["cat☃☃ hat☃☃ cardiology"] * 30, 3, report=lambda line: None)
    assert done.replaced
    assert all(before.unk_id not in ids for ids in done.replaced)


def test_registered_tokens_stay_special(tmp_path: Path) -> None:
    folder = make_tokenizer_folder("roberta", tmp_path)
    path = folder / "tokenizer.json"
    pipeline = json.loads(path.read_text())
    new_id = (
        max([*pipeline["model"]["vocab"].values(), *(each["id"] for each in pipeline["added_tokens"])]) + 1
    )
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    pipeline["added_tokens"].append({"id": new_id, "content": "<user>", **flags, "special": True})
    path.write_text(json.dumps(pipeline))
    done = extend(Tokenizer.load(folder), MEDICINE, 3, report=pytest.fail)
    done.tokenizer.save(tmp_path / "saved")
    saved = json.loads((tmp_path / "saved" / "tokenizer.json").read_text())["added_tokens"]
    assert {each["content"]: each["special"] for each in saved}["<user>"] is True


def test_a_piece_never_cuts_other_words() -> None:
    """As an added token, `art` would turn `part` into `p` and `art`."""
    tokenizer = train_tokenizer(["a part of the party departs"] * 9, 300)
    done = extend(tokenizer, ["art and art for art"] * 20, 3, report=lambda line: None)
    words = ["part", "party", "departs"]
    assert tokenizer.encode_batch(words) == done.tokenizer.encode_batch(words)
    assert len(done.tokenizer.encode("art")) == 1
