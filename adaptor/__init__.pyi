from adaptor.executor.executor import Executor as Executor

__all__ = ["Executor", "__version__", "register_joblib"]
__version__: str

def register_joblib() -> None: ...
