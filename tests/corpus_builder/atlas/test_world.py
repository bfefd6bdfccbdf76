"""The whole atlas: any block on its own, all of it connected."""

from __future__ import annotations

from corpus_builder.atlas.cast import BLOCK
from corpus_builder.atlas.world import Atlas


def test_blocks_are_made_once_and_kept() -> None:
    world = Atlas(1)
    assert world.block(3) is world.block(3)
    assert world.block(3).number == 3


def test_an_entity_is_found_by_its_identity() -> None:
    world = Atlas(1)
    for entity in world.block(2).entities:
        assert world.entity(entity.identity) is entity


def test_every_page_is_connected_with_every_other() -> None:
    world = Atlas(1)
    root = {(block, slot): (block, slot) for block in range(12) for slot in range(BLOCK)}

    def find(place: tuple[int, int]) -> tuple[int, int]:
        while root[place] != place:
            place = root[place]
        return place

    for number in range(12):
        for entity in world.block(number).entities:
            for target in entity.targets.values():
                place = (entity.identity.block, entity.identity.slot)
                root[find(place)] = find((target.block, target.slot))
    apart = {find(place) for place in root}
    assert len(apart) == 1


def test_blocks_refer_to_each_other() -> None:
    world = Atlas(1)
    across = [
        target
        for number in range(1, 6)
        for entity in world.block(number).entities
        for target in entity.targets.values()
        if target.block != number
    ]
    assert len(across) > 10
