"""HTML that cannot forget to escape: text becomes markup only through `element`."""

from __future__ import annotations

from html import escape
from typing import TypeAlias

VOID = frozenset({"br", "col", "hr", "input", "link", "meta"})
"""Elements that have no content and no end."""


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Content: TypeAlias = Markup | str | int | float | None
"""What an element may hold; all but `Markup` is escaped, and None is nothing."""


def element(tag: str, /, *content: Content, **attributes: str | int | bool | None) -> Markup:
    """One element.

    Parameters
    ----------
    tag : str
        Such as "p".
    *content : Markup, str, number or None
        What is within, in order.
    **attributes : str, int, bool or None
        ``class_`` stands for ``class`` and other underscores for hyphens; True is an attribute
        without a value; None and False are left out.

    Returns
    -------
    Markup
        The element with all that is not `Markup` escaped.
    """
    said = "".join(_attribute(key, value) for key, value in attributes.items())
    if tag in VOID:
        return Markup(f"<{tag}{said}>")
    return Markup(f"<{tag}{said}>{join(*content)}</{tag}>")


def join(*content: Content, by: str = "") -> Markup:
    """Several pieces in order, escaped where they are not `Markup`."""
    return Markup(by.join(_escaped(piece) for piece in content if piece is not None))


def _escaped(piece: Markup | str | float) -> str:
    return piece if isinstance(piece, Markup) else escape(str(piece))


def _attribute(key: str, value: str | int | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'
