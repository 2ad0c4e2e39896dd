"""All settings; the only room that reads settings files and the environment.

A setting is read from the environment first (``RECONCILE_CASSANDRA__PORT=9042``), then from the
TOML file of ``--config``, then from the defaults here. Durations are seconds. `docs/settings.md` is
made from the descriptions in `servers` and `work`.
"""

from streaming.settings.model import Settings
from streaming.settings.read import LISTS, PREFIX, load
from streaming.settings.section import SECONDS, Section
from streaming.settings.servers import (
    CanarySettings,
    CassandraSettings,
    KafkaSettings,
    MetricsSettings,
)
from streaming.settings.unsafe import refuse_unsafe
from streaming.settings.work import (
    Mode,
    RepairSettings,
    StreamSettings,
    SweepSettings,
    TallySettings,
)

__all__ = [
    "LISTS",
    "PREFIX",
    "SECONDS",
    "CanarySettings",
    "CassandraSettings",
    "KafkaSettings",
    "MetricsSettings",
    "Mode",
    "RepairSettings",
    "Section",
    "Settings",
    "StreamSettings",
    "SweepSettings",
    "TallySettings",
    "load",
    "refuse_unsafe",
]
