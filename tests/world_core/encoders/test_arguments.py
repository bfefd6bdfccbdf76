from __future__ import annotations

import pytest

from world_core.encoders import arguments
from world_core.errors import BadInputError


def test_known_arguments_pass() -> None:
    arguments.only("tiny", {"dim": 8}, ("dim", "seed"))
    arguments.only("tiny", {}, ())


def test_an_unknown_argument_is_named_with_the_known_ones() -> None:
    with pytest.raises(
        BadInputError, match=r"tiny has no argument 'dimension' \(given: 8\)"
    ) as got:
        arguments.only("tiny", {"dimension": 8}, ("dim", "seed"))

    assert "dim, seed" in got.value.hint


def test_where_there_are_no_arguments_the_hint_says_so() -> None:
    with pytest.raises(BadInputError) as caught:
        arguments.only("tiny", {"dim": 8}, ())

    assert "none" in caught.value.hint


def test_values_and_defaults_are_given_back() -> None:
    given: arguments.Settings = {"name": "bge", "size": 7}

    assert arguments.text(given, "name", "x") == "bge"
    assert arguments.text(given, "other", "x") == "x"
    assert arguments.number(given, "size", 1, least=0, most=7) == 7
    assert arguments.number(given, "other", 1, least=0, most=7) == 1
    assert arguments.choice(given, "name", "x", ("x", "bge")) == "bge"
    assert arguments.choice(given, "other", "x", ("x", "bge")) == "x"


def test_a_number_is_no_text() -> None:
    with pytest.raises(BadInputError, match="name is 7, not text"):
        arguments.text({"name": 7}, "name", "x")


@pytest.mark.parametrize("value", ["7", -1, 8, True])
def test_a_number_outside_its_bounds_is_refused(value: str | int) -> None:
    with pytest.raises(BadInputError, match=f"size is {value!r}, not a whole number from 0 to 7"):
        arguments.number({"size": value}, "size", 1, least=0, most=7)


def test_a_choice_that_is_none_of_them_names_them() -> None:
    with pytest.raises(BadInputError, match="'z'") as caught:
        arguments.choice({"name": "z"}, "name", "x", ("x", "y"))

    assert caught.value.hint == "Use one of: x, y."
