from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from corpus_builder import recipe_dump, recipe_file
from corpus_builder.errors import BadRecipeError
from corpus_builder.recipe import ExpansionRecipe, Recipe
from tests.conftest import ROOT
from world_core.errors import BadInputError
from world_core.weighing import LONG_QUERY

FULL = """
name = "full-1"
clock = 2026-02-20
canaries = ["ferry", "light \\"house\\""]

[[sources]]
kind = "jsonl"
path = "pages.jsonl"
url_template = "https://x.example/{id}"

[[sources]]
kind = "atlas"
seed = 3
small = true

[extract]
cpu_seconds = 1
least_words = 4

[snapshot]
exact_duplicates = "keep"

[passages]
target = 500
limit = 700

[near]
least = 0.75

[lexical]
engine = "tantivy"
unit = "passage"
k1 = 1.2
b = 0.75
long_query = 9
expansion = "rm3"
fb_docs = 5
fb_terms = 20
fb_weight = 0.75

[lexical.field_weights]
title = 0.5

[dense]
encoder = "tiny"
rows = "lead"
titles = false
tier = "flat"
pages = 7

[dense.arguments]
dim = 8

[sparse]
encoder = "tiny"
bits = 6
top = 50
weight = 0.125

[sparse.arguments]
vocabulary = 64

[reranker]
kind = "flag"
top = 30

[reranker.arguments]
model = "BAAI/bge-reranker-v2-m3"

[fusion]
weight = 0.25
"""


def parse(text: str, base: Path = Path("/recipes")) -> Recipe:
    return recipe_file.parse(text, base=base, origin="x.toml")


def test_reads_every_setting() -> None:
    recipe = parse(FULL)
    assert recipe.name == "full-1"
    assert recipe.clock == int(dt.datetime(2026, 2, 20, tzinfo=dt.UTC).timestamp())
    assert recipe.canaries == ("ferry", 'light "house"')
    first, second = recipe.sources
    assert (first.kind, first.path, first.shown) == (
        "jsonl",
        "/recipes/pages.jsonl",
        "pages.jsonl",
    )
    assert dict(first.arguments) == {"url_template": "https://x.example/{id}"}
    assert dict(second.arguments) == {"seed": 3, "small": True}
    assert recipe.extract.cpu_seconds == 1.0
    assert recipe.extract.least_words == 4
    assert recipe.snapshot.exact_duplicates == "keep"
    assert recipe.near.least == 0.75
    assert (recipe.passages.target, recipe.passages.limit) == (500, 700)
    assert (recipe.lexical.engine, recipe.lexical.unit) == ("tantivy", "passage")
    assert (recipe.lexical.k1, recipe.lexical.b) == (1.2, 0.75)
    assert dict(recipe.lexical.field_weights) == {"title": 0.5}
    assert (recipe.lexical.scoring, recipe.lexical.long_query) == ("bm25", 9)
    assert recipe.lexical.expansion == ExpansionRecipe(docs=5, terms=20, weight=0.75)
    assert recipe.dense is not None
    assert (recipe.dense.encoder, recipe.dense.rows, recipe.dense.titles) == ("tiny", "lead", False)
    assert dict(recipe.dense.arguments) == {"dim": 8}
    assert (recipe.dense.tier, recipe.dense.pages) == ("flat", 7)
    assert recipe.sparse is not None
    assert (recipe.sparse.encoder, dict(recipe.sparse.arguments)) == ("tiny", {"vocabulary": 64})
    assert (recipe.sparse.bits, recipe.sparse.top, recipe.sparse.weight) == (6, 50, 0.125)
    assert recipe.reranker is not None
    assert (recipe.reranker.kind, recipe.reranker.top) == ("flag", 30)
    assert dict(recipe.reranker.arguments) == {"model": "BAAI/bge-reranker-v2-m3"}
    assert recipe.fusion_weight == 0.25


def test_sparse_weights_are_the_dense_models_unless_another_is_named() -> None:
    source = '[[sources]]\nkind = "atlas"\n'
    dense = '[dense]\nencoder = "flag"\n[dense.arguments]\nmodel = "BAAI/bge-m3"\n'
    shared = parse(f"{source}{dense}[sparse]\n").sparse
    assert shared is not None
    assert (shared.encoder, dict(shared.arguments)) == ("flag", {"model": "BAAI/bge-m3"})
    assert (shared.bits, shared.top, shared.weight) == (8, 0, 0.2)
    other = parse(f'{source}{dense}[sparse]\nencoder = "tiny"\n').sparse
    assert other is not None
    assert (other.encoder, dict(other.arguments)) == ("tiny", {})


@pytest.mark.parametrize("dense", ["", '[dense]\nencoder = "tiny"\nrows = "none"\n'])
def test_sparse_weights_without_vectors_are_refused(dense: str) -> None:
    with pytest.raises(BadRecipeError, match=r"\[sparse\] stands without vectors"):
        parse(f'[[sources]]\nkind = "atlas"\n{dense}[sparse]\nencoder = "tiny"\n')


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ("[reranker]\ntop = 5", "has no kind"),
        ('[reranker]\nkind = "tiny"\ntop = 0', "top"),
        ('[reranker]\nkind = "tiny"\ntop = 201', "top"),
        ('[reranker]\nkind = "tiny"\nmodel = "x"', "'model'"),
        ('[reranker]\nkind = "flag"\n[reranker.arguments]\nmodel = 0.5', "arguments"),
        ("[sparse]\nbits = 1", "bits"),
        ("[sparse]\nbits = 9", "bits"),
        ("[sparse]\nweight = 1.5", "weight"),
        ("[sparse]\nrows = 3", "'rows'"),
    ],
)
def test_unusable_sparse_and_reranker_settings_are_refused(table: str, complaint: str) -> None:
    with pytest.raises(BadRecipeError, match=complaint):
        parse(f'[[sources]]\nkind = "atlas"\n[dense]\nencoder = "tiny"\n{table}\n')


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('scoring = "tfidf"', "scoring"),
        ("long_query = -1", "long_query"),
        ('expansion = "bo1"', "expansion"),
        ("fb_docs = 5", "'fb_docs'"),
        ('expansion = "rm3"\nfb_docs = 0', "fb_docs"),
        ('expansion = "rm3"\nfb_terms = 2000', "fb_terms"),
        ('expansion = "rm3"\nfb_weight = 0', "fb_weight"),
        ("k1 = -1", "k1"),
        ("b = 2", "b"),
    ],
)
def test_unusable_lexical_settings_are_refused(line: str, complaint: str) -> None:
    with pytest.raises(BadRecipeError, match=complaint):
        parse(f'[[sources]]\nkind = "atlas"\n[lexical]\n{line}\n')


def test_a_finished_worlds_own_recipe_means_no_more_than_it_says() -> None:
    text = '[[sources]]\nkind = "atlas"\n'
    stored = recipe_file.parse(text, base=Path("/recipes"), origin="x.toml", inputs=False)
    assert stored.lexical.long_query == 0
    assert parse(text).lexical.long_query == LONG_QUERY


def test_the_documentation_recipe_does_not_ask_what_its_queries_were_made_of() -> None:
    assert not recipe_file.load("debian-light").lexical.anchored
    assert recipe_file.load("atlas").lexical.anchored


def test_a_short_recipe_has_defaults() -> None:
    recipe = parse('[[sources]]\nkind = "atlas"')
    assert recipe.name == "x"
    assert recipe.dense is None
    assert recipe.clock is None
    assert recipe.lexical.engine == "lucene"


def test_dump_and_parse_are_inverse_but_for_paths() -> None:
    recipe = parse(FULL)
    again = parse(recipe_dump.dump(recipe))
    assert again == recipe
    assert recipe_dump.dump(again) == recipe_dump.dump(recipe)


def test_dump_names_no_folder_of_this_machine(tmp_path: Path) -> None:
    file = tmp_path / "secret" / "pages.jsonl"
    recipe = parse(f'[[sources]]\nkind = "jsonl"\npath = "{file}"')
    text = recipe_dump.dump(recipe)
    assert 'path = "pages.jsonl"' in text
    assert "secret" not in text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("nam = 'x'", "'nam'"),
        ("[[sources]]\nkind='atlas'\n[lexical]\nengin = 'lucene'", "'engin'"),
        ("[[sources]]\nkind='atlas'\n[dense]\nencoder='tiny'\nrow = 'all'", "'row'"),
        ("[[sources]]\nkind='atlas'\n[snapshot]\nnear = 1", "'near'"),
        ("[[sources]]\nkind='atlas'\n[near]\nmost = 1", "'most'"),
        ("[[sources]]\nkind='atlas'\n[passages]\nstep = 1", "'step'"),
        ("[[sources]]\nkind='atlas'\n[extract]\nstep = 1", "'step'"),
        ("[[sources]]\nkind='atlas'\n[fusion]\nmethod = 'rrf'", "'method'"),
    ],
)
def test_unknown_keys_are_refused_by_name(text: str, found: str) -> None:
    with pytest.raises(BadRecipeError) as caught:
        parse(text)
    assert found in caught.value.sentence
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("name = 3\n[[sources]]\nkind='atlas'", "'3'"),
        ("[[sources]]\nkind='atlas'\n[lexical]\nengine = 'solr'", "'solr'"),
        ("[[sources]]\nkind='atlas'\n[lexical]\nb = 1.5", "'1.5'"),
        ("[[sources]]\nkind='atlas'\n[lexical]\nb = nan", "'nan'"),
        ("[[sources]]\nkind='atlas'\n[lexical]\nk1 = true", "'True'"),
        ("[[sources]]\nkind='atlas'\n[lexical.field_weights]\ntitle = -1", "'-1.0'"),
        ("[[sources]]\nkind='atlas'\n[passages]\ntarget = 900\nlimit = 800", "'800'"),
        ("[[sources]]\nkind='atlas'\n[snapshot]\nexact_duplicates = 'drop'", "'drop'"),
        ("[[sources]]\nkind='atlas'\n[near]\nleast = 0.95", "'0.95'"),
        ("[[sources]]\nkind='atlas'\n[near]\nleast = 0.2", "'0.2'"),
        ("[[sources]]\nkind='atlas'\n[near]\nleast = -1", "'-1.0'"),
        ("[[sources]]\nkind='atlas'\n[dense]\nrows = 'all'", "no encoder"),
        ("[[sources]]\nkind='atlas'\n[dense]\nencoder='tiny'\nrows = 'some'", "'some'"),
        ("[[sources]]\nkind='atlas'\n[dense]\nencoder='tiny'\n[dense.arguments]\nx=1.5", "'x'"),
        ("[[sources]]\nkind='atlas'\nlist = [1]", "'[1]'"),
        ("[[sources]]\npath='x'", "no kind"),
        ("sources = 'x'", "'x'"),
        ("sources = ['x']", "must be tables"),
        ("clock = 12\n[[sources]]\nkind='atlas'", "'12'"),
        ("clock = 'soon'\n[[sources]]\nkind='atlas'", "'soon'"),
        ("canaries = [1]\n[[sources]]\nkind='atlas'", "'[1]'"),
        ("name = 'x'", "no [[sources]]"),
        ("name = ", "not TOML"),
    ],
)
def test_bad_values_are_refused_with_the_value(text: str, found: str) -> None:
    with pytest.raises(BadRecipeError) as caught:
        parse(text)
    assert found in caught.value.sentence


@pytest.mark.parametrize("name", ["../x", "X", "", "a/b", "a" * 65, "-a", "a\x00"])
def test_bad_names_are_refused(name: str) -> None:
    quoted = name.replace("\x00", "\\u0000")
    with pytest.raises(BadInputError):
        parse(f'name = "{quoted}"\n[[sources]]\nkind = "atlas"')


def test_include_is_a_set_of_addresses(tmp_path: Path) -> None:
    text = '[[sources]]\nkind="atlas"\n[dense]\nencoder="tiny"\ninclude="list.txt"'
    list_file = tmp_path / "list.txt"
    list_file.write_text("http://b.example/\n\nhttps://a.example/x#y\n")
    one = parse(text, tmp_path)
    list_file.write_text("https://a.example/x\nhttps://b.example/\nhttps://b.example/\n")
    two = parse(text, tmp_path)
    assert one == two
    assert one.dense is not None
    assert one.dense.include_keys == {"https://a.example/x", "https://b.example/"}
    list_file.write_text("https://a.example/\n")
    assert parse(text, tmp_path).content_part() != one.content_part()


def test_include_digest_is_checked(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("https://a.example/\n")
    text = '[[sources]]\nkind="atlas"\n[dense]\nencoder="tiny"\ninclude="list.txt"'
    with pytest.raises(BadRecipeError, match="include_digest"):
        parse(f'{text}\ninclude_digest="00"', tmp_path)
    with pytest.raises(BadRecipeError, match="cannot be read"):
        parse(text, tmp_path / "elsewhere")


def test_a_worlds_own_recipe_needs_no_inputs(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("https://a.example/\n")
    text = '[[sources]]\nkind="atlas"\n[dense]\nencoder="tiny"\ninclude="list.txt"'
    recipe = parse(text, tmp_path)
    again = recipe_file.parse(
        recipe_dump.dump(recipe), base=tmp_path / "elsewhere", origin="x.toml", inputs=False
    )
    assert again.content_part() == recipe.content_part()


def test_near_duplicates_are_sought_unless_a_finished_world_does_not_say_so() -> None:
    text = '[[sources]]\nkind="atlas"\n'
    assert parse(text).near.least == 0.6
    assert parse(f"{text}[near]\nleast = 0").near.least == 0.0
    old = recipe_file.parse(text, base=Path(), origin="x.toml", inputs=False)
    assert old.near.least == 0.0
    assert "near" not in old.content_part()


def test_rows_none_means_no_dense_index() -> None:
    text = '[[sources]]\nkind="atlas"\n[dense]\nencoder="tiny"\nrows="none"'
    assert parse(text).dense is None


def test_shipped_recipes_are_listed_and_valid() -> None:
    names = recipe_file.shipped()
    assert {"atlas", "atlas-demo", "atlas-toy", "debian-light"} <= set(names)
    for name in names:
        assert recipe_file.load(name).name == name


def test_missing_recipes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRecipeError, match="'nothing'") as caught:
        recipe_file.load("nothing")
    assert "atlas-demo" in caught.value.hint
    with pytest.raises(BadRecipeError, match="cannot be read"):
        recipe_file.load(str(tmp_path / "none.toml"))


def test_load_reads_paths_beside_the_file(tmp_path: Path) -> None:
    file = tmp_path / "r.toml"
    file.write_text('[[sources]]\nkind = "warc"\npath = "a.warc"')
    recipe = recipe_file.load(str(file))
    assert recipe.name == "r"
    assert recipe.sources[0].path == str(tmp_path / "a.warc")


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("1970-01-02", 86400),
        ("1970-01-01T00:00:05Z", 5),
        ("1970-01-01T01:00:00+01:00", 0),
    ],
)
def test_instants(text: str, instant: int) -> None:
    assert recipe_file.parse_instant(text) == instant


KEYS = {line.split(" =")[0] for line in FULL.splitlines() if " =" in line} - {
    "small",
    "dim",
    "vocabulary",
    "model",
}


@pytest.mark.parametrize("key", sorted(KEYS | {"include", "include_digest", "skip_bad"}))
def test_the_page_on_recipes_names_every_key(key: str) -> None:
    page = (ROOT / "docs" / "recipes.md").read_text("utf-8")
    assert f"`{key}`" in page or f"{key} = " in page
