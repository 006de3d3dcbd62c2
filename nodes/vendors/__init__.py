"""What providers that use a vendor's network service share: sessions, keys, errors and retries."""

from ._credentials import Credential as Credential
from ._errors import VendorError as VendorError
from ._message_fields import in_order as in_order
from ._message_fields import least as least
from ._message_fields import query as query
from ._message_fields import share as share
from ._message_fields import timed_words as timed_words
from ._reconnecting_session import Reopened as Reopened
from ._reconnecting_session import VendorSession as VendorSession
from ._reconnecting_session import open_session as open_session
from ._request_retries import Backoff as Backoff
from ._request_retries import retry_after_s as retry_after_s
from ._session_settings import SessionLimits as SessionLimits
from ._session_settings import VendorAddress as VendorAddress

__all__ = [
    "Backoff",
    "Credential",
    "Reopened",
    "SessionLimits",
    "VendorAddress",
    "VendorError",
    "VendorSession",
    "in_order",
    "least",
    "open_session",
    "query",
    "retry_after_s",
    "share",
    "timed_words",
]
