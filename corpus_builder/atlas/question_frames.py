"""Question frames of the atlas, by kind of page; tables only."""

from __future__ import annotations

from corpus_builder.atlas.cast import Kind

LOOKUP: dict[tuple[Kind, str], str] = {
    (Kind.TOWN, "founder"): "Who founded the town of {name}?",
    (Kind.TOWN, "founded"): "In which year was the town of {name} founded?",
    (Kind.TOWN, "speciality"): "Which food is the town of {name} known for?",
    (Kind.RIVER, "source"): "Below which hill does the river {name} rise?",
    (Kind.RIVER, "length"): "How many kilometres long is the river {name}?",
    (Kind.PERSON, "birthday"): "On which day was {name} born?",
    (Kind.PERSON, "birthplace"): "In which town was {name} born?",
    (Kind.COMPANY, "founder"): "Who founded {name}?",
    (Kind.COMPANY, "product"): "What does {name} make?",
    (Kind.BUILDING, "architect"): "Who designed the {name}?",
    (Kind.BUILDING, "height"): "How many metres high is the {name}?",
    (Kind.BUILDING, "opened"): "In which year was the {name} opened?",
    (Kind.FESTIVAL, "first_year"): "When was the {name} held for the first time?",
    (Kind.FESTIVAL, "month"): "In which month is the {name} held?",
    (Kind.SHIP, "builder"): "Which shipyard built the {name}?",
    (Kind.BOOK, "author"): "Who wrote {name}?",
    (Kind.BOOK, "setting"): "In which town is {name} set?",
    (Kind.FINDING, "discoverer"): "Who first described the {name}?",
    (Kind.FINDING, "year"): "In which year was the {name} first described?",
}
NEWS_LOOKUP = (
    "How many crowns will the new school of {subject} cost?",
    "How many crowns did the visitors' wing of the {subject} cost?",
    "How many crowns do the repairs of the {subject} cost?",
)
"""One for each story that is not syndicated, in the order of ``cast.NEWS``."""
TWO_HOP: dict[tuple[Kind, str, str], str] = {
    (Kind.COMPANY, "founder", "birthplace"): "In which town was the founder of {name} born?",
    (Kind.BUILDING, "architect", "birthday"): "On which day was the architect of the {name} born?",
    (
        Kind.BUILDING,
        "town",
        "founded",
    ): "In which year was the town where the {name} stands founded?",
    (Kind.FESTIVAL, "town", "founder"): "Who founded the town in which the {name} is held?",
    (Kind.SHIP, "builder", "founder"): "Who founded the shipyard that built the {name}?",
    (Kind.SHIP, "port", "river"): "On which river does the home port of the {name} lie?",
    (Kind.BOOK, "author", "birthplace"): "In which town was the author of {name} born?",
    (
        Kind.BOOK,
        "setting",
        "speciality",
    ): "Which food is the town known for in which {name} is set?",
    (Kind.FINDING, "discoverer", "died"): "In which year did the discoverer of the {name} die?",
    (Kind.FINDING, "place", "architect"): "Who designed the place where the {name} was described?",
    (Kind.TOWN, "river", "source"): "Below which hill rises the river on which {name} stands?",
    (Kind.PERSON, "birthplace", "founder"): "Who founded the town where {name} was born?",
}
COMPARISON: dict[tuple[Kind, str], tuple[str, bool]] = {
    (Kind.RIVER, "length"): ("Which river is longer, the {first} or the {second}?", True),
    (Kind.BUILDING, "height"): ("Which is taller, the {first} or the {second}?", True),
    (Kind.SHIP, "launched"): ("Which ship was launched first, {first} or {second}?", False),
    (Kind.COMPANY, "founded"): ("Which company is older, {first} or {second}?", False),
    (Kind.TOWN, "elevation"): ("Which town lies higher, {first} or {second}?", True),
    (Kind.FESTIVAL, "first_year"): ("Which has been held longer, {first} or {second}?", False),
    (Kind.BOOK, "pages"): ("Which novel has more pages, {first} or {second}?", True),
}
"""Question by kind and fact, and whether the greater number wins."""
OLDEST_TOWN = "Which of the four towns in the province of {name} was founded first?"
AS_OF: dict[tuple[Kind, str], str] = {
    (Kind.PROVINCE, "holder"): "Who was the governor of {name} on {day}?",
    (Kind.TOWN, "holder"): "Who was the mayor of {name} on {day}?",
    (Kind.TOWN, "population"): "How many inhabitants did {name} have on {day}?",
    (Kind.COMPANY, "holder"): "Who was the director of {name} on {day}?",
    (Kind.FESTIVAL, "holder"): "Who was the latest winner of the {name} on {day}?",
    (Kind.SHIP, "holder"): "Who was the captain of the {name} on {day}?",
    (Kind.BUILDING, "visitors"): "How many visitors a year did the {name} count on {day}?",
    (Kind.PERSON, "home"): "In which town did {name} live on {day}?",
}
NAMESAKE = {
    "birthplace": "In which town was the {sort} {name} born?",
    "birthday": "On which day was the {sort} {name} born?",
    "died": "In which year did the {sort} {name} die?",
}
LIKE_NAMED = {
    Kind.TOWN: ("founder", "Who founded {name}, not {other}?"),
    Kind.SHIP: ("launched", "In which year was the {name} launched, not the {other}?"),
}
CHOIR = {
    "conductor": "Who conducts the town choir of {town}?",
    "founded": "In which year was the town choir of {town} founded?",
    "singers": "How many singers does the town choir of {town} have?",
}
