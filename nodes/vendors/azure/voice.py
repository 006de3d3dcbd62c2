"""A voice that is deployed at Azure OpenAI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bargein.nodes.services import Query
from bargein.nodes.vendors.openai.voice import OpenAIVoice

from ._address import azure_deployment

if TYPE_CHECKING:
    import httpx2

__all__ = ["AzureVoice"]


class AzureVoice(OpenAIVoice):
    """Speaks with a deployment of a voice model, clause by clause; open it before use."""

    def __init__(
        self,
        deployment: str,
        voice: str = "marin",
        *,
        api_key: str | None = None,
        instructions: str | None = None,
        speed: float | None = None,
        endpoint: str | None = None,
        api_version: str | None = None,
        headers: Mapping[str, str] | None = None,
        query: Query | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """Configure the deployment; nothing connects yet.

        Args:
            deployment: The name of the deployment.
            voice: The vendor's name of a voice.
            api_key: The resource's key; ``None`` reads AZURE_OPENAI_API_KEY.
            instructions: How to speak, in words; not for ``tts-1``.
            speed: Factor on the usual speed, 0.25 to 4; ``None`` for 1.
            endpoint: The resource's address; ``None`` reads AZURE_OPENAI_ENDPOINT.
            api_version: A dated version of the API; ``None`` for the v1 API.
            headers: Further headers of each request; see `AzureChat`.
            query: Further parameters of each address, which override ours.
            transport: Carries the requests instead of the network; ``None`` uses the network.

        Raises:
            SpeechExtraError: httpx2 is not installed (extra ``openai``).
            TypeError: A text is not a string, or `headers` or `query` is no mapping.
            ValueError: There is no deployment, endpoint or key, a request cannot carry one, or
                `speed` is out of bounds.
        """
        owner = type(self).__name__
        at = azure_deployment(owner, deployment, api_key, endpoint, api_version, headers, query)
        super().__init__(
            voice,
            model=at.name,
            instructions=instructions,
            speed=speed,
            url=at.base_url,
            headers=at.headers,
            query=at.query,
            transport=transport,
        )
