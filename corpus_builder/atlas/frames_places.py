"""Sentence frames of provinces, towns, rivers, buildings and festivals; tables only."""

from __future__ import annotations

from corpus_builder.atlas.cast import Kind
from corpus_builder.atlas.frame import Frame, Section

PLACES: dict[Kind, Frame] = {
    Kind.PROVINCE: Frame(
        "the province",
        (("Capital", "capital"), ("Area", "area"), ("Governor", "holder")),
        (
            (
                "{name} is a province, founded in {founded} and governed from {capital}.",
                "The province of {name} was founded in {founded}; its capital is {capital}.",
            ),
            (
                "It covers {area} square kilometres and has {population} inhabitants.",
                "About {population} people live on its {area} square kilometres.",
            ),
        ),
        (
            Section(
                ("Government", "How it is governed"),
                (
                    (
                        "The governor of {name} is {holder}, elected by the assembly in {capital}.",
                        "{holder} is the governor of {name} and presides over the assembly.",
                    ),
                ),
            ),
            Section(
                ("Borders", "Where it lies"),
                (
                    (
                        "To the west the province borders on {neighbour}.",
                        "Its western border is shared with {neighbour}.",
                    ),
                ),
            ),
        ),
    ),
    Kind.TOWN: Frame(
        "the town",
        (
            ("Province", "province"),
            ("River", "river"),
            ("Founded", "founded"),
            ("Population", "population"),
            ("Mayor", "holder"),
        ),
        (
            (
                "{name} is a town in the province of {province}, on the river {river}.",
                "On the river {river} in {province} stands the town of {name}.",
            ),
            (
                "It has {population} inhabitants and lies {elevation} metres above the sea.",
                "At {elevation} metres above the sea, it is home to {population} people.",
            ),
        ),
        (
            Section(
                ("History", "Beginnings"),
                (
                    (
                        "The town was founded in {founded} by {founder}, a ferryman's child.",
                        "{founder} founded the settlement in {founded} beside an older ford.",
                        "Its charter of {founded} names {founder} as the founder.",
                    ),
                ),
            ),
            Section(
                ("The town today", "Administration"),
                (
                    (
                        "The mayor of {name} is {holder}.",
                        "{holder} holds the office of mayor of {name}.",
                    ),
                    (
                        (
                            "Travellers know the place for its {speciality}, and the road to "
                            "{neighbour} for its inns."
                        ),
                        (
                            "The local dish is {speciality}; the best is sold on the road "
                            "to {neighbour}."
                        ),
                    ),
                ),
            ),
        ),
    ),
    Kind.RIVER: Frame(
        "the river",
        (("Length", "length"), ("Source", "source"), ("Mouth", "mouth")),
        (
            (
                "The {name} is a river of {length} kilometres in the province of {province}.",
                "Over {length} kilometres the river {name} crosses the province of {province}.",
            ),
        ),
        (
            Section(
                ("Course", "From the spring to the sea"),
                (
                    (
                        (
                            "It rises below {source}, passes {upstream} and reaches the sea at "
                            "{mouth}."
                        ),
                        (
                            "Its spring lies below {source}; it flows by {upstream} and ends in a "
                            "wide mouth at {mouth}."
                        ),
                    ),
                    (
                        "It is crossed by {bridges} bridges, most of them for carts and walkers.",
                        "Surveyors counted {bridges} bridges over the {name}.",
                    ),
                ),
            ),
        ),
    ),
    Kind.BUILDING: Frame(
        "the building",
        (
            ("Town", "town"),
            ("Opened", "opened"),
            ("Architect", "architect"),
            ("Visitors a year", "visitors"),
        ),
        (
            (
                "The {name} stands in {town} and was opened in {opened}.",
                "Opened in {opened}, the {name} is a landmark of {town}.",
            ),
            (
                "It was designed by {architect}.",
                "Its architect was {architect}.",
            ),
        ),
        (
            Section(
                ("Architecture", "The structure"),
                (
                    (
                        "The building of {material} rises to {height} metres.",
                        "Built of {material}, it is {height} metres high.",
                    ),
                ),
            ),
            Section(
                ("Visiting", "Visitors"),
                (
                    (
                        "About {visitors} visitors come every year.",
                        "The keepers count {visitors} visitors a year.",
                    ),
                ),
            ),
        ),
    ),
    Kind.FESTIVAL: Frame(
        "the festival",
        (
            ("Town", "town"),
            ("First held", "first_year"),
            ("Month", "month"),
            ("Latest winner", "holder"),
        ),
        (
            (
                "The {name} is held every {month} in {town}.",
                "Every {month} the town of {town} holds the {name}.",
            ),
            (
                "The first one took place in {first_year}.",
                "It was held for the first time in {first_year}.",
            ),
        ),
        (
            Section(
                ("Prize", "The contest"),
                (
                    (
                        "The winner takes home a cup of {prize}; the latest winner is {holder}.",
                        "A cup of {prize} is the prize, and {holder} is the latest winner.",
                    ),
                ),
            ),
            Section(
                ("Guests", "Attendance"),
                (
                    (
                        "At the last count {guests} guests came to {town} for it.",
                        "The organisers counted {guests} guests at the latest event.",
                    ),
                ),
            ),
        ),
    ),
}
