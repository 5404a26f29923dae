"""`bertcli init`, `config`, `estimate`: a config for a run, and what the run will take."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any, Literal

from bertcli.cli.options import AnyConfig, Json, Set, argument, flag, number, option
from bertcli.config import MOST
from bertcli.families.family import FamilyName
from bertcli.system.errors import UserError
from bertcli.system.terminal import say


def init(
    files: list[str] = argument(..., "A corpus or a labeled file: files, folders, globs, a sample.", "FILES"),
    output: Path = option(Path("bertcli.yaml"), "The config to write.", metavar="FILE"),
    minutes: float = option(
        30,
        "Minutes that the run may take; with --device those of training.",
        min=0.1,
        max=MOST,
        callback=number,
    ),
    purpose: Literal["pretrain", "finetune"] | None = option(
        None,
        "What the files are for; default: decided by their content.",
        "--for",
        metavar="pretrain|finetune",
    ),
    model: str | None = option(
        None, "The model to start with: a run, any model folder, or a hub id.", metavar="MODEL"
    ),
    family: FamilyName | None = option(None, "Family of a new model, as in model.family.", metavar="NAME"),
    device: str | None = option(
        None,
        "A GPU of another machine (h200, a100-80gb, ...) for which the run is calculated.",
        metavar="NAME",
        panel="Options",
    ),
) -> None:
    """Write a config for your files, with a reason for each value.

    The config runs as it is. The command looks at the text or the labels and at this machine. Some seconds of
    steps are measured, so that the run takes the time that you give; with --device they are calculated from a
    data sheet. Nothing else is written, and no file is replaced.

    Example: bertcli init texts/ --minutes 30
    """
    from bertcli.advice.init.init import init as run
    from bertcli.advice.init.written import Request

    request = Request(minutes, purpose, model=model, family=family, device=device)
    written = run(files, output, request, report=say)
    for line in written.summary:
        say(line)
    say(f"written: {output}; next: bertcli {written.command} {shlex.quote(str(output))}")
    print(output)


def config(
    name: str | None = argument(
        None,
        "The command that reads the config, or a bundled config; without it, the bundled ones are listed.",
        "pretrain|finetune|NAME",
    ),
    schema: bool = flag("Print a JSON schema, with which editors complete and check a config.", "--schema"),
) -> None:
    """Print all keys of a config, or one of the bundled configs.

    The YAML of pretrain and finetune is a config: give the required keys a value, and change or delete the
    others. A bundled config runs by its name: bertcli pretrain quickstart.

    Example: bertcli config pretrain > mine.yaml
    """
    from bertcli.config import keys, yaml_text
    from bertcli.samples import CONFIGS

    if name not in keys.CONFIGS and (schema or (name is not None and name not in CONFIGS)):
        bundled = "" if schema else f", or a bundled config: {', '.join(CONFIGS)}"
        raise UserError(f"{name or '--schema'}: give {' or '.join(keys.CONFIGS)}{bundled}")
    if name is None:
        for each, path in CONFIGS.items():
            print(f"{each:<21}{path.read_text(encoding='utf-8').splitlines()[0].removeprefix('# ')}")
        return
    if name in CONFIGS:
        print(CONFIGS[name].read_text(encoding="utf-8"), end="")
        return
    if schema:
        print(json.dumps(keys.json_schema(keys.CONFIGS[name]), indent=2, ensure_ascii=False))
        return
    root = keys.keys_of(keys.CONFIGS[name])
    head = f"{root.above} Every key with its default; the required ones are empty."
    print(yaml_text.commented_yaml(root.lines, head), end="")


def estimate(
    config: AnyConfig,
    set_: Set = None,
    device: str | None = option(
        None,
        "A GPU of another machine (h200, a100-80gb, ...); nothing is measured.",
        metavar="NAME",
        panel="Options",
    ),
    json_: Json = False,
) -> None:
    """Estimate the time, the memory and the disk of a run.

    A probe of some seconds on this machine takes steps of the run itself, and writes nothing. --device NAME
    calculates everything from the data sheet of that device.

    Example: bertcli estimate quickstart
    """
    from bertcli.advice.bench.estimate import estimate as run
    from bertcli.config.load import load_either_config

    measured = run(load_either_config(config, set_), device)
    if json_:
        print(json.dumps(measured))
    else:
        print(_table(measured))
    for warning in measured["warnings"]:
        say(f"warning: {warning}")


def _table(m: dict[str, Any]) -> str:
    hours = m["hours"]
    time = f"{hours:,.1f} hours" if hours >= 1 else f"{60 * hours:,.1f} minutes"
    kind = "calculated, not measured" if m["calculated"] else "measured"
    kind += "" if m["compared"] else ", and never compared with a run on this GPU"
    rows = {
        "run": f"{m['kind']}, {m['steps']:,} steps, {m['tokens']:,} tokens",
        "on": f"{m['device']}, {m['precision']}, {m['micro_batch_size']} rows at once",
        "parameters": _parts(m["parameters"], ""),
        "operations": f"{m['flops_per_token'] / 1e6:,.1f} million a token, forward and backward",
        "memory": _parts(m["memory_mb"], " MB"),
        "disk": _parts(m["disk_mb"], " MB"),
        "speed": f"{m['tokens_per_s']:,.0f} tokens/s ({kind})",
        "time": f"{time}, evaluations included",
    }
    lines = [f"{name:<12}{value}" for name, value in rows.items()]
    return "\n".join([*lines, *(f"{'given':<12}{line}" for line in m["given"])])


def _parts(parts: dict[str, float], unit: str) -> str:
    """The total, then its parts."""
    shown = [f"{name} {value:,.0f}" for name, value in parts.items() if name != "total"]
    return f"{parts['total']:,.0f}{unit}: {', '.join(shown)}"
