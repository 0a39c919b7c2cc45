import json
from dataclasses import replace

from bnca.experiments.spec import DataSpec, Experiment, Method, Study
from bnca.rivals import PCAMetric

IRIS = DataSpec("iris", "Iris")


def methods():
    return [Method("PCA", PCAMetric(), {"n_components": [1, 2]}, {"n_voters": [1, 3]})]


def other_methods():
    return [Method("PCA", PCAMetric(), {"n_components": [1, 3]}, {"n_voters": [1, 3]})]


def experiment(**changes):
    stated = {"id": "table9/iris", "data": IRIS, "sizes": (5, 10), "n_test": 30, "methods": methods}
    return Experiment(**({"seeds": (0, 1)} | stated | changes))


def work(part, data, place):
    return [{"x": part.seed}]


def test_cells_are_all_combinations_seed_by_seed():
    cells = list(experiment(noise=(0.0, 0.3)).cells())
    assert [(c.seed, c.size, c.noise) for c in cells] == [
        (seed, size, noise) for seed in (0, 1) for size in (5, 10) for noise in (0.0, 0.3)
    ]
    assert experiment().table == "table9"


def test_description_changes_with_all_that_decides_a_cell():
    first = next(experiment().cells())
    others = [
        experiment(id="table9/other"),
        experiment(data=replace(IRIS, columns="z-score")),
        experiment(sizes=(6, 10)),
        experiment(sizes=(5, 11)),  # the largest size decides which rows are left to test
        experiment(n_test=31),
        experiment(noise=(0.1,)),
        experiment(seeds=(1,)),
        experiment(metrics=("accuracy",)),
        experiment(folds=4),
        experiment(fit_repeats=2),
        experiment(alone=True),
    ]
    texts = [next(e.cells()).description() for e in others]
    assert len({first.description(), *texts}) == len(others) + 1


def test_description_does_not_change_with_other_cells():
    first = next(experiment().cells()).description()
    assert next(experiment(seeds=(0, 1, 2)).cells()).description() == first
    assert next(experiment(noise=(0.0, 0.2)).cells()).description() == first
    assert next(experiment(methods=other_methods).cells()).description() == first


def test_description_of_a_method_has_its_settings_and_grids():
    one, other = (made()[0].description() for made in (methods, other_methods))
    assert one["fits"] == {"n_components": ["1", "2"]}
    assert other["fits"] == {"n_components": ["1", "3"]}
    assert one["parameters"]["n_components"] == "None"


def test_study_has_a_part_for_each_seed():
    study = Study("figure9/iris", IRIS, work, seeds=(3, 4), settings={"k": 5})
    assert [part.seed for part in study.cells()] == [3, 4]
    assert study.table == "figure9"
    first, second = (part.description() for part in study.cells())
    assert first != second
    changed = next(replace(study, settings={"k": 6}).cells()).description()
    assert changed != first
    assert json.loads(first)["work"].endswith("test_spec.work")
