# Everything runs in a virtual environment of the project's own; nothing is installed outside it,
# but for the Debian packages of a real Slurm, which `make test` installs where it may.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
DEMO   := demo-out
SNAKEMAKE_PLUGIN := ./plugins/snakemake-executor-plugin-adaptor
# Modules are compiled when they are first imported; most of what is installed never is.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt
# What is installed beside the adaptor to develop and test it.
BESIDE := ./experiments ./plugins/donation-agents ./plugins/gridengine ./plugins/mcp

# The rooms of rules: pure, so that their tests need nothing and wait for nothing.
RULES  := runtimes forecast crafting scheduling donation budget decisions config bagfile
QUICK  := $(wildcard $(RULES:%=tests/%)) $(wildcard tests/test_*.py) tests/e2e/test_local_bag.py

# One after another, on one OpenPBS, which takes half a minute to start.
SCHEDULERS := tests/backends/test_contract.py tests/cli/checking/test_live.py \
	$(wildcard tests/backends/pbs/test_*_live.py tests/e2e/test_openpbs_*.py)

# Files one by one, in the order of tests/conftest.py: what a file makes for all of its tests is made once.
FILES  := --dist loadfile --no-loadscope-reorder

.PHONY: help demo quick test schedulers tests compiled nightly search releases campaign lint bench derose golden snakemake clients slurm pbs gridengine install dev dist pex reference docs hooks clean

help:
	@echo "make demo    render a picture in 100 parts on this machine: the whole way of a bag"
	@echo "make quick   lint, types, the rules and one bag on this machine, in under two minutes"
	@echo "make test    lint, and the tests of every change, on a real Slurm too"
	@echo "make nightly the longer tests: packages, browsers, a short campaign, the commands of the experiments, and make search"
	@echo "make search  all properties with random examples; SEARCH='--hypothesis-seed 7 tests/budget'"
	@echo "make releases the tests on a real Slurm, with Slurm and Python of three releases of Debian (needs root); RELEASES='--on sid tests/e2e'"
	@echo "make campaign bags on real clusters under 500 random faults, a million hostile inputs: hours; CAMPAIGN='--seed 7'"
	@echo "make hooks   ruff and mypy before each commit in this clone"
	@echo "make lint    ruff and mypy --strict"
	@echo "make bench   speed and memory, as ratios measured in one run"
	@echo "make golden  recompute the recorded outcomes of the experiments, name every difference; GOLDEN='--only bats'"
	@echo "make snakemake the plugin for Snakemake, by Snakemake's own tests and more, in an environment of its own"
	@echo "make clients the tests of CPython, joblib, Dask and submitit for executors, against ours; CLIENTS='joblib'"
	@echo "make slurm   a throwaway Slurm of 4 nodes on this machine, to play with"
	@echo "make pbs     a throwaway OpenPBS of 4 nodes, where one is installed in /opt/pbs (needs root)"
	@echo "make gridengine a throwaway Grid Engine of 4 hosts, which it installs in /opt/gridengine (needs root)"
	@echo "make install the adaptor command in $(BIN)"
	@echo "make dist    wheels and source distributions in dist/"
	@echo "make pex     dist/adaptor.pex: the adaptor and its libraries in one file; EXTRAS=notify,web adds extras"
	@echo "make reference the keys, options and commands of docs/reference/, from the code"
	@echo "make docs    this documentation as pages and manual pages in build/docs"

install: $(VENV)/installed
dev: $(VENV)/installed-dev

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "the adaptor needs Python 3.10 or later")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(INSTALL) --editable '.[demo]'
	touch $@

$(VENV)/installed-dev: pyproject.toml constraints.txt $(BESIDE:%=%/pyproject.toml) | $(VENV)/bin/python
	$(INSTALL) --editable '.[dev]' $(BESIDE:%=--editable %)
	touch $@ $(VENV)/installed

demo: $(VENV)/installed
	$(BIN)/python fixtures/demo/login_node.py
	rm -rf $(DEMO)/parts
	PYTHON=$(CURDIR)/$(BIN)/python ADAPTOR_DIR=$(CURDIR)/$(DEMO)/state \
		$(BIN)/adaptor --config fixtures/demo/site.yaml run fixtures/demo/picture.bag
	$(BIN)/python fixtures/demo/render.py assemble $(DEMO)/parts $(DEMO)/picture.png
	ADAPTOR_DIR=$(CURDIR)/$(DEMO)/state $(BIN)/adaptor report last
	@echo "The picture: $(DEMO)/picture.png"

quick: dev lint
	$(BIN)/python -m pytest -n 2 --hypothesis-profile=quick $(QUICK)

test: dev
	./tests/clusters/install-slurm
	$(MAKE) --no-print-directory -j 3 lint schedulers tests

# What each scheduler owes the daemon. It takes minutes and waits in most of them, while the others compute.
schedulers: dev
	$(BIN)/python -m pytest -m 'not nightly' $(SCHEDULERS)

tests: compiled
	$(BIN)/python -m pytest -m 'not nightly and not compiles' -n 8 $(FILES) $(SCHEDULERS:%=--ignore=%) --durations=10

# What compiles the kernels for all, and leaves the tests themselves compiled; mypy has another processor.
compiled: dev
	$(BIN)/python -m pytest -m 'compiles and not nightly'

nightly: dev
	./tests/clusters/install-slurm --accounting
	./tests/clusters/install-gridengine
	./tests/dashboard/install-chromium
	$(BIN)/python -m pytest -m 'nightly and not hypothesis' -n 4 --maxschedchunk 1 --durations=10
	$(MAKE) --no-print-directory search
	if [ -d ../shared/traces ]; then $(MAKE) --no-print-directory derose; fi

# All properties with other examples in each run, where `make test` has the same ones in every run. Hypothesis writes
# what it finds as a patch that adds it to the tests. SEARCH holds arguments of pytest.
search: dev
	$(BIN)/python -m pytest -m hypothesis --hypothesis-profile=search -n 4 $(SEARCH)

# RELEASES holds arguments of `python -m tests.clusters.releases`.
releases:
	$(PYTHON) -m tests.clusters.releases $(RELEASES)

# Too long for `make test`, which plays a short form. CAMPAIGN holds arguments of `python -m lab.campaign`.
campaign: dev
	./tests/clusters/install-slurm --accounting
	$(BIN)/python -m lab.campaign --beside 3 $(CAMPAIGN)
	$(BIN)/python -m lab.campaign.donation_agents --jobs 300
	[ ! -x /opt/pbs/bin/qsub ] || $(BIN)/python -m lab.campaign.donation_agents --scheduler openpbs --jobs 300
	$(BIN)/python -m pytest -m fuzz --hypothesis-profile=campaign -n 2

# A sample of De Rose's experiment on the real traces, where they are.
derose: dev
	$(BIN)/adaptor replay derose --quick --output build/derose

# GOLDEN holds arguments of `python -m adaptor_experiments.golden`.
golden: dev
	$(BIN)/python -m adaptor_experiments.golden $(GOLDEN)

lint: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cd fixtures/demo && MYPYPATH=. ../../$(BIN)/mypy --strict --no-incremental render.py picture

# Of this clone: `git config --unset core.hooksPath` takes it back.
hooks: dev
	git config core.hooksPath .ci/hooks

bench: dev
	$(BIN)/python -m bench

# Snakemake's own tests of executors, with the plugin for it, in an environment of their own.
snakemake: $(VENV)/installed
	./tests/clusters/install-slurm
	$(PYTHON) -m venv build/snakemake
	build/snakemake/bin/python -m pip install --quiet --disable-pip-version-check . '$(SNAKEMAKE_PLUGIN)[test]'
	build/snakemake/bin/python -m pytest -p tests.clusters.fixtures --rootdir=$(CURDIR) $(SNAKEMAKE_PLUGIN)/tests

# CLIENTS holds arguments of `python -m lab.clients`.
clients: dev
	$(BIN)/python -m lab.clients $(CLIENTS)

slurm: dev
	./tests/clusters/install-slurm
	$(BIN)/python -m tests.clusters.slurm

pbs: dev
	$(BIN)/python -m tests.clusters.play_openpbs

gridengine: dev
	./tests/clusters/install-gridengine
	$(BIN)/python -m tests.clusters.grid_engine

dist: dev
	rm -rf dist
	$(BIN)/python -m build
	for package in $(BESIDE); do $(BIN)/python -m build --outdir dist $$package || exit; done

# One file for the Python that builds it: for machines with the same minor version of Python.
pex: dist
	$(BIN)/python -m pex "request-adaptor[$(EXTRAS)] @ file://$(CURDIR)/$$(echo dist/request_adaptor-*.whl)" \
		--constraints constraints.txt --find-links dist --console-script adaptor --venv --output-file dist/adaptor.pex

# The keys, options and commands in docs/reference/, which are read without a build too.
reference: dev
	$(BIN)/python docs/_ext/reference_pages.py

# A warning is an error: a page that nothing links to, a link that leads nowhere, a key without its sentence.
docs: dev reference
	$(BIN)/python -m sphinx -b html -E -a -n -W --keep-going -q docs build/docs/html
	$(BIN)/python -m sphinx -b man -E -a -n -W --keep-going -q docs build/docs/man
	@echo "The pages: build/docs/html/index.html; the manual: man build/docs/man/adaptor.1"

clean:
	rm -rf $(VENV) $(DEMO) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
