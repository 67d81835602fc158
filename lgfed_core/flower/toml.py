"""Values as TOML that Flower's command line takes, which looks for the next quotation mark."""

import json

from lgfed_core.errors import SettingsError


def toml(name: str, value: object) -> str:
    """``value`` as TOML in one line. Raises SettingsError for a text that Flower cannot take."""
    if not isinstance(value, str):
        return json.dumps(value)
    if "'" not in value and value.isprintable():
        return f"'{value}'"
    if '"' in value or "\\" in value or not value.isprintable():
        raise SettingsError(
            f"{name} is {value!r}; Flower takes no text with both kinds of quotation marks, or "
            "with a line break: choose another name"
        )
    return f'"{value}"'
