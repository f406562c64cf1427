"""What all sections share: unknown keys are refused, values are never changed after reading, and true is no number."""

from typing import Any

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic_core import CoreSchema


def _no_boolean(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError(f"must be a number, not {str(value).lower()}")
    return value


def _without_booleans(schema: Any) -> Any:
    """The same schema, of which every integer and number refuses true and false: pydantic takes them for 1 and 0."""
    if isinstance(schema, list):
        return [_without_booleans(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if isinstance(schema.get("function"), dict) and schema["function"].get("function") is _no_boolean:
        return schema  # of a section inside, which has seen to it
    schema = {key: value if key == "metadata" else _without_booleans(value) for key, value in schema.items()}
    if schema.get("type") not in ("int", "float"):
        return schema
    return {
        "type": "function-before",
        "function": {"type": "no-info", "function": _no_boolean},
        "schema": schema,
    }


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return _without_booleans(handler(source))
