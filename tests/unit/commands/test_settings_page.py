"""The settings page says what the settings are, and the environment can set each."""

from pathlib import Path

import pytest

from deploy import settings_page
from reconcilers.words.errors import Misconfigured, WrongSettings
from streaming.settings import Settings, load, settings_file

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


def test_a_setting_of_several_values_is_split_in_the_environment() -> None:
    settings = load(None, {"RECONCILE_CASSANDRA__HOSTS": "10.0.0.1, 10.0.0.2,"})
    assert settings.cassandra.hosts == ("10.0.0.1", "10.0.0.2")


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
        ("[stream]\ndelay = 0\n", r"toml: \[stream\] delay is 0, and must be: seconds, > 0"),
        ("[stream]\ndelay = 1\nwindow = 2\n", "window must not be longer"),
        ("[stream]\nwindow = 1\ntrigger = 2\n", "trigger must not be longer"),
        (
            "[cassandra]\nprot = 9042\n",
            r"toml: \[cassandra\] prot is no setting: did you mean port\?",
        ),
        ("[tally]\nmax_update_lag = 0\n", r"\[tally\] max_update_lag is 0, and must be"),
        ("[cassandra\n", "is not TOML"),
        ("[casandra]\nport = 1\n", r"\[casandra\] is no section: did you mean cassandra\?"),
        ('[cassandra]\nkeyspace = "a; DROP"\n', 'keyspace is "a; DROP", and must be: name of a k'),
        ("[repair]\nlog_days = 99999999\n", "log_days is 99999999, and must be: .* ≤ 7300"),
        ("cassandra = 5\n", r"\[cassandra\] must be a table of settings"),
        ("spark = 5\n", r"\[spark\] must be a table of settings"),
        ('[cassandra]\nhosts = "a"\n', 'hosts is "a", and must be: list of text, at least 1'),
        ("[sweep]\nwhen_needed = 5\n", "when_needed is 5, and must be: true or false"),
        ('[rights]\ntruth = "eventstor"\n', r"or `acl`: did you mean eventstore\?"),
        ('[repair]\nprojections = ["masages"]\n', r"is none of messages, .*mean messages\?"),
        ('[stream]\nmaster = "mesos://m:7077"\n', r"\[stream\] master: .* is no Spark master"),
        ('[stream]\nmaster = "local[0]"\n', "is no Spark master"),
        ("[spark]\ncores = 1\n", r"toml: \[spark\] cores is no option of Spark's"),
    ],
)
def test_a_wrong_setting_is_named(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "reconcile.toml"
    file.write_text(text)
    with pytest.raises(Misconfigured, match=says):
        load(file, {})


def test_all_that_is_wrong_is_said_at_once_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "reconcile.toml"
    file.write_text("cassandra = 5\n[stream]\ndelay = 0\nwidow = 1\n[kafka]\ngroup = 1\n")
    environment = {
        "RECONCILE_CASSANDRA__PORT": "far",
        "RECONCILE_STREAM__WINDOW": "wide",
        "RECONCILE_STREAM_DELAY": "3",
        "RECONCILE_CASANDRA__PORT": "1",
        "RECONCILE_SPARK__UI": "true",
        "RECONCILE_MODE": "repair",
    }
    with pytest.raises(WrongSettings) as refused:
        load(file, environment)
    assert sorted(refused.value.problems) == [
        f"{file}: [cassandra] must be a table of settings",
        f"{file}: [kafka] group is 1, and must be: text",
        f"{file}: [stream] delay is 0, and must be: seconds, > 0",
        f"{file}: [stream] widow is no setting: did you mean window?",
        "RECONCILE_CASANDRA__PORT is no setting: did you mean RECONCILE_CASSANDRA__PORT?",
        "RECONCILE_SPARK__UI is no setting: options of [spark] stand in the file only",
        "RECONCILE_STREAM_DELAY is no setting: did you mean RECONCILE_STREAM__DELAY?",
        'RECONCILE_STREAM__WINDOW is "wide", and must be: seconds, > 0',
    ]


def test_a_secret_that_is_wrong_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "reconcile.toml"
    file.write_text("[cassandra]\npassword = 271828\n")
    with pytest.raises(WrongSettings) as refused:
        load(file, {})
    assert "[cassandra] password is not what it must be, and must be: text" in str(refused.value)
    assert "271828" not in str(refused.value)


def test_the_file_is_that_of_the_command_the_environment_or_the_usual_one(tmp_path: Path) -> None:
    usual, other = tmp_path / "usual.toml", Path("other.toml")
    named = {"RECONCILE_CONFIG": "named.toml"}
    assert settings_file(None, {}, usual) is None
    assert settings_file(None, {}, usual / "below.toml") is None
    usual.touch()
    assert settings_file(None, {"RECONCILE_CONFIG": ""}, usual) == usual
    assert settings_file(None, named, usual) == Path("named.toml")
    assert settings_file(other, named, usual) == other


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"cannot read settings .*absent\.toml"):
        load(tmp_path / "absent.toml", {})


def test_a_list_in_the_environment_can_be_empty() -> None:
    settings = load(None, {"RECONCILE_TALLY__PROJECTIONS": ""})
    assert settings.tally.projections == ()


def test_counters_may_be_written_much_later_than_the_delay() -> None:
    settings = Settings.model_validate({"stream": {"delay": 20}})
    assert settings.tally.max_update_lag == 1800.0
