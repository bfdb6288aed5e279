"""Small files that may hold anything: a record, or one kind of error."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from engines.basics.reading import decoded, read_json


@pytest.mark.behaviour("damaged-run-harms-no-other")
@pytest.mark.parametrize(
    "content", [b"", b"[", b'["\xf3tep"]', b'{"\xff": 1}', b"[" * 30_000, b'["a"', b"\xef\xbb\xbf[]x", b"{}"],
)  # fmt: skip
def test_every_damage_to_a_json_file_is_a_decode_error(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decoded(content, list[str])
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(msgspec.DecodeError):
        read_json(tmp_path / "a.json", list[str])
