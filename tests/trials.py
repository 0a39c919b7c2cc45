"""Small experiments that processes can hand on, as they stand in a module that has a name."""

from bnca.experiments.spec import DataSpec, Experiment, Method, Study
from bnca.rivals import NCMML, PCAMetric

IRIS = DataSpec("iris", "Iris", columns="z-score")


def methods():
    return [
        Method("PCA", PCAMetric(), {"n_components": [1, 2]}, {"n_voters": [1, 3]}),
        Method("NCM", NCMML(), {"regularization": [2.0, 20.0]}),
    ]


def work(part, data, place):
    return [{"kind": "x", "value": part.seed + i} for i in range(2)]


EXPERIMENT = Experiment("table1/iris", IRIS, (5,), 30, methods, (0.0, 0.3), seeds=(0, 1))
STUDY = Study("figure1/iris", IRIS, work, seeds=(0, 1))
