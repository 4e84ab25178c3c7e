"""``python -m ggarray``: print the devices and what else is here."""

from ggarray._config import show_config

show_config()
