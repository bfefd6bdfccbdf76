"""Rules about code that no linter checks as we need them."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import ROOT

LONGEST_FUNCTION = 60
NOQA = re.compile(r"# noqa(?::\s*[A-Z0-9, ]+)?(?P<rest>.*)$")
BOUNDARIES = {"world_server/problems.py", "corpus_builder/stages.py"}
"""The only files that may catch every exception: a request, a page of a build."""


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_functions_are_short(sources: list[Path]) -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in sources
        for node in _functions(path)
        if (node.end_lineno or node.lineno) - node.lineno + 1 > LONGEST_FUNCTION
    ]
    assert long == []


def test_broad_except_stands_only_at_named_boundaries(sources: list[Path]) -> None:
    found = []
    for path in sources:
        name = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ExceptHandler) and _is_broad(node) and name not in BOUNDARIES:
                found.append(f"{name}:{node.lineno}")
    assert found == []


def _is_broad(node: ast.ExceptHandler) -> bool:
    """Say whether the handler takes every exception and does not raise it again."""
    if node.type is None:
        broad = True
    else:
        names = [leaf.id for leaf in ast.walk(node.type) if isinstance(leaf, ast.Name)]
        broad = bool({"Exception", "BaseException"} & set(names))
    raised_again = any(isinstance(leaf, ast.Raise) and leaf.exc is None for leaf in ast.walk(node))
    return broad and not raised_again


def test_no_global_statements(sources: list[Path]) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sources
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Global)
    ]
    assert found == []


def test_modules_read_no_environment_at_import(sources: list[Path]) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sources
        for statement in ast.parse(path.read_text(encoding="utf-8")).body
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for node in ast.walk(statement)
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv", "basicConfig"}
    ]
    assert found == []


def test_every_noqa_gives_its_reason(sources: list[Path]) -> None:
    bare = []
    for path in sources:
        text = path.read_text(encoding="utf-8")
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            match = NOQA.search(token.string) if token.type == tokenize.COMMENT else None
            if match is not None and not match["rest"].strip(" -:"):
                bare.append(f"{path.relative_to(ROOT)}:{token.start[0]}")
    assert bare == []


def test_no_unsafe_deserialisation(sources: list[Path]) -> None:
    unsafe = {"pickle", "joblib", "marshal", "shelve", "dill"}
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sources
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        and unsafe & {part.split(".")[0] for part in _imported(node)}
    ]
    assert found == []


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [alias.name for alias in node.names]


def test_numpy_loads_without_pickle(sources: list[Path]) -> None:
    found = []
    for path in sources:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "load"
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "np"
                and not any(
                    word.arg == "allow_pickle"
                    and isinstance(word.value, ast.Constant)
                    and word.value.value is False
                    for word in node.keywords
                )
            ):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert found == []
