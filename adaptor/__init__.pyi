from adaptor.executor.executor import Executor as Executor

__version__: str
