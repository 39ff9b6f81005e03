"""A store around another one, as a base for stores that misbehave on purpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from signoff.runtime.store_port import Store

if TYPE_CHECKING:
    # Any store's methods will do, so that overriding ones are checked.
    from signoff.store.sqlite import SqliteStore as _Methods
else:
    _Methods = object


class WrappedStore(_Methods):
    """Passes every call on; override the ones that should count, fail or be slow."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    def reopen(self) -> Store:
        """Opens the store inside once more, unwrapped."""
        return self.inner.reopen()


def _passed_on(name: str) -> Callable[..., Any]:
    def method(self: WrappedStore, *args: Any, **options: Any) -> Any:
        return getattr(self.inner, name)(*args, **options)

    method.__name__ = name
    return method


# Methods of the class, not found by `__getattr__`: overriding ones call them with `super()`.
for _name in vars(Store):
    if not _name.startswith("_") and _name not in vars(WrappedStore):
        setattr(WrappedStore, _name, _passed_on(_name))
