"""The checker finds nothing where users wrote at random and a correct product repaired."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.nemesis.scene import NemesisScene


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.05, 0.3]), st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_a_correct_system_has_no_violation(seed: int, errors: float, operations: int) -> None:
    with TemporaryDirectory() as folder:
        scene = NemesisScene(Path(folder), seed, errors)
        scene.work(operations, seed)
        scene.repair()
        judgement = scene.judged()
    assert judgement.violations == []
    if not errors:
        assert judgement.weakened == 0


@given(st.integers(0, 10**6), st.integers(5, 60))
@settings(max_examples=40, deadline=None)
def test_without_a_product_nobody_but_the_users_is_accused(seed: int, operations: int) -> None:
    with TemporaryDirectory() as folder:
        scene = NemesisScene(Path(folder), seed, errors=0.2)
        scene.work(operations, seed)
        judgement = scene.judged()
    assert {each.name.value for each in judgement.violations} <= {"not converged"}


def test_unknown_outcomes_weaken_the_judgement(tmp_path: Path) -> None:
    scene = NemesisScene(tmp_path, seed=3, errors=0.3)
    scene.work(60, seed=3)
    scene.repair()
    assert scene.judged().weakened > 0
