"""The command line: parse, call, print."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from bnca import __version__
from bnca.commands import compare, reproduce
from bnca.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = (compare, reproduce)
"""Modules with `add_parser(commands)` and `run(options)`, in the order of the help text."""

EXTRAS = frozenset({"matplotlib", "pandas", "pyarrow", "rich"})
"""Packages of the extra "app"."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return 130
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package in EXTRAS:
            print(
                f"bnca {options.command} needs {package}, which is not installed. "
                'Try: pip install "bnca[app]"',
                file=sys.stderr,
            )
            return 1
        raise
    except InputError as error:
        print(f"bnca {options.command}: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"bnca {options.command}: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bnca",
        description="Learn how to measure distance from labelled data, and how sure that is.",
    )
    parser.add_argument("--version", action="version", version=f"bnca {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for command in COMMANDS:
        command.add_parser(commands)
    return parser
