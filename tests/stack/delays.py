"""How late each node's canaries are, as a stream measures it."""

from functools import partial

from tests.stack.scenes import Scene


def delays(scene: Scene) -> dict[str, float]:
    """The age (s) of each node's newest canary, by the node's address."""
    hosts = {str(each.address): each.host_id for each in scene.session.cluster.metadata.all_hosts()}
    asked = partial(scene.metric, "reconciler_capture_delay_seconds")
    found = {address: asked(node=str(number)) for address, number in hosts.items()}
    return {address: delay for address, delay in found.items() if delay}
