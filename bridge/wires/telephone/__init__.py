"""Telephones: the wires of carriers, their webhooks, signatures and one-time tokens."""

from ._relay_codec import PlayMedia as PlayMedia
from ._relay_codec import SwitchLanguage as SwitchLanguage
from .telnyx import TelnyxRelay as TelnyxRelay
from .twilio import TwilioRelay as TwilioRelay

__all__ = ["PlayMedia", "SwitchLanguage", "TelnyxRelay", "TwilioRelay"]
