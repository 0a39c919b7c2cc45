"""SVG files made fit to stand beside others on one page."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from bnca.report.markup import Markup

REFERENCE = re.compile(r"url\(\s*['\"]?#([^)'\"]+)['\"]?\s*\)")
EVERYTHING = re.compile(r"\*\s*\{([^{}]*)\}")
DROPPED = frozenset({"foreignObject", "metadata", "script", "style", "title"})
PIXELS_PER_POINT = 4 / 3


def inline_svg(svg: str, prefix: str, alternative: str) -> Markup:
    """An SVG file as an element of a page.

    Identifiers get a prefix, as those of two pictures may be the same; the picture takes the width
    that its place has; what could run or be fetched from elsewhere is left out.

    Parameters
    ----------
    svg : str
        A whole file, as Matplotlib writes it.
    prefix : str
        Unique on the page.
    alternative : str
        What a person who does not see the picture should hear.

    Returns
    -------
    Markup
        An ``svg`` element with the role and the label of an image.
    """
    root = ET.fromstring(svg)  # noqa: S314 - drawn by our own commands
    rules = _rules_for_everything(root)
    _clean(root, prefix)
    width = _pixels(root)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    style = f"--width:{width:.0f}px;" if width else ""
    root.attrib |= {
        "id": f"{prefix}-picture",
        "role": "img",
        "aria-label": alternative,
        "style": style + rules,
    }
    return Markup(ET.tostring(root, encoding="unicode"))


def _rules_for_everything(root: ET.Element) -> str:
    """Matplotlib styles ``*``: on a page that would be every picture, here it is inherited."""
    text = "".join(e.text or "" for e in root.iter() if _local(e.tag) == "style")
    rules = ";".join(EVERYTHING.findall(text))
    return "" if "url" in rules or "\\" in rules else rules


def _clean(root: ET.Element, prefix: str) -> None:
    for parent in root.iter():
        for child in list(parent):
            if not isinstance(child.tag, str) or _local(child.tag) in DROPPED:
                parent.remove(child)
    for part in root.iter():
        part.tag = _local(part.tag)
        pairs = [(_local(key), value) for key, value in part.attrib.items()]
        part.attrib.clear()
        part.attrib.update(_kept(pairs, prefix))


def _kept(pairs: list[tuple[str, str]], prefix: str) -> dict[str, str]:
    out: dict[str, str] = {}
    for key, value in pairs:
        if key == "id":
            out[key] = f"{prefix}-{value}"
        elif key == "href":
            if value.startswith("#"):
                out[key] = f"#{prefix}-{value[1:]}"
            elif value.startswith("data:image/"):
                out[key] = value
        elif not key.startswith("on"):
            new = REFERENCE.sub(rf"url(#{prefix}-\1)", value)
            if "url(" not in REFERENCE.sub("", value):
                out[key] = new
    return out


def _pixels(root: ET.Element) -> float | None:
    box = root.get("viewBox", "").split()
    return float(box[2]) * PIXELS_PER_POINT if len(box) == 4 else None


def _local(name: str) -> str:
    return name.rpartition("}")[2]
