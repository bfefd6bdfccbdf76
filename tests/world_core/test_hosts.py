from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from world_core.hosts import HostTree

LABEL = st.sampled_from(["a", "b", "ab", "com", "co", "uk", "xn--bcher-kva", "a-b", "a0"])
HOST = st.lists(LABEL, min_size=1, max_size=4).map(".".join)


@given(st.lists(HOST, unique=True, max_size=20), HOST)
def test_a_site_is_its_host_and_all_below(hosts: list[str], site: str) -> None:
    found = HostTree(hosts).under(site).tolist()

    assert found == [
        place for place, host in enumerate(hosts) if host == site or host.endswith(f".{site}")
    ]


@pytest.mark.parametrize("site", ["example.com", ".example.com", "example.com.", "..example.com"])
def test_dots_at_the_ends_are_passed_over(site: str) -> None:
    tree = HostTree(["example.com", "example.company", "notexample.com", "www.example.com"])

    assert tree.under(site).tolist() == [0, 3]


def test_a_domain_of_the_top_level_is_a_site() -> None:
    assert HostTree(["a.org", "b.com", "org"]).under("org").tolist() == [0, 2]


@pytest.mark.parametrize("site", ["", ".", "1", "0.1", "1.0.0.1"])
def test_addresses_of_machines_have_no_subdomains(site: str) -> None:
    hosts = ["10.1.0.0.1", "127.0.0.1", "[::1]"]

    assert HostTree(hosts).under(site).tolist() == []
    assert HostTree(hosts).under("127.0.0.1").tolist() == [1]
    assert HostTree(hosts).under("[::1]").tolist() == [2]


def test_a_world_without_hosts_has_no_sites() -> None:
    assert HostTree([]).under("a.org").tolist() == []
