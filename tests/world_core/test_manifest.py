from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import shutil
from pathlib import Path

import pytest
from pydantic import ValidationError

from world_core.content import canonical_json
from world_core.errors import (
    BadInputError,
    BadWorldError,
    DamagedFileError,
    ForeignWorldError,
    NewerFormatError,
)
from world_core.lexical_settings import LexicalSettings
from world_core.manifest import (
    SAMPLE_LIMIT,
    Canary,
    Counts,
    DenseSettings,
    EncoderSettings,
    FileDigest,
    Manifest,
    check_name,
    damages,
    digest_files,
    read,
    render,
    verify,
    write,
)

FILES = ("columns/valid_from.npy", "dense/codes.npy", "empty.bin", "pages.sqlite", "recipe.toml")


def manifest_of(files: dict[str, FileDigest]) -> Manifest:
    return Manifest(
        name="demo",
        version="2025-01",
        world_id="ab" * 32,
        files=files,
        encoder_id="tiny-64",
        encoder=EncoderSettings(kind="tiny", arguments={"dim": 64, "seed": "0"}),
        analyzer_id="folded-1",
        languages=("de", "en"),
        lexical=LexicalSettings(
            engine="lucene",
            engine_version="10.1.0",
            unit="version",
            k1=0.9,
            b=0.4,
            field_weights={"body": 1.0, "title": 2.0},
        ),
        dense=DenseSettings(kind="flat", dim=64, rows=7, vectors_digest="cd" * 32),
        counts=Counts(pages=3, versions=5, passages=7, dropped={"robots": 2}),
        capture_from=100,
        capture_to=200,
        clock=200,
        canaries=(Canary(query="größe  \u2028 北京", page_ids=("00" * 10, "11" * 10)),),
    )


def make_world(folder: Path) -> Manifest:
    source = random.Random(7)
    for name, size in zip(FILES, (5_000, 9_000, 0, 70_000, 40), strict=True):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source.randbytes(size))
    manifest = manifest_of(digest_files(folder))
    write(folder, manifest)
    return manifest


@pytest.fixture
def world(tmp_path: Path) -> Path:
    folder = tmp_path / "demo"
    folder.mkdir()
    make_world(folder)
    return folder


def check(folder: Path) -> None:
    verify(folder, read(folder))


def edit(folder: Path, **changes: object) -> None:
    """Write a manifest with other fields and a right digest of its own."""
    fields = json.loads((folder / "manifest.json").read_bytes())
    del fields["self_sha256"]
    for name, value in changes.items():
        if value is None:
            del fields[name]
        else:
            fields[name] = value
    fields["self_sha256"] = hashlib.sha256(canonical_json(fields)).hexdigest()
    text = json.dumps(fields, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    (folder / "manifest.json").write_text(text, encoding="utf-8")


def test_what_is_written_is_read(world: Path) -> None:
    manifest = read(world)
    assert manifest == manifest_of(digest_files(world))
    assert list(manifest.files) == sorted(FILES)
    (world / "lexical").mkdir()  # an empty folder is no damage
    verify(world, manifest)
    assert list(damages(world, manifest)) == []


def test_manifest_is_canonical_and_readable(world: Path) -> None:
    raw = (world / "manifest.json").read_bytes()
    fields = json.loads(raw)
    assert raw == render(read(world))
    assert raw.decode().startswith('{\n  "analyzer_id"')
    assert list(fields) == sorted(fields)
    assert "北京".encode() in raw
    stated = fields.pop("self_sha256")
    assert stated == hashlib.sha256(canonical_json(fields)).hexdigest()


def test_digests_are_sha256_and_size(world: Path) -> None:
    for name, digest in digest_files(world).items():
        data = (world / name).read_bytes()
        assert digest == FileDigest(sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))


def refusal(folder: Path) -> str:
    """Return the sentence with which a world is refused, "" if it is not."""
    try:
        check(folder)
    except BadWorldError as error:
        return error.sentence
    return ""


@pytest.mark.parametrize("name", [*FILES, "manifest.json"])
def test_every_flipped_bit_is_found(world: Path, name: str) -> None:
    path = world / name
    good = path.read_bytes()
    source = random.Random(f"bits of {name}")
    for _ in range(200 if good else 0):
        offset, bit = source.randrange(len(good)), source.randrange(8)
        path.write_bytes(good[:offset] + bytes([good[offset] ^ 1 << bit]) + good[offset + 1 :])
        assert name in refusal(world), (offset, bit)
    path.write_bytes(good)
    assert refusal(world) == ""


def test_every_single_bit_of_the_manifest_counts(world: Path) -> None:
    path = world / "manifest.json"
    good = path.read_bytes()
    for offset in range(0, len(good), 17):
        for bit in range(8):
            path.write_bytes(good[:offset] + bytes([good[offset] ^ 1 << bit]) + good[offset + 1 :])
            with pytest.raises(BadWorldError):
                read(world)


@pytest.mark.parametrize("name", [*FILES, "manifest.json"])
@pytest.mark.parametrize("cut", ["0", "1", "half", "-1", "-4096", "+1"])
def test_every_cut_is_found(world: Path, name: str, cut: str) -> None:
    path = world / name
    good = path.read_bytes()
    size = {"half": len(good) // 2, "+1": len(good) + 1}.get(cut)
    if size is None:
        size = int(cut) if not cut.startswith("-") else max(0, len(good) + int(cut))
    path.write_bytes((good + b"\0")[:size])
    if size == len(good):
        check(world)
        return
    with pytest.raises(DamagedFileError, match=name):
        check(world)


def test_damage_names_the_file_and_the_next_command(world: Path) -> None:
    (world / "pages.sqlite").write_bytes(b"other")
    with pytest.raises(DamagedFileError) as caught:
        check(world)
    assert caught.value.sentence == (
        f"'pages.sqlite' of world {world} has 5 bytes instead of 70000."
    )
    assert f"world-server check {world}" in caught.value.hint
    assert "corpus-builder build" in caught.value.hint


def test_all_damage_is_listed(world: Path) -> None:
    manifest = read(world)
    (world / "recipe.toml").unlink()
    (world / "columns/extra.npy").write_bytes(b"x")
    (world / "pages.sqlite").write_bytes(b"x" * 70_000)
    (world / "dense/codes.npy").write_bytes(b"")
    found = [str(damage).split(" of world ")[0] for damage in damages(world, manifest)]
    assert found == ["'columns/extra.npy'", "'recipe.toml'", "'dense/codes.npy'", "'pages.sqlite'"]


def test_links_are_refused_and_not_followed(world: Path, tmp_path: Path) -> None:
    manifest = read(world)
    shutil.move(world / "dense", tmp_path / "away")
    (world / "dense").symlink_to(tmp_path / "away", target_is_directory=True)
    shutil.move(world / "recipe.toml", tmp_path / "recipe.toml")
    (world / "recipe.toml").symlink_to(tmp_path / "recipe.toml")
    found = [str(damage) for damage in damages(world, manifest)]
    assert [text.split(".")[0] for text in found] == [
        f"'dense' of world {world} is a link or no plain file",
        "'dense/codes",
        "'recipe",
    ]
    assert "is missing" in found[1]
    assert "is a link" in found[2]
    with pytest.raises(DamagedFileError, match="link"):
        digest_files(world)


def test_pipe_in_place_of_a_file_does_not_hang(world: Path) -> None:
    (world / "recipe.toml").unlink()
    os.mkfifo(world / "recipe.toml")
    with pytest.raises(DamagedFileError, match=r"recipe\.toml.* no plain file"):
        check(world)


BAD_PATHS = "../outside.bin|columns/../../outside.bin|/etc/passwd||.|..|./recipe.toml|a//b|columns/"
BAD_PATHS += "|columns\\x.npy|c:/x|a\0b|manifest.json"


@pytest.mark.parametrize("path", BAD_PATHS.split("|"))
def test_listed_path_that_leaves_the_folder_is_refused(world: Path, path: str) -> None:
    outside = world.parent / "outside.bin"
    outside.write_bytes(b"secret")
    digest = {"sha256": hashlib.sha256(b"secret").hexdigest(), "bytes": 6}
    fields = json.loads((world / "manifest.json").read_bytes())
    edit(world, files={**fields["files"], path: digest})
    with pytest.raises(DamagedFileError, match="no file of a world may have"):
        check(world)


def test_sample_hashes_small_files_and_measures_large_ones(world: Path) -> None:
    large = world / "dense/index.faiss"
    large.write_bytes(b"x" * (SAMPLE_LIMIT + 1))
    manifest = manifest_of(digest_files(world))
    large.write_bytes(b"y" * (SAMPLE_LIMIT + 1))
    verify(world, manifest, sample=True)
    with pytest.raises(DamagedFileError, match=r"index\.faiss"):
        verify(world, manifest)
    large.write_bytes(b"x" * SAMPLE_LIMIT)
    with pytest.raises(DamagedFileError, match=r"index\.faiss"):
        verify(world, manifest, sample=True)
    large.write_bytes(b"x" * (SAMPLE_LIMIT + 1))
    small = world / "recipe.toml"
    small.write_bytes(b"z" * small.stat().st_size)
    with pytest.raises(DamagedFileError, match=r"recipe\.toml"):
        verify(world, manifest, sample=True)


def test_missing_manifest_is_a_foreign_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for folder in (tmp_path, tmp_path / "nowhere", tmp_path / "file"):
        with pytest.raises(ForeignWorldError) as caught:
            read(folder)
        assert caught.value.sentence == f"{folder} is not a world: it has no manifest.json."
        assert "corpus-builder build" in caught.value.hint


def test_folder_that_went_away_is_damage(world: Path) -> None:
    manifest = read(world)
    shutil.rmtree(world)
    with pytest.raises(DamagedFileError, match="cannot be read"):
        verify(world, manifest)


def test_endless_manifest_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "manifest.json").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(DamagedFileError, match="is larger than 67108864 bytes"):
        read(tmp_path)
    (tmp_path / "manifest.json").unlink()
    (tmp_path / "manifest.json").mkdir()
    with pytest.raises(DamagedFileError, match="cannot be read"):
        read(tmp_path)


def test_file_that_cannot_be_read_is_damage(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> FileDigest:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    manifest = read(world)
    monkeypatch.setattr("world_core.manifest._digest", fail)
    found = [damage.sentence for damage in damages(world, manifest)]
    assert len(found) == len(FILES)
    assert found[0].endswith("cannot be read (Input/output error).")


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"\xff\xfe", b'{"format": 1}x', b"[" * 100_000, b'{"format": 1, "name": "\xe4"}'],
)
def test_unreadable_json_is_damage(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "manifest.json").write_bytes(raw)
    with pytest.raises(DamagedFileError, match=r"manifest\.json.* is not readable JSON"):
        read(tmp_path)


@pytest.mark.parametrize("raw", ["[]", "null", "{}", '{"format": "1"}', '{"format": true}', "7"])
def test_json_without_a_format_is_foreign(tmp_path: Path, raw: str) -> None:
    (tmp_path / "manifest.json").write_text(raw)
    with pytest.raises(ForeignWorldError, match="names no format"):
        read(tmp_path)


@pytest.mark.parametrize("value", ['"\\ud83d"', "NaN", "1e999"])
def test_values_no_manifest_can_hold_are_damage(tmp_path: Path, value: str) -> None:
    (tmp_path / "manifest.json").write_text(f'{{"format": 1, "name": {value}}}')
    with pytest.raises(DamagedFileError, match="no manifest can hold"):
        read(tmp_path)


def test_newer_format_is_refused_with_the_way_on(world: Path) -> None:
    edit(world, format=2, novelty={"a": 1})
    with pytest.raises(NewerFormatError, match="has format 2") as caught:
        read(world)
    assert "pip install --upgrade" in caught.value.hint
    edit(world, format=0)
    with pytest.raises(ForeignWorldError, match="never was"):
        read(world)


def test_unknown_and_missing_keys_are_refused(world: Path) -> None:
    edit(world, colour="red")
    with pytest.raises(ForeignWorldError, match=r"colour: .*'red'"):
        read(world)
    edit(world, colour=None, clock=None)
    with pytest.raises(ForeignWorldError, match="clock"):
        read(world)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("name", "../x"),
        ("world_id", "AB"),
        ("clock", "now"),
        ("clock", 1.5),
        ("languages", "en"),
        ("fusion", {"weight": 1.5}),
        ("counts", {"pages": -1, "versions": 0, "passages": 0}),
        ("canaries", [{"query": "x", "page_ids": [1]}]),
    ],
)
def test_values_of_a_wrong_kind_are_refused(world: Path, key: str, value: object) -> None:
    edit(world, **{key: value})
    with pytest.raises(ForeignWorldError, match=rf"is not ours: {key}"):
        read(world)


def test_other_spelling_of_the_same_values_is_damage(world: Path) -> None:
    path = world / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_bytes())), encoding="utf-8")
    with pytest.raises(DamagedFileError, match="not spelled"):
        read(world)


def test_write_replaces_in_one_step(world: Path) -> None:
    other = read(world).model_copy(update={"name": "other"})
    (world / "manifest.json.part").write_bytes(b"left by a killed build")
    assert "'manifest.json.part'" in refusal(world)
    write(world, other)
    assert read(world) == other
    verify(world, other)


def test_world_without_vectors_needs_no_encoder(world: Path) -> None:
    manifest = read(world).model_copy(update={"dense": None, "encoder": None, "encoder_id": ""})
    write(world, manifest)
    assert read(world).dense is None


@pytest.mark.parametrize(
    "name",
    ("|" + "x" * 65 + "|.a|-a|_a|A|CON|../x|%2e%2e|a/b|a\0|a\n|a b|ä|a\u2024b|a\\b|a@1").split("|"),
)
def test_bad_names(name: str) -> None:
    with pytest.raises(BadInputError, match="cannot name a world"):
        check_name(name)
    with pytest.raises(ValidationError, match="not of the form"):
        Manifest.model_validate({**manifest_of({}).model_dump(), "name": name})


def test_good_names() -> None:
    names = ["a", "0", "demo", "a.b_c-1", "x" * 64]
    assert [check_name(name) for name in names] == names


def test_manifest_is_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        manifest_of({}).name = "other"
