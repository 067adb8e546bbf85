"""Foreign values as our types. A field of the wrong type is left out, and the others are kept."""

from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec

from agent_logger.providers.json_values import fields_of

S = TypeVar("S", bound=msgspec.Struct)

REFUSED = (ValueError, RecursionError)  # msgspec's own errors are ValueErrors


def fitting(record: type[S], value: Any) -> S:
    """The record made of those fields that fit; all of its fields have defaults. A value that is no object has no
    fields."""
    try:
        return msgspec.convert(value, record)
    except REFUSED:
        return _by_field(record, fields_of(value))


def _by_field(record: type[S], value: dict[str, Any]) -> S:
    taken: dict[str, Any] = {}
    for field in msgspec.structs.fields(record):
        if field.encode_name in value:
            fitted = _fit(field.type, value[field.encode_name])
            if fitted is not _MISFIT:
                taken[field.name] = fitted
    return record(**taken)


_MISFIT = object()


def _fit(type_: Any, value: Any) -> Any:
    try:
        return msgspec.convert(value, type_)
    except REFUSED:
        pass
    for choice in get_args(type_) if get_origin(type_) in (Union, UnionType) else (type_,):
        if isinstance(value, dict) and isinstance(choice, type) and issubclass(choice, msgspec.Struct):
            return _by_field(choice, value)
        if isinstance(value, dict) and get_origin(choice) is dict:
            inner = {key: _fit(get_args(choice)[1], item) for key, item in value.items()}
            return {key: item for key, item in inner.items() if item is not _MISFIT}
        if isinstance(value, list) and get_origin(choice) is list:
            return [item for item in (_fit(get_args(choice)[0], item) for item in value) if item is not _MISFIT]
        if choice is int and isinstance(value, float) and value.is_integer():
            return int(value)
    return _MISFIT
