"""The old pieces from which a new vocabulary gets its vectors, in every notation."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertcli.tokenizer import transplant, wordpiece
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.tokenizer.train import train_tokenizer
from bertcli.tokenizer.transplant import Origins, find_origins, pieces_of
from tests.tokenizer.tokenizers_of import make_tokenizer_folder

KINDS = ("bert", "roberta", "albert")
"""WordPiece, byte-level BPE, Unigram."""


def of_pieces(*pieces: str) -> Tokenizer:
    return Tokenizer(wordpiece.build([*wordpiece.SPECIAL_TOKENS, *pieces], wordpiece.Normalization()), "it")


def by_piece(origins: Origins, old: Tokenizer, new: Tokenizer) -> dict[str, dict[str, float]]:
    """New piece -> the old pieces that it is made of."""
    return {
        new.token(number): {old.token(each): weight for each, weight in parts.items()}
        for number, parts in enumerate(origins.mixed)
    }


@pytest.mark.parametrize("new_type", KINDS)
@pytest.mark.parametrize("old_type", KINDS)
def test_equal_pieces_are_copied_and_all_others_are_made_or_drawn(
    tmp_path: Path, old_type: str, new_type: str
) -> None:
    old, new = (
        Tokenizer.load(make_tokenizer_folder(each, tmp_path / f"{number}"))
        for number, each in enumerate((old_type, new_type))
    )
    origins = find_origins(old, new)
    drawn = [number for new_ids, _ in origins.drawn for number in new_ids]
    mixed = [number for number, parts in enumerate(origins.mixed) if parts]
    assert sorted([*drawn, *mixed]) == list(range(new.vocab_size))
    assert sum(origins.counts.values()) == new.vocab_size
    assert all(sum(parts.values()) == pytest.approx(1.0) for parts in origins.mixed if parts)
    before, after = pieces_of(old), pieces_of(new)
    both = {number: piece for number, piece in after.items() if piece in before.values()}
    assert len(both) > 100
    for number, piece in both.items():
        ((old_id, weight),) = origins.mixed[number].items()
        assert (before[old_id], weight) == (piece, 1.0)
    if old_type == new_type:
        assert all(parts == {number: 1.0} for number, parts in enumerate(origins.mixed))
    for role, name in new.names.items():
        new_id, old_id = new.backend.token_to_id(name), old.backend.token_to_id(old.names[role])
        assert new_id is not None
        assert origins.mixed[new_id] == {old_id: 1.0}, role


def test_a_new_piece_is_the_mean_of_its_characters_pieces() -> None:
    old = of_pieces("un", "##un", "##happy", "happy", ",", "x")
    new = of_pieces("unhappy", "##unhappy", "##happyx", "xun,")
    origins = find_origins(old, new)
    found = by_piece(origins, old, new)
    assert found["unhappy"] == pytest.approx({"un": 2 / 7, "##happy": 5 / 7})
    assert found["##unhappy"] == pytest.approx({"##un": 2 / 7, "##happy": 5 / 7})
    assert found["xun,"] == pytest.approx({"x": 0.25, "##un": 0.5, ",": 0.25})
    assert found["##happyx"] == {}, "an unknown word has no parts"
    assert origins.counts == {"copied": 5, "made_from_old_pieces": 3, "drawn_by_script": 0, "drawn": 1}


def test_the_new_vocabulary_may_have_other_letters() -> None:
    old, new = of_pieces("london", "e"), of_pieces("London", "é")
    assert by_piece(find_origins(old, new), old, new) | {} == {
        **{name: {name: 1.0} for name in wordpiece.SPECIAL_TOKENS},
        "London": {"london": 1.0},
        "é": {"e": 1.0},
    }


def test_punctuation_is_found_at_either_place(tmp_path: Path) -> None:
    old = Tokenizer.load(make_tokenizer_folder("bert", tmp_path / "old"))
    new = Tokenizer.load(make_tokenizer_folder("roberta", tmp_path / "new"))
    found = by_piece(find_origins(old, new), old, new)
    assert found[","] == {",": 1.0}  # BERT never cuts it off as ##,
    assert found["Ġthe"] == {"the": 1.0}
    assert found["s"] == {"##s": 1.0}
    back = by_piece(find_origins(new, old), new, old)
    assert back[","] == {",": 1.0}


def test_letters_without_a_part_are_like_those_of_their_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transplant, "ENOUGH", 3)
    greek = ["α", "β", "γ", "##α", "##β", "##γ"]
    old = of_pieces("a", "##a", *greek)
    new = of_pieces("δ", "##δ", "д", "##д", "b")
    origins = find_origins(old, new)
    named = {tuple(map(new.token, new_ids)): [*map(old.token, old_ids)] for new_ids, old_ids in origins.drawn}
    assert named == {
        ("δ",): ["α", "β", "γ"],
        ("##δ",): ["##α", "##β", "##γ"],
        ("д", "b"): ["a", "α", "β", "γ"],
        ("##д",): ["##a", "##α", "##β", "##γ"],
    }
    assert (origins.counts["drawn_by_script"], origins.counts["drawn"]) == (2, 3)


def test_bytes_that_are_no_full_character_are_no_parts() -> None:
    old = train_tokenizer(["the cat"] * 9, 300, kind="byte-bpe")
    new = train_tokenizer(["мир и мир"] * 9, 300, kind="byte-bpe")
    origins = find_origins(old, new)
    found = by_piece(origins, old, new)
    world = new.token(new.encode("мир")[0])
    assert found[world] == {}
    assert all(parts == {piece: 1.0} for piece, parts in found.items() if len(piece) == 1 and piece != "▁")
