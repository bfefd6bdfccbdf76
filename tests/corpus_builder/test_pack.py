from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from corpus_builder import pack, publish
from corpus_builder.errors import BadSourceError, PublishError
from world_core import manifest as manifests
from world_core.errors import BadWorldError, DamagedFileError
from world_core.manifest import MANIFEST_NAME

ROOT = "ab" * 32


@pytest.fixture(scope="module")
def home(small_root: Path) -> Path:
    return small_root / "worlds" / "small"


@pytest.fixture(scope="module")
def packed(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pack.pack(home, tmp_path_factory.mktemp("packed"))


def archive(path: Path, *members: tarfile.TarInfo | tuple[str, bytes]) -> Path:
    with (
        path.open("wb") as out,
        zstandard.ZstdCompressor().stream_writer(out) as stream,
        tarfile.open(fileobj=stream, mode="w|") as tar,
    ):
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                tar.addfile(info, io.BytesIO(member[1]))
    return path


def test_a_world_survives_packing(home: Path, packed: Path, tmp_path: Path) -> None:
    source = publish.resolve(home)
    assert packed.name == f"small-{source.name}.tar.zst"
    folder = pack.unpack(packed, tmp_path)
    assert folder == tmp_path / "small" / source.name
    assert publish.resolve(tmp_path / "small") == folder
    wanted = {path.relative_to(source): path.read_bytes() for path in source.rglob("*.*")}
    found = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*")}
    assert found == wanted
    assert [path.name for path in tmp_path.iterdir()] == ["small"]


def test_packing_twice_gives_the_same_bytes(home: Path, packed: Path, tmp_path: Path) -> None:
    again = pack.pack(publish.resolve(home), tmp_path / "again.tar.zst")
    assert again.read_bytes() == packed.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["again.tar.zst"]


def test_unpacking_twice_is_fine(packed: Path, tmp_path: Path) -> None:
    assert pack.unpack(packed, tmp_path) == pack.unpack(packed, tmp_path)


def test_a_damaged_world_is_not_packed(home: Path, packed: Path, tmp_path: Path) -> None:
    folder = pack.unpack(packed, tmp_path / "w")
    (folder / "passages.bin").write_bytes(b"")
    with pytest.raises(DamagedFileError):
        pack.pack(folder, tmp_path / "x.tar.zst")
    with pytest.raises(BadWorldError):
        pack.pack(tmp_path, tmp_path / "x.tar.zst")
    assert not (tmp_path / "x.tar.zst").exists()


def link(name: str, kind: bytes, target: str = "/etc/passwd") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    return info


@pytest.mark.parametrize(
    "member",
    [
        (f"{ROOT}/../evil", b"x"),
        (f"{ROOT}/lexical/../../evil", b"x"),
        (f"{ROOT}/lexical/..", b"x"),
        ("/etc/evil", b"x"),
        (f"/{ROOT}/pages.sqlite", b"x"),
        (f"{ROOT}/evil.py", b"x"),
        (f"{ROOT}/other/file", b"x"),
        (f"{ROOT}/lexical/sub/file", b"x"),
        (f"{ROOT}/lexical\\..\\evil", b"x"),
        ("small/pages.sqlite", b"x"),
        (f"{ROOT.upper()}/pages.sqlite", b"x"),
        (f"{ROOT}//pages.sqlite", b"x"),
        (ROOT, b"x"),
        link(f"{ROOT}/pages.sqlite", tarfile.SYMTYPE),
        link(f"{ROOT}/pages.sqlite", tarfile.LNKTYPE),
        link(f"{ROOT}/pages.sqlite", tarfile.CHRTYPE),
        link(f"{ROOT}/pages.sqlite", tarfile.FIFOTYPE),
        link(f"{ROOT}/lexical", tarfile.DIRTYPE),
    ],
)
def test_unsafe_members_are_refused(
    member: tarfile.TarInfo | tuple[str, bytes], tmp_path: Path
) -> None:
    file = archive(tmp_path / "bad.tar.zst", member)
    out = tmp_path / "deep" / "out"
    with pytest.raises(BadSourceError, match="The archive's member"):
        pack.unpack(file, out)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["bad.tar.zst", "deep", "out"]


def test_a_second_world_or_file_is_refused(tmp_path: Path) -> None:
    two = archive(
        tmp_path / "a.zst", (f"{ROOT}/recipe.toml", b"x"), (f"{'cd' * 32}/recipe.toml", b"x")
    )
    with pytest.raises(BadSourceError, match="second world"):
        pack.unpack(two, tmp_path / "out")
    twice = archive(
        tmp_path / "b.zst", (f"{ROOT}/recipe.toml", b"x"), (f"{ROOT}/recipe.toml", b"y")
    )
    with pytest.raises(BadSourceError, match="comes twice"):
        pack.unpack(twice, tmp_path / "out")


def test_bombs_are_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack, "RATIO_FROM", 1 << 20)
    bomb = archive(tmp_path / "bomb.zst", (f"{ROOT}/pages.sqlite", bytes(8 << 20)))
    with pytest.raises(BadSourceError, match="200 times"):
        pack.unpack(bomb, tmp_path / "out")
    with pytest.raises(BadSourceError, match="more than 1000 bytes"):
        pack.unpack(bomb, tmp_path / "out", most_bytes=1000)
    assert not list((tmp_path / "out").iterdir())


def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack, "MOST_MEMBERS", 3)
    names = [(f"{ROOT}/lexical/{n}", b"x") for n in range(4)]
    with pytest.raises(BadSourceError, match="more than 3 members"):
        pack.unpack(archive(tmp_path / "many.zst", *names), tmp_path / "out")


@pytest.mark.parametrize("data", [b"", b"rubbish" * 99, b"\x28\xb5\x2f\xfd" + b"x" * 99])
def test_a_file_of_another_kind_is_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(BadSourceError):
        pack.unpack(tmp_path / "f", tmp_path / "out")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSourceError, match="cannot be read"):
        pack.unpack(tmp_path / "none", tmp_path / "out")


def test_an_empty_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSourceError, match="empty"):
        pack.unpack(archive(tmp_path / "f"), tmp_path / "out")


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.999])
def test_a_cut_file_is_refused(packed: Path, tmp_path: Path, share: float) -> None:
    data = packed.read_bytes()
    (tmp_path / "f").write_bytes(data[: int(len(data) * share)])
    with pytest.raises((BadSourceError, BadWorldError)):
        pack.unpack(tmp_path / "f", tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


def repacked(packed: Path, path: Path, change: Callable[[str, bytes], bytes]) -> Path:
    members = []
    with (
        packed.open("rb") as file,
        zstandard.ZstdDecompressor().stream_reader(file) as stream,
        tarfile.open(fileobj=stream, mode="r|") as tar,
    ):
        for info in tar:
            content = tar.extractfile(info)
            assert content is not None
            members.append((info.name, change(info.name, content.read())))
    return archive(path, *members)


def test_a_changed_file_is_found(packed: Path, tmp_path: Path) -> None:
    def flip(name: str, data: bytes) -> bytes:
        return data[:-1] + bytes([data[-1] ^ 1]) if name.endswith("passages.bin") else data

    with pytest.raises(DamagedFileError, match=r"passages\.bin"):
        pack.unpack(repacked(packed, tmp_path / "f", flip), tmp_path / "out")


def test_a_forged_manifest_is_found_by_its_content(
    packed: Path, home: Path, tmp_path: Path
) -> None:
    source = publish.resolve(home)
    forged = tmp_path / "forged"
    forged.mkdir()
    manifest = manifests.read(source).model_copy(update={"world_id": ROOT})
    manifests.write(forged, manifest)
    data = (forged / MANIFEST_NAME).read_bytes()

    def forge(name: str, old: bytes) -> bytes:
        return data if name.endswith(MANIFEST_NAME) else old

    with pytest.raises(DamagedFileError, match="is named"):
        pack.unpack(repacked(packed, tmp_path / "f", forge), tmp_path / "out")


def test_a_taken_place_is_refused(packed: Path, tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "thesis").write_text("x")
    with pytest.raises(PublishError):
        pack.unpack(packed, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small"]
