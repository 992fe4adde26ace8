"""The help of a command with many options: in sections, the rarely used ones on a longer page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import click

from adaptor.bag_spec import Section

_SECTIONS: tuple[Section, ...] = get_args(Section)  # in the order of the help, `More` as the last
_ALL = "adaptor.all-options"  # key of a context's `meta`: whether the longer page is shown


class SectionedOption(click.Option):
    """An option that stands in a section of the help."""

    def __init__(self, *args: Any, section: Section, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section: Section = section


class SectionedCommand(click.Command):
    """A command whose `--help` leaves out the options of `More`, which `--help-all` shows too."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(
            click.Option(
                ["--help-all"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                help="Show all options and exit.",
                callback=_show_all,
            )
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        found: dict[Section | Literal["Options"], list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)) is not None:
                found.setdefault(getattr(param, "section", "Options"), []).append(record)
        for section in (*(_SECTIONS if ctx.meta.get(_ALL) else _SECTIONS[:-1]), "Options"):
            if section in found:
                with formatter.section(section):
                    formatter.write_dl(found[section])
        if "More" in found and not ctx.meta.get(_ALL):
            formatter.write_paragraph()
            formatter.write_text(f"{ctx.command_path} --help-all shows {len(found['More'])} more options.")


def sectioned(section: Section, *names: str, **settings: Any) -> Callable[[Any], Any]:
    """Decorator: an option in a section of the help."""
    return click.option(*names, cls=SectionedOption, section=section, **settings)


def _show_all(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()
