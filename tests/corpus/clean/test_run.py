"""`bertcli clean` end to end: what each rule takes, and the same bytes for any tasks, workers and kills."""

from __future__ import annotations

import json
import os
import random
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertcli.corpus.clean import folder as made
from bertcli.corpus.clean import run, stages
from bertcli.corpus.clean.copies import BANDS
from bertcli.corpus.clean.run import clean_corpus
from bertcli.corpus.engines import Placing
from bertcli.system.errors import UserError
from tests.corpus.builds import contents, make_config, short_chapters
from tests.small_runs import write_config

HERE = Placing(1, 1)
MENU = "Home\nAbout us\nContact and imprint\n"
RULES = ("mend", "shared_lines", "fewest_words", "repetition", "language", "copies", "near_copies")


def write_dirty(folder: Path) -> dict[str, Any]:
    """Two sources: pages with a menu, and chapters; in each something for every rule."""
    chapters = [chapter for chapter in short_chapters() if len(chapter) > 1200]
    pages = [MENU + chapter + "\nAll rights reserved" for chapter in chapters[:14]]
    words = chapters[20].split(" ")
    for place in random.Random(0).sample(range(len(words)), len(words) // 20):
        words[place] = "changed"
    dirty = [
        chapters[20],
        chapters[20].upper().replace("\n", " \n\n".replace("\n\n", "\n")),
        " ".join(words),
        "too short",
        "\n".join(["buy now at the best price in town"] * 12),
        "Es war einmal ein Müller, der hatte drei Söhne, eine Mühle, einen Esel und einen Kater. Die Söhne "
        "mußten mahlen, der Esel Getreide holen und Mehl forttragen.",
        chapters[21] + "\nThe cafÃ© was closed\x07 on Sunday.",
    ]
    (folder / "pages").mkdir()
    for number in range(2):
        (folder / "pages" / f"{number}.txt").write_text("\n\n".join(pages[number::2]), encoding="utf-8")
    lines = [json.dumps({"text": text}) for text in [*chapters[22:30], *dirty]]
    (folder / "dirty.jsonl").write_text("\n".join(lines), encoding="utf-8")
    sources = [
        {"files": str(folder / "pages"), "name": "pages"},
        {"files": str(folder / "dirty.jsonl"), "format": "jsonl", "name": "dirty"},
    ]
    return {"output_dir": str(folder / "run"), "corpus": {"sources": sources}}


def cleaned(
    config: Any, out: Path, placing: Placing = HERE, say: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    return clean_corpus(config, out, placing, dry_run=False, page=lambda account: "a page", report=say)


@pytest.fixture
def config(tmp_path: Path) -> Any:
    value = write_dirty(tmp_path)
    given = make_config(tmp_path).model_dump(exclude_unset=True)
    given["corpus"] = {"files": [], **value["corpus"]}
    return type(make_config(tmp_path)).model_validate(given)


def test_each_rule_takes_what_it_is_for(tmp_path: Path, run_bertcli) -> None:
    path = write_config(tmp_path / "c.yaml", write_dirty(tmp_path))
    out = tmp_path / "cleaned"
    code, printed, said = run_bertcli("clean", path, out, "--workers", 1, "--dry-run", "--json")
    assert code == 0, said
    assert not out.exists()
    code, printed, said = run_bertcli("clean", path, out, "--workers", 1, "--json")
    assert code == 0, said
    assert "going on with the interrupted work" in said
    account = json.loads(printed)
    assert account == json.loads((out / "clean.json").read_text(encoding="utf-8"))
    took = {
        rule: {name: each["documents"] for name, each in of.items()} for rule, of in account["rules"].items()
    }
    assert took == {
        "mend": {"pages": 0, "dirty": 1},
        "shared_lines": {"pages": 14, "dirty": 0},
        "fewest_words": {"pages": 0, "dirty": 1},
        "repetition": {"pages": 0, "dirty": 1},
        "language": {"pages": 0, "dirty": 1},
        "copies": {"pages": 0, "dirty": 1},
        "near_copies": {"pages": 0, "dirty": 1},
    }
    assert account["rules"]["shared_lines"]["pages"]["lines"] == 14 * 4
    assert {rule: bool(some) for rule, some in account["examples"].items()} == dict.fromkeys(RULES, True)
    assert account["examples"]["mend"][0]["after"].endswith("The café was closed on Sunday.")
    (near,) = account["examples"]["near_copies"]
    assert near["as"]["document"] == near["document"] - 2
    page = (out / "report.html").read_text(encoding="utf-8")
    assert all(f'id="{rule}"' in page for rule in RULES)
    code, printed, said = run_bertcli("clean", path, out)
    assert code == 2
    assert "exists already; name a new folder" in said
    again = {
        "output_dir": str(tmp_path / "again"),
        "corpus": {"files": str(out / "text"), "format": "jsonl", "heldout_fraction": 0.0},
    }
    code, printed, said = run_bertcli("prepare", write_config(tmp_path / "again.yaml", again), "--json")
    assert code == 0, said
    assert json.loads(printed)["documents"] == account["kept_documents"] == 14 + 8 + 2


def test_tasks_workers_and_kills_change_no_byte(config: Any, tmp_path: Path, monkeypatch) -> None:
    expected = cleaned(config, tmp_path / "one")
    bytes_ = contents(tmp_path / "one")
    assert cleaned(config, tmp_path / "two", Placing(3, 2)) == expected
    assert contents(tmp_path / "two") == bytes_
    out = tmp_path / "killed"
    write, left = made._write_bytes, 0

    def killed(path: Path, data: bytes) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        write(path, data)

    for files in (0, 1, 2, 3, 4):  # written before the kill
        left = files
        with monkeypatch.context() as patch:
            patch.setattr(made, "_write_bytes", killed)
            with pytest.raises(KeyboardInterrupt):
                cleaned(config, out)
    lines: list[str] = []
    assert cleaned(config, out, Placing(2, 1), lines.append) == expected
    assert contents(out) == bytes_
    assert any("going on with the interrupted work" in line for line in lines)


def test_shards_hold_one_source_and_about_their_size(config: Any, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(stages, "SHARD_BYTES", 5_000)
    account = cleaned(config, tmp_path / "out")
    names = sorted(
        str(path.relative_to(tmp_path / "out" / "text")) for path in (tmp_path / "out").rglob("*.zst")
    )
    assert len(names) > 4
    assert names[0] == "dirty/00000.jsonl.zst"
    assert account["kept_documents"] == 24


def test_rules_that_are_off_take_nothing(config: Any, tmp_path: Path) -> None:
    off = dict.fromkeys(("shared_lines", "fewest_words", "near_copies"))
    off |= dict.fromkeys(("mend", "repetition", "language", "copies"), False)
    changed = type(config).model_validate(config.model_dump(exclude_unset=True) | {"clean": off})
    account = cleaned(changed, tmp_path / "out")
    assert account["kept_documents"] == account["documents"] == 14 + 8 + 7
    assert not any(each["documents"] for of in account["rules"].values() for each in of.values())


def test_documents_without_words_are_no_copies(config: Any, tmp_path: Path) -> None:
    (tmp_path / "dirty.jsonl").write_text('{"text": "***"}\n{"text": "!!!"}\n')
    off = {"fewest_words": None, "repetition": False}
    changed = type(config).model_validate(config.model_dump(exclude_unset=True) | {"clean": off})
    assert cleaned(changed, tmp_path / "out")["kept_documents"] == 14 + 2


def test_a_band_of_a_file_is_read_without_the_others(config: Any, tmp_path: Path) -> None:
    bands: list[Any] = []

    def page(account: dict[str, Any]) -> str:
        bands.extend(np.load(path) for path in (tmp_path / "out.partial" / "judged").glob("*.bands.npy"))
        return "a page"

    clean_corpus(config, tmp_path / "out", HERE, dry_run=False, page=page, report=lambda line: None)
    assert len(bands) == 3
    assert all(len(each) == BANDS and each.flags.c_contiguous for each in bands)


def test_another_folder_is_left_alone(config: Any, tmp_path: Path) -> None:
    (tmp_path / "out.partial").mkdir()
    (tmp_path / "out.partial" / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match=r"mine\.txt: bertcli did not make this, .* move it elsewhere"):
        cleaned(config, tmp_path / "out")
    assert (tmp_path / "out.partial" / "mine.txt").read_text() == "mine"
    (tmp_path / "link.partial").symlink_to(tmp_path / "out.partial")
    with pytest.raises(UserError, match=r"bertcli did not make this"):
        cleaned(config, tmp_path / "link")


def test_a_file_that_is_put_into_the_work_stays(config: Any, tmp_path: Path) -> None:
    def page(account: dict[str, Any]) -> str:
        (tmp_path / "out.partial" / "mended" / "mine.txt").write_text("mine")
        return "a page"

    clean_corpus(config, tmp_path / "out", HERE, dry_run=False, page=page, report=lambda line: None)
    assert (tmp_path / "out" / "mended" / "mine.txt").read_text() == "mine"
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        *(".bertcli.json", "clean.json", "mended", "report.html", "text")
    }


def test_other_rules_begin_anew(config: Any, tmp_path: Path, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(run, "_account", lambda folder: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            cleaned(config, tmp_path / "out")
    value = config.model_dump(exclude_unset=True) | {"clean": {"fewest_words": 5}}
    lines: list[str] = []
    cleaned(type(config).model_validate(value), tmp_path / "out", say=lines.append)
    assert not any("going on" in line for line in lines)
    assert any("out.partial was made of other files, with other rules or versions" in line for line in lines)


def test_keys_that_clean_does_not_read_begin_nothing_anew(config: Any, tmp_path: Path) -> None:
    clean_corpus(config, tmp_path / "out", HERE, dry_run=True, page=lambda _: "", report=lambda line: None)
    value = config.model_dump(exclude_unset=True)
    value["corpus"] |= {"heldout_fraction": 0.2, "store": str(tmp_path / "elsewhere")}
    lines: list[str] = []
    cleaned(type(config).model_validate(value), tmp_path / "out", say=lines.append)
    assert any("going on with the interrupted work" in line for line in lines)


def test_of_a_page_that_occurs_often_the_first_one_stays(config: Any, tmp_path: Path) -> None:
    chapter = [chapter for chapter in short_chapters() if len(chapter) > 1200][20]
    (tmp_path / "dirty.jsonl").write_text(f"{json.dumps({'text': chapter})}\n" * 12)
    account = cleaned(config, tmp_path / "out")
    assert account["rules"]["copies"]["dirty"]["documents"] == 11
    assert account["sources"]["dirty"]["kept_documents"] == 1


def test_a_text_in_another_language_than_its_config_says_is_not_lost_in_silence(
    config: Any, tmp_path: Path
) -> None:
    value = config.model_dump(exclude_unset=True)
    for source in value["corpus"]["sources"]:
        source["language"] = "fi"
    lines: list[str] = []
    with pytest.raises(UserError, match=r"out: not written, because no document stays; change") as no:
        cleaned(type(config).model_validate(value), tmp_path / "out", say=lines.append)
    assert "language" in str(no.value)
    assert any("of pages are likely not in its language, fi: the rule language" in line for line in lines)
    assert not (tmp_path / "out").exists()


def test_an_unreadable_file_is_said_without_a_traceback(config: Any, tmp_path: Path) -> None:
    (tmp_path / "dirty.jsonl").write_text('{"text": "one"}\n{"no": "text"}\n')
    with pytest.raises(UserError, match=r"dirty\.jsonl, line 2: no key 'text', got the keys no"):
        cleaned(config, tmp_path / "out")


def test_a_corpus_has_more_files_than_may_be_open(tmp_path: Path) -> None:
    texts = tmp_path / "corpus"
    texts.mkdir()
    chapters = short_chapters()
    for number in range(200):
        (texts / f"{number}.txt").write_text(chapters[number % len(chapters)])
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 100, before[1]))
    try:
        account = cleaned(make_config(tmp_path, document="file"), tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert account["documents"] == 200
    assert account["kept_documents"] <= len(chapters)


def test_names_that_are_not_utf_8_are_refused_before_the_work(config: Any, tmp_path: Path) -> None:
    own = tmp_path / "linked"
    own.mkdir()
    os.symlink(tmp_path / "dirty.jsonl", os.fsencode(own) + b"/caf\xe9.txt")
    with pytest.raises(UserError, match=r"caf.udce9.*this path is not UTF-8"):
        cleaned(make_config(tmp_path, files=[str(own)]), tmp_path / "out")
    assert not (tmp_path / "out.partial").exists()


def test_a_message_with_half_a_character_is_written(config: Any, tmp_path: Path) -> None:
    (tmp_path / "dirty.jsonl").write_text('{"\\ud800": "one"}\n')
    with pytest.raises(UserError, match=r"dirty\.jsonl, line 1: no key 'text', got the keys"):
        cleaned(config, tmp_path / "out")
