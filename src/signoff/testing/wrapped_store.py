"""A wrapper around a store, the base for stores that fail on purpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from signoff.runtime.store_port import Store

if TYPE_CHECKING:
    # Any store's methods will do; with them, the type checker checks overriding methods.
    from signoff.store.sqlite import SqliteStore as _Methods
else:
    _Methods = object


class WrappedStore(_Methods):
    """Forwards every call; override the methods that should count, fail or be slow."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    def reopen(self) -> Store:
        """Opens the inner store again, unwrapped."""
        return self.inner.reopen()

    def forward(self, method: str, *args: Any, **options: Any) -> Any:
        """Calls a method of the inner store; override this to act on every call."""
        return getattr(self.inner, method)(*args, **options)


def _forwarding(name: str) -> Callable[..., Any]:
    def method(self: WrappedStore, *args: Any, **options: Any) -> Any:
        return self.forward(name, *args, **options)

    return method


# Real methods instead of `__getattr__`, so that overriding methods can call `super()`.
for _name in vars(Store):
    if not _name.startswith("_") and _name not in vars(WrappedStore):
        setattr(WrappedStore, _name, _forwarding(_name))
