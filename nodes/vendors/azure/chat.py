"""A chat model that is deployed at Azure OpenAI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bargein.nodes.llm.http_chat import HttpLimits
from bargein.nodes.services import Query
from bargein.nodes.vendors.openai.chat import OpenAIChat

from ._address import azure_deployment

if TYPE_CHECKING:
    import httpx2

__all__ = ["AzureChat"]


class AzureChat(OpenAIChat):
    """Streams answers from a deployment of a chat model; see `OpenAIChat`."""

    def __init__(
        self,
        deployment: str,
        *,
        api_key: str | None = None,
        options: Mapping[str, Any] | None = None,
        endpoint: str | None = None,
        api_version: str | None = None,
        headers: Mapping[str, str] | None = None,
        query: Query | None = None,
        limits: HttpLimits | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """Configure the deployment; nothing connects yet.

        Args:
            deployment: The name of the deployment, which is not always that of its model.
            api_key: The resource's key; ``None`` reads AZURE_OPENAI_API_KEY.
            options: Further fields of each request; see `OpenAIChat`.
            endpoint: The resource's address, such as ``https://mine.openai.azure.com``; ``None``
                reads AZURE_OPENAI_ENDPOINT.
            api_version: A dated version of the API, such as "2024-10-21", which has an address for
                each deployment; ``None`` for the v1 API, which needs none.
            headers: Further headers of each request, which override ours; with a token of Entra ID
                in ``authorization``, no key is sent.
            query: Further parameters of each address, which override ours.
            limits: The limits of a request; ``None`` for the defaults.
            transport: Carries the requests instead of the network; ``None`` uses the network.

        Raises:
            ChatModelExtraError: httpx2 is not installed (extra ``llm``).
            TypeError: A text is not a string, or `options`, `headers` or `query` is no mapping.
            ValueError: There is no deployment, endpoint or key, or a request cannot carry one.
        """
        owner = type(self).__name__
        at = azure_deployment(owner, deployment, api_key, endpoint, api_version, headers, query)
        super().__init__(
            at.name,
            base_url=at.base_url,
            options=options,
            headers=at.headers,
            query=at.query,
            limits=limits,
            transport=transport,
        )
