"""Objects in a bucket: of S3 and what speaks its protocol, of Google Cloud Storage, of Azure.

The endpoint and the keys come from the variables of the services (`AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`, ...), which
`obstore` reads. Its errors quote requests and answers, which may have keys in them: they are translated into words, and
are no cause of what is raised here.
"""

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, GenericError, PermissionDeniedError, UnauthenticatedError
from obstore.store import from_url

from agent_logger.errors import StoreError
from agent_logger.hub.storage.store import check_name, is_head

if TYPE_CHECKING:
    from obstore.store import RetryConfig

# For a request with its answer: what `obstore` waits. To give its clients any option takes the variables from them.
ANSWER_SECONDS = 30
RETRY_SECONDS = 10  # after that long no request is repeated; then those who pushed wait
PAUSES = (0.1, 0.4, 1.6)  # between the attempts to create an object
PAGE = 1000  # names in an answer

RETRIES: "RetryConfig" = {"max_retries": len(PAUSES), "retry_timeout": timedelta(seconds=RETRY_SECONDS)}
NO_RETRIES: "RetryConfig" = {"max_retries": 0}

# What the text of an error has, and what it means.
_MEANINGS = (
    (r"<Code>NoSuchBucket</Code>", "there is no such bucket"),
    (r"/latest/api/token|/latest/meta-data", "no keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
    (r"Missing (SecretAccessKey|AccessKeyId)", r"a key is missing: \1"),
    (r"invalid peer certificate: (\w+)", r"the certificate of its endpoint is not trusted (\1)"),
    (r"configured region", "the bucket is in another region: set AWS_REGION"),
    (r"BadScheme", "its endpoint is plain HTTP, which needs AWS_ALLOW_HTTP=true"),
    (r"kind: Timeout", f"no answer within {ANSWER_SECONDS} seconds"),
    (r"kind: Connect", "no connection to its endpoint"),
    (r"HTTP error|error decoding response body", "the connection broke"),
    (r"PanicException", "no request can be made: is its endpoint a URL?"),
)


class BucketStore:
    """Objects below a prefix in a bucket. The location is a URL: `s3://bucket/prefix`, `gs://...`, `az://...`."""

    def __init__(self, location: str) -> None:
        parts = urlsplit(location)
        self._place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        try:
            with _panics_translated():
                self._store = from_url(location, retry_config=RETRIES)
                # For what must not be repeated unseen: see `create`.
                self._without_retries = from_url(location, retry_config=NO_RETRIES)
        except (BaseError, ValueError) as error:
            reason = _meaning(error) or re.sub(r"\w+://\S+", "...", str(error).partition("\n")[0])
            raise StoreError(f"cannot use {self._place}: {reason}") from None

    def create(self, name: str, data: bytes) -> bool:
        check_name(name)
        started = time.monotonic()
        may_be_ours = False  # an attempt got no answer, so the object that is there may be what it stored
        for pause in (*PAUSES, None):
            try:
                with _panics_translated():
                    obstore.put(self._without_retries, name, data, mode="create", use_multipart=False)
            except AlreadyExistsError as error:
                if not _is_undecided(error):
                    return may_be_ours and self._has(name, data)
                failure: Exception = error
            except (PermissionDeniedError, UnauthenticatedError, FileNotFoundError) as error:
                raise self._error("store an object", error) from None
            except BaseError as error:
                failure, may_be_ours = error, True
            else:
                return True
            if pause is None or time.monotonic() - started > RETRY_SECONDS:
                break
            time.sleep(pause)
        raise self._error("store an object", failure) from None

    def read(self, name: str) -> bytes:
        check_name(name)
        with self._translated("read an object"):
            return bytes(obstore.get(self._store, name).bytes())

    def names(self, prefix: str) -> Iterator[str]:
        if prefix:
            check_name(prefix)
        with self._translated("list the objects"):
            for page in obstore.list(self._store, prefix or None, chunk_size=PAGE):
                yield from [each["path"] for each in page]

    def delete(self, prefix: str) -> None:
        check_name(prefix)
        names = list(self.names(prefix))
        with self._translated("delete objects"):
            self._delete([name for name in names if is_head(name)])
            self._delete([name for name in names if not is_head(name)])
            self._delete([prefix])

    def _delete(self, names: Sequence[str]) -> None:
        if not names:
            return
        try:
            obstore.delete(self._store, names)
        except FileNotFoundError as error:  # services other than S3 refuse to delete what is gone
            if _is_bucket_missing(error):
                raise
            for name in names:
                with suppress(FileNotFoundError):
                    obstore.delete(self._store, name)

    def _has(self, name: str, data: bytes) -> bool:
        try:
            return self.read(name) == data
        except FileNotFoundError:  # deleted since then
            raise OSError(f"cannot store an object in {self._place}: another process deletes it") from None

    @contextmanager
    def _translated(self, action: str) -> Iterator[None]:
        try:
            with _panics_translated():
                yield
        except (BaseError, FileNotFoundError) as error:
            raise self._error(action, error) from None

    def _error(self, action: str, error: Exception) -> OSError:
        if isinstance(error, FileNotFoundError) and not _is_bucket_missing(error):
            return FileNotFoundError(f"{self._place} has no such object")
        return OSError(f"cannot {action} in {self._place}: {_meaning(error) or 'its answer is not one of a store'}")


@contextmanager
def _panics_translated() -> Iterator[None]:
    """Raise an error where `obstore` would end the thread, as it does on an endpoint that is no URL."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise GenericError("PanicException") from None


def _is_bucket_missing(error: Exception) -> bool:
    return "<Code>NoSuchBucket</Code>" in str(error)


def _is_undecided(error: AlreadyExistsError) -> bool:
    """Whether the service only says that somebody else writes or deletes the object at this moment."""
    return "409 Conflict" in str(error)


def _meaning(error: Exception) -> str | None:
    text = str(error)
    for pattern, meaning in _MEANINGS:
        if match := re.search(pattern, text):
            return match.expand(meaning)
    if status := re.search(r"status code: (\d{3}[\w ]*)", text):
        code = re.search(r"<Code>(\w+)</Code>", text)
        words = status[1] + (f" ({code[1]})" if code else "")
        return f"access denied, {words}: check the keys" if status[1][:3] in ("401", "403") else f"it answered {words}"
    return None
