"""Plans: who chose what, why other machines were not taken, and what each machine refuses."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from chimap import HistogramClassifier
from chimap._errors import InputError
from chimap.machines.base import Facts, Request, Winner, named_settings
from chimap.machines.catalogue import MACHINES, check_settings, for_all_rows, machine_for, plans
from chimap.recipe import Recipe
from chimap.recipe.task import Task

from .choices import source_of


def asked(**settings):
    return Recipe.of(HistogramClassifier(random_state=0, **{"memory": "1GiB", **settings}))


def facts_of(rows, recipe):
    source = source_of(rows)
    return Facts.of(source, Task.of(source, recipe)[0], None, Request(can_keep=True))


def test_a_plan_says_who_chose_what_and_why_others_were_not_taken():
    before = asked(loss="square")
    candidate = before.with_raced(kernel="exp-chi2", features="exact", gamma="auto")
    facts = facts_of("100,000 x 64, 10 classes", before)
    raced = for_all_rows(candidate, facts, before, Winner({"alpha": 0.5, "gamma": 2.0}, False, None))
    plan = machine_for(raced, facts, before)
    assert plan.machine.name == "blocks of rows"
    names = ("kernel", "features", "alpha", "n_terms", "loss")
    assert [plan.chosen_by(name) for name in names] == ["race", "race", "race", "machine", "user"]
    assert "too many rows" in plan.others["kernel matrix"]
    assert 0 < plan.cost.n_bytes < before.room
    assert 0 < plan.cost.n_rows <= 100_000


def test_the_first_machine_that_nothing_speaks_against_is_taken():
    for kernel, rows in (("exp-chi2", "300 x 64, 3 classes"), ("chi2", "300 x 64, 3 classes")):
        recipe = asked(kernel=kernel)
        facts = facts_of(rows, recipe)
        listed = list(plans(recipe, facts))
        assert [machine for machine, _ in listed] == list(MACHINES)
        assert machine_for(recipe, facts).machine is next(machine for machine, against in listed if not against)


def test_every_refusal_is_a_named_setting_with_a_message():
    vocabulary = named_settings(
        replace(
            asked(kernel="minmax", features="exact", gamma=1.0, n_components=5, scoring="roc_auc", device="cuda"),
            **{"learner": object(), "n_principal": (2, 3), "loss": "logistic", "sampling": "iid", "map": object()},
            **{
                "blocks": [[0]],
                "selection": "gcv",
                "covariate_columns": SimpleNamespace(n_columns=1),
                "landmarks": [[1.0]],
            },
        ),
        has_gaps=True,
    ).keys() | {"kernels"}
    for machine in MACHINES:
        assert {*machine.refuses, *machine.declines} <= vocabulary
        for message in machine.refuses.values():
            assert "{" not in str(message(asked(kernel="minmax", device="cuda")))


@pytest.mark.parametrize("given", [{"loss": "logistic", "scoring": "roc_auc"}, {"features": "exact", "loss": "hinge"}])
def test_settings_that_contradict_a_machine_are_refused_before_there_are_rows(given):
    with pytest.raises(InputError, match=r"Leave (scoring|that) out"):
        check_settings(asked(kernel="exp-chi2", **given))


def test_a_machine_with_as_many_landmarks_as_rows_tell_apart_grows():
    recipe = asked(kernel="exp-chi2", features="landmarks")
    facts = facts_of("100,000 x 64, 10 classes", recipe)
    plan = machine_for(recipe, facts)
    n = plan.recipe.n_components
    larger = plan.machine.larger(plan, facts, n, None)
    assert larger.n_components == 2 * n
    assert plan.machine.larger(plan, facts, n - 1, None) is None
    named = machine_for(asked(kernel="exp-chi2", features="landmarks", n_components=n), facts)
    assert named.machine.larger(named, facts, n, None) is None
