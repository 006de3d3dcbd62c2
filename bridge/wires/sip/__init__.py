"""Calls over SIP, without a vendor."""

from .sip import Sip as Sip

__all__ = ["Sip"]
