"""All settings; the only room that reads settings files and the environment.

A setting is read from the environment first (``RECONCILE_CASSANDRA__PORT=9042``), then from the
settings file (`settings_file`), then from the defaults here. Durations are seconds.
`docs/settings.md` is made from the descriptions in `servers`, `sweeps` and `work`.
"""

from streaming.settings.cluster import INTERPRETER as INTERPRETER
from streaming.settings.cluster import costs_on_cluster as costs_on_cluster
from streaming.settings.cluster import is_one_host as is_one_host
from streaming.settings.cluster import refuse_unfit_cluster as refuse_unfit_cluster
from streaming.settings.example import example as example
from streaming.settings.handshake import fault as fault
from streaming.settings.model import Settings as Settings
from streaming.settings.read import CONFIG as CONFIG
from streaming.settings.read import USUAL as USUAL
from streaming.settings.read import load as load
from streaming.settings.read import settings_file as settings_file
from streaming.settings.secrets import KAFKA_PASSWORD as KAFKA_PASSWORD
from streaming.settings.secrets import PASSWORD as PASSWORD
from streaming.settings.secrets import Encrypted as Encrypted
from streaming.settings.secrets import Login as Login
from streaming.settings.secrets import login_now as login_now
from streaming.settings.secrets import secret_in as secret_in
from streaming.settings.secrets import tls_context as tls_context
from streaming.settings.section import PREFIX as PREFIX
from streaming.settings.section import SECONDS as SECONDS
from streaming.settings.section import Section as Section
from streaming.settings.servers import AgentSettings as AgentSettings
from streaming.settings.servers import CanarySettings as CanarySettings
from streaming.settings.servers import CassandraSettings as CassandraSettings
from streaming.settings.servers import KafkaSettings as KafkaSettings
from streaming.settings.servers import MetricsSettings as MetricsSettings
from streaming.settings.service import notify_socket as notify_socket
from streaming.settings.spark import FIXED as FIXED
from streaming.settings.spark import SECRET as SECRET
from streaming.settings.sweeps import SweepSettings as SweepSettings
from streaming.settings.unsafe import GUARDED as GUARDED
from streaming.settings.unsafe import Guarded as Guarded
from streaming.settings.unsafe import refuse_unsafe as refuse_unsafe
from streaming.settings.work import Mode as Mode
from streaming.settings.work import RepairSettings as RepairSettings
from streaming.settings.work import StreamSettings as StreamSettings
from streaming.settings.work import TallySettings as TallySettings
