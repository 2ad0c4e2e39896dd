"""The rooms of a package and the arrows between them, counted from the imports."""

import grimp

Arrows = dict[str, set[str]]


def arrows(root: str) -> Arrows:
    """By room, the rooms it imports. A room is a folder or a file at the top of the package."""
    graph = grimp.build_graph(root.partition(".")[0])
    found: Arrows = {room: set() for room in graph.find_children(root)}
    for module in graph.find_descendants(root):
        for imported in graph.find_modules_directly_imported_by(module):
            if imported.startswith(f"{root}."):
                found[room_of(module, root)].add(room_of(imported, root))
    for room, others in found.items():
        others.discard(room)
    return found


def room_of(module: str, root: str) -> str:
    """``streaming.steps`` of ``streaming.steps.look`` below the root ``streaming``."""
    return f"{root}.{module.removeprefix(f'{root}.').partition('.')[0]}"


def floors(found: Arrows) -> list[set[str]]:
    """The rooms from the bottom up: each imports only rooms of floors below its own.

    Raises ValueError where rooms import each other in a circle: then some arrow runs back up.
    """
    built: list[set[str]] = []
    below: set[str] = set()
    left = {room: set(imported) for room, imported in found.items()}
    while left:
        floor = {room for room, imported in left.items() if imported <= below}
        if not floor:
            raise ValueError(f"a circle among {', '.join(sorted(left))}")
        built.append(floor)
        below |= floor
        left = {room: imported for room, imported in left.items() if room not in floor}
    return built


def told(found: Arrows) -> str:
    """One line a room, for people."""
    return "\n".join(
        f"{room} -> {', '.join(sorted(to)) or '-'}" for room, to in sorted(found.items())
    )
