"""The checks, each in an environment of its own; `nox --list` names them, `nox` runs most."""

from __future__ import annotations

from pathlib import Path

import nox

nox.needs_version = ">=2024.4.15"

PYTHONS = ["3.11", "3.12", "3.13"]
PROJECT = nox.project.load_toml("pyproject.toml")["project"]
DEV = PROJECT["optional-dependencies"]["dev"]


@nox.session
def lint(session: nox.Session) -> None:
    """Style and spelling."""
    session.install(*DEV)
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("codespell")


@nox.session
def types(session: nox.Session) -> None:
    """Types of the package, strictly."""
    session.install(".[app]", *DEV)
    session.run("mypy", "--strict", "src/bnca")


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Tests and examples with the newest releases; arguments after -- go to pytest."""
    session.install(".[test]")
    session.run("pytest", *session.posargs)


@nox.session(python=PYTHONS[0])
def lowest(session: nox.Session) -> None:
    """Tests and examples with the oldest releases that pyproject.toml allows."""
    floors = Path(session.create_tmp(), "lowest.txt")
    pins = [dependency.replace(">=", "==") for dependency in PROJECT["dependencies"]]
    floors.write_text("\n".join(pins), encoding="utf-8")
    session.install(".[test]", "--constraint", str(floors), "--only-binary", "numpy,scipy")
    session.run("pytest", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Pages in build/docs; a warning is an error."""
    session.install(".[app,docs]")
    session.run("sphinx-build", "-W", "--keep-going", "-b", "html", "docs", "build/docs")


@nox.session(default=False)
def benchmarks(session: nox.Session) -> None:
    """Every script in benchmarks/, or those named after --."""
    session.install(".[app]")
    scripts = session.posargs or sorted(str(path) for path in Path("benchmarks").glob("*.py"))
    for script in scripts:
        session.run("python", script)
