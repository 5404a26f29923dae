from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bertcli.cli import main as cli
from bertcli.cli.main import COMMANDS
from tests.small_runs import run_process, run_warm, small_config, without_waiting, write_config

Bertcli = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ([""], list(COMMANDS)),
        (["pretr"], ["pretrain"]),
        (["pretrain", "--re"], ["--resume"]),
        (["bench", "st"], ["step", "stream"]),
        (["bench", "step", "--preset", "me"], ["medium"]),
        (["pretrain", "con"], []),  # the shell then offers names of files
        (["nonsense", "--ver"], ["--version"]),
    ],
)
def test_the_shell_completes_commands_and_options(
    run_bertcli: Bertcli, monkeypatch: pytest.MonkeyPatch, words: list[str], offered: list[str]
) -> None:
    """What bash is offered for the last word; an unknown command is no error then."""
    monkeypatch.setenv("COMP_WORDS", " ".join(["bertcli", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    monkeypatch.setenv("_BERTCLI_COMPLETE", "complete_bash")
    code, out, err = run_bertcli()
    assert (code, out.split(), err) == (0, offered, "")


def test_completion_is_installed_for_the_shell(tmp_path: Path) -> None:
    program = (
        f"{sys.executable} -m bertcli --install-completion && {sys.executable} -m bertcli --show-completion"
        "; exit $?"  # so that bash stays beside it, to be recognized
    )
    result = subprocess.run(
        ["bash", "-c", program],
        env=os.environ | {"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "complete -o default -F _bertcli_completion bertcli\n" in result.stdout
    script = (tmp_path / ".bash_completions" / "bertcli.sh").read_text()
    assert "_BERTCLI_COMPLETE=complete_bash" in script
    assert "bertcli.sh" in (tmp_path / ".bashrc").read_text()


def test_a_users_error_is_one_message_without_traceback_and_exit_code_2() -> None:
    result = run_warm("pretrain", "nowhere.yaml")
    assert result.returncode == 2
    where = f"in {Path.cwd()}, where bertcli was called"
    assert result.stderr == f"error: nowhere.yaml: no such config file {where}\n"
    assert result.stdout == ""


def test_a_key_without_its_section_is_met_with_its_full_name(run_bertcli: Bertcli, tmp_path: Path) -> None:
    config = tmp_path / "mine.yaml"
    config.write_text("output_dir: runs/mine\ncorpus: {files: [classics]}\nmax_length: 64\n")
    code, _, err = run_bertcli("pretrain", config, "--set", "steps=10")
    assert code == 2
    assert err.splitlines() == [
        f"error: {config}: 2 problems in the config:",
        "  max_length: unknown key; did you mean data.max_length?",
        "  steps: unknown key; did you mean training.steps?",
    ]


@pytest.mark.parametrize("unbuffered", ["", "1"])  # the pipe is met at the end, or in the command
def test_a_reader_that_closes_its_pipe_ends_the_command_as_shells_expect(unbuffered: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    result = run_process(
        "config", "pretrain", stdout=writing, env=os.environ | {"PYTHONUNBUFFERED": unbuffered}
    )
    os.close(writing)
    assert (result.returncode, result.stderr) == (141, "")


@pytest.mark.parametrize(("arguments", "code"), [(("--version",), 0), (("pretrian",), 2)])
def test_a_rank_says_all_and_leaves_without_pythons_teardown(arguments: tuple[str, ...], code: int) -> None:
    program = (
        "import atexit, sys\n"
        "from bertcli.cli.main import main\n"
        "atexit.register(print, 'torn down')\n"
        f"sys.argv = ['bertcli', *{arguments!r}]\n"
        "main()\n"
    )
    alone, ranked = (
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"WORLD_SIZE": size},
            capture_output=True,
            text=True,
            check=False,
        )
        for size in "12"
    )
    assert alone.returncode == ranked.returncode == code
    assert without_waiting(alone.stderr) == without_waiting(ranked.stderr)
    assert alone.stdout == ranked.stdout + "torn down\n"


@pytest.mark.parametrize("size", ["two", "9" * 30])
def test_nothing_in_the_environment_keeps_the_version_from_being_printed(size: str) -> None:
    names = ("WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_PORT")
    result = run_process("--version", env=os.environ | dict.fromkeys(names, size))
    assert (result.returncode, result.stderr) == (0, "")
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", result.stdout)


def test_little_memory_is_one_message_and_exit_code_2() -> None:
    program = (
        "from bertcli.cli import main as cli\n"
        "def app(prog_name):\n"
        "    try:\n        raise MemoryError('std::bad_alloc')\n"
        "    finally:\n        raise ImportError('torch could not be imported')\n"
        "cli.app = app\n"
        "cli.main()\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr.startswith("error: not enough memory (std::bad_alloc)")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "a file could not be written: no space left"),
        (OSError(errno.ENOENT, "No such file", "thesis.txt"), "thesis.txt: no such file"),
    ],
)
def test_standard_output_is_blamed_for_its_own_errors_alone(error: OSError, message: str) -> None:
    assert cli._describe(error).startswith(message)


def test_half_a_character_of_a_files_name_is_printed_as_an_escape() -> None:
    program = "from bertcli.cli import main as cli; cli._name_stdout(); print('\\udcff.txt')"
    strict = os.environ | {"PYTHONIOENCODING": "utf-8:strict"}
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, env=strict)
    assert result.stdout == b"\\udcff.txt\n"


@pytest.mark.parametrize(
    ("given", "message"),
    [("pretrian", "no command 'pretrian'; did you mean pretrain?"), ("xyzzy", "see bertcli --help")],
)
def test_a_mistyped_command_is_met_with_the_nearest(run_bertcli: Bertcli, given: str, message: str) -> None:
    code, _, err = run_bertcli(given)
    assert code == 2
    assert message in err


def test_a_file_that_the_system_refuses_is_named_without_traceback(run_bertcli: Bertcli) -> None:
    assert run_bertcli("embed", "a" * 300, "text") == (2, "", f"error: {'a' * 300}: file name too long\n")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_behind_standard_output_is_said(unbuffered: str) -> None:
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "w") as full:
        result = run_process("--version", stdout=full, env=environment)
    assert result.returncode == 2
    assert result.stderr == (
        "error: standard output could not be written: no space left on device; "
        "free some space or write elsewhere\n"
    )


def test_a_full_disk_behind_standard_output_hides_no_other_error() -> None:
    with open("/dev/full", "w") as full:
        result = run_warm("finetune", "absent.yaml", stdout=full)
    assert result.returncode == 2
    assert result.stderr.startswith("error: absent.yaml: no such config file")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_standard_stream_that_the_caller_closed_is_missed_by_nobody(number: int) -> None:
    result = run_process("--version", preexec_fn=lambda: os.close(number))
    assert (result.returncode, result.stderr) == (0, "")
    assert bool(result.stdout) == (number != 1)


def test_an_error_with_standard_error_closed_is_still_exit_code_2() -> None:
    assert run_process("finetune", "absent.yaml", preexec_fn=lambda: os.close(2)).returncode == 2


def hear_ctrl_c() -> None:
    """Undo what a shell does for a command in the background, whose processes ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def with_modules_of(folder: Path) -> dict[str, str]:
    """An environment in which Python looks for modules in `folder` first."""
    paths = os.pathsep.join([str(folder), str(Path(cli.__file__).parents[2])])
    return os.environ | {"PYTHONPATH": paths}


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("typer", "import os, signal; os.kill(os.getpid(), signal.SIGINT)"),
        ("torch", "import os, signal; os.kill(os.getpid(), signal.SIGINT)"),
        ("torch", "raise KeyboardInterrupt"),
    ],
)
def test_ctrl_c_during_an_import_is_one_line(tmp_path: Path, module: str, line: str) -> None:
    """A module of that name is found first, and gets the signal while it is imported."""
    swallowed = f"try:\n    {line}\nexcept KeyboardInterrupt:\n    raise ImportError\n"
    (tmp_path / f"{module}.py").write_text(line if line.startswith("raise") else swallowed)
    result = run_process("embed", "nowhere", "text", env=with_modules_of(tmp_path), preexec_fn=hear_ctrl_c)
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "stopped\n")


def test_ctrl_c_during_an_import_of_a_command_says_what_the_command_would_say(tmp_path: Path) -> None:
    (tmp_path / "zstandard.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    corpus = tmp_path / "corpus.zst"
    corpus.write_bytes(b"\x28\xb5\x2f\xfd")
    config = write_config(tmp_path / "config.yaml", small_config(corpus, tmp_path / "run"))
    result = run_process("prepare", config, env=with_modules_of(tmp_path), preexec_fn=hear_ctrl_c)
    line = "stopped before a text was tokenized: the same command starts again\n"
    assert (result.returncode, result.stdout, result.stderr) == (130, "", line)


def test_ctrl_c_of_a_command_in_the_background_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text(
        f"import os, signal, sys\nos.kill(os.getpid(), signal.SIGINT)\nsys.path.remove({str(tmp_path)!r})\n"
        "del sys.modules['typer']\nimport typer\n"
    )
    result = run_process(
        "--version",
        env=with_modules_of(tmp_path),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert (result.returncode, result.stderr) == (0, "")
