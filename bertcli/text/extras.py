"""Optional packages that a file needs, checked before anything is written."""

from __future__ import annotations

from pathlib import Path

from bertcli.text.streams import import_extra


def check_file_extras(path: Path, is_parquet: bool) -> None:
    """Raise `UserError` where a package is missing that reading this file needs."""
    if is_parquet:
        import_extra("pyarrow.parquet", "parquet", f"{path} is to be read as Parquet")
    elif path.suffix == ".zst":
        import_extra("zstandard", "zstd", f"{path} is compressed with Zstandard")
