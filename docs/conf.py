"""Settings for Sphinx: `nox -s docs` builds the pages."""

import re

import bnca

project = "bnca"
author = "the bnca developers"
copyright = "2026, the bnca developers"
version = release = bnca.__version__

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
numpydoc_show_class_members = False  # autodoc lists them already
html_theme = "furo"
html_title = "bnca"


def skip_inherited(app, what, name, obj, skip, options):  # noqa: ANN001, ANN201, ARG001, PLR0917
    """Leave out what scikit-learn's base classes bring: its own reference describes that."""
    return True if (getattr(obj, "__module__", None) or "").startswith("sklearn.") else None


def escape_shapes(app, what, name, obj, options, lines):  # noqa: ANN001, ANN201, ARG001, PLR0917
    """Leave shapes such as (n_iter_ + 1,) alone: to Sphinx a word that ends in _ is a link."""
    lines[:] = [
        re.sub(r"_(?=[ ,])", r"\\_", line) if re.match(r"\s*\*\*\w+\*\* : ", line) else line
        for line in lines
    ]


def setup(app):  # noqa: ANN001, ANN201
    """Called by Sphinx."""
    app.connect("autodoc-skip-member", skip_inherited)
    app.connect("autodoc-process-docstring", escape_shapes, priority=900)  # after numpydoc
