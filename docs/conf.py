"""Settings for Sphinx: `nox -s docs` builds the pages."""

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
