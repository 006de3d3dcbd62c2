"""Telephones: the wires of carriers, their webhooks, signatures and one-time tokens."""

from ..text import SwitchLanguage as SwitchLanguage
from ._media_codec import LineFormat as LineFormat
from ._relay_codec import PlayMedia as PlayMedia
from .exotel import ExotelMedia as ExotelMedia
from .plivo import PlivoMedia as PlivoMedia
from .telnyx import TelnyxRelay as TelnyxRelay
from .telnyx_media import TelnyxMedia as TelnyxMedia
from .twilio import TwilioRelay as TwilioRelay
from .twilio_media import TwilioMedia as TwilioMedia
from .vonage import VonageMedia as VonageMedia

__all__ = [
    "ExotelMedia",
    "LineFormat",
    "PlayMedia",
    "PlivoMedia",
    "SwitchLanguage",
    "TelnyxMedia",
    "TelnyxRelay",
    "TwilioMedia",
    "TwilioRelay",
    "VonageMedia",
]
