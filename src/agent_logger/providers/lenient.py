"""Values of others as our types. A field that is not what it should be is left out, and does not lose the others."""

from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec

from agent_logger.providers.answer import fields_of

S = TypeVar("S", bound=msgspec.Struct)

REFUSED = (ValueError, RecursionError)  # msgspec's own errors are ValueErrors


def fitting(record: type[S], value: Any) -> S:
    """The record of those fields that fit; all of its fields have defaults. What is no object has none that do."""
    try:
        return msgspec.convert(value, record)
    except REFUSED:
        return _by_field(record, fields_of(value))


def _by_field(record: type[S], value: dict[str, Any]) -> S:
    taken: dict[str, Any] = {}
    for field in msgspec.structs.fields(record):
        if field.encode_name in value:
            found = _fit(field.type, value[field.encode_name])
            if found is not _MISFIT:
                taken[field.name] = found
    return record(**taken)


_MISFIT = object()


def _fit(wanted: Any, value: Any) -> Any:
    try:
        return msgspec.convert(value, wanted)
    except REFUSED:
        pass
    for choice in get_args(wanted) if get_origin(wanted) in (Union, UnionType) else (wanted,):
        if isinstance(value, dict) and isinstance(choice, type) and issubclass(choice, msgspec.Struct):
            return _by_field(choice, value)
        if isinstance(value, dict) and get_origin(choice) is dict:
            inner = {key: _fit(get_args(choice)[1], it) for key, it in value.items()}
            return {key: it for key, it in inner.items() if it is not _MISFIT}
        if isinstance(value, list) and get_origin(choice) is list:
            return [it for it in (_fit(get_args(choice)[0], it) for it in value) if it is not _MISFIT]
        if choice is int and isinstance(value, float) and value.is_integer():
            return int(value)
    return _MISFIT
