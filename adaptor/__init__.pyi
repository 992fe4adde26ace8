from adaptor.executor.executor import Executor as Executor
from adaptor.executor.resources import Resources as Resources

__all__ = ["Executor", "Resources", "__version__", "register_joblib"]
__version__: str

def register_joblib() -> None: ...
