"""Code versions: a hash of those parts of the package that a result can depend on, and no others.

From a class or function the closure of what it names is taken, definition by definition, within the
package: a change of another class of the same module, or a reworded docstring, makes no row stale.
What a definition cannot be seen to name (attributes of objects) belongs to classes that some
definition in the closure names, as it makes the objects.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
from functools import cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

LIBRARIES = ("numpy", "scipy", "scikit-learn")
"""Libraries whose version is part of each code version, as they do the computing."""

RUNNER = "bnca.experiments.measure"
"""All of this module, and what it names, makes every row."""


class Module(NamedTuple):
    """A module's source by the names that it binds at its top.

    Attributes
    ----------
    definitions : dict of str to list
        Statements that define a name.
    imports : dict of str to (str, str or None)
        Module, and the name in it, or None where the module itself is meant.
    always : list
        All other statements: they act when the module is imported.
    """

    definitions: dict[str, list[ast.stmt]]
    imports: dict[str, tuple[str, str | None]]
    always: list[ast.stmt]


@cache
def code_version(root: Any) -> str:
    """Hash of what a class or function does, with the runner and the libraries under it.

    Comments, docstrings and layout do not count.

    Parameters
    ----------
    root : class or function
        Where results come from.  Of one outside the package, the module's whole source counts.

    Returns
    -------
    str
        16 hexadecimal digits.
    """
    package = __name__.partition(".")[0]
    inside = [(RUNNER, "*")]
    said = [f"{library} {version(library)}" for library in LIBRARIES]
    if root.__module__.partition(".")[0] == package:
        inside.append((root.__module__, root.__qualname__.partition(".")[0]))
    else:
        source = meaning(ast.parse(inspect.getsource(sys.modules[root.__module__])))
        said.append(f"{root.__module__}.{root.__qualname__} {source}")
    said += closure(inside, package)
    return hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]


def closure(roots: list[tuple[str, str]], package: str) -> list[str]:
    """What the definitions and all that they name within a package do, sorted.

    Parameters
    ----------
    roots : list of (module, name)
        Definitions; the name ``*`` stands for all of a module.
    package : str
        Its name.

    Returns
    -------
    list of str
        One entry for each definition, and for each name from outside that one of them uses.
    """
    waiting, seen = list(roots), set(roots)
    out: set[str] = set()
    while waiting:
        said, targets = _read(*waiting.pop(), package)
        out.update(said)
        waiting += targets - seen
        seen |= targets
    return sorted(out)


@cache
def _read(place: str, name: str, package: str) -> tuple[list[str], set[tuple[str, str]]]:
    """What a definition does, with what it takes from outside; and what it names within."""
    module = read_module(place)
    names = list(module.definitions) if name == "*" else [name]
    found = [(key, part) for key in names for part in module.definitions.get(key, [])]
    found += [("", part) for part in module.always]
    said: list[str] = []
    targets: set[tuple[str, str]] = set()
    for key, part in found:
        said.append(f"{place}.{key} {meaning(part)}")
        imports = module.imports | _imports_within(part)
        for chain in _chains(part):
            if chain[0] in imports:
                target = _follow(*imports[chain[0]], list(chain[1:]), package)
                if target[0].partition(".")[0] == package:
                    targets.add(target)
                else:
                    said.append(f"{place} {chain[0]} is {target[0]}.{target[1]}")
            elif chain[0] in module.definitions:
                targets.add((place, chain[0]))
    return said, targets


@cache
def read_module(name: str) -> Module:
    """Source of a module of the package, cut up."""
    found = find_spec(name)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(f"{name} has no source file.", name=name)
    module = Module({}, {}, [])
    _sort(ast.parse(Path(found.origin).read_text("utf-8")).body, module, acts=True)
    return module


def meaning(tree: ast.AST) -> str:
    """Syntax tree as text, without strings that stand alone."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [part for part in body if not _is_text(part)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(node: ast.AST) -> bool:
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        return False
    return isinstance(node.value.value, str)


def _sort(body: list[ast.stmt], module: Module, *, acts: bool) -> None:
    """Put each statement where it belongs; those within an ``if`` or ``try`` bind names too."""
    for part in body:
        if isinstance(part, (ast.Import, ast.ImportFrom)):
            module.imports.update(_bound(part))
            continue
        names = _defined(part)
        for name in names:
            module.definitions.setdefault(name, []).append(part)
        if names or _for_types_only(part) or _is_text(part):
            continue
        if acts:
            module.always.append(part)
        for inner in (part, *getattr(part, "handlers", [])):
            for field in ("body", "orelse", "finalbody"):
                _sort(getattr(inner, field, []), module, acts=False)


def _defined(part: ast.stmt) -> set[str]:
    """Names that a definition or an assignment binds."""
    if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {part.name}
    if isinstance(part, ast.Assign):
        targets = part.targets
    elif isinstance(part, (ast.AnnAssign, ast.AugAssign)):
        targets = [part.target]
    else:
        return set()
    found = (node for target in targets for node in ast.walk(target))
    return {node.id for node in found if isinstance(node, ast.Name)}


def _for_types_only(part: ast.stmt) -> bool:
    test = getattr(part, "test", None)
    return isinstance(part, ast.If) and isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def _bound(part: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, tuple[str, str | None]]]:
    """Names that an import binds, with what they stand for."""
    for alias in part.names:
        if isinstance(part, ast.ImportFrom):
            yield alias.asname or alias.name, (str(part.module), alias.name)
        elif alias.asname:
            yield alias.asname, (alias.name, None)
        else:
            first = alias.name.partition(".")[0]
            yield first, (first, None)


def _imports_within(part: ast.stmt) -> dict[str, tuple[str, str | None]]:
    found = (node for node in ast.walk(part) if isinstance(node, (ast.Import, ast.ImportFrom)))
    return {name: place for node in found for name, place in _bound(node)}


def _chains(node: ast.AST) -> Iterator[tuple[str, ...]]:
    """Names with the attributes taken of them: a.b.c is one chain of three."""
    names: list[str] = []
    inner = node
    while isinstance(inner, ast.Attribute):
        names.append(inner.attr)
        inner = inner.value
    if isinstance(inner, ast.Name):
        yield (inner.id, *reversed(names))
    else:
        for child in ast.iter_child_nodes(inner):
            yield from _chains(child)


def _follow(source: str, name: str | None, rest: list[str], package: str) -> tuple[str, str]:
    """Where an imported name is defined: through packages, and names that they hand on."""
    while True:
        if name is None:
            if not rest:
                return source, "*"
            name, *rest = rest
        if source.partition(".")[0] != package:
            return source, name
        if _is_module(f"{source}.{name}"):
            source, name = f"{source}.{name}", None
            continue
        module = read_module(source)
        if name in module.definitions:
            return source, name
        if name in module.imports:
            source, name = module.imports[name]
            continue
        # A name that the module makes when it is asked for.
        found = getattr(import_module(source), name)
        return (found.__module__, name) if hasattr(found, "__module__") else (source, "*")


@cache
def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # what should hold it is no package
        return False
