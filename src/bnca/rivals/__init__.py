"""Methods to be measured against, on the same interface as `bnca.BayesianNCA`."""

from bnca.rivals.bml import BML, SupervisedBML
from bnca.rivals.lmnn import LMNN
from bnca.rivals.nca import NCA
from bnca.rivals.ncmml import NCMML
from bnca.rivals.pca import PCAMetric

__all__ = ["BML", "LMNN", "NCA", "NCMML", "PCAMetric", "SupervisedBML"]
