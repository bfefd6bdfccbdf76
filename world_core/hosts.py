"""Host names by site: which hosts lie under a name."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from world_core.types import Numbers


class HostTree:
    """Finds the hosts of a site: the host of that name and all its subdomains.

    Names are sorted with their labels turned round (``com.example.www.``), so that a site is one
    run of them.
    """

    def __init__(self, hosts: Sequence[str]) -> None:
        """Take host names; their positions are what is found."""
        pairs = sorted((_turned(host), place) for place, host in enumerate(hosts))
        self._names = [name for name, _ in pairs]
        self._places = np.array([place for _, place in pairs], dtype=np.int64)

    def under(self, site: str) -> Numbers:
        """Return the positions of the hosts of a site, ascending; none for an unknown one.

        ``site`` is a host name in the form of canonical addresses (``urls.host_of``); a dot at
        either end is passed over.
        """
        name = _turned(site.strip("."))
        if name == ".":
            return np.zeros(0, dtype=np.int64)
        # The end of the run: "/" is the character that follows the dot.
        first, end = bisect_left(self._names, name), bisect_left(self._names, f"{name[:-1]}/")
        return np.sort(self._places[first:end])


def _turned(host: str) -> str:
    if host.startswith("[") or host.replace(".", "").isdigit():
        return f"{host}."  # an IP address has no subdomains
    return ".".join(reversed(host.split("."))) + "."
