"""Logins and certificates in the settings: what fits together, and that secrets are not shown."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from reconcilers.words.errors import Misconfigured, WrongSettings
from streaming import app
from streaming.commands.arguments.logins import login_of
from streaming.settings import (
    CassandraSettings,
    KafkaSettings,
    Settings,
    load,
    login_now,
    tls_context,
)

SECRET = "correct horse battery"
LOGIN = {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "username": "reconciler"}
CERTIFICATE = {"tls_certificate": "a.pem"}


@pytest.mark.parametrize(
    ("section", "given", "told"),
    [
        ("cassandra", {"tls_ca": "ca.pem"}, "tls_ca and tls_certificate need tls = true"),
        ("cassandra", CERTIFICATE | {"tls": True}, "tls_certificate and tls_key belong together"),
        ("cassandra", {"password": SECRET, "password_file": "f"}, "give password or password_file"),
        ("kafka", {"username": "a"}, "needs a security_protocol with SASL"),
        ("kafka", {"security_protocol": "SASL_SSL"}, "SASL_SSL needs username, and password"),
        ("kafka", LOGIN, "SASL_SSL needs username, and password"),
        ("kafka", {"tls_ca": "ca.pem"}, "need a security_protocol with SSL"),
        (
            "kafka",
            LOGIN | {"sasl_mechanism": "GSSAPI"},
            "must be: `SCRAM-SHA-512` or `SCRAM-SHA-256` or `PLAIN`",
        ),
        ("kafka", {"security_protocol": "TLS"}, "must be: `PLAINTEXT` or `SSL`"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(
    section: str, given: dict[str, Any], told: str, tmp_path: Path
) -> None:
    file = tmp_path / "reconcile.toml"
    lines = [f"{name} = {json.dumps(value)}" for name, value in given.items()]
    file.write_text("\n".join([f"[{section}]", *lines]))
    with pytest.raises(WrongSettings) as refused:
        load(file, {})
    assert told in str(refused.value)
    assert SECRET not in str(refused.value)


def test_a_password_is_read_from_its_file_each_time(tmp_path: Path) -> None:
    file = tmp_path / "password"
    settings = CassandraSettings(username="reconciler", password_file=file)
    for word in ("first", "second"):
        file.write_text(f"{word}\n")
        assert login_now(settings) == ("reconciler", word)
    assert login_now(CassandraSettings()) is None


@pytest.mark.parametrize("content", [None, b"\xff" + SECRET.encode()])
def test_a_password_that_cannot_be_read_names_setting_and_file(
    content: bytes | None, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(Misconfigured, match=rf"kafka\.password_file: .*{file}") as failed:
        login_now(KafkaSettings.model_validate(LOGIN | {"password_file": file}))
    assert SECRET not in str(failed.value)


def test_a_key_that_cannot_be_used_names_the_setting(tmp_path: Path) -> None:
    for name in ("own.pem", "own.key"):
        (tmp_path / name).write_text("nothing of the kind")
    own = {"tls_certificate": tmp_path / "own.pem", "tls_key": tmp_path / "own.key"}
    settings = CassandraSettings.model_validate({"tls": True} | own)
    with pytest.raises(Misconfigured, match=r"cassandra\.tls_certificate: .* in PEM form"):
        tls_context(settings)


def test_a_login_for_one_call_replaces_that_of_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "admin"
    file.write_text("of the admin\n")
    settings = CassandraSettings(username="reconciler", password_file=tmp_path / "none")
    admin = login_of(settings, "admin", file, "--username and --password-file")
    assert admin is not None
    assert login_now(admin) == ("admin", "of the admin")


def test_passwords_are_in_nothing_that_is_shown_or_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "reconcile.toml"
    file.write_text("[kafka]\n" + "\n".join(f'{name} = "{each}"' for name, each in LOGIN.items()))
    monkeypatch.setenv("RECONCILE_KAFKA__PASSWORD", SECRET)
    assert app.main(["config", "show", "--config", str(file)]) == 0
    assert SECRET not in capsys.readouterr().out
    settings = load(file)
    assert login_now(settings.kafka) == ("reconciler", SECRET)
    assert SECRET not in repr(settings)
    sent = pickle.dumps(settings)
    assert SECRET.encode() not in sent
    monkeypatch.setenv("RECONCILE_KAFKA__PASSWORD", "of this host")
    arrived: Settings = pickle.loads(sent)
    assert login_now(arrived.kafka) == ("reconciler", "of this host")
