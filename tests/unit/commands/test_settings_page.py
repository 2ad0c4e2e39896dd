"""The settings page says what the settings are, and the environment can set each."""

from pathlib import Path

import pytest

from deploy import settings_page
from reconcilers.words.errors import Misconfigured
from streaming.settings import LISTS, Settings, load

PAGE = Path(__file__).resolve().parents[3] / "docs" / "settings.md"
EVERY = [
    (section, setting, told)
    for section, field in Settings.model_fields.items()
    if section != "spark"  # Spark's own options, of any name
    for setting, told in field.annotation.model_fields.items()  # type: ignore[union-attr]
]


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == settings_page.page(), "run `make docs`"


@pytest.mark.parametrize(("section", "setting", "told"), EVERY, ids=lambda each: str(each)[:30])
def test_every_setting_is_described_and_on_the_page(
    section: str, setting: str, told: object
) -> None:
    assert told.description  # type: ignore[attr-defined]
    assert f"`RECONCILE_{section}__{setting}`".upper() in settings_page.page().upper()


def test_every_setting_of_several_values_is_split_in_the_environment() -> None:
    lists = {
        (section, setting) for section, setting, told in EVERY if isinstance(told.default, tuple)
    }
    assert lists == LISTS


def test_a_duration_names_its_unit() -> None:
    row = next(line for line in settings_page.page().splitlines() if "`delay`" in line)
    assert "| seconds, > 0; in repair mode 35 s or more |" in row


def test_the_environment_comes_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "reconcile.toml"
    file.write_text('[cassandra]\nport = 1\nhosts = ["a"]\n[agent]\nhttp = ["http://a:1"]\n')
    changes = {"RECONCILE_CASSANDRA__PORT": "2", "RECONCILE_AGENT__HTTP": "http://b:2,http://c:3"}
    read = load(file, changes)
    assert (read.cassandra.port, read.cassandra.hosts) == (2, ("a",))
    assert read.agent.http == ("http://b:2", "http://c:3")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[stream]\ndelay = 0\n", "stream.delay"),
        ("[stream]\ndelay = 1\nwindow = 2\n", "window must not be longer"),
        ("[stream]\nwindow = 1\ntrigger = 2\n", "trigger must not be longer"),
        ("[cassandra]\nprot = 9042\n", "cassandra.prot"),
        ("[tally]\nmax_update_lag = 0\n", "tally.max_update_lag"),
        ("[cassandra\n", "is not TOML"),
        ('[stream]\nmaster = "mesos://m:7077"\n', "stream.master: .* is no Spark master"),
        ('[stream]\nmaster = "local[0]"\n', "is no Spark master"),
        ("[spark]\ncores = 1\n", "spark: .* cores is no option of Spark's"),
    ],
)
def test_a_wrong_setting_is_named(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "reconcile.toml"
    file.write_text(text)
    with pytest.raises(Misconfigured, match=says):
        load(file, {})


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"cannot read settings .*absent\.toml"):
        load(tmp_path / "absent.toml", {})


def test_a_list_in_the_environment_can_be_empty() -> None:
    settings = load(None, {"RECONCILE_TALLY__PROJECTIONS": ""})
    assert settings.tally.projections == ()


def test_counters_may_be_written_much_later_than_the_delay() -> None:
    settings = Settings.model_validate({"stream": {"delay": 20}})
    assert settings.tally.max_update_lag == 1800.0
