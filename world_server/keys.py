"""Who may ask: keys as digests, compared in constant time, and the rule for open addresses."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from pathlib import Path

from world_server.errors import SettingsError

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")


class KeyRing:
    """The keys that open the service; only their sha256 digests are held.

    With no key at all, any key and none is good. ``control`` opens the control routes, and the
    service too.
    """

    def __init__(
        self, keys: tuple[str, ...] = (), *, keys_file: str = "", control: str = ""
    ) -> None:
        """Read the keys.

        Raises:
            SettingsError: the file cannot be read or holds a line that is no key.
        """
        self._fixed = tuple(_digest_of(key) for key in keys)
        self._path = Path(keys_file) if keys_file else None
        self._control = _digest_of(control) if control else None
        self._stamp: tuple[int, int] | None = None
        self._from_file: tuple[bytes, ...] = ()
        self.refresh()

    @property
    def is_open(self) -> bool:
        """True when no key is set, so that everybody may ask."""
        # A file that was emptied revokes its keys, it does not open the service.
        return not self._fixed and self._path is None

    @property
    def has_control(self) -> bool:
        """True when a control key is set."""
        return self._control is not None

    def refresh(self) -> bool:
        """Read the file again if it has changed, and say whether it had.

        Raises:
            SettingsError: the file cannot be read or holds a line that is no key; the keys known
                before stay in force.
        """
        if self._path is None:
            return False
        try:
            found = self._path.stat()
            stamp = (found.st_mtime_ns, found.st_size)
            if stamp == self._stamp:
                return False
            lines = self._path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(
                f"The keys file {self._path} cannot be read ({type(error).__name__}).",
                hint="Name a readable text file with one key a line.",
            ) from error
        keys = [line.strip() for line in lines]
        self._from_file = tuple(_digest_of(key) for key in keys if key and not key.startswith("#"))
        self._stamp = stamp
        return True

    def opens(self, key: str) -> bool:
        """True if the key, or the lack of one (""), may ask the service."""
        return (
            self.is_open
            or _is_among(key, (*self._fixed, *self._from_file))
            or (self.opens_control(key))
        )

    def opens_control(self, key: str) -> bool:
        """True if the key opens the control routes; without a control key nothing does."""
        return self._control is not None and _is_among(key, (self._control,))


def is_loopback(host: str) -> bool:
    """True for an address that only this machine can reach."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_exposure(host: str, ring: KeyRing, *, allow_no_key: bool) -> None:
    """Refuse to listen where others can reach us while everybody may ask.

    Raises:
        SettingsError: the address is not loopback, no key is set and the flag is not given.
    """
    if ring.is_open and not allow_no_key and not is_loopback(host):
        raise SettingsError(
            f"{host} can be reached from other machines and no key is set.",
            hint="Set WORLD_KEYS or --keys-file, or say --allow-no-key.",
        )


def _digest_of(key: str) -> bytes:
    written = _DIGEST.fullmatch(key)
    return bytes.fromhex(written[1]) if written else _hash(key)


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def _is_among(key: str, digests: tuple[bytes, ...]) -> bool:
    """Compare with every digest, so that the time does not tell which one fits."""
    if not key:
        return False
    presented = _hash(key)
    found = False
    for digest in digests:
        found |= hmac.compare_digest(presented, digest)
    return found
