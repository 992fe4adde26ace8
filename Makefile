# Everything runs in a virtual environment of the project's own; nothing is installed outside it,
# but for the Debian packages of a real Slurm, which `make test` installs where it may.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
DEMO   := demo-out

# The rooms of rules: pure, so that their tests need nothing and wait for nothing.
RULES  := crafting scheduling donation budget decisions config bagfile
QUICK  := $(wildcard $(RULES:%=tests/%)) $(wildcard tests/test_*.py) tests/e2e/test_local_bag.py

.PHONY: help demo quick test campaign lint bench derose slurm pbs install dev clean

help:
	@echo "make demo    render a picture in 256 parts on this machine: the whole way of a bag"
	@echo "make quick   lint, types, the rules and one bag on this machine, in under two minutes"
	@echo "make test    lint and test everything, on a real Slurm too"
	@echo "make campaign bags on real clusters under 300 random faults, a million hostile inputs: hours; CAMPAIGN='--seed 7'"
	@echo "make lint    ruff and mypy --strict"
	@echo "make bench   speed and memory, as ratios measured in one run"
	@echo "make slurm   a throwaway Slurm of 4 nodes on this machine, to play with"
	@echo "make pbs     a throwaway OpenPBS of 4 nodes, where one is installed in /opt/pbs (needs root)"
	@echo "make install the adaptor command in $(BIN)"

install: $(VENV)/installed
dev: $(VENV)/installed-dev

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "the adaptor needs Python 3.10 or later")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[demo]'
	touch $@

$(VENV)/installed-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ $(VENV)/installed

demo: $(VENV)/installed
	rm -rf $(DEMO)/parts
	PYTHON=$(CURDIR)/$(BIN)/python ADAPTOR_DIR=$(CURDIR)/$(DEMO)/state \
		$(BIN)/adaptor run fixtures/demo/picture.bag
	$(BIN)/python fixtures/demo/render.py assemble $(DEMO)/parts $(DEMO)/picture.png
	ADAPTOR_DIR=$(CURDIR)/$(DEMO)/state $(BIN)/adaptor report last
	@echo "The picture: $(DEMO)/picture.png"

quick: dev lint
	$(BIN)/python -m pytest -n 2 --hypothesis-profile=quick $(QUICK)

test: dev
	./tests/clusters/install-slurm
	$(MAKE) --no-print-directory lint
	$(BIN)/python -m pytest -n 3 --maxschedchunk 1 --durations=10
	if [ -d ../shared/traces ]; then $(MAKE) --no-print-directory derose; fi

# Too long for `make test`, which plays a short form. CAMPAIGN holds arguments of `python -m tests.campaign`.
campaign: dev
	./tests/clusters/install-slurm
	$(BIN)/python -m tests.campaign --beside 3 $(CAMPAIGN)
	$(BIN)/python -m tests.campaign.donation_agents --jobs 300
	[ ! -x /opt/pbs/bin/qsub ] || $(BIN)/python -m tests.campaign.donation_agents --scheduler openpbs --jobs 300
	$(BIN)/python -m pytest -m fuzz --hypothesis-profile=campaign -n 2

# A sample of De Rose's experiment on the real traces, where they are.
derose: dev
	$(BIN)/adaptor replay derose --quick --output build/derose

lint: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cd fixtures/demo && MYPYPATH=. ../../$(BIN)/mypy --strict --no-incremental render.py picture

bench: dev
	$(BIN)/python -m bench

slurm: dev
	./tests/clusters/install-slurm
	$(BIN)/python -m tests.clusters.slurm

pbs: dev
	$(BIN)/python -m tests.clusters.play_openpbs

clean:
	rm -rf $(VENV) $(DEMO) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
