"""The closed lexicon of the atlas and the names made of it.

Names are invented: a head, a middle and an ending of our own, in a seeded order. The order is an
affine walk over all combinations, so the n-th name of a kind is known without the ones before it,
and no two are equal as long as fewer are asked for than there are combinations.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence


def words(text: str) -> tuple[str, ...]:
    """Return the entries of a table: split at ``|`` where there is one, else at white space."""
    return tuple(text.split("|") if "|" in text else text.split())


HEADS = words(
    "Bal Bren Cald Corv Dell Dorn Ebb Esk Fal Fenn Garl Grim Hald Hess Ist Jarr Kelm Kost "
    "Lamb Lorn Marr Mold Nesk Norv Osk Orm Pell Prith Quarl Rask Rov Sarn Skell Tarn Thrum "
    "Ulv Varn Vess Wald Wysk Yarr Zeld Zorn Aln Brisk Druv Hulm Tolv"
)
MIDDLES = words("a e i o u am em im om av ev iv ov ay ey ow")
TOWN_ENDINGS = words("bury ford haven wick stead holm gate port burgh fell cove bridge")
PROVINCE_ENDINGS = words("shire land reach dale quarter hundred coast downs")
RIVER_ENDINGS = words("ber dle ska thel ness zin")
GIVEN_NAMES = words(
    "Alda Arvo Berit Bram Cato Ceda Corin Dagna Dessa Edric Eila Emeric Fenna Florin Gerda Goran "
    "Halla Hedvik Idris Ilka Jorun Joska Kaja Klem Lasse Liva Ludo Maren Mirko Nadja Nils Oda "
    "Orrin Pavla Perrin Quilla Radka Rurik Sanna Sorin Tilde Torben Ulla Urban Valda Viggo Wanda "
    "Wilmar Xenia Ylva Yorick Zdenka Zoran Aurel Bodil Casimir Dorte Elke Folke Gisla Hanno "
    "Ingmar Jutta Kasper"
)
SURNAME_ENDINGS = words(
    "ack ander barth drick erson feld gren hagen ik jansk kamp lund mann nack oster pold quist "
    "rud strom tzer unger venk witz zak brook croft dahl holt moor rick"
)
COMPANY_TYPES = words(
    "Works|Foundry|Brewery|Mills|Instruments|Glassworks|Timber Company|"
    "Salt Company|Weavers|Optical House|Bell Founders|Tramways|Paper Mills|Clockmakers|"
    "Ropewalk|Porcelain|Dye Works|Engine Company"
)
BUILDING_TYPES = words(
    "Lighthouse|Bridge|Library|Windmill|Town Hall|Theatre|Aqueduct|Granary|"
    "Bath House|Custom House|Clock Tower"
)
FESTIVAL_TYPES = words(
    "Lantern Fair|Harvest Games|Boat Race|Book Week|Kite Days|Winter Market|Choir Contest|"
    "Apple Feast|Chess Meeting|Puppet Festival|Fire Night|Bread Fair"
)
FINDING_TYPES = words("effect|comet|mineral|beetle|constant|fern|fault line|method")
ADJECTIVES = words(
    "Amber Ancient Ashen Bitter Bright Broken Burning Cold Copper Crimson Distant Drowned Early "
    "Empty Faithful Fallen Gentle Gilded Golden Green Grey Hidden Hollow Hungry Iron Ivory "
    "Lasting Little Lonely Lost Merry Midnight Painted Pale Patient Proud Quiet Restless Russet "
    "Sacred Scarlet Secret Silent Silver Sleeping Stubborn Twilight Wandering"
)
NOUNS = words(
    "Anchor Antler Arrow Badger Bell Birch Bramble Candle Compass Cormorant Crane Crown Curlew "
    "Dolphin Ember Falcon Feather Garden Glacier Gull Harbour Harp Heron Hound Ivy Kestrel Key "
    "Lantern Lark Ledger Lily Mirror Moth Needle Oak Orchard Otter Petrel Pilgrim Raven Reed "
    "Saffron Sparrow Sparrowhawk Thistle Tide Weaver Willow"
)
BOOK_FRAMES = (
    "The {adjective} {noun}",
    "One {adjective} {noun}",
    "Letters from the {adjective} {noun}",
    "The Year of the {adjective} {noun}",
    "Under the {adjective} {noun}",
)
PROFESSIONS = words(
    "painter|chemist|engineer|novelist|botanist|composer|surveyor|physician|astronomer|"
    "architect|historian|shipwright"
)
PRODUCTS = words(
    "church bells|marine compasses|window glass|linen sails|brass instruments|writing paper|"
    "river barges|tower clocks|sea salt|field telescopes|blue dye|printing type|steam pumps|"
    "oak barrels|fishing nets|tram cars"
)
SPECIALITIES = words(
    "smoked eel|plum dumplings|barley cake|salted butter|pear cider|nettle soup|rye pretzels|"
    "honey wafers|pickled samphire|chestnut bread|juniper cheese|quince paste|oat biscuits|"
    "elderflower wine|mustard sausages|walnut toffee"
)
HILLS = words(
    "Anvil Crag|Badger Hill|Cloud Ridge|Drum Fell|Eagle Scar|Foxglove Down|Gallows Tor|"
    "Heather Law|Iron Knoll|Kite Rise|Long Saddle|Mist Head|Otter Pass|Raven Top|Saddler's Edge|"
    "Thunder Moor"
)
MATERIALS = words(
    "grey granite|yellow brick|larch wood|red sandstone|white limestone|cast iron|flint|glazed tile"
)
MONTHS = words(
    "January February March April May June July August September October November December"
)


def stream(seed: int, *purpose: object) -> random.Random:
    """Return the random stream of one purpose; equal arguments give equal streams anywhere."""
    return random.Random(f"{seed}:" + ":".join(map(str, purpose)))  # noqa: S311  seeded fiction


class Walk:
    """The combinations of some word lists in a seeded order, each exactly once a round."""

    def __init__(self, seed: int, purpose: str, *parts: Sequence[str]) -> None:
        self.parts = parts
        self.total = math.prod(len(part) for part in parts)
        draw = stream(seed, "walk", purpose)
        self._start = draw.randrange(self.total)
        step = draw.randrange(self.total // 3, self.total)
        while math.gcd(step, self.total) != 1:
            step += 1
        self._step = step

    def __getitem__(self, n: int) -> tuple[str, ...]:
        """Return the n-th combination, one word of each list."""
        if not 0 <= n < self.total:
            raise IndexError(f"name {n} of {self.total}")
        position = (self._start + n * self._step) % self.total
        words = []
        for part in self.parts:
            position, index = divmod(position, len(part))
            words.append(part[index])
        return tuple(words)


class Names:
    """Names of one world by kind and number."""

    def __init__(self, seed: int) -> None:
        self._walks = {kind: Walk(seed, kind, *parts) for kind, parts in _PARTS.items()}

    def name(self, kind: str, n: int) -> tuple[str, str]:
        """Return the n-th name of the kind and its type ("" where the kind has no types)."""
        first, second, *rest = self._walks[kind][n]
        if kind in _TYPED:
            return f"{first}{second} {rest[0]}", rest[0]
        if kind == "person":
            return f"{first} {second}{rest[0]}", ""
        if kind == "book":
            return first.format(adjective=second, noun=rest[0]), ""
        return (f"{first} {second}" if kind == "ship" else first + second + rest[0]), ""


_TYPED = frozenset(
    {"company", "shipyard", "press", "building", "observatory", "festival", "finding"}
)
_PARTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "town": (HEADS, MIDDLES, TOWN_ENDINGS),
    "province": (HEADS, MIDDLES, PROVINCE_ENDINGS),
    "river": (HEADS, MIDDLES, RIVER_ENDINGS),
    "person": (GIVEN_NAMES, HEADS, SURNAME_ENDINGS),
    "company": (HEADS, SURNAME_ENDINGS, COMPANY_TYPES),
    "shipyard": (HEADS, SURNAME_ENDINGS, ("Shipyard",)),
    "press": (HEADS, SURNAME_ENDINGS, ("Press",)),
    "building": (HEADS, MIDDLES, BUILDING_TYPES),
    "observatory": (HEADS, MIDDLES, ("Observatory",)),
    "festival": (HEADS, MIDDLES, FESTIVAL_TYPES),
    "finding": (HEADS, SURNAME_ENDINGS, FINDING_TYPES),
    "ship": (ADJECTIVES, NOUNS),
    "book": (BOOK_FRAMES, ADJECTIVES, NOUNS),
}


def slug(name: str) -> str:
    """Return the name as a path segment: lower case letters, digits and hyphens."""
    kept = "".join(c if c.isalnum() else "-" for c in name.lower())
    return "-".join(part for part in kept.split("-") if part)
