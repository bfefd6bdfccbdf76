"""The pages in German, Spanish, French and Chinese: one choir each; tables only."""

# ruff: noqa: RUF001  the Chinese pages have Chinese punctuation

from __future__ import annotations

from corpus_builder.atlas.frame import Frame, Section

_ROWS = {
    "de": ("Gegründet", "Leitung", "Mitglieder"),
    "es": ("Fundación", "Dirección", "Integrantes"),
    "fr": ("Fondation", "Direction", "Membres"),
    "zh": ("成立", "指挥", "成员"),
}
_LEADS = {
    "de": (
        (
            "Der {name} ist ein gemischter Chor aus {town}, der {founded} gegründet wurde.",
            "Seit {founded} singt in {town} ein gemischter Chor, der {name}.",
        ),
        (
            "Er wird von {conductor} geleitet und zählt {singers} Mitglieder.",
            "Die Leitung hat {conductor}; es singen {singers} Mitglieder.",
        ),
    ),
    "es": (
        (
            "El {name} es un coro mixto que se fundó en {founded}.",
            "Fundado en {founded}, el {name} es un coro mixto.",
        ),
        (
            "Lo dirige {conductor} y en él cantan {singers} voces de {town}.",
            "Su director musical es {conductor}; cuenta con {singers} voces de {town}.",
        ),
    ),
    "fr": (
        (
            "Le {name} est un chœur mixte fondé en {founded}.",
            "Fondé en {founded}, le {name} est un chœur mixte.",
        ),
        (
            "Il est dirigé par {conductor} et réunit {singers} voix de la ville de {town}.",
            "{conductor} dirige les {singers} voix venues de toute la ville de {town}.",
        ),
    ),
    "zh": (
        (
            "{name}是一个混声合唱团，成立于{founded}年。",
            "{founded}年，{town}的居民成立了{name}。",
        ),
        (
            "合唱团的指挥是{conductor}，共有{singers}名成员，都住在{town}。",
            "指挥{conductor}带领来自{town}的{singers}名成员演唱。",
        ),
    ),
}
_SECTIONS = {
    "de": Section(
        ("Auftritte", "Das Jahr des Chors"),
        (
            ("Jedes Jahr tritt der Chor bei {festival} auf, meist am letzten Abend.",),
            (
                "Geprobt wird am Donnerstag im alten Schulhaus, im Sommer auch am Fluss.",
                "Die Proben finden im Saal der Feuerwehr statt und sind für alle offen.",
            ),
            (
                "Neue Stimmen sind willkommen; Noten lesen muss niemand können.",
                "Wer mitsingen möchte, bringt nur Zeit und ein Paar warme Socken mit.",
            ),
        ),
    ),
    "es": Section(
        ("Actuaciones", "El año del coro"),
        (
            ("Cada año el coro actúa en {festival}, casi siempre la última noche.",),
            (
                "Los ensayos son los jueves en la antigua escuela, y en verano junto al río.",
                "Se ensaya en la sala de los bomberos, con las puertas abiertas.",
            ),
            (
                "Las voces nuevas son bienvenidas; no hace falta saber leer música.",
                "Quien quiera cantar solo necesita tiempo y un abrigo para el invierno.",
            ),
        ),
    ),
    "fr": Section(
        ("Concerts", "L'année du chœur"),
        (
            ("Chaque année le chœur chante à {festival}, le plus souvent le dernier soir.",),
            (
                "On répète le jeudi dans l'ancienne école, et l'été au bord de la rivière.",
                "Les répétitions ont lieu dans la salle des pompiers, portes ouvertes.",
            ),
            (
                "Les nouvelles voix sont bienvenues; il n'est pas nécessaire de lire la musique.",
                "Pour chanter, il suffit d'avoir du temps et un manteau pour l'hiver.",
            ),
        ),
    ),
    "zh": Section(
        ("演出", "合唱团的一年"),
        (
            ("合唱团每年都在{festival}的最后一个晚上登台演出。",),
            (
                "排练在每个星期四举行，地点是旧学校的礼堂，夏天也在河边。",
                "排练的地方是消防队的大厅，任何人都可以来听。",
            ),
            (
                "合唱团欢迎新的成员，不会看乐谱也没有关系。",
                "想参加的人只需要有时间和一件过冬的大衣。",
            ),
        ),
    ),
}
CHOIRS = {
    language: Frame(
        "",
        tuple(zip(_ROWS[language], ("founded", "conductor", "singers"), strict=True)),
        _LEADS[language],
        (_SECTIONS[language],),
    )
    for language in _LEADS
}
"""Frame of a choir's page by language."""
