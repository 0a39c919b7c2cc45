"""The two models that most tests of `BayesianNCA` are about: the published one, and the default."""

import pytest

from bnca import BayesianNCA
from bnca.experiments.paper import published_model


def published(n_neighbors="auto", **overrides):
    """Return the published method with a data-scaled prior, whatever the defaults become."""
    return published_model(**({"n_neighbors": n_neighbors, "n_jobs": None} | overrides))


MODELS = {"published": published, "default": BayesianNCA}

both = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
