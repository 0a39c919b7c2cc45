"""Point metrics and a pairwise posterior to be measured against, on the same interface."""

from bnca.rivals.nca import NCA
from bnca.rivals.ncmml import NCMML
from bnca.rivals.pca import PCAMetric

__all__ = ["NCA", "NCMML", "PCAMetric"]
