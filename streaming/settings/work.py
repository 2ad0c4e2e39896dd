"""Settings of the work: the delay, what is repaired, what is counted, and all limits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Literal

from pydantic import Field, PositiveInt, field_validator

from reconcilers.declared.family import Projection
from reconcilers.declared.projections import MESSAGE_PROJECTIONS
from reconcilers.declared.tallies import MAILBOX_TALLIES, USER_TALLIES
from reconcilers.declared.tally import Tally
from reconcilers.words.names import did_you_mean
from streaming.settings.section import Fraction, MaybeSeconds, Seconds, Section

OWN_FOLDER = "/var/lib/reconciler"
"""The folder below which a process keeps its files, unless settings name others."""
SELDOM_TIMES = 5
"""How many times as long the window is of tables that seldom change."""
MASTER = re.compile(r"local(\[(\*|[1-9]\d*)\])?|(spark|k8s)://\S+|yarn")


class Mode(StrEnum):
    """What a stream may do, given at the command line. Observe mode writes to no mail table."""

    OBSERVE = "observe"
    REPAIR = "repair"


class StreamSettings(Section):
    """The delay-and-recheck window and the Spark job."""

    checkpoint_dir: str = Field(
        f"{OWN_FOLDER}/checkpoint",
        description="Spark's own files: a folder or a URI of Hadoop's, disposable",
    )
    checkpoint_shared: bool | None = Field(
        None,
        description="on a cluster, whether all hosts see the same checkpoint_dir: true for a"
        " mounted folder; false: a lost executor makes changes wait again; needed for a folder",
    )
    temp_dir: Path | None = Field(
        None,
        description="temporary files, Spark's too: a folder on a local disk, not NFS, that no job"
        " cleans; without it `temporary` below checkpoint_dir, or where that is a URI, below"
        f" {OWN_FOLDER}",
    )
    delay: Seconds = Field(
        45.0, description="D: no change is judged earlier; James retries for 31 s"
    )
    window: Seconds = Field(
        5.0,
        description="W: a key comes out D to D + 1.5 W after it is read; for systems other than"
        " messages W is five times as long, at most D",
    )
    trigger: MaybeSeconds = Field(None, description="time between two batches; else one window")
    master: str = Field(
        "local[2]",
        description="Spark master: local[N] on this host, or that of a cluster (docs/cluster.md)",
    )
    shuffle_partitions: int | None = Field(
        None, gt=0, description="tasks that share the looks of a batch; else one for each core"
    )
    executors_within: Seconds = Field(
        300.0,
        description="on a cluster, longest time without any executor; then the stream ends",
    )
    jars: Path | None = Field(
        None,
        description="folder of the Kafka connector's jars, unless [spark] has spark.jars or"
        " spark.jars.packages; without it that of `reconcile jars`, in the Python environment",
    )
    driver_memory: str = Field(
        "1g", description="heap of the Spark driver, unless [spark] has spark.driver.memory"
    )
    restart_backoff_max: Seconds = Field(
        60.0, description="longest pause before a query that ended is restarted"
    )

    @property
    def temporary(self) -> tuple[str, Path]:
        """The folder of temporary files, after the name of the setting that it derives from."""
        if self.temp_dir is not None:
            return "temp_dir", self.temp_dir
        if "://" in self.checkpoint_dir.removeprefix("file://"):
            return "temp_dir", Path(OWN_FOLDER, "temporary")
        return "checkpoint_dir", Path(self.checkpoint_dir.removeprefix("file://")) / "temporary"

    @property
    def seldom(self) -> StreamSettings:
        """The same for tables that seldom change: fewer batches, because an idle one costs, too."""
        longer = min(self.delay, SELDOM_TIMES * self.window)
        return self.model_copy(update={"window": longer, "trigger": None})

    @property
    def is_local(self) -> bool:
        """Whether Spark's tasks run on this host, in a JVM that the process starts."""
        return self.master.startswith("local")

    @field_validator("master")
    @classmethod
    def _is_a_master(cls, master: str) -> str:
        if MASTER.fullmatch(master) is None:
            raise ValueError(f"{master} is no Spark master, such as local[2] or spark://host:7077")
        return master


class RepairSettings(Section):
    """What may be repaired, how often it is tried, and when a person decides."""

    projections: tuple[str, ...] = Field(
        tuple(each.name for each in MESSAGE_PROJECTIONS),
        description="tables that are repaired; messages always is",
    )
    attempts: PositiveInt = Field(3, description="repairs of a difference before it is stuck")
    re_add_shadowed: bool = Field(False, description="add rows again that outlived their delete")
    recheck_interval: Seconds = Field(
        600.0, description="first wait until another look at a finding that waits"
    )
    empty_truth_min_rows: PositiveInt = Field(
        10, description="a mailbox with so many rows and no truth waits for a person"
    )
    suspects_per_minute: PositiveInt = Field(1000, description="breaker: most suspects a minute")
    suspect_share: Fraction = Field(0.05, description="breaker: largest share of suspects")
    removals_per_minute: PositiveInt = Field(100, description="breaker: most removals a minute")
    removal_share: Fraction = Field(0.01, description="breaker: largest share of removals")
    share_min_keys: PositiveInt = Field(1000, description="fewest keys for which the shares apply")
    writes_per_minute: PositiveInt = Field(
        2000, description="most repairs a minute; further ones are held for a later minute"
    )
    only_pilot: bool = Field(
        default=False,
        description="write nothing, counters included, unless a `reconcile pilot` runs",
    )
    allow_unsafe_settings: bool = Field(
        False, description="repair even if a setting removes a guard; for tests"
    )
    log_days: PositiveInt = Field(
        90, le=7300, description="days for which the log, and so undo, is kept"
    )

    @field_validator("projections")
    @classmethod
    def _are_declared(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return _known(names, MESSAGE_PROJECTIONS)


class RightsSettings(Section):
    """Access rights: the tables that repeat the lists of mailboxes, kept equal to them."""

    truth: Literal["off", "eventstore", "aclv2", "acl"] = Field(
        "off",
        description="table with the lists of mailboxes: eventstore (aclv2 is then repaired, too),"
        " or in an older James aclv2 or acl; off: rights are not compared",
    )


AttachmentTable = Literal["attachmentv2", "attachmentmessageid"]
"""The tables of James that lead from an attachment to its message."""


class AttachmentsSettings(Section):
    """Attachments: the tables that lead from an attachment to its message."""

    tables: tuple[AttachmentTable, ...] = Field(
        (),
        description="tables that are compared with the lists of messages: attachmentv2, and up to"
        " James 3.6 attachmentmessageid; none: attachments are not compared",
    )


QuotaTable = Literal["auto", "currentquota", "quotacurrentvalue"]
"""The table in which James keeps quotas; ``auto``: the one that James writes."""


class TallySettings(Section):
    """Counters and quotas: when one counts as wrong, and how much is read to find out."""

    projections: tuple[str, ...] = Field(
        tuple(dict.fromkeys(each.name for each in (*MAILBOX_TALLIES, *USER_TALLIES))),
        description="counters that are corrected",
    )
    quota_table: QuotaTable = Field(
        "auto",
        description="table of quotas that James writes; auto: the one that exists; of two, the one"
        " that is written, by the write times of its rows",
    )
    window: Seconds = Field(60.0, description="time in which a changing mailbox is counted once")
    max_update_lag: Seconds = Field(
        1_800.0,
        description="L: longest time from the truth's write to the counter's: longer than any"
        " copy or expunge takes",
    )
    max_quota_lag: Seconds = Field(
        1_800.0,
        description="longest time from the truth's write to the quota's: longer than the longest"
        " backlog of James's event bus; a quota that changed within it is not corrected",
    )
    looks: PositiveInt = Field(
        3, description="K: looks with the same sign, a delay apart, before a correction"
    )
    chunk: PositiveInt = Field(
        1000, description="UIDs counted together; another number makes all be counted again"
    )
    rows_per_second: PositiveInt = Field(
        5_000, description="most rows that are read a second for counting"
    )
    after_outage: Seconds = Field(
        600.0, description="no correction while a node is down, nor for so long after"
    )
    correction_max_messages: PositiveInt = Field(
        1_000, description="messages; a larger error of a counter waits for a person"
    )
    correction_max_octets: PositiveInt = Field(
        100_000_000, description="octets; the same for the size of a quota"
    )
    corrections_per_minute: PositiveInt = Field(
        60, description="breaker: most corrections a minute"
    )
    correction_share: Fraction = Field(
        0.05, description="breaker: largest share of looks that end in a correction"
    )
    share_min_looks: PositiveInt = Field(
        1000, description="fewest looks for which that share applies"
    )

    @field_validator("projections")
    @classmethod
    def _are_declared(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return _known(names, (*MAILBOX_TALLIES, *USER_TALLIES))


class SampleSettings(Section):
    """The sampler: it measures the consistency of changed keys, and repairs nothing."""

    one_in: int = Field(
        100, ge=0, description="one key in so many is looked at after each change; 0: none, off"
    )
    looks_per_second: PositiveInt = Field(
        100, description="most keys that it looks at a second; others count as not looked at"
    )


class SloSettings(Section):
    """What the consistency that the sampler measures is to be; alerts compare it."""

    target: float = Field(
        0.999, gt=0, lt=1, description="share of rows that is to agree 10 min after their change"
    )


RightTable = Literal["path", "mailbox", "none"]
"""The side that `reconcile mailboxes --fix` never writes (`reconcilers.mailboxes.plan`)."""


class MailboxesSettings(Section):
    """Mailbox objects: `reconcile mailboxes`, and what the stream reports of them."""

    right: RightTable = Field(
        "none",
        description="side that is right where `mailbox` and `mailboxPathV3` differ: path for James"
        " since June 2026, before that a person chooses; none: conflicts are only reported",
    )
    watch: bool = Field(
        default=False,
        description="the stream reports conflicts, too; needs change capture of both tables, and"
        " agents that were started after `mailbox` was created",
    )


def _known(names: tuple[str, ...], declared: Iterable[Projection | Tally]) -> tuple[str, ...]:
    known = list(dict.fromkeys(each.name for each in declared))
    for name in names:
        if name not in known:
            raise ValueError(f"{name} is none of {', '.join(known)}{did_you_mean(name, known)}")
    return names
