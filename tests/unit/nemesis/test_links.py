"""The rules that cut connections: which packets of which process, and what becomes of them."""

from pathlib import Path

import pytest

from deploy.embedded.layout import Layout
from deploy.embedded.spec import Ports, Spec, Wanted, decide
from deploy.nemesis.injectors import brokers_of
from deploy.nemesis.links import CutPlace, Link, first_rules, places
from deploy.nemesis.schedule import InjectedFault

PLACE = CutPlace("a", "b", "cluster", (Link(7, "127.0.0.2", 70),), (Link(8, "127.0.0.1", 80),))
ASKED = "-p tcp -m connmark --mark 7 -d 127.0.0.2 --dport 70"
ANSWERED = "-p tcp -m connmark --mark 8 -s 127.0.0.1 --sport 80"
RECEIVED = (
    "-p tcp -m connmark --mark 7 -s 127.0.0.2 --sport 70",
    "-p tcp -m connmark --mark 8 -d 127.0.0.1 --dport 80",
)


SECOND = 9
"""The port of the second broker."""


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    return decide(Layout(tmp_path), Wanted(tables=("t",), data_centres=(3,)))


def places_of(spec: Spec) -> list[CutPlace]:
    """With a second broker."""
    return list(places(spec, (spec.ports.broker, SECOND)))


def rules(place: CutPlace) -> dict[tuple[InjectedFault, str], list[str]]:
    return {
        (choice.kind, choice.target): [" ".join(each) for each in found]
        for choice, found in place.cuts()
    }


def test_a_cut_drops_what_is_sent_and_what_is_received() -> None:
    dropped = [f"{each} -j DROP" for each in (ASKED, ANSWERED, *RECEIVED)]
    assert rules(PLACE)[InjectedFault.DROPPED, "a and b"] == dropped


def test_a_cut_one_way_drops_what_one_side_sends() -> None:
    found = rules(PLACE)
    there, back = (found[InjectedFault.ONE_WAY, each] for each in ("from a to b", "from b to a"))
    assert there == [f"{each} -j DROP" for each in (ASKED, ANSWERED)]
    assert back == [f"{each} -j DROP" for each in RECEIVED]


def test_a_refusal_resets_connections_and_lets_the_resets_through() -> None:
    reset = "--tcp-flags RST NONE -j REJECT --reject-with tcp-reset"
    assert rules(PLACE)[InjectedFault.REFUSED, "a and b"][0] == f"{ASKED} {reset}"


def test_a_lossy_connection_loses_some_packets_both_ways() -> None:
    lost = "-m statistic --mode random --probability 0.3 -j DROP"
    found = rules(PLACE)[InjectedFault.LOSSY, "a and b"]
    assert found == [f"{each} {lost}" for each in (ASKED, ANSWERED, *RECEIVED)]


def test_a_cut_node_is_cut_from_both_others_in_connections_of_both_sides(spec: Spec) -> None:
    second = {each.process: each for each in places_of(spec)}["127.0.0.2"]
    port = spec.ports.cassandra_storage
    assert second.opened == (Link(61012, "127.0.0.1", port), Link(61012, "127.0.0.3", port))
    assert second.accepted == (Link(61011, "127.0.0.2", port), Link(61013, "127.0.0.2", port))


def test_agents_and_the_stream_are_cut_from_their_servers(spec: Spec) -> None:
    ports: Ports = spec.ports
    opened = {(each.process, each.peers): each.opened for each in places_of(spec)}
    brokers, native = [("127.0.0.1", port) for port in (ports.broker, SECOND)], ports.cassandra
    for process, group in (("agent of 127.0.0.3", 61023), ("the stream", 61000)):
        assert opened[process, "the brokers"] == tuple(Link(group, *each) for each in brokers)
    assert opened["the stream", "127.0.0.2"] == (Link(61000, "127.0.0.2", native),)
    assert len(opened["the stream", "all nodes"]) == 3


def test_every_client_has_a_mark_before_anything_is_cut(spec: Spec) -> None:
    *marks, chain, jump = (" ".join(each) for each in first_rules(spec))
    links = [link for place in places_of(spec) for link in (*place.opened, *place.accepted)]
    assert {each.rpartition(" ")[2] for each in marks} == {str(link.group) for link in links}
    assert marks[0] == (
        "-t mangle -A OUTPUT -p tcp -m conntrack --ctdir ORIGINAL -m owner --gid-owner 61000 "
        "-j CONNMARK --set-mark 61000"
    )
    assert (chain, jump) == ("-N nemesis", "-A OUTPUT -o lo -j nemesis")


def test_no_two_places_have_one_target(spec: Spec) -> None:
    choices = [each for place in places_of(spec) for each, _ in place.cuts()]
    targets = [(each.kind, each.target) for each in choices]
    assert len(targets) == len(set(targets))


def test_where_it_is_secure_an_agent_is_cut_off_from_the_port_that_it_uses(tmp_path: Path) -> None:
    secure = decide(Layout(tmp_path), Wanted(tables=("t",), secure=True))
    assert secure.tls is not None
    assert brokers_of(secure, None) == [secure.ports.broker, secure.tls.broker]
    assert secure.agent_bootstrap_servers.endswith(f":{secure.tls.broker}")
