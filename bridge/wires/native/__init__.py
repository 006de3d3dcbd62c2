"""The native wire: calls of the page and of ``bargein.client``, over ``/ws``."""
