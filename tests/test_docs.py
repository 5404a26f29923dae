"""The documentation is true: what it names is there, its commands run, and the site builds."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bertcli.cli.main import GROUPS
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import check_config
from bertcli.config.schema import PretrainConfig
from bertcli.config.yaml_text import parse_yaml
from bertcli.system.errors import UserError
from tests.pages import NO_CODE, PAGES, ROOT, Bertcli, Block, Reader, begins_with, blocks_of
from tests.small_pages import copy_runs, enter, write_runs

DOCUMENTS = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
NAMED = re.compile(r"(?<!/)\b(?:tests|docs|configs|bertcli|scripts)/[\w/.-]*\w")
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


def test_each_named_file_is_there() -> None:
    named = {
        (path.name, name)
        for path in DOCUMENTS
        for name in NAMED.findall(path.read_text(encoding="utf-8"))
        if "NAME" not in name  # what a reader is to write
    }
    assert len(named) > 20
    assert [(document, name) for document, name in sorted(named) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("way", ["The way of a config", "The way of a CSV row"])
def test_a_way_through_the_code_names_as_many_files_as_it_says(way: str) -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition(f"## {way}")[2]
    text = text.partition("\n## ")[0]
    named = set(re.findall(r"`(\w+/[\w/]+\.py)`", text))
    assert [name for name in sorted(named) if not (ROOT / "bertcli" / name).exists()] == []
    said = re.search(r"in (\d+) files", text)
    assert said is not None
    assert len(named) == int(said[1])


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.stem)
def test_each_link_leads_to_a_file(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_readme_has_every_command_in_the_groups_of_the_help() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for heading, commands in GROUPS.items():
        (row,) = re.findall(rf"^\| {heading} \| (.*) \|$", text, flags=re.MULTILINE)
        assert {*commands} <= {*re.findall(r"`([\w-]+)`", row)}


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the commands of the first page have been run."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        write_runs(folder, patch)
    return folder


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(block.is_command for block in blocks_of(page))],
    ids=lambda page: page.stem,
)
def test_what_a_page_says_can_be_done(
    page: Path,
    finished: Path,
    run_bertcli: Bertcli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    enter(tmp_path, monkeypatch)
    copy_runs(begins_with(page), finished, tmp_path)
    reader = Reader(run_bertcli)
    for block in blocks_of(page):
        reader.read(block)


def test_the_example_of_each_command_can_be_run(
    finished: Path, run_bertcli: Bertcli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(tmp_path, monkeypatch)
    copy_runs(["runs/quickstart", "runs/spam"], finished, tmp_path)
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    examples = re.findall(r"^Example: `(bertcli .*)`$", text, flags=re.MULTILINE)
    assert len(examples) > 30
    slow = (
        "serve",
        "pretrain",
        "finetune",
        "tune",
        "verify-resume",
        "clean",
        "export",
        "transplant",
        "extend-vocab",
    )
    others = [each for each in examples if each.split()[1] not in slow]  # which tests of their own run
    block = Block(0, "sh", "\n".join(others), ("", ""))
    Reader(run_bertcli).read(block)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_part_of_a_config_has_known_keys_and_values(page: Path) -> None:
    for block in blocks_of(page):
        value = parse_yaml(block.text, page.name) if block.language == "yaml" else None
        if isinstance(value, dict) and "output_dir" not in value:
            finetunes = "task" in value or isinstance(value["model"], str)
            schema = FinetuneConfig if finetunes else PretrainConfig
            with pytest.raises(UserError) as refused:
                check_config(schema, value, f"{page.name}, line {block.line}")
            others = str(refused.value).splitlines()[1:]
            assert [line for line in others if not line.endswith("missing; it has no default")] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_all_code_is_run_or_says_why_not(page: Path) -> None:
    left_out = [block for block in blocks_of(page) if block.language not in NO_CODE and not block.is_run]
    assert [block.line for block in left_out if block.note[0] != "not run"] == []


def test_what_is_not_run_has_a_reason() -> None:
    reasons = [block.note[1] for page in PAGES for block in blocks_of(page) if block.note[0] == "not run"]
    assert all(len(reason.split()) > 2 for reason in reasons)


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", ROOT / "docs", tmp_path / "site"]
    done = subprocess.run([*command, "-d", tmp_path / "cache"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
