"""New words in a model's vocabulary: shorter text, old ids unchanged, embeddings of the pieces replaced."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from bertcli.folders.model_folder import load_model_folder
from bertcli.tokenizer import extend as new_pieces
from bertcli.tokenizer import train as train_tokenizer_module
from bertcli.tokenizer.extend import extend
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.tokenizer.train import train_tokenizer
from tests.families.published import FAMILY_TYPES, family_folder
from tests.small_runs import run_cli, write_config
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


@pytest.mark.parametrize("model_type", FAMILY_TYPES)
def test_the_extended_folder_is_a_model_that_transformers_reads(tmp_path: Path, model_type: str) -> None:
    source = family_folder(model_type, tmp_path / "model")
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n\n".join(MEDICINE), encoding="utf-8")
    config = write_config(
        tmp_path / "config.yaml", {"output_dir": str(tmp_path / "run"), "corpus": {"files": [str(corpus)]}}
    )
    out = tmp_path / "extended"
    result = run_cli("extend-vocab", source, config, out, "--add", 5, "--json")
    assert result.returncode == 0, result.stderr
    said = json.loads(result.stdout)
    assert said["added"] == 5
    assert said["pieces_per_word_after"] < said["pieces_per_word_before"]
    before, after = load_model_folder(source, pairs=False), load_model_folder(out, pairs=False)
    first = before.tokenizer.vocab_size
    old, new = (each.model.body.embeddings.word.weight for each in (before, after))
    assert torch.equal(new[:first], old[:first])
    piece = after.tokenizer.token(first)
    done = extend(before.tokenizer, MEDICINE, 5, report=pytest.fail)
    replaced = [done.replaced[number - first] for number in range(first, first + 5)]
    means = torch.stack([old[ids].mean(dim=0) for ids in replaced])
    torch.testing.assert_close(new[first : first + 5], means, rtol=0, atol=1e-6)
    old, new = (each.model.mlm_head.bias for each in (before, after))
    means = torch.stack([old[ids].mean() for ids in replaced])
    torch.testing.assert_close(new[first : first + 5], means, rtol=0, atol=1e-6)
    theirs = transformers.AutoTokenizer.from_pretrained(out)
    ids = theirs(MEDICINE[0], add_special_tokens=False)["input_ids"]
    assert ids == after.tokenizer.encode(MEDICINE[0])
    assert theirs.convert_ids_to_tokens([first]) == [piece]


def test_a_head_that_has_no_place_is_named(tmp_path: Path) -> None:
    source = family_folder("bert", tmp_path / "model")
    tensors = load_file(source / "model.safetensors") | {"classifier.weight": torch.ones(2, 4)}
    save_file(tensors, source / "model.safetensors", metadata={"format": "pt"})
    config = write_config(
        tmp_path / "config.yaml", {"output_dir": str(tmp_path / "run"), "corpus": {"files": ["classics"]}}
    )
    result = run_cli("extend-vocab", source, config, tmp_path / "out", "--add", 2)
    assert result.returncode == 0, result.stderr
    said = "dropped, since no class of transformers holds it with the rest: classifier.weight\n"
    assert said in result.stderr


def test_an_existing_folder_is_refused(tmp_path: Path) -> None:
    source = family_folder("bert", tmp_path / "model")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    config = write_config(
        tmp_path / "config.yaml", {"output_dir": str(tmp_path / "run"), "corpus": {"files": ["classics"]}}
    )
    result = run_cli("extend-vocab", source, config, tmp_path / "out", "--add", 2)
    assert result.returncode == 2
    assert "exists already" in result.stderr
    assert "reading" not in result.stderr  # found before the corpus is read
    assert (tmp_path / "out" / "mine.txt").read_text() == "mine"
