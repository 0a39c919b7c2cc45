"""bnca learns how to measure distance from labelled data, and says how sure it is."""

from bnca.bayesian_nca import BayesianNCA
from bnca.core.metric import BayesianMetric, DistanceEstimate
from bnca.exceptions import NeighborhoodWarning, ProjectionWarning

__version__ = "0.1.0"

__all__ = [
    "BayesianMetric",
    "BayesianNCA",
    "DistanceEstimate",
    "NeighborhoodWarning",
    "ProjectionWarning",
    "__version__",
]
