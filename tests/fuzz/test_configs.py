"""Config files: whatever stands in them gives a config or one message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import load_config, save_config
from bertcli.config.schema import PretrainConfig
from bertcli.config.section import differences
from bertcli.corpus.build import prepare_store
from bertcli.training.recipe import decide_recipe
from tests.finetunes import spam_config
from tests.fuzz.good import TEXT, good_tokenizer
from tests.fuzz.guard import endure, scratch
from tests.fuzz.mutations import damaged, fuzzed, mutated, place, put
from tests.small_runs import small_config

LAUGHS = "a0: &a0 [lol]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)
"""Ten thousand million laughs, if anyone writes them out."""
SCALARS = (
    *("2024-13-45", "!!int x", "!!bool x", "!!timestamp x", "!!binary x", "0b_", "1:99:99", "9" * 5000),
    *("!!python/object/apply:os.system [touch owned]", "!!python/name:os.system", "!!set {a}", "!!omap [a]"),
    *('"\\0"', '"\\ud800"', "&a [*a]", "&a {b: *a}", "{a: 1, a: 2}", "{? [a] : b}", ".nan", "-.inf", "1e400"),
    *(
        "[" * 3000,
        "- " * 3000,
        "@",
        "%",
        "*none",
        "|",
        ">",
        "'",
        '"\\x',
        "!!float 0x",
        "0o9",
        "~",
        "=",
        "a" * 300,
    ),
)
"""What is odd where a value should stand."""
PRETRAIN = small_config(Path("corpus.txt"), Path("run"))
FINETUNE = spam_config(Path("folder"))


@st.composite
def yaml_files(draw: st.DrawFn, good: dict[str, Any]) -> bytes:
    text = yaml.safe_dump(good)
    way = draw(st.sampled_from(["tree", "tree", "bytes", "scalar", "scalar", "any"]))
    if way == "tree":
        tree = draw(mutated(good))
        return yaml.safe_dump(tree, allow_unicode=draw(st.booleans())).encode("utf-8", "surrogatepass")
    if way == "bytes":
        return draw(damaged(text.encode()))
    if way == "any":
        return draw(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
    lines = text.splitlines()
    at = draw(st.integers(0, len(lines) - 1))
    lines[at] = lines[at].partition(":")[0] + ": " + draw(st.sampled_from(SCALARS))
    return "\n".join(lines).encode()


def endure_config(schema: type[BaseModel], content: bytes | None, overrides: list[str]) -> None:
    with scratch() as folder:
        put(folder / "config.yaml", content)
        config = endure("config", folder, lambda: load_config(schema, folder / "config.yaml", overrides))
        if config is not None:
            endure("config saved", folder, lambda: save_config(config, folder / "again.yaml"))
            assert differences(load_config(schema, folder / "again.yaml"), config) == {}


@fuzzed
@example(content=f"{LAUGHS}output_dir: *a9\ncorpus: *a8\n".encode())
@example(content=None)
@given(place(yaml_files(PRETRAIN)))
def test_a_pretraining_config(content: bytes | None) -> None:
    endure_config(PretrainConfig, content, [])


@fuzzed
@given(place(yaml_files(FINETUNE)))
def test_a_finetuning_config(content: bytes | None) -> None:
    endure_config(FinetuneConfig, content, [])


KEYS = [
    f"{section}.{key}" for section, values in PRETRAIN.items() if isinstance(values, dict) for key in values
]


@fuzzed
@given(
    st.lists(
        st.tuples(
            st.sampled_from(KEYS) | st.text(max_size=6), st.sampled_from(SCALARS) | st.text(max_size=8)
        ).map("=".join)
        | st.text(max_size=9),
        min_size=1,
        max_size=3,
    )
)
def test_overrides(overrides: list[str]) -> None:
    endure_config(PretrainConfig, yaml.safe_dump(PRETRAIN).encode(), overrides)


@fuzzed
@given(yaml_files(PRETRAIN | {"corpus": {"files": ["a"], "heldout_fraction": 0.0, "language": "en"}}))
def test_a_config_that_loads_is_prepared_or_refused(content: bytes) -> None:
    """Only the places that the config names are given: a store in the folder, a text and a tokenizer."""
    with scratch() as folder:
        (folder / "corpus.txt").write_text(TEXT * 3, encoding="utf-8")
        (folder / "config.yaml").write_bytes(content)
        given_places = [
            f"output_dir={folder / 'run'}",
            f"corpus.files=[{folder / 'corpus.txt'}]",
            "corpus.store=null",
            f"tokenizer.path={good_tokenizer()}",
        ]

        def prepare() -> None:
            config = load_config(PretrainConfig, folder / "config.yaml", given_places)
            prepare_store(decide_recipe(config, lambda line: None), lambda line: None)

        endure("config prepared", folder, prepare)
