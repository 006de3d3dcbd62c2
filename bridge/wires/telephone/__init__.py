"""Telephones: the wires of carriers, their webhooks, signatures and one-time tokens."""

from ..text import SwitchLanguage as SwitchLanguage
from ._relay_codec import PlayMedia as PlayMedia
from .telnyx import TelnyxRelay as TelnyxRelay
from .twilio import TwilioRelay as TwilioRelay
from .twilio_media import TwilioMedia as TwilioMedia

__all__ = ["PlayMedia", "SwitchLanguage", "TelnyxRelay", "TwilioMedia", "TwilioRelay"]
