"""bnca learns how to measure distance from labelled data, and says how sure it is."""

from typing import TYPE_CHECKING

from bnca.bayesian_nca import BayesianNCA
from bnca.core.metric import BayesianMetric, DistanceEstimate
from bnca.exceptions import NeighborhoodWarning, ProjectionWarning

if TYPE_CHECKING:
    from bnca.rivals import BML, LMNN, NCA, NCMML, PCAMetric, SupervisedBML

__version__ = "0.1.0"

__all__ = [
    "BML",
    "LMNN",
    "NCA",
    "NCMML",
    "BayesianMetric",
    "BayesianNCA",
    "DistanceEstimate",
    "NeighborhoodWarning",
    "PCAMetric",
    "ProjectionWarning",
    "SupervisedBML",
    "__version__",
]


def __getattr__(name: str) -> object:
    """Import the rivals when they are first asked for: with them, `import bnca` takes longer."""
    if name in {"BML", "LMNN", "NCA", "NCMML", "PCAMetric", "SupervisedBML"}:
        from bnca import rivals

        return getattr(rivals, name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    """All public names, those of the rivals too."""
    return sorted(__all__)
