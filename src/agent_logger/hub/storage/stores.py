"""Opens the store that the option `--store` names."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from agent_logger.errors import StoreError
from agent_logger.hub.storage.store import FolderStore, ObjectStore

BUCKETS = ("s3", "gs", "az")


def open_store(location: str) -> ObjectStore:
    """Open a folder, or a bucket named by a URL. Raises `StoreError`.

    Folders are not served by `obstore`, which does not sync: what was acknowledged could be lost with the power.
    """
    scheme, separator, _ = location.partition("://")
    if not separator or scheme == "file":
        return _folder_store(location)
    if scheme not in BUCKETS:
        names = ", ".join(f"{name}://bucket/prefix" for name in BUCKETS)
        raise StoreError(f"cannot use a store {scheme}://...: it can be {names} or a folder")
    try:
        from agent_logger.hub.storage.bucket import BucketStore
    except ModuleNotFoundError as error:
        raise StoreError(f"a store {scheme}://... needs: pip install 'agent-logger[hub]'") from error
    return BucketStore(location)


def _folder_store(location: str) -> FolderStore:
    folder = Path(unquote(urlsplit(location).path) if "://" in location else location).expanduser()
    try:
        return FolderStore(folder)
    except OSError as error:
        raise StoreError(f"cannot use the folder {folder} as a store: {error.strerror or error}") from error
