"""`python -m adaptor.cli`, where the script `adaptor` is not on the PATH."""

from adaptor.cli.main import main

main()
