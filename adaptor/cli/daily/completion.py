"""`adaptor completion`: the script by which a shell completes commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    Examples:
      adaptor completion bash >> ~/.bashrc
      adaptor completion zsh  >> ~/.zshrc
      adaptor completion fish > ~/.config/fish/completions/adaptor.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    root = ctx.find_root()
    name = root.info_name or "adaptor"
    variable = f"_{name}_COMPLETE".replace("-", "_").upper()
    click.echo(kind(root.command, {}, name, variable).source())
