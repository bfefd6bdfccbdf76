from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from world_core.encoders.tokenizer_file import read_tokenizer
from world_core.errors import EncoderError

UNKNOWN = "[UNK]"


def write(path: Path) -> Path:
    words = {UNKNOWN: 0, "ferry": 1, "quay": 2}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(length=4)
    tokenizer.save(str(path))
    return path


def test_padding_and_limit_of_the_file_are_left_out(tmp_path: Path) -> None:
    tokenizer = read_tokenizer(write(tmp_path / "tokenizer.json"), "")

    assert tokenizer.encode("ferry quay zebra").ids == [1, 2, 0]
    assert tokenizer.encode("ferry").ids == [1]


@pytest.mark.parametrize("content", [b"", b"{}", b"not json", b"\xff\xfe\x00"])
def test_a_damaged_file_is_named_with_the_command(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)

    with pytest.raises(EncoderError, match=r"tokenizer\.json") as caught:
        read_tokenizer(path, "do this")

    assert caught.value.hint == "do this"
