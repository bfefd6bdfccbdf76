"""Sentence frames of persons and of news stories; tables only."""

from __future__ import annotations

from corpus_builder.atlas import cast
from corpus_builder.atlas.frame import Frame, Section

FOREBEAR = Frame(
    "the life",
    (
        ("Profession", "profession"),
        ("Born", "birthday"),
        ("Birthplace", "birthplace"),
        ("Died", "died"),
    ),
    (
        (
            "{name} was a {profession}, born on {birthday} in {birthplace}.",
            "The {profession} {name} was born in {birthplace} on {birthday}.",
        ),
        (
            "Death came in {died}, after a long illness.",
            "{name} died in {died}.",
        ),
    ),
    (
        Section(
            ("Education", "Early life"),
            (
                (
                    "The first teacher who counted was {teacher}.",
                    "Letters name {teacher} as the teacher who mattered most.",
                ),
            ),
        ),
    ),
)
MODERN = Frame(
    "the life",
    (
        ("Profession", "profession"),
        ("Born", "birthday"),
        ("Birthplace", "birthplace"),
        ("Lives in", "home"),
    ),
    (
        (
            "{name} is a {profession}, born on {birthday} in {birthplace}.",
            "The {profession} {name} was born in {birthplace} on {birthday}.",
        ),
        (
            "The writer lives in {home}.",
            "Home is now {home}.",
        ),
    ),
    (
        Section(
            ("Honours", "Prizes"),
            (
                (
                    "In {prize_year} the guests of the {festival} voted {name} reader of the year.",
                    "The {festival} made {name} its guest of honour in {prize_year}.",
                ),
            ),
        ),
    ),
)
NEWS_FRAMES: dict[int, Frame] = {
    cast.NEWS[0]: Frame(
        "the report",
        (),
        (
            (
                (
                    "The council of {subject} voted by {votes} to three for a new school, said "
                    "{speaker} for the town."
                ),
                (
                    "By {votes} votes to three the council of {subject} decided to build a school, "
                    "{speaker} reported."
                ),
            ),
            (
                (
                    "It will cost {cost} crowns and take {months} months to build, and {province} "
                    "pays half of it."
                ),
                (
                    "The price is {cost} crowns, half of it paid by {province}; the work takes "
                    "{months} months."
                ),
            ),
        ),
        (),
    ),
    cast.NEWS[1]: Frame(
        "the report",
        (),
        (
            (
                "The {subject} has opened a new wing for visitors, which cost {cost} crowns.",
                "For {cost} crowns the {subject} has built a wing for visitors.",
            ),
            (
                (
                    "The work took {months} months and {votes} masons, said {speaker}, who "
                    "speaks for monuments in {province}."
                ),
                (
                    "{speaker}, who speaks for monuments in {province}, praised {votes} masons for "
                    "{months} months of work."
                ),
            ),
        ),
        (),
    ),
    cast.NEWS[2]: Frame(
        "the report",
        (),
        (
            (
                "The {subject} will be closed for {months} months of repairs, {speaker} announced.",
                "{speaker} announced that the {subject} closes for {months} months of repairs.",
            ),
            (
                (
                    "The repairs cost {cost} crowns, and {votes} workers from all over {province} "
                    "will be needed."
                ),
                "{votes} workers from {province} will be paid from a sum of {cost} crowns.",
            ),
        ),
        (),
    ),
}
