# A thousand jobs by batchtools and by future, with the command `adaptor` in PATH; run by tests/e2e/test_local_r.py.
source(commandArgs(trailingOnly = TRUE)[1L])

reg = batchtools::makeRegistry(file.dir = NA, conf.file = NA)
reg$cluster.functions = makeClusterFunctionsAdaptor(fs.latency = 5)
ids = batchtools::batchMap(function(i) i * 2, i = 1:1000, reg = reg)
ids$chunk = batchtools::chunk(ids$job.id, n.chunks = 20)
batchtools::submitJobs(ids, reg = reg)
stopifnot(batchtools::waitForJobs(reg = reg, sleep = 1))
stopifnot(identical(unlist(batchtools::reduceResultsList(reg = reg)), (1:1000) * 2))

# A chunk of an array is one submission; each of its jobs finds its own.
reg = batchtools::makeRegistry(file.dir = NA, conf.file = NA)
reg$cluster.functions = makeClusterFunctionsAdaptor(fs.latency = 5)
ids = batchtools::batchMap(function(i) i * 3, i = 1:8, reg = reg)
ids$chunk = 1L
batchtools::submitJobs(ids, resources = list(chunks.as.arrayjobs = TRUE, ncpus = 1, walltime = 60), reg = reg)
stopifnot(length(unique(sub("\\..*", "", reg$status$batch.id))) == 1L)
stopifnot(batchtools::waitForJobs(reg = reg, sleep = 1))
stopifnot(identical(unlist(batchtools::reduceResultsList(reg = reg)), (1:8) * 3))
stopifnot(any(grepl("batchtools job.id=8", batchtools::getLog(8, reg = reg), fixed = TRUE)))

# A job that waits or runs can be killed.
batchtools::clearRegistry(reg)
ids = batchtools::batchMap(Sys.sleep, time = c(100, 100, 100), reg = reg)
batchtools::submitJobs(ids, reg = reg)
stopifnot(nrow(batchtools::findOnSystem(reg = reg)) == 3L)
stopifnot(all(batchtools::killJobs(reg = reg)$killed))
stopifnot(nrow(batchtools::findOnSystem(reg = reg)) == 0L)

if (requireNamespace("future.batchtools", quietly = TRUE) && requireNamespace("future.apply", quietly = TRUE)) {
  future::plan(
    future.batchtools::batchtools_custom,
    cluster.functions = makeClusterFunctionsAdaptor(fs.latency = 5), workers = 4
  )
  stopifnot(identical(unlist(future.apply::future_lapply(1:1000, function(i) i^2)), (1:1000)^2))
}
cat("all is well\n")
