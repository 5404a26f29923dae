"""Plain text of novels from a repository of COST-ELTeC, a file a novel and a paragraph a line.

    python scripts/bench/eltec.py REPOSITORY OUT [--novels 10]

REPOSITORY is a clone of https://github.com/COST-ELTeC/ELTeC-deu, -fra, -hun, -srp or the like, or the git
folder of one. The texts are in the public domain, their encoding is under CC BY 4.0.
"""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path
from xml.etree import ElementTree

TEI = "{http://www.tei-c.org/ns/1.0}"
PARAGRAPHS = {TEI + name for name in ("p", "head", "l")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("repository")
    parser.add_argument("out", type=Path)
    parser.add_argument("--novels", type=int, help="take only so many, evenly spread over the years")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    names = git(options.repository, "ls-tree", "--name-only", "HEAD", "level1/").decode().split()
    names = [name for name in names if name.endswith(".xml")]
    stride = len(names) / (options.novels or len(names))
    for name in (names[int(i * stride)] for i in range(options.novels or len(names))):
        text = novel(git(options.repository, "show", f"HEAD:{name}"))
        (options.out / Path(name).with_suffix(".txt").name).write_text(text, encoding="utf-8")
        print(f"{name}: {len(text):,} characters", flush=True)


def novel(xml: bytes) -> str:
    """The paragraphs, headings and verses of the body, without notes."""
    body = ElementTree.fromstring(xml).find(f"{TEI}text/{TEI}body")
    assert body is not None
    for parent in body.iter():
        for note in parent.findall(f"{TEI}note"):
            note.text, note[:] = "", []
    lines = (" ".join("".join(each.itertext()).split()) for each in body.iter() if each.tag in PARAGRAPHS)
    return "\n".join(line for line in lines if line) + "\n"


def git(repository: str, *command: str) -> bytes:
    return subprocess.run(["git", "-C", repository, *command], stdout=subprocess.PIPE, check=True).stdout


if __name__ == "__main__":
    main()
