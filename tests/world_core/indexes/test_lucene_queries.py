"""One text for Lucene's parser against the same clauses put together one by one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from world_core.indexes import clauses, jvm
from world_core.indexes.clauses import Clause
from world_core.indexes.lucene_queries import Queries
from world_core.types import LexicalField, LexicalPhrase, LexicalQuery, Occur

pytestmark = pytest.mark.java

TERMS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda term: term.split() == [term]
)
SPECIAL = st.sampled_from(
    [
        "AND",
        "OR",
        "NOT",
        "TO",
        "and",
        "a:b",
        "c++",
        "a^2",
        "a*",
        "b?",
        "~",
        "(",
        '"',
        "\\",
        "/",
        "&&",
    ]
)
WEIGHTS = st.floats(1e-9, 1e6) | st.sampled_from([0.4, 1.0, 1e-4, 0.1 + 0.2, 3])
CLAUSES = st.lists(
    st.builds(
        lambda field, term, weight: Clause(field, (term,), weight),
        st.sampled_from(["title", "body", "stem_en", "no such", "a:b"]),
        TERMS | SPECIAL,
        WEIGHTS,
    ),
    min_size=2,
    unique_by=lambda clause: clause[:2],
    max_size=12,
)


@pytest.fixture(scope="module")
def queries() -> Queries:
    """Return a maker of queries in a Java that runs."""
    jvm.boot(jvm.LEAST_MB)
    return Queries(100)


@given(CLAUSES)
@example([Clause("body", ("x",), 1e-4), Clause("body", ("y",), 9.9e-5)])
@example([Clause("body", ("ด\u0e35",), 1.0), Clause("title", ("𝕏",), 2.0)])
@settings(deadline=None, max_examples=300)
def test_a_planned_query_is_its_clauses_whatever_they_say(
    queries: Queries, scored: list[Clause]
) -> None:
    planned = queries.planned(clauses.Plan(scored, [], []))

    assert planned.equals(queries._any(map(queries._clause, scored)))


@pytest.mark.parametrize(
    ("clause", "plain"),
    [
        (Clause("body", ("ferry",), 0.4), True),
        (Clause("body", ("登月",), 0.4), True),
        (Clause("body", ("not",), 0.4), True),
        (Clause("body", ("NOT",), 0.4), False),
        (Clause("body", ("c++",), 0.4), False),
        (Clause("body", ("a", "b"), 0.4), False),
        (Clause("body", ("a",), 1e-5), False),
        (Clause("a:b", ("a",), 1.0), False),
    ],
)
def test_only_plain_terms_are_parsed(queries: Queries, clause: Clause, plain: bool) -> None:
    other = Clause("body", ("other",), 1.0)

    assert (queries._parsed([other, clause]) is not None) is plain


def test_fields_that_score_as_one_are_not_parsed() -> None:
    jvm.boot(jvm.LEAST_MB)

    assert Queries(100, ("title", "body"))._parsed([Clause("body", ("ferry",), 0.4)]) is None


def test_phrases_and_conditions_stay() -> None:
    jvm.boot(jvm.LEAST_MB)
    fields = (LexicalField("body", 0.5, ("old", "ferry")),)
    asked = LexicalQuery(fields, (LexicalPhrase(Occur.MUST, fields),))

    text = str(Queries(100).planned(clauses.plan(asked)).toString())

    assert text == (
        '+((body:old)^0.5 (body:ferry)^0.5 (body:"old ferry")^0.5) #((body:"old ferry")^0.5)'
    )


def test_threads_have_parsers_of_their_own(queries: Queries) -> None:
    asked = [
        [Clause("body", (f"w{number}x{place}",), 1.0 + place) for place in range(40)]
        for number in range(200)
    ]

    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(queries._parsed, asked))

    for query, scored in zip(made, asked, strict=True):
        assert query.equals(queries._any(map(queries._clause, scored)))
