"""How clients of Kafka are told to connect (real: `stack/test_secure.py`)."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from kafka.errors import (
    KafkaError,
    KafkaTimeoutError,
    SaslAuthenticationFailedError,
    TopicAuthorizationFailedError,
)

from checkpoints.bookmarks import OffsetRanges
from reconcilers.words.errors import Rejected, Unreachable
from streaming.settings import KafkaSettings
from streaming.topics import batch_options, kafka_errors, names, stream_options
from streaming.topics.clients import (
    LOGIN_FILE,
    Renewed,
    files_version,
    python_options,
    spark_options,
)

SECRET = 'correct "horse" \\battery'
LOGIN = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "SCRAM-SHA-512",
    "username": "reconciler",
}
PLAIN = KafkaSettings(bootstrap_servers="a:1,b:2")
RANGES: OffsetRanges = {("james", 0): (0, 10)}


def logging_in(**more: Any) -> KafkaSettings:
    return KafkaSettings.model_validate(LOGIN | {"password": SECRET} | more)


class Made:
    """A client that keeps its options."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options, self.closed = options, False

    def close(self) -> None:
        self.closed = True


def test_without_tls_and_login_nothing_is_said_of_them(tmp_path: Path) -> None:
    assert python_options(PLAIN) == {
        "bootstrap_servers": ["a:1", "b:2"],
        "security_protocol": "PLAINTEXT",
    }
    assert spark_options(PLAIN, tmp_path) == {
        "kafka.bootstrap.servers": "a:1,b:2",
        "kafka.security.protocol": "PLAINTEXT",
    }


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_no_option_of_spark_holds_the_password(mechanism: str, tmp_path: Path) -> None:
    settings = logging_in(sasl_mechanism=mechanism)
    options = {
        **stream_options(settings, ["james"], tmp_path),
        **batch_options(settings, RANGES, tmp_path),
    }
    assert options["kafka.sasl.mechanism"] == mechanism
    assert not [each for each in options.values() if "horse" in each]
    file = tmp_path / LOGIN_FILE
    assert options["kafka.sasl.jaas.config"] == f"${{file:{file}:sasl.jaas.config}}"
    assert file.stat().st_mode & 0o777 == 0o600
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    assert file.read_text() == (
        f"sasl.jaas.config=org.apache.kafka.common.security.{module} required"
        ' username="reconciler" password="correct \\\\"horse\\\\" \\\\\\\\battery";\n'
    )


def test_on_a_cluster_each_host_has_the_password_in_its_environment() -> None:
    options = spark_options(logging_in(), None)
    assert 'password="${env:RECONCILE_KAFKA__PASSWORD}"' in options["kafka.sasl.jaas.config"]


def test_host_names_that_are_not_verified_are_not_verified_by_spark_either(tmp_path: Path) -> None:
    settings = KafkaSettings(security_protocol="SSL", tls_verify_host_names=False)
    algorithm = "kafka.ssl.endpoint.identification.algorithm"
    assert spark_options(settings, tmp_path)[algorithm] == ""
    assert python_options(settings)["ssl_check_hostname"] is False
    assert algorithm not in spark_options(KafkaSettings(security_protocol="SSL"), tmp_path)


def test_a_client_is_replaced_when_the_file_of_its_password_changes(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("first\n")
    client = Renewed(logging_in(password=None, password_file=file), Made)
    first = client.now()
    assert first is client.now()
    file.write_text("second\n")
    second = client.now()
    assert second.options["sasl_plain_password"] == "second"
    assert first.closed
    assert not second.closed
    assert second is client.now()


def test_while_files_are_replaced_a_client_stays_and_spark_waits(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("first\n")
    settings = logging_in(password=None, password_file=file)
    client = Renewed(settings, Made)
    first = client.now()
    file.unlink()
    assert client.now() is first
    with pytest.raises(Unreachable, match="password"):
        stream_options(settings, ["james"], tmp_path)
    with pytest.raises(Unreachable, match="password"):
        batch_options(settings, RANGES, tmp_path)
    file.write_text("second\n")
    assert client.now() is not first


def test_readers_that_spark_keeps_are_others_when_a_file_is_replaced(tmp_path: Path) -> None:
    def group(settings: KafkaSettings) -> str:
        return batch_options(settings, RANGES, tmp_path)["kafka.group.id"]

    file = tmp_path / "password"
    file.write_text("first\n")
    settings = logging_in(password=None, password_file=file)
    first = group(settings)
    assert first.startswith(f"{settings.group}.reader.")
    assert group(settings) == first
    written = file.stat().st_mtime_ns
    os.utime(file, ns=(written, written + 1))
    assert group(settings) != first
    assert group(PLAIN) == f"{PLAIN.group}.reader"


def test_a_file_that_is_older_than_the_others_is_another_file_too(tmp_path: Path) -> None:
    ca, password = tmp_path / "ca.pem", tmp_path / "password"
    groups = set[str]()
    for written in (1, 2):
        for file, at in ((ca, 5), (password, written)):
            file.touch()
            os.utime(file, ns=(at, at))
        settings = logging_in(
            security_protocol="SASL_SSL", tls_ca=ca, password=None, password_file=password
        )
        groups.update(files_version(settings))
    assert len(groups) == 2


def test_a_file_that_is_replaced_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else Spark keeps a reader with the old password by the new name."""
    file = tmp_path / "password"
    file.write_text("first\n")
    settings = logging_in(password=None, password_file=file)
    (before,) = files_version(settings)

    def replaced(*given: Any) -> dict[str, str]:
        options = spark_options(*given)
        os.utime(file, ns=(1, 1))
        return options

    monkeypatch.setattr(names, "spark_options", replaced)
    group = batch_options(settings, RANGES, tmp_path)["kafka.group.id"]
    assert group == f"{settings.group}.reader.{before}"


def test_logins_of_several_threads_are_written_apart(tmp_path: Path) -> None:
    def keep(number: int) -> None:
        spark_options(logging_in(password=str(number % 7)), tmp_path)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(keep, range(400)))
    assert [each.name for each in tmp_path.iterdir()] == [LOGIN_FILE]


def test_spark_is_given_the_password_as_it_is_now(tmp_path: Path) -> None:
    file = tmp_path / "password"
    settings = logging_in(password=None, password_file=file)
    for word in ("first", "second"):
        file.write_text(word)
        spark_options(settings, tmp_path)
        assert f'password="{word}"' in (tmp_path / LOGIN_FILE).read_text()


@pytest.mark.parametrize(
    ("failed", "error"),
    [
        (SaslAuthenticationFailedError("no"), Rejected),
        (TopicAuthorizationFailedError("no"), Rejected),
        (KafkaTimeoutError("late"), Unreachable),
    ],
)
def test_a_broker_that_refuses_us_rejects_and_one_that_is_late_does_not_answer(
    failed: KafkaError, error: type[Unreachable]
) -> None:
    assert type(kafka_errors.unreachable("the ids of topics", failed)) is error


AWAY = Unreachable("b port 9092 cannot be reached")


@pytest.mark.parametrize(
    ("settings", "fault", "error"),
    [
        (KafkaSettings(), None, Unreachable),
        (KafkaSettings(), AWAY, Unreachable),
        (KafkaSettings(), Rejected("b speaks TLS"), Rejected),
        (logging_in(), None, Rejected),
        (logging_in(), AWAY, Unreachable),
    ],
    ids=["no request is answered", "away", "by TLS", "no login is answered", "away, with a login"],
)
def test_a_first_connection_says_whether_a_person_has_to_act(
    monkeypatch: pytest.MonkeyPatch,
    settings: KafkaSettings,
    fault: Unreachable | None,
    error: type[Unreachable],
) -> None:
    monkeypatch.setattr(kafka_errors, "fault", lambda *_: fault)
    with pytest.raises(Unreachable) as failed, kafka_errors.connecting(settings):
        raise KafkaTimeoutError("no broker")
    assert type(failed.value) is error
