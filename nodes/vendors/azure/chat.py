"""A chat model that is deployed at Azure OpenAI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from bargein.nodes.llm.http_chat import HttpLimits
from bargein.nodes.vendors.openai.chat import OpenAIChat

from ._address import AzureArguments, azure_deployment

__all__ = ["AzureChat"]


class AzureChat(OpenAIChat):
    """Streams answers from a deployment of a chat model; see `OpenAIChat`."""

    def __init__(
        self,
        deployment: str,
        *,
        api_key: str | None = None,
        options: Mapping[str, Any] | None = None,
        limits: HttpLimits | None = None,
        **resource: Unpack[AzureArguments],
    ) -> None:
        """Configure the deployment; nothing connects yet.

        Args:
            deployment: The name of the deployment, which is not always that of its model.
            api_key: The resource's key; ``None`` reads AZURE_OPENAI_API_KEY.
            options: Further fields of each request; see `OpenAIChat`.
            limits: The limits of a request; ``None`` for the defaults.
            resource: As `AzureArguments` says; without endpoint= it reads AZURE_OPENAI_ENDPOINT.

        Raises:
            ChatModelExtraError: httpx2 is not installed (extra ``llm``).
            TypeError: A text is not a string, or `options`, `headers` or `query` is no mapping.
            ValueError: There is no deployment, endpoint or key, or a request cannot carry one.
        """
        at = azure_deployment(type(self).__name__, deployment, api_key, resource)
        super().__init__(deployment, options=options, limits=limits, **at)
