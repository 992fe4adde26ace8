"""Snakemake's executor `adaptor`: jobs become tasks of open bags, one bag for each rule and its resources.

So the runtimes of a rule are learned together, and its jobs run in pilots that other jobs have used before
them, instead of one batch job each.
"""

from dataclasses import dataclass, field
from typing import Optional

from snakemake_interface_executor_plugins.settings import CommonSettings, ExecutorSettingsBase

from snakemake_executor_plugin_adaptor.executor import Executor

__all__ = ["Executor", "ExecutorSettings", "common_settings"]


@dataclass
class ExecutorSettings(ExecutorSettingsBase):
    """Options of the command line, each as `--adaptor-NAME`.

    Snakemake reads the types at run time, and knows `Optional` only.
    """

    site: Optional[str] = field(
        default=None, metadata={"help": "Sites that may run the jobs, separated by commas (default: any)."}
    )
    name: Optional[str] = field(
        default=None,
        metadata={"help": "What the names of the bags begin with (default: the name of the current folder)."},
    )
    keep_logs: bool = field(
        default=False,
        metadata={"help": "Keep the output of jobs that succeed, too (default: only of those that fail)."},
    )


common_settings = CommonSettings(
    non_local_exec=True,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    pass_default_storage_provider_args=True,
    pass_default_resources_args=True,
    pass_envvar_declarations_to_cmd=False,  # a bag carries the whole environment
    auto_deploy_default_storage_provider=False,
    init_seconds_before_status_checks=0,
)
