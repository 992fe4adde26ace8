"""For `adaptor site check`: a local site against this machine."""

from __future__ import annotations

from adaptor.config.schema import SiteConfig
from adaptor.units import counted
from backends.findings import Finding, error, ok, warning
from backends.local.admission import usable_processors
from backends.local.devices import devices


def check_site(site: SiteConfig) -> list[Finding]:
    """A local site may claim more processors than the machine has; no request may be larger than the site."""
    here = usable_processors()
    processors = site.processors or here
    if processors > here:
        found = [warning(f"processors is {processors}, but this machine gives {here}")]
    else:
        found = [ok(f"{processors} of this machine's {here} processors")]
    gpus = devices(site.gpus)
    if gpus:
        found.append(ok(f"{counted(len(gpus), 'GPU')}: {', '.join(gpus)}; tasks without `gpus` see none"))
    max_proc = site.limits.max_proc
    if max_proc is not None and max_proc > processors:
        found.append(
            error(f"limits.max_proc is {max_proc}, but the site has {processors} processors; lower it")
        )
    return found
