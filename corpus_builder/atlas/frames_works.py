"""Sentence frames of companies, ships, books and scientific findings; tables only."""

from __future__ import annotations

from corpus_builder.atlas.cast import Kind
from corpus_builder.atlas.frame import Frame, Section

WORKS: dict[Kind, Frame] = {
    Kind.COMPANY: Frame(
        "the company",
        (
            ("Founded", "founded"),
            ("Founder", "founder"),
            ("Seat", "seat"),
            ("Employees", "employees"),
            ("Director", "holder"),
        ),
        (
            (
                "{name} is a maker of {product} with its seat in {seat}.",
                "{name}, a company in {seat}, makes {product}.",
            ),
            (
                "It employs {employees} people.",
                "The number of employees is given as {employees}.",
            ),
        ),
        (
            Section(
                ("History", "The first years"),
                (
                    (
                        "The company was founded in {founded} by {founder} in a rented shed.",
                        "{founder} founded the firm in {founded} with borrowed money.",
                    ),
                ),
            ),
            Section(
                ("Direction", "Who runs it"),
                (
                    (
                        "The director of {name} is {holder}.",
                        "{holder} is the director of {name}.",
                    ),
                ),
            ),
        ),
    ),
    Kind.SHIP: Frame(
        "the ship",
        (
            ("Builder", "builder"),
            ("Launched", "launched"),
            ("Home port", "port"),
            ("Captain", "holder"),
        ),
        (
            (
                "The {name} is a sailing ship that was launched in {launched} by {builder}.",
                "Built by {builder}, the sailing ship {name} was launched in {launched}.",
            ),
            (
                "Her home port is {port}.",
                "She is at home in {port}.",
            ),
        ),
        (
            Section(
                ("Design", "The vessel"),
                (
                    (
                        "She is {length} metres long and needs a crew of {crew}.",
                        "A crew of {crew} sails her {length} metres of hull.",
                    ),
                ),
            ),
            Section(
                ("Service", "In service"),
                (
                    (
                        "Her captain is {holder}.",
                        "{holder} is the captain of the {name}.",
                    ),
                ),
            ),
        ),
    ),
    Kind.BOOK: Frame(
        "the novel",
        (("Author", "author"), ("Published", "year"), ("Publisher", "publisher")),
        (
            (
                "{name} is a novel by {author} that {publisher} published in {year}.",
                "Published in {year} by {publisher}, {name} is a novel by {author}.",
            ),
        ),
        (
            Section(
                ("Plot", "The story"),
                (
                    (
                        "Its {pages} pages tell of a winter in {setting}.",
                        "The story is set in {setting} and runs over {pages} pages.",
                    ),
                ),
            ),
        ),
    ),
    Kind.FINDING: Frame(
        "the discovery",
        (("Discoverer", "discoverer"), ("Year", "year"), ("Place", "place")),
        (
            (
                "The {name} was described in {year} by {discoverer} at {place}.",
                "In {year}, at {place}, {discoverer} described the {name} for the first time.",
            ),
        ),
        (
            Section(
                ("Description", "What was found"),
                (
                    (
                        (
                            "The report on the {type} fills {pages} pages and ends with a table of "
                            "doubts."
                        ),
                        "The first paper on this {type} runs to {pages} pages of patient notes.",
                    ),
                ),
            ),
        ),
    ),
}
