"""What providers that use a vendor's network service share: sessions, keys, errors and retries."""

from ._credentials import Credential as Credential
from ._errors import VendorError as VendorError
from ._message_fields import in_time_order as in_time_order
from ._message_fields import lowest_probability as lowest_probability
from ._message_fields import probability as probability
from ._message_fields import query_string as query_string
from ._message_fields import timed_words as timed_words
from ._reconnecting_session import SessionReopened as SessionReopened
from ._reconnecting_session import VendorSession as VendorSession
from ._reconnecting_session import open_session as open_session
from ._request_retries import Backoff as Backoff
from ._request_retries import retry_after_s as retry_after_s
from ._session_settings import SessionLimits as SessionLimits
from ._session_settings import VendorAddress as VendorAddress

__all__ = [
    "Backoff",
    "Credential",
    "SessionLimits",
    "SessionReopened",
    "VendorAddress",
    "VendorError",
    "VendorSession",
    "in_time_order",
    "lowest_probability",
    "open_session",
    "probability",
    "query_string",
    "retry_after_s",
    "timed_words",
]
