-- What tasks held of GPUs, where their workers could measure it.
ALTER TABLE attempt ADD COLUMN peak_gpu_memory INTEGER;
