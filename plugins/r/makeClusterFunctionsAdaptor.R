#' ClusterFunctions for the request adaptor
#'
#' The jobs of one call of `submitJobs` become the tasks of a bag, one bag for each set of resources, so that their
#' runtimes are learned together. They run in pilots in the free slots of the queue. Needs the command `adaptor`.
#'
#' Resources: `ncpus`, `memory` (megabytes), `walltime` (seconds that a job is expected to take; it ends none),
#' `gpus` (such as "a100:1"), `site`. With `chunks.as.arrayjobs = TRUE` a chunk is handed over at once, which is far
#' quicker for thousands of jobs.
#'
#' @param adaptor The command.
#' @param name What the names of the bags begin with; by default the name of the registry's folder.
#' @param fs.latency Seconds until files of a node are seen here, at most.
#' @return A batchtools::ClusterFunctions object.
makeClusterFunctionsAdaptor = function(adaptor = "adaptor", name = NULL, fs.latency = 65) {
  checkmate::assertString(adaptor, min.chars = 1L)
  checkmate::assertString(name, null.ok = TRUE)

  # R puts its libraries first for all that it starts, and another Python than the system's may not run with them.
  own = "[ ! -r \"$R_HOME/etc/ldpaths\" ] || . \"$R_HOME/etc/ldpaths\"; echo \"$R_LD_LIBRARY_PATH\""
  own = strsplit(system2("env", c("-u", "LD_LIBRARY_PATH", "sh", "-c", shQuote(own)), stdout = TRUE), ":")[[1L]]
  libraries = setdiff(strsplit(Sys.getenv("LD_LIBRARY_PATH"), ":")[[1L]], own)
  before = c(paste0("LD_LIBRARY_PATH=", paste(libraries, collapse = ":")), adaptor)

  # The standard output of a command, by lines; stops with what it says on standard error if it fails.
  run = function(args) {
    errors = tempfile("adaptor-")
    on.exit(unlink(errors))
    output = suppressWarnings(system2("env", shQuote(c(before, args)), stdout = TRUE, stderr = errors))
    status = attr(output, "status")
    if (!is.null(status) && status != 0L)
      stop(paste(readLines(errors, warn = FALSE), collapse = "\n"), call. = FALSE)
    as.character(output)
  }

  quoted = function(text) {  # as JSON has it
    text = gsub("([\\\\\"])", "\\\\\\1", enc2utf8(text))
    paste0("\"", gsub("\n", "\\\\n", gsub("\t", "\\\\t", text)), "\"")
  }

  # Options of a bag from the resources of its jobs.
  optionsOf = function(resources) {
    given = list(
      "--cpus" = resources$ncpus,
      "--mem" = if (is.null(resources$memory)) NULL else sprintf("%.0fM", as.numeric(resources$memory)),
      "--time" = resources$walltime,
      "--gpus" = resources$gpus,
      "--site" = resources$site
    )
    given = given[!vapply(given, is.null, logical(1L))]
    as.character(unlist(Map(c, names(given), vapply(given, format, "", scientific = FALSE, trim = TRUE))))
  }

  # A path as a quoted word of the shell needs it, which expands no `~`; a task runs in the folder of the submission.
  whole = function(path) file.path(normalizePath(dirname(path)), basename(path))

  # The lines of the tasks of a collection: one, or one for each job of an array.
  linesOf = function(jc) {
    program = shQuote(file.path(R.home("bin"), "Rscript"))
    call = shQuote(sprintf("batchtools::doJobCollection('%s')", whole(jc$uri)))
    indices = if (isTRUE(jc$array.jobs)) seq_len(nrow(jc$jobs)) else NA_integer_
    vapply(indices, function(index) {
      log = if (is.na(index)) whole(jc$log.file) else sprintf("%s_%i", whole(jc$log.file), index)
      command = sprintf("exec %s -e %s > %s 2>&1", program, call, shQuote(log))
      env = if (is.na(index)) "" else sprintf(", \"env\": {\"ADAPTOR_ARRAY_INDEX\": \"%i\"}", index)
      sprintf("{\"command\": %s%s}", quoted(command), env)
    }, "")
  }

  # The bags that are open during a call of submitJobs, by the folder of the registry and their options.
  open = new.env(parent = emptyenv())

  # The ids of the tasks of a file, which are a bag's and their numbers.
  submitTo = function(reg, file, options) {
    key = paste(c(reg$file.dir, options), collapse = "\n")
    if (!is.null(bag <- open[[key]])) {
      answer = paste(run(c("append", bag, file, "--json")), collapse = " ")
      numbers = sub(".*\"tasks\": *\\[([^]]*)\\].*", "\\1", answer)
      return(sprintf("%s.%i", bag, as.integer(strsplit(numbers, ",")[[1L]])))
    }
    title = paste0("R: ", if (is.null(name)) basename(reg$file.dir) else name)
    bag = utils::tail(run(c("submit", file, "--open", "--name", title, "--parsable", options)), 1L)
    assign(key, bag, open)
    sprintf("%s.%i", bag, seq_along(readLines(file)) - 1L)
  }

  submitJob = function(reg, jc) {
    batchtools::assertRegistry(reg, writeable = TRUE)
    checkmate::assertClass(jc, "JobCollection")
    lines = linesOf(jc)
    file = tempfile("jobs-", fileext = ".jsonl")
    on.exit(unlink(file))
    writeLines(lines, file, useBytes = TRUE)
    ids = try(submitTo(reg, file, optionsOf(jc$resources)), silent = TRUE)
    if (inherits(ids, "try-error"))
      return(batchtools::cfHandleUnknownSubmitError(adaptor, 1L, conditionMessage(attr(ids, "condition"))))
    logs = if (isTRUE(jc$array.jobs)) sprintf("%s_%i", basename(jc$log.file), seq_along(lines)) else NA_character_
    batchtools::makeSubmitJobResult(status = 0L, batch.id = ids, log.file = logs)
  }

  # No more tasks come into the bags of this registry: so they end with their last task.
  close = function(reg, ...) {
    for (key in ls(open)) if (startsWith(key, paste0(reg$file.dir, "\n")) || key == reg$file.dir) {
      run(c("append", open[[key]], "--close"))
      rm(list = key, envir = open)
    }
  }

  # The ids of the jobs of this registry in this state. batchtools asks for those that wait and then for those that
  # run: both lists are of one look, for between two a job may go from one worker to another and be in neither.
  seen = new.env(parent = emptyenv())
  listJobs = function(reg, state) {
    ids = reg$status$batch.id[!is.na(reg$status$submitted) & is.na(reg$status$done)]
    bags = paste(unique(sub("\\..*", "", ids[!is.na(ids)])), collapse = ",")
    if (!nzchar(bags))
      return(character(0L))
    rows = seen$rows
    if (state == "waiting" || is.null(rows) || seen$bags != bags || Sys.time() - seen$at > 1) {
      rows = run(c("results", bags, "--state", "waiting", "--state", "running", "--all", "--csv"))
      rows = utils::read.csv(text = rows, colClasses = "character")
    }
    seen$rows = if (state == "waiting") rows
    seen$bags = bags
    seen$at = Sys.time()
    rows = rows[rows$state == state, ]
    sprintf("%s.%s", rows$bag, rows$task)
  }

  killJob = function(reg, batch.id) {
    batchtools::assertRegistry(reg, writeable = TRUE)
    checkmate::assertString(batch.id)
    parts = strsplit(batch.id, ".", fixed = TRUE)[[1L]]
    batchtools::cfKillJob(reg, "env", shQuote(c(before, "cancel", parts[1L], "--task", parts[2L])))
  }

  batchtools::makeClusterFunctions(
    name = "Adaptor", submitJob = submitJob, killJob = killJob,
    listJobsQueued = function(reg) listJobs(reg, "waiting"),
    listJobsRunning = function(reg) listJobs(reg, "running"),
    array.var = "ADAPTOR_ARRAY_INDEX", store.job.collection = TRUE, scheduler.latency = 1, fs.latency = fs.latency,
    hooks = list(post.submit = close)
  )
}
