"""Telephone numbers for an app: ``App(answer, phone=Twilio())``."""

from .bridge.wires.telephone import PlayMedia as PlayMedia
from .bridge.wires.telephone import SwitchLanguage as SwitchLanguage
from .bridge.wires.telephone import TwilioRelay as TwilioRelay
from .nodes.vendors.twilio.phone import PhoneExtraError as PhoneExtraError
from .nodes.vendors.twilio.phone import PhoneNumberError as PhoneNumberError
from .nodes.vendors.twilio.phone import Twilio as Twilio
from .nodes.vendors.twilio.phone_command import command as command

__all__ = [
    "PhoneExtraError",
    "PhoneNumberError",
    "PlayMedia",
    "SwitchLanguage",
    "Twilio",
    "TwilioRelay",
    "command",
]
