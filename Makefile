# `make run` and `make test` do everything on a fresh machine.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: run test extras lint types tests slow bench docs parity clean

run: FOLDER := runs/quickstart/make-$(shell date +%Y%m%d-%H%M%S)
run: $(INSTALLED)  ## train the quickstart and leave regret.png
	$(BIN)/sojourn train experiment=quickstart folder=$(FOLDER)
	cp $(FOLDER)/regret.png regret.png

test: lint types tests  ## lint + types + tests

extras: .venv/.extras  ## what tests of extras want; without it they are skipped by name

.venv/.extras: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,foreign,video,joblib,submitit,ray,envpool]'
	touch $@

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED)
	$(BIN)/mypy

tests: $(INSTALLED)
	$(BIN)/pytest --numprocesses auto -m "not slow"

slow: $(INSTALLED)  ## learning runs and long numerical cases
	$(BIN)/pytest -m slow

bench: $(INSTALLED)  ## speed of MiniGrid and of the memories
	$(BIN)/python benchmarks/minigrid_speed.py
	$(BIN)/python benchmarks/memory.py

docs: .venv-docs/.installed  ## the documentation as a site, build/docs/site; a broken link is an error
	.venv-docs/bin/python docs/build_site.py build/docs

parity: .venv-parity/.installed  ## results and speed beside flash-linear-attention and titans-pytorch
	TRITON_INTERPRET=1 .venv-parity/bin/pytest tests/memory/parity
	.venv-parity/bin/python benchmarks/parity_speed.py

.venv-parity/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-parity
	.venv-parity/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[parity]'
	touch $@

.venv-docs/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet $$($(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"])')
	touch $@

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "sojourn needs Python >= 3.11: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv .venv
	@echo 'installing into .venv (about 1.5 GB): minutes, without a word'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv .venv-parity .venv-docs build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
