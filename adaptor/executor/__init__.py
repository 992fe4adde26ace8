"""Python's way in: `adaptor.Executor`, and through it joblib, Dask and submitit."""
