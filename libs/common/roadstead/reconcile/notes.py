"""Which objects of the cloud earlier passes of this process saw as ours: a hint that a list may be wrong, never authority.

Nothing of it is stored: persisted provider state is the identity's record and the VLAN table alone (INV-009).  A process that starts
knows nothing and rests on the second look until its first passes.
"""

from collections import OrderedDict
from collections.abc import Mapping

from roadstead.subjects import Key

MOST_NOTES = 100_000  # resources; those not looked at for longest are forgotten first


class Notes:
    """Ids of cloud objects by resource and noun."""

    def __init__(self, most: int = MOST_NOTES) -> None:
        self._most = most
        self._held: OrderedDict[Key, dict[str, str]] = OrderedDict()

    def of(self, key: Key) -> Mapping[str, str]:
        """What is noted of a resource, by noun."""
        return dict(self._held.get(key, {}))

    def add(self, key: Key, noted: Mapping[str, str]) -> None:
        """What a pass saw anew."""
        if not noted:
            return
        self._held.setdefault(key, {}).update(noted)
        self._held.move_to_end(key)
        while len(self._held) > self._most:
            self._held.popitem(last=False)

    def forget(self, key: Key) -> None:
        """The resource is gone."""
        self._held.pop(key, None)
