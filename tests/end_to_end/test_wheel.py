"""An installed bertcli works in an empty folder, with the packages that it declares and no others."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from bertcli.samples import CONFIGS
from tests.pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FOLDERS = ("bertcli", "docs", "scripts", "tests")
BUILT = shutil.ignore_patterns("__pycache__", "*.egg-info")
OF_A_STEP = {"training.steps": 2, "training.batch_size": 4, "data.max_length": 32, "evaluation.batches": 1}


@dataclass(frozen=True)
class Installed:
    """A fresh environment, and an empty folder in which its user is."""

    sdist: Path
    wheel: Path
    programs: Path
    folder: Path

    def call(self, *words: str) -> str:
        """The standard output of a command that must end well."""
        own = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        command = [self.programs / words[0], *words[1:]]
        done = subprocess.run(command, cwd=self.folder, env=own, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


def needed(requirements: Iterable[str]) -> set[str]:
    """The names of the packages that are required, and of those that they require, as they are installed."""
    seen, waiting = set[tuple[str, frozenset[str]]](), [Requirement(each) for each in requirements]
    while waiting:
        package = waiting.pop()
        extras = frozenset({"", *package.extras})
        if (package.name, extras) in seen:
            continue
        seen.add((package.name, extras))
        for inner in map(Requirement, distribution(package.name).requires or []):
            if inner.marker is None or any(inner.marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(inner)
    return {name for name, _ in seen}


def make_environment(folder: Path) -> None:
    """An environment with links to the packages of this one that `dependencies` need, and to no others."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    for package in map(distribution, needed(PROJECT["dependencies"])):
        for name in {file.parts[0] for file in package.files or []} - {"..", "__pycache__"}:
            if not (site / name).exists():
                (site / name).symlink_to(Path(str(package.locate_file(name))).resolve())


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    top = tmp_path_factory.mktemp("installed")
    source, built, environment, folder = (top / name for name in ("source", "built", "environment", "empty"))
    for name in FOLDERS:
        shutil.copytree(ROOT / name, source / name, ignore=BUILT)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, source)
    folder.mkdir()
    # The sdist, and the wheel from the sdist.
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", built, source]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (sdist,), (wheel,) = built.glob("*.tar.gz"), built.glob("*.whl")
    make_environment(environment)
    pip = [sys.executable, "-m", "pip", "--python", environment / "bin" / "python", "install", "--no-deps"]
    subprocess.run([*pip, "--no-index", "--no-compile", "--quiet", wheel], check=True)
    return Installed(sdist, wheel, environment / "bin", folder)


def test_the_wheel_holds_the_package_and_nothing_else(installed: Installed) -> None:
    with zipfile.ZipFile(installed.wheel) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    package = (path for path in (ROOT / "bertcli").rglob("*") if path.is_file() and path.suffix != ".pyc")
    assert held == {path.relative_to(ROOT).as_posix() for path in package}


def test_the_sdist_holds_what_a_checkout_holds(installed: Installed) -> None:
    with tarfile.open(installed.sdist) as sdist:
        held = {name.partition("/")[2] for name in sdist.getnames()}
    here = (path for name in FOLDERS for path in (ROOT / name).rglob("*") if "__pycache__" not in path.parts)
    expected = {path.relative_to(ROOT).as_posix() for path in here if path.is_file()}
    expected |= {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "SECURITY.md", "constraints.txt"}
    assert expected - held == set()


def test_only_what_is_declared_can_be_imported(installed: Installed) -> None:
    names = "('torch', 'typer', 'transformers', 'pytest', 'pyarrow')"
    code = f"from importlib.util import find_spec; print([n for n in {names} if find_spec(n)])"
    assert installed.call("python", "-c", code) == "['torch', 'typer']\n"


def test_the_first_commands_of_the_readme_work_in_an_empty_folder(installed: Installed) -> None:
    assert installed.call("bertcli", "--version") == f"{PROJECT['version']}\n"
    assert [line.split()[0] for line in installed.call("bertcli", "config").splitlines()] == list(CONFIGS)
    settings = [word for key, value in OF_A_STEP.items() for word in ("--set", f"{key}={value}")]
    assert installed.call("bertcli", "pretrain", "quickstart", *settings) == "runs/quickstart/model\n"
    assert [path.name for path in installed.folder.iterdir()] == ["runs"]
