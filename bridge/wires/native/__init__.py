"""The native wire: calls of the page and of ``bargein.client``, over ``/ws``."""

from ._native_wire import NativeWire as NativeWire

__all__ = ["NativeWire"]
