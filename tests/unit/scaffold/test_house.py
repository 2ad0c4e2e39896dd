"""The house limits hold everywhere, and the checker can tell when they do not."""

from pathlib import Path

import pytest

from tests import house

ROOT = Path(__file__).resolve().parents[3]


EIGHT_FIELDS = "".join(f"    a{number}: int\n" for number in range(8))
NINE_FIELDS = EIGHT_FIELDS + "    a8: int\n"
NINE_ATTRIBUTES = "".join(f"        self.a{number}, b = 1, 2\n" for number in range(9))
FROZEN = "@dataclass(frozen=True)\nclass A:\n" + NINE_FIELDS + "    def f(self):\n        "
NINE_STATEMENTS = "".join(f"        self.a{n} = store.prepare_serial('')\n" for n in range(9))


def rules(path: str, source: str) -> list[str]:
    return [breach.rule for breach in house.breaches(path, source)]


@pytest.mark.parametrize(
    "path", house.source_files(ROOT), ids=lambda path: str(path.relative_to(ROOT))
)
def test_limits_hold(path: Path) -> None:
    found = house.breaches(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    assert not found, "\n" + "\n".join(map(str, found))


def test_every_product_package_is_looked_at() -> None:
    seen = {path.relative_to(ROOT).parts[0] for path in house.source_files(ROOT)}
    assert seen == {*house.PRODUCT, "tests"}


def test_no_two_types_share_a_name() -> None:
    assert house.twin_types(ROOT) == {}


@pytest.mark.parametrize("other", ["class Limits: ...", "Limits = tuple[int, int]"])
def test_twin_types_are_found(tmp_path: Path, other: str) -> None:
    for name, source in (("one", "class Limits: ..."), ("other", other)):
        (tmp_path / "streaming" / name).mkdir(parents=True)
        (tmp_path / "streaming" / name / "limits.py").write_text(f"LIMIT = 1\n{source}")
    paths = ["streaming/one/limits.py", "streaming/other/limits.py"]
    assert house.twin_types(tmp_path) == {"Limits": paths}


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        ("parameters", "def f(a, b, c, d, e, f, g): ..."),
        ("parameters", "def f(a, b, c, *, d, e, f, g): ..."),
        ("boolean-parameter", "def f(loud: bool): ..."),
        ("boolean-parameter", "def f(loud: bool | None = None): ..."),
        ("boolean-parameter", "def f(loud: 'Optional[bool]' = None): ..."),
        ("boolean-parameter", "def f(a, *, loud=True): ..."),
        ("boolean-parameter", "def f(a, loud=False, *, b=1): ..."),
        ("boolean-parameter", "class A:\n    async def f(self, loud: bool): ..."),
        ("formatted-log", "log.info(f'{x} rows')"),
        ("formatted-log", "self._logger.log(10, f'{x} rows')"),
        ("catch-all", "try:\n    f()\nexcept:\n    pass"),
        ("catch-all", "try:\n    f()\nexcept Exception as error:\n    log.error('%s', error)"),
        ("catch-all", "try:\n    f()\nexcept (OSError, BaseException):\n    pass"),
        ("function-length", "def f():\n" + "    x = 1\n" * 40),
        ("file-length", "x = 1\n" * 301),
        ("parsed-text", "'held: ' in finding.sentence"),
        ("parsed-text", "finding.sentence == 'x'"),
        ("parsed-text", "finding.waits.why.endswith(ABOVE)"),
        ("parsed-text", "each.sentence.partition('; ')[0]"),
        ("class-fields", "@dataclass\nclass A:\n" + NINE_FIELDS),
        ("class-fields", "@dataclass(slots=True)\nclass A:\n" + NINE_FIELDS),
        ("class-fields", FROZEN + "self.a0.send()"),
        ("class-fields", FROZEN + "self.a0()"),
        ("class-fields", "class A:\n    def __init__(self):\n" + NINE_ATTRIBUTES),
        ("class-fields", "class A:\n    a0: int\n    def begin(self):\n" + NINE_ATTRIBUTES),
    ],
)
def test_a_breach_is_found(rule: str, source: str) -> None:
    assert rules("streaming/pipeline/window.py", source) == [rule]


@pytest.mark.parametrize(
    "source",
    [
        "def f(self, a, b, c, d, e, f): ...",
        "def f(flags: list[bool], count: int = 1) -> bool: ...",
        "@dataclass(frozen=True)\nclass A:\n    loud: bool = False",
        "log.info('%d rows', x)",
        "print(f'{x} rows')",
        "try:\n    f()\nexcept Exception:\n    g()\n    raise",
        "try:\n    f()\nexcept OSError:\n    pass",
        "def f():\n    '''" + "words\n" * 30 + "'''\n" + "    x = 1\n" * 39,
        "x = 1\n" * 300,
        "@dataclass(frozen=True)\nclass A:\n" + NINE_FIELDS,
        FROZEN + "return self.a0.get(self.f)",
        FROZEN.replace("int", "Gauge") + "self.a0.set(1)",
        "class A:\n    def __init__(self, store):\n" + NINE_STATEMENTS,
        "class A(Section):\n" + NINE_FIELDS,
        "@dataclass\nclass A:\n    all: ClassVar[int]\n" + EIGHT_FIELDS,
        "class A:\n    def begin(self):\n        self.a0, b.a8 = 1, self.a9\n" + EIGHT_FIELDS,
        "datetime.now(UTC)",
    ],
)
def test_what_is_allowed_passes(source: str) -> None:
    assert rules("streaming/pipeline/window.py", source) == []


@pytest.mark.parametrize(
    "path", ["streaming/utils.py", "deploy/common/x.py", "checkpoints/journal_helpers.py"]
)
def test_a_vague_name_is_found(path: str) -> None:
    assert rules(path, "") == ["vague-name"]


@pytest.mark.parametrize(
    ("module", "source", "found"),
    [
        ("growing", "class GrowingKeyspace: ...", ["participle"]),
        ("undecoded", "def read(): ...", ["participle"]),
        ("open_finding", "class OpenFinding: ...", []),
        ("ceiling", "def allowed(): ...", []),
    ],
)
def test_a_module_is_named_after_a_thing(module: str, source: str, found: list[str]) -> None:
    assert rules(f"streaming/pipeline/{module}.py", source) == found


def test_a_projection_is_shorter_than_other_files() -> None:
    assert rules("reconcilers/declared/projections/messages.py", "x = 1\n" * 121) == ["file-length"]
    assert rules("reconcilers/rows/plan.py", "x = 1\n" * 121) == []


def test_reconcilers_have_no_clock() -> None:
    assert rules("reconcilers/rows/confirm.py", "at = datetime.now(UTC)") == ["clock"]


def test_tests_are_only_measured() -> None:
    assert rules("tests/unit/test_x.py", "def f(a: bool): ...\n" + "x = 1\n" * 499) == []
    assert rules("tests/unit/test_x.py", "x = 1\n" * 501) == ["file-length"]
