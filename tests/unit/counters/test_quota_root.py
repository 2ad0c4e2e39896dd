"""Quota roots: one spelling in our own tables, two in James's."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcilers.declared.families.user_tally import USER_TALLY
from reconcilers.declared.tallies.current_quota import CURRENT_QUOTA, QUOTA_CURRENT_VALUE
from reconcilers.declared.tally import QuotaRoot
from reconcilers.limits.pilot import Pilot
from reconcilers.limits.write_target import correction_of
from reconcilers.words.key import slot_from_text, slot_of
from reconcilers.words.model import Kind, Slot
from streaming.commands.arguments.finding_filter import FindingFilter, TheirPlaces
from streaming.counters.counter_row import CounterRow, CounterRows, Owners
from tests.builders.counters import CounterTables
from tests.contract.making import a_finding

ROOT, IDENTIFIER = "#private&ana@example.org", "#private&ana@example.org@example.org"
ANA = QuotaRoot("#private", "ana@example.org")
names = st.text(st.characters(exclude_characters="@&"), min_size=1)


def test_the_newer_table_has_the_domain_twice() -> None:
    assert (str(ANA), ANA.with_domain_again) == (ROOT, IDENTIFIER)
    bob = QuotaRoot("#private", "bob")
    assert (str(bob), bob.with_domain_again) == ("#private&bob", "#private&bob")


@given(namespace=names, local=names | st.just("a&b"), domain=names | st.none())
def test_both_spellings_are_one_root(namespace: str, local: str, domain: str | None) -> None:
    root = QuotaRoot(namespace, local if domain is None else f"{local}@{domain}")
    assert QuotaRoot.of(str(root)) == root
    assert QuotaRoot.of(root.with_domain_again) == root


@pytest.mark.parametrize("text", [ROOT, IDENTIFIER])
def test_commands_and_records_take_either_spelling(text: str) -> None:
    assert slot_from_text(USER_TALLY.key, text) == Slot(ROOT)
    assert slot_of(USER_TALLY.key, {"quotaroot": text}) == Slot(ROOT)


@pytest.mark.parametrize("key", [ROOT, IDENTIFIER])
def test_a_pilot_of_the_user_takes_the_quota(key: str) -> None:
    target = correction_of(QUOTA_CURRENT_VALUE, key)
    assert Pilot(users=frozenset({"ana@example.org"})).takes(target, lambda _: None)
    assert not Pilot(users=frozenset({"bob@example.org"})).takes(target, lambda _: None)


@pytest.mark.parametrize("tally", [CURRENT_QUOTA, QUOTA_CURRENT_VALUE], ids=lambda each: each.table)
def test_a_finding_of_either_table_is_the_users(tally: object) -> None:
    assert tally in USER_TALLY.tallies
    found = replace(a_finding(USER_TALLY, Slot(ROOT)), kind=Kind.COUNTER_DRIFT)
    hers, his = (
        TheirPlaces(frozenset(), f"#private&{user}") for user in ("ana@example.org", "bob")
    )
    assert FindingFilter(user=hers).takes(USER_TALLY, found)
    assert not FindingFilter(user=his).takes(USER_TALLY, found)


def test_a_finding_leads_back_to_its_counter() -> None:
    family = replace(USER_TALLY, tallies=(QUOTA_CURRENT_VALUE,))
    found = replace(a_finding(family, Slot(ROOT)), projection=QUOTA_CURRENT_VALUE.name)
    counter = CounterRow(family.name, QUOTA_CURRENT_VALUE, ROOT, ANA)
    assert list(CounterRows((family,), Owners(CounterTables())).of_finding(found)) == [counter]


def test_a_sentence_names_the_row_where_it_has_another_key() -> None:
    older = CounterRow(USER_TALLY.name, CURRENT_QUOTA, ROOT, ANA)
    assert str(older) == f"quota root {ROOT}"
    newer = replace(older, tally=QUOTA_CURRENT_VALUE)
    assert str(newer) == f"quota root {ROOT} (identifier {IDENTIFIER} of quotacurrentvalue)"
