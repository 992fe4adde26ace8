"""The request adaptor: bags of tasks on space-shared clusters (De Rose et al. 2008)."""

try:
    from adaptor._version import __version__ as __version__  # written when the package is built or installed
except ModuleNotFoundError:
    __version__ = "0+not.installed"


__all__ = ["Executor", "Resources", "__version__", "register_joblib"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> object:
    """The Python interface, imported when asked for: command line and workers start without it."""
    import importlib

    if name in ("Executor", "Resources"):
        return getattr(importlib.import_module("adaptor.executor.executor"), name)
    if name == "register_joblib":
        return importlib.import_module("adaptor.executor.joblib_backend").register
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
