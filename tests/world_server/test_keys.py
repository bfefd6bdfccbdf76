from __future__ import annotations

import ast
import hashlib
import os
from pathlib import Path

import pytest

from tests.conftest import ROOT
from world_server.errors import SettingsError
from world_server.keys import KeyRing, check_exposure, is_loopback


def test_without_keys_everybody_may_ask() -> None:
    ring = KeyRing()
    assert ring.is_open
    assert ring.opens("")
    assert ring.opens("anything")
    assert not ring.opens_control("")
    assert not ring.opens_control("anything")


def test_with_keys_only_they_open() -> None:
    ring = KeyRing(("one", "two"), control="boss")
    assert [ring.opens(key) for key in ("one", "two", "boss", "", "On", "one ", "ONE")] == [
        True,
        True,
        True,
        False,
        False,
        False,
        False,
    ]
    assert ring.opens_control("boss")
    assert not ring.opens_control("one")
    assert ring.has_control
    assert not KeyRing(("one",)).has_control


def test_a_key_may_be_given_as_its_digest() -> None:
    digest = hashlib.sha256(b"hidden").hexdigest()
    ring = KeyRing((f"sha256:{digest}",))
    assert ring.opens("hidden")
    assert not ring.opens(f"sha256:{digest}")


def test_only_digests_are_held() -> None:
    ring = KeyRing(("plain-text-key",), control="control-text-key")
    assert "text-key" not in repr(vars(ring))


def test_a_key_may_hold_any_characters() -> None:
    assert not KeyRing(("k",)).opens("\ud83d")


def test_the_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("# comment\nfirst\n\n  second  \n")
    ring = KeyRing(keys_file=str(path))
    assert [ring.opens(key) for key in ("first", "second", "# comment", "")] == [
        True,
        True,
        False,
        False,
    ]
    assert not ring.refresh()
    path.write_text("third key\n")
    os.utime(path, ns=(1, 1))
    assert ring.refresh()
    assert not ring.opens("first")
    assert ring.opens("third key")


def test_an_emptied_file_revokes_and_does_not_open(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("first\n")
    ring = KeyRing(keys_file=str(path))
    path.write_text("")
    ring.refresh()
    assert not ring.is_open
    assert not ring.opens("first")
    assert not ring.opens("")


def test_a_file_that_vanishes_keeps_the_known_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("first\n")
    ring = KeyRing(keys_file=str(path))
    path.unlink()
    with pytest.raises(SettingsError, match="cannot be read"):
        ring.refresh()
    assert ring.opens("first")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="cannot be read"):
        KeyRing(keys_file=str(path))


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104 - the case
        ("::", False),
        ("10.0.0.1", False),
        ("example.org", False),
    ],
)
def test_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def test_an_open_address_wants_a_key_or_the_flag() -> None:
    with pytest.raises(SettingsError, match="no key is set"):
        check_exposure("0.0.0.0", KeyRing(), allow_no_key=False)  # noqa: S104 - the case
    check_exposure("0.0.0.0", KeyRing(), allow_no_key=True)  # noqa: S104 - the case
    check_exposure("0.0.0.0", KeyRing(("k",)), allow_no_key=False)  # noqa: S104 - the case
    check_exposure("127.0.0.1", KeyRing(), allow_no_key=False)


def test_keys_are_compared_in_constant_time_only() -> None:
    tree = ast.parse((ROOT / "world_server" / "keys.py").read_text("utf-8"))
    calls = [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    assert "compare_digest" in calls
    names = {"presented", "digest", "digests"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            assert not names & {leaf.id for leaf in ast.walk(node) if isinstance(leaf, ast.Name)}
