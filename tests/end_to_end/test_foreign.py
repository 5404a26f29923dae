"""What is not bertcli's: named, and left where it stands, through the command line."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.foreign import Base, in_process, write_finetune, write_pretrain
from tests.small_runs import read_rows
from tests.snapshots import compare, snapshot


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Base:
    return Base(tmp_path_factory.mktemp("foreign") / "base")


@pytest.fixture
def here(base: Base, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder with a corpus, a model, a run in `run` and one in `tuned`; the working directory."""
    folder = base.fresh()
    monkeypatch.chdir(folder)
    return folder


def put(path: Path, content: str = "years of work\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def pretrain(
    output_dir: str, *flags: str, steps: int = 1, store: str | None = None, **more: Any
) -> tuple[int, str]:
    command = write_pretrain(Path(), output_dir, {"steps": steps} | more, store)
    return in_process([*command, *flags])


def damage(checkpoint: Path) -> None:
    path = checkpoint / "optimizer.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"~")


@pytest.mark.parametrize("output_dir", [".", "..", "link", "run/..", "home"])
@pytest.mark.parametrize("flags", [["--overwrite"], [], ["--resume"]])
def test_a_folder_of_somebody_else_is_no_place_for_a_run(
    here: Path, output_dir: str, flags: list[str]
) -> None:
    (here / "home").mkdir()
    (here / "link").symlink_to("home")
    for name in ("model/thesis.pt", "checkpoints/notes.md", "trackers/notes", "data.json", "config.yaml"):
        put(here / output_dir / name)
    before = snapshot(here.parent)
    code, said = pretrain(output_dir, *flags)
    assert code == 2
    for name in ("config.yaml", "data.json", "model/", "checkpoints/", "trackers/"):
        assert name in said
    assert "choose another output_dir" in said
    assert "already has a run" not in said
    assert "--overwrite" not in said
    assert (
        compare(before, snapshot(here.parent)) == ["project/pretrain.yaml: changed"]
        or compare(
            {name: entry for name, entry in before.items() if "pretrain.yaml" not in name},
            snapshot(here.parent),
        )
        == []
    )


def test_names_like_those_of_left_overs_are_nobodys_proof(here: Path) -> None:
    """By a command that is refused in its end, and by those that are not."""
    names = [
        "run/store.old/x",
        "elsewhere.old/x",
        "run/.model.bak/x",
        "run/checkpoints/.git/HEAD",
        ".out.partial/x",
    ]
    names += ["run/.model.partial/x", "run/.model.removed/x", "run/.config.yaml.partial", ".v.jsonl.partial"]
    for name in names:
        put(here / name)
    before = {name: (here / name).read_bytes() for name in names}
    assert pretrain("run", "--resume", steps=3, learning_rate=0.5)[0] == 2
    assert pretrain("run", "--resume", steps=3)[0] == 0
    assert pretrain("run", "--overwrite")[0] == 0
    assert pretrain("other", store="elsewhere")[0] == 0
    assert in_process(["prepare", "pretrain.yaml", "--overwrite"])[0] == 0
    assert in_process(["convert", "bert", "out"])[0] == 0
    assert in_process(["embed", "bert", "a text", "--output", "v.jsonl", "--device", "cpu"])[0] == 0
    assert {name: (here / name).read_bytes() for name in names} == before


def test_a_store_is_built_and_replaced_only_in_a_folder_of_its_own(here: Path) -> None:
    for name in ("mine.partial/x", "yours/x", "files/manifest.json", "fake.partial/building.json"):
        put(here / name)
    for store, named in (("mine", "mine.partial/x"), ("yours", "yours"), ("fake", "building.json")):
        code, said = pretrain("other", store=store)
        assert code == 2
        assert named in said
        assert "corpus.store" in said
    write_pretrain(here, "other", {}, "files")
    assert in_process(["prepare", "pretrain.yaml", "--overwrite"])[0] == 2
    put(here / "run" / "store" / "train" / "notes.md")
    write_pretrain(here, "run", {})
    code, said = in_process(["prepare", "pretrain.yaml", "--overwrite"])
    assert code == 2
    assert "train/notes.md" in said
    assert (here / "run" / "store" / "train" / "notes.md").exists()
    assert (here / "run" / "store" / "manifest.json").exists()


def test_a_lock_that_is_a_link_or_another_file_is_left(here: Path) -> None:
    thesis = put(here / "thesis.txt")
    (here / "new").mkdir()
    (here / "new" / ".lock").symlink_to(thesis)
    code, said = pretrain("new")
    assert (code, "new/.lock: is not a lock of bertcli's" in said) == (2, True)
    (here / "new" / ".lock").unlink()
    put(here / "new" / ".lock")
    assert pretrain("new")[0] == 2
    assert thesis.read_text() == (here / "new" / ".lock").read_text() == "years of work\n"


def test_folders_of_a_run_may_be_links_to_another_disk(here: Path) -> None:
    names = ("model", "checkpoints", "store")
    (here / "new").mkdir()
    for name in names:
        (here / "disk" / name).mkdir(parents=True)
        (here / "new" / name).symlink_to(here / "disk" / name)
    for flags, steps in ((), 1), (("--resume",), 2), (("--overwrite",), 1), (("--resume",), 2):
        code, said = pretrain("new", *flags, steps=steps)
        assert code == 0, said
        assert all((here / "new" / name).is_symlink() for name in names)
        assert (here / "disk" / "model" / "model.safetensors").exists()
        assert [path.name for path in (here / "disk" / "checkpoints").iterdir()] == [f"step-{steps:08d}"]
    write_pretrain(here, "new", {})
    assert in_process(["prepare", "pretrain.yaml", "--overwrite"])[0] == 0
    assert (here / "disk" / "store" / "manifest.json").exists()
    assert sorted(path.name for path in (here / "disk").iterdir()) == sorted(names)


@pytest.mark.parametrize("name", ["model", "checkpoints", "store", "trackers"])
def test_a_link_that_leads_to_no_folder_is_refused_before_anything(here: Path, name: str) -> None:
    (here / "new").mkdir()
    (here / "new" / name).symlink_to(here / "nowhere")
    code, said = pretrain("new")
    assert (code, f"new/{name}: a link to a missing folder" in said) == (2, True)
    assert os.listdir(here / "new") == [name]
    (here / "new" / name).unlink()
    (here / "new" / name).symlink_to(here / "corpus.txt")
    assert pretrain("new")[0] == 2


def test_what_stands_beside_checkpoints_hinders_no_resume_and_counts_for_nothing(here: Path) -> None:
    folder = here / "run" / "checkpoints"
    names = [".DS_Store", "step-notes/x", ".step-00000010.swp", "step-00000002 copy/x", "step-99999999/x"]
    for name in names:
        put(folder / name)
    shutil.copytree(folder / "step-00000002", folder / "step-00000050")  # a copy is the user's
    before = snapshot(folder / "step-00000050")
    for steps in (3, 4, 5):  # keep_last: 1, and it gets on each time
        code, said = pretrain("run", "--resume", steps=steps)
        assert code == 0
        assert (folder / f"step-{steps:08d}").is_dir()
        assert not (folder / f"step-{steps - 1:08d}").exists()
        assert f"step-{steps - 1:08d}, step {steps - 1}" in said
    assert read_rows(here / "run" / "metrics.jsonl")[-1]["step"] == 5
    assert all((folder / name).read_text() == "years of work\n" for name in names)
    assert snapshot(folder / "step-00000050") == before


def test_a_damaged_checkpoint_is_named_and_left_and_its_step_is_saved_beside_it(here: Path) -> None:
    folder = here / "run" / "checkpoints"
    damage(folder / "step-00000002")
    shutil.rmtree(here / "run" / "model")  # a finished run is not trained again
    before = snapshot(folder / "step-00000002")
    code, said = pretrain("run", "--resume", steps=2)
    assert code == 0
    assert "step-00000002 is damaged" in said
    assert snapshot(folder / "step-00000002") == before
    assert sorted(path.name for path in folder.iterdir()) == ["step-00000002", "step-00000002.1"]
    code, said = pretrain("run", "--resume", steps=3)
    assert "resuming from run/checkpoints/step-00000002.1, step 2" in said


def test_overwriting_takes_what_bertcli_wrote_and_names_the_rest(here: Path) -> None:
    names = ["model/thesis.pt", "checkpoints/notes.md", "checkpoints/step-00000002/mine", "notes.md"]
    for name in names:
        put(here / "run" / name)
    code, said = pretrain("run", "--overwrite")
    assert code == 0
    for name in names[:3]:
        assert str(Path("run") / name) in said
    assert all((here / "run" / name).read_text() == "years of work\n" for name in names)
    assert [path.name for path in (here / "run" / "checkpoints" / "step-00000002").iterdir()] == ["mine"]
    assert (here / "run" / "model" / "model.safetensors").exists()


@pytest.mark.parametrize(
    "name", ["config.yaml", "data.json", "metrics.jsonl", "model/README.md", "model/config.json"]
)
def test_what_was_changed_since_is_the_users(here: Path, name: str) -> None:
    put(here / "run" / name, "changed by hand\n")
    before = snapshot(here / "run")
    code, said = pretrain("run", "--overwrite")
    assert code == 2
    assert name in said
    assert snapshot(here / "run") == before


def test_a_model_is_replaced_around_what_the_user_keeps_in_it(here: Path) -> None:
    put(here / "run" / "model" / "notes.md")
    assert pretrain("run", "--resume", steps=3)[0] == 0
    model = here / "run" / "model"
    assert (model / "notes.md").read_text() == "years of work\n"
    assert sorted(json.loads((model / "manifest.json").read_text())["files"]) == sorted(
        path.name for path in model.iterdir() if path.name not in ("manifest.json", "notes.md")
    )
    put(model / "README.md")
    code, said = pretrain("run", "--resume", steps=4)
    assert (code, "model/README.md" in said) == (2, True)
    assert read_rows(here / "run" / "metrics.jsonl")[-1]["step"] == 3  # told before training


def test_seeds_keep_what_stands_in_their_folders(here: Path) -> None:
    put(here / "new" / "seed-2" / "config.yaml")
    command = write_finetune(here, "new", {"seeds": [1, 2]})
    code, said = in_process(command)
    assert (code, "new/seed-2: the run would overwrite config.yaml" in said) == (2, True)
    assert not (here / "new" / "seed-1").exists()  # told before the first one
    (here / "new" / "seed-2" / "config.yaml").unlink()
    assert in_process(command)[0] == 0
    put(here / "new" / "seed-1" / "notes.md")
    assert in_process([*write_finetune(here, "new", {"seeds": [2]}), "--overwrite"])[0] == 0
    assert [path.name for path in (here / "new" / "seed-1").iterdir()] == ["notes.md"]


def test_a_run_in_the_corpus_folder_never_becomes_corpus(here: Path) -> None:
    (here / "texts").mkdir()
    shutil.copy(here / "corpus.txt", here / "texts")
    write_pretrain(here, "texts/run", {})
    for files, store in (("texts", "texts/ids"), ("texts/**", "texts/more")):
        for _ in range(2):
            command = ["pretrain", "pretrain.yaml", "--set", f"corpus.files=['{files}']", "--overwrite"]
            assert in_process([*command, "--set", f"corpus.store={store}"])[0] == 0
        (source,) = json.loads((here / store / "manifest.json").read_text())["sources"]
        assert [Path(file["name"]).name for file in source["files"]] == ["corpus.txt"]


def test_a_tokenizer_overwrites_no_file(here: Path) -> None:
    put(here / "words" / "tokenizer_config.json")
    code, said = in_process(["tokenizer", "train", "corpus.txt", "--output", "words", "--vocab-size", "100"])
    assert (code, "name another folder" in said) == (2, True)
    assert os.listdir(here / "words") == ["tokenizer_config.json"]
